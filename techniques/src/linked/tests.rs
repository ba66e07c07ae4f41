//! Single steps of the linked list, set up by hand: states that only a slow or a dead producer
//! leaves.

use super::*;
use core::ops::ControlFlow;
use proptest::prelude::*;
use shm::memory::{AtomicWords, Region};
use shm::ring::{Full, SharedQueue, Step, intent};
use shm::sync::Ordering;
use std::collections::VecDeque;

const SLOTS: usize = 2;

fn list(blocks: usize) -> (AtomicWords, Producer<1, SLOTS>, Producer<1, SLOTS>, Consumer<1, SLOTS>) {
    let words = Region::heap(arena_words(blocks, SLOTS, 1)).words();
    write_header::<1, SLOTS>(&words, blocks);
    let intents = intent::on_heap(2);
    let producer = |index: usize| Producer::attach(&words, &intents[index]).unwrap();
    (words.clone(), producer(0), producer(1), Consumer::attach(&words, intents.clone()).unwrap())
}

#[test]
fn last_block_is_never_freed() {
    let (words, mut producer, mut other, mut consumer) = list(4);
    for n in 0..3 {
        producer.try_push(&[n]).unwrap();
    }
    // The state after a producer died after linking block 1: `last` not advanced, nothing claimed
    // in it.
    words[LAST].store(0, Ordering::Relaxed);
    words[TAIL].store(2, Ordering::Relaxed);
    let arena = super::arena::BlockArena::<1, SLOTS>::attach(&words).unwrap();
    words[arena.slot_offset(arena.block_offset(1), 0)].store(0, Ordering::Relaxed);
    assert_eq!([0; 3].map(|_| consumer.try_pop().unwrap()), [Some([0]), Some([1]), None]);
    assert_eq!(words[FREE_TAIL].load(Ordering::Relaxed), 0, "block 0 is still what `last` names");
    other.try_push(&[2]).unwrap();
    assert_eq!(consumer.try_pop(), Ok(Some([2])));
    assert_eq!(words[FREE_TAIL].load(Ordering::Relaxed), 1);
}

#[test]
fn full_arena_accepts_messages_after_block_is_freed() {
    let (_, mut producer, _, mut consumer) = list(3);
    let fits = (0..100).take_while(|n| producer.try_push(&[*n]).is_ok()).count() as u64;
    assert_eq!(fits, 6, "three blocks of two");
    // The first block is freed with the first message of the second one.
    for n in 0..3 {
        assert_eq!(producer.try_push(&[6]), Err(Full));
        assert_eq!(consumer.try_pop(), Ok(Some([n])));
    }
    assert_eq!(producer.try_push(&[6]), Ok(()));
    assert_eq!(consumer.allocation(), shm::ring::Allocation { fresh: 3, reused: 1 });
}

/// Thousands of deaths at all steps, each with a successor: none costs the arena a block, and no
/// message of the other producer is lost.
#[test]
fn deaths_do_not_shrink_the_arena() {
    let blocks = 6;
    let words = Region::heap(arena_words(blocks, SLOTS, 1)).words();
    write_header::<1, SLOTS>(&words, blocks);
    let intents = intent::on_heap(3);
    let attach = |index: usize| Producer::<1, SLOTS>::attach(&words, &intents[index]).unwrap();
    let mut consumer = Consumer::<1, SLOTS>::attach(&words, intents.clone()).unwrap();
    let mut running = attach(2);
    let mut taken = 0;
    let deaths = if cfg!(miri) { 64 } else { 20_000 };
    for death in 0..deaths {
        let step = Step::ALL[death % Step::ALL.len()];
        // Both at once, in every second round: the second one finds the state that the first one
        // has left.
        let dead = &[0, 1][..1 + death / 8 % 2];
        for index in dead {
            // If the push does not have the step, it completes, and the producer dies after it.
            let mut dying = attach(*index);
            let _ = dying.try_push_with(&[u64::MAX], &mut |at| {
                if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        running.try_push(&[taken]).unwrap();
        let mut retired = [false; 2];
        for _ in 0..4 {
            while let Some([n]) = consumer.try_pop().unwrap() {
                assert!(n == u64::MAX || n == taken, "{n} at {taken}");
                taken += u64::from(n == taken);
            }
            dead.iter().for_each(|index| retired[*index] |= consumer.retire(*index));
        }
        assert!(retired[..dead.len()].iter().all(|retired| *retired));
        assert_eq!(taken, death as u64 + 1, "the running producer's message arrived");
        assert_eq!(consumer.check(), Ok(()));
    }
    // To the first message of a block: then all others are free.
    while consumer.position() % SLOTS as u64 != 1 {
        running.try_push(&[0]).unwrap();
        consumer.try_pop().unwrap();
    }
    let fits = (0..100).take_while(|n| running.try_push(&[*n]).is_ok()).count();
    assert_eq!(fits, blocks * SLOTS - 1);
    assert!(consumer.passed_over() >= deaths as u64 / 4);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn linked_list_behaves_as_queue(pushes in prop::collection::vec(any::<Option<bool>>(), 1..200), blocks in 4usize..8) {
        let (_, mut one, mut two, mut consumer) = list(blocks);
        let (mut model, mut n) = (VecDeque::new(), 0);
        for push in pushes {
            match push {
                Some(first) => {
                    let pushed = if first { &mut one } else { &mut two }.try_push(&[n]);
                    // Two blocks may be partly used, and each producer may keep a spare one.
                    prop_assert!(pushed.is_ok() || model.len() + 1 >= (blocks - 3) * SLOTS);
                    model.extend(pushed.is_ok().then_some(n));
                    n += 1;
                }
                None => prop_assert_eq!(consumer.try_pop(), Ok(model.pop_front().map(|n| [n]))),
            }
        }
    }
}
