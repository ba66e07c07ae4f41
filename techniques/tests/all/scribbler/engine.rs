//! The engine's end in the test's process: pops, checks, returns, and reads the memory that the
//! scribbler can write.

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

/// Maximum number of messages per duty cycle.
const MAX_MESSAGES: usize = 32;
/// Number of duty cycles between two checks beyond polling.
const CYCLES_PER_CHECK: u64 = 64;
/// Number of empty cycles before a short sleep.
const EMPTY_CYCLES_BEFORE_SLEEP: u64 = 256;

/// The received messages, and the damage found.
#[derive(Clone, Debug, Default)]
pub struct ReceivedCounts {
    /// Whole messages of each producer, in order or after a gap.
    pub whole: [u64; PRODUCERS],
    /// The next expected number of each producer.
    pub expected: [u64; PRODUCERS],
    /// Whole messages that had already arrived.
    pub duplicated: u64,
    /// Messages that are not whole, or came through another producer's memory.
    pub damaged: u64,
    /// Damaged messages through a correct producer's own memory or connection.
    pub damaged_of_honest: u64,
    /// Faults reported, and those among them that name a correct producer.
    pub faults: u64,
    pub faults_of_honest: u64,
    /// `true` if a fault named producer 0.
    pub is_detected: bool,
    pub checks_failed: u64,
}

impl ReceivedCounts {
    /// Checks a message. Returns `true` if it is whole and of a correct producer.
    fn try_record(&mut self, from: Option<usize>, got: &Message) -> bool {
        let whole = read(got).filter(|(producer, _)| from.is_none_or(|from| from == *producer));
        let Some((producer, n)) = whole else {
            self.damaged += 1;
            self.damaged_of_honest += u64::from(from.is_some_and(|from| from != 0));
            return false;
        };
        if n < self.expected[producer] {
            self.duplicated += u64::from(producer != 0);
            return false;
        }
        self.expected[producer] = n + 1;
        self.whole[producer] += 1;
        producer != 0
    }

    /// Returns the number of whole messages of the correct producers.
    pub fn honest(&self) -> u64 {
        self.whole[1..].iter().sum()
    }
}

/// The consumer and the other ends of the engine.
pub struct Engine<C> {
    pub consumer: C,
    pub received: ReceivedCounts,
    pub returns: Vec<spsc::Producer>,
    pub returned: [u64; PRODUCERS],
    pub listener: Listener,
    pub log: ReadOnlyWords,
    pub cycles: u64,
    /// Number of cycles since the last message of a correct producer.
    pub empty: u64,
}

impl<C: Consumer> Engine<C> {
    /// Runs one duty cycle. The test hangs here if a call does not return.
    pub fn cycle(&mut self) {
        self.cycles += 1;
        self.empty += 1;
        for _ in 0..MAX_MESSAGES {
            let popped = self.consumer.try_pop();
            if let Some((producer, _)) = self.consumer.take_fault() {
                self.received.faults += 1;
                self.received.faults_of_honest += u64::from(producer.is_some_and(|producer| producer != 0));
                self.received.is_detected |= producer == Some(0);
            }
            let Some((from, got)) = popped else { break };
            black_box((Order::from_message(got), Report::from_message(got), Instruction::from_message(got)))
                .0
                .ok();
            if self.received.try_record(from, &got) {
                self.empty = 0;
                self.return_message(got[0] as usize);
            }
        }
        if self.cycles.is_multiple_of(CYCLES_PER_CHECK) {
            self.received.checks_failed += u64::from(self.consumer.check().is_err());
            black_box((self.consumer.allocation(), self.consumer.passed_over()));
            self.return_message(0);
            self.read_log();
        }
        if self.empty % EMPTY_CYCLES_BEFORE_SLEEP == EMPTY_CYCLES_BEFORE_SLEEP - 1 {
            self.listener.arm();
            self.listener.wait(Duration::from_millis(1));
        }
    }

    /// Returns a message to a producer, if its ring is not full.
    fn return_message(&mut self, producer: usize) {
        let report = message(producer, self.returned[producer]);
        self.returned[producer] += u64::from(self.returns[producer].try_push(&report).is_ok());
    }

    /// Reads a log like the launcher and the merge.
    fn read_log(&self) {
        let records = stamps::count_records(&self.log);
        for record in 0..records {
            let at = LOG_OFFSET + record * RECORD_WORDS;
            black_box(Record::from_words(self.log.load(at, Relaxed), self.log.load(at + 1, Relaxed)));
        }
        black_box((stamps::count_point(&self.log, Point::Due), status::read(&self.log).error()));
    }
}
