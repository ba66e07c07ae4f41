//! bulkhead's launcher: config → plan → segments → processes → stamps → merge → verdict → report.
//!
//! Each arrow is one function with one value in and one value out.
#![forbid(unsafe_code)]

pub mod clean;
pub mod cli;
pub mod config;
pub mod doctor;
pub mod gather;
pub mod host;
pub mod planner;
pub mod progress;
pub mod record;
pub mod role;
pub mod setup;
pub mod signals;
pub mod spawn;
pub mod supervise;
pub mod units;
pub mod warden;
