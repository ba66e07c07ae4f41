//! The benchmark workloads: queues between producers and consumers, and a board with its readers.
//!
//! ```text
//! producer-0 ─┬─▶ queue-0 ─▶ consumer-0        writer ─▶ board ─┬─▶ reader-0
//! producer-1 ─┴─▶ queue-1 ─▶ consumer-1                         └─▶ reader-1
//! ```
//!
//! Each role has a thread with a measured loop of its own. Counts are in the thread's segment, as
//! those of any role; a consumer's latencies, and the histograms of a board's ends, are in a
//! segment of results.

pub mod board_results;
pub mod decisions;
pub mod queue_results;

use crate::link::LinkPlan;
use crate::plan::{
    BoardWork, Idle, Isolation, IsolationLevels, OnDeath, Plan, PlanError, ProcessPlan, QueueWork, Technique,
    ThreadPlan, Workload, ensure,
};
use crate::role::Role;
use crate::shared_histogram::Resolution;
use crate::workload::EndWaiting;
use shm::board::{BoardError, BoardShape};
use shm::memory::SegmentKind;
use shm::memory::header::HEADER_WORDS;

/// The name within the run of the segment with a board benchmark's board (seqlock-protected values
/// from one writer to its readers).
pub const BOARD_SEGMENT: &str = "board";
/// The name of the segment with the times at which a board's writes are due.
pub const WRITE_TIMES_SEGMENT: &str = "due";
/// The segment kind (code, name and layout) of the due times of a board's writes: one word each, in
/// nanoseconds from the run's start. Written by the launcher.
pub const WRITE_TIMES_KIND: SegmentKind =
    SegmentKind::new(42, "board-due", &[("times", HEADER_WORDS)]).of_slots(HEADER_WORDS, 1);
/// The segment kind (code, name and layout) of the results of one end (role) of a benchmark, which
/// that end writes.
pub const RESULTS_KIND: SegmentKind =
    SegmentKind::new(41, "results", &[("words", HEADER_WORDS)]).of_slots(HEADER_WORDS, 1);

/// Number of histograms over the whole time in the results of a board benchmark's writer or reader.
pub const BOARD_HISTOGRAMS: usize = 3;
/// Number of equal parts of a board benchmark's time, each with histograms of its own.
pub const BOARD_SLICES: usize = 60;
/// Number of durations measured at each end of a board benchmark that also have a histogram for
/// each of the [`BOARD_SLICES`].
pub const BOARD_SLICED: usize = 2;
/// Number of 64-bit words of all histograms in the results of a board benchmark's writer or reader.
///
/// Each measured duration has one histogram of the whole time, at [`Resolution::FINE`]. Each of the
/// first two also has 60, one for each part of the time, at [`Resolution::COARSE`]:
///
/// ```text
/// │ 3 histograms, fine │ 60 of the first duration, coarse │ 60 of the second duration, coarse │
/// ```
pub const BOARD_RESULT_WORDS: usize = board_slice_at(BOARD_SLICED, 0);
/// Offset (words) of the latencies in a queue consumer's results: one word for each event, in
/// ticks, in order of consumption. Before them is the number of each producer's events among the
/// first half.
pub const LATENCIES: usize = QueueWork::MAX_ENDS as usize;
/// No thread of a benchmark counts as hung: its loop has no heartbeat.
const NO_LIVENESS_NS: u64 = 365 * 24 * 3_600_000_000_000;
/// The stamp logs of a benchmark stay empty.
const LOG_RECORDS: u64 = 1;

/// Returns the offset (words) of a duration's histogram over the whole run in the results of a
/// board's writer or reader.
pub const fn board_histogram_at(measure: usize) -> usize {
    measure * Resolution::FINE.words()
}

/// Returns the offset (words) of a duration's histogram for one part of the run in a board writer's
/// or reader's results.
pub const fn board_slice_at(measure: usize, slice: usize) -> usize {
    board_histogram_at(BOARD_HISTOGRAMS) + (measure * BOARD_SLICES + slice) * Resolution::COARSE.words()
}

/// Returns the name within the run of the segment with the results of one end (role) of a
/// benchmark.
pub fn results_segment(role: Role) -> String {
    format!("results-{role}")
}

/// Returns the name of the link that carries events to one consumer of a queue benchmark, given the
/// consumer's index.
pub fn queue_link(consumer: u16) -> String {
    format!("queue-{consumer}")
}

impl BoardWork {
    /// Returns the dimensions of the benchmark's board: its number of cells, plus one if it has
    /// decision ticks, and each value's size in words.
    pub fn shape(&self) -> Result<BoardShape, BoardError> {
        // Decision ticks have a cell of their own, the last one.
        BoardShape::with_cells(self.cells + usize::from(self.decide_every_ns.is_some()), self.words)
    }
}

impl Workload {
    /// Returns the prefix of the names of a benchmark's processes.
    const fn process_prefix(&self) -> &'static str {
        match self {
            Workload::Trading(_) => "",
            Workload::Queue(_) => "lab-",
            Workload::Board(_) => "board-",
        }
    }

    fn benchmark_roles(&self) -> Vec<Role> {
        match self {
            Workload::Trading(_) => Vec::new(),
            Workload::Queue(work) => work.roles(),
            Workload::Board(work) => work.roles(),
        }
    }

    /// Returns the number of result words of a benchmark's role; 0 for a role without results.
    pub(crate) fn result_words(&self, role: Role) -> usize {
        match (self, role) {
            (Workload::Queue(work), Role::Consumer(_)) => LATENCIES + work.total_events() as usize,
            (Workload::Board(work), Role::Reader(_)) if work.decide_every_ns.is_some() => {
                BOARD_RESULT_WORDS + decisions::WORDS
            }
            (Workload::Board(_), Role::Writer | Role::Reader(_)) => BOARD_RESULT_WORDS,
            _ => 0,
        }
    }
}

impl Plan {
    /// Creates the plan of a benchmark from its workload, technique, isolation and cores. `cores`
    /// has an entry for each role, those that produce first; `None`: not pinned.
    pub fn for_benchmark(
        workload: Workload,
        technique: Technique,
        isolation: Isolation,
        cores: &[Option<u32>],
    ) -> Plan {
        let idle = match &workload {
            Workload::Queue(QueueWork { waiting: EndWaiting::Park, .. }) => Idle::Park,
            _ => Idle::Spin,
        };
        // A board's successor of a dead writer continues; a queue's events are lost with an end.
        let on_death = match workload {
            Workload::Board(_) => OnDeath::Restart,
            _ => OnDeath::Stop,
        };
        let mut cores = cores.iter().copied();
        let thread = |role: Role| ThreadPlan {
            name: role.to_string(),
            roles: vec![role],
            core: cores.next().flatten(),
            idle,
            log_records: LOG_RECORDS,
            sleep_records: 0,
        };
        let threads: Vec<ThreadPlan> = workload.benchmark_roles().into_iter().map(thread).collect();
        let prefix = workload.process_prefix();
        let one = |(index, thread): (u32, &ThreadPlan)| ProcessPlan {
            name: format!("{prefix}{}", thread.name),
            threads: vec![index],
        };
        let processes = match isolation {
            Isolation::Thread | Isolation::Keys => vec![ProcessPlan {
                name: format!("{prefix}all"),
                threads: (0..threads.len() as u32).collect(),
            }],
            _ => (0..).zip(&threads).map(one).collect(),
        };
        let links = match &workload {
            Workload::Queue(work) => queue_links(work),
            _ => Vec::new(),
        };
        Plan {
            technique,
            isolation: IsolationLevels::uniform(isolation),
            on_death,
            liveness_ns: NO_LIVENESS_NS,
            links,
            threads,
            processes,
            ..Self::for_workload(workload)
        }
    }

    /// Returns `true` if a process runs only writers or readers of a board benchmark, and the plan
    /// lets the run continue after its death.
    pub fn can_lose_board_end(&self, process: &ProcessPlan) -> bool {
        let is_end = |role| matches!(role, Role::Writer | Role::Reader(_));
        self.on_death != OnDeath::Stop && self.roles_of(process).all(is_end)
    }

    /// Returns the timer slack of the run's threads, in nanoseconds.
    pub const fn timer_slack_ns(&self) -> u64 {
        match &self.workload {
            Workload::Queue(work) => work.slack_ns,
            Workload::Trading(_) | Workload::Board(_) => 1,
        }
    }

    pub(crate) fn validate_queue(&self, work: &QueueWork) -> Result<(), PlanError> {
        let has_slots = work.capacity.is_power_of_two() || self.technique.info().exact_capacity;
        if !has_slots || !(2..=Self::MAX_CAPACITY).contains(&work.capacity) {
            return Err(PlanError::Capacity(work.capacity.into()));
        }
        let max = usize::from(QueueWork::MAX_ENDS);
        ensure((1..=max).contains(&work.producers()), "a queue has 1 to 64 producers")?;
        ensure(usize::from(work.consumers) <= max, "no more than 64 consumers")?;
        ensure(work.total_events() < 1 << 32, "a consumer has room for all events")?;
        ensure((0.0..=1.0).contains(&work.jitter), "a jitter from 0 to 1")?;
        self.validate_roles(work.roles())?;
        let is_there = |wanted: &LinkPlan| self.link(&wanted.name) == Some(wanted);
        ensure(queue_links(work).iter().all(is_there), "each consumer has its queue")
    }

    pub(crate) fn validate_board(&self, work: &BoardWork) -> Result<(), PlanError> {
        ensure(work.readers <= BoardWork::MAX_READERS, "no more than 256 readers")?;
        ensure(work.shape().is_ok(), "there are boards of such cells")?;
        ensure(work.scheduled.is_none_or(|times| times < 1 << 32), "due times have room")?;
        self.validate_roles(work.roles())
    }

    /// Checks that the threads are those of the benchmark's roles, in order.
    fn validate_roles(&self, wanted: Vec<Role>) -> Result<(), PlanError> {
        let roles = self.threads.iter().flat_map(|thread| thread.roles.iter().copied());
        ensure(roles.eq(wanted), "a thread for each end of the benchmark, and no other")
    }
}

/// Returns a queue for each consumer, which all producers write.
fn queue_links(work: &QueueWork) -> Vec<LinkPlan> {
    let producers = || (0..work.producers() as u16).map(Role::Producer);
    let queue = |consumer| {
        LinkPlan::many_to_one(&queue_link(consumer), producers(), Role::Consumer(consumer), work.capacity)
    };
    (0..work.consumers).map(queue).collect()
}
