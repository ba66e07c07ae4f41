//! Compares the messages sent with those that arrived, for the checks of the suite.

use super::Violation;
use shm::ring::{Consumer, MESSAGE_WORDS, Message};
use std::collections::BTreeSet;

/// Number of bits of a message's number.
const NUMBER_BITS: u32 = 48;

/// Creates the `n`th test message of the producer with this index. Each word is derived from the
/// first one and its index, so that any mixture of two messages is detected.
pub fn message(producer: usize, n: u64) -> Message {
    let first = (producer as u64) << NUMBER_BITS | n;
    core::array::from_fn(|word| first ^ (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Counts the messages received from each producer and checks their order and contents.
pub struct MessageLedger {
    /// The next expected number of each producer.
    next: Vec<u64>,
    /// The numbers of each producer that were skipped and have not arrived since.
    missing: Vec<BTreeSet<u64>>,
}

impl MessageLedger {
    /// Creates a ledger for this number of producers, with no message received yet.
    pub fn new(producers: usize) -> Self {
        Self { next: vec![0; producers], missing: vec![BTreeSet::new(); producers] }
    }

    /// Receives and checks one message of a consumer under test, if there is one. Returns `true` if
    /// there was.
    pub fn try_receive(&mut self, consumer: &mut impl Consumer) -> Result<bool, Violation> {
        let popped = consumer.try_pop();
        if let Some((_, fault)) = consumer.take_fault() {
            return Err(Violation::Fault(fault));
        }
        let Some((from, got)) = popped else { return Ok(false) };
        self.record(from, &got).map(|()| true)
    }

    /// Receives and checks all messages of a consumer under test that are available now. Returns
    /// their number.
    pub fn receive_all(&mut self, consumer: &mut impl Consumer) -> Result<u64, Violation> {
        let mut taken = 0;
        while self.try_receive(consumer)? {
            taken += 1;
        }
        Ok(taken)
    }

    fn record(&mut self, from: Option<usize>, got: &Message) -> Result<(), Violation> {
        let (producer, n) = ((got[0] >> NUMBER_BITS) as usize, got[0] & ((1 << NUMBER_BITS) - 1));
        let intact = (1..MESSAGE_WORDS).filter(|word| got[*word] == message(producer, n)[*word]).count();
        if producer >= self.next.len() || intact < MESSAGE_WORDS - 1 {
            return Err(Violation::Torn { message: *got });
        }
        if let Some(from) = from.filter(|from| *from != producer) {
            return Err(Violation::Misattributed { producer, from });
        }
        let next = &mut self.next[producer];
        if n < *next {
            let is_late = self.missing[producer].remove(&n);
            return Err(if is_late {
                Violation::Reordered { producer, n, after: *next - 1 }
            } else {
                Violation::Duplicated { producer, n }
            });
        }
        self.missing[producer].extend(*next..n);
        *next = n + 1;
        Ok(())
    }

    /// Checks that the first `sent[i]` messages of each producer `i` were received, and no others.
    pub fn settle(&self, sent: &[u64]) -> Result<(), Violation> {
        for (producer, (sent, next)) in sent.iter().zip(&self.next).enumerate() {
            if next > sent {
                return Err(Violation::Invented { producer, n: next - 1 });
            }
            let missing = &self.missing[producer];
            let count = missing.len() as u64 + (sent - next);
            if count > 0 {
                let first = missing.first().copied().unwrap_or(*next);
                return Err(Violation::Lost { producer, first, count });
            }
        }
        Ok(())
    }
}
