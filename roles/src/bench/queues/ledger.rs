//! Events of the queue benchmark, and the check of a consumer: each event once, whole and in its
//! producer's order.
//!
//! After its figures an account has the latency of each event in ticks, in order of consumption.

use super::super::account::{AccountView, AgentAccount, Field};
use shm::ring::{MESSAGE_WORDS, Message};
use shm::sync::Ordering;

/// A result of one end of a queue, stored in its result segment.
#[derive(Clone, Copy, Debug)]
pub enum LabField {
    /// Number of times that the end had to wait.
    Looks,
    /// Number of returns from a yield or a sleep.
    Wakes,
    /// Longest wait of a producer for a free slot, in ticks.
    LongestWait,
    /// The wrapping sum of the events' checks.
    Sum,
    /// Events with a wrong checksum or an unknown producer.
    Damaged,
    /// Events after a later one of the same producer.
    Disordered,
    /// Skipped event numbers.
    Missing,
}

/// Maximum number of producers, and of consumers, in a queue benchmark.
pub const MAX_ENDS: u16 = 64;
/// The events of each producer in the first half that a consumer took.
const SHARES: usize = 16;
const LATENCIES: usize = SHARES + MAX_ENDS as usize;

/// Returns the size in words of a queue end's results, if it takes `events` events.
pub const fn account_words(events: u64) -> usize {
    LATENCIES + events as usize
}

/// Stores a result of one end of a queue.
#[inline(always)]
pub fn set(account: &AgentAccount, field: LabField, value: u64) {
    account.set_own(field as usize, value);
}

/// Loads a result of one end of a queue.
pub fn get(account: &AccountView, field: LabField) -> u64 {
    account.own().load(field as usize, Ordering::Relaxed)
}

/// Returns how many events of each producer were in the first half of those that a consumer took.
/// `producers` is the number of producers.
pub fn shares(account: &AccountView, producers: u16) -> Vec<u64> {
    let own = account.own();
    (0..usize::from(producers)).map(|index| own.load(SHARES + index, Ordering::Relaxed)).collect()
}

/// Returns the latencies of the events that a consumer took, in ticks.
pub fn latencies(account: &AccountView) -> impl Iterator<Item = u64> {
    let own = account.own();
    let count = account.get(Field::Count).min((own.len() - LATENCIES) as u64) as usize;
    (0..count).map(move |index| own.load(LATENCIES + index, Ordering::Relaxed))
}

/// Returns the checksum of an event.
#[inline(always)]
fn check_of(producer: u64, number: u64, stamp: u64) -> u64 {
    let mixed =
        (number ^ producer.rotate_left(48) ^ stamp.rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// Returns the words of an event and its checksum. They are producer, number, tick, checksum,
/// filler, and the checksum again, so that a mixture of two events is found.
#[inline(always)]
pub fn event(producer: u64, number: u64, stamp: u64) -> (Message, u64) {
    let check = check_of(producer, number, stamp);
    let mut message = [number; MESSAGE_WORDS];
    (message[0], message[2], message[3], message[MESSAGE_WORDS - 1]) = (producer, stamp, check, check);
    (message, check)
}

/// Checks that a consumer takes each event once, whole and in its producer's order.
pub struct Ledger<'a> {
    account: &'a AgentAccount,
    /// Expected next number of each producer.
    due: Vec<u64>,
    /// Events taken so far.
    taken: u64,
    /// Events taken in order or skipped: all events, when nothing more is expected.
    pub reached: u64,
    half: u64,
    sum: u64,
    damaged: u64,
    disordered: u64,
    missing: u64,
}

impl<'a> Ledger<'a> {
    /// Creates the check of a consumer that must take `total` events.
    pub fn new(account: &'a AgentAccount, producers: u16, total: u64) -> Self {
        let (due, half) = (vec![0; producers.into()], total.div_ceil(2));
        Self { account, due, taken: 0, reached: 0, half, sum: 0, damaged: 0, disordered: 0, missing: 0 }
    }

    /// Checks and counts an event taken at tick `now`; `from` is the producer that the queue
    /// reports.
    #[inline(always)]
    pub fn take(&mut self, from: Option<usize>, message: &Message, now: u64) {
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
        self.account.set_own(LATENCIES + self.taken as usize, now.saturating_sub(stamp));
        self.taken += 1;
        self.account.set(Field::Count, self.taken);
        if self.taken == self.half {
            self.store_shares();
        }
    }

    #[cold]
    fn store_shares(&self) {
        for (index, due) in self.due.iter().enumerate() {
            self.account.set_own(SHARES + index, *due);
        }
    }

    /// Stores the check's counts in the consumer's result segment.
    pub fn close(&self) {
        set(self.account, LabField::Sum, self.sum);
        set(self.account, LabField::Damaged, self.damaged);
        set(self.account, LabField::Disordered, self.disordered);
        set(self.account, LabField::Missing, self.missing);
    }
}

/// Compares the events that were pushed with those that a consumer took, and describes each
/// problem. Returns the violations; empty if each event came once, whole and in its producer's
/// order.
pub fn problems(name: &str, account: &AccountView, pushed: u64, sum: u64) -> Vec<String> {
    let found = [
        (LabField::Damaged, "events damaged or of no producer"),
        (LabField::Disordered, "events doubled or behind a later one of their producer"),
        (LabField::Missing, "events passed over"),
    ];
    let mut problems: Vec<String> = found
        .iter()
        .map(|(field, what)| (get(account, *field), what))
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{name}: {count} {what}"))
        .collect();
    let taken = account.get(Field::Count);
    if taken != pushed {
        problems.push(format!("{name}: {taken} events taken of {pushed} pushed"));
    } else if get(account, LabField::Sum) != sum {
        problems.push(format!("{name}: the sum of what was taken is not that of what was pushed"));
    }
    problems
}
