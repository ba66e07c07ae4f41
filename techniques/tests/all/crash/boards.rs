//! Stops and deaths of a board's writer at every instruction of a write: the readers' view, and the
//! state for a successor.

use super::bed;
use super::commands::{BOARD, BOARD_CELL, board_value};
use super::victim::{Role, Victim, commands};
use crate::common::Run;
use protocol::plan::Plan;
use protocol::segments;
use shm::board::{BoardShape, KIND, LogPoll, Reader, Writer};
use shm::memory::{AtomicWords, Header, Region};
use shm::ring::spsc_mux::SpscMux;
use shm::sync::Ordering::Relaxed;
use std::collections::BTreeSet;
use techniques::Technique;

/// Returns the tested shapes: a small cell, one with its own cache lines, and a log.
fn shapes() -> Vec<BoardShape> {
    [(2, 2), (5, 2), (32, 4), (3, 8)]
        .map(|(words, slots)| BoardShape::with_slots(2, words, slots).expect("a shape"))
        .to_vec()
}

/// Copies the words to the heap: the state that a death here would leave.
fn copy(words: &AtomicWords) -> AtomicWords {
    let copy = Region::heap(words.len()).words();
    copy.iter().zip(words.iter()).for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
    copy
}

/// Returns the cell's version. Its value must be whole, and so must every older one that the log
/// still has.
fn checked_version(memory: &AtomicWords) -> u64 {
    let reader = Reader::attach(&memory.clone().into()).expect("a board");
    let shape = reader.shape();
    let mut into = vec![0; shape.words()];
    let version = reader.version(BOARD_CELL);
    match reader.try_read(BOARD_CELL, &mut into).expect("no write is in progress") {
        None => assert_eq!(version, 0),
        Some(stamp) => {
            assert_eq!((stamp.version, stamp.ticks), (version, version));
            assert_eq!(into, board_value(version, shape.words()), "whole");
        }
    }
    let mut follower = reader.follow(BOARD_CELL, version.saturating_sub(shape.slots() as u64 - 1));
    while let LogPoll::Entry(stamp) = follower.next(&mut into).expect("an honest writer") {
        assert_eq!(into, board_value(stamp.version, shape.words()), "whole");
    }
    assert_eq!(follower.seen(), version, "no entry is missed");
    version
}

fn check_successor(memory: &AtomicWords, version: u64) {
    let mut successor = Writer::attach(memory).expect("a board");
    assert_eq!(successor.version(BOARD_CELL), version);
    for next in version + 1..=version + 10 {
        let value = board_value(next, successor.shape().words());
        assert_eq!(successor.write(BOARD_CELL, next, &value), next);
        assert_eq!(checked_version(memory), next);
    }
}

struct Trial<'a> {
    plan: &'a Plan,
    memory: AtomicWords,
    commands: AtomicWords,
}

impl<'a> Trial<'a> {
    fn new(run: &'a Run, shape: BoardShape) -> Self {
        let plan = run.plan();
        let memory = Region::create(&plan.segment_name(BOARD), shape.segment_words()).expect("space").words();
        shape.write_header(&memory, Header::anonymous(KIND, 0, 0, 0, 0));
        Self { plan, memory, commands: commands(plan, Role::Board) }
    }

    fn start(&self) -> Victim {
        Victim::start(self.plan, Role::Board, &self.commands, |_| ())
    }
}

#[test]
fn board_writer_may_die_at_every_instruction() {
    if let Some(reason) = super::victim::refusal() {
        return println!("SKIPPED, NOTHING WAS PROVED: {reason}");
    }
    let (mut boundaries, mut kills) = (0, 0);
    for shape in shapes() {
        let run = bed::run(Technique::from_link::<SpscMux>());
        let _control = segments::create_control(run.plan(), &[]).expect("space");
        let trial = Trial::new(&run, shape);
        // Every boundary of each of these writes, around all slots.
        let mut changes = BTreeSet::new();
        let mut victim = trial.start();
        for version in 1..=shape.slots() as u64 + 2 {
            victim.begin();
            let mut boundary = 0;
            let mut before = contents(&trial.memory);
            while victim.at().is_some() {
                let visible = checked_version(&trial.memory);
                assert!(
                    visible == version - 1 || visible == version,
                    "{visible} is visible while {version} is written"
                );
                check_successor(&copy(&trial.memory), visible);
                victim.step(1);
                boundary += 1;
                let now = contents(&trial.memory);
                if now != before && version == 3 {
                    changes.insert(boundary);
                }
                before = now;
            }
            boundaries += boundary;
            victim.finish();
            assert_eq!(checked_version(&trial.memory), version);
        }
        let version = checked_version(&trial.memory);
        drop(victim);
        // Real deaths, after every instruction that changed the memory; each successor is a
        // process.
        assert!(changes.len() >= shape.words() + 2, "each store is an instruction of its own");
        let mut version = version;
        for boundary in changes {
            let mut victim = trial.start();
            victim.begin();
            victim.step_at_most(boundary);
            let visible = checked_version(&trial.memory);
            let _death = victim.kill();
            assert_eq!(checked_version(&trial.memory), visible, "a death changes nothing");
            assert!(visible == version || visible == version + 1);
            check_successor(&copy(&trial.memory), visible);
            version = visible;
            kills += 1;
        }
    }
    println!("a board's writer: {boundaries} boundaries, {kills} deaths, nothing torn, nothing to repair");
    assert!(boundaries > 500 && kills > 40);
}

fn contents(memory: &AtomicWords) -> Vec<u64> {
    memory.iter().map(|word| word.load(Relaxed)).collect()
}
