//! The control segment of a benchmark: phase, start, PIDs of its agents, and the plan as JSON. Only
//! the launcher writes it.

use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;

/// Phase of a benchmark in which its agents prepare.
pub const PREPARE: u64 = 0;
/// Phase of a benchmark in which its agents run.
pub const GO: u64 = 1;
/// Phase of a benchmark in which its producing agents start no new work.
pub const LAST: u64 = 2;
/// Phase of a benchmark in which all producing agents have ended, and the others drain and end.
pub const DRAIN: u64 = 3;
/// Phase of a benchmark in which all agents end immediately.
pub const STOP: u64 = 4;

/// Maximum number of agents of a benchmark.
pub const MAX_AGENTS: usize = 320;

const PHASE: usize = HEADER_WORDS;
const START: usize = PHASE + 1;
const PIDS: usize = PHASE + 16;
/// The length of the plan in bytes, then its bytes.
const PLAN: usize = PIDS + MAX_AGENTS;

/// Segment kind of a benchmark's control segment.
pub const KIND: SegmentKind =
    SegmentKind::new(40, "bench-control", &[("phase", PHASE), ("pids", PIDS), ("plan", PLAN)]);

/// Returns the size in words of a control segment with a plan of `plan_bytes` bytes.
pub const fn segment_words(plan_bytes: usize) -> usize {
    PLAN + 1 + plan_bytes.div_ceil(8)
}

/// The launcher's writing end of a benchmark's control segment.
pub struct ControlSegment(AtomicWords);

impl ControlSegment {
    /// Writes a benchmark's plan into its control segment, after the header.
    pub fn new(words: AtomicWords, plan: &[u8]) -> Self {
        // Relaxed: the agents' processes start afterwards.
        words[PLAN].store(plan.len() as u64, Ordering::Relaxed);
        for (word, bytes) in words[PLAN + 1..].iter().zip(plan.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        Self(words)
    }

    /// Publishes the process id of an agent.
    pub fn set_pid(&self, agent: usize, pid: u32) {
        // Release: pairs with the Acquire load in `ControlView::pid`.
        self.0[PIDS + agent].store(pid.into(), Ordering::Release);
    }

    /// Publishes that the benchmark starts at tick `tick`.
    pub fn start(&self, tick: u64) {
        // Relaxed: published by the phase.
        self.0[START].store(tick, Ordering::Relaxed);
        self.set_phase(GO);
    }

    /// Publishes the phase of the benchmark.
    pub fn set_phase(&self, phase: u64) {
        // Release: pairs with the Acquire load in `ControlView::phase`.
        self.0[PHASE].store(phase, Ordering::Release);
    }

    /// Returns the agents' reading end of the control segment.
    pub fn view(&self) -> ControlView {
        ControlView(self.0.clone().into())
    }
}

/// An agent's reading end of a benchmark's control segment.
#[derive(Clone)]
pub struct ControlView(ReadOnlyWords);

impl ControlView {
    /// Creates the reading end of a control segment whose header was checked. Returns `None` if it
    /// is too short.
    pub fn new(view: ReadOnlyWords) -> Option<Self> {
        (view.len() > PLAN).then_some(Self(view))
    }

    /// Loads the phase of the benchmark.
    #[inline(always)]
    pub fn phase(&self) -> u64 {
        // Acquire: pairs with the Release store in `ControlSegment::set_phase`. What ended before a
        // phase has happened.
        self.0.load(PHASE, Ordering::Acquire)
    }

    /// Returns the tick at which the benchmark starts.
    pub fn start_ticks(&self) -> u64 {
        self.0.load(START, Ordering::Relaxed)
    }

    /// Returns the process id of an agent; `None` if it has no process yet.
    pub fn pid(&self, agent: usize) -> Option<u32> {
        // Acquire: pairs with the Release store in `ControlSegment::set_pid`.
        let pid = self.0.load(PIDS + agent, Ordering::Acquire);
        u32::try_from(pid).ok().filter(|pid| *pid != 0)
    }

    /// Returns the plan of the benchmark, as JSON.
    pub fn plan(&self) -> Vec<u8> {
        let length = usize::try_from(self.0.load(PLAN, Ordering::Relaxed)).unwrap_or(usize::MAX);
        let words = PLAN + 1..self.0.len();
        let bytes = words.flat_map(|word| self.0.load(word, Ordering::Relaxed).to_le_bytes());
        bytes.take(length).collect()
    }
}
