//! `launcher bill`: the headline table. What does every isolation level cost, with every technique?
//!
//! A row for each level and technique: what the engine adds to an order, the difference to the reference row with
//! its interval, and what else it costs: CPU, start-up, memory, page faults, context switches. What a level contains when
//! a strategy goes wrong stands beside it once it is measured (`contains` of a row).

mod command;
mod rows;
mod table;

pub use command::{BillFlags, begin, check_folder, documents};
