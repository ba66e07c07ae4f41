//! One round of the test: new memory, correct producers, the scribbler until its time is over or
//! the ring is blocked, its death, and the recovery.

use super::engine::{Engine, ReceivedCounts};
use super::hostile::{self, TALLY};
use super::messages::{PRODUCERS, message};
use crate::common::Run;
use crate::crash::report::TrialCounts;
use protocol::index::StrategyIndex;
use protocol::plan::Role;
use protocol::segments;
use protocol::topology;
use shm::attached::Attached;
use shm::bell::Doorbell;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Region};
use shm::ring::{Consumer, Link, Producer, spsc};
use shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The ring is blocked after this number of pushes of each correct producer, and of empty cycles,
/// without a message.
const BLOCKED_AFTER: u64 = 20_000;
/// The ring works if this number of messages of each correct producer arrive.
const WORKING_MESSAGES: u64 = 100;
/// Maximum duration of a retirement, in duty cycles.
const RETIREMENT: u64 = 2_000;
/// Number of written words after which the scribbler must be detected.
const MAX_UNDETECTED_WORDS: u64 = 1 << 20;

pub struct Round {
    words: u64,
    sent: u64,
    received: ReceivedCounts,
    /// `true` if the ring was blocked before the scribbler's death.
    was_blocked: bool,
    /// After its death: it was retired; messages of the others arrived again; so did those of its
    /// successor.
    retired: bool,
    continued: bool,
    succeeded: bool,
}

const STOP: usize = 0;
const TRIES: usize = 16;

/// Starts a thread that sends numbered messages and receives its returns until the stop flag is
/// set. Returns the number of accepted messages.
fn spawn_correct_producer<P: Producer + 'static>(
    index: usize,
    mut producer: P,
    mut returns: spsc::Consumer,
    bell: Doorbell,
    shared: AtomicWords,
) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let (mut sent, mut returned) = (0, 0);
        for tries in 1.. {
            if producer.try_push(&message(index, sent)).is_ok() {
                sent += 1;
                bell.ring();
            } else if tries % 64 == 0 {
                std::thread::yield_now();
            }
            while let Some(report) = returns.try_pop().expect("only the engine writes a return ring") {
                assert_eq!(report, message(index, returned), "returns arrive whole and in order");
                returned += 1;
            }
            shared[TRIES + index].store(tries, Relaxed);
            if shared[STOP].load(Acquire) == 1 {
                break;
            }
        }
        sent
    })
}

fn header(words: &AtomicWords) -> [u64; HEADER_WORDS] {
    std::array::from_fn(|index| words[index].load(Relaxed))
}

/// The engine, and the state for detecting a blocked ring.
struct RoundState<C> {
    engine: Engine<C>,
    shared: AtomicWords,
    /// The producers' attempts at the last message of a correct producer.
    tries: [u64; PRODUCERS],
}

impl<C: Consumer> RoundState<C> {
    fn cycle(&mut self) {
        self.engine.cycle();
        if self.engine.empty == 0 {
            self.tries = self.tries_now();
        }
    }

    fn tries_now(&self) -> [u64; PRODUCERS] {
        std::array::from_fn(|index| self.shared[TRIES + index].load(Relaxed))
    }

    fn is_blocked(&self) -> bool {
        let now = self.tries_now();
        self.engine.empty > BLOCKED_AFTER
            && (1..PRODUCERS).all(|index| now[index] > self.tries[index] + BLOCKED_AFTER)
    }

    fn reset_progress(&mut self) {
        self.engine.empty = 0;
        self.tries = self.tries_now();
    }

    /// Returns `true` if enough messages of each correct producer arrive.
    fn try_deliver(&mut self) -> bool {
        self.reset_progress();
        let before = self.engine.received.whole;
        while (1..PRODUCERS).any(|index| self.engine.received.whole[index] < before[index] + WORKING_MESSAGES)
        {
            self.cycle();
            if self.is_blocked() {
                return false;
            }
        }
        true
    }
}

impl Round {
    /// Runs one round of about `time`.
    pub fn play<T: Link>(run: &Run, idle: u32, time: Duration) -> Self
    where
        T::Producer: 'static,
    {
        let plan = run.plan();
        let control_writer = segments::create_control(plan, &[]).expect("space");
        let tally = Region::create(&plan.segment_name(TALLY), 16).expect("space").words();
        let mut own = Vec::new();
        for segment in topology::segments(plan) {
            let words = segments::create(plan, &segment.spec).expect("space");
            let own_line = segment.reset_with_role == Some(Role::Strategy(StrategyIndex(0)));
            own.extend(words.filter(|_| own_line).map(|words| (header(&words), words)));
        }

        (0..=PRODUCERS).for_each(|process| control_writer.record_start(process, std::process::id()));
        let mut attached = segments::attach_with(plan, None, &control_writer.control());
        let link = run.link();
        let consumer = attached.consumer::<T>(&link).expect("a link");
        let returns = |attached: &mut Attached<'_>, index| {
            attached.receiver(&format!("return-{index}")).expect("a return ring")
        };
        let shared = Region::heap(64).words();
        let engine = plan.thread_of(Role::Orchestrator).expect("an engine");
        let listener = segments::listener(&mut attached, plan, &plan.threads[engine]).expect("a bell");
        let mut bell = |index| {
            let thread = plan.thread_of(Role::Strategy(index)).expect("a strategy");
            let bell = segments::bell_of(&mut attached, plan, &plan.threads[thread], Role::Orchestrator);
            bell.expect("a bell").expect("the engine parks")
        };
        let mut bells: Vec<Doorbell> = StrategyIndex::first(PRODUCERS as u16).map(&mut bell).collect();
        let mut threads = Vec::new();
        for index in 1..PRODUCERS {
            let producer = attached.producer::<T>(&link, index).expect("a link");
            let returns = returns(&mut attached, index);
            threads.push(spawn_correct_producer(index, producer, returns, bells.remove(1), shared.clone()));
        }
        let engine = Engine {
            consumer,
            received: ReceivedCounts::default(),
            returns: (0..PRODUCERS)
                .map(|index| attached.sender(&format!("return-{index}")).expect("a return ring"))
                .collect(),
            returned: [0; PRODUCERS],
            listener,
            log: segments::attach_log(&mut attached, "strategy-0").expect("a log"),
            cycles: 0,
            empty: 0,
        };
        let mut state = RoundState { engine, shared, tries: [0; PRODUCERS] };
        assert!(state.try_deliver(), "before the scribbler starts");

        let mut child = hostile::start(plan, idle);
        control_writer.record_start(0, child.id());
        while tally[0].load(Relaxed) == 0 {
            state.cycle();
            assert!(child.try_wait().expect("our child").is_none(), "the scribbler ended by itself");
        }
        state.reset_progress();
        let started = Instant::now();
        // Alone in its ring, it is detected eventually; the time alone does not ensure that it ran.
        let is_alone =
            T::segments(&link).iter().any(|spec| spec.kind == shm::ring::spsc::KIND && spec.words > 0);
        let is_detected = |state: &RoundState<T::Consumer>| {
            !is_alone || state.engine.received.is_detected || tally[0].load(Relaxed) > MAX_UNDETECTED_WORDS
        };
        while (started.elapsed() < time || !is_detected(&state)) && !state.is_blocked() {
            state.cycle();
        }
        let was_blocked = state.is_blocked();

        child.kill().expect("our child");
        child.wait().expect("our child");
        let words = tally[0].load(Relaxed);
        let last = state.engine.cycles + RETIREMENT;
        let mut retired = state.engine.consumer.retire(0);
        while !retired && state.engine.cycles < last {
            state.cycle();
            retired = state.engine.consumer.retire(0);
        }
        for (header, words) in &own {
            let new = header.iter().chain(std::iter::repeat(&0));
            words.iter().zip(new).for_each(|(word, value)| word.store(*value, Relaxed));
        }
        if retired {
            control_writer.record_end(0);
            state.engine.consumer.renew(0);
            (state.engine.received.expected[0], state.engine.received.whole[0]) = (0, 0);
        }
        let continued = state.try_deliver();
        // In this process, but attached like a new process.
        control_writer.record_start(0, std::process::id());
        let successor = segments::attach_with(plan, None, &control_writer.control()).producer::<T>(&link, 0);
        let succeeded =
            retired && continued && successor.is_ok_and(|producer| state.try_serve_successor(producer));

        // At the end all messages in flight arrive, or are lost.
        state.shared[STOP].store(1, Release);
        let mut sent = 0;
        for thread in threads {
            while !thread.is_finished() {
                state.cycle();
            }
            sent += thread.join().expect("a correct producer does not fail");
        }
        state.engine.empty = 0;
        while state.engine.empty < BLOCKED_AFTER / 10 {
            state.cycle();
        }
        Self { words, sent, received: state.engine.received, was_blocked, retired, continued, succeeded }
    }

    pub fn count(&self, counts: &mut TrialCounts) {
        for (column, count) in [
            ("rounds", 1),
            ("hostile words", self.words),
            ("sent", self.sent),
            ("whole", self.received.honest()),
            ("lost", self.lost()),
            ("not whole", self.received.damaged),
            ("duplicated", self.received.duplicated),
            ("faults", self.received.faults),
            ("detected", self.received.is_detected.into()),
            ("check failed", (self.received.checks_failed > 0).into()),
            ("blocked", self.was_blocked.into()),
            ("continued", self.continued.into()),
            ("successor", self.succeeded.into()),
        ] {
            counts.add(column, count);
        }
    }

    /// Returns the number of messages of the correct producers that never arrived.
    fn lost(&self) -> u64 {
        self.sent - self.received.honest()
    }

    /// Asserts that the other producers were not affected, and that the hand-off works after the
    /// death.
    pub fn assert_others_unaffected(&self) {
        let ReceivedCounts { duplicated, damaged_of_honest, faults_of_honest, checks_failed, .. } =
            self.received;
        assert_eq!((self.lost(), duplicated, damaged_of_honest), (0, 0, 0), "lost, duplicated, damaged");
        assert_eq!((faults_of_honest, checks_failed), (0, 0), "no correct producer is blamed");
        assert_eq!(
            (self.was_blocked, self.retired, self.continued),
            (false, true, true),
            "the ring works after the death"
        );
        assert!(self.succeeded, "the successor is served");
    }
}

impl<C: Consumer> RoundState<C> {
    /// Returns `true` if messages of a new producer 0 arrive.
    fn try_serve_successor(&mut self, mut producer: impl Producer) -> bool {
        let mut sent = 0;
        self.reset_progress();
        while self.engine.received.whole[0] < WORKING_MESSAGES {
            if sent < WORKING_MESSAGES {
                sent += u64::from(producer.try_push(&message(0, sent)).is_ok());
            }
            self.cycle();
            // Messages of the others arrive, its own do not.
            if self.is_blocked() || (sent == WORKING_MESSAGES && self.engine.received.honest() > 1 << 24) {
                return false;
            }
        }
        true
    }
}
