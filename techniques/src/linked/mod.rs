//! `linked`: an unbounded list of blocks in a shared arena, up to the arena's end.
//!
//! ```text
//! word 0        16       32       48        64           80           96             112
//!      │ header │ tail   │ last   │ fresh   │ free head  │ free tail  │ head, current │ free ring: one block id each │ block 0 │ …
//!        launcher  any producer                            consumer     consumer        consumer
//!
//! block  │ next │ stamp │ message │ stamp │ message │ … 31 slots │ pad to 128 bytes
//!
//! tail   the number p of the next message; it stands in block number p div 31, slot p mod 31
//! last   number and id of the newest block:           number (40 bits) │ id (23) │ 1; 0 is block number 0 in block 0
//! next   what follows the block:   linked:            number (40 bits) │ id (23) │ 1
//!                                  taken, not yet:    allocation (52 bits) │ producer (10) │ 1 0
//!                                  free:              given back as that one (52 bits) │ 0; 0: never used, or block 0 in its first use
//! stamp  p + 1 once message p is written; anything smaller is of an earlier use
//! fresh  blocks taken from the arena's untouched rest, beside block 0;  free head: blocks reused
//! head   where the consumer is: the next message, its block and the one before; only a successor reads it
//! ```
//!
//! Zeroed memory is the empty list. Blocks have numbers that only grow and ids, their places in the
//! arena. A producer finds the block of the tail through `last`; if there is none yet, it links one **before**
//! it moves the tail: fills `next` of the last block by CAS, then moves `last` by CAS. Both steps
//! can be finished by anybody who finds them half done. Then it announces its message's number in
//! its own segment (`intent.rs`), claims it by CAS on the tail, writes, and stamps. The consumer
//! has a private cursor, takes without a CAS, and gives a block back through the free ring (plain
//! stores: it is the only one to do so).
//!
//! **Whose a block is** stands in the block itself from the moment it is taken: a producer
//! announces the block that it finds free, and takes it by CAS on its `next`, from the mark of that
//! very place in the free ring to its own. Then it moves the counter on, as does anybody else who
//! finds it behind.
//!
//! **Growth.** The arena is reserved when the run starts, so that nobody is ever killed for
//! touching it, but not touched: its pages are mapped when the list first grows into them, and the
//! page faults are in the run's figures, as are fresh and reused blocks
//! ([`allocation`](shm::ring::SharedQueue::allocation)). Only when all of [`reserve`] is in use a
//! push is [`Full`](shm::ring::Full).
//!
//! **Why a block is never reused too early.** The consumer gives block n back when it has taken a
//! message of block n + 1, or passed over a dead one's place there. That one's producer had found
//! `last` at n + 1, so `last` is past n for everybody who can see the block in the free ring. A
//! producer uses a block for number n only if it saw it as `last`, and only after its claim in n
//! succeeded: then the tail was in n, and n not even fully claimed, let alone given back. **And why
//! no late producer links to a reused block:** it read `last`, then `next`, then `last` again,
//! unchanged: so `next` was that of the living block. Its CAS expects the allocation's number,
//! which no later use of the block has again.
//!
//! **What a dead producer leaves**, and what [`retire`](shm::ring::SharedQueue::retire) does:
//!
//! | died at | in the list | repair |
//! |---|---|---|
//! | before it took a block | nothing; perhaps an announcement, and the block's mark is not its own | none |
//! | block taken, counter behind | the next who wants a block moves the counter on | the block is given back |
//! | allocated, not linked; or spare, because another was faster | a block that nothing leads to | the block is given back: announced, marked as the dead one's, not in the list |
//! | linked, `last` behind | the next who wants to push moves `last` | none: the block is in the list |
//! | announced | nothing claimed, or somebody else's place | none, once that one has written it |
//! | claimed, half-written, written | a place that nobody will write; the consumer waits there | when the consumer has come to it, it goes on behind it: announced by no one who lives |
//! | published | a whole message | none: the stamp says so, or it is taken already |
//!
//! A producer has at most one block that is not linked, and that is the one it announced last: it
//! takes none while it has a spare one. So no death costs the arena a block, and none costs
//! another's message. Why a place or block cannot be that of a producer that is alive and slow:
//! places in `intent.rs`; a block has its owner's mark, and only the owner could link it.
//!
//! **What a dead consumer leaves:** its place, in words that only a successor reads
//! ([`Consumer::resume`]): what it had not taken comes out, the message that it was copying again;
//! a block that it was giving back is given back once.
//!
//! **The others are not trusted.** Ids are checked before use; an impossible stamp passes its
//! message over; an impossible `next` ends the link with a [`PeerFault`](shm::ring::PeerFault),
//! because what comes behind it cannot be found. Whoever scribbles over tail or `last` stops the
//! list, which [`check`](shm::ring::SharedQueue::check) finds: that is what sharing one costs.
//!
//! Source: the list flavour of `std::sync::mpsc` (from crossbeam-channel); the helping after
//! Michael and Scott, "Simple, fast, and practical non-blocking and blocking concurrent queue
//! algorithms" (1996).

mod arena;
mod consumer;
mod producer;
mod repair;
#[cfg(all(test, not(loom)))]
mod tests;

pub use arena::{
    BLOCK_SLOTS, CURRENT, FREE_HEAD, FREE_RING, FREE_TAIL, FRESH, HEAD, KIND, LAST, TAIL, arena_words,
    block_words, reserve, write_header,
};
pub use consumer::Consumer;
pub use producer::Producer;

/// A list and its producers' announcements on the heap, all ends attached: for tests, models and
/// benches.
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
    use super::{BLOCK_SLOTS, Consumer, KIND, Producer, arena_words, block_words, reserve};
    use shm::attached::Attached;
    use shm::memory::RegionError;
    use shm::ring::step::Step;
    use shm::ring::{
        EndRights, Home, Link, LinkSpec, MESSAGE_WORDS, SegmentPlace, SegmentSpec, TechniqueInfo, intent,
    };

    /// The technique.
    pub struct Linked;

    /// The receiving end of a link.
    pub type Receiver = shm::ring::Receiver<Consumer>;

    /// All that there are.
    const STEPS: &[Step] = Step::ALL;

    impl Link for Linked {
        const INFO: TechniqueInfo =
            TechniqueInfo::new("linked", Home::Memory).steps(STEPS).resumable().port_of("std-mpsc");

        type Producer = Producer;
        type Consumer = Receiver;

        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
            let blocks = reserve(spec.capacity as usize, spec.producers);
            let arena = SegmentSpec {
                name: spec.name.into(),
                place: SegmentPlace::Reserve,
                words: arena_words(blocks, BLOCK_SLOTS, MESSAGE_WORDS),
                kind: KIND,
                capacity: blocks as u64,
                slot_words: block_words(BLOCK_SLOTS, MESSAGE_WORDS) as u64,
                index: 0,
                ends: EndRights::ALL_WRITE,
            };
            [arena].into_iter().chain(intent::segments(spec)).collect()
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

        fn resume(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
            let intents = intent::all(spec, attached)?;
            attached.end(spec.name, KIND, |arena| Consumer::resume(arena, intents)).map(Receiver::from)
        }
    }
}
