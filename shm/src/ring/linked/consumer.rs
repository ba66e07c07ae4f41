//! The receiving end: follows the blocks with a private cursor, and gives them back.

use super::arena::{Arena, BLOCK_SLOTS, Block, FREE_HEAD, FRESH, TAIL};
use crate::memory::{HeaderError, Words};
use crate::ring::{Allocation, PeerFault};
use crate::sync::{Ordering, load_owned};

/// The receiving end. At most one in a list's life.
pub struct Consumer<const W: usize = { crate::wire::MESSAGE_WORDS }, const B: usize = BLOCK_SLOTS> {
    arena: Arena<W, B>,
    /// The number of the next message to take. Private.
    head: u64,
    /// The block that it is in (id), where that begins, and the message's slot; the slot after the last one: in the
    /// block that comes next.
    current: Block,
    block: usize,
    slot: usize,
    /// The block before this one, while no message of this one was taken.
    behind: Option<usize>,
    /// Blocks given back.
    given_back: u64,
    /// What comes behind this block cannot be found.
    broken: bool,
}

impl<const W: usize, const B: usize> Consumer<W, B> {
    /// Attaches the receiving end to an arena that has its header.
    ///
    /// # Errors
    /// As [`Producer::attach`](super::Producer::attach).
    pub fn attach(words: &Words) -> Result<Self, HeaderError> {
        let arena = Arena::attach(words)?;
        let block = arena.block(0);
        let current = Block { number: 0, id: 0 };
        Ok(Self { arena, head: 0, current, block, slot: 0, behind: None, given_back: 0, broken: false })
    }

    /// Takes the next message, or `None` if there is none now.
    ///
    /// # Errors
    /// [`PeerFault::InvalidStamp`]: somebody scribbled over a stamp, the next call goes on.
    /// [`PeerFault::InvalidLink`]: the list ends here for good.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<Option<[u64; W]>, PeerFault> {
        if self.slot == B && !self.next_block()? {
            return Ok(None);
        }
        let slot = self.arena.slot(self.block, self.slot);
        let slot = &self.arena.words[slot..slot + W + 1];
        // Acquire: pairs with the producer's Release of the stamp; the words are written.
        let stamp = slot[0].load(Ordering::Acquire);
        if stamp != self.head + 1 {
            return if stamp <= self.head { Ok(None) } else { Err(self.mend(stamp)) };
        }
        let mut message = [0; W];
        for (value, word) in message.iter_mut().zip(&slot[1..]) {
            // Ours until we give it back: the Acquire of the stamp orders this after the stores of the words.
            *value = load_owned(word);
        }
        self.step();
        Ok(Some(message))
    }

    /// Goes on to the next message, and gives the block before this one back if this was the first one here.
    #[inline(always)]
    fn step(&mut self) {
        self.head += 1;
        self.slot += 1;
        if let Some(id) = self.behind.take() {
            self.arena.give_back(id, self.given_back);
            self.given_back += 1;
        }
    }

    /// Goes on to the block that follows, if there is one.
    #[cold]
    fn next_block(&mut self) -> Result<bool, PeerFault> {
        // Acquire: pairs with the Release of the link; the next block's own `next` is not that of an earlier use, even if
        // none of the stamps there says so.
        let link = self.arena.words[self.block].load(Ordering::Acquire);
        if link & 1 == 0 || self.broken {
            return Ok(false);
        }
        let follows = |next: &Block| next.number == self.current.number + 1 && next.id != self.current.id;
        let Some(next) = Block::from_word(link, self.arena.blocks).filter(follows) else {
            self.broken = true;
            return Err(PeerFault::InvalidLink { link, block: self.current.number });
        };
        self.behind = Some(self.current.id);
        self.current = next;
        self.block = self.arena.block(next.id);
        self.slot = 0;
        Ok(true)
    }

    /// Somebody scribbled over the stamp at our place.
    #[cold]
    fn mend(&mut self, stamp: u64) -> PeerFault {
        let position = self.head;
        // Relaxed: it may be a lie as well, and then one damaged message more or less makes no difference.
        let ahead = self.arena.words[TAIL].load(Ordering::Relaxed).wrapping_sub(position);
        if (1..1 << 63).contains(&ahead) {
            // Claimed; whatever was written there cannot be told from what was not: passed over.
            self.step();
        } else {
            let slot = self.arena.slot(self.block, self.slot);
            // Nobody's place: as it was, unless it has changed again meanwhile. Relaxed: no producer looks at a stamp.
            let _ = self.arena.words[slot].compare_exchange(stamp, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        PeerFault::InvalidStamp { stamp, position }
    }

    /// How the list has grown so far. Whoever may write the arena may falsify it.
    pub fn allocation(&self) -> Allocation {
        let count = |word: usize| self.arena.words[word].load(Ordering::Relaxed);
        Allocation { fresh: count(FRESH).saturating_add(1), reused: count(FREE_HEAD) }
    }
}
