//! Events of the queue benchmark, and the check of a consumer: each event once, whole and in its
//! producer's order.

use protocol::benchmark::LATENCIES;
use protocol::counters::AgentSlot;
use protocol::labels::ConsumerCounter;
use shm::memory::AtomicWords;
use shm::ring::{MESSAGE_WORDS, Message};
use shm::sync::Ordering;

/// Returns the checksum of an event.
#[inline(always)]
fn check_of(producer: u64, number: u64, stamp: u64) -> u64 {
    let mixed =
        (number ^ producer.rotate_left(48) ^ stamp.rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// Builds the message of one event of the queue benchmark, and returns it with its checksum. The
/// message's words are producer, number, tick, checksum, filler, and the checksum again, so that a
/// mixture of two events is found.
#[inline(always)]
pub fn event(producer: u64, number: u64, stamp: u64) -> (Message, u64) {
    let check = check_of(producer, number, stamp);
    let mut message = [number; MESSAGE_WORDS];
    (message[0], message[2], message[3], message[MESSAGE_WORDS - 1]) = (producer, stamp, check, check);
    (message, check)
}

/// A check in the queue benchmark that a consumer takes each event exactly once, undamaged and in
/// its producer's order.
pub struct Ledger<'a> {
    results: &'a AtomicWords,
    /// Expected next number of each producer.
    due: Vec<u64>,
    /// Events taken so far.
    taken: u64,
    /// Number of events taken in order or skipped; equal to the number of all events when nothing
    /// more is expected.
    pub reached: u64,
    half: u64,
    sum: u64,
    damaged: u64,
    disordered: u64,
    missing: u64,
}

impl<'a> Ledger<'a> {
    /// Creates the check of a queue's consumer that must take `total` events.
    pub fn new(results: &'a AtomicWords, producers: u16, total: u64) -> Self {
        let (due, half) = (vec![0; producers.into()], total.div_ceil(2));
        Self { results, due, taken: 0, reached: 0, half, sum: 0, damaged: 0, disordered: 0, missing: 0 }
    }

    /// Checks an event that the consumer took at the tick `now`; `from` is the producer that the
    /// queue reports. Returns the number of events taken so far.
    #[inline(always)]
    pub fn check_event(&mut self, from: Option<usize>, message: &Message, now: u64) -> u64 {
        let [producer, number, stamp, check, .., last] = *message;
        let is_whole = check_of(producer, number, stamp) == check && check == last;
        let is_from = from.is_none_or(|from| from as u64 == producer);
        match self.due.get_mut(producer as usize).filter(|_| is_whole && is_from) {
            None => self.damaged += 1,
            Some(due) if number < *due => self.disordered += 1,
            Some(due) => {
                let passed_over = number - *due;
                self.missing = self.missing.saturating_add(passed_over);
                self.reached = self.reached.saturating_add(passed_over).saturating_add(1);
                *due = number.saturating_add(1);
            }
        }
        self.sum = self.sum.wrapping_add(check);
        self.store(LATENCIES + self.taken as usize, now.saturating_sub(stamp));
        self.taken += 1;
        if self.taken == self.half {
            self.store_shares();
        }
        self.taken
    }

    /// Stores a word of the results. Ignores an index outside of them: a broken queue may deliver
    /// more events than were sent.
    #[inline(always)]
    fn store(&self, index: usize, value: u64) {
        // Relaxed: published by the Release store of the thread's state.
        if let Some(word) = self.results.get(index) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[cold]
    fn store_shares(&self) {
        for (index, due) in self.due.iter().enumerate() {
            self.store(index, *due);
        }
    }

    /// Stores the checksum and the numbers of damaged, disordered and missing events in the
    /// consumer's counters.
    pub fn close(&self, counters: &AgentSlot<'_>) {
        for (counter, value) in [
            (ConsumerCounter::Checksum, self.sum),
            (ConsumerCounter::Damaged, self.damaged),
            (ConsumerCounter::Disordered, self.disordered),
            (ConsumerCounter::Missing, self.missing),
        ] {
            counters.set(counter, value);
        }
    }
}
