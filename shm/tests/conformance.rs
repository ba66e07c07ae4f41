//! One suite that every technique passes, from the technique table alone: over named segments as in a run, and over the
//! heap where the technique is memory; with threads, and with real processes.
//!
//! Scribblers are in `hostile.rs`, every order of steps in `loom_*.rs`.
//!
//! The processes are this test binary started again (forking a process with threads is not safe): see [`child`].

#![cfg(not(miri))]

use proptest::prelude::*;
use protocol::segments;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::ring::Technique;
use shm::ring::{Consumer, Link, Place, Producer};
use shm::with_link;
use std::collections::VecDeque;
use std::process::Command;
use std::time::{Duration, Instant};

mod common;
use common::Run;

/// More messages than any bounded technique holds: pipes and sockets are as large as the kernel lets them be.
const MORE_THAN_FITS: u64 = 200_000;
/// Nothing here takes so long unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Both ends over the heap; `None` if the technique is not memory.
fn attach_on_heap<T: Link>(run: &Run) -> Option<(T::Consumer, Vec<T::Producer>)> {
    let specs = T::segments(&run.link());
    let memory = |place| matches!(place, Place::Memory | Place::Reserve);
    if specs.is_empty() || !specs.iter().all(|spec| memory(spec.place)) {
        return None;
    }
    let mut attached = segments::attach(run.plan(), None);
    specs.iter().for_each(|spec| attached.adopt(&spec.what, segments::on_heap(run.plan(), spec)));
    Some(run.attach::<T>(&mut attached))
}

/// Message `n` of a producer: both in every word, so that a torn one shows.
fn message(producer: usize, n: u64) -> Message {
    [(producer as u64) << 48 | n; MESSAGE_WORDS]
}

/// What the consumer has seen of each producer.
struct Ledger {
    next: Vec<u64>,
}

impl Ledger {
    fn new(producers: usize) -> Self {
        Self { next: vec![0; producers] }
    }

    /// Takes what there is; how many that were. Each whole, from whom it says, and the one that was due.
    fn take(&mut self, consumer: &mut impl Consumer) -> u64 {
        let mut taken = 0;
        while let Some((from, got)) = consumer.try_pop() {
            assert_eq!(got, [got[0]; MESSAGE_WORDS], "torn");
            let (producer, n) = ((got[0] >> 48) as usize, got[0] & ((1 << 48) - 1));
            assert!(from.is_none_or(|from| from == producer), "{producer}'s message through {from:?}");
            assert_eq!(n, self.next[producer], "producer {producer}: lost, twice or out of order");
            self.next[producer] += 1;
            taken += 1;
        }
        assert_eq!(consumer.take_fault(), None, "honest producers");
        taken
    }

    /// Takes until everybody has sent that many.
    fn take_all(&mut self, consumer: &mut impl Consumer, each: u64) {
        let started = Instant::now();
        while self.next.iter().any(|n| *n < each) {
            if self.take(consumer) == 0 {
                assert!(started.elapsed() < LIMIT, "stuck at {:?} of {each}", self.next);
                std::thread::yield_now();
            }
        }
        assert_eq!(consumer.try_pop(), None, "nothing more than was sent");
    }
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

fn with_threads<P: Producer>(mut consumer: impl Consumer, producers: Vec<P>, each: u64) {
    let mut ledger = Ledger::new(producers.len());
    std::thread::scope(|scope| {
        for (index, producer) in producers.into_iter().enumerate() {
            scope.spawn(move || push_all(producer, index, each));
        }
        ledger.take_all(&mut consumer, each);
    });
}

#[test]
fn threads_lose_nothing() {
    for technique in Technique::all() {
        for producers in [1, 2, 8] {
            let each = 40_000 / u64::from(producers);
            let run = Run::new(technique, producers, 8);
            println!("{technique}, {producers} producers");
            with_link!(technique, T => {
                let plan = run.create::<T>();
                let (consumer, senders) = run.attach::<T>(&mut segments::attach(plan, None));
                with_threads(consumer, senders, each);
                if let Some((consumer, senders)) = attach_on_heap::<T>(&run) {
                    with_threads(consumer, senders, each);
                }
            });
        }
    }
}

/// Pushes until it is full; how many fitted.
fn fill(producer: &mut impl Producer, index: usize, from: u64) -> u64 {
    (from..from + MORE_THAN_FITS).take_while(|n| producer.try_push(&message(index, *n)).is_ok()).count()
        as u64
}

#[test]
fn full_comes_back_and_goes_again() {
    for technique in Technique::all() {
        println!("{technique}");
        let run = Run::new(technique, 2, 64);
        with_link!(technique, T => {
            let plan = run.create::<T>();
            let (mut consumer, mut producers) = run.attach::<T>(&mut segments::attach(plan, None));
            let mut ledger = Ledger::new(2);
            let mut sent = [0; 2];
            for round in 0..3 {
                for index in [0, 1] {
                    sent[index] += fill(&mut producers[index], index, sent[index]);
                }
                let fits = ledger.take(&mut consumer);
                // Only the standard library's channel has no bound at all.
                assert_eq!(fits == 2 * MORE_THAN_FITS, !technique.record().bounded, "round {round}: {fits}");
                assert!(fits >= 64, "at least the capacity: {fits}");
                assert_eq!(ledger.next, sent, "round {round}: what was refused was not taken");
            }
            // Full is full whoever asks, and one message taken is room for some again.
            if technique.record().bounded {
                sent[0] += fill(&mut producers[0], 0, sent[0]);
                assert!(producers[0].try_push(&message(0, sent[0])).is_err());
                ledger.take(&mut consumer);
                assert!(producers[0].try_push(&message(0, sent[0])).is_ok());
            }
        });
    }
}

/// Plays turns (0 and 1 push, 2 pops, so many times) on a technique and on a queue for each producer.
fn against_a_model<T: Link>(run: &Run, turns: &[(usize, usize)]) {
    let plan = run.create::<T>();
    let (mut consumer, mut producers) = run.attach::<T>(&mut segments::attach(plan, None));
    let mut model: [VecDeque<Message>; 2] = Default::default();
    let mut sent = [0; 2];
    for &(actor, times) in turns {
        for _ in 0..times {
            if actor < 2 {
                let message = message(actor, sent[actor]);
                if producers[actor].try_push(&message).is_ok() {
                    model[actor].push_back(message);
                    sent[actor] += 1;
                } else {
                    assert!(model[0].len() + model[1].len() >= plan.capacity as usize, "full too early");
                }
            } else if let Some((_, got)) = consumer.try_pop() {
                assert_eq!(model[(got[0] >> 48) as usize].pop_front(), Some(got));
            } else {
                assert!(model.iter().all(VecDeque::is_empty), "hides messages");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_technique_is_a_queue_for_each_producer(
        turns in prop::collection::vec((0usize..3, 1usize..40), 1..40),
    ) {
        for technique in Technique::all() {
            println!("{technique}");
            let run = Run::new(technique, 2, 16);
            with_link!(technique, T => against_a_model::<T>(&run, &turns));
        }
    }
}

/// What tells a child what to do: run, producer's index, messages.
const CHILD: &str = "BULKHEAD_CONFORMANCE_CHILD";

/// A producer's process; does nothing when it runs as a test.
#[test]
fn child() {
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
    for technique in Technique::all().into_iter().filter(|technique| technique.crosses_processes()) {
        for producers in [1, 2, 8] {
            println!("{technique}, {producers} producers");
            let each = 20_000 / u64::from(producers);
            let run = Run::new(technique, producers, 64);
            let launching = segments::create_control(run.plan(), &[]).unwrap();
            launching.started(producers.into(), std::process::id());
            with_link!(technique, T => {
                let plan = run.create::<T>();
                let children: Vec<_> = (0..producers)
                    .map(|index| {
                        let child = Command::new(std::env::current_exe().unwrap())
                            .args(["child", "--exact", "--nocapture"])
                            .env(CHILD, format!("{} {index} {each}", plan.run))
                            .stdout(std::process::Stdio::null())
                            .spawn()
                            .unwrap();
                        launching.started(index.into(), child.id());
                        child
                    })
                    .collect();
                // Attached while the children attach, in any order; nobody pushes before we are there, as in a run.
                let mut attached = segments::attach_with(plan, None, &launching.control());
                let mut consumer = attached.consumer::<T>(&run.link()).unwrap();
                launching.go(0);
                Ledger::new(producers.into()).take_all(&mut consumer, each);
                for mut child in children {
                    assert!(child.wait().unwrap().success());
                }
            });
        }
    }
}

/// A successor gets the index of a connection whose producer is dead, once what that had sent is taken; not before.
#[test]
fn a_connection_is_retired_when_it_is_empty() {
    use shm::ring::unix_seqpacket::UnixSeqpacket;
    let run = Run::new(Technique::of::<UnixSeqpacket>(), 2, 8);
    let spec = run.link();
    let mut attached = segments::attach(run.plan(), None);
    let mut consumer = attached.consumer::<UnixSeqpacket>(&spec).unwrap();
    let mut producer = |index: usize| attached.producer::<UnixSeqpacket>(&spec, index).unwrap();
    let (mut dies, mut lives) = (producer(0), producer(1));
    lives.try_push(&message(1, 0)).unwrap();
    // It dies before the consumer has accepted it.
    (0..3).for_each(|n| dies.try_push(&message(0, n)).unwrap());
    drop(dies);
    assert!(!consumer.retire(0));
    // A successor that does not wait for the retirement is refused, as anybody would be.
    let mut early = producer(0);
    assert!(!consumer.retire(0));
    assert!(early.try_push(&message(0, 9)).is_err(), "its connection is closed");
    let mut ledger = Ledger::new(2);
    for taken in 0..3 {
        assert!(!consumer.retire(0), "{taken} of 3");
        while ledger.next[0] == taken {
            let (_, got) = consumer.try_pop().unwrap();
            ledger.next[(got[0] >> 48) as usize] += 1;
        }
    }
    assert!(consumer.retire(0) && consumer.retire(0));
    consumer.revive(0);
    let mut successor = producer(0);
    successor.try_push(&message(0, 3)).unwrap();
    lives.try_push(&message(1, 1)).unwrap();
    let started = Instant::now();
    while ledger.next != [4, 2] {
        assert!(started.elapsed() < LIMIT);
        if let Some((from, got)) = consumer.try_pop() {
            let (producer, n) = ((got[0] >> 48) as usize, got[0] & 0xFF);
            assert_eq!((from, n), (Some(producer), ledger.next[producer]));
            ledger.next[producer] += 1;
        }
    }
}

/// A sender that dies between its message and the wake-up: the sleeper finds the message when its wait ends.
#[test]
fn a_wake_up_lost_to_a_death_costs_a_bounded_wait() {
    use shm::bell::BELL_WORDS;
    use shm::memory::Region;
    use shm::ring::channel::{MAX_WAIT, Receiver, Sender};
    use shm::ring::{Step, array_queue, intent};
    use std::ops::ControlFlow;
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
        // Bounded by `MAX_WAIT` and however long this machine lets us wait for a core.
        assert!(waited < MAX_WAIT + Duration::from_secs(5), "{waited:?}");
    });
}
