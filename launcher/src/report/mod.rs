//! A summary for people: on the terminal, as CSV and as Markdown.

pub(crate) mod export;
pub(crate) mod incidents;
pub(crate) mod tables;
mod text;
pub mod units;

pub use export::{csv, markdown};
pub use text::{WIDTH, terminal};
