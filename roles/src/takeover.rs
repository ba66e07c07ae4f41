//! How a process takes over from a dead one: what it reads the time from, and what it gets wrong
//! where a simulation wants to see that its judge finds that. Real processes read the run's clock
//! and get nothing wrong.

use gateway::GatewayResumePoint;
use journal::{Disk, Durability, Options, Reader, Watermark};
use orchestrator::{OutputWatermarks, Recovered};
use protocol::plan::Plan;
use shm::attached::Attached;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use system::clock::Clock;
use system::names;

names! {
    /// What a broken successor gets wrong.
    Mistake {
        /// The engine believes that the last message to each exchange was not sent.
        SendsAgain = "sends-again",
        /// The engine has no memory of an order that was on its way to a gateway.
        ForgetsOrders = "forgets-orders",
        /// A gateway gives twice what it had stamped and not handed over.
        ReportsAgain = "reports-again",
        /// A gateway loses what it had stamped and not handed over.
        ForgetsReports = "forgets-reports",
        /// The engine stamps again what has its stamp.
        StampsAgain = "stamps-again",
        /// The engine does not look which strategies are retired: it keeps their rings.
        KeepsRings = "keeps-rings",
        /// An exchange stamps again what has its stamp, and tapes its trades again.
        TradesAgain = "trades-again",
        /// The journal is not there any more.
        LosesJournal = "loses-journal",
        /// Reports do not wait for the disk.
        TellsEarly = "tells-early",
        /// A spare's state lacks a record that it has read.
        SkipsRecord = "skips-record",
        /// What a spare has carried out is believed to have gone out: it may be ahead of what its
        /// predecessor came to.
        BelievesSpare = "believes-spare",
    }
}

/// A disk that is simulated: a group gets there when it says so.
pub trait ByHand: Disk {
    /// The journal in that folder is open, and that is how far it is.
    fn opened(&self, folder: &Path, journal: Watermark);
}

/// How a process takes over.
pub struct Takeover {
    /// The time, in ticks.
    pub now: fn(&Plan) -> u64,
    /// What it gets wrong.
    pub mistake: Option<Mistake>,
    /// The disk that its journals are on, if that is none of the system's.
    pub disk: Option<Arc<dyn ByHand>>,
}

impl Default for Takeover {
    fn default() -> Self {
        Self { now: |plan| plan.clock.now(), mistake: None, disk: None }
    }
}

impl Takeover {
    /// How that process does it.
    pub(super) fn of(attached: &mut Attached<'_>) -> Arc<Self> {
        Self::shared(attached, Self::default)
    }

    /// Tells a process how to do it, before anything of it is built.
    pub fn tell(self, attached: &mut Attached<'_>) {
        drop(Self::shared(attached, || self));
    }

    fn shared(attached: &mut Attached<'_>, make: impl FnOnce() -> Self) -> Arc<Self> {
        attached.shared("takeover", make)
    }

    /// How a journal is kept.
    pub(super) fn of_options(&self, options: Options) -> Options {
        let Some(disk) = &self.disk else { return options };
        let durability = match options.durability {
            Durability::GroupCommit { .. } | Durability::EveryRecord
                if self.mistake == Some(Mistake::TellsEarly) =>
            {
                Durability::Process
            }
            Durability::GroupCommit { .. } => {
                Durability::GroupCommit { records: u64::MAX, within: Duration::MAX }
            }
            as_it_is => as_it_is,
        };
        Options { durability, disk: Arc::<dyn ByHand>::clone(disk), ..options }
    }

    /// A journal is open.
    pub(super) fn of_opened(&self, folder: &Path, journal: Option<Watermark>) {
        if let (Some(disk), Some(journal)) = (&self.disk, journal) {
            disk.opened(folder, journal);
        }
    }

    /// What an engine finds.
    #[cold]
    pub(super) fn of_engine(&self, estate: &mut OutputWatermarks, folder: &Path) {
        match self.mistake {
            Some(Mistake::SendsAgain) => {
                estate.sent.iter_mut().for_each(|sent| *sent = sent.saturating_sub(1));
            }
            Some(Mistake::StampsAgain) => (estate.returns_stamped, estate.others_logged) = (0, 0),
            Some(Mistake::LosesJournal) => drop(std::fs::remove_dir_all(folder)),
            _ => {}
        }
    }

    /// What a spare goes on from; `believe` tells it that all of that has gone out.
    #[cold]
    pub(super) fn of_followed(&self, believe: impl FnOnce()) {
        if self.mistake == Some(Mistake::BelievesSpare) {
            believe();
        }
    }

    /// What a spare has read its journal with.
    #[cold]
    pub(super) fn of_reader(&self, reader: &mut Reader) {
        if self.mistake == Some(Mistake::SkipsRecord) {
            let _ = reader.next_record();
        }
    }

    /// What follows from its journal.
    #[cold]
    pub(super) fn of_recovered(&self, recovered: &mut Recovered) {
        if self.mistake == Some(Mistake::KeepsRings) {
            recovered.retired.clear();
        }
    }

    /// What a gateway finds.
    #[cold]
    pub(super) fn of_gateway(&self, mut estate: GatewayResumePoint) -> GatewayResumePoint {
        match self.mistake {
            Some(Mistake::ForgetsOrders) => estate.first = None,
            Some(Mistake::ReportsAgain) => estate.stamped.extend_from_within(..),
            Some(Mistake::ForgetsReports) => {
                // As if they had gone out: they are taken from the session, and never given.
                estate.completed += estate.stamped.drain(..).count() as u64;
            }
            _ => {}
        }
        estate
    }

    /// What an exchange finds.
    #[cold]
    pub(super) fn of_exchange(&self, estate: &mut venue::OutputWatermarks, folder: &Path) {
        match self.mistake {
            Some(Mistake::TradesAgain) => (estate.reports_stamped, estate.trades) = (0, 0),
            Some(Mistake::LosesJournal) => drop(std::fs::remove_dir_all(folder)),
            _ => {}
        }
    }
}
