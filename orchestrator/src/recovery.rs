//! How an orchestrator comes back: it does again what its journal says ([`Shadow`](super::Shadow)), keeps of what comes of it what its
//! predecessor had not done, and takes that one's place in the rings.
//!
//! | left behind | what follows from it |
//! |---|---|
//! | messages in a strategy's ring, in a gateway's | those that the journal has are passed over, the others are taken |
//! | messages in a gateway's session, in a return ring, stamps in the log | so much has gone out: see `given` |
//! | answers of desk and repairs | what is said there is not said again |
//!
//! An inbox is between threads of the same process, so both its ends are gone: what is in it is passed over, and what the session lacks
//! is put there anew.

use super::events::RecoveryError;
use super::given::{GatewayPast, Recovered};
use super::{Inbox, Orchestrator, ReturnPath, Supervision};
use journal::{Watermark, Writer};
use protocol::wire::Message;
use shm::ring::Consumer;

/// The receiving end of nothing: of an orchestrator that is not attached yet.
pub struct Mute;

impl Consumer for Mute {
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        None
    }
}

impl<R: Consumer> Orchestrator<R> {
    /// The same attached to the contended hand-offs, whose ends are heirs of the dead one's.
    ///
    /// # Errors
    /// More was taken from one of them than the journal has.
    pub fn attached<Q: Consumer>(
        self,
        mut submit: Q,
        mut completion: Q,
        recovered: &Recovered,
    ) -> Result<Orchestrator<Q>, RecoveryError> {
        let short = |what, index, journal| move |there| RecoveryError::Short { what, index, journal, there };
        recovered.retired.iter().for_each(|strategy| submit.forget(*strategy));
        for (index, taken) in recovered.taken.iter().enumerate() {
            submit.pass_over(index, *taken).map_err(short("orders of strategy", index, *taken))?;
        }
        for (index, GatewayPast { reports, .. }) in recovered.gateways.iter().enumerate() {
            completion.pass_over(index, *reports).map_err(short("reports of gateway", index, *reports))?;
        }
        let mut orchestrator = self.over(submit, completion);
        // Who sleeps may have been told something by the dead one and not been woken.
        orchestrator.ring_all();
        Ok(orchestrator)
    }

    /// The same, told of deaths by the launcher, in the place of one that was.
    #[must_use]
    pub fn supervised_again(self, supervision: Supervision, now: u64) -> Self {
        let orchestrator = self.supervised(supervision);
        orchestrator.say_again(now);
        orchestrator
    }
}

impl Inbox {
    fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

impl<R: Consumer> Orchestrator<R> {
    /// How far its journal is on the disk, if it has one.
    pub fn watermark(&self) -> Option<Watermark> {
        self.journal.as_ref().map(Writer::watermark)
    }

    /// Requests of living strategies that are not settled.
    pub fn open_orders(&self) -> u64 {
        self.positions.requests()
    }

    fn ring_all(&mut self) {
        self.inboxes.iter().for_each(Inbox::ring_bell);
        self.returns.iter().for_each(ReturnPath::ring_bell);
    }
}
