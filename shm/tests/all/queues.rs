//! Typed queues between processes that are killed: counts, order, and nothing left in `/dev/shm`.

use crate::common::test_child;
use shm::memory::SHM_DIR;
use shm::memory::sealed::{inherited_by, take_inherited};
use shm::queue::{self, MessageQueue, ProducerState, QueueError, Receiver};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::os::unix::process::parent_id;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "BULKHEAD_TEST_QUEUE";
const NUMBER: &str = "BULKHEAD_TEST_QUEUE_NUMBER";
const ROLE: &str = "BULKHEAD_TEST_QUEUE_ROLE";
/// A bound for a loaded machine, not a latency.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Number of the sender, number of the message, and words that depend on both.
type Numbered = [u64; 30];

fn numbered(sender: u64, n: u64) -> Numbered {
    core::array::from_fn(|word| match word {
        0 => sender,
        1 => n,
        word => n.wrapping_mul(word as u64) ^ sender,
    })
}

fn name(suffix: &str) -> String {
    format!("test-{}-{suffix}", std::process::id())
}

fn files(name: &str) -> usize {
    let entries = std::fs::read_dir(SHM_DIR).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|file| file.starts_with(&format!("{}{name}.", queue::PREFIX))).count()
}

/// A child that attaches the end that its environment names, and uses it until its parent exits.
#[test]
#[ignore = "a process of its own"]
fn queue_end() {
    let variable = |name| std::env::var(name).unwrap();
    let (name, number, role) = (variable(NAME), variable(NUMBER).parse().unwrap(), variable(ROLE));
    let parent = parent_id();
    let alive = || parent_id() == parent;
    if role == "creator" {
        let mut queue = queue::mpsc::<Numbered>(&name, 64).unwrap();
        let _receiver = queue.receiver().unwrap();
        while alive() {
            std::thread::sleep(Duration::from_millis(1));
        }
        return;
    }
    let mut queue = match name.split_once(' ') {
        // Two inherited descriptors.
        Some((memory, pipe)) => {
            let fds = [memory, pipe].map(|fd| take_inherited(fd.parse().unwrap()).unwrap());
            queue::from_fds::<Numbered>(fds).unwrap()
        }
        None => queue::open::<Numbered>(&name).unwrap(),
    };
    if role == "receiver" {
        let mut receiver = queue.receiver().unwrap();
        let mut taken = 0;
        while alive() {
            // Stops after some, and stays attached.
            if taken < number && receiver.pop_timeout(Duration::from_millis(1)).unwrap().is_some() {
                taken += 1;
                println!("taken {taken}");
            }
        }
        return;
    }
    let mut sender = if role == "heir" { queue.resume_sender(0) } else { queue.sender() }.unwrap();
    for n in 0.. {
        while sender.push(&numbered(number, n)).is_err() {
            if !alive() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

fn command(name: &str, number: u64, role: &str) -> Command {
    let mut child = test_child("queues::queue_end");
    child.env(NAME, name).env(NUMBER, number.to_string()).env(ROLE, role);
    child.stdout(Stdio::null()).stderr(Stdio::null());
    child
}

fn start(name: &str, number: u64, role: &str) -> Child {
    command(name, number, role).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn wait_until(condition: &str, mut is_met: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_met() {
        assert!(start.elapsed() < TIMEOUT, "{condition}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Messages received of each sender: whole, in order and without a gap.
#[derive(Default)]
struct Received(BTreeMap<u64, u64>);

impl Received {
    fn add(&mut self, message: &Numbered) {
        let next = self.0.entry(message[0]).or_default();
        assert_eq!(message, &numbered(message[0], *next));
        *next += 1;
    }

    fn take(&mut self, receiver: &mut Receiver<Numbered>, count: usize) {
        for _ in 0..count {
            let message = receiver.pop_timeout(TIMEOUT).unwrap().expect("a sender pushes");
            self.add(&message);
        }
    }

    fn drain(&mut self, receiver: &mut Receiver<Numbered>) {
        // Bounded: the senders may push as fast as this loop pops.
        for _ in 0..1_000 {
            let Some(message) = receiver.pop().unwrap() else { return };
            self.add(&message);
        }
    }
}

#[test]
fn killed_senders_are_dead_and_their_messages_arrive() {
    let name = name("senders");
    let mut queue = queue::mpsc_of::<Numbered>(&name, 3, 64).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let mut received = Received::default();
    let mut first_sender = start(&name, 1_000, "sender");
    wait_until("the first sender attaches", || receiver.producers().unwrap()[0] != ProducerState::Free);
    for number in 0..5 {
        let child = start(&name, number, "sender");
        received.take(&mut receiver, 200);
        wait_until("the second sender attaches", || receiver.producers().unwrap()[1] != ProducerState::Free);
        let pid = u64::from(child.id());
        assert_eq!(receiver.producers().unwrap()[1], ProducerState::Alive { pid });
        kill(child);
        assert_eq!(receiver.producers().unwrap()[1], ProducerState::Dead { pid });
        wait_until("the ring of a dead sender can be drained", || {
            received.drain(&mut receiver);
            receiver.renew(1).unwrap()
        });
    }
    let before = received.0[&1_000];
    received.take(&mut receiver, 200);
    assert_eq!(received.0[&1_000], before + 200, "the first sender continues");
    first_sender.kill().unwrap();
    first_sender.wait().unwrap();
    drop((receiver, queue));
    assert_eq!(files(&name), 0);
}

/// A death wakes no receiver: the wait ends empty at its timeout, and the state tells why.
#[test]
fn sender_death_does_not_end_a_wait() {
    const WAIT: Duration = Duration::from_millis(50);
    let name = name("waits");
    let mut queue = queue::spsc::<Numbered>(&name, 16).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let child = start(&name, 0, "sender");
    wait_until("the sender attaches", || receiver.producers().unwrap()[0] != ProducerState::Free);
    let pid = u64::from(child.id());
    let killer = std::thread::spawn(move || {
        std::thread::sleep(WAIT / 2);
        kill(child);
    });
    while receiver.producers().unwrap() == [ProducerState::Alive { pid }] {
        let start = Instant::now();
        if receiver.pop_timeout(WAIT).unwrap().is_none() {
            assert!(start.elapsed() >= WAIT, "a death does not end it early");
        }
    }
    killer.join().unwrap();
    while receiver.pop().unwrap().is_some() {}
    let start = Instant::now();
    assert_eq!(receiver.pop_timeout(WAIT), Ok(None));
    assert!(start.elapsed() >= WAIT);
    assert_eq!(receiver.producers().unwrap(), [ProducerState::Dead { pid }]);
}

#[test]
fn killed_sender_is_inherited_while_the_receiver_polls() {
    let name = name("heirs");
    let mut queue = queue::spsc::<Numbered>(&name, 16).unwrap();
    replace_senders(&mut queue, |number, role| start(&name, number, role));
    drop(queue);
    assert_eq!(files(&name), 0);
}

#[test]
fn killed_sender_of_sealed_queue_is_inherited() {
    let mut queue = queue::sealed::<Numbered>(1, 16).unwrap();
    let fds = queue.fds().unwrap().map(|fd| fd.try_clone_to_owned().unwrap());
    let numbers = format!("{} {}", fds[0].as_raw_fd(), fds[1].as_raw_fd());
    replace_senders(&mut queue, |number, role| {
        inherited_by(&fds, || command(&numbers, number, role).spawn()).unwrap()
    });
}

fn replace_senders(queue: &mut MessageQueue<Numbered>, start: impl Fn(u64, &str) -> Child) {
    let mut receiver = queue.receiver().unwrap();
    let mut received = Received::default();
    for number in 0..6 {
        let child = start(number, if number == 0 { "sender" } else { "heir" });
        let before = received.0.get(&number).copied();
        assert_eq!(before, None);
        wait_until("the sender pushes", || {
            received.drain(&mut receiver);
            received.0.get(&number).is_some_and(|count| *count > 100)
        });
        kill(child);
    }
    received.drain(&mut receiver);
    assert_eq!(received.0.len(), 6);
}

#[test]
fn killed_receiver_is_replaced_without_loss() {
    let name = name("receivers");
    let mut queue: MessageQueue<Numbered> = queue::spsc(&name, 64).unwrap();
    let mut sender = queue.sender().unwrap();
    for count in [0, 7, 20] {
        let full = (0..).take_while(|n| sender.push(&numbered(count, *n)).is_ok()).count() as u64;
        let mut pushed = full;
        let child = start(&name, count, "receiver");
        wait_until("the receiver attaches and takes its messages", || {
            while sender.push(&numbered(count, pushed)).is_ok() {
                pushed += 1;
            }
            queue.has_receiver().unwrap() && pushed == full + count
        });
        kill(child);
        let mut receiver = match queue.receiver() {
            Err(QueueError::ReceiverCrashed(_)) => queue.resume_receiver().unwrap(),
            // Killed between taking its lock and attaching: nothing is left to resume.
            Ok(receiver) if count == 0 => receiver,
            other => panic!("a crashed receiver is not recognized: {:?}", other.err()),
        };
        let first = receiver.pop().unwrap().expect("the queue was full");
        // The message that it was taking may come again; none is missing.
        let mut next = first[1];
        assert!(first == numbered(count, next) && next <= count, "{next} of {count}");
        while let Some(message) = receiver.pop().unwrap() {
            next += 1;
            assert_eq!(message, numbered(count, next));
        }
        assert_eq!(next + 1, pushed);
    }
    drop((sender, queue));
    assert_eq!(files(&name), 0);
}

#[test]
fn queue_of_killed_creator_is_replaced() {
    let name = name("creator");
    let child = start(&name, 0, "creator");
    let mut sender = None;
    wait_until("it creates the queue", || {
        sender = queue::open::<Numbered>(&name).and_then(|mut queue| queue.sender()).ok();
        sender.is_some()
    });
    assert!(matches!(queue::spsc::<Numbered>(&name, 8), Err(QueueError::Living(_))));
    kill(child);
    assert!(files(&name) > 0);
    let mut queue = queue::spsc::<u64>(&name, 8).unwrap();
    let mut receiver = queue.receiver().unwrap();
    assert!(sender.unwrap().push(&numbered(0, 0)).is_ok(), "into memory that no other process maps");
    assert_eq!(receiver.pop(), Ok(None));
    drop((receiver, queue));
    assert_eq!(files(&name), 0);
}
