//! Fencing and repair: the protocol of launcher and engine about strategies that died.
//!
//! ```text
//! control segment (the launcher writes, all read)
//!   generation │ one fence word for each strategy and each gateway: epoch │ 0 alive, 1 fenced
//! repairs segment (the engine writes, the launcher reads)
//!   generation │ damage │ blocked slot │ 16 words for each strategy and each gateway:
//!                                        repaired │ quarantine │ noticed … counters
//! ```
//!
//! **Fence first, then repair.** A strategy's death is certain only when the kernel confirms it:
//! the launcher kills the process, waits until its pidfd is readable or all its threads are
//! exiting, and then has a [`ProofOfDeath`], without which no fence can be set. When the engine
//! sees the fence, it repairs the rings that the strategy left, and publishes that. Only then does
//! the launcher reset the strategy's own memory and restart it, in the next epoch. Nothing here
//! depends on timeouts.
//!
//! ```text
//! launcher  dies ─ reaped ─ Fenced(e) ─────────────── memory reset ─ Alive(e+1) ─ starts it
//! engine                       └─ refuses e ─ retires ─ repaired(e) ┘  └─ takes from it again
//! ```
//!
//! A strategy that violates the protocol is *quarantined*: the engine reads no more from it and
//! publishes the reason; the launcher kills it, and the rest is as after any death. It is not
//! restarted.

mod gateways;

pub use gateways::{GIVEN_UP, GatewayCounts, GatewayRepair};

use crate::agent::Agent;
use crate::control::{Control, ControlWriter, GENERATION, LIVES};
use crate::index::StrategyIndex;
use crate::wire::MAX_STRATEGIES;
use core::time::Duration;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;
use std::io;
use std::os::fd::BorrowedFd;
use system::clock::Clock;
use system::named_enum;
use system::process::{self, ExitingThreads};

/// The name within the run of the segment with the engine's reports about dead strategies.
pub const REPAIRS: &str = "repairs";
/// Size (words) of the segment with the engine's reports about dead strategies.
pub const REPAIRS_WORDS: usize = STRATEGIES + MAX_STRATEGIES * WORDS_EACH + gateways::GATEWAY_WORDS;
/// Offset of the number of the engine's reports; a futex.
const REPORT_COUNT: usize = HEADER_WORDS;
/// Offset of the code of the [`ProtocolViolation`] that damaged shared memory, or 0.
const DAMAGE: usize = HEADER_WORDS + 1;
/// Offset of the blocked submit slot and its announcer ([`BlockedClaim`]), or 0.
const BLOCKED_SLOT: usize = HEADER_WORDS + 2;
/// Offset of the time since when it is blocked, in ticks.
const BLOCKED_SINCE: usize = HEADER_WORDS + 3;
const STRATEGIES: usize = HEADER_WORDS + 16;
const WORDS_EACH: usize = 16;
/// The segment kind (code, name and layout) of the engine's reports about strategies and gateways
/// that died or misbehaved.
pub const KIND: SegmentKind =
    SegmentKind::new(10, "repairs", &[("strategies", STRATEGIES), ("words-each", WORDS_EACH)])
        .of_slots(HEADER_WORDS, 1);

/// Proof that a process has ended, without which it cannot be declared dead (fencing token). For a
/// real process only the kernel can confirm it; a simulated process is an agent on a virtual clock,
/// and is dead when it is dropped.
///
/// ```compile_fail,E0423
/// let dead_because_i_say_so = protocol::supervision::ProofOfDeath(());
/// ```
#[derive(Clone, Debug)]
pub struct ProofOfDeath(());

impl ProofOfDeath {
    /// Returns a proof of death if a pidfd's process has ended or has only zombie threads; else
    /// `None`. A stopped or slow one has not ended.
    pub fn confirm(pidfd: BorrowedFd<'_>) -> io::Result<Option<ProofOfDeath>> {
        Ok(process::is_dead(pidfd)?.then_some(ProofOfDeath(())))
    }

    /// Kills a pidfd's process and returns a proof of death if none of its threads can store to
    /// memory any more. The kernel need not have dismantled the process. Also returns how far the
    /// threads have ended. Only for a process that has asked the kernel for no later store, and
    /// shares its address space with no other one: see [`Plan::can_prove_death_early`].
    ///
    /// [`Plan::can_prove_death_early`]: crate::plan::Plan::can_prove_death_early
    pub fn confirm_exiting(pidfd: BorrowedFd<'_>) -> io::Result<(ExitingThreads, Option<ProofOfDeath>)> {
        let found = process::kill_and_inspect(pidfd)?;
        Ok((found, found.is_all().then_some(ProofOfDeath(()))))
    }

    /// Returns a proof of death for a spare strategy's process that was never started, as no
    /// process id was published for it. The launcher is the only one that starts processes, and
    /// publishes each.
    pub fn of_unstarted(control: &Control, process: usize) -> Option<ProofOfDeath> {
        control.pid(process).is_none().then_some(ProofOfDeath(()))
    }

    /// Returns a proof of death for a simulated process, by dropping its agent, which then cannot
    /// run any more.
    pub fn from_simulated<C: Clock>(agent: Box<dyn Agent<C>>) -> ProofOfDeath {
        drop(agent);
        ProofOfDeath(())
    }
}

/// The current incarnation (restart number) of a strategy or gateway, as the launcher publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// The number of the incarnation, from 0.
    pub epoch: u16,
    /// `true` if the death of the incarnation is certain.
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
    /// Declares a strategy's incarnation dead (fencing), so that the engine repairs its rings.
    pub fn fence(&self, strategy: StrategyIndex, epoch: u16, _certain: &ProofOfDeath) {
        self.set_incarnation(strategy, Incarnation { epoch, fenced: true });
    }

    /// Declares a strategy that is a thread of the engine's process dead, so that the engine
    /// receives nothing more from it. The thread is gone, as the kernel reports, or it hangs and is
    /// abandoned. No signal ends one thread alone, so nothing proves that an abandoned one does not
    /// write again: its memory is not reset.
    pub fn fence_thread(&self, strategy: StrategyIndex, epoch: u16) {
        self.set_incarnation(strategy, Incarnation { epoch, fenced: true });
    }

    /// Declares the first incarnation of a spare strategy dead, before the run starts: it never
    /// runs, and its memory was not used.
    pub fn fence_spare(&self, strategy: StrategyIndex) {
        self.set_incarnation(strategy, Incarnation { epoch: 0, fenced: true });
    }

    /// Publishes that a strategy's next incarnation, `epoch`, may start; the caller must have reset
    /// the strategy's own memory before.
    pub fn renew(&self, strategy: StrategyIndex, epoch: u16) {
        self.set_incarnation(strategy, Incarnation { epoch, fenced: false });
    }

    fn set_incarnation(&self, strategy: StrategyIndex, life: Incarnation) {
        assert!(strategy.as_usize() < MAX_STRATEGIES);
        self.set_life(LIVES + strategy.as_usize(), life);
    }

    fn set_life(&self, offset: usize, life: Incarnation) {
        let words = self.words();
        // Release: pairs with the Acquire in `life`; who sees it alive sees the reset memory.
        words[offset].store(life.to_word(), Ordering::Release);
        // Release: pairs with the Acquire in `generation`; who sees the count sees the word above.
        words[GENERATION].store(words[GENERATION].load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

impl Control {
    /// Returns a counter of strategies' and gateways' deaths and restarts: one load of a cache
    /// line.
    #[inline(always)]
    pub fn generation(&self) -> u64 {
        self.view().load(GENERATION, Ordering::Acquire)
    }

    /// Returns the current incarnation of a strategy, and whether it is dead.
    pub fn incarnation(&self, strategy: StrategyIndex) -> Incarnation {
        assert!(strategy.as_usize() < MAX_STRATEGIES);
        self.life(LIVES + strategy.as_usize())
    }

    fn life(&self, offset: usize) -> Incarnation {
        Incarnation::from_word(self.view().load(offset, Ordering::Acquire))
    }
}

named_enum! {
    /// The reason of a quarantine, or the damage of memory that several strategies write.
    ProtocolViolation {
        /// A cursor or a sequence in the strategy's ring jumped, went back or was overwritten.
        BadCursor = "bad-cursor",
        /// The strategy sent a message that is not a valid order.
        Garbage = "garbage",
        /// The strategy sent an order with the id of another strategy.
        ForeignId = "foreign-id",
        /// The strategy sent an order of an incarnation that is not the current one.
        WrongEpoch = "wrong-epoch",
        /// The strategy sent orders whose sequences repeat, decrease or have gaps.
        OutOfSequence = "out-of-sequence",
        /// The strategy sent more orders for nonexistent venues than a mistake explains.
        UnknownVenue = "unknown-venue",
        /// The strategy sent more orders beyond its limits than a mistake explains.
        Flood = "flood",
        /// The strategy claimed a slot of the submit hand-off and never wrote it; detected by the
        /// launcher.
        #[serde(rename = "withheld-place")]
        UnwrittenClaim = "withheld-place",
        /// Shared memory of several strategies is damaged beyond repair.
        RingDamaged = "ring-damaged",
        /// The strategy's threads published an invalid status block. Detected by the launcher.
        ForgedStatus = "forged-status",
        /// The strategy changed the header of a segment that only it can write. Detected by the
        /// launcher.
        ForgedHeader = "forged-header",
    }
}

impl ProtocolViolation {
    /// Returns the code of the protocol violation, from 1.
    pub fn code(self) -> u64 {
        Self::ALL.iter().position(|other| *other == self).map_or(0, |place| place as u64 + 1)
    }

    /// Returns the protocol violation with this code.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code.checked_sub(1)?).ok()?).copied()
    }
}

/// A slot of the submit ring (strategies to orchestrator) that a producer has claimed but not
/// written, which blocks later orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedClaim {
    /// The number of the slot, modulo 2^54.
    pub slot: u64,
    /// The first running strategy whose own memory announces the slot, if there is one.
    pub announcer: Option<StrategyIndex>,
    /// Time at which the engine first saw the slot blocked, in ticks.
    pub since_ticks: u64,
}

/// Bits of the announcer: 0, or the strategy plus one.
const ANNOUNCER_BITS: u32 = 9;
const _: () = assert!(MAX_STRATEGIES < 1 << ANNOUNCER_BITS);

/// The engine's report on the repair of the rings after a strategy's death or quarantine: times, in
/// ticks, and counts since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The last epoch whose repair is complete.
    pub repaired: Option<u16>,
    /// The epoch that was quarantined, and the reason.
    pub quarantined: Option<(u16, ProtocolViolation)>,
    /// Time at which the engine saw the fence, in ticks.
    pub noticed_ticks: u64,
    /// Time at which the repair was complete, in ticks.
    pub repaired_ticks: u64,
    /// Time at which the strategy was quarantined, in ticks.
    pub quarantined_ticks: u64,
    /// Number of orders of dead incarnations that were refused after the fence.
    pub refused: u64,
    /// Number of reports that no running incarnation could receive.
    pub orphaned: u64,
}

const REPAIRED: usize = 0;
const QUARANTINED: usize = 1;
const NOTICED: usize = 2;
const REPAIRED_TICKS: usize = 3;
const QUARANTINED_TICKS: usize = 4;
const REFUSED: usize = 5;
const ORPHANED: usize = 6;

const fn word_offset(strategy: StrategyIndex, word: usize) -> usize {
    STRATEGIES + strategy.as_usize() * WORDS_EACH + word
}

/// The engine's writing end of the segment in which the engine reports on dead or quarantined
/// strategies and on dead gateways.
pub struct RepairsWriter(AtomicWords);

impl RepairsWriter {
    /// Creates the engine's writing end of the segment in which the engine reports on dead or
    /// quarantined strategies and on dead gateways.
    pub fn new(segment: &AtomicWords) -> Self {
        Self(segment.slice(0, REPAIRS_WORDS))
    }

    fn set(&self, strategy: StrategyIndex, word: usize, value: u64) {
        self.0[word_offset(strategy, word)].store(value, Ordering::Relaxed);
    }

    /// Reports that the repair after a strategy's dead incarnation is complete.
    pub fn set_repaired(&self, strategy: StrategyIndex, epoch: u16, noticed_ticks: u64, now_ticks: u64) {
        self.set(strategy, NOTICED, noticed_ticks);
        self.set(strategy, REPAIRED_TICKS, now_ticks);
        // Release: pairs with the Acquire in `strategy_repair`; then the memory is reset.
        self.0[word_offset(strategy, REPAIRED)].store(u64::from(epoch) + 1, Ordering::Release);
        self.notify();
    }

    /// Reports the quarantine of a strategy: the engine reads no more from it, and the launcher
    /// kills it.
    pub fn quarantine(&self, strategy: StrategyIndex, epoch: u16, why: ProtocolViolation, now_ticks: u64) {
        self.set(strategy, QUARANTINED_TICKS, now_ticks);
        // Release: pairs with the Acquire in `strategy_repair`.
        self.0[word_offset(strategy, QUARANTINED)]
            .store((u64::from(epoch) << 8) | why.code(), Ordering::Release);
        self.notify();
    }

    /// Returns `true` if this engine, or an earlier one that crashed, reported the strategy's
    /// incarnation as repaired.
    pub fn was_repaired(&self, strategy: StrategyIndex, epoch: u16) -> bool {
        // Relaxed: our own stores, or those of a predecessor whose death is certain.
        self.0[word_offset(strategy, REPAIRED)].load(Ordering::Relaxed) == u64::from(epoch) + 1
    }

    /// Returns `true` if this engine, or an earlier one that crashed, reported the strategy's
    /// incarnation as quarantined.
    pub fn was_quarantined(&self, strategy: StrategyIndex, epoch: u16) -> bool {
        let word = self.0[word_offset(strategy, QUARANTINED)].load(Ordering::Relaxed);
        word != 0 && word >> 8 == u64::from(epoch)
    }

    /// Reports damage of memory that several strategies write, without a known culprit.
    pub fn set_damaged(&self, what: ProtocolViolation) {
        self.0[DAMAGE].store(what.code(), Ordering::Release);
        self.notify();
    }

    /// Reports the claimed but unwritten slot that blocks later orders in the submit hand-off;
    /// `None` if no slot does.
    pub fn set_blocked(&self, at: Option<BlockedClaim>) {
        // Release, also below: pairs with the Acquire in `blocked_claim`: no time of another slot.
        self.0[BLOCKED_SLOT].store(0, Ordering::Release);
        let Some(BlockedClaim { slot: place, announcer, since_ticks }) = at else { return };
        self.0[BLOCKED_SINCE].store(since_ticks, Ordering::Release);
        let announcer = announcer.map_or(0, |strategy| u64::from(strategy.0) + 1);
        // The bit between slot and announcer is always set: the word of a slot is never 0.
        let place = (place << 1 | 1) << ANNOUNCER_BITS;
        self.0[BLOCKED_SLOT].store(place | announcer, Ordering::Release);
    }

    /// Publishes how many orders of a strategy's dead incarnations were refused, and how many
    /// reports no running incarnation could receive.
    pub fn set_counts(&self, strategy: StrategyIndex, refused: u64, orphaned: u64) {
        self.set(strategy, REFUSED, refused);
        self.set(strategy, ORPHANED, orphaned);
    }

    fn notify(&self) {
        let count = self.0[REPORT_COUNT].load(Ordering::Relaxed).wrapping_add(1);
        self.0[REPORT_COUNT].store(count, Ordering::Release);
        shm::futex::wake_all(&self.0[REPORT_COUNT]);
    }
}

/// The launcher's read-only view of the engine's reports about dead strategies.
pub struct Repairs(ReadOnlyWords);

impl Repairs {
    /// Creates the launcher's view of the segment with the engine's reports.
    pub fn new(segment: ReadOnlyWords) -> Self {
        Self(segment.slice(0, REPAIRS_WORDS))
    }

    /// Returns the number of reports that the engine has made so far, to be passed to
    /// [`Repairs::wait`].
    pub fn report_count(&self) -> u64 {
        self.0.load(REPORT_COUNT, Ordering::Acquire)
    }

    /// Sleeps until the engine has made more than `count` reports, or until `timeout` has passed.
    pub fn wait(&self, count: u64, timeout: Duration) {
        if self.report_count() == count {
            self.0.wait(REPORT_COUNT, count as u32, timeout);
        }
    }

    /// Returns which damage the engine reported in memory that several strategies write; `None` if
    /// it reported none.
    pub fn damage(&self) -> Option<ProtocolViolation> {
        ProtocolViolation::from_code(self.0.load(DAMAGE, Ordering::Acquire))
    }

    /// Returns the submit slot that a strategy claimed but has not written, so that it blocks later
    /// orders; `None` if no slot does.
    pub fn blocked_claim(&self) -> Option<BlockedClaim> {
        let word = self.0.load(BLOCKED_SLOT, Ordering::Acquire);
        let since_ticks = self.0.load(BLOCKED_SINCE, Ordering::Acquire);
        if word == 0 || self.0.load(BLOCKED_SLOT, Ordering::Acquire) != word {
            return None;
        }
        let announcer = (word & ((1 << ANNOUNCER_BITS) - 1)).checked_sub(1);
        let announcer = announcer.map(|strategy| StrategyIndex(strategy as u16));
        Some(BlockedClaim { slot: word >> (ANNOUNCER_BITS + 1), announcer, since_ticks })
    }

    /// Returns the engine's report about the repair after a strategy's death or quarantine.
    pub fn strategy_repair(&self, strategy: StrategyIndex) -> Repair {
        assert!(strategy.as_usize() < MAX_STRATEGIES);
        // Acquire: pairs with the Release in `set_repaired` and `quarantine`.
        let repaired = self.0.load(word_offset(strategy, REPAIRED), Ordering::Acquire);
        let quarantined = self.0.load(word_offset(strategy, QUARANTINED), Ordering::Acquire);
        let count = |word| self.0.load(word_offset(strategy, word), Ordering::Relaxed);
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
        launching.fence(StrategyIndex(3), 7, &death);
        assert_eq!(control.incarnation(StrategyIndex(3)), Incarnation { epoch: 7, fenced: true });
        assert_eq!(control.incarnation(StrategyIndex(2)), Incarnation { epoch: 0, fenced: false });
        assert_ne!(control.generation(), before);
        launching.renew(StrategyIndex(3), 8);
        assert_eq!(control.incarnation(StrategyIndex(3)), Incarnation { epoch: 8, fenced: false });
    }

    #[test]
    fn engine_reports_are_readable_by_launcher() {
        let words = Region::heap(REPAIRS_WORDS).words();
        let (writer, reader) = (RepairsWriter::new(&words), Repairs::new(words.clone().into()));
        assert_eq!((reader.strategy_repair(StrategyIndex(0)), reader.damage()), (Repair::default(), None));
        let count = reader.report_count();
        writer.quarantine(StrategyIndex(255), 4095, ProtocolViolation::Flood, 9);
        writer.set_repaired(StrategyIndex(255), 4095, 10, 12);
        writer.set_counts(StrategyIndex(255), 3, 4);
        writer.set_damaged(ProtocolViolation::RingDamaged);
        let repair = reader.strategy_repair(StrategyIndex(255));
        assert_eq!(
            (repair.repaired, repair.quarantined),
            (Some(4095), Some((4095, ProtocolViolation::Flood)))
        );
        assert_eq!((repair.noticed_ticks, repair.repaired_ticks, repair.refused), (10, 12, 3));
        assert_eq!(reader.damage(), Some(ProtocolViolation::RingDamaged));
        assert_ne!(reader.report_count(), count);
        reader.wait(count, Duration::from_secs(600));
        assert_eq!(reader.blocked_claim(), None);
        for announcer in [None, Some(StrategyIndex(0)), Some(StrategyIndex(255))] {
            let at = BlockedClaim { slot: 0, announcer, since_ticks: 7 };
            writer.set_blocked(Some(at));
            assert_eq!(reader.blocked_claim(), Some(at));
        }
        writer.set_blocked(None);
        assert_eq!(reader.blocked_claim(), None);
    }
}
