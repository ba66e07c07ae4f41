//! The engine's shell: the state machine with the hand-offs, outputs and journal around it, and the
//! only way by which an input reaches the state machine.
//!
//! What polls, inspects or recalls lies above: it makes inputs, and hands each to
//! `record_and_apply`.

use crate::engine::{Core, Input};
use crate::fences::Supervision;
use crate::live::{HandOffs, Live};
use crate::outputs::Outputs;
use journal::InputLog;
use protocol::agent::Cycle;
use shm::ring::Consumer;
use system::clock::Clock;

/// The agent that runs the engine: reads orders and reports, and passes them to its state machine.
/// `R` is the receiving end of the technique under test, for both contended hand-offs; `J` records
/// inputs.
pub struct Orchestrator<R, J = ()> {
    pub(crate) hand_offs: HandOffs<R>,
    pub(crate) core: Core,
    pub(crate) outputs: Outputs,
    pub(crate) supervision: Option<Supervision>,
    pub(crate) journal: J,
    /// The memory of the last order identifies its sender. A successor assumes that it does not
    /// until its first order: nobody is blamed for what another strategy may have sent.
    pub(crate) sender_is_authenticated: bool,
    pub(crate) failed: Option<String>,
}

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    /// Creates an engine that records its inputs in `journal`; the journal `()` records nothing.
    /// Unless it is [`supervised`](Orchestrator::supervised) no strategy is ever retired or
    /// restarted.
    pub fn new(submit: R, completion: R, core: Core, outputs: Outputs, journal: J) -> Self {
        assert!(
            core.sessions.len() == outputs.strategies.len() && core.gateways.len() == outputs.gateways.len(),
            "core and outputs are of one run"
        );
        let (supervision, sender_is_authenticated, failed) = (None, true, None);
        let hand_offs = HandOffs { submit, completion };
        Self { hand_offs, core, outputs, supervision, journal, sender_is_authenticated, failed }
    }

    /// Records an input, then applies it. Returns `false` if recording failed: it was not applied.
    #[inline(always)]
    pub(crate) fn record_and_apply<C: Clock>(
        &mut self,
        input: Input,
        release: impl FnOnce(&mut Self),
        cycle: &mut Cycle<C>,
    ) -> bool {
        let Some(now) = self.record(&input, release, cycle) else { return false };
        let Self { hand_offs, core, outputs, journal, .. } = self;
        core.apply(input, now, &mut Live { hand_offs, outputs, journal, cycle });
        true
    }

    /// Records and applies an input as [`Self::record_and_apply`] does, but not in an order's path.
    #[cold]
    pub(crate) fn record_and_apply_off_path<C: Clock>(
        &mut self,
        input: Input,
        release: impl FnOnce(&mut Self),
        cycle: &mut Cycle<C>,
    ) -> bool {
        let Some(now) = self.record(&input, release, cycle) else { return false };
        let Self { hand_offs, core, outputs, journal, .. } = self;
        core.apply_off_path(input, now, &mut Live { hand_offs, outputs, journal, cycle });
        true
    }

    /// Records an input, then lets go of where it came from. Returns its time in ticks since the
    /// run's start; `None` if recording failed.
    #[inline(always)]
    fn record<C: Clock>(
        &mut self,
        input: &Input,
        release: impl FnOnce(&mut Self),
        cycle: &Cycle<C>,
    ) -> Option<u64> {
        let now = cycle.now.saturating_sub(cycle.time.start_ticks);
        if J::IS_ENABLED && !self.try_record(input, now) {
            return None;
        }
        release(self);
        Some(now)
    }

    #[inline(never)]
    fn try_record(&mut self, input: &Input, now: u64) -> bool {
        let recorded = input.encode(now, |payload| self.journal.record(payload));
        if let Err(error) = &recorded {
            self.failed = Some(format!("stops: its journal fails: {error}"));
        }
        recorded.is_ok()
    }
}
