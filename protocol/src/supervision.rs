//! Fences and repairs: what launcher and engine exchange about strategies that died.
//!
//! ```text
//! control segment (the launcher writes, all read)          repairs segment (the engine writes, the launcher reads)
//!   generation │ one fence word for each strategy,           generation │ damage │ standstill │ 16 words for each strategy,
//!                one for each gateway                                                           16 for each gateway
//!                epoch │ 0 alive, 1 fenced                                 repaired │ quarantine │ noticed … counters
//! ```
//!
//! **Fence first, then repair.** A strategy's death is certain only when the kernel says so: the
//! launcher kills it, waits for its pidfd, and has a [`Death`] then, without which no fence can be
//! put up. The engine mends what the dead one left in the rings when it sees the fence, and says
//! so; only then the launcher makes the strategy's own memory anew and starts it again, in the next
//! epoch. Nothing here goes by time.
//!
//! ```text
//! launcher   dies ─ reaped ─ Fenced(e) ────────────────────────── memory made anew ─ Alive(e+1) ─ starts it
//! engine                        └─ refuses epoch e ─ retires ─ repaired(e) ┘               └─ takes from it again
//! ```
//!
//! A strategy that does with its memory what no honest one does is *quarantined*: the engine takes
//! no more from it and says why; the launcher kills it, and from there on it is a death like any
//! other. It is not started again.

mod gateways;

pub use gateways::{GIVEN_UP, GatewayCounts, GatewayRepair};

use crate::agent::Agent;
use crate::control::{Control, ControlWriter, GENERATION, LIVES};
use crate::wire::MAX_STRATEGIES;
use core::time::Duration;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;
use std::io;
use std::os::fd::BorrowedFd;
use system::clock::Clock;
use system::names;
use system::process;

/// The repairs segment's name within the run.
pub const REPAIRS: &str = "repairs";
/// Words in it.
pub const REPAIRS_WORDS: usize = STRATEGIES + MAX_STRATEGIES * WORDS_EACH + gateways::GATEWAY_WORDS;
/// Counts what the engine has said; a futex.
const SAID: usize = HEADER_WORDS;
/// What is wrong with memory that several strategies write: a [`ProtocolViolation`]'s code, or 0.
const DAMAGE: usize = HEADER_WORDS + 1;
/// Where the submit hand-off stands still: place and announcer in one word (see [`BlockedClaim`]), or 0.
const STANDS_AT: usize = HEADER_WORDS + 2;
/// Since when, in ticks.
const STANDS_SINCE: usize = HEADER_WORDS + 3;
const STRATEGIES: usize = HEADER_WORDS + 16;
const WORDS_EACH: usize = 16;
/// What the engine says about strategies that died or misbehave; written by the engine.
pub const KIND: SegmentKind =
    SegmentKind::new(10, "repairs", &[("strategies", STRATEGIES), ("words-each", WORDS_EACH)])
        .of_slots(HEADER_WORDS, 1);

/// Proof that a process has ended: what a fence needs. For a real process there is no other way to
/// get one than to ask the kernel; a simulated one is an agent on a virtual clock, and dead when it
/// is dropped.
///
/// ```compile_fail,E0423
/// let dead_because_i_say_so = protocol::supervision::Death(());
/// ```
#[derive(Debug)]
pub struct ProofOfDeath(());

impl ProofOfDeath {
    /// Whether the process behind the pidfd has ended. A process that is stopped, or slow, has not.
    ///
    /// # Errors
    /// What the system refused.
    pub fn confirm(pidfd: BorrowedFd<'_>) -> io::Result<Option<ProofOfDeath>> {
        Ok(process::wait_readable(&[pidfd], Duration::ZERO)?[0].then_some(ProofOfDeath(())))
    }

    /// The death of a simulated strategy: whoever gives the agent away cannot run it any more.
    pub fn of_simulated<C: Clock>(agent: Box<dyn Agent<C>>) -> ProofOfDeath {
        drop(agent);
        ProofOfDeath(())
    }
}

/// One incarnation of a strategy, as the launcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Its number, from 0.
    pub epoch: u16,
    /// It is dead for certain.
    pub fenced: bool,
}

impl Incarnation {
    const fn to_word(self) -> u64 {
        (self.epoch as u64) << 1 | self.fenced as u64
    }

    const fn from_word(word: u64) -> Self {
        Self { epoch: (word >> 1) as u16, fenced: word & 1 == 1 }
    }
}

impl ControlWriter {
    /// A strategy's incarnation is dead: the engine is to repair what it left.
    ///
    /// # Panics
    /// If there can be no such strategy.
    pub fn fence(&self, strategy: u16, epoch: u16, _certain: &ProofOfDeath) {
        self.set_life(strategy, Incarnation { epoch, fenced: true });
    }

    /// The strategy's own memory was made anew; its next incarnation may start.
    ///
    /// # Panics
    /// If there can be no such strategy.
    pub fn revive(&self, strategy: u16, epoch: u16) {
        self.set_life(strategy, Incarnation { epoch, fenced: false });
    }

    fn set_life(&self, strategy: u16, life: Incarnation) {
        assert!(usize::from(strategy) < MAX_STRATEGIES);
        let words = self.words();
        // Release: pairs with the Acquire in `life`; who sees an Alive sees the memory made anew.
        words[LIVES + usize::from(strategy)].store(life.to_word(), Ordering::Release);
        // Release: pairs with the Acquire in `generation`; who sees the count sees the word above.
        words[GENERATION].store(words[GENERATION].load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

impl Control {
    /// Counts fences and revivals: a change says that some strategy's [`Control::life`] has
    /// changed. One load of a line that almost never changes.
    #[inline(always)]
    pub fn generation(&self) -> u64 {
        self.view().load(GENERATION, Ordering::Acquire)
    }

    /// The strategy's incarnation, and whether it is alive.
    ///
    /// # Panics
    /// If there can be no such strategy.
    pub fn life(&self, strategy: u16) -> Incarnation {
        assert!(usize::from(strategy) < MAX_STRATEGIES);
        Incarnation::from_word(self.view().load(LIVES + usize::from(strategy), Ordering::Acquire))
    }
}

names! {
    /// What a strategy was quarantined for, or what damage was found in memory that several write.
    ProtocolViolation {
        /// A cursor or a sequence in its ring jumped, rolled back or was overwritten.
        BadCursor = "bad-cursor",
        /// A message that is no order.
        Garbage = "garbage",
        /// An order that claims to be another strategy's.
        ForeignId = "foreign-id",
        /// An order of an incarnation that is not the living one.
        WrongEpoch = "wrong-epoch",
        /// Orders that repeat, go back, or leave out a sequence: records rewritten after they were
        /// published.
        OutOfSequence = "out-of-sequence",
        /// More orders for venues that there are not than a mistake explains.
        UnknownVenue = "unknown-venue",
        /// More orders beyond its limits than a mistake explains.
        Flood = "flood",
        /// A place of the submit hand-off that it claimed, or says that it is about to claim, and
        /// never writes, while its duty cycles go on. Found by the launcher, which knows the
        /// deadline.
        WithheldPlace = "withheld-place",
        /// Shared memory of several strategies is damaged beyond repair.
        RingDamaged = "ring-damaged",
        /// A status that no honest thread writes. Found by the launcher, not by the engine.
        ForgedStatus = "forged-status",
        /// The header of a segment that only it can write is not the one that was written there.
        /// Found by the launcher, which knows the plan.
        ForgedHeader = "forged-header",
    }
}

impl ProtocolViolation {
    /// Its number, from 1.
    pub fn code(self) -> u64 {
        Self::ALL.iter().position(|other| *other == self).map_or(0, |place| place as u64 + 1)
    }

    /// The one with that number.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code.checked_sub(1)?).ok()?).copied()
    }
}

/// A place of the submit hand-off that is claimed and not written, as the engine has seen it at
/// each of its looks since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedClaim {
    /// The place's number, modulo 2^54.
    pub place: u64,
    /// The strategy that announces the place in memory that only it can write; `None`: nobody who
    /// lives does.
    pub announcer: Option<u16>,
    /// When the engine first saw it so, in ticks.
    pub since_ticks: u64,
}

/// Bits for the announcer: 0, or a strategy and 1.
const ANNOUNCER_BITS: u32 = 9;
const _: () = assert!(MAX_STRATEGIES < 1 << ANNOUNCER_BITS);

/// What the engine says about one strategy. Counters are since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The last epoch that was repaired.
    pub repaired: Option<u16>,
    /// The epoch that was quarantined, and why.
    pub quarantined: Option<(u16, ProtocolViolation)>,
    /// When the engine saw the fence, in ticks.
    pub noticed_ticks: u64,
    /// When the repair was done, in ticks.
    pub repaired_ticks: u64,
    /// When it was quarantined, in ticks.
    pub quarantined_ticks: u64,
    /// Orders of dead incarnations that were refused after the fence.
    pub refused: u64,
    /// Reports that no living incarnation was there to take.
    pub orphaned: u64,
}

const REPAIRED: usize = 0;
const QUARANTINED: usize = 1;
const NOTICED: usize = 2;
const REPAIRED_TICKS: usize = 3;
const QUARANTINED_TICKS: usize = 4;
const REFUSED: usize = 5;
const ORPHANED: usize = 6;

const fn place(strategy: u16, word: usize) -> usize {
    STRATEGIES + strategy as usize * WORDS_EACH + word
}

/// The engine's end: the orchestrator writes.
pub struct RepairsWriter(AtomicWords);

impl RepairsWriter {
    /// The repairs in this segment.
    ///
    /// # Panics
    /// If it is shorter than [`REPAIRS_WORDS`].
    pub fn new(segment: &AtomicWords) -> Self {
        Self(segment.slice(0, REPAIRS_WORDS))
    }

    fn set(&self, strategy: u16, word: usize, value: u64) {
        self.0[place(strategy, word)].store(value, Ordering::Relaxed);
    }

    /// Nothing waits for the dead incarnation any more, and its memory is not read again.
    pub fn repaired(&self, strategy: u16, epoch: u16, noticed_ticks: u64, now_ticks: u64) {
        self.set(strategy, NOTICED, noticed_ticks);
        self.set(strategy, REPAIRED_TICKS, now_ticks);
        // Release: pairs with the Acquire in `of`; the launcher writes the dead one's memory after
        // it has seen this.
        self.0[place(strategy, REPAIRED)].store(u64::from(epoch) + 1, Ordering::Release);
        self.say();
    }

    /// Nothing more is taken from the strategy: the launcher is to kill it.
    pub fn quarantine(&self, strategy: u16, epoch: u16, why: ProtocolViolation, now_ticks: u64) {
        self.set(strategy, QUARANTINED_TICKS, now_ticks);
        // Release: pairs with the Acquire in `of`.
        self.0[place(strategy, QUARANTINED)].store((u64::from(epoch) << 8) | why.code(), Ordering::Release);
        self.say();
    }

    /// Whether it was said, by a dead predecessor perhaps, that nothing waits for that incarnation
    /// any more.
    pub fn was_repaired(&self, strategy: u16, epoch: u16) -> bool {
        // Relaxed: our own stores, or those of one whose death is certain.
        self.0[place(strategy, REPAIRED)].load(Ordering::Relaxed) == u64::from(epoch) + 1
    }

    /// The same of a quarantine.
    pub fn was_quarantined(&self, strategy: u16, epoch: u16) -> bool {
        let word = self.0[place(strategy, QUARANTINED)].load(Ordering::Relaxed);
        word != 0 && word >> 8 == u64::from(epoch)
    }

    /// Memory that several strategies write is damaged, by whom cannot be told.
    pub fn damaged(&self, what: ProtocolViolation) {
        self.0[DAMAGE].store(what.code(), Ordering::Release);
        self.say();
    }

    /// The submit hand-off stands still there, or goes on.
    pub fn stands_still(&self, at: Option<BlockedClaim>) {
        // Release, here and below: pairs with the Acquire in `standstill`; a time is never read
        // with another place's word.
        self.0[STANDS_AT].store(0, Ordering::Release);
        let Some(BlockedClaim { place, announcer, since_ticks }) = at else { return };
        self.0[STANDS_SINCE].store(since_ticks, Ordering::Release);
        let announcer = announcer.map_or(0, |strategy| u64::from(strategy) + 1);
        // The bit between them is always set: the word of a place is never 0.
        let place = (place << 1 | 1) << ANNOUNCER_BITS;
        self.0[STANDS_AT].store(place | announcer, Ordering::Release);
    }

    /// Stores the counters.
    pub fn count(&self, strategy: u16, refused: u64, orphaned: u64) {
        self.set(strategy, REFUSED, refused);
        self.set(strategy, ORPHANED, orphaned);
    }

    fn say(&self) {
        let said = self.0[SAID].load(Ordering::Relaxed).wrapping_add(1);
        self.0[SAID].store(said, Ordering::Release);
        shm::futex::wake_all(&self.0[SAID]);
    }
}

/// The launcher's end: reads.
pub struct Repairs(ReadOnlyWords);

impl Repairs {
    /// The repairs in this segment.
    ///
    /// # Panics
    /// If it is shorter than [`REPAIRS_WORDS`].
    pub fn new(segment: ReadOnlyWords) -> Self {
        Self(segment.slice(0, REPAIRS_WORDS))
    }

    /// How often the engine has said something; for [`Repairs::wait`].
    pub fn said(&self) -> u64 {
        self.0.load(SAID, Ordering::Acquire)
    }

    /// Sleeps until the engine says more than that, or the time is over.
    pub fn wait(&self, said: u64, at_most: Duration) {
        if self.said() == said {
            self.0.wait(SAID, said as u32, at_most);
        }
    }

    /// Damage to memory that several strategies write.
    pub fn damage(&self) -> Option<ProtocolViolation> {
        ProtocolViolation::from_code(self.0.load(DAMAGE, Ordering::Acquire))
    }

    /// Where the submit hand-off stands still, if it does.
    pub fn standstill(&self) -> Option<BlockedClaim> {
        let word = self.0.load(STANDS_AT, Ordering::Acquire);
        let since_ticks = self.0.load(STANDS_SINCE, Ordering::Acquire);
        if word == 0 || self.0.load(STANDS_AT, Ordering::Acquire) != word {
            return None;
        }
        let announcer = (word & ((1 << ANNOUNCER_BITS) - 1)).checked_sub(1);
        let announcer = announcer.map(|strategy| strategy as u16);
        Some(BlockedClaim { place: word >> (ANNOUNCER_BITS + 1), announcer, since_ticks })
    }

    /// What the engine says about a strategy.
    ///
    /// # Panics
    /// If there can be no such strategy.
    pub fn of(&self, strategy: u16) -> Repair {
        assert!(usize::from(strategy) < MAX_STRATEGIES);
        // Acquire: pairs with the Release in `repaired` and `quarantine`.
        let repaired = self.0.load(place(strategy, REPAIRED), Ordering::Acquire);
        let quarantined = self.0.load(place(strategy, QUARANTINED), Ordering::Acquire);
        let count = |word| self.0.load(place(strategy, word), Ordering::Relaxed);
        Repair {
            repaired: repaired.checked_sub(1).map(|epoch| epoch as u16),
            quarantined: ProtocolViolation::from_code(quarantined & 0xFF)
                .map(|why| ((quarantined >> 8) as u16, why)),
            noticed_ticks: count(NOTICED),
            repaired_ticks: count(REPAIRED_TICKS),
            quarantined_ticks: count(QUARANTINED_TICKS),
            refused: count(REFUSED),
            orphaned: count(ORPHANED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::PLAN;
    use shm::memory::Region;
    use std::os::fd::AsFd;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn only_the_kernel_confirms_a_death() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pidfd = process::pidfd_open(child.id()).unwrap();
        process::stop(pidfd.as_fd()).unwrap();
        assert!(ProofOfDeath::confirm(pidfd.as_fd()).unwrap().is_none(), "a stopped process is not dead");
        process::kill(pidfd.as_fd()).unwrap();
        child.wait().unwrap();
        let death = ProofOfDeath::confirm(pidfd.as_fd()).unwrap().expect("reaped");
        let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
        let control = launching.control();
        let before = control.generation();
        launching.fence(3, 7, &death);
        assert_eq!(control.life(3), Incarnation { epoch: 7, fenced: true });
        assert_eq!(control.life(2), Incarnation { epoch: 0, fenced: false });
        assert_ne!(control.generation(), before);
        launching.revive(3, 8);
        assert_eq!(control.life(3), Incarnation { epoch: 8, fenced: false });
    }

    #[test]
    fn what_the_engine_says_is_read() {
        let words = Region::heap(REPAIRS_WORDS).words();
        let (writer, reader) = (RepairsWriter::new(&words), Repairs::new(words.clone().into()));
        assert_eq!((reader.of(0), reader.damage()), (Repair::default(), None));
        let said = reader.said();
        writer.quarantine(255, 4095, ProtocolViolation::Flood, 9);
        writer.repaired(255, 4095, 10, 12);
        writer.count(255, 3, 4);
        writer.damaged(ProtocolViolation::RingDamaged);
        let repair = reader.of(255);
        assert_eq!(
            (repair.repaired, repair.quarantined),
            (Some(4095), Some((4095, ProtocolViolation::Flood)))
        );
        assert_eq!((repair.noticed_ticks, repair.repaired_ticks, repair.refused), (10, 12, 3));
        assert_eq!(reader.damage(), Some(ProtocolViolation::RingDamaged));
        assert_ne!(reader.said(), said);
        reader.wait(said, Duration::from_secs(600));
        assert_eq!(reader.standstill(), None);
        for announcer in [None, Some(0), Some(255)] {
            let at = BlockedClaim { place: 0, announcer, since_ticks: 7 };
            writer.stands_still(Some(at));
            assert_eq!(reader.standstill(), Some(at));
        }
        writer.stands_still(None);
        assert_eq!(reader.standstill(), None);
    }
}
