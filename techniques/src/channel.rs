//! `channel`: the ring of `array-queue`, plus a receiver that can sleep and that every push looks
//! out for.
//!
//! ```text
//! segment submit         header │ tail │ slots                see `array_queue`
//! segment submit-waker   header │ 0 awake, 1 parked │ pad     the receiver parks on it, any producer wakes
//! ```
//!
//! What crossbeam-channel's bounded flavour does for select and blocking receivers with a locked
//! list of wakers and an `is_empty` flag is one word here: a hand-off has one receiver, so the list
//! has at most one entry. The price that every push pays is the same: one look at a line that
//! almost never changes. There is no lock that could die with its owner.
//!
//! [`Receiver::pop_timeout`] parks. The agents of a run poll (a thread with two hand-offs cannot
//! park on one of them) and leave the parking to their idle strategy; they pay for the look all the
//! same, as they do with the real crate.
//!
//! **Why no wake-up is lost.** A producer claims its place (CAS on the tail, SeqCst) and then looks
//! at the word (SeqCst); the receiver stores 1 (SeqCst) and then looks at the tail (SeqCst). In the
//! single order of these four one look comes last, and sees the other's store (Dekker's argument):
//! either the producer finds the receiver parked and wakes it, or the receiver finds a place
//! claimed and stays awake. No fence is needed in the push, because its claim is one.
//!
//! **What a dead producer leaves:** what it leaves in `array_queue`, with the same repair. Beside
//! that, what a death between the stamp and the wake-up leaves:
//!
//! | died | left | what happens |
//! |---|---|---|
//! | after the stamp, before it looked at the word | a message, and perhaps a sleeper | the sleeper finds it when its wait ends, or when another's push wakes it |
//! | between taking the word back and the system call | the same, and the word says awake | the same, only that no other push wakes it: its wait ends |
//!
//! No wait is longer than [`MAX_WAIT`], so whoever forgets, dies, or scribbles over the word costs
//! a bounded delay. There is nothing to repair, and no way to hang anybody: the word is no lock.
//! While a dead one's claim is not retired, the receiver sees a place claimed and does not park: it
//! gives way and looks again.
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

/// No single wait is longer.
pub const MAX_WAIT: Duration = Duration::from_millis(10);

const AWAKE: u64 = 0;
const PARKED: u64 = 1;

/// A sending end; any number of them.
pub struct Sender<const W: usize = { shm::ring::MESSAGE_WORDS }> {
    ring: array_queue::Producer<W>,
    waker: AtomicWords,
}

impl<const W: usize> Sender<W> {
    /// Attaches a sending end as [`array_queue::Producer::attach`]; `waker` is a segment of
    /// [`BELL_WORDS`](shm::bell::BELL_WORDS).
    ///
    /// # Errors
    /// As there.
    pub fn attach(
        ring: &AtomicWords,
        intent: &AtomicWords,
        waker: &AtomicWords,
    ) -> Result<Self, HeaderError> {
        Ok(Self { ring: array_queue::Producer::attach(ring, intent)?, waker: waker.slice(BELL, 1) })
    }

    /// Puts a message into the ring and wakes the receiver if it is parked, or says that the ring
    /// is full.
    ///
    /// # Errors
    /// [`Full`].
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Sender::try_push`], and calls `at` at each step; [`Step::Published`] is before the
    /// wake-up.
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
        // of several producers one makes the system call.
        if self.waker[0].swap(AWAKE, Ordering::Relaxed) == PARKED {
            shm::futex::wake_one(&self.waker[0]);
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

/// The receiving end. At most one in a channel's life.
pub struct Receiver<const W: usize = { shm::ring::MESSAGE_WORDS }> {
    ring: array_queue::Consumer<W>,
    waker: AtomicWords,
}

impl<const W: usize> Receiver<W> {
    /// Attaches the receiving end as [`array_queue::Consumer::attach`]; `waker` as
    /// [`Sender::attach`].
    ///
    /// # Errors
    /// As there.
    pub fn attach(
        ring: &AtomicWords,
        intents: Vec<AtomicWords>,
        waker: &AtomicWords,
    ) -> Result<Self, HeaderError> {
        let ring = array_queue::Consumer::attach(ring, intents)?;
        Ok(Self { ring, waker: waker.slice(BELL, 1) })
    }

    /// Attaches a receiving end in the place of one that has died: as
    /// [`array_queue::Consumer::resume`]. If that one was parked, the next push makes a system call
    /// that wakes nobody.
    ///
    /// # Errors
    /// As there.
    pub fn resume(
        ring: &AtomicWords,
        intents: Vec<AtomicWords>,
        waker: &AtomicWords,
    ) -> Result<Self, HeaderError> {
        let ring = array_queue::Consumer::resume(ring, intents)?;
        Ok(Self { ring, waker: waker.slice(BELL, 1) })
    }

    /// Takes the next message; sleeps for it, but no longer than that. `None` if the time is over.
    ///
    /// # Errors
    /// As [`SharedQueue::try_pop`] of an [`array_queue::Consumer`].
    pub fn pop_timeout(&mut self, at_most: Duration) -> Result<Option<[u64; W]>, PeerFault> {
        // A time that does not fit the clock is for ever.
        let deadline = Instant::now().checked_add(at_most);
        loop {
            if let Some(message) = self.try_pop()? {
                return Ok(Some(message));
            }
            let left =
                deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            self.park(left.min(MAX_WAIT));
        }
    }

    /// Sleeps until a producer wakes us or the time is over, unless a message is there or on its
    /// way.
    fn park(&self, at_most: Duration) {
        // SeqCst: before our look at the tail in the single order; pairs with the producers' load
        // of the word.
        self.waker[0].store(PARKED, Ordering::SeqCst);
        seqcst_for_loom();
        if self.ring.is_claimed() {
            // Perhaps by somebody who waits for this core.
            yield_now();
        } else {
            shm::futex::wait(&self.waker[0], PARKED as u32, at_most);
        }
        self.waker[0].store(AWAKE, Ordering::Relaxed);
    }
}

/// As the [`array_queue::Consumer`] inside.
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
    use shm::ring::{
        EndRights, Home, Link, LinkSpec, SegmentPlace, SegmentSpec, TechniqueInfo, array_queue, intent,
    };

    /// The technique.
    pub struct Channel;

    fn waker(spec: &LinkSpec) -> String {
        format!("{}-waker", spec.name)
    }

    impl Link for Channel {
        const INFO: TechniqueInfo = TechniqueInfo::new("channel", Home::Memory)
            .steps(array_queue::STEPS)
            .resumable()
            .port_of("crossbeam-channel");

        type Producer = Sender;
        type Consumer = shm::ring::Receiver<Receiver>;

        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
            let waker = SegmentSpec {
                name: waker(spec),
                place: SegmentPlace::Memory,
                words: BELL_WORDS,
                kind: shm::bell::KIND,
                capacity: 1,
                slot_words: 1,
                index: 0,
                ends: EndRights::ALL_WRITE,
            };
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

        fn resume(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
            let waker = attached.region(&waker(spec), shm::bell::KIND)?.words();
            let intents = intent::all(spec, attached)?;
            attached
                .end(spec.name, array_queue::KIND, |ring| Receiver::resume(ring, intents, &waker))
                .map(Into::into)
        }
    }
}
