//! The formats that processes of a run share: ids and messages, stamps and status, plan, control
//! segment, supervision.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
pub mod agent;
#[cfg(not(loom))]
pub mod barrier;
#[cfg(not(loom))]
pub mod benchmark;
pub mod checksum;
#[cfg(not(loom))]
pub mod codec;
pub mod commands;
pub mod control;
pub mod counters;
#[cfg(not(loom))]
pub mod due_times;
#[cfg(not(loom))]
pub mod faults;
#[cfg(not(loom))]
pub mod flow;
pub mod gaps;
pub mod index;
pub mod instrument;
pub mod isolation;
#[cfg(not(loom))]
pub mod journals;
#[cfg(not(loom))]
pub mod keys;
pub mod kill;
pub mod labels;
#[cfg(not(loom))]
pub mod launcher_watch;
pub mod limits;
#[cfg(not(loom))]
pub mod link;
#[cfg(not(loom))]
pub mod log_scan;
#[cfg(not(loom))]
pub mod market;
#[cfg(not(loom))]
pub mod plan;
#[cfg(not(loom))]
pub mod positions;
pub mod record;
pub mod reject;
#[cfg(not(loom))]
pub mod restart_policy;
pub mod role;
#[cfg(not(loom))]
pub mod segments;
#[cfg(not(loom))]
pub mod sender;
#[cfg(not(loom))]
pub mod session;
#[cfg(not(loom))]
pub mod shared_histogram;
pub mod stamps;
pub mod status;
#[cfg(not(loom))]
pub mod supervision;
pub mod tape;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
pub mod topology;
#[cfg(not(loom))]
pub mod trading;
pub mod wire;
pub mod workload;
