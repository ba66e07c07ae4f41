//! The simulation's tests, in one binary: simulated runs, and broken variants that must be found.

#[path = "../../../launcher/tests/all/common/mod.rs"]
#[allow(dead_code, reason = "shared with the launcher's tests, which need the rest")]
mod common;
mod simulate;
mod simulate_supervisor;
