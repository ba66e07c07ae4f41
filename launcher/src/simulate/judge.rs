//! Checks the logs and positions of a simulated run against the invariants that hold whatever
//! happened. The merge determines the outcome of every order; this module defines which deviations
//! a fault justifies.
//!
//! | event | the run | survivors | culprits |
//! |---|---|---|---|
//! | nothing | complete, valid | every order returned | |
//! | kill switches, venue faults | complete, valid, confirmed | every order has its end | |
//! | Ctrl-C | interrupted, valid | every order sent returned | |
//! | deaths, hangs | continues, valid | every order returned | an incident, repaired |
//! | engine, exchanges die | complete, valid | every sent order answered exactly once | restarted |
//! | attack in own memory | continues, valid | every order returned | an incident |
//! | a shared slot never written | continues, valid | every order returned | quarantined |
//! | attack in shared memory | may fail | lose nothing to a forged id | no innocent suffers |

use super::Simulated;
use super::hostile::Attack;
use super::recovery::differences;
use super::scenario::ScenarioKind;
use analysis::merge::{MergedRun, OrderEnd, Violation, ViolationKind};
use analysis::record::RunOutcome;
use protocol::labels::PROTOCOL_ERRORS;
use protocol::plan::{FaultKind, Isolation, OnDeath, Role};
use protocol::supervision::ProtocolViolation;

/// Checks a simulated run and returns every violated invariant.
pub(super) fn judge(run: &Simulated, merged: &MergedRun) -> Vec<String> {
    let mut judge = Judge { run, merged, broken: Vec::new() };
    judge.conservation();
    judge.innocents();
    let contained = run.scenario.plan.on_death != OnDeath::Stop;
    match run.scenario.kind {
        ScenarioKind::Peace => judge.in_order(&RunOutcome::Complete),
        ScenarioKind::Switched => judge.switched(),
        ScenarioKind::Interrupted(_) => judge.interrupted(),
        ScenarioKind::Recovery => judge.check_recovery(),
        ScenarioKind::Deaths if contained => judge.deaths(),
        ScenarioKind::Deaths => judge.stopped(),
        ScenarioKind::Assault(kind) => judge.assault(kind, contained),
        ScenarioKind::Hostile(attack, _) => judge.hostile(attack, contained),
    }
    judge.broken
}

struct Judge<'a> {
    run: &'a Simulated,
    merged: &'a MergedRun,
    broken: Vec<String>,
}

impl Judge<'_> {
    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(what());
        }
    }

    /// Sent orders are returned, rejected, cancelled, orphaned or lost: once each.
    fn conservation(&mut self) {
        let orders = self.merged.orders;
        let ends = orders.returned + orders.rejected + orders.cancelled + orders.orphaned + orders.lost;
        self.require(orders.sent == ends, || format!("{} orders sent, {ends} accounted for", orders.sent));
        let done = self.run.record.exits.iter().filter(|exit| exit.how == "exit 0").count();
        let engine = self.run.record.exits.last().is_some_and(|exit| exit.how == "exit 0");
        let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
        self.require(engine || failed, || {
            format!("the engine exited abnormally; {done} processes exited normally")
        });
    }

    /// No incident concerns an innocent strategy.
    fn innocents(&mut self) {
        let culprits = &self.run.scenario.culprits;
        for incident in &self.run.record.incidents {
            self.require(culprits.contains(&incident.strategy), || {
                format!("strategy {} is innocent: {}", incident.strategy, incident.cause)
            });
        }
    }

    /// The merge distrusts only logs of culprits that scribble or forge.
    fn believed(&mut self) {
        let plan = &self.run.scenario.plan;
        let lies = matches!(self.run.scenario.kind, ScenarioKind::Assault(_) | ScenarioKind::Hostile(..));
        let may_lie = |role: &Role| matches!(role, Role::Strategy(index) if lies && self.run.scenario.culprits.contains(index));
        let doubted: Vec<&str> = plan
            .threads
            .iter()
            .zip(&self.merged.threads)
            .filter(|(thread, log)| log.is_untrusted && !thread.roles.iter().any(may_lie))
            .map(|(thread, _)| thread.name.as_str())
            .collect();
        self.require(doubted.is_empty(), || format!("the log of {} is not believed", doubted.join(", ")));
    }

    fn valid(&mut self) {
        let violations = &self.merged.violations;
        // Tampering with pushed messages cannot be distinguished from a broken ring.
        let hostile = matches!(self.run.scenario.kind, ScenarioKind::Hostile(..)) && self.run.tampered > 0;
        let culprits: Vec<String> =
            self.run.scenario.culprits.iter().map(|index| Role::Strategy(*index).to_string()).collect();
        // The same holds for a strategy that sends invalid messages.
        let begins = |violation: &&Violation| {
            culprits.iter().any(|name| match violation.kind {
                ViolationKind::Checksum => violation.first.starts_with(&format!("submit of {name}:")),
                ViolationKind::PeerFaults => violation.first.starts_with(&format!("{name} was quarantined")),
                _ => false,
            })
        };
        let entitled = |violation: &&Violation| hostile && begins(violation);
        let all: Vec<String> = violations
            .iter()
            .filter(|violation| !entitled(violation))
            .map(|violation| format!("{:?} ×{}: {}", violation.kind, violation.count, violation.first))
            .collect();
        self.require(all.is_empty(), || format!("not valid: {}", all.join("; ")));
        self.believed();
    }

    fn ended(&mut self, outcome: &RunOutcome) {
        let found = &self.run.record.outcome;
        self.require(found == outcome, || format!("ended {found:?}, not {outcome:?}"));
    }

    /// Every planned order of the selected strategies was returned.
    fn check_returned(&mut self, is_whole: impl Fn(u16) -> bool) {
        let plan = &self.run.scenario.plan;
        let mut returned = vec![0; plan.trading().orders.len()];
        for (id, row) in self.merged.orders() {
            if let Some(count) = returned.get_mut(usize::from(id.strategy()))
                && OrderEnd::from_points(row.points(), false) == OrderEnd::Returned
            {
                *count += 1;
            }
        }
        for (strategy, (returned, planned)) in (0..).zip(returned.iter().zip(&plan.trading().orders)) {
            self.require(!is_whole(strategy) || returned == planned, || {
                format!("strategy {strategy} has {returned} of its {planned} orders back")
            });
        }
    }

    fn survivors_are_whole(&mut self) {
        let culprits = self.run.scenario.culprits.clone();
        self.check_returned(|strategy| !culprits.contains(&strategy));
    }

    /// No peer fault was counted.
    fn no_peer_faults(&mut self) {
        for (log, thread) in self.merged.threads.iter().zip(&self.run.record.plan.threads) {
            let faults = log.counters.total(&thread.roles, PROTOCOL_ERRORS);
            self.require(faults == 0, || format!("{} counted {faults} peer faults", log.name));
        }
    }

    fn in_order(&mut self, outcome: &RunOutcome) {
        self.ended(outcome);
        self.valid();
        self.no_peer_faults();
        if *outcome == RunOutcome::Complete {
            self.check_returned(|_| true);
        }
    }

    fn interrupted(&mut self) {
        // The run may have completed before the interruption.
        let outcome = match self.run.record.outcome {
            RunOutcome::Complete => RunOutcome::Complete,
            _ => RunOutcome::Interrupted,
        };
        self.in_order(&outcome);
        let orders = self.merged.orders;
        self.require(orders.sent == orders.returned, || {
            format!("{} orders sent before the end, {} back", orders.sent, orders.returned)
        });
    }

    /// Checks a run with kill switches.
    fn switched(&mut self) {
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.no_peer_faults();
        let (orders, plan) = (self.merged.orders, &self.run.scenario.plan);
        let planned = plan.trading().total_orders();
        let ended = orders.returned + orders.rejected + orders.cancelled;
        self.require(orders.sent == planned && ended == planned, || {
            format!("{planned} orders planned, {} sent, {ended} returned, refused or cancelled", orders.sent)
        });
        let undone = self.merged.kills.iter().filter(|kill| kill.done.is_none()).count();
        self.require(undone == 0, || format!("{undone} kills were not confirmed"));
    }

    /// Checks a run in which strategies died and the run continued.
    fn deaths(&mut self) {
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.survivors_are_whole();
        self.require(self.merged.lost_of_survivors == 0, || "a survivor has lost orders".into());
        self.repaired();
        let restart = self.run.scenario.plan.on_death == OnDeath::Restart;
        for incident in &self.run.record.incidents {
            let (strategy, epoch) = (incident.strategy, incident.epoch);
            self.require(incident.quarantined.is_none(), || {
                format!("strategy {strategy} died of a fault, and was quarantined: {}", incident.cause)
            });
            let next = self
                .run
                .record
                .incidents
                .iter()
                .any(|other| other.strategy == strategy && other.epoch == epoch + 1);
            self.require(!restart || incident.restarted_ns.is_some() || next, || {
                format!("strategy {strategy} epoch {epoch} was not started again")
            });
        }
        let lethal = self.run.struck.len();
        self.require(lethal == 0 || !self.run.record.incidents.is_empty(), || {
            format!("{lethal} faults struck and nobody noticed")
        });
    }

    /// Checks a run in which the engine and exchanges died, and perhaps strategies.
    fn check_recovery(&mut self) {
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.require(self.merged.lost_of_survivors == 0, || "a survivor has lost orders".into());
        self.repaired();
        if self.run.record.outcome == RunOutcome::Complete {
            self.broken.extend(differences(self.run, self.merged));
        }
    }

    /// Every incident was completed, and each incarnation lost at most its unfinished order.
    fn repaired(&mut self) {
        for (incident, losses) in self.run.record.incidents.iter().zip(&self.merged.losses) {
            let at_the_end = incident.cause.starts_with("exited abnormally");
            self.require(incident.repaired_ns.is_some() || at_the_end, || {
                format!("strategy {} epoch {} was never repaired", incident.strategy, incident.epoch)
            });
            self.require(losses.lost <= 1 || incident.quarantined.is_some(), || {
                format!("strategy {} epoch {} lost {} orders", incident.strategy, incident.epoch, losses.lost)
            });
        }
    }

    /// Checks a run that ends with the first death.
    fn stopped(&mut self) {
        let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
        let struck = !self.run.struck.is_empty();
        self.require(!failed || struck, || format!("nothing struck, and {:?}", self.run.record.outcome));
        self.named();
    }

    /// The process named for the failure is a culprit.
    fn named(&mut self) {
        if let RunOutcome::Failed { process, .. } = &self.run.record.outcome {
            let names: Vec<String> =
                self.run.scenario.culprits.iter().map(|index| Role::Strategy(*index).to_string()).collect();
            self.require(names.contains(process), || format!("{process} is named for what {names:?} did"));
        }
        self.valid();
    }

    /// Returns `true` if each strategy has its own ring, so that its damage stays there.
    fn is_owned(&self) -> bool {
        self.run.scenario.plan.technique.info().apart
            && !self.run.scenario.plan.isolation.has(Isolation::Thread)
    }

    fn assault(&mut self, kind: FaultKind, contained: bool) {
        let own = self.is_owned();
        if !contained {
            // A quarantine ends the run, in the culprit's name if its memory is its own. Lost
            // orders are waited for until the stall is detected.
            if own && !matches!(kind, FaultKind::Lose | FaultKind::HoldClaim)
                || !own && kind == FaultKind::HoldClaim
            {
                self.named();
            }
            return;
        }
        match kind {
            // Scribbling over shared memory can damage every strategy: the run must end, and no
            // innocent may be quarantined. A flood of a shared ring can block the others for as
            // long as venues hold its orders.
            FaultKind::Scribble | FaultKind::Flood if !own => return,
            // Lost messages are not replaced: a strategy that waits for them stalls the run. So do
            // messages that stay in a strategy's own ring.
            FaultKind::Lose | FaultKind::HoldClaim if own || kind == FaultKind::Lose => {
                let waited_in_vain = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
                self.require(waited_in_vain || self.merged.violations.is_empty(), || {
                    "lost and not said".into()
                });
                return self.survivors_are_whole();
            }
            _ => {}
        }
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.survivors_are_whole();
        self.repaired();
        // A flood after its strategy has ended has no effect.
        let found = !self.run.record.incidents.is_empty();
        self.require(self.run.struck.is_empty() || found, || format!("{kind} was not found"));
        let incident = self.run.record.incidents.first();
        let forged = incident.and_then(|incident| incident.quarantined);
        let wanted = match kind {
            FaultKind::Forge => Some(ProtocolViolation::ForgedStatus),
            FaultKind::HoldClaim => Some(ProtocolViolation::UnwrittenClaim),
            _ => forged,
        };
        self.require(!found || forged == wanted, || format!("{kind} was found as {forged:?}"));
    }

    fn hostile(&mut self, attack: Attack, contained: bool) {
        if self.run.tampered == 0 {
            return self.in_order(&RunOutcome::Complete);
        }
        if !contained {
            let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
            let silent = attack == Attack::UnknownVenue;
            self.require(failed || silent || !self.is_owned(), || format!("{} was not found", attack.name()));
            return;
        }
        if attack != Attack::ForeignId || self.is_owned() {
            self.survivors_are_whole();
        }
        if !self.is_owned() {
            let threads = self.merged.threads.iter().zip(&self.run.record.plan.threads);
            let errors = threads.map(|(log, thread)| log.counters.total(&thread.roles, PROTOCOL_ERRORS));
            let engine = errors.fold(0, u64::saturating_add);
            let seen = engine > 0
                || self.merged.orders.rejected > 0
                || !self.run.record.incidents.is_empty()
                || !self.merged.violations.is_empty();
            return self.require(seen, || format!("{} left no trace", attack.name()));
        }
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.repaired();
        let why = match attack {
            Attack::Garbage => Some(ProtocolViolation::Garbage),
            Attack::ForeignId => Some(ProtocolViolation::ForeignId),
            Attack::WrongEpoch => Some(ProtocolViolation::WrongEpoch),
            Attack::Repeat | Attack::Gap => Some(ProtocolViolation::OutOfSequence),
            // A few are treated as mistakes and rejected.
            Attack::UnknownVenue => None,
        };
        let found = self.run.record.incidents.first().and_then(|incident| incident.quarantined);
        self.require(why.is_none() || found == why, || format!("{why:?} was found as {found:?}"));
    }
}
