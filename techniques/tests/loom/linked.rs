//! Loom models of the linked list in every order of steps and with every value that the orderings
//! allow. Blocks have two messages, so that a few messages reach linking, helping, freeing and
//! reuse.
//!
//! The mutants that are killed here are listed in `shm::sync`.
//!
//! `.ci/loom.sh linked::`

use loom::thread;
use shm::memory::{AtomicWords, Region};
use shm::ring::{PeerFault, SharedQueue, intent};
use shm::sync::{Ordering, spin_hint};
use techniques::linked::{self, FRESH, LAST, TAIL, arena_words, write_header};

const SLOTS: usize = 2;

type Producer<const W: usize> = linked::Producer<W, SLOTS>;
type Consumer<const W: usize> = linked::Consumer<W, SLOTS>;

/// Runs a model: complete, or with a bounded number of preemptions if it would take minutes.
fn model(preemptions: Option<usize>, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 10_000;
    model.check(check);
}

/// An arena and the announcements of three producers, which are identified by the tens digit of
/// their numbers.
#[derive(Clone)]
struct Memory {
    arena: AtomicWords,
    intents: Vec<AtomicWords>,
}

impl Memory {
    fn producer<const W: usize>(&self, index: usize) -> Producer<W> {
        Producer::attach(&self.arena, &self.intents[index]).unwrap()
    }

    fn consumer<const W: usize>(&self) -> Consumer<W> {
        Consumer::attach(&self.arena, self.intents.clone()).unwrap()
    }
}

fn memory<const W: usize>(blocks: usize) -> Memory {
    let arena = Region::heap(arena_words(blocks, SLOTS, W)).words();
    write_header::<W, SLOTS>(&arena, blocks);
    Memory { arena, intents: intent::on_heap(3) }
}

/// Returns the offset of a block in an arena of `blocks` blocks, which is that of its word `next`.
fn block_at(blocks: usize, id: usize) -> usize {
    arena_words(blocks, SLOTS, 1) - (blocks - id) * linked::block_words(SLOTS, 1)
}

/// Pushes up to `count` numbers from `first` on, each in every word. Returns how many fitted.
fn push<const W: usize>(memory: &Memory, first: u64, count: u64) -> impl FnOnce() -> usize + Send + 'static {
    let mut producer = memory.producer::<W>(first as usize / 10 - 1);
    move || (first..first + count).take_while(|n| producer.try_push(&[*n; W]).is_ok()).count()
}

/// Takes all available messages, which must be whole.
fn drain<const W: usize>(consumer: &mut Consumer<W>) -> Vec<u64> {
    let taken = std::iter::from_fn(|| consumer.try_pop().expect("honest peers"));
    taken.inspect(|message| assert_eq!(*message, [message[0]; W], "torn")).map(|message| message[0]).collect()
}

/// Asserts that each producer's numbers arrived in order and without gaps.
fn assert_in_order(got: &[u64]) {
    for producer in 1..=3 {
        let theirs: Vec<u64> = got.iter().copied().filter(|n| n / 10 == producer).collect();
        let expected: Vec<u64> = (0..theirs.len() as u64).map(|n| producer * 10 + n).collect();
        assert_eq!(theirs, expected, "{got:?}");
    }
}

#[test]
fn two_producers_lose_duplicate_and_tear_nothing() {
    model(None, || {
        let memory = memory::<2>(3);
        let mut consumer = memory.consumer::<2>();
        let producers = [10, 20].map(|first| thread::spawn(push::<2>(&memory, first, 1)));
        let mut got = Vec::new();
        while got.len() < 2 {
            got.extend(drain(&mut consumer));
            spin_hint();
        }
        got.sort_unstable();
        assert_eq!(got, [10, 20]);
        producers.into_iter().for_each(|producer| assert_eq!(producer.join().unwrap(), 1));
        assert_eq!(drain(&mut consumer), [0; 0], "nothing twice");
    });
}

/// Both find the block full and link the next one: one wins, and the other keeps its block as a
/// spare.
#[test]
fn two_producers_link_one_block() {
    model(Some(6), || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 2)(), 2);
        let producers = [10, 20].map(|first| thread::spawn(push::<1>(&memory, first, 2)));
        let mut got = drain(&mut consumer);
        let pushed: usize = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        got.extend(drain(&mut consumer));
        assert_eq!((pushed, got.len()), (4, 6), "{got:?}");
        assert_in_order(&got);
        assert!(memory.arena[FRESH].load(Ordering::Relaxed) <= 3);
    });
}

/// The consumer frees a block while producers allocate one: only blocks that were read are reused.
#[test]
fn a_block_is_reused_after_it_was_read() {
    model(Some(4), || {
        // An arena of two blocks: a third one is the freed first one, or the arena is full.
        let memory = memory::<1>(2);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 3)(), 3);
        let producers = [10, 20].map(|first| thread::spawn(push::<1>(&memory, first, 2)));
        let mut got = drain(&mut consumer);
        let pushed: usize = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        got.extend(drain(&mut consumer));
        // A refused push loses nothing: all accepted messages arrive, in order.
        assert_eq!(got.len(), 3 + pushed, "{got:?}");
        assert_in_order(&got);
    });
}

/// A slow producer has read the last block; then that block is read, freed and reused with another
/// number. The producer must not link a block to it.
#[test]
fn slow_producer_never_links_to_reused_block() {
    model(Some(3), || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 4)(), 4);
        assert_eq!(drain(&mut consumer), [30, 31, 32, 33]);
        // Both start at a new block; the fast producer reaches the next one, and finds the previous
        // block free.
        let late = thread::spawn(push::<1>(&memory, 10, 1));
        let fast = thread::spawn(push::<1>(&memory, 20, 3));
        let mut got = drain(&mut consumer);
        let pushed = late.join().unwrap() + fast.join().unwrap();
        got.extend(drain(&mut consumer));
        assert_eq!((pushed, got.len()), (4, 4), "{got:?}");
        assert_in_order(&got);
        for n in 34..40 {
            assert_eq!(push::<1>(&memory, n, 1)(), 1, "the list goes on");
            assert_eq!(drain(&mut consumer), [n]);
        }
    });
}

/// One message at a time: each block is freed while the next one fills.
#[test]
fn list_reuses_blocks_of_its_arena() {
    model(None, || {
        let memory = memory::<2>(3);
        let mut consumer = memory.consumer::<2>();
        assert_eq!(push::<2>(&memory, 30, 3)(), 3);
        let producer = thread::spawn(push::<2>(&memory, 10, 4));
        let mut got = drain(&mut consumer);
        got.extend(drain(&mut consumer));
        let pushed = producer.join().unwrap();
        got.extend(drain(&mut consumer));
        assert_eq!(got.len(), 3 + pushed);
        assert_in_order(&got);
        assert_eq!(push::<2>(&memory, 20, 1)(), 1, "there is room again");
        assert_eq!(drain(&mut consumer), [20]);
    });
}

/// A producer has linked a block and dies before it advances `last`: the others complete that step.
#[test]
fn half_done_link_is_completed_by_others() {
    model(None, || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 3)(), 3);
        // The state before the second step of the dead producer: block 1 linked after block 0,
        // `last` still 0, nothing claimed.
        memory.arena[LAST].store(0, Ordering::Relaxed);
        memory.arena[TAIL].store(2, Ordering::Relaxed);
        memory.arena[block_at(4, 1) + 1].store(0, Ordering::Relaxed);
        let producers = [10, 20].map(|first| thread::spawn(push::<1>(&memory, first, 1)));
        let mut got = drain(&mut consumer);
        producers.into_iter().for_each(|producer| assert_eq!(producer.join().unwrap(), 1));
        got.extend(drain(&mut consumer));
        assert_eq!(got.len(), 4, "{got:?}");
        assert_eq!(memory.arena[FRESH].load(Ordering::Relaxed), 1, "no other block was taken");
    });
}

/// A producer that found block 0 full links nothing to it once it is reused with another number.
#[test]
fn slow_producer_never_links_to_reused_first_block() {
    model(Some(3), || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        let mut other_producer = memory.producer::<1>(2);
        (30..32).for_each(|n| other_producer.try_push(&[n]).unwrap());
        let late = thread::spawn(push::<1>(&memory, 10, 1));
        other_producer.try_push(&[32]).unwrap();
        let mut got = drain(&mut consumer);
        (33..36).for_each(|n| other_producer.try_push(&[n]).unwrap());
        got.extend(drain(&mut consumer));
        let pushed = late.join().unwrap();
        other_producer.try_push(&[36]).unwrap();
        got.extend(drain(&mut consumer));
        assert_eq!((pushed, got.len()), (1, 8), "{got:?}");
        assert_in_order(&got);
    });
}

/// The arena's last block is linked and not full: a push by a producer that has seen a claim in it
/// must not return Full.
///
/// Here and below the spawned thread is the one that may see old values: loom runs the other one
/// first, and does not find every order in which a load is overtaken by another thread's load and
/// store.
#[test]
fn observed_claim_implies_visible_block() {
    model(None, || {
        let memory = memory::<1>(2);
        assert_eq!(push::<1>(&memory, 30, 2)(), 2);
        let theirs = memory.clone();
        let sees = thread::spawn(move || {
            if theirs.arena[TAIL].load(Ordering::Relaxed) == 3 {
                assert_eq!(push::<1>(&theirs, 20, 1)(), 1, "one place is left");
            }
        });
        assert_eq!(push::<1>(&memory, 10, 1)(), 1);
        sees.join().unwrap();
    });
}

/// As above, if the claim is seen inside a push: the other producer fills three blocks, and each
/// time links the next one and claims there in one step, so that the arena is never fully used.
#[test]
fn concurrent_claim_implies_visible_block() {
    model(None, || {
        let memory = memory::<1>(4);
        assert_eq!(push::<1>(&memory, 30, 1)(), 1);
        memory.arena[FRESH].store(3, Ordering::Relaxed);
        let meets = thread::spawn(push::<1>(&memory, 20, 1));
        for number in 1..=3 {
            let link = number << 24 | number << 1 | 1;
            let tail = 2 * number - 1;
            memory.arena[block_at(4, number as usize - 1)].store(link, Ordering::Relaxed);
            memory.arena[LAST].store(link, Ordering::Release);
            let claim =
                memory.arena[TAIL].compare_exchange(tail, tail + 2, Ordering::SeqCst, Ordering::Relaxed);
            if claim.is_err() {
                break;
            }
        }
        assert_eq!(meets.join().unwrap(), 1, "there is always room");
    });
}

/// All stamps of a reused block are corrupted: its messages are skipped, and the link of its first
/// use is not followed.
#[test]
fn scribbled_stamps_do_not_end_the_list() {
    model(None, || {
        let memory = memory::<1>(2);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 4)(), 4);
        assert_eq!(drain(&mut consumer), [30, 31, 32, 33]);
        let stamps = [0, 1].map(|slot| memory.arena.slice(block_at(2, 0) + 1 + slot * 2, 1));
        let pops = thread::spawn(move || {
            for stamp in &stamps {
                stamp[0].store(u64::MAX, Ordering::Relaxed);
            }
            for _ in 0..SLOTS + 1 {
                let popped = consumer.try_pop();
                assert!(!matches!(popped, Err(PeerFault::InvalidLink { .. })), "{popped:?}");
            }
        });
        assert_eq!(push::<1>(&memory, 10, 2)(), 2);
        pops.join().unwrap();
    });
}
