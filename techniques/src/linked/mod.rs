//! `linked`: a linked list of blocks in a shared arena, unbounded up to the size of the arena.
//!
//! ```text
//! word 0        16       32       48        64           80           96              112
//!      │ header │ tail   │ last   │ fresh   │ free head  │ free tail  │ head, current │ …
//!        launcher  any producer                            consumer     consumer
//! word 112                                       then
//!      │ free ring: one block id each (consumer) │ block 0 │ block 1 │ …
//!
//! block  │ next │ stamp │ message │ stamp │ message │ … 31 slots │ pad to 128 bytes
//!
//! tail   the number p of the next message; it is in block number p div 31, slot p mod 31
//! last   the newest block:  number (40 bits) │ id (23) │ 1; 0 is block number 0 in block 0
//! next   linked:            number (40 bits) │ id (23) │ 1 of the following block
//!        taken, not linked: allocation (52 bits) │ producer (10) │ 1 0
//!        free:              count of freed blocks (52 bits) │ 0; 0: never freed
//! stamp  p + 1 once message p is written; anything smaller is of an earlier use
//! fresh  blocks taken from the arena's untouched rest, besides block 0;  free head: blocks reused
//! head   the consumer's next message, its block and the one before; read only by a successor
//! ```
//!
//! Zeroed memory is the empty list. Blocks have numbers, which only grow, and ids, their indices in
//! the arena. A producer finds the block of the tail through `last`; if it does not exist yet, it
//! links one **before** it advances the tail: it sets `next` of the last block by CAS, then
//! advances `last` by CAS. Any producer that finds these steps half done completes them (helping).
//! Then it announces its message's number in its own segment (`intent.rs`), claims it by CAS on the
//! tail, writes, and stamps. The consumer has a private cursor, takes without a CAS, and frees
//! blocks through the free ring with plain stores, as its only writer.
//!
//! **The owner of a block** is marked in the block itself from its allocation on: a producer
//! announces the block that it finds free, and allocates it by CAS on its `next`, from the mark of
//! that index of the free ring to its own mark. Then it advances the counter, as does any producer
//! that finds it lagging.
//!
//! **Growth.** The arena is reserved when the run starts, so that an access never kills a process,
//! but it is not touched: its pages are mapped when the list first grows into them. The page faults
//! are counted in the run's figures, as are fresh and reused blocks
//! ([`allocation`](shm::ring::SharedQueue::allocation)). A push returns [`Full`](shm::ring::Full)
//! only when all blocks are in use.
//!
//! **Why a block is never reused too early.** The consumer frees block n when it has taken a
//! message of block n + 1, or skipped the slot of a dead producer there. The producer of that slot
//! had found `last` at n + 1, so `last` is past n for every process that can see the block in the
//! free ring. A producer uses a block for number n only if it saw it as `last`, and only after its
//! claim in n succeeded: then the tail was in n, so n was not fully claimed, let alone freed. **Why
//! no slow producer links to a reused block:** it read `last`, then `next`, then an unchanged
//! `last`, so `next` belonged to the current use of the block. Its CAS expects the allocation's
//! number, which no later use of the block has again.
//!
//! **What a dead producer leaves**, and the repair by [`retire`](shm::ring::SharedQueue::retire):
//!
//! | died at | in the list | repair |
//! |---|---|---|
//! | before it allocated a block | nothing, or an announcement of another's block | none |
//! | block allocated, counter lagging | as below; the next producer advances it | as below |
//! | allocated, not linked; or spare | an unlinked block with its mark and announcement | freed |
//! | linked, `last` lagging | the next push advances `last` | none: the block is in the list |
//! | announced | nothing claimed, or another's slot | none, once the other has written it |
//! | claimed, half-written, written | a slot that is never written | the consumer skips it there |
//! | published | a whole message | none: it is stamped or already taken |
//!
//! A producer has at most one unlinked block, the one that it announced last: it allocates none
//! while it has a spare one. So no death costs the arena a block, and none costs another producer's
//! message. Why a slot or block cannot be that of a slow, running producer: for slots see
//! `intent.rs`; a block has its owner's mark, and only the owner can link it.
//!
//! **What a dead consumer leaves:** its cursor, in words that only a successor reads
//! ([`Consumer::resume`]). Messages that were not taken arrive, and the one that was being copied
//! arrives again; a block that was being freed is freed once.
//!
//! **Peers are not trusted.** Ids are checked before use; a message with an impossible stamp is
//! skipped; an impossible `next` ends the link with a [`PeerFault`](shm::ring::PeerFault), because
//! the next block cannot be found. A process that corrupts tail or `last` blocks the list, which
//! [`check`](shm::ring::SharedQueue::check) detects: that is the cost of sharing one list.
//!
//! Source: the list flavor of `std::sync::mpsc` (from crossbeam-channel); the helping after Michael
//! and Scott, "Simple, fast, and practical non-blocking and blocking concurrent queue algorithms"
//! (1996).

mod arena;
mod consumer;
mod producer;
mod repair;
#[cfg(all(test, not(loom)))]
mod tests;

pub use arena::{
    BLOCK_SLOTS, CURRENT, FREE_HEAD, FREE_RING, FREE_TAIL, FRESH, HEAD, KIND, LAST, TAIL, arena_words,
    block_words, reserved_blocks, write_header,
};
pub use consumer::Consumer;
pub use producer::Producer;

/// Creates a linked list on the heap and attaches all ends, for tests, models and benches.
pub fn heap_list<const W: usize, const B: usize>(
    producers: usize,
    blocks: usize,
) -> (Vec<Producer<W, B>>, Consumer<W, B>) {
    let arena = shm::memory::Region::heap(arena_words(blocks, B, W)).words();
    write_header::<W, B>(&arena, blocks);
    let intents = shm::ring::intent::on_heap(producers);
    let producer = |intent| Producer::attach(&arena, intent).expect("a fresh list has good headers");
    (
        intents.iter().map(producer).collect(),
        Consumer::attach(&arena, intents.clone()).expect("a fresh list has good headers"),
    )
}

#[cfg(not(loom))]
pub use link::{Linked, Receiver};

#[cfg(not(loom))]
mod link {
    use super::{BLOCK_SLOTS, Consumer, KIND, Producer, arena_words, block_words, reserved_blocks};
    use shm::attached::Attached;
    use shm::memory::RegionError;
    use shm::ring::step::Step;
    use shm::ring::{
        EndRights, Home, Link, LinkSpec, MESSAGE_WORDS, SegmentPlace, SegmentSpec, TechniqueInfo, intent,
    };

    /// The technique `linked`: a linked list of memory blocks, unbounded up to the size of its
    /// arena.
    pub struct Linked;

    /// The receiving end of a hand-off by the technique `linked`, which also stores a fault that a
    /// producer caused.
    pub type Receiver = shm::ring::Receiver<Consumer>;

    const STEPS: &[Step] = Step::ALL;

    impl Link for Linked {
        const INFO: TechniqueInfo =
            TechniqueInfo::new("linked", Home::Memory).steps(STEPS).consumer_resumable().port_of("std-mpsc");

        type Producer = Producer;
        type Consumer = Receiver;

        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
            let blocks = reserved_blocks(spec.capacity as usize, spec.producers);
            let words = arena_words(blocks, BLOCK_SLOTS, MESSAGE_WORDS);
            let arena = SegmentSpec {
                place: SegmentPlace::Reserve,
                capacity: blocks as u64,
                slot_words: block_words(BLOCK_SLOTS, MESSAGE_WORDS) as u64,
                ..SegmentSpec::memory(spec.name, KIND, words, EndRights::ALL_WRITE)
            };
            [arena].into_iter().chain(intent::segments(spec)).collect()
        }

        /// Returns the messages in all blocks of the arena, which is reserved for bursts: about 16
        /// times the requested number.
        fn capacity(spec: &LinkSpec) -> Option<u64> {
            Some((reserved_blocks(spec.capacity as usize, spec.producers) * BLOCK_SLOTS) as u64)
        }

        fn producer(
            spec: &LinkSpec,
            index: usize,
            attached: &mut Attached<'_>,
        ) -> Result<Producer, RegionError> {
            let intent = intent::producer(spec, index, attached)?;
            attached.end(spec.name, KIND, |arena| Producer::attach(arena, &intent))
        }

        fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
            let intents = intent::all(spec, attached)?;
            attached.end(spec.name, KIND, |arena| Consumer::attach(arena, intents)).map(Receiver::from)
        }

        fn resume_consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
            let intents = intent::all(spec, attached)?;
            attached.end(spec.name, KIND, |arena| Consumer::resume(arena, intents)).map(Receiver::from)
        }
    }
}
