//! A summary for people: on the terminal, as CSV and as Markdown.

pub mod bill;
pub mod board;
pub(crate) mod comebacks;
pub mod contain;
pub mod export;
pub mod grid;
pub mod incidents;
pub mod lab;
pub mod strategies;
pub mod tables;
mod text;
pub(crate) mod trading;
pub(crate) mod venues;
mod width;
pub use crate::numbers as units;

pub use export::{csv, markdown, positions_csv};
pub use text::terminal;
pub use width::{WIDTH, fitted, set_width, width};
