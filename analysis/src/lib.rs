//! Analysis of recorded runs: merge, figures, verdicts, statistics and reports. Starts no process
//! and sends no signal.
#![forbid(unsafe_code)]

mod cause;
mod chart;
pub mod cpu_list;
pub mod cpu_shortage;
pub mod document;
pub mod escape;
pub mod evaluation;
pub mod experiment;
pub mod fitness;
mod grouping;
pub mod hlog;
pub mod html;
pub mod inspect;
pub mod kernel;
pub mod logfile;
pub mod machine;
pub mod merge;
pub mod numbers;
mod radix_select;
pub mod record;
pub mod report;
pub mod spacing;
pub mod stats;
pub mod summary;
pub mod table;
pub mod tail;
pub mod timeline;
pub mod units;
