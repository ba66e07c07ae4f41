//! `launcher board`: the benchmark of the single-writer board.
//!
//! ```text
//! flags ─▶ cases ─▶ case by case: segments, processes, start, end ─▶ logs ─▶ figures ─▶ board.json, tables, page
//!           (plan)   (measure; child: agents over a carrier)        (log, counts)  (figures, command)
//! ```
//!
//! The writer makes each write when it is due and never later on purpose: a slow write makes the next ones late, and that is
//! measured (open loop). Every value's content says which write it is of, so that readers see a torn one.

mod agents;
mod carrier;
mod child;
mod command;
mod content;
mod counts;
mod figures;
mod flags;
mod log;
mod measure;
mod mode;
mod plan;

pub use child::{PREFIX, run as child};
pub use command::board;
pub use flags::BoardFlags;
