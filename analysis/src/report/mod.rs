//! Formats the summary of a run for the terminal, as CSV and as Markdown.

pub mod export;
pub mod incidents;
pub(crate) mod role_restarts;
pub mod strategies;
pub mod tables;
mod text;
pub(crate) mod trading;
pub(crate) mod venues;
pub use crate::numbers as units;

pub use crate::table::grid;
pub use crate::table::{DEFAULT_WIDTH, fit_to_width, set_width, width};
pub use export::{csv, markdown, positions_csv};
pub use text::terminal;
pub(crate) use text::{result_fields, setup_fields};
