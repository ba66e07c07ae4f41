//! The simulation's tests, in one binary: simulated runs, and broken variants that must be found.

#[path = "../../../launcher/tests/all/common/mod.rs"]
mod common;
mod simulate;
mod simulate_supervisor;
