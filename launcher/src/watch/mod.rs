//! `launcher watch`: a read-only view of an active run.
//!
//! ```text
//! source: copied words ─▶ sampler: a poll ─▶ model: a plain value ─▶ view, JSON
//! ```

mod command;
mod flags;
mod kernel;
mod keys;
mod log_tail;
mod model;
mod positions;
mod rows;
mod sampler;
mod screen;
mod source;
mod stages;
mod styled_line;
mod terminal;
mod view;

pub use command::watch;
pub use flags::{EXAMPLES, WatchFlags};
