//! `launcher watch`: a window into a living run, which only reads.
//!
//! ```text
//! source: a segment's words, copied ─▶ sample: a look ─▶ model: a plain value ─▶ view, JSON, metrics
//! ```

mod accounts;
mod command;
mod flags;
mod follow;
mod kernel;
mod keys;
mod line;
mod lines;
mod metrics;
mod model;
mod sample;
mod screen;
mod source;
mod stages;
mod terminal;
mod view;

pub use command::watch;
pub use flags::{EXAMPLES, WatchFlags};
