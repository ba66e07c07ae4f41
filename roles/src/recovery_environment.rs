//! The differences between recovery in a simulation and in real processes: clock, disk, outputs.

use journal::{Options, Watermark};
use orchestrator::OutputWatermarks;
use protocol::plan::Plan;
use std::path::Path;
use system::clock::Clock;

/// The environment in which a process recovers: its clock, its disk, and the outputs that crashed
/// predecessors have sent. The methods do what real processes need.
pub trait RecoveryEnvironment {
    /// Returns the current time in ticks.
    fn now(&self, plan: &Plan) -> u64 {
        plan.clock.now()
    }

    /// Returns the options with which a journal is opened.
    fn journal_options(&self, options: Options) -> Options {
        options
    }

    /// Called when the journal in `folder` was opened; `journal` is its durable end.
    fn on_journal_open(&self, folder: &Path, journal: Watermark) {
        let _ = (folder, journal);
    }

    /// Returns the outputs that count as sent by crashed engines, given those found in their rings
    /// and logs.
    fn engine_outputs(&self, outputs_found: OutputWatermarks) -> OutputWatermarks {
        outputs_found
    }

    /// Returns the outputs that count as sent by crashed exchanges, given those found in their
    /// rings and logs.
    fn exchange_outputs(&self, outputs_found: venue::OutputWatermarks) -> venue::OutputWatermarks {
        outputs_found
    }
}

/// The recovery environment of real processes, as opposed to simulated ones.
#[derive(Clone, Copy, Debug)]
pub struct SystemRecovery;

impl RecoveryEnvironment for SystemRecovery {}
