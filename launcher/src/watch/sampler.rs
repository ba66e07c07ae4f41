//! Polls a run: copies counters, status blocks and fences out of its segments into snapshots.
//!
//! A poll writes nothing. The amount read never depends on what is read: sizes come from the plan
//! and from the files, indices are bounded, and all sums saturate.

use super::model::{ErrorRow, ObservedState, RoleRow, Snapshot};
use super::source::{ActiveRunView, SegmentFile};
use super::switches::KillSwitchTracker;
use anyhow::Result;
use protocol::control::{Control, RunState};
use protocol::plan::{Plan, Role};
use protocol::segments::thread_segment;
use protocol::status::{self, LOG_OFFSET, StatusField, ThreadState};
use protocol::supervision::{self, REPAIRS};
use protocol::topology::{self, SegmentPurpose};
use shm::ring::{SegmentSpec, array_queue, spsc};
use std::collections::HashMap;
use system::clock::Clock;

/// The segments of a ring: the slots, and the consumer's head if that is separate.
type RingParts = (SegmentFile, Option<SegmentFile>);

/// The segments of an active run that a poll reads; `None` for one that cannot be opened.
pub struct RunSegments {
    /// The segments of the plan's threads, in its order.
    threads: Vec<Option<SegmentFile>>,
    pub(super) rings: Vec<(SegmentSpec, Option<RingParts>)>,
    pub(super) repairs: Option<SegmentFile>,
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
            let parts = match spec.kind {
                kind if kind == spsc::KIND => open(&spec.name, kind)
                    .zip(open(&format!("{}.head", spec.name), spsc::HEAD_KIND))
                    .map(|(tail, head)| (tail, Some(head))),
                kind if kind == array_queue::KIND => open(&spec.name, kind).map(|ring| (ring, None)),
                kind if kind == spsc::HEAD_KIND || kind == shm::ring::intent::KIND => continue,
                _ => None,
            };
            rings.push((spec, parts));
        }
        Self { threads: threads.collect(), rings, repairs: open(REPAIRS, supervision::KIND) }
    }
}

/// A reader of an active run, which takes snapshots of it.
pub struct Sampler {
    run: ActiveRunView,
    /// Opened by the first poll after the setup.
    segments: Option<RunSegments>,
    pub(super) switches: KillSwitchTracker,
    /// Ticks, and orders so far, of each role at the last poll.
    pub(super) before: HashMap<Role, (u64, u64)>,
    last: Option<Snapshot>,
}

impl Sampler {
    pub fn new(run: ActiveRunView) -> Self {
        let (switches, before) = (KillSwitchTracker::default(), HashMap::new());
        Self { run, segments: None, switches, before, last: None }
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.run.plan
    }

    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.plan().ns_per_tick) as u64
    }

    /// Takes a snapshot of the run. After the end of the run the last figures stay with the final
    /// state.
    ///
    /// # Errors
    /// The control segment cannot be read, or holds no plan.
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
                    role: role.to_string(),
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
            let mut add = |what: String, count| {
                snapshot.errors.push(ErrorRow { who: thread.name.clone(), what, count });
            };
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
}
