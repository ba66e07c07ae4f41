//! bulkhead's launcher: config → plan → segments → processes → stamps → merge → verdict → report.
//!
//! Each arrow is one function with one value in and one value out.
#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod doctor;
pub mod host;
pub mod planner;
pub mod record;
pub mod units;
