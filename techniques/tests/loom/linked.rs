//! Loom runs these in every order of steps, and with every value, that the orderings allow: the
//! list of blocks, with blocks of two messages, so that a few messages reach linking, helping,
//! giving back and reuse.
//!
//! Which mutants die here, `shm::sync` says.
//!
//! `.ci/loom.sh linked::`

use loom::thread;
use shm::memory::{AtomicWords, Region};
use shm::ring::{PeerFault, SharedQueue, intent};
use shm::sync::{Ordering, spin_hint};
use techniques::linked::{self, FRESH, LAST, TAIL, arena_words, write_header};

/// Messages in a block.
const SLOTS: usize = 2;

type Producer<const W: usize> = linked::Producer<W, SLOTS>;
type Consumer<const W: usize> = linked::Consumer<W, SLOTS>;

/// All of it, or where that takes minutes all that happens with so many preemptions.
fn model(preemptions: Option<usize>, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 10_000;
    model.check(check);
}

/// An arena and the announcements of three producers, of whom each is known by the tens of its
/// numbers.
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

/// Where a block begins in an arena of so many: its word `next`.
fn block_at(blocks: usize, id: usize) -> usize {
    arena_words(blocks, SLOTS, 1) - (blocks - id) * linked::block_words(SLOTS, 1)
}

/// Pushes what fits of `first`, `first + 1`, … `count` numbers, each in every word; how many that
/// were.
fn push<const W: usize>(memory: &Memory, first: u64, count: u64) -> impl FnOnce() -> usize + Send + 'static {
    let mut producer = memory.producer::<W>(first as usize / 10 - 1);
    move || (first..first + count).take_while(|n| producer.try_push(&[*n; W]).is_ok()).count()
}

/// Takes what is there: each message whole.
fn drain<const W: usize>(consumer: &mut Consumer<W>) -> Vec<u64> {
    let taken = std::iter::from_fn(|| consumer.try_pop().expect("honest peers"));
    taken.inspect(|message| assert_eq!(*message, [message[0]; W], "torn")).map(|message| message[0]).collect()
}

/// Each producer's numbers (tens) in order and without a gap.
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

/// Both find the block full and link the next one: one wins, the other's block is not lost to it.
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

/// The consumer gives a block back while producers look for one: what was read is reused, and
/// nothing else.
#[test]
fn a_block_is_reused_after_it_was_read() {
    model(Some(4), || {
        // Room for two blocks only: who needs the third finds the first given back, or the arena
        // full.
        let memory = memory::<1>(2);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 3)(), 3);
        let producers = [10, 20].map(|first| thread::spawn(push::<1>(&memory, first, 2)));
        let mut got = drain(&mut consumer);
        let pushed: usize = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        got.extend(drain(&mut consumer));
        // A push that was told Full has cost nothing: what was pushed arrives, in order.
        assert_eq!(got.len(), 3 + pushed, "{got:?}");
        assert_in_order(&got);
    });
}

/// A producer that has looked up the last block and is late: meanwhile that block is read, given
/// back and in use again under another number. It must not link behind it what belonged behind its
/// former self.
#[test]
fn a_late_producer_does_not_link_to_a_reused_block() {
    model(Some(3), || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 4)(), 4);
        assert_eq!(drain(&mut consumer), [30, 31, 32, 33]);
        // Both start at a new block; who is fast comes to the next one, and finds the block before
        // this one free.
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

/// One message at a time round and round: each block is given back while its successor fills.
#[test]
fn the_list_goes_round_in_its_arena() {
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

/// A producer has linked a block and dies before it moves `last`: the others do it for it.
#[test]
fn anybody_finishes_a_half_done_link() {
    model(None, || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        assert_eq!(push::<1>(&memory, 30, 3)(), 3);
        // As it was before the dead one's second step: block 1 linked behind block 0, `last` still
        // 0, nothing claimed.
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

/// A producer that found block 0 full links nothing to it once it is in use again, with another
/// number.
#[test]
fn a_late_producer_links_nothing_to_a_reused_block() {
    model(Some(3), || {
        let memory = memory::<1>(4);
        let mut consumer = memory.consumer::<1>();
        let mut others = memory.producer::<1>(2);
        (30..32).for_each(|n| others.try_push(&[n]).unwrap());
        let late = thread::spawn(push::<1>(&memory, 10, 1));
        others.try_push(&[32]).unwrap();
        let mut got = drain(&mut consumer);
        (33..36).for_each(|n| others.try_push(&[n]).unwrap());
        got.extend(drain(&mut consumer));
        let pushed = late.join().unwrap();
        others.try_push(&[36]).unwrap();
        got.extend(drain(&mut consumer));
        assert_eq!((pushed, got.len()), (1, 8), "{got:?}");
        assert_in_order(&got);
    });
}

/// The arena's last block is linked and has room: who knows that somebody has claimed a place in it
/// is not told Full.
///
/// Here and below the one who may see old values is the spawned thread: loom runs the other one
/// first, and does not find every order in which a load is overtaken by another thread's load and
/// store.
#[test]
fn who_sees_a_claim_in_a_block_finds_the_block() {
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

/// The same for who learns it inside a push: the other fills three blocks, and each time links the
/// next one and claims there in one step, so that at no time all of the arena is in use.
#[test]
fn who_meets_a_claim_in_a_block_finds_the_block() {
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

/// All stamps of a block that is in use again were scribbled over: its messages are passed over,
/// and what is found behind it is not what was there in its first use.
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
