//! A summary for people: on the terminal, as CSV and as Markdown.

pub mod contain;
pub mod export;
pub mod grid;
pub mod incidents;
pub mod tables;
mod text;
pub use crate::numbers as units;

pub use export::{csv, markdown};
pub use text::{WIDTH, terminal};
