//! Looks at a run, again and again: copies counters, status blocks and fences out of its segments,
//! and says what it found.
//!
//! A look costs the run a few kilobytes that are read beside it, and no write. Nothing that is read
//! decides how much is read: sizes come from the plan and from the files, places are bounded, and
//! all sums saturate.

use super::accounts::Accounts;
use super::follow::{LogTail, Reading};
use super::kernel;
use super::model::{Life, RoleLine, Snapshot, shown};
use super::source::{Living, Segment};
use super::stages::Stages;
use anyhow::Result;
use protocol::control::{Control, RunState};
use protocol::plan::{Plan, Role};
use protocol::record::Point;
use protocol::segments::thread_segment;
use protocol::status::{self, Field, LOG_OFFSET};
use protocol::topology::{self, Purpose};
use shm::ring::{SegmentSpec, array_queue, spsc};
use std::collections::{BTreeSet, HashMap};
use system::clock::Clock;

/// Of a strategy's log the newest records are enough: stamps for a sample.
const NEWEST: usize = 2_048;
/// Of the engine's logs every record is wanted, for positions and switches: so many at a look.
const EVERY: usize = 1 << 16;
struct ThreadAt {
    log: Segment,
    follower: LogTail,
    gaps: u64,
}

/// What a rate is the difference of.
#[derive(Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) ticks: u64,
    pub(super) done: u64,
    pub(super) cpu: u64,
}

/// A ring's segments: the one with the slots, and the consumer's where it has one of its own.
pub(super) type RingParts = (Segment, Option<Segment>);

pub struct Sampler {
    pub(super) living: Living,
    threads: HashMap<usize, ThreadAt>,
    pub(super) rings: Vec<(SegmentSpec, Option<RingParts>)>,
    stages: Stages,
    pub(super) accounts: Accounts,
    pub(super) before: HashMap<Role, Before>,
    /// What threads that gave up have said: who, in which incarnation, what.
    pub(super) own_words: BTreeSet<(String, u16, String)>,
    last: Snapshot,
    /// There is more in the logs than was read.
    is_behind: bool,
    /// The descriptors of a sandboxed run were looked for.
    is_opened: bool,
}

impl Sampler {
    /// Of a run that was found.
    pub fn new(living: Living) -> Self {
        let stages = Stages::new(living.plan.ns_per_tick);
        Self {
            living,
            threads: HashMap::new(),
            rings: Vec::new(),
            stages,
            accounts: Accounts::default(),
            before: HashMap::new(),
            own_words: BTreeSet::new(),
            last: Snapshot::default(),
            is_behind: false,
            is_opened: false,
        }
    }

    pub const fn plan(&self) -> &Plan {
        &self.living.plan
    }

    /// Whether the logs hold more than was read so far: another look would know more.
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Looks once. After the end of the run the last figures stay, and the state says so.
    pub fn look(&mut self) -> Result<Snapshot> {
        let control = self.living.control()?;
        let life = match control.state() {
            RunState::Stop => Life::Over,
            _ if !self.living.launcher_lives() => Life::Abandoned,
            RunState::Setup => Life::Setup,
            RunState::Go => Life::Running,
            RunState::Drain => Life::Draining,
        };
        if life.is_over() && !self.last.run.is_empty() {
            return Ok(Snapshot { state: life, ..self.last.clone() });
        }
        if !self.is_opened && life != Life::Setup {
            self.living.refresh()?;
        }
        let mut snapshot = self.begin(life, &control);
        if life != Life::Setup {
            self.open(&mut snapshot);
            self.roles(&control, &mut snapshot);
            self.rings(&mut snapshot);
            self.strategies(&control, &mut snapshot);
            self.errors(&mut snapshot);
            snapshot.stages = self.stages.lines();
        }
        self.last = snapshot.clone();
        Ok(snapshot)
    }

    fn begin(&self, life: Life, control: &Control) -> Snapshot {
        let plan = self.plan();
        let since = match life {
            Life::Setup => 0,
            _ => plan.clock.now().saturating_sub(control.start_ticks()),
        };
        Snapshot {
            version: Snapshot::VERSION,
            run: shown(&plan.run),
            folder: shown(&plan.folder),
            state: life,
            elapsed_ns: self.ns(since),
            isolation: plan.isolation.to_string(),
            technique: shown(&plan.technique.to_string()),
            planned: plan.trading().orders.iter().fold(0, |sum, orders| u64::saturating_add(sum, *orders)),
            ..Snapshot::default()
        }
    }

    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.plan().ns_per_tick) as u64
    }

    /// Opens what is not open yet: a look at a run that is still being set up may have come too
    /// early.
    fn open(&mut self, snapshot: &mut Snapshot) {
        let living = &self.living;
        for (index, thread) in living.plan.threads.iter().enumerate() {
            if self.threads.contains_key(&index) {
                continue;
            }
            match living.segment(&thread_segment(&thread.name), status::KIND) {
                Ok(log) => {
                    let is_strategy = matches!(thread.roles.as_slice(), [Role::Strategy(_)]);
                    let reading = if is_strategy { Reading::Newest(NEWEST) } else { Reading::Every(EVERY) };
                    let follower = LogTail::new(reading, topology::ring(&living.plan, index));
                    self.threads.insert(index, ThreadAt { log, follower, gaps: 0 });
                }
                Err(error) => snapshot.unreadable.push(shown(&format!("{error:#}"))),
            }
        }
        if self.is_opened {
            return;
        }
        self.is_opened = true;
        let segments = topology::segments(&living.plan);
        let links = segments.into_iter().filter(|segment| matches!(segment.purpose, Purpose::Link(_)));
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
        let plan = self.living.plan.clone();
        for (index, thread) in plan.threads.iter().enumerate() {
            let process = plan.processes.iter().position(|process| process.threads.contains(&(index as u32)));
            let pid = process.and_then(|process| control.pid(process));
            let Some(at) = self.threads.get_mut(&index) else {
                // Whatever stands where its status was: it has a line.
                snapshot.roles.extend(thread.roles.iter().map(|role| unreadable(*role, &thread.name, pid)));
                continue;
            };
            let copied = at.log.copy(LOG_OFFSET).map(|head| (status::read(&head), status::counters(&head)));
            let Ok((status, counters)) = copied else {
                snapshot.unreadable.push(format!("thread {} is cut short", shown(&thread.name)));
                snapshot.roles.extend(thread.roles.iter().map(|role| unreadable(*role, &thread.name, pid)));
                continue;
            };
            let (stages, accounts, gaps) = (&mut self.stages, &mut self.accounts, &mut at.gaps);
            let may_fill = !matches!(thread.roles.as_slice(), [Role::Strategy(_)]);
            self.is_behind |= at.follower.read(&at.log, status.chunk(), |record| {
                *gaps += u64::from(record.point == Point::Gap);
                stages.see(&record);
                // Fills and switches are the engine's to log: what a strategy says of them counts
                // for nothing.
                if may_fill {
                    accounts.see(&record);
                }
            });
            snapshot.is_incomplete |= may_fill && at.follower.skipped > 0;
            let gaps = at.gaps;
            let kernel = pid.and_then(|pid| kernel::thread(pid, status.get(Field::Tid)));
            for role in &thread.roles {
                let line =
                    self.role(*role, &thread.name, &status, &counters.of(&thread.roles, *role), kernel, pid);
                snapshot.roles.push(RoleLine { gaps, is_pinned: thread.core.is_some(), ..line });
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

/// A role whose thread's segment is no such segment any more.
fn unreadable(role: Role, thread: &str, pid: Option<u32>) -> RoleLine {
    let state = if pid.is_some() { "unreadable" } else { "gone" };
    RoleLine { role: role.to_string(), thread: shown(thread), pid, state, ..RoleLine::default() }
}
