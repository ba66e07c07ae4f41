//! Checks the logs and positions of a simulated run against the invariants that hold whatever
//! faults occur. The merge determines the outcome of every order; this module defines which
//! deviations a fault justifies.
//!
//! | event | the run | survivors | culprits |
//! |---|---|---|---|
//! | nothing | complete, valid | every order returned | |
//! | kill switches, venue faults | complete, valid, confirmed | every order has its end | |
//! | Ctrl-C | interrupted, valid | every order sent returned | |
//! | deaths, hangs | continues, valid | every order returned | an incident, repaired |
//! | ends, additions by operators | continues, valid | every order returned | performed |
//! | engine, exchanges die | complete, valid | every sent order answered exactly once | restarted |
//! | attack in own memory | continues, valid | every order returned | an incident |
//! | a shared slot never written | continues, valid | every order returned | quarantined |
//! | events in the surroundings | see [`super::surroundings`] | nobody innocent suffers | |
//! | attack in shared memory | may fail | lose nothing to a forged id | no innocent suffers |

mod surroundings;

use super::Simulated;
use super::hostile::Attack;
use super::recovery::differences;
use super::runtime::ConfirmedChange;
use super::scenario::ScenarioKind;
use merge::{MergedRun, OrderEnd, Violation, ViolationKind};
use protocol::commands::Command;
use protocol::index::StrategyIndex;
use protocol::labels::PROTOCOL_ERRORS;
use protocol::plan::{FaultKind, Isolation, OnDeath, Role};
use protocol::supervision::ProtocolViolation;
use record::run::{EndByOperator, Incident, RunOutcome};

/// Checks a simulated run and returns every violated invariant.
pub(super) fn judge(run: &Simulated, merged: &MergedRun) -> Vec<String> {
    let mut judge = Judge { run, merged, broken: Vec::new() };
    judge.check_conservation();
    judge.check_innocents();
    let continues_after_death = run.scenario.plan.on_death != OnDeath::Stop;
    if judge.check_surroundings() {
        return judge.broken;
    }
    match run.scenario.kind {
        ScenarioKind::Peace => judge.check_normal_end(&RunOutcome::Complete),
        ScenarioKind::Switched => judge.check_switched(),
        ScenarioKind::Interrupted(_) => judge.check_interrupted(),
        ScenarioKind::Recovery => judge.check_recovery(),
        ScenarioKind::Deaths if continues_after_death => judge.check_deaths(),
        ScenarioKind::Deaths => judge.check_stopped(),
        ScenarioKind::Assault(kind) => judge.check_assault(kind, continues_after_death),
        ScenarioKind::Hostile(attack, _) => judge.check_hostile(attack, continues_after_death),
    }
    judge.broken
}

struct Judge<'a> {
    run: &'a Simulated,
    merged: &'a MergedRun,
    broken: Vec<String>,
}

impl Judge<'_> {
    fn require(&mut self, condition: bool, message: impl FnOnce() -> String) {
        if !condition {
            self.broken.push(message());
        }
    }

    /// Sent orders are returned, rejected, cancelled, orphaned or lost: once each.
    fn check_conservation(&mut self) {
        let orders = self.merged.orders;
        let accounted = orders.returned + orders.rejected + orders.cancelled + orders.orphaned + orders.lost;
        self.require(orders.sent == accounted, || {
            format!("{} orders sent, {accounted} accounted for", orders.sent)
        });
        let normal_exits = self.run.record.exits.iter().filter(|exit| exit.how == "exit 0").count();
        let engine_exited_normally = self.run.record.exits.last().is_some_and(|exit| exit.how == "exit 0");
        let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
        self.require(engine_exited_normally || failed, || {
            format!("the engine exited abnormally; {normal_exits} processes exited normally")
        });
    }

    /// No incident concerns an innocent strategy.
    fn check_innocents(&mut self) {
        let scenario = &self.run.scenario;
        for incident in &self.run.record.incidents {
            self.require(scenario.is_culprit(incident.strategy), || {
                format!("strategy {} is innocent: {}", incident.strategy, incident.cause)
            });
        }
    }

    /// The merge distrusts only logs of culprits that scribble or forge.
    fn check_logs_trusted(&mut self) {
        let plan = &self.run.scenario.plan;
        let can_forge_logs =
            matches!(self.run.scenario.kind, ScenarioKind::Assault(_) | ScenarioKind::Hostile(..));
        let is_forger = |role: &Role| matches!(role, Role::Strategy(index) if can_forge_logs && self.run.scenario.culprits.contains(index));
        let incidents = &self.run.record.incidents;
        let is_abandoned = |role: &Role| {
            let is_its = |it: &Incident| it.abandoned && Role::Strategy(it.strategy) == *role;
            incidents.iter().any(is_its)
        };
        let distrusted: Vec<&str> = plan
            .threads
            .iter()
            .zip(&self.merged.threads)
            .filter(|(thread, log)| {
                log.is_untrusted && !thread.roles.iter().any(|role| is_forger(role) || is_abandoned(role))
            })
            .map(|(thread, _)| thread.name.as_str())
            .collect();
        self.require(distrusted.is_empty(), || {
            format!("the log of {} is not believed", distrusted.join(", "))
        });
    }

    fn check_valid(&mut self) {
        let violations = &self.merged.violations;
        // Tampering with pushed messages cannot be distinguished from a broken ring.
        let is_hostile = matches!(self.run.scenario.kind, ScenarioKind::Hostile(..)) && self.run.tampered > 0;
        let culprits: Vec<String> =
            self.run.scenario.culprits.iter().map(|index| Role::Strategy(*index).to_string()).collect();
        // The same holds for a strategy that sends invalid messages.
        let names_culprit = |violation: &&Violation| {
            culprits.iter().any(|name| match violation.kind {
                ViolationKind::Checksum => violation.first.starts_with(&format!("submit of {name}:")),
                ViolationKind::PeerFaults => violation.first.starts_with(&format!("{name} was quarantined")),
                _ => false,
            })
        };
        let is_expected = |violation: &&Violation| is_hostile && names_culprit(violation);
        let unexpected: Vec<String> = violations
            .iter()
            .filter(|violation| !is_expected(violation))
            .map(|violation| format!("{:?} ×{}: {}", violation.kind, violation.count, violation.first))
            .collect();
        self.require(unexpected.is_empty(), || format!("not valid: {}", unexpected.join("; ")));
        self.check_logs_trusted();
    }

    fn check_outcome(&mut self, outcome: &RunOutcome) {
        let actual = &self.run.record.outcome;
        self.require(actual == outcome, || format!("ended {actual:?}, not {outcome:?}"));
    }

    /// Every planned order of the selected strategies was returned.
    fn check_returned(&mut self, is_checked: impl Fn(StrategyIndex) -> bool) {
        let plan = &self.run.scenario.plan;
        let mut returned = vec![0; plan.trading().orders.len()];
        for (id, row) in self.merged.orders() {
            if let Some(count) = returned.get_mut(id.strategy().as_usize())
                && OrderEnd::from_points(row.points(), false) == OrderEnd::Returned
            {
                *count += 1;
            }
        }
        for (strategy, (returned, planned)) in
            StrategyIndex::first(u16::MAX).zip(returned.iter().zip(&plan.trading().orders))
        {
            self.require(!is_checked(strategy) || returned == planned, || {
                format!("strategy {strategy} has {returned} of its {planned} orders back")
            });
        }
    }

    fn check_survivors_returned(&mut self) {
        // A spare sends nothing until it is added.
        let (scenario, trading) = (&self.run.scenario, self.run.scenario.plan.trading());
        self.check_returned(|strategy| !scenario.is_culprit(strategy) && !trading.is_spare(strategy));
    }

    /// No peer fault was counted.
    fn check_no_peer_faults(&mut self) {
        for (log, thread) in self.merged.threads.iter().zip(&self.run.record.plan.threads) {
            let faults = log.counters.total(&thread.roles, PROTOCOL_ERRORS);
            self.require(faults == 0, || format!("{} counted {faults} peer faults", log.name));
        }
    }

    fn check_normal_end(&mut self, outcome: &RunOutcome) {
        self.check_outcome(outcome);
        self.check_valid();
        self.check_no_peer_faults();
        if *outcome == RunOutcome::Complete {
            self.check_returned(|_| true);
        }
    }

    fn check_interrupted(&mut self) {
        // The run may have completed before the interruption.
        let outcome = match self.run.record.outcome {
            RunOutcome::Complete => RunOutcome::Complete,
            _ => RunOutcome::Interrupted,
        };
        self.check_normal_end(&outcome);
        let orders = self.merged.orders;
        self.require(orders.sent == orders.returned, || {
            format!("{} orders sent before the end, {} back", orders.sent, orders.returned)
        });
    }

    /// Checks a run with kill switches.
    fn check_switched(&mut self) {
        self.check_outcome(&RunOutcome::Complete);
        self.check_valid();
        self.check_no_peer_faults();
        let (orders, plan) = (self.merged.orders, &self.run.scenario.plan);
        let planned = plan.trading().total_orders();
        let ended = orders.returned + orders.rejected + orders.cancelled;
        self.require(orders.sent == planned && ended == planned, || {
            format!("{planned} orders planned, {} sent, {ended} returned, refused or cancelled", orders.sent)
        });
        let unconfirmed = self.merged.kills.iter().filter(|kill| kill.done.is_none()).count();
        self.require(unconfirmed == 0, || format!("{unconfirmed} kills were not confirmed"));
    }

    /// Checks a run in which strategies died and the run continued.
    fn check_deaths(&mut self) {
        self.check_outcome(&RunOutcome::Complete);
        self.check_valid();
        self.check_survivors_returned();
        self.require(self.merged.lost_of_survivors == 0, || "a survivor has lost orders".into());
        self.check_repaired();
        self.check_groups();
        self.check_changes_by_operators();
        let must_restart = self.run.scenario.plan.on_death == OnDeath::Restart;
        for incident in &self.run.record.incidents {
            let (strategy, epoch) = (incident.strategy, incident.epoch);
            self.require(incident.quarantined.is_none(), || {
                format!("strategy {strategy} died of a fault, and was quarantined: {}", incident.cause)
            });
            let record = &self.run.record;
            let has_successor =
                record.incidents.iter().any(|it| (it.strategy, it.epoch) == (strategy, epoch + 1))
                    || record.additions.iter().any(|it| (it.strategy, it.epoch) == (strategy, epoch + 1));
            // One that had finished when it died has nothing left to do.
            let had_finished = self.run.seen.killed_when_done.contains(&(strategy, epoch));
            // A thread that may still run has no successor.
            let must_restart = match incident.by_operator {
                Some(EndByOperator::Retired) => false,
                Some(EndByOperator::Replaced(_)) => true,
                None => must_restart && !had_finished,
            };
            let can_restart = must_restart && !incident.abandoned && !self.may_stay_down(incident);
            self.require(!can_restart || incident.restarted_ns.is_some() || has_successor, || {
                format!("strategy {strategy} epoch {epoch} was not started again")
            });
        }
        let fired_count = self.run.fired_faults.len();
        self.require(fired_count == 0 || !self.run.record.incidents.is_empty(), || {
            format!("{fired_count} faults were injected and nobody noticed")
        });
    }

    /// The strategies of a group died together, each in the same epoch, and were restarted
    /// together.
    fn check_groups(&mut self) {
        let incidents = &self.run.record.incidents;
        for incident in incidents {
            let named = self.run.scenario.plan.group_of(incident.strategy);
            self.require(incident.group == named, || {
                format!(
                    "strategy {} died with {:?}, and its group is {named:?}",
                    incident.strategy, incident.group
                )
            });
            for other in named {
                let is_its = |it: &&Incident| (it.strategy, it.epoch) == (other, incident.epoch);
                let pid = incidents.iter().find(is_its).map(|it| it.pid);
                self.require(pid == Some(incident.pid), || {
                    format!(
                        "strategy {} epoch {} died, and strategy {other} of its group did not share that: {pid:?}",
                        incident.strategy, incident.epoch
                    )
                });
                // By their last incarnations: one that dies again soon may not have run.
                let last = [incident.strategy, other].map(|index| self.run.epochs[index.as_usize()]);
                self.require(last[0] == last[1], || {
                    format!(
                        "strategy {} has epoch {}, and strategy {other} of its group {}",
                        incident.strategy, last[0], last[1]
                    )
                });
            }
        }
    }

    /// Checks a run in which the engine and exchanges died, and perhaps strategies.
    fn check_recovery(&mut self) {
        let is_late = match &self.run.record.outcome {
            RunOutcome::Failed { process, what, .. } => {
                self.run.seen.late_deaths.contains(process) && what.starts_with("exited abnormally")
            }
            _ => false,
        };
        if !is_late {
            self.check_outcome(&RunOutcome::Complete);
        }
        self.check_valid();
        self.require(self.merged.lost_of_survivors == 0, || "a survivor has lost orders".into());
        self.check_repaired();
        self.check_changes_by_operators();
        if self.run.record.outcome == RunOutcome::Complete {
            self.broken.extend(differences(self.run, self.merged));
        }
    }

    /// Operators ended and added only the strategies that they named, each with a successor or
    /// without one as they wanted it, and what the engine confirmed was performed.
    fn check_changes_by_operators(&mut self) {
        let run = self.run;
        let commands = run.scenario.operator_commands().filter_map(|command| match command {
            Command::EndStrategy { strategy, is_replaced, .. } => Some((strategy, is_replaced)),
            // In the place of one that would be restarted it is a replacement.
            Command::AddStrategy { strategy } => Some((strategy, true)),
            _ => None,
        });
        let commands: Vec<(StrategyIndex, bool)> = commands.collect();
        for incident in &run.record.incidents {
            let Some(end) = &incident.by_operator else { continue };
            let is_replaced = matches!(end, EndByOperator::Replaced(_));
            self.require(commands.contains(&(incident.strategy, is_replaced)), || {
                format!("strategy {} was {}: nobody has asked for that", incident.strategy, end.describe())
            });
        }
        let late = &run.seen.late_starts;
        self.require(late.is_empty(), || {
            format!("strategies {late:?} were started after the end of trading")
        });
        let changes = run.confirmed.iter().filter(|change| change.must_act);
        for ConfirmedChange { strategy, epoch, is_addition, .. } in changes.copied() {
            let has_ended =
                || run.record.incidents.iter().any(|it| (it.strategy, it.epoch) == (strategy, epoch));
            let is_followed = || run.epochs[strategy.as_usize()] > epoch;
            self.require(if is_addition { is_followed() } else { has_ended() }, || {
                let what = if is_addition { "followed by another one" } else { "ended" };
                format!("strategy {strategy} epoch {epoch} was not {what}, which the engine had confirmed")
            });
        }
        let is_added = |strategy| run.confirmed.iter().any(|it| it.is_addition && it.strategy == strategy);
        for spare in run.scenario.plan.trading().spares().filter(|spare| !is_added(*spare)) {
            let name = Role::Strategy(spare).to_string();
            let is_started = run.record.exits.iter().any(|exit| exit.process == name);
            let is_untouched = !is_started && run.epochs[spare.as_usize()] == 0;
            self.require(is_untouched, || format!("{name} is spare and was started: nobody has added it"));
        }
        for addition in &run.record.additions {
            self.require(is_added(addition.strategy), || {
                format!("strategy {} was added: nobody has asked for that", addition.strategy)
            });
        }
    }

    /// Every incident was completed, and each incarnation lost at most its unfinished order.
    fn check_repaired(&mut self) {
        for (incident, losses) in self.run.record.incidents.iter().zip(&self.merged.losses) {
            let ended_with_run = incident.cause.starts_with("exited abnormally");
            self.require(incident.repaired_ns.is_some() || ended_with_run, || {
                format!("strategy {} epoch {} was never repaired", incident.strategy, incident.epoch)
            });
            self.require(losses.lost <= 1 || incident.quarantined.is_some(), || {
                format!("strategy {} epoch {} lost {} orders", incident.strategy, incident.epoch, losses.lost)
            });
        }
    }

    /// Checks a run that ends with the first death.
    fn check_stopped(&mut self) {
        let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
        let has_fired = !self.run.fired_faults.is_empty();
        self.require(!failed || has_fired, || {
            format!("no fault was injected, and {:?}", self.run.record.outcome)
        });
        self.check_named_process();
    }

    /// The process named for the failure is a culprit.
    fn check_named_process(&mut self) {
        if let RunOutcome::Failed { process, .. } = &self.run.record.outcome {
            let plan = &self.run.scenario.plan;
            let culprits = self.run.scenario.culprits.iter().map(|index| Role::Strategy(*index));
            let processes = culprits.filter_map(|role| plan.process_of(role));
            let names: Vec<String> = processes.map(|process| plan.processes[process].name.clone()).collect();
            self.require(names.contains(process), || format!("{process} is named for what {names:?} did"));
        }
        self.check_valid();
    }

    /// Returns `true` if each strategy has its own ring, so that its damage stays there.
    fn is_owned(&self) -> bool {
        self.run.scenario.plan.technique.info().apart
            && !self.run.scenario.plan.isolation.has(Isolation::Thread)
    }

    fn check_assault(&mut self, kind: FaultKind, continues_after_death: bool) {
        let is_owned = self.is_owned();
        if !continues_after_death {
            // A quarantine ends the run, in the culprit's name if its memory is its own. Lost
            // orders are waited for until the stall is detected.
            if is_owned && !matches!(kind, FaultKind::Lose | FaultKind::HoldClaim)
                || !is_owned && kind == FaultKind::HoldClaim
            {
                self.check_named_process();
            }
            return;
        }
        match kind {
            // Scribbling over shared memory can damage every strategy: the run must end, and no
            // innocent may be quarantined. A flood of a shared ring can block the others for as
            // long as venues hold its orders.
            FaultKind::Scribble | FaultKind::Flood if !is_owned => return,
            // Lost messages are not replaced: a strategy that waits for them stalls the run. So do
            // messages that stay in a strategy's own ring.
            FaultKind::Lose | FaultKind::HoldClaim if is_owned || kind == FaultKind::Lose => {
                let has_stalled = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
                self.require(has_stalled || self.merged.violations.is_empty(), || "lost and not said".into());
                return self.check_survivors_returned();
            }
            _ => {}
        }
        self.check_outcome(&RunOutcome::Complete);
        self.check_valid();
        self.check_survivors_returned();
        self.check_repaired();
        // A flood after its strategy has ended has no effect.
        let has_incident = !self.run.record.incidents.is_empty();
        self.require(self.run.fired_faults.is_empty() || has_incident, || format!("{kind} was not found"));
        let incident = self.run.record.incidents.first();
        let found_violation = incident.and_then(|incident| incident.quarantined);
        let expected = match kind {
            FaultKind::Forge => Some(ProtocolViolation::ForgedStatus),
            FaultKind::HoldClaim => Some(ProtocolViolation::UnwrittenClaim),
            _ => found_violation,
        };
        self.require(!has_incident || found_violation == expected, || {
            format!("{kind} was found as {found_violation:?}")
        });
    }

    fn check_hostile(&mut self, attack: Attack, continues_after_death: bool) {
        if self.run.tampered == 0 {
            return self.check_normal_end(&RunOutcome::Complete);
        }
        if !continues_after_death {
            let failed = matches!(self.run.record.outcome, RunOutcome::Failed { .. });
            let leaves_no_trace = attack == Attack::UnknownVenue;
            self.require(failed || leaves_no_trace || !self.is_owned(), || {
                format!("{} was not found", attack.name())
            });
            return;
        }
        if attack != Attack::ForeignId || self.is_owned() {
            self.check_survivors_returned();
        }
        if !self.is_owned() {
            let threads = self.merged.threads.iter().zip(&self.run.record.plan.threads);
            let errors = threads.map(|(log, thread)| log.counters.total(&thread.roles, PROTOCOL_ERRORS));
            let engine_errors = errors.fold(0, u64::saturating_add);
            let has_trace = engine_errors > 0
                || self.merged.orders.rejected > 0
                || !self.run.record.incidents.is_empty()
                || !self.merged.violations.is_empty();
            return self.require(has_trace, || format!("{} left no trace", attack.name()));
        }
        self.check_outcome(&RunOutcome::Complete);
        self.check_valid();
        self.check_repaired();
        let expected = match attack {
            Attack::Garbage => Some(ProtocolViolation::Garbage),
            Attack::ForeignId => Some(ProtocolViolation::ForeignId),
            Attack::WrongEpoch => Some(ProtocolViolation::WrongEpoch),
            Attack::Repeat | Attack::Gap => Some(ProtocolViolation::OutOfSequence),
            // A few are treated as mistakes and rejected.
            Attack::UnknownVenue => None,
        };
        let found_violation = self.run.record.incidents.first().and_then(|incident| incident.quarantined);
        self.require(expected.is_none() || found_violation == expected, || {
            format!("{expected:?} was found as {found_violation:?}")
        });
    }
}
