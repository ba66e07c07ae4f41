//! Runs the conformance suite (`techniques::conformance`) on every technique and on the faulty
//! rings, plus tests with real processes and of features that only some techniques have.
//!
//! Hostile peers are tested in `hostile.rs`, every order of steps in `tests/loom`.
//!
//! The child processes are this test binary started again (forking a process with threads is not
//! safe): see [`the_producer_itself`].

use crate::common::{Run, itself};
use protocol::segments;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::ring::array_queue::ArrayQueue;
use shm::ring::{Consumer, Link, Producer};
use std::time::{Duration, Instant};
use techniques::conformance::faulty::{
    DropsMessage, DuplicatesMessage, FaultyRing, HidesMessage, KeepsDeadMemory, ReordersMessages, RingFault,
    SkipsRetirement, TearsMessage,
};
use techniques::conformance::{self, Violation};
use techniques::std_mpsc::StdMpsc;
use techniques::with_link;
use techniques::{Technique, TechniqueVisitor};

/// Timeout of a test that hangs.
const LIMIT: Duration = Duration::from_secs(120);

struct Suite;

impl TechniqueVisitor for Suite {
    fn visit<L: Link>(&mut self) {
        let begun = Instant::now();
        if let Err(failure) = conformance::check::<L>() {
            panic!("{failure}");
        }
        println!("{}: {:.1?}", L::INFO.name, begun.elapsed());
    }
}

#[test]
fn every_technique_passes_the_suite() {
    techniques::visit(&mut Suite);
}

/// Returns the violation that the suite finds in a faulty ring.
fn found<L: Link>() -> Violation {
    let failure = conformance::check::<L>().expect_err(L::INFO.name);
    println!("{failure}");
    *failure.violation
}

#[test]
fn suite_detects_each_faulty_ring() {
    assert!(matches!(found::<FaultyRing<DuplicatesMessage>>(), Violation::Duplicated { .. }));
    assert!(matches!(found::<FaultyRing<DropsMessage>>(), Violation::Lost { .. }));
    assert!(matches!(found::<FaultyRing<ReordersMessages>>(), Violation::Reordered { .. }));
    assert!(matches!(found::<FaultyRing<TearsMessage>>(), Violation::Torn { .. }));
    assert!(matches!(found::<FaultyRing<HidesMessage>>(), Violation::Hidden { waiting: 1 }));
    // The other producer's messages are after the slot that the dead producer has claimed.
    assert!(matches!(
        found::<FaultyRing<SkipsRetirement, ArrayQueue>>(),
        Violation::Lost { producer: 1, .. }
    ));
    // The dead producer's messages arrive again.
    assert!(matches!(found::<FaultyRing<KeepsDeadMemory>>(), Violation::Duplicated { producer: 0, .. }));
}

#[test]
fn suite_detects_faults_of_any_ring() {
    assert!(matches!(found::<FaultyRing<DuplicatesMessage, ArrayQueue>>(), Violation::Duplicated { .. }));
    assert!(matches!(found::<FaultyRing<DropsMessage, StdMpsc>>(), Violation::Lost { .. }));
    assert!(matches!(found::<FaultyRing<TearsMessage, ArrayQueue>>(), Violation::Torn { .. }));
    assert!(matches!(found::<FaultyRing<ReordersMessages, StdMpsc>>(), Violation::Reordered { .. }));
}

#[test]
fn survey_runs_every_check() {
    let survey = |findings: Vec<conformance::CheckResult>| -> (usize, usize) {
        (findings.len(), findings.iter().filter(|finding| finding.violation.is_some()).count())
    };
    let (all, none) = survey(conformance::survey::<StdMpsc>());
    let (of_broken, found) = survey(conformance::survey::<FaultyRing<DropsMessage, StdMpsc>>());
    assert_eq!((all, none), (of_broken, 0));
    assert!(found > 1, "{found} of {all}");
}

/// Declares falsely that the ring is never full.
struct Boasts;

impl RingFault for Boasts {
    const NAME: &'static str = "boasts";
    const BOUNDED: bool = false;
}

/// Has the name of another technique.
struct Taken;

impl RingFault for Taken {
    const NAME: &'static str = "array-queue";
}

#[test]
fn false_declaration_is_detected() {
    assert!(matches!(found::<FaultyRing<Boasts>>(), Violation::Bound { bounded: false, .. }));
}

/// In a child process, because a registered technique is global to its process.
#[test]
fn program_can_register_its_own_technique() {
    let program = itself("conformance::child_registering_a_technique").output().unwrap();
    let said = String::from_utf8_lossy(&program.stdout);
    assert!(program.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "the other test starts it, as a process of its own"]
fn child_registering_a_technique() {
    let registered = Technique::register::<FaultyRing<Boasts>>().unwrap();
    assert_eq!(Technique::from_name("boasts"), Some(registered));
    assert_eq!(Technique::register::<FaultyRing<Boasts>>(), Ok(registered), "again is nothing new");
    assert!(Technique::all().contains(&registered));
    assert!(Technique::register::<FaultyRing<Taken>>().is_err());
}

/// Message `n` of a producer.
fn message(producer: usize, n: u64) -> Message {
    [(producer as u64) << 48 | n; MESSAGE_WORDS]
}

/// Receives until each producer has sent `each` messages, whole and in order.
fn take_all(consumer: &mut impl Consumer, producers: usize, each: u64) {
    let (started, mut next) = (Instant::now(), vec![0; producers]);
    while next.iter().any(|n| *n < each) {
        let Some((from, got)) = consumer.try_pop() else {
            assert!(started.elapsed() < LIMIT, "stuck at {next:?} of {each}");
            std::thread::yield_now();
            continue;
        };
        let producer = (got[0] >> 48) as usize;
        assert!(from.is_none_or(|from| from == producer), "{producer}'s message through {from:?}");
        assert_eq!(got, message(producer, next[producer]), "torn, lost, twice or out of order");
        next[producer] += 1;
    }
    assert_eq!((consumer.try_pop(), consumer.take_fault()), (None, None));
}

fn push_all(mut producer: impl Producer, index: usize, count: u64) {
    let started = Instant::now();
    for n in 0..count {
        while producer.try_push(&message(index, n)).is_err() {
            assert!(started.elapsed() < LIMIT, "full for ever at {n}");
            std::thread::yield_now();
        }
    }
}

/// The environment variable with a child's parameters: run, producer's index, messages.
const CHILD: &str = "BULKHEAD_CONFORMANCE_CHILD";

/// The child process of a producer.
#[test]
#[ignore = "the other test starts it, as a process of its own"]
fn the_producer_itself() {
    let Ok(orders) = std::env::var(CHILD) else { return };
    let words: Vec<&str> = orders.split(' ').collect();
    let (index, count) = (words[1].parse().unwrap(), words[2].parse().unwrap());
    let (control, plan) = segments::open_control(words[0]).unwrap();
    with_link!(plan.technique, T => {
        let mut attached = segments::attach_with(&plan, None, &control);
        let producer = attached.producer::<T>(&segments::submit_link(&plan), index).unwrap();
        control.wait_for_go();
        push_all(producer, index, count);
    });
}

#[test]
fn processes_lose_nothing() {
    for &technique in Technique::built_in().iter().filter(|technique| technique.crosses_processes()) {
        for producers in [1, 2, 8] {
            println!("{technique}, {producers} producers");
            let each = 20_000 / u64::from(producers);
            let run = Run::new(technique, producers, 64);
            let launching = segments::create_control(run.plan(), &[]).unwrap();
            launching.record_start(producers.into(), std::process::id());
            with_link!(technique, T => {
                let plan = run.create::<T>();
                let children: Vec<_> = (0..producers)
                    .map(|index| {
                        let child = itself("conformance::the_producer_itself")
                            .env(CHILD, format!("{} {index} {each}", plan.run))
                            .stdout(std::process::Stdio::null())
                            .spawn()
                            .unwrap();
                        launching.record_start(index.into(), child.id());
                        child
                    })
                    .collect();
                // Attached while the children attach, in any order; no child pushes before the
                // start, as in a run.
                let mut attached = segments::attach_with(plan, None, &launching.control());
                let mut consumer = attached.consumer::<T>(&run.link()).unwrap();
                launching.go(0);
                take_all(&mut consumer, producers.into(), each);
                for mut child in children {
                    assert!(child.wait().unwrap().success());
                }
            });
        }
    }
}

/// A successor gets the index of a dead producer's connection only after its messages are taken.
#[test]
fn connection_is_retired_once_drained() {
    use techniques::unix_seqpacket::UnixSeqpacket;
    let run = Run::new(Technique::from_link::<UnixSeqpacket>(), 2, 8);
    let spec = run.link();
    let mut attached = segments::attach(run.plan(), None);
    let mut consumer = attached.consumer::<UnixSeqpacket>(&spec).unwrap();
    let mut producer = |index: usize| attached.producer::<UnixSeqpacket>(&spec, index).unwrap();
    let (mut dies, mut lives) = (producer(0), producer(1));
    lives.try_push(&message(1, 0)).unwrap();
    // The producer dies before the consumer has accepted its connection.
    (0..3).for_each(|n| dies.try_push(&message(0, n)).unwrap());
    drop(dies);
    assert!(!consumer.retire(0));
    // A successor that does not wait for the retirement is refused.
    let mut early = producer(0);
    assert!(!consumer.retire(0));
    assert!(early.try_push(&message(0, 9)).is_err(), "its connection is closed");
    let mut next = [0; 2];
    for taken in 0..3 {
        assert!(!consumer.retire(0), "{taken} of 3");
        while next[0] == taken {
            let (_, got) = consumer.try_pop().unwrap();
            next[(got[0] >> 48) as usize] += 1;
        }
    }
    assert!(consumer.retire(0) && consumer.retire(0));
    consumer.revive(0);
    let mut successor = producer(0);
    successor.try_push(&message(0, 3)).unwrap();
    lives.try_push(&message(1, 1)).unwrap();
    let started = Instant::now();
    while next != [4, 2] {
        assert!(started.elapsed() < LIMIT);
        if let Some((from, got)) = consumer.try_pop() {
            let (producer, n) = ((got[0] >> 48) as usize, got[0] & 0xFF);
            assert_eq!((from, n), (Some(producer), next[producer]));
            next[producer] += 1;
        }
    }
}

/// A sender dies between its message and the wake-up: the sleeper finds the message when its wait
/// ends.
#[test]
fn lost_wake_up_costs_bounded_wait() {
    use shm::bell::BELL_WORDS;
    use shm::memory::Region;
    use shm::ring::{Step, array_queue, intent};
    use std::ops::ControlFlow;
    use techniques::channel::{MAX_WAIT, Receiver, Sender};
    let ring = Region::heap(array_queue::ring_words(8, MESSAGE_WORDS)).words();
    array_queue::write_header::<MESSAGE_WORDS>(&ring, 8);
    let (waker, intents) = (Region::heap(BELL_WORDS).words(), intent::on_heap(1));
    let mut sender = Sender::<MESSAGE_WORDS>::attach(&ring, &intents[0], &waker).unwrap();
    let mut receiver = Receiver::<MESSAGE_WORDS>::attach(&ring, intents.clone(), &waker).unwrap();
    std::thread::scope(|scope| {
        let dies = scope.spawn(move || {
            std::thread::sleep(5 * MAX_WAIT);
            let died = Instant::now();
            let at_its_end = &mut |at| {
                if at == Step::Published { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            assert!(sender.try_push_with(&message(0, 7), at_its_end).is_err());
            died
        });
        let got = receiver.pop_timeout(LIMIT).unwrap();
        let waited = dies.join().unwrap().elapsed();
        assert_eq!(got, Some(message(0, 7)));
        // Bounded by `MAX_WAIT` and the scheduling delay of this machine.
        assert!(waited < MAX_WAIT + Duration::from_secs(5), "{waited:?}");
    });
}
