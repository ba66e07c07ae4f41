//! What a role says about its part of a run, in a segment that it alone writes; and the check of what a consumer took.
//!
//! A consumer has the latency of each event behind its figures, in ticks, in the order in which it took them.

use shm::memory::header::HEADER_WORDS;
use shm::memory::{SegmentKind, View, Words};
use shm::ring::{Ends, MESSAGE_WORDS, Message, SegmentPlace, SegmentSpec};
use shm::sync::Ordering;

/// Where each figure is.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Field {
    /// [`READY`] or [`DONE`].
    State = HEADER_WORDS,
    /// Events pushed or taken so far: whoever sees it stand still sees a role that does.
    Count = HEADER_WORDS + 16,
    /// The tick of the first event, and that of the last.
    Begin = HEADER_WORDS + 32,
    End,
    Cpu,
    Voluntary,
    Involuntary,
    Looks,
    Wakes,
    LongestWait,
    /// Wrapping sum of the events' checks.
    Sum,
    /// Whose first word is no producer's, or whose check is wrong.
    Damaged,
    /// Behind one of the same producer that came before it.
    Disordered,
    /// Numbers that were passed over.
    Missing,
}

/// The events of each producer in the first half that a consumer took.
const SHARES: usize = HEADER_WORDS + 48;
/// The latencies.
const LATENCIES: usize = SHARES + MOST as usize;
const KIND: SegmentKind = SegmentKind::new(
    41,
    "lab-account",
    &[("count", Field::Count as usize), ("shares", SHARES), ("latencies", LATENCIES)],
);

/// The role waits for the start.
pub(super) const READY: u64 = 1;
/// It is done, and all its figures are there.
pub(super) const DONE: u64 = 2;

/// The most producers, and the most consumers.
pub(super) const MOST: u16 = 64;

/// The segment of a role that takes so many events, or none.
pub(super) fn segment(role: &str, events: u64) -> SegmentSpec {
    memory(format!("lab.{role}"), LATENCIES + events as usize, KIND)
}

/// A segment of memory of so many words.
pub(super) fn memory(what: String, words: usize, kind: SegmentKind) -> SegmentSpec {
    SegmentSpec {
        what,
        place: SegmentPlace::Memory,
        words,
        kind,
        capacity: 1,
        slot_words: 1,
        index: 0,
        ends: Ends::NONE,
    }
}

/// A role's own account.
pub(super) struct Account(Words);

impl Account {
    /// Over the words of its segment.
    pub(super) fn attach(attached: &mut shm::attached::Attached<'_>, role: &str) -> anyhow::Result<Self> {
        Ok(Self(attached.region(&format!("lab.{role}"), KIND)?.words()))
    }

    #[cfg(test)]
    pub(super) fn on_heap(events: usize) -> Self {
        Self(shm::memory::Region::heap(LATENCIES + events).words())
    }

    #[inline(always)]
    pub(super) fn set(&self, field: Field, value: u64) {
        // Relaxed: shown by the Release store of the state.
        self.0[field as usize].store(value, Ordering::Relaxed);
    }

    pub(super) fn set_state(&self, state: u64) {
        // Release: pairs with the Acquire load in `Said::state`; what is said before is there.
        self.0[Field::State as usize].store(state, Ordering::Release);
    }

    fn set_word(&self, word: usize, value: u64) {
        // Relaxed: as in `set`. A word that is not there is left: a broken queue may give more than was sent.
        if let Some(place) = self.0.get(word) {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// The account as the launcher reads it.
    #[cfg(test)]
    pub(super) fn said(&self) -> Said {
        Said(self.0.clone().into())
    }
}

/// An account as somebody else reads it.
pub(super) struct Said(pub(super) View);

impl Said {
    pub(super) fn state(&self) -> u64 {
        // Acquire: pairs with `Account::set_state`.
        self.0.load(Field::State as usize, Ordering::Acquire)
    }

    pub(super) fn get(&self, field: Field) -> u64 {
        self.0.load(field as usize, Ordering::Relaxed)
    }

    pub(super) fn shares(&self, producers: u16) -> Vec<u64> {
        (0..usize::from(producers)).map(|index| self.0.load(SHARES + index, Ordering::Relaxed)).collect()
    }

    /// The latencies in ticks.
    pub(super) fn latencies(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.get(Field::Count).min((self.0.len() - LATENCIES) as u64) as usize;
        (0..count).map(|index| self.0.load(LATENCIES + index, Ordering::Relaxed))
    }
}

/// What tells an event from every other one.
#[inline(always)]
fn check_of(producer: u64, number: u64, stamp: u64) -> u64 {
    let mixed =
        (number ^ producer.rotate_left(48) ^ stamp.rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// An event: producer, number, the tick at which it was made, its check, filler, and the check again, so that an event put
/// together of two shows.
#[inline(always)]
pub(super) fn event(producer: u64, number: u64, stamp: u64) -> (Message, u64) {
    let check = check_of(producer, number, stamp);
    let mut message = [number; MESSAGE_WORDS];
    (message[0], message[2], message[3], message[MESSAGE_WORDS - 1]) = (producer, stamp, check, check);
    (message, check)
}

/// Conservation and order of what a consumer takes.
pub(super) struct Ledger<'a> {
    account: &'a Account,
    /// The number that is due from each producer.
    due: Vec<u64>,
    /// Taken so far.
    taken: u64,
    /// Events that were taken in their order or passed over: as many as there are when nothing more is due.
    pub reached: u64,
    half: u64,
    sum: u64,
    damaged: u64,
    disordered: u64,
    missing: u64,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(account: &'a Account, producers: u16, total: u64) -> Self {
        let due = vec![0; producers.into()];
        Self {
            account,
            due,
            taken: 0,
            reached: 0,
            half: total.div_ceil(2),
            sum: 0,
            damaged: 0,
            disordered: 0,
            missing: 0,
        }
    }

    /// Takes an event at that tick; `from` is the producer that the queue says it is of.
    #[inline(always)]
    pub(super) fn take(&mut self, from: Option<usize>, message: &Message, now: u64) {
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
        self.account.set_word(LATENCIES + self.taken as usize, now.saturating_sub(stamp));
        self.taken += 1;
        self.account.set(Field::Count, self.taken);
        if self.taken == self.half {
            self.at_half();
        }
    }

    #[cold]
    fn at_half(&self) {
        for (index, due) in self.due.iter().enumerate() {
            self.account.set_word(SHARES + index, *due);
        }
    }

    /// Writes what was found into the account.
    pub(super) fn close(&self) {
        self.account.set(Field::Sum, self.sum);
        self.account.set(Field::Damaged, self.damaged);
        self.account.set(Field::Disordered, self.disordered);
        self.account.set(Field::Missing, self.missing);
    }
}

/// What does not hold between what was pushed and what a consumer took; empty: every event came once, whole and in its
/// producer's order.
pub(super) fn problems(name: &str, said: &Said, pushed: u64, sum: u64) -> Vec<String> {
    let found = [
        (said.get(Field::Damaged), "events damaged or of no producer"),
        (said.get(Field::Disordered), "events doubled or behind a later one of their producer"),
        (said.get(Field::Missing), "events passed over"),
    ];
    let mut problems: Vec<String> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{name}: {count} {what}"))
        .collect();
    let taken = said.get(Field::Count);
    if taken != pushed {
        problems.push(format!("{name}: {taken} events taken of {pushed} pushed"));
    } else if said.get(Field::Sum) != sum {
        problems.push(format!("{name}: the sum of what was taken is not that of what was pushed"));
    }
    problems
}
