//! Every file that is written and read back: what is in it, and what is said about one that cannot be read.

mod documents;
mod others;
pub mod samples;
