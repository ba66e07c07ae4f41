//! From the logs of a run to what they say: merge, figures, verdicts, statistics, reports. Starts
//! no process and sends no signal.
#![forbid(unsafe_code)]

mod cause;
mod chart;
pub mod document;
pub mod escape;
pub mod evaluation;
pub mod experiment;
pub mod fitness;
pub mod hlog;
pub mod html;
pub mod inspect;
pub mod kernel;
pub mod lists;
pub mod logfile;
pub mod machine;
pub mod merge;
pub mod numbers;
pub mod record;
pub mod report;
mod select;
pub mod stats;
pub mod summary;
mod table;
pub mod tail;
pub mod timeline;
pub mod units;
