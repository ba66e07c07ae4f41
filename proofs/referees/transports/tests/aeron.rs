//! Properties of `aeron` beyond the contract of a technique.

#![cfg(feature = "aeron")]

use core::ops::ControlFlow;
use launcher::shm::attached::{Access, Attached, Peers, Source};
use launcher::shm::memory::sealed::Handle;
use launcher::shm::memory::{directory, unlink};
use launcher::shm::queue::{MAX_PRODUCERS, PREFIX, Queue};
use launcher::shm::ring::{Consumer, Link, LinkSpec, Message, PeerFault, Producer, Step};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use transports::aeron::{Aeron, Receiver};

const PATIENCE: Duration = Duration::from_secs(60);
/// Capacity of the queue per producer.
const CAPACITY: u32 = 512;
/// More than fit into four terms: their ends are passed, and the log is gone through once.
const MESSAGES: u64 = 8 * CAPACITY as u64 * 3;

fn message(producer: usize, n: u64) -> Message {
    [producer as u64, n, 2, 3, 4, 5, !n]
}

fn name_of(what: &str) -> String {
    format!("transports-aeron-{what}-{}", std::process::id())
}

/// A message, which must come.
fn taken(consumer: &mut Receiver) -> (Option<usize>, Message) {
    let since = Instant::now();
    loop {
        if let Some(taken) = consumer.try_pop() {
            return taken;
        }
        assert_eq!(consumer.take_fault(), None);
        assert!(since.elapsed() < PATIENCE, "no message comes");
        std::thread::yield_now();
    }
}

fn logs(queue: &str) -> Vec<File> {
    let publications = directory::path(&format!("{PREFIX}{queue}.queue")).join("aeron/publications");
    publications.read_dir().unwrap().map(|log| File::open(log.unwrap().path()).unwrap()).collect()
}

/// Bytes of `/dev/shm` that each takes, the smallest first.
fn sizes(logs: &[File]) -> Vec<u64> {
    let mut sizes: Vec<u64> = logs.iter().map(|log| log.metadata().unwrap().blocks() * 512).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn dead_producers_messages_are_drained_and_log_released() {
    let name = name_of("dead");
    let mut queue = Queue::<Aeron>::create(&name, 3, CAPACITY).unwrap();
    let mut consumer = queue.consumer().unwrap();
    let (mut dies, mut lives) = (queue.producer(0).unwrap(), queue.producer(1).unwrap());
    let push_and_take = |n| {
        // An empty poll calls the driver if it is due, so the next one does not.
        assert_eq!(consumer.try_pop(), None);
        dies.try_push(&message(0, n)).unwrap();
        assert_eq!(
            consumer.try_pop(),
            Some((Some(0), message(0, n))),
            "at once, over the end of a term as well"
        );
    };
    (0..MESSAGES).for_each(push_and_take);
    let waiting = MESSAGES..MESSAGES + u64::from(CAPACITY);
    waiting.clone().for_each(|n| dies.try_push(&message(0, n)).unwrap());
    let broken = dies.try_push_with(&message(0, 0), &mut |step| match step {
        Step::HalfWritten => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(broken.is_err());
    // As a process does that is killed: nothing is closed.
    core::mem::forget(dies);
    lives.try_push(&message(1, 0)).unwrap();
    let logs_then = logs(&name);
    let before = sizes(&logs_then);
    assert!(before.len() == 2 && before[0] > 3 * 65536, "{before:?}");
    let mut due = waiting.start;
    let mut others = 0..;
    while !consumer.retire(0) {
        let (from, got) = taken(&mut consumer);
        if from == Some(0) {
            assert_eq!(got, message(0, due));
            due += 1;
        } else {
            assert_eq!((from, got), (Some(1), message(1, others.next().unwrap())));
        }
    }
    assert_eq!(due, waiting.end, "all that it had sent, and nothing half-written");
    let theirs = name.clone();
    let late = std::thread::spawn(move || Queue::<Aeron>::open(&theirs).unwrap().producer(2));
    while !late.is_finished() {
        if let Some(taken) = consumer.try_pop() {
            assert_eq!(taken, (Some(1), message(1, others.next().unwrap())));
        }
    }
    let _third = late.join().unwrap().unwrap();
    let after = sizes(&logs_then);
    assert!(after[0] <= 4096 && after[1] == before[1], "{before:?} {after:?}");
    assert_eq!(logs(&name).len(), 2, "that of the dead has no name any more, and the third has one");
    for n in 1..MESSAGES {
        lives.try_push(&message(1, n)).unwrap();
        assert_eq!(taken(&mut consumer), (Some(1), message(1, others.next().unwrap())));
    }
}

/// The last one that a queue can have: a session's number is negative there.
#[test]
fn producer_attaching_during_poll_is_received() {
    const LAST: usize = MAX_PRODUCERS - 1;
    let name = name_of("late");
    let mut queue = Queue::<Aeron>::create(&name, MAX_PRODUCERS, 64).unwrap();
    let mut consumer = queue.consumer().unwrap();
    assert_eq!(consumer.try_pop(), None);
    let late = std::thread::spawn(move || {
        let mut queue = Queue::<Aeron>::open(&name).unwrap();
        let mut producer = queue.producer(LAST).unwrap();
        producer.try_push(&message(LAST, 7)).unwrap();
        producer
    });
    assert_eq!(taken(&mut consumer), (Some(LAST), message(LAST, 7)));
    drop(late.join().unwrap());
}

/// As a run's, in which no process is known.
struct Nobodys(String);

impl Peers for Nobodys {
    fn producer(&self, _: usize) -> Option<u32> {
        None
    }

    fn consumer(&self) -> Option<u32> {
        None
    }
}

impl Source for Nobodys {
    fn name(&self, what: &str) -> String {
        format!("{}.{what}", self.0)
    }

    fn run(&self) -> u64 {
        0
    }

    fn right(&self, _: &str) -> Option<Access> {
        Some(Access::Write)
    }

    fn handles(&self) -> &[Handle] {
        &[]
    }

    fn peers(&self, _: &str) -> Box<dyn Peers> {
        Box::new(Nobodys(String::new()))
    }
}

#[test]
fn process_of_unknown_pid_is_a_stranger() {
    let name = name_of("stranger");
    let spec = LinkSpec { name: "queue", producers: 1, capacity: 64 };
    let mut attached = Attached::new(Nobodys(name.clone()));
    let made = attached.name(spec.name);
    directory::create(&made).unwrap();
    let mut consumer = Aeron::consumer(&spec, &mut attached).unwrap();
    let mut producer = Aeron::producer(&spec, 0, &mut attached).unwrap();
    producer.try_push(&message(0, 0)).unwrap();
    let since = Instant::now();
    let fault = loop {
        assert_eq!(consumer.try_pop(), None);
        if let Some(fault) = consumer.take_fault() {
            break fault;
        }
        assert!(since.elapsed() < PATIENCE);
    };
    assert_eq!(fault, (None, PeerFault::Stranger { pid: std::process::id().into() }));
    drop((producer, consumer));
    unlink(&made).unwrap();
    assert!(!Path::new("/dev/shm").join(made).exists());
}

#[test]
fn producer_without_consumer_is_refused() {
    let mut queue = Queue::<Aeron>::create(&name_of("alone"), 1, 64).unwrap();
    let error = queue.producer(0).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("reach its media driver") && error.contains("cnc.dat"), "{error}");
}
