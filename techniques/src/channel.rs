//! `channel`: the ring of `array-queue`, plus a receiver that can sleep, for which every push
//! checks.
//!
//! ```text
//! segment submit         header │ tail │ slots                see `array_queue`
//! segment submit-waker   header │ 0 awake, 1 parked │ pad     the receiver parks, producers wake
//! ```
//!
//! For select and blocking receivers, crossbeam-channel's bounded flavor has a locked list of
//! wakers and an `is_empty` flag. Here they are one word: a hand-off has one receiver, so the list
//! has at most one entry. The cost of every push is the same: one load of a cache line that rarely
//! changes. No lock can be lost with its owner.
//!
//! [`Receiver::pop_timeout`] parks. The agents of a run poll instead (a thread with two hand-offs
//! cannot park on one of them) and leave parking to their idle strategy. They pay for the check
//! nevertheless, as with the real crate.
//!
//! **Why no wake-up is lost.** A producer claims its slot (CAS on the tail, SeqCst) and then loads
//! the word (SeqCst); the receiver stores 1 (SeqCst) and then loads the tail (SeqCst). In the
//! single order of these four operations one load comes last, and sees the other's store (Dekker's
//! argument): either the producer finds the receiver parked and wakes it, or the receiver finds a
//! slot claimed and stays awake. The push needs no fence, because its claim is one.
//!
//! **What a dead producer leaves:** the same as in `array_queue`, with the same repair. In
//! addition, the effects of a death between the stamp and the wake-up:
//!
//! | died | left | effect |
//! |---|---|---|
//! | after the stamp, before loading the word | a message | found after the wait or another push |
//! | after resetting the word, before the call | a message, word `awake` | found after the wait |
//!
//! No wait is longer than [`MAX_WAIT`], so a process that fails to wake, dies, or corrupts the word
//! costs a bounded delay. There is nothing to repair, and no process can hang, because the word is
//! not a lock. While the claim of a dead producer is not retired, the receiver sees a claimed slot
//! and does not park: it yields and polls again.
//!
//! Source: crossbeam-channel's `flavors/array.rs` and `waker.rs`; the parking after Drepper,
//! "Futexes are tricky".

use core::ops::ControlFlow;
use core::time::Duration;
use shm::bell::BELL;
use shm::memory::{AtomicWords, HeaderError};
use shm::ring::SharedQueue;
use shm::ring::array_queue;
use shm::ring::{BlockedSlot, Full, Message, PeerFault, Step};
use shm::sync::{Ordering, seqcst_for_loom, yield_now};
use std::time::Instant;

/// Maximum time that a channel's receiver sleeps before it polls again: 10 ms.
pub const MAX_WAIT: Duration = Duration::from_millis(10);

const AWAKE: u64 = 0;
const PARKED: u64 = 1;

/// A sending end of a `channel`: an `array-queue` ring whose receiver can sleep.
pub struct Sender<const W: usize = { shm::ring::MESSAGE_WORDS }> {
    ring: array_queue::Producer<W>,
    waker: AtomicWords,
}

impl<const W: usize> Sender<W> {
    /// Attaches a sender to its ring, to the segment in which it announces the slot that it fills,
    /// and to the receiver's wake-up word. The announcement lets a dead sender's slot be repaired.
    /// As [`array_queue::Producer::attach`] does; `waker` is a segment of
    /// [`BELL_WORDS`](shm::bell::BELL_WORDS).
    ///
    /// # Errors
    /// See [`array_queue::Producer::attach`].
    pub fn attach(
        ring: &AtomicWords,
        intent: &AtomicWords,
        waker: &AtomicWords,
    ) -> Result<Self, HeaderError> {
        Ok(Self { ring: array_queue::Producer::attach(ring, intent)?, waker: waker.slice(BELL, 1) })
    }

    /// Pushes a message into the ring, and wakes the receiver if it is parked.
    ///
    /// # Errors
    /// [`Full`] if the ring is full.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// Pushes a message as [`Sender::try_push`] does, and calls `at` at each step, where tests can
    /// interrupt the push. [`Step::Published`] is before the wake-up.
    ///
    /// # Errors
    /// [`Full`], as [`shm::ring::Producer::try_push_with`].
    #[inline(always)]
    pub fn try_push_with(
        &mut self,
        message: &[u64; W],
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        self.ring.try_push_with(message, at)?;
        seqcst_for_loom();
        // SeqCst: after our claim in the single order; pairs with the receiver's store in `park`.
        if self.waker[0].load(Ordering::SeqCst) == PARKED {
            self.wake();
        }
        Ok(())
    }

    #[cold]
    fn wake(&self) {
        // Relaxed: the word carries no data, the message is ordered by its stamp. Swapped, so that
        // only one of several producers makes the system call.
        if self.waker[0].swap(AWAKE, Ordering::Relaxed) == PARKED {
            // All: another producer may wait on this word, which it can write.
            shm::futex::wake_all(&self.waker[0]);
        }
    }
}

impl shm::ring::Producer for Sender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        Sender::try_push_with(self, message, at)
    }

    fn withdraw(&mut self) {
        self.ring.withdraw();
    }
}

/// The receiving end of a `channel`: an `array-queue` ring with a consumer that can sleep.
pub struct Receiver<const W: usize = { shm::ring::MESSAGE_WORDS }> {
    ring: array_queue::Consumer<W>,
    waker: AtomicWords,
}

impl<const W: usize> Receiver<W> {
    /// Attaches the receiver to a ring, to the segments in which producers announce the slots that
    /// they fill, and to its own wake-up word. As [`array_queue::Consumer::attach`] does; `waker`
    /// as in [`Sender::attach`].
    ///
    /// # Errors
    /// See [`array_queue::Producer::attach`].
    pub fn attach(
        ring: &AtomicWords,
        intents: Vec<AtomicWords>,
        waker: &AtomicWords,
    ) -> Result<Self, HeaderError> {
        Ok(Self { ring: array_queue::Consumer::attach(ring, intents)?, waker: waker.slice(BELL, 1) })
    }

    /// Attaches a receiving end in place of a crashed one, as [`array_queue::Consumer::resume`]
    /// does. If the predecessor was parked, the next push makes a useless system call.
    ///
    /// # Errors
    /// See [`array_queue::Producer::attach`].
    pub fn resume(
        ring: &AtomicWords,
        intents: Vec<AtomicWords>,
        waker: &AtomicWords,
    ) -> Result<Self, HeaderError> {
        Ok(Self { ring: array_queue::Consumer::resume(ring, intents)?, waker: waker.slice(BELL, 1) })
    }

    /// Takes the channel's next message; sleeps for at most `max_wait` until there is one. Returns
    /// `None` if the time is over.
    ///
    /// # Errors
    /// As [`SharedQueue::try_pop`] of an [`array_queue::Consumer`]: a [`PeerFault`].
    pub fn pop_timeout(&mut self, max_wait: Duration) -> Result<Option<[u64; W]>, PeerFault> {
        // A deadline that the clock cannot represent means no timeout.
        let deadline = Instant::now().checked_add(max_wait);
        loop {
            if let Some(message) = self.try_pop()? {
                return Ok(Some(message));
            }
            let remaining =
                deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if remaining.is_zero() {
                return Ok(None);
            }
            self.park(remaining.min(MAX_WAIT));
        }
    }

    /// Sleeps until a producer wakes us or the time is over, unless a slot is claimed.
    fn park(&self, max_wait: Duration) {
        // SeqCst: before our load of the tail in the single order; pairs with the producers' load
        // of the word.
        self.waker[0].store(PARKED, Ordering::SeqCst);
        seqcst_for_loom();
        if self.ring.is_claimed() {
            // The claimant may be waiting for this core.
            yield_now();
        } else {
            shm::futex::wait(&self.waker[0], PARKED as u32, max_wait);
        }
        self.waker[0].store(AWAKE, Ordering::Relaxed);
    }
}

/// Delegates to the [`array_queue::Consumer`] inside.
impl<const W: usize> SharedQueue<W> for Receiver<W> {
    #[inline(always)]
    fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; W]> {
        self.ring.pop(fault)
    }

    fn retire(&mut self, producer: usize) -> bool {
        self.ring.retire(producer)
    }

    fn passed_over(&self) -> u64 {
        self.ring.passed_over()
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        self.ring.check()
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        self.ring.blocked()
    }
}

#[cfg(not(loom))]
pub use link::Channel;

#[cfg(not(loom))]
mod link {
    use super::{Receiver, Sender};
    use shm::attached::Attached;
    use shm::bell::BELL_WORDS;
    use shm::memory::RegionError;
    use shm::ring::{EndRights, Home, Link, LinkSpec, SegmentSpec, TechniqueInfo, array_queue, intent};

    /// The technique `channel`: the ring of `array-queue` with a receiver that can sleep.
    pub struct Channel;

    fn waker(spec: &LinkSpec) -> String {
        format!("{}-waker", spec.name)
    }

    impl Link for Channel {
        const INFO: TechniqueInfo = TechniqueInfo::new("channel", Home::Memory)
            .steps(array_queue::STEPS)
            .consumer_resumable()
            .port_of("crossbeam-channel");

        type Producer = Sender;
        type Consumer = shm::ring::Receiver<Receiver>;

        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
            let waker = SegmentSpec::memory(waker(spec), shm::bell::KIND, BELL_WORDS, EndRights::ALL_WRITE);
            [array_queue::segment(spec), waker].into_iter().chain(intent::segments(spec)).collect()
        }

        fn producer(
            spec: &LinkSpec,
            index: usize,
            attached: &mut Attached<'_>,
        ) -> Result<Sender, RegionError> {
            let waker = attached.region(&waker(spec), shm::bell::KIND)?.words();
            let intent = intent::producer(spec, index, attached)?;
            attached.end(spec.name, array_queue::KIND, |ring| Sender::attach(ring, &intent, &waker))
        }

        fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
            let waker = attached.region(&waker(spec), shm::bell::KIND)?.words();
            let intents = intent::all(spec, attached)?;
            attached
                .end(spec.name, array_queue::KIND, |ring| Receiver::attach(ring, intents, &waker))
                .map(Into::into)
        }

        fn resume_consumer(
            spec: &LinkSpec,
            attached: &mut Attached<'_>,
        ) -> Result<Self::Consumer, RegionError> {
            let waker = attached.region(&waker(spec), shm::bell::KIND)?.words();
            let intents = intent::all(spec, attached)?;
            attached
                .end(spec.name, array_queue::KIND, |ring| Receiver::resume(ring, intents, &waker))
                .map(Into::into)
        }
    }
}
