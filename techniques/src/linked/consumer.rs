//! The receiving end: follows the blocks with a private cursor, and gives them back.

use super::arena::{Arena, BLOCK_SLOTS, Block, CURRENT, FREE_HEAD, FREE_TAIL, FRESH, HEAD, LAST, TAIL};
use shm::memory::{AtomicWords, HeaderError, Word};
use shm::ring::SharedQueue;
use shm::ring::intent::Intents;
use shm::ring::{Allocation, BlockedSlot, PeerFault};
use shm::sync::{Ordering, load_owned};

/// The receiving end. At most one at a time. `PROTECTED` is `true` but where a bench asks what it
/// costs to have a successor: without it none would know where to go on.
pub struct Consumer<
    const W: usize = { shm::ring::MESSAGE_WORDS },
    const B: usize = BLOCK_SLOTS,
    const PROTECTED: bool = true,
> {
    pub(super) arena: Arena<W, B>,
    pub(super) intents: Intents,
    /// The number of the next message to take. Kept in the arena as well, for a successor only.
    pub(super) head: u64,
    head_word: Word,
    /// The block that it is in (id), where that begins, and the message's slot; the slot after the
    /// last one: in the block that comes next.
    pub(super) current: Block,
    pub(super) block: usize,
    pub(super) slot: usize,
    /// The block before this one, while no message of this one was taken.
    behind: Option<usize>,
    /// Blocks given back.
    pub(super) given_back: u64,
    /// What comes behind this block cannot be found.
    broken: bool,
    pub(super) passed_over: u64,
}

impl<const W: usize, const B: usize, const PROTECTED: bool> Consumer<W, B, PROTECTED> {
    /// Attaches the receiving end to an arena and to the announcements of all its producers, in
    /// their order; all have their headers.
    ///
    /// # Errors
    /// As [`Producer::attach`](super::Producer::attach).
    pub fn attach(arena: &AtomicWords, intents: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let (arena, intents) = (Arena::attach(arena)?, Intents::attach(intents)?);
        let (block, head_word) = (arena.block(0), Word::new(&arena.words, HEAD));
        let current = Block { number: 0, id: 0 };
        Ok(Self {
            arena,
            intents,
            head: 0,
            head_word,
            current,
            block,
            slot: 0,
            behind: None,
            given_back: 0,
            broken: false,
            passed_over: 0,
        })
    }

    /// Attaches a receiving end in the place of one that has died: what was not taken comes out,
    /// whole and in order. The message that the dead one was taking comes out again if it had not
    /// stored its head. Producers may go on meanwhile; retirements begin anew.
    ///
    /// # Errors
    /// As [`Consumer::attach`].
    pub fn resume(arena: &AtomicWords, intents: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let mut consumer = Self::attach(arena, intents)?;
        // Relaxed, all of them: the dead one's death is certain, and so are all its stores.
        let kept = |word: usize| consumer.arena.words[word].load(Ordering::Relaxed);
        let (head, current, behind) = (kept(HEAD), kept(CURRENT), kept(CURRENT + 1));
        // A scribbled one must not make numbers overflow.
        consumer.given_back = kept(FREE_TAIL).min(u64::MAX >> 8);
        if let Some(current) = Block::from_word(current, consumer.arena.blocks) {
            consumer.current = current;
            consumer.block = consumer.arena.block(current.id);
        }
        let Block { number, id } = consumer.current;
        let first = number * B as u64;
        // Both or neither are of the block that follows: a head of a later block is where this one
        // ends.
        consumer.slot = head.saturating_sub(first).min(B as u64) as usize;
        consumer.head = first + consumer.slot as u64;
        // The block before this one, unless it was given back: it still leads here.
        let behind = Block::from_word(behind, consumer.arena.blocks).map(|behind| behind.id);
        let leads_here =
            |behind: &usize| kept(consumer.arena.block(*behind)) == Block { number, id }.to_word();
        consumer.behind = behind.filter(leads_here);
        // What the dead one was giving back, this one or a dead producer's, goes on before anything
        // else is given back.
        let is_half = |id: &usize| consumer.arena.is_half_given_back(*id, consumer.given_back);
        if let Some(id) = (0..consumer.arena.blocks).find(is_half) {
            consumer.arena.give_back(id, consumer.given_back);
            consumer.given_back += 1;
        }
        Ok(consumer)
    }

    /// Goes on to the next message, and gives the block before this one back if this was the first
    /// one here.
    #[inline(always)]
    pub(super) fn step(&mut self) {
        self.head += 1;
        self.slot += 1;
        if PROTECTED {
            // Release: our reads of the message come before it, for who reads it after our death.
            self.head_word.store(self.head, Ordering::Release);
        }
        if let Some(id) = self.behind.take() {
            self.arena.give_back(id, self.given_back);
            self.given_back += 1;
        }
    }

    /// Goes on to the block that follows, if there is one.
    #[cold]
    fn next_block(&mut self, fault: &mut Option<PeerFault>) -> bool {
        // Relaxed: a link of an earlier use is never seen, here or in the next block, because we
        // ourselves marked the block free since; and the stamps order what stands there.
        let link = self.arena.words[self.block].load(Ordering::Relaxed);
        if link & 1 == 0 || self.broken {
            return false;
        }
        let follows = |next: &Block| next.number == self.current.number + 1 && next.id != self.current.id;
        let Some(next) = Block::from_word(link, self.arena.blocks).filter(follows) else {
            self.broken = true;
            *fault = Some(PeerFault::InvalidLink { link, block: self.current.number });
            return false;
        };
        // For a successor: Release, one after the other. The first is used only together with the
        // second, or by itself is that of a block that leads to where the second stands already.
        let kept = &self.arena.words[CURRENT..CURRENT + 2];
        kept[1].store(self.current.to_word(), Ordering::Release);
        kept[0].store(next.to_word(), Ordering::Release);
        self.behind = Some(self.current.id);
        self.current = next;
        self.block = self.arena.block(next.id);
        self.slot = 0;
        true
    }

    /// Somebody scribbled over the stamp at our place.
    #[cold]
    fn mend(&mut self, stamp: u64) -> PeerFault {
        let position = self.head;
        // Relaxed: it may be a lie as well, and then one damaged message more or less makes no
        // difference.
        let ahead = self.arena.words[TAIL].load(Ordering::Relaxed).wrapping_sub(position);
        if (1..1 << 63).contains(&ahead) {
            // Claimed; whatever was written there cannot be told from what was not: passed over.
            self.step();
        } else {
            let slot = self.arena.slot(self.block, self.slot);
            // Nobody's place: as it was, unless it has changed again meanwhile. Relaxed: no
            // producer looks at a stamp.
            let _ = self.arena.words[slot].compare_exchange(stamp, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        PeerFault::InvalidStamp { stamp, position }
    }

    /// The number of the next message to take.
    pub fn position(&self) -> u64 {
        self.head
    }
}

/// # Errors of a pop
/// [`PeerFault::InvalidStamp`]: somebody scribbled over a stamp, the next call goes on. [`PeerFault::InvalidLink`]: the list
/// ends here for good.
///
/// # Errors of a check
/// [`PeerFault::InvalidTail`]: the tail is behind the last message taken, or in a block that was never linked; or it is
/// behind the next place, which nobody has written, announces, or could have left by dying.
/// [`PeerFault::InvalidLink`]: `last` names no block that the tail could be in. Nothing was mended:
/// the list stands still.
impl<const W: usize, const B: usize, const PROTECTED: bool> SharedQueue<W> for Consumer<W, B, PROTECTED> {
    #[inline(always)]
    fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; W]> {
        if self.slot == B && !self.next_block(fault) {
            return None;
        }
        let slot = self.arena.slot(self.block, self.slot);
        let slot = &self.arena.words[slot..slot + W + 1];
        // Acquire: pairs with the producer's Release of the stamp; the words are written.
        let stamp = slot[0].load(Ordering::Acquire);
        if stamp != self.head + 1 {
            if stamp > self.head {
                *fault = Some(self.mend(stamp));
            }
            return None;
        }
        let mut message = [0; W];
        for (value, word) in message.iter_mut().zip(&slot[1..]) {
            // Ours until we give it back: the Acquire of the stamp orders this after the stores of
            // the words.
            *value = load_owned(word);
        }
        self.step();
        Some(message)
    }

    fn retire(&mut self, producer: usize) -> bool {
        if !self.intents.mark_dead(producer) {
            return true;
        }
        // If it had taken a block and not linked it, the block is given back; if it had claimed a
        // place and not written it, we go on behind it when we have come to it.
        if let Some(id) = self.intents.block(producer) {
            self.take_back(id, producer);
        }
        let mended = self.intents.position(producer).is_none_or(|position| self.pass(position));
        if mended {
            self.intents.clear(producer);
        }
        mended
    }

    fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        let (words, position) = (&self.arena.words, self.head);
        // Acquire: pairs with the claims; `last` is as new as the producers' whose claims we see,
        // who announced them.
        let tail = words[TAIL].load(Ordering::Acquire);
        // Acquire: pairs with the Release in `grow`; the next tail is no older than the one by
        // which the block was linked.
        let link = words[LAST].load(Ordering::Acquire);
        let later = words[TAIL].load(Ordering::Relaxed);
        let zero = Block { number: 0, id: 0 };
        let last = if link == 0 { Some(zero) } else { Block::from_word(link, self.arena.blocks) };
        // Linked when the tail is at its begin; the tail goes no further than its end.
        let last = last.filter(|last| last.number <= later / B as u64);
        let Some(last) = last else {
            return Err(PeerFault::InvalidLink { link, block: later / B as u64 });
        };
        let invalid = Err(PeerFault::InvalidTail { tail, position });
        if tail < position || tail > (last.number + 1).saturating_mul(B as u64) {
            return invalid;
        }
        if tail == position || self.intents.is_announced_by_anybody(position) || self.is_written() {
            return Ok(());
        }
        invalid
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        self.claimed_only()
    }

    /// Whoever may write the arena may falsify it.
    fn allocation(&self) -> Allocation {
        let count = |word: usize| self.arena.words[word].load(Ordering::Relaxed);
        Allocation { fresh: count(FRESH).saturating_add(1), reused: count(FREE_HEAD) }
    }
}
