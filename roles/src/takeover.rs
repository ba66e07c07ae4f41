//! Settings of a takeover from a crashed process: its clock, disk, and the defect that a simulation
//! injects to prove that it would be found. Real processes use the run's clock and no defect.

use super::recovered::{FollowedJournal, StandbyState};
use anyhow::Result;
use gateway::GatewayResumePoint;
use journal::{Disk, Durability, Options, Reader, State, Watermark};
use orchestrator::{OutputWatermarks, Recovered};
use protocol::plan::Plan;
use protocol::wire::MAX_STRATEGIES;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use system::clock::Clock;
use system::named_enum;

named_enum! {
    /// A defect of a successor, injected by the simulation.
    Mistake {
        /// The engine assumes that the last message to each exchange was not sent.
        SendsAgain = "sends-again",
        /// The engine forgets an order that was in flight to a gateway.
        ForgetsOrders = "forgets-orders",
        /// A gateway sends twice what it had stamped and not handed over.
        ReportsAgain = "reports-again",
        /// A gateway loses what it had stamped and not handed over.
        ForgetsReports = "forgets-reports",
        /// The engine stamps again what was stamped.
        StampsAgain = "stamps-again",
        /// The engine ignores which strategies are retired and keeps their rings.
        KeepsRings = "keeps-rings",
        /// An exchange stamps reports again and records its trades again.
        TradesAgain = "trades-again",
        /// The journal is lost.
        LosesJournal = "loses-journal",
        /// Reports do not await durability.
        TellsEarly = "tells-early",
        /// A standby's state lacks a record that it has read.
        SkipsRecord = "skips-record",
        /// All outputs of a standby count as sent, although it may be ahead of its predecessor.
        BelievesSpare = "believes-spare",
    }
}

/// A simulated disk, which decides when journal records become durable.
pub trait SimulatedDisk: Disk {
    /// Handles that the journal in `folder` was opened; `journal` is its durable end.
    fn on_open(&self, folder: &Path, journal: Watermark);
}

/// The settings with which a process takes over from a crashed one.
pub struct Takeover {
    /// Returns the time in ticks.
    pub now: fn(&Plan) -> u64,
    /// The injected defect.
    pub mistake: Option<Mistake>,
    /// The simulated disk of the exchange's journals; `None`: the system's.
    pub disk: Option<Arc<dyn SimulatedDisk>>,
}

impl Default for Takeover {
    fn default() -> Self {
        Self { now: |plan| plan.clock.now(), mistake: None, disk: None }
    }
}

impl Takeover {
    /// Returns the options with which a journal is opened under these settings.
    pub(super) fn journal_options(&self, options: Options) -> Options {
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
        Options { durability, disk: Arc::<dyn SimulatedDisk>::clone(disk), ..options }
    }

    /// Passes a newly opened journal to the simulated disk.
    pub(super) fn on_journal_open(&self, folder: &Path, journal: Option<Watermark>) {
        if let (Some(disk), Some(journal)) = (&self.disk, journal) {
            disk.on_open(folder, journal);
        }
    }

    /// Injects the simulated defect into the counts of outputs that an engine has sent.
    #[cold]
    pub(super) fn alter_engine(&self, watermarks: &mut OutputWatermarks, folder: &Path) {
        match self.mistake {
            Some(Mistake::SendsAgain) => {
                watermarks.sent.iter_mut().for_each(|sent| *sent = sent.saturating_sub(1));
            }
            Some(Mistake::StampsAgain) => (watermarks.returns_stamped, watermarks.others_logged) = (0, 0),
            Some(Mistake::LosesJournal) => drop(std::fs::remove_dir_all(folder)),
            _ => {}
        }
    }

    #[cold]
    pub(super) fn alter_standby(&self, standby: &mut StandbyState) {
        if self.mistake != Some(Mistake::BelievesSpare) {
            return;
        }
        match standby {
            StandbyState::Engine(FollowedJournal { replica: Some((replica, _)), .. }) => {
                let all = vec![u64::MAX; MAX_STRATEGIES];
                replica.confirm(&OutputWatermarks {
                    returns_stamped: u64::MAX,
                    others_logged: u64::MAX,
                    sent: all.clone(),
                    returned: all,
                });
            }
            StandbyState::Exchange(FollowedJournal { replica: Some((replica, _)), .. }) => {
                replica.confirm_sent(u64::MAX);
            }
            _ => {}
        }
    }

    /// Returns the replica of a hot standby and the reader of its journal; without a standby, a new
    /// replica.
    pub(super) fn replica<S: State>(
        &self,
        followed: Option<(S, Reader)>,
        new: impl FnOnce() -> Result<S>,
    ) -> Result<(S, Option<Reader>)> {
        let Some((replica, mut reader)) = followed else {
            return Ok((new()?, None));
        };
        if self.mistake == Some(Mistake::SkipsRecord) {
            let _ = reader.next_record();
        }
        Ok((replica, Some(reader)))
    }

    #[cold]
    pub(super) fn alter_recovered(&self, recovered: &mut Recovered) {
        if self.mistake == Some(Mistake::KeepsRings) {
            recovered.retired.clear();
        }
    }

    #[cold]
    pub(super) fn alter_gateway(&self, mut resume_point: GatewayResumePoint) -> GatewayResumePoint {
        match self.mistake {
            Some(Mistake::ForgetsOrders) => resume_point.unsent_message = None,
            Some(Mistake::ReportsAgain) => resume_point.stamped.extend_from_within(..),
            Some(Mistake::ForgetsReports) => {
                // As if they were sent: taken from the session and never handed over.
                resume_point.completed += resume_point.stamped.drain(..).count() as u64;
            }
            _ => {}
        }
        resume_point
    }

    #[cold]
    pub(super) fn alter_exchange(&self, watermarks: &mut venue::OutputWatermarks, folder: &Path) {
        match self.mistake {
            Some(Mistake::TradesAgain) => (watermarks.reports_stamped, watermarks.trades) = (0, 0),
            Some(Mistake::LosesJournal) => drop(std::fs::remove_dir_all(folder)),
            _ => {}
        }
    }
}
