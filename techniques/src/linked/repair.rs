//! Repairs of the linked queue after a producer's death: a claimed slot, an unlinked block.

use super::arena::{Block, TAIL};
use super::consumer::Consumer;
use shm::ring::BlockedSlot;
use shm::sync::Ordering;

impl<const W: usize, const B: usize, const PROTECTED: bool> Consumer<W, B, PROTECTED> {
    /// Gives a block back that a dead producer has announced, if it had taken it and not linked it.
    pub(super) fn take_back(&mut self, id: usize, producer: usize) {
        if id >= self.arena.blocks {
            return;
        }
        // Taken by the dead one, and nothing follows it: its own still, or the last of the list.
        // Only the dead one could have linked it, so which of the two it is does not change any
        // more.
        let is_lost = self.arena.is_taken_by(id, producer as u64)
            && self.blocks().is_some_and(|blocks| blocks.iter().all(|block| block.id != id));
        if is_lost {
            self.arena.give_back(id, self.given_back);
            self.given_back += 1;
        }
    }

    /// Goes on behind a place that a dead producer has announced, if it had claimed it; `false`
    /// while we have not come to it, and while somebody else may have claimed it.
    pub(super) fn pass(&mut self, position: u64) -> bool {
        // Acquire: pairs with the claim; who claimed the place has announced it, and we see that.
        let tail = self.arena.words[TAIL].load(Ordering::Acquire);
        // Taken already, or nobody's.
        if !(self.head..tail).contains(&position) {
            return true;
        }
        // Nor have we come to it while its block is still the next one: `pop` goes there.
        if position > self.head || self.slot == B {
            return false;
        }
        // Before the stamp, and Acquire there: who announces something else by now has written this
        // place.
        let is_announced = self.intents.is_announced(position);
        if self.is_written() {
            return true;
        }
        if !is_announced {
            self.step();
            self.passed_over += 1;
        }
        !is_announced
    }

    /// Whether the stamp at our place says anything but that nothing was written there in this use
    /// of the block.
    pub(super) fn is_written(&self) -> bool {
        let slot = self.arena.slot(self.block, self.slot);
        // Not ours to look at between two blocks: the next one is found by `pop`.
        self.slot == B || self.arena.words[slot].load(Ordering::Relaxed) > self.head
    }

    /// Whether the next place is claimed and not written, and who announces it.
    pub(super) fn claimed_only(&self) -> Option<BlockedSlot> {
        let place = self.head;
        // Relaxed, all of them: it tells of this moment only, and means something only if it lasts.
        let tail = self.arena.words[TAIL].load(Ordering::Relaxed);
        if self.is_written() || tail <= place {
            return None;
        }
        Some(BlockedSlot { position: place, announcer: self.intents.announcer(place) })
    }

    /// The blocks from the consumer's to the last, by their links; `None` if a link leads to no
    /// block that could follow. Bounded by the arena, whatever anybody wrote.
    fn blocks(&self) -> Option<Vec<Block>> {
        let mut blocks = vec![self.current];
        loop {
            let last = blocks[blocks.len() - 1];
            // Relaxed: that of an earlier use is never seen, because we ourselves marked the block
            // free since; and a link that the dead one made or found is there, because its death is
            // certain.
            let link = self.arena.words[self.arena.block(last.id)].load(Ordering::Relaxed);
            if link & 1 == 0 {
                return Some(blocks);
            }
            let next = Block::from_word(link, self.arena.blocks)?;
            if next.number != last.number + 1 || blocks.len() == self.arena.blocks {
                return None;
            }
            blocks.push(next);
        }
    }
}
