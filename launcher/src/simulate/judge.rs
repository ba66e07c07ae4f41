//! Judges a simulated run: the conditions that must hold whatever happened. The merge says what
//! became of every order; what a fault entitles to is said here.
//!
//! | what happened | the run | survivors | who did it |
//! |---|---|---|---|
//! | nothing | complete, valid | every order returned | |
//! | kill switches, and perhaps a fault of a venue | complete, valid, each kill confirmed | every order returned, refused or cancelled | |
//! | Ctrl-C | interrupted, valid | every order sent returned | |
//! | deaths, hangs | goes on and is valid; without `--on-death` it fails and is valid | every order returned | an incident, repaired |
//! | engine and exchanges die | complete, valid | every order that was sent is answered, and by the exchanges' journals at most once | all are back |
//! | flood, forged orders, scribbling in memory of its own | goes on and is valid | every order returned | an incident; quarantined where its memory names it |
//! | a place held in memory that all share | goes on and is valid | every order returned | quarantined |
//! | flood, forged orders, scribbling in memory that all share | may fail | lose nothing to what is only wrong in the attacker's own orders | nobody is punished for another |

use super::Simulated;
use super::comebacks::differences;
use super::hostile::Attack;
use super::scenario::ScenarioKind;
use analysis::merge::{MergedRun, OrderEnd, Violation, ViolationKind};
use analysis::record::RunOutcome;
use protocol::labels::PROTOCOL_ERRORS;
use protocol::plan::{FaultKind, Isolation, OnDeath, Role};
use protocol::supervision::ProtocolViolation;

/// Everything that must hold and does not.
pub(super) fn judge(run: &Simulated, merged: &MergedRun) -> Vec<String> {
    let mut judge = Judge { run, merged, broken: Vec::new() };
    judge.conservation();
    judge.innocents();
    let contained = run.scenario.plan.on_death != OnDeath::Stop;
    match run.scenario.kind {
        ScenarioKind::Peace => judge.in_order(&RunOutcome::Complete),
        ScenarioKind::Switched => judge.switched(),
        ScenarioKind::Interrupted(_) => judge.interrupted(),
        ScenarioKind::Comebacks => judge.comebacks(),
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
    fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(what());
        }
    }

    /// Sent orders are returned, rejected, cancelled, orphaned or lost: once each.
    fn conservation(&mut self) {
        let orders = self.merged.orders;
        let ends = orders.returned + orders.rejected + orders.cancelled + orders.orphaned + orders.lost;
        self.must(orders.sent == ends, || format!("{} orders sent, {ends} accounted for", orders.sent));
        let done = self.run.record.exits.iter().filter(|exit| exit.how == "exit 0").count();
        let engine = self.run.record.exits.last().is_some_and(|exit| exit.how == "exit 0");
        let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
        self.must(engine || failed, || {
            format!("the engine exited abnormally; {done} processes exited normally")
        });
    }

    /// No incident is of a strategy that did nothing wrong.
    fn innocents(&mut self) {
        let culprits = &self.run.scenario.culprits;
        for incident in &self.run.record.incidents {
            self.must(culprits.contains(&incident.strategy), || {
                format!("strategy {} is innocent: {}", incident.strategy, incident.cause)
            });
        }
    }

    /// The merge takes nobody for a liar who did not lie: only who scribbles or forges may be.
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
        self.must(doubted.is_empty(), || format!("the log of {} is not believed", doubted.join(", ")));
    }

    fn valid(&mut self) {
        let violations = &self.merged.violations;
        // Who tampers with what its session has pushed is not told from a ring that does.
        let hostile = matches!(self.run.scenario.kind, ScenarioKind::Hostile(..)) && self.run.tampered > 0;
        let culprits: Vec<String> =
            self.run.scenario.culprits.iter().map(|index| Role::Strategy(*index).to_string()).collect();
        // Nor is who sends what no honest one does.
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
        self.must(all.is_empty(), || format!("not valid: {}", all.join("; ")));
        self.believed();
    }

    fn ended(&mut self, outcome: &RunOutcome) {
        let found = &self.run.record.outcome;
        self.must(found == outcome, || format!("ended {found:?}, not {outcome:?}"));
    }

    /// Every planned order of these strategies came back.
    fn whole(&mut self, is_whole: impl Fn(u16) -> bool) {
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
            self.must(!is_whole(strategy) || returned == planned, || {
                format!("strategy {strategy} has {returned} of its {planned} orders back")
            });
        }
    }

    fn survivors_are_whole(&mut self) {
        let culprits = self.run.scenario.culprits.clone();
        self.whole(|strategy| !culprits.contains(&strategy));
    }

    /// Nobody saw a peer do what none may.
    fn no_peer_faults(&mut self) {
        for (log, thread) in self.merged.threads.iter().zip(&self.run.record.plan.threads) {
            let faults = log.counters.total(&thread.roles, PROTOCOL_ERRORS);
            self.must(faults == 0, || format!("{} counted {faults} peer faults", log.name));
        }
    }

    fn in_order(&mut self, outcome: &RunOutcome) {
        self.ended(outcome);
        self.valid();
        self.no_peer_faults();
        if *outcome == RunOutcome::Complete {
            self.whole(|_| true);
        }
    }

    fn interrupted(&mut self) {
        // It may have been complete before.
        let outcome = match self.run.record.outcome {
            RunOutcome::Complete => RunOutcome::Complete,
            _ => RunOutcome::Interrupted,
        };
        self.in_order(&outcome);
        let orders = self.merged.orders;
        self.must(orders.sent == orders.returned, || {
            format!("{} orders sent before the end, {} back", orders.sent, orders.returned)
        });
    }

    /// Kill switches were turned.
    fn switched(&mut self) {
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.no_peer_faults();
        let (orders, plan) = (self.merged.orders, &self.run.scenario.plan);
        let planned = plan.trading().total_orders();
        let ended = orders.returned + orders.rejected + orders.cancelled;
        self.must(orders.sent == planned && ended == planned, || {
            format!("{planned} orders planned, {} sent, {ended} returned, refused or cancelled", orders.sent)
        });
        let undone = self.merged.kills.iter().filter(|kill| kill.done.is_none()).count();
        self.must(undone == 0, || format!("{undone} kills were not confirmed"));
    }

    /// Strategies died and the run went on.
    fn deaths(&mut self) {
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.survivors_are_whole();
        self.must(self.merged.lost_of_survivors == 0, || "a survivor has lost orders".into());
        self.repaired();
        let restart = self.run.scenario.plan.on_death == OnDeath::Restart;
        for incident in &self.run.record.incidents {
            let (strategy, epoch) = (incident.strategy, incident.epoch);
            self.must(incident.quarantined.is_none(), || {
                format!("strategy {strategy} died of a fault, and was quarantined: {}", incident.cause)
            });
            let next = self
                .run
                .record
                .incidents
                .iter()
                .any(|other| other.strategy == strategy && other.epoch == epoch + 1);
            self.must(!restart || incident.restarted_ns.is_some() || next, || {
                format!("strategy {strategy} epoch {epoch} was not started again")
            });
        }
        let lethal = self.run.struck.len();
        self.must(lethal == 0 || !self.run.record.incidents.is_empty(), || {
            format!("{lethal} faults struck and nobody noticed")
        });
    }

    /// The engine and exchanges died, and perhaps strategies.
    fn comebacks(&mut self) {
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.must(self.merged.lost_of_survivors == 0, || "a survivor has lost orders".into());
        self.repaired();
        if self.run.record.outcome == RunOutcome::Complete {
            self.broken.extend(differences(self.run, self.merged));
        }
    }

    /// Every incident came to its end, and each incarnation lost its unfinished order at most.
    fn repaired(&mut self) {
        for (incident, losses) in self.run.record.incidents.iter().zip(&self.merged.losses) {
            let at_the_end = incident.cause.starts_with("exited abnormally");
            self.must(incident.repaired_ns.is_some() || at_the_end, || {
                format!("strategy {} epoch {} was never repaired", incident.strategy, incident.epoch)
            });
            self.must(losses.lost <= 1 || incident.quarantined.is_some(), || {
                format!("strategy {} epoch {} lost {} orders", incident.strategy, incident.epoch, losses.lost)
            });
        }
    }

    /// The run ends with the first death.
    fn stopped(&mut self) {
        let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
        let struck = !self.run.struck.is_empty();
        self.must(!failed || struck, || format!("nothing struck, and {:?}", self.run.record.outcome));
        self.named();
    }

    /// Who ended the run is a culprit.
    fn named(&mut self) {
        if let RunOutcome::Failed { process, .. } = &self.run.record.outcome {
            let names: Vec<String> =
                self.run.scenario.culprits.iter().map(|index| Role::Strategy(*index).to_string()).collect();
            self.must(names.contains(process), || format!("{process} is named for what {names:?} did"));
        }
        self.valid();
    }

    /// Whether each strategy has a ring of its own, so that whatever it does there is its own.
    fn is_owned(&self) -> bool {
        self.run.scenario.plan.technique.record().apart
            && self.run.scenario.plan.isolation != Isolation::Thread
    }

    fn assault(&mut self, kind: FaultKind, contained: bool) {
        let own = self.is_owned();
        if !contained {
            // Who is quarantined ends the run, under its own name where its memory is its own.
            // Whose orders get lost is waited for, until the engine is said to have nothing for it.
            if own && !matches!(kind, FaultKind::Lose | FaultKind::Hold) || !own && kind == FaultKind::Hold {
                self.named();
            }
            return;
        }
        match kind {
            // Who scribbles over what all share can damage everybody: the run must end, and nobody
            // else be punished. Who floods that can hold everybody up for as long as venues keep
            // what it sent.
            FaultKind::Scribble | FaultKind::Flood if !own => return,
            // Nobody makes up for what is lost on the way: who waits for it is waited for in vain.
            // Nor does anybody for what stays in a ring of its own.
            FaultKind::Lose | FaultKind::Hold if own || kind == FaultKind::Lose => {
                let waited_in_vain = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
                self.must(waited_in_vain || self.merged.violations.is_empty(), || "lost and not said".into());
                return self.survivors_are_whole();
            }
            _ => {}
        }
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.survivors_are_whole();
        self.repaired();
        // A flood that comes when its strategy has ended is none.
        let found = !self.run.record.incidents.is_empty();
        self.must(self.run.struck.is_empty() || found, || format!("{kind} was not found"));
        let incident = self.run.record.incidents.first();
        let forged = incident.and_then(|incident| incident.quarantined);
        let wanted = match kind {
            FaultKind::Forge => Some(ProtocolViolation::ForgedStatus),
            FaultKind::Hold => Some(ProtocolViolation::WithheldPlace),
            _ => forged,
        };
        self.must(!found || forged == wanted, || format!("{kind} was found as {forged:?}"));
    }

    fn hostile(&mut self, attack: Attack, contained: bool) {
        if self.run.tampered == 0 {
            return self.in_order(&RunOutcome::Complete);
        }
        if !contained {
            let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
            let silent = attack == Attack::UnknownVenue;
            self.must(failed || silent || !self.is_owned(), || format!("{} was not found", attack.name()));
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
            return self.must(seen, || format!("{} left no trace", attack.name()));
        }
        self.ended(&RunOutcome::Complete);
        self.valid();
        self.repaired();
        let why = match attack {
            Attack::Garbage => Some(ProtocolViolation::Garbage),
            Attack::ForeignId => Some(ProtocolViolation::ForeignId),
            Attack::WrongEpoch => Some(ProtocolViolation::WrongEpoch),
            Attack::Repeat | Attack::Gap => Some(ProtocolViolation::OutOfSequence),
            // A few are a mistake; they are refused.
            Attack::UnknownVenue => None,
        };
        let found = self.run.record.incidents.first().and_then(|incident| incident.quarantined);
        self.must(why.is_none() || found == why, || format!("{why:?} was found as {found:?}"));
    }
}
