//! The engine's end in the test's process: pops, judges, returns, and looks at what the scribbler
//! can write.

use super::messages::{PRODUCERS, message, read};
use protocol::stamps::{self, Point, RECORD_WORDS, Record};
use protocol::status::{self, LOG_OFFSET};
use protocol::wire::{Instruction, Message, Order, Report};
use shm::bell::Listener;
use shm::memory::ReadOnlyWords;
use shm::ring::{Consumer, spsc};
use shm::sync::Ordering::Relaxed;
use std::hint::black_box;
use std::time::Duration;

/// Messages in a duty cycle at most.
const AT_ONCE: usize = 32;
/// Between two looks at what polling does not show, in duty cycles.
const SELDOM: u64 = 64;
/// Empty cycles before a short sleep.
const PATIENCE: u64 = 256;

/// What came, and what must not.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whole messages of each producer, each in its turn or behind a gap.
    pub whole: [u64; PRODUCERS],
    /// The number of the next one.
    pub due: [u64; PRODUCERS],
    /// Whole, but before its turn: a message that came already.
    pub doubled: u64,
    /// Not whole, or through another one's memory.
    pub damaged: u64,
    /// The same, but through an honest producer's own memory or connection.
    pub damaged_of_honest: u64,
    /// Faults that were taken, and those among them that name an honest producer.
    pub faults: u64,
    pub faults_of_honest: u64,
    /// Whether producer 0 was named.
    pub is_found_out: bool,
    /// How often a check has failed.
    pub checks_failed: u64,
}

impl Seen {
    /// Judges a message; whether it was an honest one's, whole.
    fn judge(&mut self, from: Option<usize>, got: &Message) -> bool {
        let whole = read(got).filter(|(producer, _)| from.is_none_or(|from| from == *producer));
        let Some((producer, n)) = whole else {
            self.damaged += 1;
            self.damaged_of_honest += u64::from(from.is_some_and(|from| from != 0));
            return false;
        };
        if n < self.due[producer] {
            self.doubled += u64::from(producer != 0);
            return false;
        }
        self.due[producer] = n + 1;
        self.whole[producer] += 1;
        producer != 0
    }

    /// Whole messages of the honest.
    pub fn honest(&self) -> u64 {
        self.whole[1..].iter().sum()
    }
}

/// The consumer and what else the engine has.
pub struct Engine<C> {
    pub consumer: C,
    pub seen: Seen,
    pub returns: Vec<spsc::Producer>,
    pub returned: [u64; PRODUCERS],
    pub listener: Listener,
    /// The scribbler's log.
    pub log: ReadOnlyWords,
    pub cycles: u64,
    /// Cycles since something honest came.
    pub empty: u64,
}

impl<C: Consumer> Engine<C> {
    /// One duty cycle. All that it calls returns, or the test hangs here.
    pub fn cycle(&mut self) {
        self.cycles += 1;
        self.empty += 1;
        for _ in 0..AT_ONCE {
            let popped = self.consumer.try_pop();
            if let Some((producer, _)) = self.consumer.take_fault() {
                self.seen.faults += 1;
                self.seen.faults_of_honest += u64::from(producer.is_some_and(|producer| producer != 0));
                self.seen.is_found_out |= producer == Some(0);
            }
            let Some((from, got)) = popped else { break };
            black_box((Order::from_message(got), Report::from_message(got), Instruction::from_message(got)))
                .0
                .ok();
            if self.seen.judge(from, &got) {
                self.empty = 0;
                self.give_back(got[0] as usize);
            }
        }
        if self.cycles.is_multiple_of(SELDOM) {
            self.seen.checks_failed += u64::from(self.consumer.check().is_err());
            black_box((self.consumer.allocation(), self.consumer.passed_over()));
            self.give_back(0);
            self.read_log();
        }
        if self.empty % PATIENCE == PATIENCE - 1 {
            self.listener.arm();
            self.listener.wait(Duration::from_millis(1));
        }
    }

    /// Returns something to a producer, if its ring has room.
    fn give_back(&mut self, producer: usize) {
        let report = message(producer, self.returned[producer]);
        self.returned[producer] += u64::from(self.returns[producer].try_push(&report).is_ok());
    }

    /// What the launcher and the merge make of a log.
    fn read_log(&self) {
        let records = stamps::count_records(&self.log);
        for record in 0..records {
            let at = LOG_OFFSET + record * RECORD_WORDS;
            black_box(Record::from_words(self.log.load(at, Relaxed), self.log.load(at + 1, Relaxed)));
        }
        black_box((stamps::count_point(&self.log, Point::Due), status::read(&self.log).error()));
    }
}
