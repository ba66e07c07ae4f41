//! Receivers that are killed while they use messages. `take` and `release` lose nothing and
//! duplicate at most one message for each kill; `pop` duplicates nothing and loses at most one.

use crate::common::test_child;
use shm::queue::{self, Message, Receiver, Sender};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "BULKHEAD_TEST_RECEIVER_QUEUE";
const USES: &str = "BULKHEAD_TEST_RECEIVER_USES";
const PLAN: &str = "BULKHEAD_TEST_RECEIVER_PLAN";
/// A bound for a loaded machine, not a latency.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Messages that a receiver uses before it stops for its kill.
const BEFORE_STOP: u64 = 7;

/// A message of `W` words: the number of its sender, its own number, and words that depend on both.
fn numbered<const W: usize>(sender: u64, n: u64) -> [u64; W] {
    core::array::from_fn(|word| [sender, n][word % 2].wrapping_add(1000 * (word as u64 / 2)))
}

/// Where a receiver stops until it is killed.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Nowhere,
    BeforeUse,
    BeforeRelease,
    AfterRelease,
}

const STOPS: [Stop; 4] = [Stop::Nowhere, Stop::BeforeUse, Stop::BeforeRelease, Stop::AfterRelease];

/// Stops until this process is killed, or its parent ends.
fn wait_for_kill(parent: u32, mut uses: &File) {
    uses.write_all(&[u64::MAX.to_le_bytes(); 2].concat()).unwrap();
    while parent_id() == parent {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::process::exit(0);
}

/// Uses messages: appends each to a file, which survives the process.
fn use_messages<const W: usize>(name: &str, uses: &Path, takes: bool, stop: Stop)
where
    [u64; W]: Message,
{
    let (parent, wait) = (parent_id(), Duration::from_millis(1));
    let uses = OpenOptions::new().append(true).open(uses).unwrap();
    let mut receiver = queue::open::<[u64; W]>(name).unwrap().resume_receiver().unwrap();
    let mut used = 0;
    while parent_id() == parent {
        let stop_at = |point: Stop| {
            if used == BEFORE_STOP && stop == point {
                wait_for_kill(parent, &uses);
            }
        };
        let use_message = |message: &[u64; W]| {
            stop_at(Stop::BeforeUse);
            assert_eq!(*message, numbered(message[0], message[1]));
            (&uses).write_all(&[message[0].to_le_bytes(), message[1].to_le_bytes()].concat()).unwrap();
            stop_at(Stop::BeforeRelease);
        };
        if takes {
            let Some(message) = receiver.take_timeout(wait).unwrap() else { continue };
            use_message(&message);
            message.release();
        } else {
            let Some(message) = receiver.pop_timeout(wait).unwrap() else { continue };
            use_message(&message);
        }
        stop_at(Stop::AfterRelease);
        used += 1;
    }
}

/// A child that uses messages until it is killed: the plan is words, `take` or `pop`, and the stop.
#[test]
#[ignore = "a process of its own"]
fn receiver_of_a_queue() {
    let (name, plan) = (std::env::var(NAME).unwrap(), std::env::var(PLAN).unwrap());
    let uses = PathBuf::from(std::env::var_os(USES).unwrap());
    let plan: Vec<&str> = plan.split(' ').collect();
    let stop = STOPS[plan[2].parse::<usize>().unwrap()];
    match plan[0] {
        "2" => use_messages::<2>(&name, &uses, plan[1] == "take", stop),
        _ => use_messages::<30>(&name, &uses, plan[1] == "take", stop),
    }
}

/// Counts of lost and duplicated messages over all receivers.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    lost: u64,
    duplicated: u64,
}

/// A queue whose receivers are killed one after the other.
struct Trial<const W: usize> {
    name: String,
    uses: PathBuf,
    senders: Vec<Sender<[u64; W]>>,
    pushed: Vec<u64>,
    queue: queue::MessageQueue<[u64; W]>,
}

impl<const W: usize> Trial<W>
where
    [u64; W]: Message,
{
    fn new(folder: &Path, suffix: &str, senders: usize) -> Self {
        let name = format!("test-{}-{suffix}-{W}-{senders}", std::process::id());
        let uses = folder.join(&name);
        File::create(&uses).unwrap();
        let mut queue = queue::mpsc_of::<[u64; W]>(&name, senders, 16).unwrap();
        let senders: Vec<_> = (0..senders).map(|_| queue.sender().unwrap()).collect();
        Self { pushed: vec![0; senders.len()], name, uses, senders, queue }
    }

    fn push(&mut self) {
        for (sender, pushed) in self.senders.iter_mut().zip(&mut self.pushed) {
            while sender.push(&numbered(sender.index() as u64, *pushed)).is_ok() {
                *pushed += 1;
            }
        }
    }

    fn start(&self, mode: &str, stop: usize) -> Child {
        let mut child = test_child("receivers::receiver_of_a_queue");
        child.env(NAME, &self.name).env(USES, &self.uses).env(PLAN, format!("{W} {mode} {stop}"));
        child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The uses so far: number of the sender and of the message.
    fn used(&self) -> Vec<[u64; 2]> {
        let bytes = std::fs::read(&self.uses).unwrap();
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        words.as_chunks::<2>().0.to_vec()
    }

    fn push_until(&mut self, is_met: impl Fn(&[[u64; 2]]) -> bool) {
        let start = Instant::now();
        while !is_met(&self.used()) {
            assert!(start.elapsed() < TIMEOUT, "the receiver uses messages");
            self.push();
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Starts a receiver, lets it use messages until it stops, and kills it.
    fn kill_at(&mut self, mode: &str, stop: usize) {
        let before = self.used().len() as u64;
        let mut child = self.start(mode, stop);
        let has_stopped =
            |used: &[[u64; 2]]| used.len() as u64 > before && used.last() == Some(&[u64::MAX; 2]);
        self.push_until(has_stopped);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Starts a receiver, and kills it once it has used a number of messages, wherever it is.
    fn kill_after(&mut self, mode: &str, uses: u64) {
        let before = self.used().len() as u64;
        let mut child = self.start(mode, 0);
        self.push_until(|used| used.len() as u64 >= before + uses);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Takes the remaining messages, and counts how many were lost and duplicated. Each sender's
    /// messages must have been used in order, a duplicate next to its first use.
    fn outcome(mut self) -> Outcome {
        let mut used = self.used();
        used.retain(|message| *message != [u64::MAX; 2]);
        let mut receiver: Receiver<[u64; W]> = self.queue.resume_receiver().unwrap();
        while let Some(message) = receiver.pop().unwrap() {
            used.push([message[0], message[1]]);
        }
        let mut outcome = Outcome::default();
        let mut next = BTreeMap::<u64, u64>::new();
        for [sender, n] in used {
            let next = next.entry(sender).or_default();
            assert!(n + 1 >= *next, "{n} of sender {sender} came after {next}");
            outcome.duplicated += u64::from(n + 1 == *next);
            outcome.lost += n.saturating_sub(*next);
            *next = n + 1;
        }
        for (sender, pushed) in self.pushed.iter().enumerate() {
            outcome.lost += pushed - next.get(&(sender as u64)).copied().unwrap_or(0);
        }
        outcome
    }
}

/// Kills receivers at each stop, `times` times.
fn killed_at_stops<const W: usize>(mode: &str, senders: usize, times: u64) -> [Outcome; 3]
where
    [u64; W]: Message,
{
    let folder = tempfile::tempdir().unwrap();
    [1, 2, 3].map(|stop| {
        let mut trial = Trial::<W>::new(folder.path(), &format!("{mode}-{stop}"), senders);
        (0..times).for_each(|_| trial.kill_at(mode, stop));
        trial.outcome()
    })
}

/// Before the use, between use and release, and after the release.
#[test]
fn kill_between_take_and_release_loses_nothing() {
    const KILLS: u64 = 5;
    let expected = [Outcome::default(), Outcome { lost: 0, duplicated: KILLS }, Outcome::default()];
    assert_eq!(killed_at_stops::<2>("take", 1, KILLS), expected);
    assert_eq!(killed_at_stops::<30>("take", 3, KILLS), expected);
}

/// The broken variant of the test above, a pop in place of the take: the message that was popped
/// and not used is lost, one for each kill.
#[test]
fn kill_between_pop_and_use_loses_one() {
    const KILLS: u64 = 5;
    let expected = [Outcome { lost: KILLS, duplicated: 0 }, Outcome::default(), Outcome::default()];
    assert_eq!(killed_at_stops::<2>("pop", 1, KILLS), expected);
    assert_eq!(killed_at_stops::<30>("pop", 3, KILLS), expected);
}

/// Kills wherever the receiver happens to be.
fn killed_anywhere<const W: usize>(mode: &str, senders: usize, kills: u64) -> Outcome
where
    [u64; W]: Message,
{
    let folder = tempfile::tempdir().unwrap();
    let mut trial = Trial::<W>::new(folder.path(), mode, senders);
    (0..kills).for_each(|kill| trial.kill_after(mode, 1 + 37 * kill % 200));
    trial.outcome()
}

fn kills() -> u64 {
    std::env::var("BULKHEAD_SLOW").map_or(20, |_| 500)
}

#[test]
fn random_kills_duplicate_at_most_one_taken_message() {
    for outcome in [killed_anywhere::<2>("take", 1, kills()), killed_anywhere::<30>("take", 3, kills())] {
        println!("{} kills of receivers that take and release: {outcome:?}", kills());
        assert!(outcome.lost == 0 && outcome.duplicated <= kills(), "{outcome:?}");
    }
}

#[test]
fn random_kills_lose_at_most_one_popped_message() {
    for outcome in [killed_anywhere::<2>("pop", 1, kills()), killed_anywhere::<30>("pop", 3, kills())] {
        println!("{} kills of receivers that pop: {outcome:?}", kills());
        assert!(outcome.duplicated == 0 && outcome.lost <= kills(), "{outcome:?}");
    }
}
