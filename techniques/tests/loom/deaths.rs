//! Loom runs these in every order of steps, and with every value, that the orderings allow: a
//! producer dies at each step of a push, another one lives and pushes all the while, and the
//! consumer retires the dead one under it.
//!
//! The dead one's push and the consumer share a thread: the push ends at its step, and then its
//! death is certain. The living one's every pause is in the model, so that a producer that is only
//! slow is shown never to be retired. The consumer is on the spawned thread: loom runs the other
//! one first, and does not find every order in which a load is overtaken.
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
/// Messages in a block of the list, and blocks.
const SLOTS: usize = 2;
const BLOCKS: usize = 4;

type List = linked::Consumer<1, SLOTS>;

/// Each step in a model of its own; all of it, or where that takes minutes all that happens with so
/// many preemptions.
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

/// A push that ends at that step.
fn dies_at(step: Step) -> impl FnMut(Step) -> ControlFlow<()> {
    move |at| if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Takes the next message of an honest peer.
fn pop(ring: &mut impl SharedQueue<1>) -> Option<u64> {
    ring.try_pop().expect("honest peers").map(|[n]| n)
}

fn drain(ring: &mut impl SharedQueue<1>, got: &mut Vec<u64>) {
    got.extend(std::iter::from_fn(|| pop(ring)));
}

/// Nobody else does anything any more: what is left to retire goes in as many rounds as there are
/// dead.
fn retire_the_rest(ring: &mut impl SharedQueue<1>, dead: &[usize], got: &mut Vec<u64>) {
    for _ in dead {
        drain(ring, got);
        dead.iter().for_each(|producer| _ = ring.retire(*producer));
    }
    drain(ring, got);
    dead.iter().for_each(|producer| assert!(ring.retire(*producer), "nobody is left to wait for: {got:?}"));
}

/// The living one's numbers (20 and on) are all there in order, the dead one's (10) if it was
/// published, nothing else.
fn assert_nothing_lost(got: &[u64], before: &[u64], pushed: usize, published: usize) {
    let of = |tens: u64| got.iter().copied().filter(|n| n / 10 == tens).collect::<Vec<u64>>();
    assert_eq!(of(2), (20..20 + pushed as u64).collect::<Vec<_>>(), "{got:?}");
    assert_eq!(of(1), vec![10; published], "{got:?}");
    assert_eq!(of(3), before, "{got:?}");
    assert_eq!(got.len(), pushed + published + before.len(), "{got:?}");
}

type Array = (Vec<array_queue::Producer<1>>, array_queue::Consumer<1>);

/// Another lap and a half: nothing is left of the death.
fn goes_on(producer: &mut array_queue::Producer<1>, consumer: &mut array_queue::Consumer<1>) {
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
        let mut lives = producers.pop().unwrap();
        let other = thread::spawn(move || {
            let died = producers[0].try_push_with(&[10], &mut dies_at(step));
            assert_eq!(died, Err(Full));
            let mut got = Vec::new();
            drain(&mut consumer, &mut got);
            consumer.retire(0);
            (consumer, got)
        });
        let pushed = (20..22).take_while(|n| lives.try_push(&[*n]).is_ok()).count();
        lives.withdraw();
        let (mut consumer, mut got) = other.join().unwrap();
        retire_the_rest(&mut consumer, &[0], &mut got);
        // The ring may have been full when the dead one reached its step, and then it never did.
        let published = got.iter().filter(|n| **n == 10).count();
        assert!(published == 0 || step == Step::Published);
        assert_nothing_lost(&got, &[], pushed, published);
        goes_on(&mut lives, &mut consumer);
    });
}

/// Two die: one has announced the place that the other then claims. Neither is taken for living
/// once both are known to be dead, in whatever order that is.
#[test]
fn the_array_survives_two_deaths_at_one_place() {
    for order in [[0, 1], [1, 0]] {
        model(None, move || {
            let (mut producers, mut consumer): Array = array_queue::heap_ring(3, CAPACITY);
            let mut lives = producers.pop().unwrap();
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
            let pushed = lives.try_push(&[20]).is_ok();
            let (mut consumer, mut got) = other.join().unwrap();
            retire_the_rest(&mut consumer, &order, &mut got);
            assert_nothing_lost(&got, &[], pushed.into(), 0);
            goes_on(&mut lives, &mut consumer);
        });
    }
}

/// The dead one's successor announces where the dead one did, and is not taken for it.
#[test]
fn the_array_revives_what_it_retired() {
    model(None, || {
        let ring = Region::heap(array_queue::ring_words(CAPACITY, 1)).words();
        array_queue::write_header::<1>(&ring, CAPACITY);
        let intents: Vec<AtomicWords> = intent::on_heap(2);
        let producer = |index: usize| array_queue::Producer::<1>::attach(&ring, &intents[index]).unwrap();
        let mut consumer = array_queue::Consumer::<1>::attach(&ring, intents.clone()).unwrap();
        let _ = producer(0).try_push_with(&[10], &mut dies_at(Step::Claimed));
        assert!(consumer.retire(0) && consumer.retire(0), "again is nothing new");
        let (mut successor, mut dies) = (producer(0), producer(1));
        let other = thread::spawn(move || {
            let _ = dies.try_push_with(&[10], &mut dies_at(Step::Announced));
            let mut got = Vec::new();
            consumer.retire(1);
            drain(&mut consumer, &mut got);
            (consumer, got)
        });
        let pushed = successor.try_push(&[20]).is_ok();
        let (mut consumer, mut got) = other.join().unwrap();
        retire_the_rest(&mut consumer, &[1], &mut got);
        assert_nothing_lost(&got, &[], pushed.into(), 0);
        assert_eq!(consumer.passed_over(), 1);
    });
}

/// As for the array, and the receiver sleeps: the living one wakes it, whatever the dead one has
/// left.
#[test]
fn the_channel_survives_a_death_at_each_step() {
    at_each_step(None, ARRAY_STEPS, |step| {
        let ring = Region::heap(array_queue::ring_words(CAPACITY, 1)).words();
        array_queue::write_header::<1>(&ring, CAPACITY);
        let (waker, intents) = (Region::heap(BELL_WORDS).words(), intent::on_heap(2));
        let mut receiver = Receiver::<1>::attach(&ring, intents.clone(), &waker).unwrap();
        let mut dies = Sender::<1>::attach(&ring, &intents[0], &waker).unwrap();
        let mut lives = Sender::<1>::attach(&ring, &intents[1], &waker).unwrap();
        let other = thread::spawn(move || lives.try_push(&[20]).unwrap());
        let _ = dies.try_push_with(&[10], &mut dies_at(step));
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
            // No time-out in the model: a wake-up that is lost hangs it.
            got.extend(receiver.pop_timeout(Duration::MAX).unwrap().map(|[n]| n));
        }
        other.join().unwrap();
        assert_nothing_lost(&got, &[], 1, published);
    });
}

/// Blocks for that many messages more, after all were taken: what a death has cost the arena.
fn room(producer: &mut linked::Producer<1, SLOTS>, list: &mut List) -> usize {
    // Until the first message of a block was taken: then the block before is given back.
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

/// The list is at a block's end, so that the dead one, the living one or both link the next.
#[test]
fn the_list_survives_a_death_at_each_step() {
    at_each_step(Some(4), LIST_STEPS, |step| {
        let (mut producers, mut list) = linked::heap_list::<1, SLOTS>(2, BLOCKS);
        let mut lives = producers.pop().unwrap();
        (30..32).for_each(|n| lives.try_push(&[n]).unwrap());
        let other = thread::spawn(move || {
            let died = producers[0].try_push_with(&[10], &mut dies_at(step));
            let mut got = Vec::new();
            drain(&mut list, &mut got);
            list.retire(0);
            (list, got, died)
        });
        let pushed = (20..22).take_while(|n| lives.try_push(&[*n]).is_ok()).count();
        lives.withdraw();
        let (mut list, mut got, died) = other.join().unwrap();
        retire_the_rest(&mut list, &[0], &mut got);
        // Where the other one links the block, the dead one may not come by its step, and
        // publishes.
        let published = usize::from(step == Step::Published || died.is_ok());
        assert_eq!(pushed, 2);
        assert_nothing_lost(&got, &[30, 31], pushed, published);
        assert_eq!(list.check(), Ok(()));
        assert_eq!(room(&mut lives, &mut list), BLOCKS * SLOTS - 1, "the arena has not shrunk");
    });
}
