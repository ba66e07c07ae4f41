//! Runs the conformance suite (`techniques::conformance`) on every technique and on the faulty
//! rings, plus tests of features that only some techniques have.
//!
//! Hostile peers are tested in `hostile.rs`, every order of steps in `tests/loom`, real processes
//! in `crash` and in the launcher's live runs.

use crate::common::{Run, test_child};
use protocol::segments;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::queue::Queue;
use shm::ring::array_queue::ArrayQueue;
use shm::ring::{Consumer, Link, LinkSpec, Producer};
use std::time::{Duration, Instant};
use techniques::conformance::faulty::{
    DropsMessage, DuplicatesMessage, FaultyRing, HidesMessage, KeepsDeadMemory, ReordersMessages, RingFault,
    SkipsRetirement, TearsMessage,
};
use techniques::conformance::{self, Violation};
use techniques::heap::StdMpsc;
use techniques::{Technique, TechniqueVisitor};

const LIMIT: Duration = Duration::from_secs(120);

struct Suite;

impl TechniqueVisitor for Suite {
    fn visit<L: Link>(&mut self) {
        let started = Instant::now();
        if let Err(failure) = conformance::check::<L>() {
            panic!("{failure}");
        }
        println!("{}: {:.1?}", L::INFO.name, started.elapsed());
    }
}

#[test]
fn every_technique_passes_the_suite() {
    techniques::visit(&mut Suite);
}

struct Capacities(Vec<(&'static str, u64)>);

impl TechniqueVisitor for Capacities {
    fn visit<L: Link>(&mut self) {
        let slots = if L::INFO.exact_capacity { 1_000 } else { 1_024 };
        let spec = LinkSpec { name: "capacity", producers: 1, capacity: slots };
        let Some(capacity) = L::capacity(&spec) else { return };
        let memory = Technique::from_link::<L>().crosses_processes();
        let name = format!("capacity-{}-{}", std::process::id(), L::INFO.name);
        let queue = if memory { Queue::<L>::create(&name, 1, slots) } else { Queue::on_heap(1, slots) };
        let mut queue = queue.unwrap();
        let (_consumer, mut producer) = (queue.consumer().unwrap(), queue.producer(0).unwrap());
        let held = (0..=capacity).take_while(|_| producer.try_push(&[7; MESSAGE_WORDS]).is_ok()).count();
        assert_eq!(held as u64, capacity, "{}", L::INFO.name);
        self.0.push((L::INFO.name, capacity));
    }
}

#[test]
fn queue_holds_as_many_messages_as_declared() {
    let mut found = Capacities(Vec::new());
    techniques::visit(&mut found);
    let exact: Vec<&str> = found.0.iter().filter(|(_, held)| *held == 1_000).map(|(name, _)| *name).collect();
    assert_eq!(
        exact,
        ["crossbeam-channel", "crossbeam-array-queue", "array-queue-mux", "rtrb-mux", "rtrb-pointer-mux"]
    );
}

fn violation_of<L: Link>() -> Violation {
    let failure = conformance::check::<L>().expect_err(L::INFO.name);
    println!("{failure}");
    *failure.violation
}

#[test]
fn suite_detects_each_faulty_ring() {
    assert!(matches!(
        violation_of::<FaultyRing<DuplicatesMessage, ArrayQueue>>(),
        Violation::Duplicated { .. }
    ));
    assert!(matches!(violation_of::<FaultyRing<DropsMessage>>(), Violation::Lost { .. }));
    assert!(matches!(violation_of::<FaultyRing<ReordersMessages, StdMpsc>>(), Violation::Reordered { .. }));
    assert!(matches!(violation_of::<FaultyRing<TearsMessage, ArrayQueue>>(), Violation::Torn { .. }));
    assert!(matches!(violation_of::<FaultyRing<HidesMessage>>(), Violation::Hidden { waiting: 1 }));
    // The other producer's messages are after the slot that the dead producer has claimed.
    assert!(matches!(
        violation_of::<FaultyRing<SkipsRetirement, ArrayQueue>>(),
        Violation::Lost { producer: 1, .. }
    ));
    // The dead producer's messages are left in its ring.
    assert!(matches!(
        violation_of::<FaultyRing<SkipsRetirement>>(),
        Violation::Lost { producer: 0, count: 3, .. }
    ));
    // Its declaration is false.
    assert!(matches!(violation_of::<FaultyRing<ClaimsUnbounded>>(), Violation::Bound { bounded: false, .. }));
    // The dead producer's messages arrive again.
    assert!(matches!(
        violation_of::<FaultyRing<KeepsDeadMemory>>(),
        Violation::Duplicated { producer: 0, .. }
    ));
}

#[test]
fn survey_runs_every_check() {
    let survey = |findings: Vec<conformance::CheckResult>| -> (usize, usize) {
        (findings.len(), findings.iter().filter(|finding| finding.violation.is_some()).count())
    };
    let (checks, violations) = survey(conformance::survey::<StdMpsc>());
    let (checks_of_broken, violations_of_broken) =
        survey(conformance::survey::<FaultyRing<DropsMessage, StdMpsc>>());
    assert_eq!((checks, violations), (checks_of_broken, 0));
    assert!(violations_of_broken > 1, "{violations_of_broken} of {checks}");
}

/// Declares falsely that the ring is never full.
struct ClaimsUnbounded;

impl RingFault for ClaimsUnbounded {
    const NAME: &'static str = "claims-unbounded";
    const BOUNDED: bool = false;
}

/// Has the name of another technique.
struct HasTakenName;

impl RingFault for HasTakenName {
    const NAME: &'static str = "array-queue";
}

/// In a child process, because a registered technique is global to its process.
#[test]
fn program_can_register_its_own_technique() {
    let program = test_child("conformance::child_that_registers_technique").output().unwrap();
    let output = String::from_utf8_lossy(&program.stdout);
    assert!(program.status.success() && output.contains("1 passed"), "{output}");
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn child_that_registers_technique() {
    let registered = Technique::register::<FaultyRing<ClaimsUnbounded>>().unwrap();
    assert_eq!(Technique::from_name("claims-unbounded"), Some(registered));
    assert_eq!(
        Technique::register::<FaultyRing<ClaimsUnbounded>>(),
        Ok(registered),
        "registering again changes nothing"
    );
    assert!(Technique::all().contains(&registered));
    assert!(Technique::register::<FaultyRing<HasTakenName>>().is_err());
}

fn message(producer: usize, n: u64) -> Message {
    [(producer as u64) << 48 | n; MESSAGE_WORDS]
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
    consumer.renew(0);
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

/// A sender dies between its message and the wake-up: the receiver takes the message when its wait
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
            let stop_after_publication = &mut |at| {
                if at == Step::Published { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            assert!(sender.try_push_with(&message(0, 7), stop_after_publication).is_err());
            died
        });
        let got = receiver.pop_timeout(LIMIT).unwrap();
        let waited = dies.join().unwrap().elapsed();
        assert_eq!(got, Some(message(0, 7)));
        // Bounded by `MAX_WAIT` and the scheduling delay of this machine.
        assert!(waited < MAX_WAIT + Duration::from_secs(5), "{waited:?}");
    });
}
