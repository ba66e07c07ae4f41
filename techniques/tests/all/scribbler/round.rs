//! One round of the test: new memory, correct producers, the scribbler until its time is over or
//! the ring is blocked, its death, and the recovery.

use super::engine::{Engine, Seen};
use super::hostile::{self, TALLY};
use super::messages::{PRODUCERS, message};
use crate::common::Run;
use crate::crash::report::TrialCounts;
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
const STANDSTILL: u64 = 20_000;
/// The ring works if this number of messages of each correct producer arrive.
const GOES_ON: u64 = 100;
/// Maximum duration of a retirement, in duty cycles.
const RETIREMENT: u64 = 2_000;
/// Number of written words after which the scribbler must be detected.
const ENOUGH: u64 = 1 << 20;

pub struct Round {
    words: u64,
    sent: u64,
    seen: Seen,
    /// `true` if the ring was blocked before the scribbler's death.
    stood: bool,
    /// After its death: it was retired; messages of the others arrived again; so did those of its
    /// successor.
    retired: bool,
    went_on: bool,
    succeeded: bool,
}

const STOP: usize = 0;
const TRIES: usize = 16;

/// Starts a thread that sends numbered messages and receives its returns until the stop flag is
/// set. Returns the number of accepted messages.
fn honest<P: Producer + 'static>(
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
            while let Some(report) = returns.try_pop().expect("nobody else writes an honest one's returns") {
                assert_eq!(report, message(index, returned), "returns come whole and in order");
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
    std::array::from_fn(|place| words[place].load(Relaxed))
}

/// The engine, and the state for detecting a blocked ring.
struct Scene<C> {
    engine: Engine<C>,
    shared: AtomicWords,
    /// The producers' attempts at the last message of a correct producer.
    tries: [u64; PRODUCERS],
}

impl<C: Consumer> Scene<C> {
    fn cycle(&mut self) {
        self.engine.cycle();
        if self.engine.empty == 0 {
            self.tries = self.tries_now();
        }
    }

    fn tries_now(&self) -> [u64; PRODUCERS] {
        std::array::from_fn(|index| self.shared[TRIES + index].load(Relaxed))
    }

    fn stands(&self) -> bool {
        let now = self.tries_now();
        self.engine.empty > STANDSTILL
            && (1..PRODUCERS).all(|index| now[index] > self.tries[index] + STANDSTILL)
    }

    fn look_again(&mut self) {
        self.engine.empty = 0;
        self.tries = self.tries_now();
    }

    /// Returns `true` if enough messages of each correct producer arrive.
    fn try_deliver(&mut self) -> bool {
        self.look_again();
        let before = self.engine.seen.whole;
        while (1..PRODUCERS).any(|index| self.engine.seen.whole[index] < before[index] + GOES_ON) {
            self.cycle();
            if self.stands() {
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
        let launching = segments::create_control(plan, &[]).expect("room");
        let tally = Region::create(&plan.segment_name(TALLY), 16).expect("room").words();
        let mut own = Vec::new();
        for segment in topology::segments(plan) {
            let words = segments::create(plan, &segment.spec).expect("room");
            let own_line = segment.reset_with_role == Some(Role::Strategy(0));
            own.extend(words.filter(|_| own_line).map(|words| (header(&words), words)));
        }

        (0..=PRODUCERS).for_each(|process| launching.record_start(process, std::process::id()));
        let mut attached = segments::attach_with(plan, None, &launching.control());
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
        let mut bells: Vec<Doorbell> = (0..PRODUCERS as u16).map(&mut bell).collect();
        let mut threads = Vec::new();
        for index in 1..PRODUCERS {
            let producer = attached.producer::<T>(&link, index).expect("a link");
            let returns = returns(&mut attached, index);
            threads.push(honest(index, producer, returns, bells.remove(1), shared.clone()));
        }
        let engine = Engine {
            consumer,
            seen: Seen::default(),
            returns: (0..PRODUCERS)
                .map(|index| attached.sender(&format!("return-{index}")).expect("a return ring"))
                .collect(),
            returned: [0; PRODUCERS],
            listener,
            log: segments::log(&mut attached, "strategy-0").expect("a log"),
            cycles: 0,
            empty: 0,
        };
        let mut scene = Scene { engine, shared, tries: [0; PRODUCERS] };
        assert!(scene.try_deliver(), "before anybody scribbles");

        let mut child = hostile::start(plan, idle);
        launching.record_start(0, child.id());
        while tally[0].load(Relaxed) == 0 {
            scene.cycle();
            assert!(child.try_wait().expect("our child").is_none(), "the scribbler ended by itself");
        }
        scene.look_again();
        let begun = Instant::now();
        // Alone in its ring, it is detected eventually; the time alone does not ensure that it ran.
        let is_alone =
            T::segments(&link).iter().any(|spec| spec.kind == shm::ring::spsc::KIND && spec.words > 0);
        let found_out = |scene: &Scene<T::Consumer>| {
            !is_alone || scene.engine.seen.is_found_out || tally[0].load(Relaxed) > ENOUGH
        };
        while (begun.elapsed() < time || !found_out(&scene)) && !scene.stands() {
            scene.cycle();
        }
        let stood = scene.stands();

        child.kill().expect("our child");
        child.wait().expect("our child");
        let words = tally[0].load(Relaxed);
        let last = scene.engine.cycles + RETIREMENT;
        let mut retired = scene.engine.consumer.retire(0);
        while !retired && scene.engine.cycles < last {
            scene.cycle();
            retired = scene.engine.consumer.retire(0);
        }
        for (header, words) in &own {
            let new = header.iter().chain(std::iter::repeat(&0));
            words.iter().zip(new).for_each(|(word, value)| word.store(*value, Relaxed));
        }
        if retired {
            launching.record_end(0);
            scene.engine.consumer.revive(0);
            (scene.engine.seen.due[0], scene.engine.seen.whole[0]) = (0, 0);
        }
        let went_on = scene.try_deliver();
        // In this process, but attached like a new process.
        launching.record_start(0, std::process::id());
        let successor = segments::attach_with(plan, None, &launching.control()).producer::<T>(&link, 0);
        let succeeded =
            retired && went_on && successor.is_ok_and(|producer| scene.try_serve_successor(producer));

        // The end: all messages in flight arrive, or are lost.
        scene.shared[STOP].store(1, Release);
        let mut sent = 0;
        for thread in threads {
            while !thread.is_finished() {
                scene.cycle();
            }
            sent += thread.join().expect("an honest producer sees nothing wrong");
        }
        scene.engine.empty = 0;
        while scene.engine.empty < STANDSTILL / 10 {
            scene.cycle();
        }
        Self { words, sent, seen: scene.engine.seen, stood, retired, went_on, succeeded }
    }

    pub fn count(&self, counts: &mut TrialCounts) {
        for (column, count) in [
            ("rounds", 1),
            ("hostile words", self.words),
            ("sent", self.sent),
            ("whole", self.seen.honest()),
            ("lost", self.lost()),
            ("not whole", self.seen.damaged),
            ("doubled", self.seen.doubled),
            ("faults", self.seen.faults),
            ("found out", self.seen.is_found_out.into()),
            ("check failed", (self.seen.checks_failed > 0).into()),
            ("stood still", self.stood.into()),
            ("went on", self.went_on.into()),
            ("successor", self.succeeded.into()),
        ] {
            counts.add(column, count);
        }
    }

    /// Returns the number of messages of the correct producers that never arrived.
    fn lost(&self) -> u64 {
        self.sent - self.seen.honest()
    }

    /// Asserts that the other producers were not affected, and that the hand-off works after the
    /// death.
    pub fn assert_apart(&self) {
        let Seen { doubled, damaged_of_honest, faults_of_honest, checks_failed, .. } = self.seen;
        assert_eq!((self.lost(), doubled, damaged_of_honest), (0, 0, 0), "lost, doubled, damaged");
        assert_eq!((faults_of_honest, checks_failed), (0, 0), "the honest are not accused");
        assert_eq!((self.stood, self.retired, self.went_on), (false, true, true), "it goes on");
        assert!(self.succeeded, "and serves the successor");
    }
}

impl<C: Consumer> Scene<C> {
    /// Returns `true` if messages of a new producer 0 arrive.
    fn try_serve_successor(&mut self, mut producer: impl Producer) -> bool {
        let mut sent = 0;
        self.look_again();
        while self.engine.seen.whole[0] < GOES_ON {
            if sent < GOES_ON {
                sent += u64::from(producer.try_push(&message(0, sent)).is_ok());
            }
            self.cycle();
            // Messages of the others arrive, its own do not.
            if self.stands() || (sent == GOES_ON && self.engine.seen.honest() > 1 << 24) {
                return false;
            }
        }
        true
    }
}
