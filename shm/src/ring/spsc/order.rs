//! In which order the producer fills the blocks: its own memory, which nobody else sees.

use super::blocks::{Blocks, count};

/// Messages that may wait while the block that was emptied last is taken: who waits for an answer to each has one or two under way, a stream has more.
const FEW: u64 = 4;
/// Blocks between two looks at the head, at most, while more wait.
const LOOKS_APART: u64 = 64;
/// Blocks from which on they come home: a ring of fewer is in a first-level cache, and there the order of memory brings nothing. In models and in games any ring that has blocks.
const HOMING: u64 = if cfg!(any(loom, test)) { 2 } else { 32 };

/// Which block has which part of all messages: a permutation. Part `n` (messages `n` · slots and on) is in the block that stands at `n` modulo the number of blocks.
pub(super) struct Order {
    blocks: Blocks,
    block_at: Box<[u16]>,
    /// Where each block stands.
    stands_at: Box<[u16]>,
    /// The first part before which the head is looked at again.
    look_from: u64,
    /// Blocks from the last look to that one, if it found too many.
    apart: u64,
}

impl Order {
    /// One after the other.
    pub(super) fn new(blocks: Blocks) -> Self {
        Self::of(blocks, (0..blocks.count()).map(|block| block as u16).collect())
    }

    /// In that order.
    fn of(blocks: Blocks, block_at: Box<[u16]>) -> Self {
        let mut stands_at = vec![0; block_at.len()].into_boxed_slice();
        for (at, &block) in (0..).zip(&block_at) {
            stands_at[usize::from(block)] = at;
        }
        Self { blocks, block_at, stands_at, look_from: 0, apart: 1 }
    }

    /// As a dead producer left it, as far as it matters: `newest` has the count of messages up to the last one that is in each block, 0 if none is.
    pub(super) fn found(blocks: Blocks, newest: &[u64]) -> Self {
        let mut by_age: Vec<usize> = (0..newest.len()).collect();
        by_age.sort_unstable_by_key(|&block| core::cmp::Reverse(newest[block]));
        let mut block_at = vec![None; newest.len()];
        // What is still to be taken has its place for itself: it is of one lap, and everything else is older.
        by_age.retain(|&block| {
            let Some(last) = newest[block].checked_sub(1) else { return true };
            let at = &mut block_at[blocks.number(blocks.filled(last)) as usize];
            let is_taken = at.is_some();
            at.get_or_insert(block as u16);
            is_taken
        });
        let mut rest = by_age.into_iter().map(|block| block as u16);
        let block_at = block_at.into_iter().map(|block| block.or_else(|| rest.next()).unwrap_or(0));
        Self::of(blocks, block_at.collect())
    }

    /// Exchanges the blocks that stand there.
    #[inline(always)]
    fn exchange(&mut self, one: usize, other: usize) {
        self.block_at.swap(one, other);
        self.stands_at[usize::from(self.block_at[one])] = one as u16;
        self.stands_at[usize::from(self.block_at[other])] = other as u16;
    }

    /// Where in the order the block of that part is.
    #[inline(always)]
    fn at(&self, part: u64) -> usize {
        self.blocks.number(part) as usize
    }

    /// The block that has that part.
    #[inline(always)]
    pub(super) fn block(&self, part: u64) -> u64 {
        u64::from(self.block_at[self.at(part)])
    }

    /// The place of that message, if its block is decided.
    #[inline(always)]
    pub(super) fn place(&self, position: u64) -> u64 {
        self.blocks.first(self.block(self.blocks.filled(position))) + self.blocks.within(position)
    }

    /// Messages that wait, as that head says, when that part is next.
    #[inline(always)]
    fn waiting(&self, next: u64, head: u64) -> u64 {
        (next * self.blocks.slots()).wrapping_sub(head)
    }

    /// Whether so many are few. One at the least, the last one of the part before the next one, which is not there yet; no more than that part has, so that the part before it
    /// is emptied. Never for what no honest head is.
    #[inline(always)]
    fn are_few(&self, waiting: u64) -> bool {
        waiting.wrapping_sub(1) < self.blocks.slots().min(FEW)
    }

    /// Whether the head is to be looked at before that part's block is decided. A consumer that was too far behind at the last look is left alone for as many blocks as waited, and
    /// for twice as many as the time before: each look takes its line away and waits for it.
    #[inline(always)]
    pub(super) fn is_to_look(&self, next: u64) -> bool {
        self.blocks.count() > 1 && next >= self.look_from
    }

    /// Takes note of what a look found.
    #[inline(always)]
    pub(super) fn looked(&mut self, next: u64, head: u64) {
        let waiting = self.waiting(next, head);
        if self.are_few(waiting) {
            self.apart = 1;
        } else {
            self.apart = (2 * self.apart).min(LOOKS_APART);
            // What is no honest head puts it off by a lap.
            self.look_from = next + self.blocks.filled(waiting).max(self.apart).min(self.blocks.count());
        }
    }

    /// Decides which block the next part goes to, the part before it being the last one that was decided, when the head says so: the one that was emptied
    /// last, if few messages wait; else the one behind the last one in memory if it is empty, or the one that is due. Which one.
    #[inline(always)]
    pub(super) fn decide(&mut self, next: u64, head: u64) -> u64 {
        // Parts that are emptied: all before this one.
        let emptied = self.blocks.filled(head);
        if emptied > 0 && self.are_few(self.waiting(next, head)) {
            self.exchange(self.at(next), self.at(emptied - 1));
        } else if self.blocks.count() >= HOMING {
            self.come_home(next, emptied);
        }
        self.block(next)
    }

    /// Makes the next part's block the one that lies behind the last one in memory, if so many parts are emptied that it is: who took blocks out of that order, because few
    /// messages waited, puts them back while it streams. Processors ask ahead in that order. A consumer whose head lies loses messages of its own ring and nothing else.
    #[inline(always)]
    fn come_home(&mut self, next: u64, emptied: u64) {
        let home = self.blocks.number(self.block(next - 1) + 1);
        let stands = self.stands_at[home as usize];
        // So many parts later it is due. What is due before it was filled before it the last time, and so was emptied before it.
        let later = self.blocks.number(u64::from(stands).wrapping_sub(next));
        if next + later < emptied.saturating_add(self.blocks.count()) {
            self.exchange(self.at(next), usize::from(stands));
        }
    }

    /// Makes that part's block be that one: it was decided so.
    pub(super) fn was_decided(&mut self, next: u64, block: u64) {
        let stands = self.stands_at[self.blocks.number(block) as usize];
        self.exchange(self.at(next), usize::from(stands));
    }
}

/// How many messages were published, as these sequences of all slots say, in any order, of which the `ahead` last ones may be written and not shown. Also while the
/// producer goes on: no fewer than when the first one was loaded, no more than when the last one was.
pub(super) fn published(sequences: impl Iterator<Item = u64>, ahead: usize) -> u64 {
    // Bit `n`: the message `n` before the newest one was seen.
    let (mut newest, mut seen) = (0, 0u64);
    for count in sequences.map(count).filter(|&count| count > 0) {
        if count > newest {
            seen = seen.checked_shl((count - newest).min(64) as u32).unwrap_or(0) | 1;
            newest = count;
        } else {
            seen |= 1u64.checked_shl((newest - count).min(64) as u32).unwrap_or(0);
        }
    }
    // What is older than a batch was shown.
    let missing = (0..(ahead as u64).min(newest)).rev().find(|back| seen >> back & 1 == 0);
    missing.map_or(newest, |back| newest - back - 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::blocks::sequence;
    use super::*;
    use proptest::prelude::*;

    fn blocks_of(order: &Order) -> Vec<u16> {
        let mut blocks = order.block_at.to_vec();
        blocks.sort_unstable();
        blocks
    }

    /// What came of a game.
    #[derive(Debug, PartialEq)]
    struct Played {
        /// Parts that hold a block that was not emptied when it was filled again.
        overwritten: usize,
        /// Blocks that were used.
        used: usize,
        /// Looks at the head.
        looks: usize,
    }

    /// Slots of a block in these games.
    const SLOTS: u64 = 32;

    /// A producer that fills part after part, and a consumer that takes some messages before each.
    fn played(count: u64, taken_before: &[u64], decide: fn(&mut Order, u64, u64) -> u64) -> Played {
        let blocks = Blocks::of(SLOTS * count);
        assert_eq!(blocks.count(), count);
        let mut order = Order::new(blocks);
        let mut parts_of = vec![Vec::new(); count as usize];
        parts_of[order.block(0) as usize].push(0);
        let (mut taken, mut seen, mut overwritten, mut looks) = (0, 0, 0, 0);
        for (part, more) in (1..).zip(taken_before) {
            // The last message of the part before is not there yet; a lap ahead there is no room.
            taken = (taken + more).min(SLOTS * part - 1).max(SLOTS * part.saturating_sub(count));
            if order.is_to_look(part) {
                (seen, looks) = (taken, looks + 1);
                order.looked(part, seen);
            }
            let block = decide(&mut order, part, seen);
            // The block that is due in order may be in use yet: it is filled slot by slot.
            let in_use = parts_of[block as usize]
                .last()
                .is_some_and(|&of| SLOTS * (of + 1) > taken && of + count != part);
            overwritten += usize::from(in_use);
            parts_of[block as usize].push(part);
            assert_eq!(blocks_of(&order), (0..count as u16).collect::<Vec<_>>());
            assert_eq!(order.place(SLOTS * part + 3), SLOTS * block + 3);
        }
        Played { overwritten, used: parts_of.iter().filter(|parts| !parts.is_empty()).count(), looks }
    }

    #[test]
    fn a_consumer_that_keeps_up_makes_two_blocks_of_any_ring() {
        for count in if cfg!(miri) { [4, 8, 8] } else { [4, 8, 64] } {
            // Nothing waits but the message that is on its way, and three more.
            for waiting in [1, FEW] {
                let taken: Vec<u64> = std::iter::once(SLOTS - waiting).chain([SLOTS; 199]).collect();
                let kept_up = Played { overwritten: 0, used: 2, looks: 200 };
                assert_eq!(played(count, &taken, Order::decide), kept_up, "{waiting}");
            }
            for taken in [[0; 200], [SLOTS - FEW - 1; 200]] {
                let Played { overwritten, used, .. } = played(count, &taken, Order::decide);
                assert_eq!((overwritten, used), (0, count as usize), "filled in order");
            }
        }
    }

    #[test]
    fn a_stream_puts_blocks_back_in_the_order_of_memory() {
        let count = 16;
        let mut order = Order::new(Blocks::of(SLOTS * count));
        // Few wait, now and then, whenever it was: blocks leave the order.
        for part in 1..200u64 {
            let few = (part * part) % 7 < 3;
            order.decide(part, SLOTS * part - if few { 1 } else { SLOTS });
        }
        let in_order = |order: &Order, from: u64| {
            (from..from + count)
                .filter(|&part| (order.block(part) + 1) % count == order.block(part + 1))
                .count()
        };
        assert!(in_order(&order, 199) < 12, "{:?}", order.block_at);
        // A lap in which all but two blocks are empty each time.
        (200..200 + count).for_each(|part| {
            order.decide(part, SLOTS * (part - 1));
        });
        assert_eq!(in_order(&order, 199), 16, "{:?}", order.block_at);
        // A block that is not empty cannot come home: the one that is due is filled.
        let (home, due) = (order.block(216), order.block(220));
        order.exchange(order.at(216), order.at(220));
        assert_eq!(order.decide(216, SLOTS * 205 - 1), due);
        assert_eq!(order.decide(216, SLOTS * 205), home);
    }

    #[test]
    fn a_consumer_that_is_behind_is_left_alone() {
        // Twice as far at each look.
        let behind = played(64, &[0; 60], Order::decide);
        assert!(behind.looks <= 8, "{behind:?}");
        // As quick as the producer, and a few messages or 40 blocks behind.
        let heels: Vec<u64> = (0..400).map(|part| SLOTS - u64::from(part == 0) * 10).collect();
        let lags: Vec<u64> = (0..400).map(|part| u64::from(part >= 40) * SLOTS).collect();
        for (name, taken) in [("heels", &heels), ("lags", &lags)] {
            let left_alone = played(64, taken, Order::decide);
            assert_eq!(left_alone.used, 64, "{name}: {left_alone:?}");
            assert!(left_alone.looks <= 8 + 400 / 38, "{name}: {left_alone:?}");
        }
        // It catches up, and two blocks are enough again, for the rest of the game.
        let catches_up: Vec<u64> = lags.into_iter().chain([3 * SLOTS; 100]).chain([SLOTS; 500]).collect();
        let caught_up = played(64, &catches_up, Order::decide);
        assert!(caught_up.looks > 450, "{caught_up:?}");
    }

    #[test]
    fn a_block_that_is_not_emptied_and_is_taken_is_found() {
        // One that takes a block for emptied whose last message is not taken.
        let broken = |order: &mut Order, next: u64, head: u64| order.decide(next, head + SLOTS);
        assert!(played(8, &[20, 0, 40, 0, 33, 0, 0, 64, 0, 0, 31], broken).overwritten > 0);
        // And one to which as many messages are few as a block and more has.
        let careless =
            |order: &mut Order, next: u64, head: u64| order.decide(next, head.max(SLOTS * next - 1));
        assert!(played(8, &[20, 0, 40, 0, 33, 0, 0, 64, 0, 0, 31], careless).overwritten > 0);
        // And one that calls blocks home two parts too early.
        let early = |order: &mut Order, next: u64, head: u64| {
            if order.are_few(order.waiting(next, head)) {
                return order.decide(next, head);
            }
            order.come_home(next, order.blocks.filled(head) + 2);
            order.block(next)
        };
        let mixed: Vec<u64> =
            (0..if cfg!(miri) { 60 } else { 300 }).map(|part| [31, 32, 5, 64, 32, 0, 70][part % 7]).collect();
        assert!(played(8, &mixed, early).overwritten > 0);
        assert_eq!(played(8, &mixed, Order::decide).overwritten, 0);
    }

    #[test]
    fn no_head_is_too_odd() {
        let mut order = Order::new(Blocks::of(1 << 9));
        for head in [u64::MAX, u64::MAX >> 12, 1 << 51, 40 * 32, 0] {
            (1..40).for_each(|next| assert!(order.decide(next, head) < 16));
            (1..40).for_each(|next| order.looked(next, head));
            assert!(order.look_from < 40 + 16, "by a lap at most");
        }
        assert_eq!(blocks_of(&order), (0..16).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]

        #[test]
        fn what_is_not_taken_is_not_written_over(
            log2 in 2u32..7,
            // Most often as many as a block has, or nearly: who keeps up is who gets a block again.
            taken in prop::collection::vec(
                prop_oneof![2 => SLOTS - 6..=SLOTS + 6, 1 => 0..4 * SLOTS],
                1..if cfg!(miri) { 30 } else { 300 },
            ),
        ) {
            prop_assert_eq!(played(1 << log2, &taken, Order::decide).overwritten, 0);
        }

        #[test]
        fn the_first_that_is_missing_is_not_published(
            shown in 1u64..300,
            ahead in prop::collection::vec(any::<bool>(), 0..15),
            order: u64,
        ) {
            // Of the slots of a ring of 64 the newest message each, and a batch whose first message is not there.
            let mut there: Vec<u64> = (shown.saturating_sub(47).max(1)..=shown).collect();
            let written = (shown + 2..).zip(&ahead).filter(|(_, is_there)| **is_there);
            there.extend(written.map(|(count, _)| count));
            there.push(0);
            let middle = order as usize % there.len();
            there.rotate_left(middle);
            let sequences = there.iter().map(|&count| sequence(count, count % 7));
            prop_assert_eq!(published(sequences, 16), shown);
        }
    }
}
