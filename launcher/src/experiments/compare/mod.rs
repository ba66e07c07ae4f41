//! `launcher compare`: is B faster or slower than A, or is no difference seen?
//!
//! A and B are runs, folders of runs, sweeps, two settings within one sweep, or two settings measured now in
//! alternation. Whichever they are, they become pairs of outlines with the same schedule; [`analysis::stats`] judges.

mod command;
pub mod gate;
mod load;
mod select;
mod table;

pub use command::{Asks, CompareFlags, against, begin, documents};
pub use load::{Cell, load};
