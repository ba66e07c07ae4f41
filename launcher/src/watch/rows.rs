//! Builds the rows of a snapshot from copied counters: roles, rings, strategies and errors.

use super::model::{ErrorRow, RingRow, RoleRow, Snapshot, StrategyRow};
use super::sampler::{RunSegments, Sampler};
use protocol::control::Control;
use protocol::counters::AgentCounters;
use protocol::kill::Scope;
use protocol::plan::ThreadPlan;
use protocol::role::RoleKind;
use protocol::status::{StatusField, ThreadState, ThreadStatus};
use protocol::supervision::{REPAIRS_WORDS, Repairs};
use shm::ring::{array_queue, occupancy, spsc};
use system::clock::Clock;
use system::process;

/// How far a heartbeat may be ahead of our clock, in nanoseconds: the skew of two cores. More is a
/// false claim.
const AHEAD_NS: u64 = 1_000_000;

/// Counters that indicate an error if nonzero, with their description.
const WRONG: [(&str, &str); 5] = [
    ("protocol-errors", "invalid messages"),
    ("venue-errors", "invalid messages from the venue"),
    ("stuck", "orders closed: the venue said nothing"),
    ("disconnects", "sessions went down"),
    ("ticks-missed", "versions of touches missed"),
];

/// Returns a role's counters of orders and of reports, and those of orders no longer in flight.
const fn flow(kind: RoleKind) -> (&'static str, &'static str, &'static [&'static str]) {
    match kind {
        RoleKind::Strategy => ("sent", "returned", &["returned", "rejected"]),
        RoleKind::Orchestrator => ("dispatched", "returned", &["settled"]),
        RoleKind::Gateway | RoleKind::Exchange => ("received", "completed", &[]),
    }
}

/// Returns the kernel's state of a thread: `T` is stopped, `Z` dead. `None` if it does not exist.
fn kernel_state(pid: u32, tid: u64) -> Option<char> {
    let tid = process::host_thread_id(pid, tid)?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

impl Sampler {
    pub(super) fn role(
        &mut self,
        thread: &ThreadPlan,
        status: &ThreadStatus,
        counters: &AgentCounters,
        pid: Option<u32>,
    ) -> RoleRow {
        let role = counters.role();
        let count = |name: &str| counters.get_by_name(name).unwrap_or(0);
        let (orders, reports, closed) = flow(role.kind());
        let orders = count(orders);
        let closed = closed.iter().map(|name| count(name)).reduce(u64::saturating_add);
        let now = self.plan().clock.now();
        let before = self.before.insert(role, (now, orders));
        let rate = before.and_then(|(ticks, before)| {
            let seconds = self.ns(now.saturating_sub(ticks)) as f64 / 1e9;
            (seconds > 0.0).then(|| orders.saturating_sub(before) as f64 / seconds)
        });
        let own = status.state();
        let state = match pid.and_then(|pid| kernel_state(pid, status.get(StatusField::Tid))) {
            _ if matches!(own, ThreadState::Done | ThreadState::Failed) => own.name(),
            None | Some('Z' | 'X') => "gone",
            Some('T' | 't') => "stopped",
            Some(_) => own.name(),
        };
        let beat = status.get(StatusField::HeartbeatTicks);
        let is_claim = self.ns(beat.saturating_sub(now)) > AHEAD_NS;
        RoleRow {
            role: role.to_string(),
            thread: thread.name.clone(),
            pid,
            state,
            core: thread.core,
            orders,
            rate,
            reports: count(reports),
            in_flight: closed.map(|closed| orders.saturating_sub(closed)),
            full: count("full"),
            longest_gap_ns: self.ns(status.get(StatusField::LongestGapTicks)),
            heartbeat_age_ns: (beat != 0 && !is_claim).then(|| self.ns(now.saturating_sub(beat))),
            counters: counters.labeled().map(|(label, value)| (label.name, value)).collect(),
        }
    }

    pub(super) fn rings(&self, segments: &RunSegments, snapshot: &mut Snapshot) {
        for (spec, parts) in &segments.rings {
            let fill = parts.as_ref().and_then(|(ring, head)| match head {
                Some(head) => occupancy::spsc(spec.capacity, head.word(spsc::HEAD)?, |at| ring.word(at)),
                None if spec.kind == array_queue::KIND => {
                    occupancy::array_queue(spec.capacity, |at| ring.word(at))
                }
                None => None,
            });
            snapshot.rings.push(RingRow { ring: spec.name.clone(), fill, capacity: spec.capacity });
        }
    }

    pub(super) fn strategies(&self, segments: &RunSegments, control: &Control, snapshot: &mut Snapshot) {
        let repairs = segments.repairs.as_ref().and_then(|segment| segment.copy(REPAIRS_WORDS).ok());
        let repairs = repairs.map(Repairs::new);
        for strategy in 0..self.plan().trading().strategies {
            let life = control.incarnation(strategy);
            let repair =
                repairs.as_ref().map(|repairs| repairs.strategy_repair(strategy)).unwrap_or_default();
            let is_mine = |scope| scope == Scope::All || scope == Scope::Strategy(strategy);
            let killed = self.switches.switches().filter(|(scope, _)| is_mine(*scope));
            snapshot.strategies.push(StrategyRow {
                strategy,
                incarnation: life.epoch,
                is_fenced: life.fenced,
                incidents: u64::from(life.epoch) + u64::from(life.fenced),
                quarantined: repair.quarantined.map(|(_, why)| why.to_string()),
                refused: repair.refused,
                orphaned: repair.orphaned,
                killed: killed.map(|(_, text)| text).collect(),
            });
        }
        let others = self.switches.switches().filter(|(scope, _)| !matches!(scope, Scope::Strategy(_)));
        snapshot.switches = others.map(|(_, text)| text).collect();
        if let Some(what) = repairs.and_then(|repairs| repairs.damage()) {
            snapshot.errors.push(ErrorRow { who: "engine".into(), what: what.to_string(), count: 1 });
        }
    }

    pub(super) fn errors(snapshot: &mut Snapshot) {
        for row in &snapshot.roles {
            for (counter, what) in WRONG {
                let count = row.counters.get(counter).copied().unwrap_or(0);
                if count > 0 {
                    snapshot.errors.push(ErrorRow { who: row.role.clone(), what: what.into(), count });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_knows_our_own_thread() {
        assert_eq!(kernel_state(std::process::id(), process::thread_id().into()), Some('R'));
        assert_eq!(kernel_state(std::process::id(), u64::MAX), None);
        assert_eq!(kernel_state(u32::MAX, 1), None);
    }
}
