//! Compares the counters of each thread with its stamps, where both are final.

use super::ThreadLog;
use super::deaths::Deaths;
use super::row::OrderRow;
use super::table::OrderTable;
use super::violation::{Findings, ViolationKind};
use crate::record::{RunOutcome, RunRecord};
use protocol::labels::{PROTOCOL_ERRORS, StrategyCounter};
use protocol::plan::{Fault, FaultKind, FaultTarget, Isolation, Role, ThreadPlan};
use protocol::stamps::Point;
use protocol::status::{StatusField, ThreadState};
use protocol::supervision::ProtocolViolation;

/// Checks the counters of every trusted thread against its stamps. The counters of a strategy
/// restart with each incarnation, so they are compared with the stamps of the last one.
pub(super) fn check(
    record: &RunRecord,
    logs: &[ThreadLog],
    deaths: &Deaths,
    table: &OrderTable,
    findings: &mut Findings,
) {
    unexplained_quarantines(record, findings);
    for (log, thread) in logs.iter().zip(&record.plan.threads).filter(|(log, _)| !log.is_untrusted) {
        let (name, dropped) = (&log.name, log.status.get(StatusField::RecordsDropped));
        let author = deaths.sole_author(thread);
        findings.firm.add_many(ViolationKind::RecordsDropped, dropped, || {
            format!("{name}: {dropped} records did not fit the log of {}", thread.log_records)
        });
        let strange = log.counters.total(&thread.roles, PROTOCOL_ERRORS);
        let has_failed = matches!(record.outcome, RunOutcome::Failed { .. });
        if strange > 0 && !has_failed && !deaths.has_known_violation() {
            findings.add(author, ViolationKind::PeerFaults, || {
                format!("{name}: was handed {strange} messages that no honest peer hands over, and nobody was caught")
            });
        }
        let finished = record.outcome == RunOutcome::Complete && log.status.state() == ThreadState::Done;
        let Some(strategies) = only_strategies(thread).filter(|_| finished && dropped == 0) else { continue };
        if strategies.iter().any(|strategy| has_stayed_down(record, deaths, *strategy)) {
            // It reported done and was killed: its last counters are not final.
            continue;
        }
        let stamped: u64 =
            strategies.iter().map(|strategy| sent_last(record, deaths, table, *strategy)).sum();
        let sent = log.counters.agents(&thread.roles).map(|agent| agent.get(StrategyCounter::Sent));
        let counted = sent.fold(0, u64::saturating_add);
        if stamped != counted {
            findings.add(author, ViolationKind::Counters, || {
                format!("{name}: counted {counted} orders sent, its log has {stamped}: records are missing")
            });
        }
    }
}

/// Reports strategies that were quarantined for invalid orders without a fault of the plan: either
/// the strategy sent them or the ring under test corrupted them. In the sandbox, where strategies
/// may be hostile, it is attributed to the strategy.
fn unexplained_quarantines(record: &RunRecord, findings: &mut Findings) {
    if record.plan.isolation == Isolation::Sandbox {
        return;
    }
    let is_about_orders = |why: &ProtocolViolation| {
        matches!(
            why,
            ProtocolViolation::OutOfSequence
                | ProtocolViolation::WrongEpoch
                | ProtocolViolation::ForeignId
                | ProtocolViolation::Garbage
        )
    };
    for incident in &record.incidents {
        let Some(why) = incident.quarantined.filter(is_about_orders) else { continue };
        let misbehaves = |fault: &Fault| {
            let kinds = [FaultKind::Scribble, FaultKind::Flood, FaultKind::Lose];
            kinds.contains(&fault.kind)
                && [FaultTarget::Any, FaultTarget::Strategy(incident.strategy)].contains(&fault.target)
        };
        if !record.plan.faults.iter().any(misbehaves) {
            findings.firm.add(ViolationKind::PeerFaults, || {
                format!(
                    "{} was quarantined ({why}), and no fault of the plan explains it: it wrote over what it had sent, or {} \
                     lost, doubled, reordered or tore it",
                    Role::Strategy(incident.strategy),
                    record.plan.technique
                )
            });
        }
    }
}

/// Returns the strategies of a thread that runs nothing else.
fn only_strategies(thread: &ThreadPlan) -> Option<Vec<u16>> {
    let strategy = |role: &Role| match role {
        Role::Strategy(index) => Some(*index),
        _ => None,
    };
    thread.roles.iter().map(strategy).collect()
}

/// Returns `true` if a strategy died and was not restarted.
fn has_stayed_down(record: &RunRecord, deaths: &Deaths, strategy: u16) -> bool {
    let died = deaths.last_epoch(strategy).checked_sub(1);
    let incident = died.and_then(|epoch| deaths.incident(strategy, epoch));
    let incident = incident.and_then(|incident| record.incidents.get(incident));
    incident.is_some_and(|incident| incident.restarted_ns.is_none())
}

/// Returns the number of orders that the last incarnation of a strategy stamped as sent.
fn sent_last(record: &RunRecord, deaths: &Deaths, table: &OrderTable, strategy: u16) -> u64 {
    // An incarnation that sent nothing has no stamps.
    let last_died = deaths.last_epoch(strategy).checked_sub(1);
    let incident = last_died.and_then(|epoch| deaths.incident(strategy, epoch));
    let was_restarted = incident
        .and_then(|incident| record.incidents.get(incident))
        .is_some_and(|incident| incident.restarted_ns.is_some());
    let restarted = if was_restarted { deaths.last_epoch(strategy) } else { 0 };
    let lane = table.lane_of(strategy, restarted.max(table.newest_epoch(strategy)));
    let is_sent = |row: &&OrderRow| row.has(Point::StrategySend);
    lane.map_or(0, |lane| lane.rows.iter().filter(is_sent).count() as u64)
}
