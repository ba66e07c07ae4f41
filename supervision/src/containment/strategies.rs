//! Strategies that die, hang or violate the protocol: how that is detected, recorded and repaired.

use super::supervised::{SupervisedProcess, SupervisionStage};
use super::{Containment, HEADERS_PER_STEP};
use crate::actions::{Action, Actions};
use crate::observations::{Observations, OperatorEnd, ProcessObservation};
use crate::restart_policy::{IncarnationEnd, MAX_RESTARTS};
use crate::stuck::{Liveness, LivenessFault, blocked_slot};
use protocol::index::StrategyIndex;
use protocol::plan::{OnDeath, Role};
use protocol::status::ThreadState;
use protocol::supervision::ProtocolViolation;
use protocol::wire::MAX_EPOCH;
use record::run::{EndByOperator, Incident, StayedDown};
use std::time::Duration;

/// Time from SIGKILL from which on it is recorded why a process has not ended.
pub(super) const SLOW_EXIT: Duration = Duration::from_secs(1);

/// Why a strategy is to be killed.
struct StrategyFault {
    cause: String,
    violation: Option<ProtocolViolation>,
    /// When the engine detected it, in ticks; `None`: it was detected just now.
    detected: Option<u64>,
    /// The strategy hangs, does not exit, or forges its status.
    is_hang: bool,
}

impl Containment<'_> {
    /// Returns `true` if the run continues when a strategy dies.
    pub fn contains_strategies(&self) -> bool {
        self.processes.first().is_some_and(SupervisedProcess::is_strategy)
    }

    /// Returns the place of a strategy among the supervised processes; `None` where no death is
    /// contained.
    pub(super) fn place_of(&self, strategy: StrategyIndex) -> Option<usize> {
        // Strategies come first and in order.
        let places = self.processes.len().min(strategy.as_usize() + 1);
        self.processes[..places].iter().rposition(|case| case.has_role(Role::Strategy(strategy)))
    }

    fn strategy(&self, strategy: StrategyIndex) -> Option<&SupervisedProcess> {
        self.place_of(strategy).map(|place| &self.processes[place])
    }

    /// Returns `true` if the run survives this strategy's death, unless its process has exited
    /// normally and thus left the engine no memory to repair.
    pub fn contains(&self, strategy: StrategyIndex, observed: &Observations) -> bool {
        self.strategy(strategy).is_some_and(|case| {
            case.stage != SupervisionStage::Running || observed.exited_normally(case.process) != Some(true)
        })
    }

    /// Returns `true` unless the strategy is down, its death is being handled, or its next
    /// incarnation is starting. A strategy that has finished normally counts as running.
    pub fn is_running(&self, strategy: StrategyIndex) -> bool {
        self.strategy(strategy).is_none_or(|case| case.stage == SupervisionStage::Running)
    }

    /// Returns `true` if the run must wait for a strategy: it has not reported done, or its death
    /// is not repaired. A thread that ends alone is done once it is gone: the process could not end
    /// with it.
    pub fn awaits(&self, strategy: StrategyIndex, observed: &Observations) -> bool {
        let case = self.strategy(strategy);
        let is_alone = case.is_some_and(|case| case.is_thread);
        let is_done = |thread| {
            observed.state(thread) == ThreadState::Done && (!is_alone || observed.threads[thread].is_gone)
        };
        match case.map(|case| case.stage) {
            Some(SupervisionStage::Running) | None => {
                !self.plan.thread_of(Role::Strategy(strategy)).is_some_and(is_done)
            }
            Some(SupervisionStage::Down) => false,
            Some(_) => true,
        }
    }

    /// Returns the role to blame and the reason if a violation ends the run; `None` otherwise. Such
    /// a violation is damage to memory that all strategies write, or comes from a strategy whose
    /// death is not contained.
    pub fn violation(&self, liveness: &Liveness, observed: &Observations) -> Option<(Role, String)> {
        if let Some(what) = observed.damage {
            let what = format!(
                "{what}: a strategy has damaged memory that all of them write ({}), so trading cannot continue; with \
                 spsc-mux each has its own",
                self.plan.technique
            );
            return Some((Role::Orchestrator, what));
        }
        let is_contained = |strategy| self.contains(strategy, observed);
        if let Some(found) = blocked_slot(observed.blocked_claim, liveness, is_contained) {
            return Some(found);
        }
        // It is contained, unless no death is.
        let quarantined = StrategyIndex::first(u16::MAX)
            .zip(&observed.strategies)
            .filter(|(index, _)| self.strategy(*index).is_none());
        let (index, why) =
            quarantined.into_iter().find_map(|(index, of)| Some((index, of.repair.quarantined?.1)))?;
        Some((Role::Strategy(index), format!("strategy {index} was quarantined: {why}")))
    }

    /// Returns the number of orders that all incarnations of strategies have sent, and the number
    /// of open orders of the running ones.
    pub fn sent_and_open(&self, observed: &Observations) -> (u64, u64) {
        let (mut sent, mut open) = (self.past_orders.0, 0);
        for strategy in StrategyIndex::first(self.plan.trading().strategies) {
            let (mine, settled) = self.of_living(strategy, observed);
            sent += mine;
            open += mine.saturating_sub(settled);
        }
        (sent, open)
    }

    /// Returns the number of orders that all incarnations of a strategy have sent.
    pub fn sent_by(&self, strategy: StrategyIndex, observed: &Observations) -> u64 {
        let past_sent = self.strategy(strategy).map_or(0, |case| case.past_sent);
        past_sent.saturating_add(self.of_living(strategy, observed).0)
    }

    /// Returns the orders that a strategy's running incarnation has sent, and how many of them were
    /// answered.
    fn of_living(&self, strategy: StrategyIndex, observed: &Observations) -> (u64, u64) {
        use SupervisionStage::{Joining, Running, Starting};
        let has_counts = |case: &SupervisedProcess| {
            matches!(case.stage, Running | Starting(_) | Joining(_)) && !case.is_renewed
        };
        let lives = self.strategy(strategy).is_none_or(has_counts);
        if lives { self.sent_and_settled(strategy, observed) } else { (0, 0) }
    }

    /// Returns the orders that a strategy has sent in its incarnation, and how many were answered.
    /// The counters are the strategy's own, so they are only reported, and capped at the planned
    /// orders.
    fn sent_and_settled(&self, strategy: StrategyIndex, observed: &Observations) -> (u64, u64) {
        let orders = self.plan.trading().orders[strategy.as_usize()];
        let own = &observed.strategies[strategy.as_usize()];
        (own.sent.min(orders), own.returned.min(orders) + own.rejected.min(orders))
    }

    /// Records as incidents the strategies that exited abnormally at the end of the run, or have
    /// overwritten a segment header.
    pub fn record_end(&mut self, observed: &Observations, now: u64) {
        for strategy in StrategyIndex::first(self.plan.trading().strategies) {
            let Some(place) = self.place_of(strategy) else { continue };
            let case = &self.processes[place];
            if case.stage != SupervisionStage::Running || case.is_thread {
                continue;
            }
            let process = case.process;
            let forgery = observed.strategies[strategy.as_usize()].forged_header.clone();
            let in_order = observed.exited_normally(process) == Some(true);
            if !in_order || forgery.is_some() {
                let mut ending = forgery.clone().unwrap_or_default();
                if !in_order {
                    let message = format!("exited abnormally: {}", observed.exit_text(process));
                    ending = forgery.iter().fold(message, |message, forgery| format!("{message}; {forgery}"));
                }
                let pid = observed.processes[process].pid;
                let incident = self.record_incident(place, pid, ending, observed, now);
                self.incidents[incident].quarantined = forgery.map(|_| ProtocolViolation::ForgedHeader);
                self.processes[place].stage = SupervisionStage::Down;
            }
        }
    }

    /// Kills the strategies that operators have ended: the engine has confirmed that they have no
    /// open order, and they have read their reports. A command concerns the incarnation that ran
    /// when it was given. If that has died by itself, the command decides what follows.
    pub(super) fn end_by_operators(&mut self, observed: &Observations, now: u64, out: &mut dyn Actions) {
        for OperatorEnd { number, ticks, strategy, successor } in &observed.ended_by_operators {
            if self.handled_commands.contains(number) {
                continue;
            }
            let Some(place) = self.place_of(*strategy) else { continue };
            let case = &self.processes[place];
            let is_up = matches!(
                case.stage,
                SupervisionStage::Running | SupervisionStage::Starting(_) | SupervisionStage::Joining(_)
            );
            if is_up && (observed.processes[case.process].exit.is_some() || case.is_done(observed)) {
                // It has died in this step: the command decides what follows, in the next one. Or
                // it has finished: nothing follows, unless it does not exit and is killed for that.
                continue;
            }
            let is_meant = !case.is_thread && case.group.is_empty() && *ticks >= case.started_ticks;
            if is_meant && is_up && !self.has_read_reports(place, observed, now) {
                continue;
            }
            self.handled_commands.insert(*number);
            if !is_meant {
                continue;
            }
            let case = &self.processes[place];
            let end = successor.clone().map_or(EndByOperator::Retired, EndByOperator::Replaced);
            let process = &observed.processes[case.process];
            match case.stage {
                SupervisionStage::Running | SupervisionStage::Starting(_) | SupervisionStage::Joining(_) => {
                    let incident = self.record_incident(place, process.pid, end.describe(), observed, now);
                    let case = &mut self.processes[place];
                    case.stage = SupervisionStage::Killed(incident);
                    case.dying = None;
                    case.by_operator = Some(end);
                    out.perform(Action::Kill(case.process));
                }
                SupervisionStage::Down => {}
                SupervisionStage::Killed(_) | SupervisionStage::Fenced(_) => {
                    self.processes[place].by_operator = Some(end);
                }
                SupervisionStage::Paused(death, _) => {
                    match &end {
                        EndByOperator::Retired => self.processes[place].stage = SupervisionStage::Down,
                        EndByOperator::Replaced(kind) => self.set_kind(place, kind, out),
                    }
                    self.incidents[death].by_operator = Some(end);
                }
            }
        }
    }

    /// Returns `true` if a strategy that an operator ends has read the report of each order that it
    /// has sent, by its own counters, or has had its time for that.
    fn has_read_reports(&mut self, place: usize, observed: &Observations, now: u64) -> bool {
        let since = *self.processes[place].asked_to_end.get_or_insert(now);
        let (sent, settled) = self.sent_and_settled(self.processes[place].strategy(), observed);
        let waited_ns = self.ns_since_start(now).saturating_sub(self.ns_since_start(since));
        sent == settled || Duration::from_nanos(waited_ns) >= self.read_limit
    }

    /// Kills a strategy that is at fault, and records when a restarted one runs. Returns `true` if
    /// there was something to do.
    pub(super) fn watch_strategy(
        &mut self,
        place: usize,
        observed: &Observations,
        liveness: &Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) -> bool {
        if observed.has_launcher_lost_memory {
            // The memory may have been read after it was taken away: the run ends, and no strategy
            // is blamed.
            return false;
        }
        self.note_gone_thread(place, observed, now);
        let case = &self.processes[place];
        let (stage, process) = (case.stage, case.process);
        let trouble = self.detect_fault(case, case.strategy(), observed, liveness);
        if let Some(StrategyFault { cause, violation, detected, is_hang }) = trouble {
            let ProcessObservation { pid, exit, failed_start, .. } = &observed.processes[process];
            let pid = if failed_start.is_some() { 0 } else { *pid };
            let incident = self.record_incident(place, pid, cause, observed, detected.unwrap_or(now));
            self.incidents[incident].quarantined = violation;
            self.incidents[incident].silence = self.processes[place]
                .threads
                .first()
                .and_then(|thread| liveness.shortage(*thread))
                .filter(|_| is_hang);
            let case = &mut self.processes[place];
            case.has_hung_at_start = is_hang && stage != SupervisionStage::Running;
            case.stage = SupervisionStage::Killed(incident);
            case.dying = None;
            if exit.is_none() && !case.is_thread {
                out.perform(Action::Kill(process));
            }
            self.take_group(place, incident, observed, detected.unwrap_or(now));
            true
        } else if stage != SupervisionStage::Running
            && case.all_threads_are(observed, |state| state >= ThreadState::Running)
        {
            let now_ns = self.ns_since_start(now);
            match stage {
                SupervisionStage::Joining(addition) => self.additions[addition].running_ns = Some(now_ns),
                SupervisionStage::Starting(incident) => self.incidents[incident].restarted_ns = Some(now_ns),
                _ => {}
            }
            let case = &mut self.processes[place];
            (case.stage, case.running_ns) = (SupervisionStage::Running, now_ns);
            true
        } else {
            false
        }
    }

    /// Returns why a strategy is to be killed.
    fn detect_fault(
        &self,
        case: &SupervisedProcess,
        strategy: StrategyIndex,
        observed: &Observations,
        liveness: &Liveness,
    ) -> Option<StrategyFault> {
        let thread = case.threads[0];
        let process = &observed.processes[case.process];
        let runs = process.exit.is_none();
        if case.is_thread && !runs {
            // All ended with their process, which is named.
            return None;
        }
        let repair = observed.strategies[strategy.as_usize()].repair;
        let quarantined = repair.quarantined.filter(|(epoch, _)| *epoch == case.epoch).map(|(_, why)| why);
        let trouble = |cause, violation| StrategyFault { cause, violation, detected: None, is_hang: false };
        if let Some(error) = &process.failed_start {
            // No process runs in this epoch: the proof of the last one's death still holds.
            return Some(trouble(format!("cannot be started: {error}"), None));
        }
        let ended = if case.is_thread { self.thread_end(case, observed) } else { early_exit(case, observed) };
        if let Some(ending) = ended {
            return Some(trouble(ending, quarantined));
        }
        if let Some(why) = quarantined {
            let detected = Some(repair.quarantined_ticks);
            return Some(StrategyFault { detected, ..trouble(format!("quarantined: {why}"), quarantined) });
        }
        let suspicion = self.liveness_fault(case, liveness);
        match suspicion {
            Some(LivenessFault::Forged(_)) => {
                let why = ProtocolViolation::ForgedStatus;
                let cause = format!("quarantined: {why}: {}", suspicion?);
                return Some(StrategyFault { is_hang: true, ..trouble(cause, Some(why)) });
            }
            // What exited normally neither hangs nor takes too long to exit.
            Some(suspicion) if runs && !(case.is_thread && observed.threads[thread].is_gone) => {
                return Some(StrategyFault { is_hang: true, ..trouble(suspicion.to_string(), None) });
            }
            _ => {}
        }
        let is_blocking = observed.blocked_claim.is_some_and(|at| {
            // A strategy that is also silent hangs, which is found earlier; one that reports done
            // has its own deadline.
            at.announcer == Some(strategy)
                && observed.state(thread) != ThreadState::Done
                && liveness.is_overdue(at.since_ticks)
        });
        if runs && is_blocking {
            let why = ProtocolViolation::UnwrittenClaim;
            let cause = format!(
                "quarantined: {why}: submit ring blocked at a slot that it announces: never written, \
                 while it keeps running"
            );
            return Some(trouble(cause, Some(why)));
        }
        let forgery = if runs && self.was_inspected(strategy) {
            observed.strategies[strategy.as_usize()].forged_header.clone()
        } else {
            None
        };
        forgery.map(|forgery| trouble(forgery, Some(ProtocolViolation::ForgedHeader)))
    }

    fn was_inspected(&self, strategy: StrategyIndex) -> bool {
        let strategies = self.plan.trading().strategies;
        (strategy.0 + strategies - self.first_inspected) % strategies < HEADERS_PER_STEP
    }

    pub(super) fn record_incident(
        &mut self,
        place: usize,
        pid: u32,
        cause: String,
        observed: &Observations,
        detected: u64,
    ) -> usize {
        let detected_ns = self.ns_since_start(detected);
        let strategy = self.processes[place].strategy();
        let (sent, settled) = self.sent_and_settled(strategy, observed);
        let case = &mut self.processes[place];
        case.past_sent += sent;
        let (epoch, fault) = (case.epoch, case.fault.take());
        let is_living = case.stage == SupervisionStage::Running;
        let ran = if is_living { detected_ns.saturating_sub(case.running_ns) } else { 0 };
        let (is_planned, has_traded) = (fault.is_some(), sent + settled > 0);
        case.end = IncarnationEnd { is_planned, has_traded, ran: Duration::from_nanos(ran) };
        case.killed_ticks = detected;
        self.past_orders = (self.past_orders.0 + sent, self.past_orders.1 + settled);
        self.incidents.push(Incident {
            strategy,
            epoch,
            pid,
            cause,
            quarantined: None,
            fault_ns: fault.map(|ticks| self.ns_since_start(ticks)),
            detected_ns,
            fenced_ns: 0,
            repaired_ns: None,
            restarted_ns: None,
            stayed_down: None,
            silence: None,
            slow_exit: None,
            abandoned: false,
            proven_early: false,
            by_operator: None,
            group: self.plan.group_of(strategy),
        });
        self.incidents.len() - 1
    }

    /// Keeps the CPU time of a killed process that has not ended for long, and records in its
    /// incident why.
    pub(super) fn sample_dying(&mut self, place: usize, observed: &Observations, waited_ns: u64) {
        let case = &mut self.processes[place];
        let Some(sample) = observed.processes[case.process].cpu else { return };
        let (first, _) = *case.dying.get_or_insert((sample, sample));
        let SupervisionStage::Killed(death) = case.stage else { return };
        if waited_ns < SLOW_EXIT.as_nanos() as u64 {
            return;
        }
        case.dying = Some((first, sample));
        if case.is_strategy() {
            self.incidents[death].slow_exit = sample.shortage_since(&first);
        }
    }

    /// Adds a forged header to the incident of a dead strategy. It can no longer write: a header
    /// that is intact now was never forged.
    pub(super) fn check_headers_of_dead(
        &mut self,
        strategy: StrategyIndex,
        incident: usize,
        observed: &Observations,
    ) {
        let Incident { cause, quarantined, .. } = &mut self.incidents[incident];
        let forgery = observed.strategies[strategy.as_usize()].forged_header.as_ref();
        if let Some(forgery) = forgery.filter(|_| quarantined.is_none()) {
            *cause = format!("{cause}; {forgery}");
            *quarantined = Some(ProtocolViolation::ForgedHeader);
        }
    }

    /// Records the engine's repair of a dead strategy. Returns `false` if it is not complete.
    pub(super) fn try_record_strategy_repair(
        &mut self,
        place: usize,
        incident: usize,
        observed: &Observations,
    ) -> bool {
        let repair = observed.strategies[self.processes[place].strategy().as_usize()].repair;
        let is_repaired = repair.repaired == Some(self.processes[place].epoch);
        if is_repaired {
            self.incidents[incident].repaired_ns = Some(self.ns_since_start(repair.repaired_ticks));
        }
        is_repaired
    }

    /// Returns the pause before a strategy is restarted, or `None` if it stays down, with a note on
    /// the reason. Quarantined strategies and those that hung before their first duty cycle stay
    /// down. A strategy that had reported done gets no note: nothing is left to do.
    pub(super) fn strategy_pause(
        &mut self,
        place: usize,
        incident: usize,
        observed: &Observations,
        out: &mut dyn Actions,
    ) -> Option<Duration> {
        let state = observed.state(self.processes[place].threads[0]);
        let case = &mut self.processes[place];
        case.stage = SupervisionStage::Down;
        let died = &mut self.incidents[incident];
        let by_operator = case.by_operator.take();
        died.by_operator.clone_from(&by_operator);
        match by_operator {
            Some(EndByOperator::Retired) => return None,
            Some(EndByOperator::Replaced(kind)) if case.epoch < MAX_EPOCH => {
                self.set_kind(place, &kind, out);
                return Some(Duration::ZERO);
            }
            _ if self.plan.on_death != OnDeath::Restart || state == ThreadState::Done => return None,
            _ => {}
        }
        let cause = died.cause.clone();
        let stayed_down = if died.quarantined.is_some() {
            StayedDown { restarts: 0, why: cause }
        } else if case.is_abandoned {
            StayedDown { restarts: 0, why: format!("its thread may still run: {cause}") }
        } else if case.has_hung_at_start {
            StayedDown { restarts: 0, why: format!("it was restarted and {cause}") }
        } else if case.epoch >= MAX_EPOCH {
            StayedDown {
                restarts: MAX_EPOCH.into(),
                why: format!("the maximum number of incarnations; the last: {cause}"),
            }
        } else {
            let pause = case.policy.charge_death(case.end);
            if pause.is_some() {
                return pause;
            }
            StayedDown {
                restarts: MAX_RESTARTS,
                why: format!("none of them made progress; the last: {cause}"),
            }
        };
        out.perform(Action::Complain(format!(
            "note: {}",
            stayed_down.describe(self.processes[place].strategy())
        )));
        died.stayed_down = Some(stayed_down);
        None
    }

    /// Starts a strategy in its next epoch. A failed start counts as another death.
    pub(super) fn start_incarnation(
        &mut self,
        place: usize,
        stage: SupervisionStage,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) {
        self.prepare_incarnation(place, stage, now, out);
        self.restart(place, liveness, now, out);
    }

    /// Resets the memory of a strategy that is about to be started in its next epoch, and publishes
    /// that.
    pub(super) fn prepare_incarnation(
        &mut self,
        place: usize,
        stage: SupervisionStage,
        now: u64,
        out: &mut dyn Actions,
    ) {
        let case = &mut self.processes[place];
        case.epoch += 1;
        case.started_ticks = now;
        case.asked_to_end = None;
        case.stage = stage;
        let (role, epoch) = (Role::Strategy(case.strategy()), case.epoch);
        out.perform(Action::Reset(role));
        if case.is_thread {
            // Before its process reads the epoch and starts it.
            out.perform(Action::ResetThread(case.threads[0]));
        }
        out.perform(Action::Renew(role, epoch));
    }
}

/// Describes how a strategy's process exited, unless it runs or exited as it should.
pub(super) fn early_exit(case: &SupervisedProcess, observed: &Observations) -> Option<String> {
    let exit = observed.processes[case.process].exit.as_ref()?;
    let thread = &observed.threads[case.threads[0]];
    if exit.is_success && thread.state() == ThreadState::Done {
        return None;
    }
    let ending = match exit.is_success {
        true => format!("{} before it had finished", exit.text),
        false => exit.text.clone(),
    };
    Some(with_own_message(&ending, &thread.error))
}

const MAX_MESSAGE_CHARS: usize = 120;

/// Returns the text `ending`, how a process exited according to the kernel, followed by the
/// strategy's own error message, if any. The message is quoted, and without characters that could
/// be mistaken for something else.
pub fn with_own_message(ending: &str, message: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || "µ·–…’“”≥≤×".contains(c);
    let message: String = message
        .trim()
        .chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| if plain(c) && c != '"' { c } else { '?' })
        .collect();
    if message.is_empty() { ending.to_owned() } else { format!("{ending}; its message: \"{message}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_message_comes_last_and_quoted() {
        let killed = "signal 11 (SIGSEGV)";
        assert_eq!(with_own_message(killed, ""), killed);
        let says = with_own_message(killed, " no route \"to\" the venue\u{1b}[31m\u{202e}ש ");
        assert_eq!(says, "signal 11 (SIGSEGV); its message: \"no route ?to? the venue?[31m??\"");
        let long = with_own_message(killed, &"x".repeat(1000));
        assert_eq!(long.matches('x').count(), MAX_MESSAGE_CHARS, "{long}");
    }
}
