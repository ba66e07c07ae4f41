//! An engine that takes the place of a crashed one: promoted from a replica, and then attached to
//! the contended hand-offs.
//!
//! Of the messages in the contended hand-offs those that the journal has are skipped, the others
//! are taken. An inbox connects threads of one process, so both of its ends are gone: what is in it
//! is skipped, and what the session lacks is sent again.

use super::core::Core;
use super::ledger::{GatewayPast, Recovered};
use super::{Orchestrator, Outputs};
use journal::{RecoveryError, Watermark, Writer};
use protocol::sender::Sender;
use shm::ring::Consumer;

/// An engine before it is attached to the contended hand-offs.
pub struct Successor {
    pub(crate) core: Core,
    pub(crate) outputs: Outputs,
    pub(crate) journal: Writer,
}

impl Successor {
    /// Attaches it to the contended hand-offs, whose ends are attached after the crashed engine's.
    ///
    /// # Errors
    /// More was taken from one of them than the journal has.
    pub fn attach<R: Consumer>(
        self,
        mut submit: R,
        mut completion: R,
        recovered: &Recovered,
    ) -> Result<Orchestrator<R, Writer>, RecoveryError> {
        let short = |what, index, journal| {
            move |observed| RecoveryError::Incomplete { what, index, journal, observed }
        };
        recovered.retired.iter().for_each(|strategy| submit.forget(*strategy));
        for (index, taken) in recovered.taken.iter().enumerate() {
            submit.pass_over(index, *taken).map_err(short("orders of strategy", index, *taken))?;
        }
        for (index, GatewayPast { reports, .. }) in recovered.gateways.iter().enumerate() {
            completion.pass_over(index, *reports).map_err(short("reports of gateway", index, *reports))?;
        }
        // Who sleeps may have been sent something by the crashed engine and not been woken.
        self.outputs.gateways.iter().chain(&self.outputs.strategies).for_each(Sender::ring_bell);
        Ok(Orchestrator::new(submit, completion, self.core, self.outputs, self.journal))
    }

    /// How far its journal is on the disk.
    pub fn watermark(&self) -> Watermark {
        self.journal.watermark()
    }

    /// Requests of living strategies that are not settled.
    pub fn open_orders(&self) -> u64 {
        self.core.positions.requests()
    }
}
