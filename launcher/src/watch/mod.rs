//! `launcher watch`: a read-only view of an active run, as tables, JSON or metrics.
//!
//! ```text
//! active_view: copied words ─▶ sampler: a poll ─▶ model: a plain value ─▶ tables, JSON, metrics
//! ```

mod command;
mod metrics;
mod model;
mod sampler;
mod switches;
mod tables;

pub use command::{EXAMPLES, WatchFlags, watch};
