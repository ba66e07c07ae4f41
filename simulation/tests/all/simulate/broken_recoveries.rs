//! Recoveries with a mistake each, which the simulation must find.

use crate::common::concurrently;
use journal::{Durability, Options, Reader};
use orchestrator::{OutputWatermarks, Replica};
use protocol::journals;
use protocol::plan::{Plan, ProcessPlan, Technique};
use protocol::wire::MAX_STRATEGIES;
use roles::{RecoveredRoles, RecoveryEnvironment, StandbyState};
use simulation::{SimulatedRecovery, SimulationOptions, trial};
use system::named_enum;

named_enum! {
    /// A mistake of a successor.
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

impl RecoveryEnvironment for Mistake {
    fn journal_options(&self, options: Options) -> Options {
        match options.durability {
            Durability::GroupCommit { .. } | Durability::EveryRecord if *self == Self::TellsEarly => {
                Options { durability: Durability::Process, ..options }
            }
            _ => options,
        }
    }

    fn engine_outputs(&self, mut found: OutputWatermarks) -> OutputWatermarks {
        match self {
            Self::SendsAgain => found.sent.iter_mut().for_each(|sent| *sent = sent.saturating_sub(1)),
            Self::StampsAgain => (found.returns_stamped, found.others_logged) = (0, 0),
            _ => {}
        }
        found
    }

    fn exchange_outputs(&self, mut found: venue::OutputWatermarks) -> venue::OutputWatermarks {
        if *self == Self::TradesAgain {
            (found.reports_stamped, found.trades) = (0, 0);
        }
        found
    }
}

impl SimulatedRecovery for Mistake {
    fn on_start(&self, plan: &Plan, process: &ProcessPlan) {
        if *self == Self::LosesJournal {
            for writer in
                journals::writers(plan).filter(|writer| plan.roles_of(process).any(|role| role == *writer))
            {
                let _ = std::fs::remove_dir_all(journals::folder(plan, writer));
            }
        }
    }

    fn on_promotion(&self, standby: &mut StandbyState) {
        match standby {
            StandbyState::Engine(followed) => self.alter(&mut followed.replica, |replica: &mut Replica| {
                let all = vec![u64::MAX; MAX_STRATEGIES];
                replica.confirm(&OutputWatermarks {
                    returns_stamped: u64::MAX,
                    others_logged: u64::MAX,
                    sent: all.clone().into(),
                    returned: all.into(),
                });
            }),
            StandbyState::Exchange(followed) => {
                self.alter(&mut followed.replica, |replica| replica.confirm_sent(&[u64::MAX; 64]));
            }
        }
    }

    fn on_recovery(&self, recovered: &mut RecoveredRoles) {
        if *self == Self::KeepsRings
            && let Some(engine) = &mut recovered.engine
        {
            engine.found.retired.clear();
        }
        for gateway in recovered.gateways.values_mut() {
            match self {
                Self::ForgetsOrders => gateway.unsent_message = None,
                Self::ReportsAgain => gateway.stamped.extend_from_within(..),
                // As if they were sent: taken from the session and never handed over.
                Self::ForgetsReports => gateway.completed += gateway.stamped.drain(..).count() as u64,
                _ => {}
            }
        }
    }
}

impl Mistake {
    fn alter<S>(&self, followed: &mut Option<(S, Reader)>, confirm_all: impl FnOnce(&mut S)) {
        let Some((replica, reader)) = followed else { return };
        match self {
            Self::SkipsRecord => drop(reader.next_record()),
            Self::BelievesSpare => confirm_all(replica),
            _ => {}
        }
    }
}

#[test]
fn each_broken_recovery_is_found() {
    // Their journals wait for the disk.
    concurrently(8, Mistake::ALL, |mistake| {
        let options = SimulationOptions { recovery_only: true, recovery: mistake, ..Default::default() };
        let failing_trial = (0..200).find_map(|seed| {
            let trial = trial(seed, Technique::default(), &options).unwrap();
            (!trial.broken.is_empty()).then_some((seed, trial.broken))
        });
        println!("{mistake}: {failing_trial:?}");
        assert!(failing_trial.is_some(), "a successor with the mistake {mistake} was not found in 200 runs");
    });
}
