//! `launcher watch`: a read-only view of an active run, as tables or JSON.
//!
//! ```text
//! source: copied words ─▶ sampler: a poll ─▶ model: a plain value ─▶ tables, JSON
//! ```

mod command;
mod model;
mod sampler;
mod source;
mod switches;
mod tables;

pub use command::{EXAMPLES, WatchFlags, watch};
