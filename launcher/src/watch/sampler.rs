//! Polls a run: copies counters, status blocks and fences out of its segments into snapshots.
//!
//! A poll writes nothing. The amount read never depends on what is read: sizes come from the plan
//! and from the files, indices are bounded, and all sums saturate.

use super::model::{ErrorRow, ObservedState, RingRow, RoleRow, Snapshot, StrategyRow};
use super::switches::KillSwitchTracker;
use crate::active_view::{ActiveRunView, SegmentFile};
use anyhow::Result;
use protocol::control::{Control, RunState};
use protocol::counters::AgentCounters;
use protocol::index::StrategyIndex;
use protocol::kill::Scope;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::role::RoleKind;
use protocol::segments::thread_segment;
use protocol::status::{self, LOG_OFFSET, StatusField, ThreadState, ThreadStatus};
use protocol::supervision::{self, REPAIRS, REPAIRS_WORDS, Repairs};
use protocol::topology::{self, SegmentPurpose};
use runtime::debugger::RunOwner;
use shm::ring::{SegmentSpec, array_queue, occupancy, spsc};
use std::collections::HashMap;
use system::clock::Clock;
use system::process;

/// How far a heartbeat may be ahead of our clock: the skew of two cores, in nanoseconds.
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
        RoleKind::Producer => ("sent", "sent", &[]),
        RoleKind::Consumer => ("taken", "taken", &[]),
        RoleKind::Writer => ("written", "written", &[]),
        RoleKind::Reader => ("read", "read", &[]),
    }
}

/// Returns the kernel's state of a thread; `None` if it does not exist.
fn kernel_state(pid: u32, tid: u64) -> Option<char> {
    let tid = process::host_thread_id(pid, tid)?;
    process::state_in(&std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?)
}

/// The segments of a ring: the slots, and the consumer's head if that is separate.
type RingParts = (SegmentFile, Option<SegmentFile>);

/// The segments of an active run that a poll reads; `None` for one that cannot be opened.
struct RunSegments {
    threads: Vec<Option<SegmentFile>>,
    rings: Vec<(SegmentSpec, Option<RingParts>)>,
    repairs: Option<SegmentFile>,
}

impl RunSegments {
    fn open(run: &ActiveRunView) -> Self {
        let open = |name: &str, kind| run.segment(name, kind).ok();
        let threads = &run.plan.threads;
        let threads = threads.iter().map(|thread| open(&thread_segment(&thread.name), status::KIND));
        let segments = topology::segments(&run.plan);
        let links = segments.into_iter().filter(|segment| matches!(segment.purpose, SegmentPurpose::Link(_)));
        let mut rings = Vec::new();
        for spec in links.map(|segment| segment.spec) {
            let ring_segments = match spec.kind {
                kind if kind == spsc::KIND => open(&spec.name, kind)
                    .zip(open(&format!("{}.head", spec.name), spsc::HEAD_KIND))
                    .map(|(tail, head)| (tail, Some(head))),
                kind if kind == array_queue::KIND => open(&spec.name, kind).map(|ring| (ring, None)),
                kind if kind == spsc::HEAD_KIND || kind == shm::ring::intent::KIND => continue,
                _ => None,
            };
            rings.push((spec, ring_segments));
        }
        Self { threads: threads.collect(), rings, repairs: open(REPAIRS, supervision::KIND) }
    }
}

/// A sampler of an active run, which takes snapshots of the run for `launcher watch`.
pub struct Sampler {
    run: ActiveRunView,
    /// Opened by the first poll after the setup.
    segments: Option<RunSegments>,
    switches: KillSwitchTracker,
    /// Ticks, and orders so far, of each role at the last poll.
    before: HashMap<Role, (u64, u64)>,
    last: Option<Snapshot>,
}

impl Sampler {
    /// Creates a sampler of an active run, with no snapshot taken.
    pub fn new(run: ActiveRunView) -> Self {
        let (switches, before) = (KillSwitchTracker::default(), HashMap::new());
        Self { run, segments: None, switches, before, last: None }
    }

    const fn plan(&self) -> &Plan {
        &self.run.plan
    }

    fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.plan().ns_per_tick) as u64
    }

    /// Takes a snapshot of the active run. After the end of the run the last figures stay.
    pub fn poll(&mut self) -> Result<Snapshot> {
        let control = self.run.control()?;
        let state = match control.state() {
            RunState::Stop => ObservedState::Over,
            _ if !self.run.launcher_lives() => ObservedState::Abandoned,
            RunState::Setup => ObservedState::Setup,
            RunState::Go => ObservedState::Running,
            RunState::Drain => ObservedState::Draining,
        };
        if let Some(last) = self.last.as_ref().filter(|_| state.is_over()) {
            return Ok(Snapshot { state, ..last.clone() });
        }
        let mut snapshot = self.begin(state, &control);
        if state != ObservedState::Setup {
            if self.segments.is_none() {
                self.run.refresh()?;
            }
            let segments = self.segments.take().unwrap_or_else(|| RunSegments::open(&self.run));
            self.roles(&segments, &control, &mut snapshot);
            self.rings(&segments, &mut snapshot);
            self.strategies(&segments, &control, &mut snapshot);
            Self::errors(&mut snapshot);
            self.segments = Some(segments);
        }
        self.last = Some(snapshot.clone());
        Ok(snapshot)
    }

    fn begin(&self, state: ObservedState, control: &Control) -> Snapshot {
        let plan = self.plan();
        let since = match state {
            ObservedState::Setup => 0,
            _ => plan.clock.now().saturating_sub(control.start_ticks()),
        };
        Snapshot {
            version: Snapshot::VERSION,
            run: plan.run.clone(),
            folder: plan.folder.clone(),
            state,
            elapsed_ns: self.ns(since),
            isolation: plan.isolation.to_string(),
            technique: plan.technique.to_string(),
            planned: plan.trading().orders.iter().fold(0, |sum, orders| u64::saturating_add(sum, *orders)),
            ..Snapshot::default()
        }
    }

    fn roles(&mut self, segments: &RunSegments, control: &Control, snapshot: &mut Snapshot) {
        let plan = self.plan().clone();
        for (index, (thread, segment)) in plan.threads.iter().zip(&segments.threads).enumerate() {
            let process = plan.processes.iter().position(|process| process.threads.contains(&(index as u32)));
            let pid = process.and_then(|process| control.pid(process));
            let head = segment.as_ref().and_then(|segment| segment.copy(LOG_OFFSET).ok());
            let Some(head) = head else {
                let state = if pid.is_some() { "unreadable" } else { "gone" };
                snapshot.roles.extend(thread.roles.iter().map(|role| RoleRow {
                    role: plan.trading().role_name(*role),
                    thread: thread.name.clone(),
                    pid,
                    state,
                    ..RoleRow::default()
                }));
                continue;
            };
            let (status, counters) = (status::read(&head), status::counters(&head));
            for role in &thread.roles {
                let counters = counters.agent_counters(&thread.roles, *role);
                snapshot.roles.push(self.role(thread, &status, &counters, pid));
            }
            let is_stopped = snapshot.roles.last().is_some_and(|row| row.state == "stopped");
            let mut add = |what: String, count| {
                snapshot.errors.push(ErrorRow { who: thread.name.clone(), what, count });
            };
            let debugger = || RunOwner::of_run(plan.launcher_pid)?.debugger_of(pid?);
            if let Some(debugger) = is_stopped.then(debugger).flatten() {
                add(format!("stopped by {debugger}"), 1);
            }
            if status.state() == ThreadState::Failed {
                add(format!("it reports: \"{}\"", status.error()), 1);
            }
            match status.get(StatusField::RecordsDropped) {
                0 => {}
                lost => add("stamp records lost: the log is full".into(), lost),
            }
            if let Some(log) = segment
                && thread.roles.contains(&Role::Orchestrator)
                && let Err(error) = self.switches.read_new_records(log)
            {
                add(format!("its log cannot be read: {error}"), 1);
            }
        }
        let sum = |prefix: &str, name: &str| {
            let of_kind = snapshot.roles.iter().filter(|row| row.role.starts_with(prefix));
            of_kind.filter_map(|row| row.counters.get(name).copied()).fold(0, u64::saturating_add)
        };
        (snapshot.sent, snapshot.dispatched) = (sum("strategy", "sent"), sum("orchestrator", "dispatched"));
        (snapshot.settled, snapshot.rejected) =
            (sum("orchestrator", "settled"), sum("orchestrator", "rejected"));
        snapshot.rate = snapshot.roles.iter().find(|row| row.role == "orchestrator").and_then(|row| row.rate);
    }

    fn role(
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
            role: self.plan().trading().role_name(role),
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

    fn rings(&self, segments: &RunSegments, snapshot: &mut Snapshot) {
        for (spec, ring_segments) in &segments.rings {
            let fill = ring_segments.as_ref().and_then(|(ring, head)| match head {
                Some(head) => occupancy::spsc(spec.capacity, head.word(spsc::HEAD)?, |at| ring.word(at)),
                None if spec.kind == array_queue::KIND => {
                    occupancy::array_queue(spec.capacity, |at| ring.word(at))
                }
                None => None,
            });
            snapshot.rings.push(RingRow { ring: spec.name.clone(), fill, capacity: spec.capacity });
        }
    }

    fn strategies(&self, segments: &RunSegments, control: &Control, snapshot: &mut Snapshot) {
        let repairs = segments.repairs.as_ref().and_then(|segment| segment.copy(REPAIRS_WORDS).ok());
        let repairs = repairs.map(Repairs::new);
        for strategy in StrategyIndex::first(self.plan().trading().strategies) {
            let incarnation = control.incarnation(strategy);
            let is_spare = self.plan().trading().is_spare(strategy);
            let repair =
                repairs.as_ref().map(|repairs| repairs.strategy_repair(strategy)).unwrap_or_default();
            let is_mine = |scope| scope == Scope::All || scope == Scope::Strategy(strategy);
            let killed = self.switches.switches().filter(|(scope, _)| is_mine(*scope));
            snapshot.strategies.push(StrategyRow {
                strategy: strategy.0,
                incarnation: incarnation.epoch,
                is_fenced: incarnation.fenced,
                is_spare: is_spare && incarnation.epoch == 0,
                // The first incarnation of a spare never ran.
                incidents: u64::from(incarnation.epoch) + u64::from(incarnation.fenced) - u64::from(is_spare),
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

    fn errors(snapshot: &mut Snapshot) {
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
    fn kernel_state_of_own_thread_is_read() {
        assert_eq!(kernel_state(std::process::id(), process::thread_id().into()), Some('R'));
        assert_eq!(kernel_state(std::process::id(), u64::MAX), None);
        assert_eq!(kernel_state(u32::MAX, 1), None);
    }
}
