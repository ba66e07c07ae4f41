//! A summary for people: on the terminal, as CSV and as Markdown.

pub mod contain;
pub mod export;
pub mod grid;
pub mod incidents;
pub mod tables;
mod text;
pub(crate) mod trading;
pub(crate) mod venues;
pub use crate::numbers as units;

pub use export::{csv, markdown};
pub use tables::WIDTH;
pub use text::terminal;
