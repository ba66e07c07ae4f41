//! The doorbell: how a sender wakes a receiver that parks on a futex, across processes.
//!
//! One word: 0 awake, 1 about to sleep or asleep. **Why no wake-up is lost:** the receiver stores 1, fences, and
//! polls its rings once more before it waits; the sender publishes its message, fences, and then looks at the word.
//! Both fences are SeqCst, so in their single total order one comes first (Dekker's argument). Either the receiver's
//! last poll sees the message, or the sender sees the 1 and rings. A wait has a time-out all the same: a peer is
//! not trusted to ring.

use crate::memory::header::HEADER_WORDS;
use crate::memory::{SegmentKind, Words};
use crate::sync::{Ordering, fence};
use core::time::Duration;

/// Where the bell's word is in its segment.
pub const BELL: usize = HEADER_WORDS;
/// Words in a bell's segment.
pub const BELL_WORDS: usize = HEADER_WORDS + 16;
/// A thread's doorbell.
pub const KIND: SegmentKind = SegmentKind::new(5, "bell", &[("bell", BELL)]).of_slots(BELL, 1);

const AWAKE: u64 = 0;
const SLEEPING: u64 = 1;

/// One thread's doorbell: that thread listens, anybody who sends to it rings.
#[derive(Clone)]
pub struct Bell {
    word: Words,
}

impl Bell {
    /// The bell in this segment.
    ///
    /// # Panics
    /// If the segment is shorter than [`BELL_WORDS`].
    pub fn new(segment: &Words) -> Self {
        Self { word: segment.window(BELL, 1) }
    }

    /// Wakes the listener if it sleeps or is about to. Call it after the message was published.
    #[inline]
    pub fn ring(&self) {
        // SeqCst: pairs with the fence in `arm`; orders the publishing store before this load.
        fence(Ordering::SeqCst);
        if self.word[0].load(Ordering::Relaxed) == SLEEPING {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Relaxed: the word carries no data; the message is ordered by its own ring. Swapped, so that of several
        // senders one makes the system call.
        if self.word[0].swap(AWAKE, Ordering::Relaxed) == SLEEPING {
            crate::os::futex::wake_one(&self.word[0]);
        }
    }

    /// Says that the listener is about to sleep. It must poll once more after this and before [`Bell::wait`].
    #[inline]
    pub fn arm(&self) {
        self.word[0].store(SLEEPING, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `ring`; orders the store before the last poll.
        fence(Ordering::SeqCst);
    }

    /// Takes an [`Bell::arm`] back.
    #[inline]
    pub(crate) fn disarm(&self) {
        self.word[0].store(AWAKE, Ordering::Relaxed);
    }

    /// Sleeps until the bell rings or the time is over, whichever comes first; then the bell is disarmed.
    pub fn wait(&self, at_most: Duration) {
        crate::os::futex::wait(&self.word[0], SLEEPING as u32, at_most);
        self.disarm();
    }
}
