//! Runs the ends of benchmarks: attaches each end as planned, and runs its measured loop on its
//! thread from the barrier to the loop's end.

use super::board::histograms::BoardHistograms;
use super::board::{BoardAgent, BoardEnd};
use super::queue::QueueEnd;
use super::queue::waiting::{Pace, WaitStrategy};
use super::registry;
use super::runner::Runner;
use anyhow::{Context, Result, bail};
use protocol::agent;
use protocol::benchmark::{
    BOARD_SEGMENT, RESULTS_KIND, WRITE_TIMES_KIND, WRITE_TIMES_SEGMENT, results_segment,
};
use protocol::control::Control;
use protocol::counters::AgentSlot;
use protocol::link::LinkPlan;
use protocol::plan::{BoardWork, EndWaiting, Plan, QueueWork, Role, ThreadPlan, Workload};
use protocol::segments::bell_of;
use shm::attached::Attached;
use shm::bell::Doorbell;
use shm::board::{self, Reader, Writer};
use shm::idle::IdleStrategy;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::ring::LinkSpec;
use system::clock::{Clock, ClockSource, Timebase};

/// The clock, control segment and counters that a measured loop receives at its start.
pub(super) struct LoopContext<'a> {
    control: &'a Control,
    counters: AgentSlot<'a>,
    clock: ClockSource,
    time: Timebase,
    idle: IdleStrategy,
}

/// The measured loop of one end, attached to its segments: one dynamic call for each thread.
pub(super) type MeasuredLoop = Box<dyn FnOnce(LoopContext<'_>) + Send>;

/// Attaches the end of a benchmark that runs on a thread; `None` if it is the thread of a run that
/// trades.
pub(super) fn attach(
    plan: &Plan,
    thread: &ThreadPlan,
    attached: &mut Attached<'_>,
) -> Result<Option<MeasuredLoop>> {
    match (&plan.workload, thread.roles.as_slice()) {
        (Workload::Trading(_), _) => Ok(None),
        (Workload::Queue(work), [role]) => attach_queue(plan, work, thread, *role, attached).map(Some),
        (Workload::Board(work), [role]) => attach_board(work, *role, attached).map(Some),
        (_, roles) => bail!("{} ends of a benchmark on one thread", roles.len()),
    }
}

/// Prepares the thread, waits at the barrier and for the start tick, and runs the measured loop.
pub(super) fn run(measured: MeasuredLoop, runner: Runner<'_>, idle: IdleStrategy) -> Result<()> {
    let (clock, control) = (runner.plan.clock, runner.control);
    let Some((cycle, status, _guards)) = runner.arrive(clock)? else { return Ok(()) };
    let time = cycle.time;
    while clock.peek() < time.start_ticks {
        std::thread::yield_now();
    }
    agent::run_measured(&clock, &status, |counters| {
        measured(LoopContext { control, counters, clock, time, idle });
    });
    Ok(())
}

fn attach_queue(
    plan: &Plan,
    work: &QueueWork,
    thread: &ThreadPlan,
    role: Role,
    attached: &mut Attached<'_>,
) -> Result<MeasuredLoop> {
    let technique = plan.technique;
    let loops = registry::queue_loops_of(technique).with_context(|| format!("no loops for {technique}"))?;
    let (index, producers, waiting) = (role.index(), work.producers() as u16, work.waiting);
    let (cost, events) = match role {
        Role::Producer(_) => (work.producer_cost, work.events[usize::from(index)]),
        _ => (work.consumer_cost, work.total_events()),
    };
    let is_consumer = u64::from(matches!(role, Role::Consumer(_)));
    let seed = work.seed.wrapping_mul(1 << 16).wrapping_add(u64::from(index) << 1 | is_consumer);
    let pace = Pace::new(cost, work.jitter, plan.ns_per_tick, seed);
    let links: Vec<LinkSpec<'_>> = plan.links.iter().map(LinkPlan::spec).collect();
    if let Role::Producer(_) = role {
        let run = (loops.producer)(&links, index.into(), attached)?;
        let consumers = (0..work.consumers).map(Role::Consumer);
        let bells = attach_bells(plan, thread, consumers, attached)?;
        let settings = QueueSettings { waiting, pace, bells, index, producers, events };
        return Ok(Box::new(move |context| run(settings.end(context))));
    }
    let run = (loops.consumer)(&links[usize::from(index)], attached)?;
    let results = attach_results(role, attached)?;
    let bells = attach_bells(plan, thread, (0..producers).map(Role::Producer), attached)?;
    let settings = QueueSettings { waiting, pace, bells, index, producers, events };
    Ok(Box::new(move |context| run(settings.end(context), &results)))
}

/// What an end of a queue needs besides its thread's context.
struct QueueSettings {
    waiting: EndWaiting,
    pace: Pace,
    bells: Vec<Doorbell>,
    index: u16,
    producers: u16,
    events: u64,
}

impl QueueSettings {
    fn end(self, context: LoopContext<'_>) -> QueueEnd<'_> {
        let Self { waiting, pace, bells, index, producers, events } = self;
        let LoopContext { control, counters, clock, idle, .. } = context;
        let waiting = WaitStrategy::new(waiting, idle);
        QueueEnd { control, counters, clock, waiting, pace, bells, index, producers, events }
    }
}

/// Attaches the doorbells of the roles at the other ends that park.
fn attach_bells(
    plan: &Plan,
    thread: &ThreadPlan,
    others: impl Iterator<Item = Role>,
    attached: &mut Attached<'_>,
) -> Result<Vec<Doorbell>> {
    let bells = others.filter_map(|other| bell_of(attached, plan, thread, other).transpose());
    Ok(bells.collect::<Result<_, _>>()?)
}

fn attach_results(role: Role, attached: &mut Attached<'_>) -> Result<AtomicWords> {
    let words = attached.region(&results_segment(role), RESULTS_KIND)?.words();
    Ok(words.slice(HEADER_WORDS, words.len() - HEADER_WORDS))
}

fn attach_board(work: &BoardWork, role: Role, attached: &mut Attached<'_>) -> Result<MeasuredLoop> {
    let shape = work.shape()?;
    let end = match role {
        Role::Writer => {
            let words = attached.region(BOARD_SEGMENT, board::KIND)?.words();
            BoardEnd::Writer(Writer::attach_as(shape, &words)?)
        }
        _ => BoardEnd::Reader(Reader::attach_as(shape, &attached.view(BOARD_SEGMENT, board::KIND)?)?),
    };
    let due = match work.scheduled {
        Some(times) => {
            let times = usize::try_from(times).context("too many writes")?;
            Some(attached.view(WRITE_TIMES_SEGMENT, WRITE_TIMES_KIND)?.slice(HEADER_WORDS, times))
        }
        None => None,
    };
    let results = attach_results(role, attached)?;
    let work = work.clone();
    Ok(Box::new(move |context| {
        let LoopContext { control, counters, clock, time, .. } = context;
        let histograms = BoardHistograms::new(&results, time, work.duration_ns);
        BoardAgent { work: &work, time, control, due, counters, histograms, results }.run(clock, end);
    }))
}
