//! Polls a run: copies counters, status blocks and fences out of its segments into snapshots.
//!
//! A poll reads a few kilobytes and writes nothing. The amount read never depends on what is read:
//! sizes come from the plan and from the files, indices are bounded, and all sums saturate.

use super::kernel;
use super::log_tail::{LogTail, TailMode};
use super::model::{ObservedState, RoleRow, Snapshot, printable};
use super::positions::PositionTracker;
use super::source::{ActiveRunView, SegmentFile};
use super::stages::StageSampler;
use anyhow::Result;
use protocol::control::{Control, RunState};
use protocol::plan::{Plan, Role};
use protocol::record::Point;
use protocol::segments::thread_segment;
use protocol::status::{self, LOG_OFFSET, StatusField};
use protocol::topology::{self, SegmentPurpose};
use shm::ring::{SegmentSpec, array_queue, spsc};
use std::collections::{BTreeSet, HashMap};
use system::clock::Clock;

/// Records read of a strategy's log at each poll: the newest are enough for a sample.
const NEWEST: usize = 2_048;
/// Records read of the engine's logs at each poll: every record counts, for positions and switches.
const EVERY: usize = 1 << 16;
struct ThreadTail {
    log: SegmentFile,
    follower: LogTail,
    gaps: u64,
}

/// The counters at the previous snapshot, from which rates are computed.
#[derive(Clone, Copy, Default)]
pub(super) struct RateBaseline {
    pub(super) ticks: u64,
    pub(super) done: u64,
    pub(super) cpu: u64,
}

/// The segments of a ring: the slots, and the consumer's head if that is separate.
pub(super) type RingParts = (SegmentFile, Option<SegmentFile>);

pub struct Sampler {
    pub(super) run: ActiveRunView,
    threads: HashMap<usize, ThreadTail>,
    pub(super) rings: Vec<(SegmentSpec, Option<RingParts>)>,
    stages: StageSampler,
    pub(super) accounts: PositionTracker,
    pub(super) before: HashMap<Role, RateBaseline>,
    /// Error messages of failed threads: role, incarnation, message.
    pub(super) own_words: BTreeSet<(String, u16, String)>,
    last: Snapshot,
    /// The logs hold more than was read.
    is_behind: bool,
    /// The ring segments were opened.
    is_opened: bool,
}

impl Sampler {
    /// Creates a sampler that takes snapshots of an active run.
    pub fn new(living: ActiveRunView) -> Self {
        let stages = StageSampler::new(living.plan.ns_per_tick);
        Self {
            run: living,
            threads: HashMap::new(),
            rings: Vec::new(),
            stages,
            accounts: PositionTracker::default(),
            before: HashMap::new(),
            own_words: BTreeSet::new(),
            last: Snapshot::default(),
            is_behind: false,
            is_opened: false,
        }
    }

    pub const fn plan(&self) -> &Plan {
        &self.run.plan
    }

    /// Returns `true` if the logs hold records that were not read yet, so that another poll would
    /// find more.
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Takes a snapshot of the run. After the end of the run the last figures stay with the final
    /// state.
    pub fn poll(&mut self) -> Result<Snapshot> {
        let control = self.run.control()?;
        let life = match control.state() {
            RunState::Stop => ObservedState::Over,
            _ if !self.run.launcher_lives() => ObservedState::Abandoned,
            RunState::Setup => ObservedState::Setup,
            RunState::Go => ObservedState::Running,
            RunState::Drain => ObservedState::Draining,
        };
        if life.is_over() && !self.last.run.is_empty() {
            return Ok(Snapshot { state: life, ..self.last.clone() });
        }
        if !self.is_opened && life != ObservedState::Setup {
            self.run.refresh()?;
        }
        let mut snapshot = self.begin(life, &control);
        if life != ObservedState::Setup {
            self.open(&mut snapshot);
            self.roles(&control, &mut snapshot);
            self.rings(&mut snapshot);
            self.strategies(&control, &mut snapshot);
            self.errors(&mut snapshot);
            snapshot.stages = self.stages.rows();
        }
        self.last = snapshot.clone();
        Ok(snapshot)
    }

    fn begin(&self, life: ObservedState, control: &Control) -> Snapshot {
        let plan = self.plan();
        let since = match life {
            ObservedState::Setup => 0,
            _ => plan.clock.now().saturating_sub(control.start_ticks()),
        };
        Snapshot {
            version: Snapshot::VERSION,
            run: printable(&plan.run),
            folder: printable(&plan.folder),
            state: life,
            elapsed_ns: self.ns(since),
            isolation: plan.isolation.to_string(),
            technique: printable(&plan.technique.to_string()),
            planned: plan.trading().orders.iter().fold(0, |sum, orders| u64::saturating_add(sum, *orders)),
            ..Snapshot::default()
        }
    }

    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.plan().ns_per_tick) as u64
    }

    /// Opens segments that are not open yet: an earlier poll may have come during setup.
    fn open(&mut self, snapshot: &mut Snapshot) {
        let living = &self.run;
        for (index, thread) in living.plan.threads.iter().enumerate() {
            if self.threads.contains_key(&index) {
                continue;
            }
            match living.segment(&thread_segment(&thread.name), status::KIND) {
                Ok(log) => {
                    let is_strategy = matches!(thread.roles.as_slice(), [Role::Strategy(_)]);
                    let reading = if is_strategy { TailMode::Newest(NEWEST) } else { TailMode::Every(EVERY) };
                    let follower = LogTail::new(reading);
                    self.threads.insert(index, ThreadTail { log, follower, gaps: 0 });
                }
                Err(error) => snapshot.unreadable.push(printable(&format!("{error:#}"))),
            }
        }
        if self.is_opened {
            return;
        }
        self.is_opened = true;
        let segments = topology::segments(&living.plan);
        let links = segments.into_iter().filter(|segment| matches!(segment.purpose, SegmentPurpose::Link(_)));
        for spec in links.map(|segment| segment.spec) {
            let open = |what: &str, kind| living.segment(what, kind).ok();
            let parts = match spec.kind {
                kind if kind == spsc::KIND => open(&spec.name, kind)
                    .zip(open(&format!("{}.head", spec.name), spsc::HEAD_KIND))
                    .map(|(tail, head)| (tail, Some(head))),
                kind if kind == array_queue::KIND => open(&spec.name, kind).map(|ring| (ring, None)),
                kind if kind == spsc::HEAD_KIND || kind == shm::ring::intent::KIND => continue,
                _ => None,
            };
            self.rings.push((spec, parts));
        }
    }

    fn roles(&mut self, control: &Control, snapshot: &mut Snapshot) {
        self.is_behind = false;
        let plan = self.run.plan.clone();
        for (index, thread) in plan.threads.iter().enumerate() {
            let process = plan.processes.iter().position(|process| process.threads.contains(&(index as u32)));
            let pid = process.and_then(|process| control.pid(process));
            let Some(at) = self.threads.get_mut(&index) else {
                // A role without a valid status block has a row too.
                snapshot.roles.extend(thread.roles.iter().map(|role| unreadable(*role, &thread.name, pid)));
                continue;
            };
            let copied = at.log.copy(LOG_OFFSET).map(|head| (status::read(&head), status::counters(&head)));
            let Ok((status, counters)) = copied else {
                snapshot.unreadable.push(format!("thread {} is cut short", printable(&thread.name)));
                snapshot.roles.extend(thread.roles.iter().map(|role| unreadable(*role, &thread.name, pid)));
                continue;
            };
            let (stages, accounts, gaps) = (&mut self.stages, &mut self.accounts, &mut at.gaps);
            let may_fill = !matches!(thread.roles.as_slice(), [Role::Strategy(_)]);
            self.is_behind |= at.follower.poll(&at.log, |record| {
                *gaps += u64::from(record.point == Point::Gap);
                stages.observe(&record);
                // Only the engine's fills and switches count, not a strategy's claims.
                if may_fill {
                    accounts.observe(&record);
                }
            });
            snapshot.is_incomplete |= may_fill && at.follower.skipped > 0;
            let gaps = at.gaps;
            let kernel = pid.and_then(|pid| kernel::thread(pid, status.get(StatusField::Tid)));
            for role in &thread.roles {
                let line = self.role(
                    *role,
                    &thread.name,
                    &status,
                    &counters.agent_counters(&thread.roles, *role),
                    kernel,
                    pid,
                );
                snapshot.roles.push(RoleRow { gaps, is_pinned: thread.core.is_some(), ..line });
            }
            self.failed(control, &thread.roles, &thread.name, &status);
        }
        snapshot.is_incomplete |= self.accounts.is_incomplete;
        let sum = |prefix: &str, name: &str| {
            let of_kind = snapshot.roles.iter().filter(|line| line.role.starts_with(prefix));
            of_kind.filter_map(|line| line.counters.get(name).copied()).fold(0, u64::saturating_add)
        };
        (snapshot.sent, snapshot.dispatched) = (sum("strategy", "sent"), sum("orchestrator", "dispatched"));
        (snapshot.settled, snapshot.rejected) =
            (sum("orchestrator", "settled"), sum("orchestrator", "rejected"));
        snapshot.rate =
            snapshot.roles.iter().find(|line| line.role == "orchestrator").and_then(|line| line.rate);
    }
}

/// Returns the row of a role whose segment is invalid.
fn unreadable(role: Role, thread: &str, pid: Option<u32>) -> RoleRow {
    let state = if pid.is_some() { "unreadable" } else { "gone" };
    RoleRow { role: role.to_string(), thread: printable(thread), pid, state, ..RoleRow::default() }
}
