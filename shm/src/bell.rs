//! The doorbell: how a sender wakes a receiver that parks on a futex, across processes.
//!
//! ```text
//! listener:      header │ flag │ outside │ rung: a word for each thread that it rings
//!                         ▲                  (the listener writes flag and rung only)
//!                         └─ read by its senders
//! each sender:   header │ flag │ outside │ rung … word for that listener … ◀─ read by it
//! ```
//!
//! Each thread has a segment that it alone writes. `flag` shows whether the thread is asleep or
//! about to be, and counts its parks in steps of two, and its lowest bit is set while the thread
//! sleeps. A sender that finds the bit set copies the flag into its own word for that listener, and
//! wakes the threads waiting on that word. The listener waits on the words of all its senders at
//! once (`futex_waitv`).
//!
//! **Why no wake-up is lost.** The listener sets the flag, fences, and polls its rings once more
//! before it waits; the sender publishes its message, fences, and then reads the flag. Both fences
//! are SeqCst, so in their single total order one comes first (Dekker's argument). Either the
//! listener's last poll sees the message, or the sender sees the flag of this park and writes it
//! into its word. The listener checks that word before it waits, and the kernel compares it once
//! more when it puts the listener to sleep.
//!
//! **Why no sender can steal another sender's wake-up.** It can write neither the flag nor another
//! sender's word, and it does not map the other's word, so it cannot wait there in the listener's
//! place. It can only wake the listener spuriously, which costs the listener a poll of its rings. A
//! wait has a time-out all the same: a peer is not trusted to ring.
//!
//! The word `outside` is for processes without a thread in the plan: the launcher and operators.

use crate::futex;
use crate::memory::header::HEADER_WORDS;
use crate::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use crate::sync::{Ordering, fence};
use core::time::Duration;

/// Index (in 64-bit words) of the flag in a thread's doorbell segment; the flag's lowest bit is set
/// while the thread sleeps or is about to.
pub const BELL: usize = HEADER_WORDS;
/// Index of the word in a thread's doorbell segment through which the launcher and operators wake
/// the thread. Two cache lines after the flag, which senders read at each message.
pub const OUTSIDE: usize = BELL + 16;
/// Index of the first word, in a thread's doorbell segment, through which it rings others: one word
/// for each listening thread.
pub const RUNG: usize = OUTSIDE + 16;
/// Number of 64-bit words in the smallest doorbell segment, which has one word for ringing another
/// thread.
pub const BELL_WORDS: usize = bell_words(1);
/// The segment kind (code, name and layout) of the doorbells that wake one parked thread.
pub const KIND: SegmentKind =
    SegmentKind::new(5, "bell", &[("bell", BELL), ("outside", OUTSIDE), ("rung", RUNG)]).of_slots(RUNG, 1);

/// The lowest bit of a flag: the listener is asleep, or about to be.
const SLEEPING: u64 = 1;

/// The flag of a doorbell whose listener has never announced a sleep.
pub(crate) const NEVER_ARMED: u64 = 0;

/// Returns `true` if the value of a doorbell's flag means that its listener sleeps or is about to.
pub(crate) const fn is_armed(flag: u64) -> bool {
    flag & SLEEPING != 0
}
/// From one park to the next.
const PARK: u64 = 2;

/// Maximum sleep of a listener that cannot wait on the words of all its senders: there are more
/// than [`futex::MAX_WORDS`], or the kernel is older than Linux 5.16.
const SHORT_SLEEP: Duration = Duration::from_micros(100);

/// Returns the number of words in a thread's doorbell segment, in a run of `threads` threads.
pub const fn bell_words(threads: usize) -> usize {
    RUNG + threads
}

/// A sender's end of a doorbell: rings one listener.
#[derive(Clone)]
pub struct Doorbell {
    flag: ReadOnlyWords,
    rung: AtomicWords,
}

impl Doorbell {
    /// Creates a sender's end that rings a listener through a word of the sender's own segment.
    /// `listener` is the listener's segment, `slot` the word.
    ///
    /// # Panics
    /// If a segment is shorter than [`bell_words`].
    pub fn new(listener: &ReadOnlyWords, own: &AtomicWords, slot: usize) -> Self {
        Self { flag: listener.slice(BELL, 1), rung: own.slice(RUNG + slot, 1) }
    }

    /// Creates the sender's end for a process that has no planned thread (such as the launcher) and
    /// may write the listener's segment.
    ///
    /// # Panics
    /// If the segment is shorter than [`BELL_WORDS`].
    pub fn from_outside(listener: &AtomicWords) -> Self {
        Self { flag: ReadOnlyWords::from(listener.slice(BELL, 1)), rung: listener.slice(OUTSIDE, 1) }
    }

    /// Wakes the doorbell's listening thread if it sleeps or is about to. Call it after the message
    /// was published.
    #[inline]
    pub fn ring(&self) {
        // SeqCst: pairs with the fence in `arm`; orders the publishing store before this load.
        fence(Ordering::SeqCst);
        let flag = self.flag.load(0, Ordering::Relaxed);
        if flag & SLEEPING != 0 {
            self.wake(flag);
        }
    }

    #[cold]
    fn wake(&self, flag: u64) {
        // Relaxed: our own store, or that of another outside sender, which then has rung for this
        // park.
        if self.rung[0].load(Ordering::Relaxed) != flag {
            // Release: pairs with the Acquire in `Listener::wait`; who sees this sees the message
            // that was published before.
            self.rung[0].store(flag, Ordering::Release);
            // All: another waiter on this word must not get the wake-up instead of the listener.
            futex::wake_all(&self.rung[0]);
        }
    }
}

/// The receiving end of a thread's doorbell: the thread sleeps until one of its senders rings.
pub struct Listener {
    flag: AtomicWords,
    senders: Vec<ReadOnlyWords>,
    /// The flag of the present park, or of the last one: with the bit [`SLEEPING`].
    park: u64,
    /// How long a sleep may last.
    max_sleep: Duration,
}

impl Listener {
    /// Attaches the receiving end of a doorbell to its segment, without senders. A successor of a
    /// crashed listener continues its count of parks.
    ///
    /// # Panics
    /// If the segment is shorter than [`BELL_WORDS`].
    pub fn new(own: &AtomicWords) -> Self {
        let flag = own.slice(BELL, 1);
        // Relaxed: our predecessor's death is certain, and so are all its stores.
        let park = flag[0].load(Ordering::Relaxed) | SLEEPING;
        Self { flag, senders: Vec::new(), park, max_sleep: Duration::MAX }
    }

    /// Also lets the launcher and operators wake the listener, through a word of the listener's own
    /// segment ([`Doorbell::from_outside`]).
    ///
    /// # Panics
    /// If the segment is shorter than [`BELL_WORDS`].
    #[must_use]
    pub fn with_outside(mut self, own: &AtomicWords) -> Self {
        self.add_word(ReadOnlyWords::from(own.slice(OUTSIDE, 1)));
        self
    }

    /// Adds a sender that rings this doorbell through the word `slot` of the sender's own segment.
    ///
    /// # Panics
    /// If the segment is shorter than [`bell_words`].
    pub fn add_sender(&mut self, sender: &ReadOnlyWords, slot: usize) {
        self.add_word(sender.slice(RUNG + slot, 1));
    }

    fn add_word(&mut self, word: ReadOnlyWords) {
        if self.senders.len() < futex::MAX_WORDS {
            self.senders.push(word);
        } else {
            // Polls regularly, because not all senders can wake it.
            self.max_sleep = SHORT_SLEEP;
        }
    }

    /// Announces that the listening thread is about to sleep, so that senders wake it. It must poll
    /// once more after this and before [`Listener::wait`].
    #[inline]
    pub fn arm(&mut self) {
        self.park = self.park.wrapping_add(PARK);
        self.flag[0].store(self.park, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `ring`; orders the store before the last poll.
        fence(Ordering::SeqCst);
    }

    /// Withdraws the listening thread's announcement that it is about to sleep ([`Listener::arm`]).
    #[inline]
    pub fn disarm(&mut self) {
        self.flag[0].store(self.park & !SLEEPING, Ordering::Relaxed);
    }

    /// Sleeps until a sender rings this doorbell or the time is over, then disarms the listener.
    /// Returns the reason for waking.
    pub fn wait(&mut self, timeout: Duration) -> Woken {
        let mut seen = [0; futex::MAX_WORDS];
        let mut woken = Woken::Rung;
        let mut is_rung = false;
        for (seen, word) in seen.iter_mut().zip(&self.senders) {
            // Acquire: pairs with the Release in `wake`; the next poll sees the message.
            let rung = word.load(0, Ordering::Acquire);
            is_rung |= rung == self.park;
            *seen = rung as u32;
        }
        if !is_rung {
            let words = self.senders.iter().map(ReadOnlyWords::futex).zip(seen);
            woken = futex::wait_any(words, timeout.min(self.max_sleep));
            if woken == Woken::Unsupported {
                self.max_sleep = SHORT_SLEEP;
                std::thread::sleep(timeout.min(SHORT_SLEEP));
            }
        }
        self.disarm();
        woken
    }
}

pub use futex::Woken;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::Region;

    #[test]
    fn flag_is_armed_only_between_arm_and_disarm() {
        let own = Region::heap(BELL_WORDS).words();
        let sender = Region::heap(BELL_WORDS).words();
        let bell = Doorbell::new(&own.clone().into(), &sender, 0);
        let mut listener = Listener::new(&own);
        let is_rung = || {
            bell.ring();
            let armed = is_armed(own[BELL].load(Ordering::Relaxed));
            (armed, sender[RUNG].swap(0, Ordering::Relaxed) != 0)
        };
        assert_eq!(is_rung(), (false, false));
        for park in 1..=3 {
            listener.arm();
            assert_eq!(is_rung(), (true, true), "park {park}");
            listener.disarm();
            assert_eq!(is_rung(), (false, false), "park {park}");
        }
    }
}
