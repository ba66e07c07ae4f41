//! Hand-offs that lose, duplicate, reorder or tear messages: the merge detects each.
//!
//! The agents are the real ones, on a virtual clock and in one thread; only the receiving end of
//! the link under test is broken.

use crate::common::kinds;
use crate::fixture::{Fixture, Shape};
use gateway::{DelayVenue, Gateway, InFull, Venue};
use merge::{MergedRun, ViolationKind, merge};
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs};
use protocol::agent::{Agent, Cycle};
use protocol::plan::{Pacing, Role};
use protocol::sender::Sender;
use protocol::stamps::{RECORD_WORDS, StampLog};
use protocol::status::{LOG_OFFSET, StatusField, StatusWriter, ThreadState};
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc_mux::{Mux, SpscMuxProducer};
use shm::ring::{Consumer, PeerFault, spsc};
use shm::sync::Ordering;
use std::collections::VecDeque;
use strategy::{OrderRequest, Orders, Session, Strategy, StrategyAgent};
use system::clock::{Timebase, VirtualClock};
use system::work::TimedWork;

/// The defect that a link applies to every seventh message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    None,
    Doubles,
    Loses,
    /// The message arrives after the next one.
    Reorders,
    /// The message has the second half of its predecessor.
    Tears,
}

const EVERY: u64 = 7;

/// The receiving end of a shared link, which cannot identify the sender of a message.
struct Broken {
    inner: Mux,
    defect: Defect,
    popped: u64,
    last: Message,
    ready: VecDeque<Message>,
}

impl Broken {
    fn new(inner: Mux, defect: Defect) -> Self {
        Self { inner, defect, popped: 0, last: [0; MESSAGE_WORDS], ready: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Message> {
        let (_, message) = self.inner.try_pop()?;
        self.popped += 1;
        Some(message)
    }
}

impl Consumer for Broken {
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        if let Some(message) = self.ready.pop_front() {
            return Some((None, message));
        }
        let mut message = self.next()?;
        if self.popped.is_multiple_of(EVERY) {
            match self.defect {
                Defect::None => {}
                Defect::Doubles => self.ready.push_back(message),
                Defect::Loses => return None,
                Defect::Reorders => {
                    if let Some(next) = self.next() {
                        self.ready.push_back(core::mem::replace(&mut message, next));
                    }
                }
                Defect::Tears => message[3..].copy_from_slice(&self.last[3..]),
            }
        }
        self.last = message;
        Some((None, message))
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.inner.take_fault()
    }
}

struct Actor {
    agent: Box<dyn Agent<VirtualClock>>,
    cycle: Cycle<VirtualClock>,
    segment: AtomicWords,
}

fn actor(clock: &VirtualClock, agent: impl Agent<VirtualClock> + 'static) -> Actor {
    let segment = Region::heap(LOG_OFFSET + 8192 * RECORD_WORDS).words();
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    let cycle = Cycle { clock: clock.clone(), now: 0, time, draining: false, log: StampLog::new(&segment) };
    Actor { agent: Box::new(agent), cycle, segment }
}

const SHAPE: Shape = Shape { orders: 100, pacing: Pacing::Closed, period: 1, delay: 1, ..Shape::PLAIN };

/// Sends an order whenever possible, each with a distinct quantity.
struct Metronome {
    sent: u64,
}

impl Strategy for Metronome {
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.finished() {
            return 0;
        }
        let venue = (self.sent % u64::from(SHAPE.venues)) as u16;
        let order = OrderRequest {
            quantity: 1_000 + self.sent,
            delay_ns: self.sent % 50,
            ..OrderRequest::to_venue(venue)
        };
        let is_sent = orders.send(order).is_ok();
        self.sent += u64::from(is_sent);
        usize::from(is_sent)
    }

    fn finished(&self) -> bool {
        self.sent == SHAPE.orders
    }
}

/// Returns the agents of the fixture's run, in the order of its plan's threads.
fn actors<V: Venue + 'static>(
    clock: &VirtualClock,
    [submit_defect, completion_defect]: [Defect; 2],
    venue: impl Fn() -> V,
) -> Vec<Actor> {
    let rings = |count: u16| -> (Vec<spsc::Producer>, Vec<spsc::Consumer>) {
        (0..count).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(64)).unzip()
    };
    let (submit, submit_ends) = rings(SHAPE.strategies);
    let (returns, return_ends) = rings(SHAPE.strategies);
    let (inbox, inbox_ends) = rings(SHAPE.venues);
    let (completion, completion_ends) = rings(SHAPE.venues);
    let mut actors = Vec::new();
    for (index, (submit, returns)) in (0..).zip(submit.into_iter().zip(return_ends)) {
        let session = Session::new(index, 64, SpscMuxProducer(submit), None, returns);
        actors.push(actor(clock, StrategyAgent::new(Metronome { sent: 0 }, session)));
    }
    let core = Core::new(&RiskSetup::open_orders(SHAPE.strategies.into(), SHAPE.venues.into(), 64))
        .expect("no limits");
    let outputs = Outputs::new(
        inbox.into_iter().map(|ring| Sender::new(ring, None, 64)).collect(),
        returns.into_iter().map(|ring| Sender::bounded(ring, None, 256)).collect(),
        TimedWork::new(0),
    );
    let orchestrator = Orchestrator::new(
        Broken::new(Mux::new(submit_ends), submit_defect),
        Broken::new(Mux::new(completion_ends), completion_defect),
        core,
        outputs,
        (),
    );
    actors.push(actor(clock, orchestrator));
    for (index, (inbox, completion)) in (0..).zip(inbox_ends.into_iter().zip(completion)) {
        let gateway = Gateway::new(index, inbox, SpscMuxProducer(completion), None, venue());
        actors.push(actor(clock, gateway));
    }
    actors
}

fn play(links: [Defect; 2]) -> MergedRun {
    play_with(links, || DelayVenue::with_capacity(InFull, 64))
}

pub(super) const SOUND: [Defect; 2] = [Defect::None; 2];

/// Runs the agents to the end, or until no progress is possible, and merges the logs. `links` are
/// submit and completion.
pub(super) fn play_with<V: Venue + 'static>(links: [Defect; 2], venue: impl Fn() -> V) -> MergedRun {
    let clock = VirtualClock::default();
    let mut actors = actors(&clock, links, venue);
    let mut random = 12_345u64;
    for step in 0..60_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let now = 1_000 + step * 3;
        clock.set(now);
        let count = actors.len();
        let Actor { agent, cycle, .. } = &mut actors[(random >> 33) as usize % count];
        cycle.now = now;
        agent.duty_cycle(cycle);
    }
    let fixture = Fixture::new(SHAPE);
    let plan = &fixture.record.plan;
    let engine = plan.thread_of(Role::Orchestrator);
    assert_eq!(engine, Some(usize::from(SHAPE.strategies)), "as actors are built");
    let mut logs = Vec::new();
    for (thread, Actor { agent, cycle, segment }) in actors.iter_mut().enumerate() {
        agent.seal(&mut cycle.log);
        let status = StatusWriter::new(segment);
        status.announce(&plan.threads[thread].roles);
        agent.publish(&mut status.slots());
        status.set(StatusField::RecordsDropped, cycle.log.dropped());
        status.set_state(ThreadState::Done);
        let header = fixture.bytes(thread)[..HEADER_WORDS * 8].to_vec();
        let words = segment[HEADER_WORDS..].iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let mut bytes: Vec<u8> = header.into_iter().chain(words.flatten()).collect();
        let records = protocol::stamps::count_records(&segment.clone().into());
        bytes.truncate((LOG_OFFSET + records * RECORD_WORDS) * 8);
        logs.push(bytes);
    }
    merge(logs.as_slice(), &fixture.record, |_, _| {}).unwrap()
}

#[test]
fn sound_links_have_no_violations() {
    let merged = play(SOUND);
    assert_eq!(merged.violations, []);
    assert_eq!((merged.orders.returned, merged.measured().count()), (200, 200));
}

/// The violations that reveal each defect.
#[test]
fn every_link_defect_is_detected() {
    for (defect, submit, completion) in [
        (Defect::Doubles, ViolationKind::PeerFaults, ViolationKind::Duplicate),
        (Defect::Loses, ViolationKind::Lost, ViolationKind::Lost),
        (Defect::Reorders, ViolationKind::PeerFaults, ViolationKind::CompletionOrder),
        (Defect::Tears, ViolationKind::Checksum, ViolationKind::Checksum),
    ] {
        for (link, merged, kind) in [
            ("submit", play([defect, Defect::None]), submit),
            ("completion", play([Defect::None, defect]), completion),
        ] {
            assert!(kinds(&merged).contains(&kind), "{link} {defect:?}: {:?}", merged.violations);
        }
    }
}
