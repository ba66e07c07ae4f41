//! bulkhead's launcher: config → plan → segments → processes → stamps → merge → verdict → report.
//!
//! Each arrow is one function with one value in and one value out.
#![forbid(unsafe_code)]

pub mod bill;
pub mod clean;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod config;
pub mod contain;
pub mod doctor;
pub mod folder;
pub mod gather;
pub mod hlog;
pub mod host;
pub mod html;
pub mod incidents;
pub mod inject;
pub mod inspect;
pub mod liveness;
pub mod logfile;
pub mod merge;
pub mod orphan;
pub mod planner;
pub mod prepare;
pub mod progress;
pub mod record;
pub mod report;
pub mod role;
pub mod run;
pub mod sabotage;
pub mod setup;
pub mod signals;
pub mod simulate;
pub mod spawn;
pub mod stats;
pub mod summary;
pub mod supervise;
pub mod sweep;
pub mod timeline;
pub mod units;
pub mod warden;
