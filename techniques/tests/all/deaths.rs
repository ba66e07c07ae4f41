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
    /// Starts a successor; the consumer renews it before or after its first push.
    Renew(usize, bool),
    /// A successor replaces the consumer.
    Resume,
}

fn event() -> impl Strategy<Value = Event> {
    let producer_index = 0..PRODUCERS;
    let step = (0..Step::ALL.len()).prop_map(|step| Step::ALL[step]);
    prop_oneof![
        8 => producer_index.clone().prop_map(Event::Push),
        4 => (1usize..4).prop_map(Event::Pop),
        2 => (producer_index.clone(), step).prop_map(|(producer_index, step)| Event::Die(producer_index, step)),
        2 => Just(Event::Retire),
        2 => (producer_index, any::<bool>()).prop_map(|(producer_index, late)| Event::Renew(producer_index, late)),
        1 => Just(Event::Resume),
    ]
}

#[derive(Clone, Copy, PartialEq)]
enum ProducerState {
    Running,
    Dead,
    Retired,
}

fn message(producer: usize, n: u64) -> Message {
    [(producer as u64) << 48 | n; MESSAGE_WORDS]
}

/// A link on the heap, and the expected messages.
struct CheckedLink<'a, T: Link> {
    run: &'a Run,
    attached: Attached<'a>,
    segments: HashMap<String, AtomicWords>,
    consumer: T::Consumer,
    producers: Vec<Option<T::Producer>>,
    states: [ProducerState; PRODUCERS],
    /// The published messages of each producer that were not taken.
    expected: [VecDeque<Message>; PRODUCERS],
    next: u64,
    /// Number of deaths that left a claimed slot.
    claimed_at_death: u64,
    /// Number of slots that replaced consumers passed over.
    passed_over: u64,
}

impl<'a, T: Link> CheckedLink<'a, T> {
    /// Creates a link on the heap; `None` if the technique does not use shared memory.
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
            states: [ProducerState::Running; PRODUCERS],
            expected: Default::default(),
            next: 0,
            claimed_at_death: 0,
            passed_over: 0,
        })
    }

    fn try_push(&mut self, producer_index: usize) -> bool {
        let Some(producer) = &mut self.producers[producer_index] else { return true };
        let message = message(producer_index, self.next);
        let pushed = producer.try_push(&message).is_ok();
        if pushed {
            self.expected[producer_index].push_back(message);
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
            assert_eq!(self.expected[producer].pop_front(), Some(got), "lost, twice, torn or out of order");
        }
        times
    }

    fn die(&mut self, producer_index: usize, step: Step) {
        let Some(mut producer) = self.producers[producer_index].take() else { return };
        let message = message(producer_index, self.next);
        self.next += 1;
        let mut reached = None;
        let pushed = producer.try_push_with(&message, &mut |at| {
            reached = Some(at);
            if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // If the push does not have the step, the producer dies after it.
        if reached == Some(Step::Published) {
            self.expected[producer_index].push_back(message);
        } else {
            assert!(pushed.is_err());
        }
        let claimed = [Step::Claimed, Step::HalfWritten, Step::Written];
        self.claimed_at_death += u64::from(reached == Some(step) && claimed.contains(&step));
        self.states[producer_index] = ProducerState::Dead;
    }

    fn retire(&mut self) {
        for producer_index in 0..PRODUCERS {
            if self.states[producer_index] == ProducerState::Dead && self.consumer.retire(producer_index) {
                self.states[producer_index] = ProducerState::Retired;
            }
        }
    }

    fn renew(&mut self, producer_index: usize, late: bool) {
        if self.states[producer_index] != ProducerState::Retired {
            return;
        }
        // Reset its memory as the launcher does.
        for segment in [format!("submit-{producer_index}"), format!("submit-{producer_index}.intent")] {
            if let Some(words) = self.segments.get(&segment) {
                words[HEADER_WORDS..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            }
        }
        self.producers[producer_index] =
            Some(self.attached.producer::<T>(&self.run.link(), producer_index).unwrap());
        self.states[producer_index] = ProducerState::Running;
        if late {
            self.try_push(producer_index);
        }
        self.consumer.renew(producer_index);
    }

    /// Replaces the consumer, if the technique can and no producer is retired: a successor would
    /// read such a producer's ring again, which an engine prevents with `pass_over`.
    fn resume(&mut self) {
        if T::INFO.consumer_resumable && !self.states.contains(&ProducerState::Retired) {
            self.passed_over += self.consumer.passed_over();
            self.consumer = T::resume_consumer(&self.run.link(), &mut self.attached).unwrap();
        }
    }

    fn drain_and_retire(&mut self) {
        for _ in 0..=PRODUCERS {
            self.pop(usize::MAX);
            self.retire();
        }
        self.pop(usize::MAX);
        assert!(self.expected.iter().all(VecDeque::is_empty), "{:?} were never received", self.expected);
        assert!(!self.states.contains(&ProducerState::Dead), "a dead producer was not retired");
        assert_eq!((self.consumer.take_fault(), self.consumer.check()), (None, Ok(())));
    }
}

fn run_events<T: Link>(run: &Run, events: &[Event]) {
    let Some(mut link) = CheckedLink::<T>::new(run) else { return };
    for event in events {
        match *event {
            Event::Push(producer_index) => _ = link.try_push(producer_index),
            Event::Pop(times) => _ = link.pop(times),
            Event::Die(producer_index, step) => link.die(producer_index, step),
            Event::Retire => link.retire(),
            Event::Renew(producer_index, late) => link.renew(producer_index, late),
            Event::Resume => link.resume(),
        }
    }
    link.drain_and_retire();
    // All producers are replaced, and the capacity is complete.
    (0..PRODUCERS).for_each(|producer_index| link.renew(producer_index, producer_index % 2 == 0));
    link.drain_and_retire();
    let capacity = run.link().capacity as usize;
    for _ in 0..3 {
        let fits = (0..100 * capacity).take_while(|_| link.try_push(0)).count();
        let min = if run.plan().technique == Technique::from_link::<linked::Linked>() {
            // All blocks except the current one, and the spare ones of two producers.
            linked::reserved_blocks(capacity, PRODUCERS) * linked::BLOCK_SLOTS - 4 * linked::BLOCK_SLOTS
        } else {
            capacity
        };
        assert!(fits >= min, "{fits} fit, at least {min} expected");
        link.drain_and_retire();
    }
    let shared = link.segments.contains_key("submit");
    let passed_over = link.passed_over + link.consumer.passed_over();
    assert_eq!(passed_over, if shared { link.claimed_at_death } else { 0 });
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
            with_link!(technique, T => run_events::<T>(&run, &events));
        }
    }
}

/// A push that is aborted in the middle by a running producer.
fn check_abandoned_claim<T: Link>(run: &Run) {
    let steps = T::INFO.steps;
    let Some(mut link) = CheckedLink::<T>::new(run).filter(|_| steps.contains(&Step::HalfWritten)) else {
        return;
    };
    let is_shared = steps.contains(&Step::Claimed);
    assert!(link.try_push(0));
    assert_eq!(link.consumer.blocked(), None, "the slot is written");
    let claimant = link.producers[1].as_mut().expect("the producer runs");
    let stop_half_written =
        |at| if at == Step::HalfWritten { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    assert!(claimant.try_push_with(&message(1, 100), &mut { stop_half_written }).is_err());
    assert!(link.try_push(2));
    assert_eq!(link.consumer.blocked(), None, "the consumer has not reached the slot yet");
    link.pop(1);
    let blocked = link.consumer.blocked();
    assert_eq!(
        blocked,
        is_shared.then_some(BlockedSlot { position: 1, announcer: Some(1) }),
        "{}",
        T::INFO.name
    );
    assert_eq!(link.pop(1), usize::from(!is_shared), "it blocks the others only in a shared ring");
    assert_eq!(link.consumer.check(), Ok(()), "an announced slot is not damage");
    // Once its death is certain, the ring is not blocked.
    assert!(link.consumer.retire(1));
    assert_eq!(link.consumer.blocked(), None);
    assert_eq!(link.pop(1), usize::from(is_shared));
}

#[test]
fn blocked_slot_names_its_claimant() {
    for technique in Technique::all() {
        let run = Run::new(technique, PRODUCERS as u16, 4);
        with_link!(technique, T => check_abandoned_claim::<T>(&run));
    }
}

/// A hostile peer has overwritten a message but not its claim: the slot seems to be held by its
/// producer.
fn check_overwritten_slot<T: Link>(run: &Run) {
    let is_shared = T::INFO.steps.contains(&Step::Claimed);
    let Some(mut link) = CheckedLink::<T>::new(run).filter(|_| is_shared) else { return };
    let ring = link.segments["submit"].clone();
    let word = |index: usize| ring[index].load(Ordering::Relaxed);
    let before: Vec<u64> = (0..ring.len()).map(word).collect();
    assert!(link.try_push(0));
    for (index, value) in before.into_iter().enumerate() {
        // In all techniques the tail is the first word after the header.
        if index != HEADER_WORDS {
            ring[index].store(value, Ordering::Relaxed);
        }
    }
    let blocked_slot =
        |link: &CheckedLink<T>| link.consumer.blocked().map(|blocked| (blocked.position, blocked.announcer));
    assert_eq!(blocked_slot(&link), Some((0, Some(0))), "{}: the claim still stands", T::INFO.name);
    link.producers[0].as_mut().expect("the producer runs").withdraw();
    assert_eq!(blocked_slot(&link), Some((0, None)), "{}", T::INFO.name);
    assert!(link.consumer.check().is_err(), "{}: damage without a known producer", T::INFO.name);
}

#[test]
fn overwritten_slot_names_no_claimant() {
    for technique in Technique::all() {
        let run = Run::new(technique, PRODUCERS as u16, 4);
        with_link!(technique, T => check_overwritten_slot::<T>(&run));
    }
}
