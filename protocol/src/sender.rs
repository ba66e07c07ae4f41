//! Sends to a ring, and queues while it is full: a push always succeeds, in order.

use crate::wire::{MESSAGE_WORDS, Message};
use shm::bell::Doorbell;
use shm::ring::{Producer, spsc};
use std::collections::VecDeque;

/// The outcome of sending a message: it is in the ring, in the queue, or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// The message is in the ring.
    Ring,
    /// The message is queued: [`Sender::flush`] moves it into the ring.
    Queued,
    /// The queue is bounded and full: the message is lost.
    Dropped,
}

/// The preallocated memory of a [`Sender`]'s queue for messages that the full ring refuses. Each
/// page is written once when it is created, so that none is touched for the first time in a run; a
/// standby creates it before it is needed.
#[derive(Debug)]
pub struct SendQueue {
    messages: VecDeque<Message>,
    capacity: usize,
}

impl SendQueue {
    /// Creates an empty queue of a sender with memory for `capacity` messages. Takes some 3 µs a
    /// page.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut messages = VecDeque::from(vec![[u64::MAX; MESSAGE_WORDS]; capacity]);
        messages.clear();
        Self { messages, capacity }
    }
}

impl From<usize> for SendQueue {
    fn from(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }
}

/// The sending end of a link: a ring's producer, and a queue for messages that the full ring
/// refused.
pub struct Sender<P = spsc::Producer> {
    ring: P,
    /// The doorbell of the receiver's thread, if it parks.
    bell: Option<Doorbell>,
    queue: VecDeque<Message>,
    max_queued: usize,
}

impl<P: Producer> Sender<P> {
    /// Creates a sender with an unlimited queue for messages that the full ring refuses; `queue` is
    /// its memory or initial capacity.
    pub fn new(ring: P, bell: Option<Doorbell>, queue: impl Into<SendQueue>) -> Self {
        Self { ring, bell, queue: queue.into().messages, max_queued: usize::MAX }
    }

    /// Creates a sender whose queue is limited to its capacity: further messages are lost while the
    /// queue is full.
    pub fn bounded(ring: P, bell: Option<Doorbell>, queue: impl Into<SendQueue>) -> Self {
        let queue = queue.into();
        Self { max_queued: queue.capacity, ..Self::new(ring, bell, queue) }
    }

    /// Sends a message through the ring, or queues it if the ring is full or messages are queued
    /// already.
    #[inline(always)]
    pub fn push(&mut self, message: &Message) -> SendOutcome {
        if self.queue.is_empty() && self.ring.try_push(message).is_ok() {
            self.ring_bell();
            return SendOutcome::Ring;
        }
        self.enqueue(message)
    }

    #[cold]
    fn enqueue(&mut self, message: &Message) -> SendOutcome {
        if self.queue.len() >= self.max_queued {
            return SendOutcome::Dropped;
        }
        self.queue.push_back(*message);
        SendOutcome::Queued
    }

    /// Appends to the sender's queue the messages that a crashed predecessor had not sent.
    pub fn enqueue_all(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.queue.extend(messages);
    }

    /// Moves up to `max` messages from the sender's queue into the ring while they fit. Returns
    /// their number.
    #[cold]
    pub fn flush(&mut self, max: usize) -> usize {
        let mut moved = 0;
        while moved < max
            && let Some(message) = self.queue.front()
            && self.ring.try_push(message).is_ok()
        {
            self.queue.pop_front();
            moved += 1;
        }
        if moved > 0 {
            self.ring_bell();
        }
        moved
    }

    /// Returns the first queued message for which `matches` is `true`.
    pub fn find(&self, matches: impl Fn(&Message) -> bool) -> Option<&Message> {
        self.queue.iter().find(|message| matches(message))
    }

    /// Removes and returns the first queued message for which `matches` is `true`.
    pub fn recall(&mut self, matches: impl Fn(&Message) -> bool) -> Option<Message> {
        let index = self.queue.iter().position(matches)?;
        self.queue.remove(index)
    }

    /// Drops all messages in the sender's queue, whose receiver is gone.
    pub fn clear(&mut self) {
        self.queue.clear();
    }

    /// Returns `true` if messages wait in the sender's queue for space in the ring.
    #[inline(always)]
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns the number of messages that wait in the sender's queue for space in the ring.
    #[inline(always)]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Wakes the ring's receiver, since a crashed predecessor may have sent without waking it.
    #[inline(always)]
    pub fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Returns the sending end of the sender's ring.
    pub const fn ring(&self) -> &P {
        &self.ring
    }

    /// Returns the ring's sending end for changes; a message pushed into it overtakes the queued
    /// ones.
    pub const fn ring_mut(&mut self) -> &mut P {
        &mut self.ring
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm::bell::{BELL_WORDS, Listener, Woken};
    use shm::memory::Region;
    use std::time::Duration;

    const SLOTS: usize = 4;

    const fn message(n: u64) -> Message {
        [n; MESSAGE_WORDS]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push,
        /// The receiver takes up to that number of messages.
        Take(usize),
        Flush(usize),
        /// Every queued message that is a multiple is recalled.
        Recall(u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Push),
            2 => (0usize..4).prop_map(Step::Take),
            2 => (0usize..4).prop_map(Step::Flush),
            1 => (1u64..4).prop_map(Step::Recall),
        ]
    }

    /// The sender under test, or a faulty one.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        /// Pushes past its queue.
        Overtakes,
        /// Recalls the message after the matching one.
        RecallsNext,
        /// Loses flushed messages when the ring is full.
        Loses,
    }

    /// Runs the steps. Returns the first violation as an error.
    fn play(steps: &[Step], max_queued: usize, fault: Fault) -> Result<(), String> {
        let (ring, mut receiver) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
        let mut sender = Sender::bounded(ring, None, max_queued);
        let (mut expected, mut taken) = (Vec::new(), Vec::new());
        let mut queued: Vec<u64> = Vec::new();
        for (n, step) in (0u64..).zip(steps) {
            match *step {
                Step::Push => {
                    let sent = if fault == Fault::Overtakes && sender.ring.try_push(&message(n)).is_ok() {
                        SendOutcome::Ring
                    } else {
                        sender.push(&message(n))
                    };
                    match sent {
                        SendOutcome::Ring => expected.push(n),
                        SendOutcome::Queued => queued.push(n),
                        SendOutcome::Dropped if queued.len() == max_queued => {}
                        SendOutcome::Dropped => {
                            return Err(format!("{n} dropped with {} queued", queued.len()));
                        }
                    }
                }
                Step::Take(max) => {
                    let next = std::iter::from_fn(|| receiver.try_pop().unwrap());
                    taken.extend(next.take(max).map(|message| message[0]));
                }
                Step::Flush(max) => {
                    if fault == Fault::Loses && sender.ring.try_push(&message(n)).is_err() {
                        sender.queue.pop_front();
                    }
                    expected.extend(queued.drain(..sender.flush(max)));
                }
                Step::Recall(every) => {
                    let is_meant = |message: &Message| message[0].is_multiple_of(every);
                    while let Some(meant) = sender.find(is_meant).map(|message| message[0]) {
                        let skip = u64::from(fault == Fault::RecallsNext);
                        let recalled = sender.recall(|message| message[0] >= meant + skip);
                        if recalled != Some(message(meant)) {
                            return Err(format!("{recalled:?} recalled instead of {meant}"));
                        }
                        queued.retain(|n| *n != meant);
                    }
                }
            }
            if (sender.queued(), sender.has_queued()) != (queued.len(), !queued.is_empty()) {
                return Err(format!("{} queued instead of {queued:?}", sender.queued()));
            }
        }
        expected.append(&mut queued);
        while sender.has_queued() || !receiver.looks_empty() {
            taken.extend(std::iter::from_fn(|| receiver.try_pop().unwrap()).map(|message| message[0]));
            sender.flush(usize::MAX);
        }
        if taken == expected && taken.is_sorted() {
            return Ok(());
        }
        Err(format!("taken {taken:?}, sent {expected:?}"))
    }

    proptest! {
        #[test]
        fn messages_arrive_once_in_order_unless_recalled(
            steps in prop::collection::vec(any_step(), 0..100), max_queued in 0usize..12,
        ) {
            play(&steps, max_queued, Fault::None).map_err(TestCaseError::fail)?;
            play(&steps, 128, Fault::None).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn broken_senders_are_detected() {
        use Step::{Flush, Push, Recall, Take};
        let pushes = vec![Push; 8];
        let steps =
            [pushes.as_slice(), &[Flush(1), Take(2), Push, Flush(4), Push, Recall(2), Take(1)]].concat();
        assert_eq!(play(&steps, 16, Fault::None), Ok(()));
        for fault in [Fault::Overtakes, Fault::RecallsNext, Fault::Loses] {
            assert!(play(&steps, 16, fault).is_err());
        }
    }

    #[test]
    fn receiver_is_woken_by_push_and_flush() {
        let segment = Region::heap(BELL_WORDS).words();
        let mut listener = Listener::new(&segment).with_outside(&segment);
        let (ring, mut receiver) = spsc::heap_ring::<MESSAGE_WORDS>(1);
        let mut sender = Sender::new(ring, Some(Doorbell::from_outside(&segment)), 1);
        let is_rung = |listener: &mut Listener| listener.wait(Duration::ZERO) == Woken::Rung;
        listener.arm();
        assert_eq!(sender.push(&message(1)), SendOutcome::Ring);
        assert!(is_rung(&mut listener));
        listener.arm();
        assert_eq!(sender.push(&message(2)), SendOutcome::Queued);
        assert!(!is_rung(&mut listener), "nothing is there");
        receiver.try_pop().unwrap();
        listener.arm();
        assert_eq!(sender.flush(9), 1);
        assert!(is_rung(&mut listener));
    }
}
