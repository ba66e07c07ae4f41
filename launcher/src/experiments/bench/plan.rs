//! The plan of a benchmark run, which every process receives, and the segments of a process.

use super::BenchWork;
use crate::host::Machine;
use anyhow::{Context, Result};
use protocol::plan::{Isolation, Plan};
use roles::bench::account;
use roles::bench::control::{self, ControlView};
use serde::{Deserialize, Serialize};
use shm::attached::{Access, Attached, Peers, SameProcess, Source};
use shm::memory::header::run_hash;
use shm::memory::sealed::{self, Handle};
use shm::memory::{Header, Region};
use shm::ring::SegmentSpec;
use std::time::Duration;
use system::clock::{ClockPair, ClockSource};

/// A segment of a benchmark run, with each agent's access right to it.
pub struct SharedSegment {
    pub spec: SegmentSpec,
    /// Access rights of each agent.
    pub rights: Vec<Option<Access>>,
}

/// Returns the strongest of some access rights; `None` without any.
pub(super) fn strongest_access(rights: impl Iterator<Item = Access>) -> Option<Access> {
    rights.reduce(|one, other| if one == Access::Write { one } else { other })
}

/// How long the clock is calibrated at least.
const CALIBRATION: Duration = Duration::from_millis(50);

/// The clock of a benchmark run, calibrated since its start.
pub struct BenchClock {
    pub source: ClockSource,
    first: ClockPair,
}

impl BenchClock {
    /// Chooses the machine's best clock and calibrates it.
    pub fn start(machine: &Machine) -> Self {
        let source = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
        let first = ClockPair::read(&source);
        std::thread::sleep(CALIBRATION);
        Self { source, first }
    }

    /// Returns the nanoseconds per tick, measured from the clock's start until now.
    pub fn ns_per_tick(&self) -> f64 {
        ClockPair::read(&self.source).ns_per_tick_since(&self.first)
    }
}

/// The plan of one benchmark run, which every process receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchPlan<W> {
    pub run: String,
    pub launcher_pid: u32,
    pub clock: ClockSource,
    pub ns_per_tick: f64,
    pub isolation: Isolation,
    pub weaker_sandbox: bool,
    /// The timer slack of all threads, in nanoseconds.
    pub slack_ns: u64,
    /// The core of each agent; `None` if it is not pinned.
    pub cores: Vec<Option<u32>>,
    pub handles: Vec<Handle>,
    pub work: W,
}

impl<W: BenchWork> BenchPlan<W> {
    /// Creates a benchmark's plan without segments, which [`run`](super::run) creates.
    pub fn new(clock: &BenchClock, isolation: Isolation, cores: Vec<Option<u32>>, work: W) -> Self {
        Self {
            run: String::new(),
            launcher_pid: 0,
            clock: clock.source,
            ns_per_tick: clock.ns_per_tick(),
            isolation,
            weaker_sandbox: false,
            slack_ns: 1,
            cores,
            handles: Vec::new(),
            work,
        }
    }

    pub(super) fn processes(&self) -> Vec<(String, Vec<usize>)> {
        let agents = self.work.agents();
        if self.isolation == Isolation::Thread {
            return vec![(format!("{}all", W::PREFIX), (0..agents.len()).collect())];
        }
        let name = |agent: &String| format!("{}{agent}", W::PREFIX);
        agents.iter().enumerate().map(|(place, agent)| (name(agent), vec![place])).collect()
    }

    /// Returns the segments of the benchmark's work, then the result segment of each agent.
    pub(super) fn segments(&self) -> Vec<SharedSegment> {
        let agents = self.cores.len();
        let account = |agent: usize| SharedSegment {
            spec: account::segment(agent, self.work.account_words(agent)),
            rights: (0..agents).map(|other| (other == agent).then_some(Access::Write)).collect(),
        };
        self.work.segments().into_iter().chain((0..agents).map(account)).collect()
    }

    /// Returns the full name, in `/dev/shm`, of a segment of the benchmark.
    pub(super) fn segment_name(&self, what: &str) -> String {
        format!("{}{}.{what}", Plan::PREFIX, self.run)
    }

    pub(super) fn is_confined(&self, agents: &[usize]) -> bool {
        self.isolation == Isolation::Sandbox && agents.iter().all(|agent| self.work.is_confined(*agent))
    }

    /// Opens the inherited control segment of a benchmark run and reads its plan.
    pub(super) fn open(address: &str) -> Result<(ControlView, Self)> {
        let fd = address.strip_prefix("fd:").and_then(|fd| fd.parse().ok()).context("not a descriptor")?;
        let file = sealed::take(&Handle { name: "control".into(), fd, writable: false })?;
        let view = Region::map_read_only("control", &file)?;
        Header::read(|word, ordering| view.load(word, ordering), view.len(), control::KIND)?;
        let control = ControlView::new(view).context("the control segment is too short")?;
        let plan = serde_json::from_slice(&control.plan()).context("the plan is not one of this build")?;
        Ok((control, plan))
    }

    pub(super) fn attach(&self, mine: &[usize], control: &ControlView) -> Attached<'_> {
        let (segments, mine) = (self.segments(), mine.to_vec());
        Attached::new(Inherited { plan: self, segments, mine, control: control.clone() })
    }
}

struct Inherited<'a, W> {
    plan: &'a BenchPlan<W>,
    segments: Vec<SharedSegment>,
    mine: Vec<usize>,
    control: ControlView,
}

impl<W: BenchWork> Source for Inherited<'_, W> {
    fn name(&self, what: &str) -> String {
        self.plan.segment_name(what)
    }

    fn run(&self) -> u64 {
        run_hash(&self.plan.run)
    }

    fn right(&self, what: &str) -> Option<Access> {
        let segment = self.segments.iter().find(|segment| segment.spec.name == what)?;
        strongest_access(self.mine.iter().filter_map(|agent| segment.rights[*agent]))
    }

    fn handles(&self) -> &[Handle] {
        &self.plan.handles
    }

    fn peers(&self, link: &str) -> Box<dyn Peers> {
        match self.plan.isolation {
            Isolation::Thread => Box::new(SameProcess),
            _ => self.plan.work.peers(link, &self.control),
        }
    }
}
