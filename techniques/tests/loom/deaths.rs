//! Loom models of a death at each step of a push, in every order of steps and with every value that
//! the orderings allow: another producer keeps pushing, and the consumer retires the dead producer
//! concurrently.
//!
//! The dead producer's push and the consumer share a thread: the push ends at its step, and then
//! the death is certain. Every pause of the running producer is in the model, which shows that a
//! slow producer is never retired. The consumer is on the spawned thread: loom runs the other one
//! first, and does not find every order in which a load is overtaken.
//!
//! `.ci/loom.sh deaths::`

use core::ops::ControlFlow;
use core::time::Duration;
use loom::thread;
use shm::bell::BELL_WORDS;
use shm::memory::{AtomicWords, Region};
use shm::ring::{Full, SharedQueue, Step, array_queue, intent};
use shm::sync::spin_hint;
use techniques::channel::{Receiver, Sender};
use techniques::linked;

const CAPACITY: usize = 2;
/// Messages per block of the list, and number of blocks.
const SLOTS: usize = 2;
const BLOCKS: usize = 4;

type List = linked::Consumer<1, SLOTS>;

/// Runs a model for each step: complete, or with a bounded number of preemptions if it would take
/// minutes.
fn at_each_step(preemptions: Option<usize>, steps: &[Step], check: fn(Step)) {
    for &step in steps {
        println!("dies at {step}");
        model(preemptions, move || check(step));
    }
}

fn model(preemptions: Option<usize>, check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 20_000;
    model.check(check);
}

fn dies_at(step: Step) -> impl FnMut(Step) -> ControlFlow<()> {
    move |at| if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn pop(ring: &mut impl SharedQueue<1>) -> Option<u64> {
    ring.try_pop().expect("honest peers").map(|[n]| n)
}

fn drain(ring: &mut impl SharedQueue<1>, got: &mut Vec<u64>) {
    got.extend(std::iter::from_fn(|| pop(ring)));
}

/// Retires the remaining dead producers, in one round for each, without concurrent operations.
fn retire_remaining(ring: &mut impl SharedQueue<1>, dead: &[usize], got: &mut Vec<u64>) {
    for _ in dead {
        drain(ring, got);
        dead.iter().for_each(|producer| _ = ring.retire(*producer));
    }
    drain(ring, got);
    dead.iter().for_each(|producer| assert!(ring.retire(*producer), "nobody is left to wait for: {got:?}"));
}

/// Asserts that the running producer's numbers (from 20) arrived in order, and the dead producer's
/// (10) if it was published, and nothing else.
fn assert_nothing_lost(got: &[u64], before: &[u64], pushed: usize, published: usize) {
    let numbers_of = |tens: u64| got.iter().copied().filter(|n| n / 10 == tens).collect::<Vec<u64>>();
    assert_eq!(numbers_of(2), (20..20 + pushed as u64).collect::<Vec<_>>(), "{got:?}");
    assert_eq!(numbers_of(1), vec![10; published], "{got:?}");
    assert_eq!(numbers_of(3), before, "{got:?}");
    assert_eq!(got.len(), pushed + published + before.len(), "{got:?}");
}

type Array = (Vec<array_queue::Producer<1>>, array_queue::Consumer<1>);

/// Pushes and pops another lap and a half: the death has no remaining effect.
fn assert_ring_continues(producer: &mut array_queue::Producer<1>, consumer: &mut array_queue::Consumer<1>) {
    assert_eq!(consumer.check(), Ok(()));
    for n in 30..30 + CAPACITY as u64 * 3 / 2 {
        assert_eq!(producer.try_push(&[n]), Ok(()));
        assert_eq!(consumer.try_pop(), Ok(Some([n])));
    }
    let fits = (0..5).take_while(|n| producer.try_push(&[*n]).is_ok()).count();
    assert_eq!(fits, CAPACITY, "the ring has not shrunk");
}

const ARRAY_STEPS: &[Step] =
    &[Step::Entered, Step::Announced, Step::Claimed, Step::HalfWritten, Step::Written, Step::Published];

#[test]
fn the_array_survives_a_death_at_each_step() {
    at_each_step(None, ARRAY_STEPS, |step| {
        let (mut producers, mut consumer): Array = array_queue::heap_ring(2, CAPACITY);
        let mut running = producers.pop().unwrap();
        let other = thread::spawn(move || {
            let died = producers[0].try_push_with(&[10], &mut dies_at(step));
            assert_eq!(died, Err(Full));
            let mut got = Vec::new();
            drain(&mut consumer, &mut got);
            consumer.retire(0);
            (consumer, got)
        });
        let pushed = (20..22).take_while(|n| running.try_push(&[*n]).is_ok()).count();
        running.withdraw();
        let (mut consumer, mut got) = other.join().unwrap();
        retire_remaining(&mut consumer, &[0], &mut got);
        // If the ring was full, the dead producer never reached its step.
        let published = got.iter().filter(|n| **n == 10).count();
        assert!(published == 0 || step == Step::Published);
        assert_nothing_lost(&got, &[], pushed, published);
        assert_ring_continues(&mut running, &mut consumer);
    });
}

/// Two producers die: one has announced the slot that the other then claims. Neither is treated as
/// running once both deaths are certain, in either order.
#[test]
fn the_array_survives_two_deaths_at_one_place() {
    for order in [[0, 1], [1, 0]] {
        model(None, move || {
            let (mut producers, mut consumer): Array = array_queue::heap_ring(3, CAPACITY);
            let mut running = producers.pop().unwrap();
            let other = thread::spawn(move || {
                for (dead, step) in [Step::Announced, Step::Claimed].into_iter().enumerate() {
                    let _ = producers[dead].try_push_with(&[10], &mut dies_at(step));
                }
                let mut got = Vec::new();
                consumer.retire(order[0]);
                drain(&mut consumer, &mut got);
                consumer.retire(order[1]);
                (consumer, got)
            });
            let pushed = running.try_push(&[20]).is_ok();
            let (mut consumer, mut got) = other.join().unwrap();
            retire_remaining(&mut consumer, &order, &mut got);
            assert_nothing_lost(&got, &[], pushed.into(), 0);
            assert_ring_continues(&mut running, &mut consumer);
        });
    }
}

/// The successor announces the slot that its dead predecessor had announced, and is not mistaken
/// for it.
#[test]
fn array_renews_a_retired_producer() {
    model(None, || {
        let ring = Region::heap(array_queue::ring_words(CAPACITY, 1)).words();
        array_queue::write_header::<1>(&ring, CAPACITY);
        let intents: Vec<AtomicWords> = intent::on_heap(2);
        let producer = |index: usize| array_queue::Producer::<1>::attach(&ring, &intents[index]).unwrap();
        let mut consumer = array_queue::Consumer::<1>::attach(&ring, intents.clone()).unwrap();
        let _ = producer(0).try_push_with(&[10], &mut dies_at(Step::Claimed));
        assert!(consumer.retire(0) && consumer.retire(0), "again is nothing new");
        let (mut successor, mut dying) = (producer(0), producer(1));
        let other = thread::spawn(move || {
            let _ = dying.try_push_with(&[10], &mut dies_at(Step::Announced));
            let mut got = Vec::new();
            consumer.retire(1);
            drain(&mut consumer, &mut got);
            (consumer, got)
        });
        let pushed = successor.try_push(&[20]).is_ok();
        let (mut consumer, mut got) = other.join().unwrap();
        retire_remaining(&mut consumer, &[1], &mut got);
        assert_nothing_lost(&got, &[], pushed.into(), 0);
        assert_eq!(consumer.passed_over(), 1);
    });
}

/// As for the array, with a sleeping receiver: the running producer wakes it after any death of the
/// other.
#[test]
fn the_channel_survives_a_death_at_each_step() {
    at_each_step(None, ARRAY_STEPS, |step| {
        let ring = Region::heap(array_queue::ring_words(CAPACITY, 1)).words();
        array_queue::write_header::<1>(&ring, CAPACITY);
        let (waker, intents) = (Region::heap(BELL_WORDS).words(), intent::on_heap(2));
        let mut receiver = Receiver::<1>::attach(&ring, intents.clone(), &waker).unwrap();
        let mut dying = Sender::<1>::attach(&ring, &intents[0], &waker).unwrap();
        let mut running = Sender::<1>::attach(&ring, &intents[1], &waker).unwrap();
        let other = thread::spawn(move || running.try_push(&[20]).unwrap());
        let _ = dying.try_push_with(&[10], &mut dies_at(step));
        let mut got = Vec::new();
        loop {
            drain(&mut receiver, &mut got);
            if receiver.retire(0) {
                break;
            }
            spin_hint();
        }
        let published = usize::from(step == Step::Published);
        while got.len() < 1 + published {
            // The model has no timeout: a lost wake-up hangs it.
            got.extend(receiver.pop_timeout(Duration::MAX).unwrap().map(|[n]| n));
        }
        other.join().unwrap();
        assert_nothing_lost(&got, &[], 1, published);
    });
}

/// Returns how many more messages fit after all were taken: the blocks that a death has cost.
fn free_slots(producer: &mut linked::Producer<1, SLOTS>, list: &mut List) -> usize {
    // Until the first message of a block is taken, which frees the previous block.
    let mut fits = 0;
    for _ in 0..2 * BLOCKS * SLOTS {
        producer.try_push(&[0]).unwrap();
        list.try_pop().unwrap().unwrap();
        if list.position() % SLOTS as u64 == 1 {
            break;
        }
    }
    while producer.try_push(&[0]).is_ok() {
        fits += 1;
    }
    fits
}

const LIST_STEPS: &[Step] = Step::ALL;

/// The list is at the end of a block, so that either producer or both link the next one.
#[test]
fn the_list_survives_a_death_at_each_step() {
    at_each_step(Some(4), LIST_STEPS, |step| {
        let (mut producers, mut list) = linked::heap_list::<1, SLOTS>(2, BLOCKS);
        let mut running = producers.pop().unwrap();
        (30..32).for_each(|n| running.try_push(&[n]).unwrap());
        let other = thread::spawn(move || {
            let died = producers[0].try_push_with(&[10], &mut dies_at(step));
            let mut got = Vec::new();
            drain(&mut list, &mut got);
            list.retire(0);
            (list, got, died)
        });
        let pushed = (20..22).take_while(|n| running.try_push(&[*n]).is_ok()).count();
        running.withdraw();
        let (mut list, mut got, died) = other.join().unwrap();
        retire_remaining(&mut list, &[0], &mut got);
        // If the other producer links the block, the dying one may not reach its step, and
        // publishes.
        let published = usize::from(step == Step::Published || died.is_ok());
        assert_eq!(pushed, 2);
        assert_nothing_lost(&got, &[30, 31], pushed, published);
        assert_eq!(list.check(), Ok(()));
        assert_eq!(free_slots(&mut running, &mut list), BLOCKS * SLOTS - 1, "the arena has not shrunk");
    });
}
