//! Random events with producers that die at any step of a push and consumers that are replaced:
//! other producers lose nothing, dead ones at most the message in flight, and the ring keeps its
//! capacity. On the heap, for every technique in shared memory.
//!
//! Every order of steps is in `tests/loom/deaths.rs`; deaths of real processes are in `crash`.

use crate::common::Run;
use proptest::prelude::*;
use protocol::segments;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::attached::Attached;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::ring::{BlockedSlot, Consumer, Link, Producer, SegmentPlace, Step};
use shm::sync::Ordering;
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use techniques::Technique;
use techniques::linked;
use techniques::with_link;

const PRODUCERS: usize = 3;

/// A random event. Events of dead producers are ignored.
#[derive(Clone, Debug)]
enum Event {
    Push(usize),
    Pop(usize),
    Die(usize, Step),
    /// One duty cycle: retires every dead producer, as far as possible.
    Retire,
    /// Starts a successor; the consumer revives it before or after its first push.
    Revive(usize, bool),
    /// A successor replaces the consumer.
    Resume,
}

fn event() -> impl Strategy<Value = Event> {
    let who = 0..PRODUCERS;
    let step = (0..Step::ALL.len()).prop_map(|step| Step::ALL[step]);
    prop_oneof![
        8 => who.clone().prop_map(Event::Push),
        4 => (1usize..4).prop_map(Event::Pop),
        2 => (who.clone(), step).prop_map(|(who, step)| Event::Die(who, step)),
        2 => Just(Event::Retire),
        2 => (who, any::<bool>()).prop_map(|(who, late)| Event::Revive(who, late)),
        1 => Just(Event::Resume),
    ]
}

#[derive(Clone, Copy, PartialEq)]
enum Life {
    Living,
    Dead,
    Retired,
}

fn message(producer: usize, n: u64) -> Message {
    [(producer as u64) << 48 | n; MESSAGE_WORDS]
}

/// A link on the heap, and the expected messages.
struct World<'a, T: Link> {
    run: &'a Run,
    attached: Attached<'a>,
    segments: HashMap<String, AtomicWords>,
    consumer: T::Consumer,
    producers: Vec<Option<T::Producer>>,
    lives: [Life; PRODUCERS],
    /// The published messages of each producer that were not taken.
    due: [VecDeque<Message>; PRODUCERS],
    next: u64,
    /// Number of deaths that left a claimed slot.
    graves: u64,
    /// Number of slots that replaced consumers passed over.
    passed_over: u64,
}

impl<'a, T: Link> World<'a, T> {
    /// Makes a world; `None` if the technique does not use shared memory.
    fn new(run: &'a Run) -> Option<Self> {
        let specs = T::segments(&run.link());
        let memory = |place| matches!(place, SegmentPlace::Memory | SegmentPlace::Reserve);
        if specs.is_empty() || !specs.iter().all(|spec| memory(spec.place)) {
            return None;
        }
        let mut attached = segments::attach(run.plan(), None);
        let mut segments = HashMap::new();
        for spec in &specs {
            let region = protocol::segments::heap_segment(run.plan(), spec);
            segments.insert(spec.name.clone(), region.words());
            attached.adopt(&spec.name, region);
        }
        let (consumer, producers) = run.attach::<T>(&mut attached);
        Some(Self {
            run,
            attached,
            segments,
            consumer,
            producers: producers.into_iter().map(Some).collect(),
            lives: [Life::Living; PRODUCERS],
            due: Default::default(),
            next: 0,
            graves: 0,
            passed_over: 0,
        })
    }

    fn try_push(&mut self, who: usize) -> bool {
        let Some(producer) = &mut self.producers[who] else { return true };
        let message = message(who, self.next);
        let pushed = producer.try_push(&message).is_ok();
        if pushed {
            self.due[who].push_back(message);
            self.next += 1;
        }
        pushed
    }

    /// Takes up to `times` messages. Returns their number. Each must be the next one of its
    /// producer.
    fn pop(&mut self, times: usize) -> usize {
        for taken in 0..times {
            let Some((from, got)) = self.consumer.try_pop() else { return taken };
            let producer = (got[0] >> 48) as usize;
            assert!(from.is_none_or(|from| from == producer));
            assert_eq!(self.due[producer].pop_front(), Some(got), "lost, twice, torn or out of order");
        }
        times
    }

    fn die(&mut self, who: usize, step: Step) {
        let Some(mut producer) = self.producers[who].take() else { return };
        let message = message(who, self.next);
        self.next += 1;
        let mut reached = None;
        let pushed = producer.try_push_with(&message, &mut |at| {
            reached = Some(at);
            if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // If the push does not have the step, the producer dies after it.
        if reached == Some(Step::Published) {
            self.due[who].push_back(message);
        } else {
            assert!(pushed.is_err());
        }
        let claimed = [Step::Claimed, Step::HalfWritten, Step::Written];
        self.graves += u64::from(reached == Some(step) && claimed.contains(&step));
        self.lives[who] = Life::Dead;
    }

    fn retire(&mut self) {
        for who in 0..PRODUCERS {
            if self.lives[who] == Life::Dead && self.consumer.retire(who) {
                self.lives[who] = Life::Retired;
            }
        }
    }

    fn revive(&mut self, who: usize, late: bool) {
        if self.lives[who] != Life::Retired {
            return;
        }
        // Reset its memory as the launcher does.
        for what in [format!("submit-{who}"), format!("submit-{who}.intent")] {
            if let Some(words) = self.segments.get(&what) {
                words[HEADER_WORDS..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            }
        }
        self.producers[who] = Some(self.attached.producer::<T>(&self.run.link(), who).unwrap());
        self.lives[who] = Life::Living;
        if late {
            self.try_push(who);
        }
        self.consumer.revive(who);
    }

    /// Replaces the consumer, if the technique can and no producer is retired: a successor would
    /// read such a producer's ring again, which an engine prevents with `pass_over`.
    fn resume(&mut self) {
        if T::INFO.resumable && !self.lives.contains(&Life::Retired) {
            self.passed_over += self.consumer.passed_over();
            self.consumer = T::resume(&self.run.link(), &mut self.attached).unwrap();
        }
    }

    fn settle(&mut self) {
        for _ in 0..=PRODUCERS {
            self.pop(usize::MAX);
            self.retire();
        }
        self.pop(usize::MAX);
        assert!(self.due.iter().all(VecDeque::is_empty), "{:?} never came", self.due);
        assert!(!self.lives.contains(&Life::Dead), "nobody is left to wait for");
        assert_eq!((self.consumer.take_fault(), self.consumer.check()), (None, Ok(())));
    }
}

fn play<T: Link>(run: &Run, events: &[Event]) {
    let Some(mut world) = World::<T>::new(run) else { return };
    for event in events {
        match *event {
            Event::Push(who) => _ = world.try_push(who),
            Event::Pop(times) => _ = world.pop(times),
            Event::Die(who, step) => world.die(who, step),
            Event::Retire => world.retire(),
            Event::Revive(who, late) => world.revive(who, late),
            Event::Resume => world.resume(),
        }
    }
    world.settle();
    // All producers are replaced, and the capacity is complete.
    (0..PRODUCERS).for_each(|who| world.revive(who, who % 2 == 0));
    world.settle();
    let capacity = run.link().capacity as usize;
    for _ in 0..3 {
        let fits = (0..100 * capacity).take_while(|_| world.try_push(0)).count();
        let least = if run.plan().technique == Technique::from_link::<linked::Linked>() {
            // All blocks except the current one, and the spare ones of two producers.
            linked::reserved_blocks(capacity, PRODUCERS) * linked::BLOCK_SLOTS - 4 * linked::BLOCK_SLOTS
        } else {
            capacity
        };
        assert!(fits >= least, "{fits} fit, {least} must");
        world.settle();
    }
    let shared = world.segments.contains_key("submit");
    let passed_over = world.passed_over + world.consumer.passed_over();
    assert_eq!(passed_over, if shared { world.graves } else { 0 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn death_costs_at_most_message_in_flight(
        events in prop::collection::vec(event(), 1..300),
        log2 in 1u32..5,
    ) {
        for technique in Technique::all() {
            let run = Run::new(technique, PRODUCERS as u16, 1 << log2);
            with_link!(technique, T => play::<T>(&run, &events));
        }
    }
}

/// A push that is aborted in the middle by a running producer.
fn held<T: Link>(run: &Run) {
    let steps = T::INFO.steps;
    let Some(mut world) = World::<T>::new(run).filter(|_| steps.contains(&Step::HalfWritten)) else { return };
    let is_shared = steps.contains(&Step::Claimed);
    assert!(world.try_push(0));
    assert_eq!(world.consumer.blocked(), None, "it is written");
    let holder = world.producers[1].as_mut().expect("it lives");
    let leave = |at| if at == Step::HalfWritten { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    assert!(holder.try_push_with(&message(1, 100), &mut { leave }).is_err());
    assert!(world.try_push(2));
    assert_eq!(world.consumer.blocked(), None, "not before the consumer has come to it");
    world.pop(1);
    let found = world.consumer.blocked();
    assert_eq!(
        found,
        is_shared.then_some(BlockedSlot { position: 1, announcer: Some(1) }),
        "{}",
        T::INFO.name
    );
    assert_eq!(
        world.pop(1),
        usize::from(!is_shared),
        "it stands in the others' way only where they share the ring"
    );
    assert_eq!(world.consumer.check(), Ok(()), "somebody announces it: no damage");
    // Once its death is certain, the ring is not blocked.
    assert!(world.consumer.retire(1));
    assert_eq!(world.consumer.blocked(), None);
    assert_eq!(world.pop(1), usize::from(is_shared));
}

#[test]
fn blocked_slot_names_its_claimant() {
    for technique in Technique::all() {
        let run = Run::new(technique, PRODUCERS as u16, 4);
        with_link!(technique, T => held::<T>(&run));
    }
}

/// A hostile peer has overwritten a message but not its claim: the slot seems to be held by its
/// producer.
fn written_over<T: Link>(run: &Run) {
    let is_shared = T::INFO.steps.contains(&Step::Claimed);
    let Some(mut world) = World::<T>::new(run).filter(|_| is_shared) else { return };
    let ring = world.segments["submit"].clone();
    let word = |index: usize| ring[index].load(Ordering::Relaxed);
    let before: Vec<u64> = (0..ring.len()).map(word).collect();
    assert!(world.try_push(0));
    for (index, was) in before.into_iter().enumerate() {
        // In all techniques the tail is the first word after the header.
        if index != HEADER_WORDS {
            ring[index].store(was, Ordering::Relaxed);
        }
    }
    let blamed = |world: &World<T>| world.consumer.blocked().map(|found| (found.position, found.announcer));
    assert_eq!(blamed(&world), Some((0, Some(0))), "{}: nothing else would clear it", T::INFO.name);
    world.producers[0].as_mut().expect("it lives").withdraw();
    assert_eq!(blamed(&world), Some((0, None)), "{}", T::INFO.name);
    assert!(world.consumer.check().is_err(), "{}: damage, by whom cannot be told", T::INFO.name);
}

#[test]
fn overwritten_slot_names_no_claimant() {
    for technique in Technique::all() {
        let run = Run::new(technique, PRODUCERS as u16, 4);
        with_link!(technique, T => written_over::<T>(&run));
    }
}
