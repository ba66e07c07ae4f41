//! Compares the counters of each thread with its stamps, where both are final.

use super::ThreadLog;
use super::context::CheckContext;
use super::row::OrderRow;
use super::table::OrderTable;
use super::violation::{Findings, ViolationKind};
use protocol::index::StrategyIndex;
use protocol::labels::{PROTOCOL_ERRORS, StrategyCounter};
use protocol::plan::{Fault, FaultKind, FaultTarget, Isolation, Role, ThreadPlan};
use protocol::stamps::Point;
use protocol::status::{StatusField, ThreadState};
use protocol::supervision::ProtocolViolation;
use record::numbers::counted;
use record::run::{Addition, Incident, RunRecord};

/// Checks the counters of every trusted thread against its stamps. The counters of a strategy
/// restart with each incarnation, so they are compared with the stamps of the last one.
pub(super) fn check(context: &CheckContext, logs: &[ThreadLog], table: &OrderTable, findings: &mut Findings) {
    let record = context.record;
    report_unexplained_quarantines(record, findings);
    let misbehaves = |fault: &Fault| matches!(fault.kind, FaultKind::Scribble | FaultKind::Flood);
    let is_misconduct_known = record.incidents.iter().any(|incident| incident.quarantined.is_some())
        || record.plan.faults.iter().any(misbehaves);
    for (log, thread) in logs.iter().zip(&record.plan.threads).filter(|(log, _)| !log.is_untrusted) {
        let (name, dropped) = (&log.name, log.status.get(StatusField::RecordsDropped));
        let author = context.deaths.only_writer(thread);
        findings.certain().add_many(ViolationKind::RecordsDropped, dropped, || {
            format!("{name}: {} did not fit the log of {}", counted(dropped, "record"), thread.log_records)
        });
        let protocol_errors = log.counters.total(&thread.roles, PROTOCOL_ERRORS);
        if protocol_errors > 0 && !context.has_failed && !is_misconduct_known {
            findings.add(author, ViolationKind::PeerFaults, || {
                format!("{name}: was handed {protocol_errors} messages that no honest peer hands over, and nobody was caught")
            });
        }
        let is_final = context.is_complete && log.status.state() == ThreadState::Done && dropped == 0;
        let Some(strategies) = only_strategies(thread).filter(|_| is_final) else { continue };
        let last_death = |strategy| last_death(context, strategy);
        let is_final_death = |death: &Incident| {
            let is_next = |addition: &Addition| {
                (addition.strategy, addition.epoch) == (death.strategy, death.epoch + 1)
            };
            death.restarted_ns.is_none() && !record.additions.iter().any(is_next)
        };
        if strategies.iter().filter_map(|index| last_death(*index)).any(is_final_death) {
            // It reported done and was killed: its last counters are not final.
            continue;
        }
        let sent_last = |strategy: &StrategyIndex| {
            // An incarnation that sent nothing has no stamps.
            let restarted = last_death(*strategy).map_or(0, |_| context.deaths.last_epoch(*strategy));
            let partition = table.partition_of(*strategy, restarted.max(table.newest_epoch(*strategy)));
            let is_sent = |row: &&OrderRow| row.has(Point::StrategySend);
            partition.map_or(0, |partition| partition.rows.iter().filter(is_sent).count() as u64)
        };
        let stamped: u64 = strategies.iter().map(sent_last).sum();
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
fn report_unexplained_quarantines(record: &RunRecord, findings: &mut Findings) {
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
        if record.plan.isolation.kind_of(incident.strategy) == Isolation::Sandbox {
            continue;
        }
        let Some(why) = incident.quarantined.filter(is_about_orders) else { continue };
        // Each writes the memory of its whole group.
        let group = record.plan.group_of(incident.strategy);
        let misbehaves = |fault: &Fault| {
            let kinds = [FaultKind::Scribble, FaultKind::Flood, FaultKind::Lose];
            let can_write = match fault.target {
                FaultTarget::Strategy(target) => target == incident.strategy || group.contains(&target),
                target => target == FaultTarget::Any,
            };
            kinds.contains(&fault.kind) && can_write
        };
        if !record.plan.faults.iter().any(misbehaves) {
            findings.certain().add(ViolationKind::PeerFaults, || {
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
fn only_strategies(thread: &ThreadPlan) -> Option<Vec<StrategyIndex>> {
    let strategy = |role: &Role| match role {
        Role::Strategy(index) => Some(*index),
        _ => None,
    };
    thread.roles.iter().map(strategy).collect()
}

/// Returns the death of the last incarnation of a strategy that died.
fn last_death<'a>(context: &CheckContext<'a>, strategy: StrategyIndex) -> Option<&'a Incident> {
    let epoch = context.deaths.last_epoch(strategy).checked_sub(1)?;
    context.record.incidents.get(context.deaths.incident(strategy, epoch)?)
}
