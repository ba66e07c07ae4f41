//! bulkhead's launcher: config → plan → segments → processes → stamps → merge → verdict → report.
//!
//! Each arrow is one function with one value in and one value out.
#![forbid(unsafe_code)]

pub mod hlog;
pub mod host;
pub mod inspect;
pub mod logfile;
pub mod merge;
pub mod record;
pub mod report;
pub mod summary;
