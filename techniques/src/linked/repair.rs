//! Repair of the linked list after a producer's death: a claimed slot, an unlinked block.

use super::arena::{BlockLink, TAIL};
use super::consumer::Consumer;
use shm::sync::Ordering;

impl<const W: usize, const B: usize, const PROTECTED: bool> Consumer<W, B, PROTECTED> {
    /// Frees a memory block that a dead producer had allocated and not linked.
    pub(super) fn reclaim_block(&mut self, id: usize, producer: usize) {
        if id >= self.arena.blocks {
            return;
        }
        // Allocated by the dead producer and without a successor: it is either unlinked, or the
        // last of the list. Only the dead producer could have linked it, so that no longer changes.
        let is_lost = self.arena.is_taken_by(id, producer as u64)
            && self.linked_blocks().is_some_and(|blocks| blocks.iter().all(|block| block.id != id));
        if is_lost {
            self.arena.free(id, self.freed);
            self.freed += 1;
        }
    }

    /// Skips a slot that a dead producer had claimed and not written. Returns `false` while the
    /// slot is not reached, and while another producer may have claimed it.
    pub(super) fn try_skip(&mut self, position: u64) -> bool {
        // Acquire: pairs with the claim; the announcement of the claimant is visible.
        let tail = self.arena.words[TAIL].load(Ordering::Acquire);
        // Already taken, or not claimed.
        if !(self.head..tail).contains(&position) {
            return true;
        }
        // Also not reached if its block has not been entered yet; `pop` enters it.
        if position > self.head || self.slot == B {
            return false;
        }
        // Before the stamp, and Acquire there: a producer that announces another slot by now has
        // written this one.
        let is_announced = self.intents.is_announced(position);
        if self.is_written() {
            return true;
        }
        if !is_announced {
            self.advance();
            self.passed_over += 1;
        }
        !is_announced
    }

    /// Returns `true` if the next slot to take is written.
    pub(super) fn is_written(&self) -> bool {
        let slot = self.arena.slot_offset(self.block, self.slot);
        // Between two blocks no slot can be read: `pop` finds the next block.
        self.slot == B || self.arena.words[slot].load(Ordering::Relaxed) > self.head
    }

    /// Returns the blocks from the consumer's to the last, by their links; `None` if a link is
    /// invalid. Bounded by the size of the arena, even if links are corrupt.
    fn linked_blocks(&self) -> Option<Vec<BlockLink>> {
        let mut blocks = vec![self.current];
        loop {
            let last = blocks[blocks.len() - 1];
            // Relaxed: a link of an earlier use is never seen, because we ourselves marked the
            // block free since; and a link that the dead producer made or found is visible, because
            // its death is certain.
            let link = self.arena.words[self.arena.block_offset(last.id)].load(Ordering::Relaxed);
            if link & 1 == 0 {
                return Some(blocks);
            }
            let next = BlockLink::from_word(link, self.arena.blocks)?;
            if next.number != last.number + 1 || blocks.len() == self.arena.blocks {
                return None;
            }
            blocks.push(next);
        }
    }
}
