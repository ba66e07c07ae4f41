//! `launcher watch`: a window into a living run, which only reads.
//!
//! ```text
//! source: a segment's words, copied ─▶ sample: a look ─▶ model: a plain value ─▶ view, JSON, metrics
//! ```

mod command;
mod flags;
mod kernel;
mod keys;
mod log_tail;
mod metrics;
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
