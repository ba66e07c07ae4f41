//! Tests of the agent loop on virtual clocks: the status block and the log of a thread.

use super::*;
use crate::control::{ControlWriter, PLAN};
use crate::record::Record;
use crate::stamps::Gap;
use crate::status::{self, LOG_OFFSET};
use shm::idle::Spin;
use shm::memory::{ReadOnlyWords, Region};
use shm::sync::Ordering;
use system::clock::VirtualClock;

/// A clock that reads the thread's status block on each read, as the launcher may at any time.
#[derive(Clone)]
struct Watching(ReadOnlyWords);

impl Clock for Watching {
    fn now(&self) -> u64 {
        let status = status::read(&self.0);
        let is_running = status.state() == ThreadState::Running;
        assert!(!is_running || status.get(StatusField::HeartbeatTicks) > 0, "running without a heartbeat");
        7
    }
}

/// A cycle of a thread with that clock and segment; ticks are nanoseconds.
fn cycle<C: Clock>(clock: C, segment: &shm::memory::AtomicWords) -> Cycle<C> {
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    Cycle { clock, now: 0, time, draining: false, log: StampLog::new(segment) }
}

fn launching() -> ControlWriter {
    ControlWriter::new(Region::heap(PLAN + 8).words())
}

struct Once;

impl<C: Clock> Agent<C> for Once {
    fn duty_cycle(&mut self, _: &mut Cycle<C>) -> usize {
        0
    }
    fn finished(&self, _: bool) -> bool {
        true
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no figures of a thread: getrusage")]
fn running_state_implies_a_heartbeat() {
    let segment = Region::heap(LOG_OFFSET + 64).words();
    let mut cycle = cycle(Watching(segment.clone().into()), &segment);
    let control = launching().control();
    run(&mut Once, &mut Spin::default(), &mut cycle, &StatusWriter::new(&segment), &control);
    assert_eq!(status::read(&segment.into()).state(), ThreadState::Done);
}

/// Does a fixed amount of work in each cycle.
struct Working(Vec<usize>);

impl<C: Clock> Agent<C> for Working {
    fn duty_cycle(&mut self, _: &mut Cycle<C>) -> usize {
        self.0.pop().unwrap_or(0)
    }
}

/// Always finds work; the run is stopped in the middle.
struct Flooded<'a>(&'a ControlWriter, u64);

impl<C: Clock> Agent<C> for Flooded<'_> {
    fn duty_cycle(&mut self, _: &mut Cycle<C>) -> usize {
        self.1 += 1;
        assert!(self.1 < 100_000, "the agent never stops");
        if self.1 == 1_000 {
            self.0.set_state(RunState::Stop);
        }
        1
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no figures of a thread: getrusage")]
fn busy_agent_ends_when_run_is_stopped() {
    let segment = Region::heap(LOG_OFFSET + 64).words();
    let mut cycle = cycle(VirtualClock::default(), &segment);
    let launching = launching();
    let mut agent = Flooded(&launching, 0);
    run(&mut agent, &mut Spin::default(), &mut cycle, &StatusWriter::new(&segment), &launching.control());
    assert!(agent.1 >= 1_000 + BUSY_POLL_INTERVAL, "pending work was handed over: {}", agent.1);
    assert_eq!(status::read(&segment.into()).state(), ThreadState::Done);
}

/// Idles for a number of ticks, giving the core away or not.
struct Idling(VirtualClock, u64, bool);

impl Idle for Idling {
    fn can_yield(&self) -> bool {
        self.2
    }
    fn idle(&mut self, _: u64) {
        self.0.set(self.0.peek() + self.1);
    }
}

/// Runs a cycle without work, idles 10 µs, works 20 µs outside, and runs a cycle with `work`.
fn logged(work: usize, gives_core: bool) -> Vec<(Point, u64, u64)> {
    let segment = Region::heap(LOG_OFFSET + 64).words();
    let (clock, status) = (VirtualClock::default(), StatusWriter::new(&segment));
    let mut cycle = cycle(clock.clone(), &segment);
    cycle.log = StampLog::new(&segment).with_sleep_records(8);
    let launching = launching();
    launching.go(0);
    let control = launching.control();
    let mut agent = Working(vec![work, 0]);
    let mut running = AgentRunner::begin(&mut agent, &mut cycle, &status);
    assert!(matches!(running.run_once(&mut agent, &mut cycle, &status, &control), CycleOutcome::Idle(_)));
    let mut idling = Idling(clock.clone(), 10_000, gives_core);
    running.idle(&mut idling, u64::MAX, &cycle.clock);
    clock.set(30_000);
    if running.run_once(&mut agent, &mut cycle, &status, &control) == CycleOutcome::Busy {
        running.on_busy(&mut idling, &mut cycle);
    }
    let records = segment[LOG_OFFSET..].chunks(2).map_while(|words| {
        Record::from_words(words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed))
    });
    records
        .map(|record| (record.point, record.value, Gap::from_record(&record).map_or(0, |gap| gap.ticks)))
        .collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no figures of a thread: getrusage")]
fn idle_time_without_core_is_logged_as_sleep() {
    // After the sleep it is a gap: the caller of the agent did other work.
    let gap = (Point::Gap, 30_000, 20_000);
    assert_eq!(logged(1, true), [gap, (Point::Slept, 10_000, 10_000)]);
    // No message had waited.
    assert_eq!(logged(0, true), [gap]);
    // A thread that polls all the time did not sleep.
    for work in [0, 1] {
        assert_eq!(logged(work, false), [(Point::Gap, 30_000, 30_000)]);
    }
}

/// Exchanges messages with the other agent of a pair; counts its cycles, and those with a message.
#[derive(Default)]
struct Forwarder {
    turns: usize,
    returned: usize,
    is_sending: bool,
    slot: std::rc::Rc<std::cell::Cell<usize>>,
}

/// Returns the message that it received, once.
struct Returner(std::rc::Rc<std::cell::Cell<usize>>);

impl<C: Clock> Agent<C> for Forwarder {
    fn duty_cycle(&mut self, _: &mut Cycle<C>) -> usize {
        self.turns += 1;
        if self.slot.get() == 2 {
            self.slot.set(0);
            self.returned += 1;
            return 1;
        }
        self.slot.set(usize::from(self.is_sending));
        usize::from(self.is_sending)
    }
}

impl<C: Clock> Agent<C> for Returner {
    fn duty_cycle(&mut self, _: &mut Cycle<C>) -> usize {
        let has_it = self.0.get() == 1;
        self.0.set(if has_it { 2 } else { self.0.get() });
        usize::from(has_it)
    }
}

#[test]
fn pair_handles_returned_work_in_one_duty_cycle() {
    let segment = Region::heap(LOG_OFFSET + 64).words();
    let mut cycle = cycle(VirtualClock::default(), &segment);
    let forwarder = Forwarder { is_sending: true, ..Forwarder::default() };
    let returner = Returner(forwarder.slot.clone());
    let mut pair = (forwarder, returner);
    assert_eq!(pair.duty_cycle(&mut cycle), 3, "sent, returned and received");
    assert_eq!((pair.0.turns, pair.0.returned), (2, 1));
    pair.0.is_sending = false;
    assert_eq!(pair.duty_cycle(&mut cycle), 0);
    assert_eq!((pair.0.turns, pair.0.returned), (3, 1), "one turn each without a returned message");
}

/// Does a fixed amount of work in each cycle, and records the calls to prefetch.
struct Warming(usize, core::cell::RefCell<Vec<usize>>);

impl Warming {
    fn new(work: usize) -> Self {
        Self(work, core::cell::RefCell::default())
    }
}

impl<C: Clock> Agent<C> for Warming {
    fn duty_cycle(&mut self, _: &mut Cycle<C>) -> usize {
        self.0
    }
    fn prefetch_hot(&self, round: usize) {
        self.1.borrow_mut().push(round);
    }
}

fn turns_of(agent: &mut impl Agent<VirtualClock>, count: u64) {
    let segment = Region::heap(LOG_OFFSET + 64).words();
    let (mut cycle, status) = (cycle(VirtualClock::default(), &segment), StatusWriter::new(&segment));
    let control = launching().control();
    let mut turns = DutyCycle::begin(agent, &mut cycle, &status);
    for _ in 0..count {
        turns.run_once(agent, &mut cycle, &status, &control);
    }
}

#[test]
fn only_idle_agents_are_prefetched() {
    let (mut idle, mut busy) = (Warming::new(0), Warming::new(1));
    turns_of(&mut idle, 4 * PREFETCH_INTERVAL + 3);
    turns_of(&mut busy, 4 * PREFETCH_INTERVAL + 3);
    assert_eq!((idle.1.into_inner(), busy.1.into_inner()), (vec![1, 2, 3, 4], vec![]));
}

#[test]
fn agents_of_a_thread_are_prefetched_in_turn() {
    let several = (0..3).map(|_| Warming::new(0)).collect::<Vec<_>>();
    let mut pair = (Warming::new(0), (several, Vec::<Warming>::new()));
    turns_of(&mut pair, 9 * PREFETCH_INTERVAL);
    let (one, (several, _)) = pair;
    assert_eq!(one.1.into_inner(), (1..10).collect::<Vec<_>>());
    let several: Vec<_> = several.into_iter().map(|agent| agent.1.into_inner()).collect();
    assert_eq!(several, [vec![1, 2, 3], vec![0, 1, 2], vec![0, 1, 2]], "each has its own rounds");
}
