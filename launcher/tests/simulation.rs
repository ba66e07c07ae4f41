//! A deterministic simulation: the agents of a real run on a virtual clock, in one thread, in an order that a seed draws.
//! Rings of two slots and a scheduler without mercy: whatever the interleaving, no order is lost, doubled or overtaken.

use gateway::{Gateway, Venue};
use orchestrator::risk::Limits;
use orchestrator::work::Work;
use orchestrator::{Inbox, Orchestrator, ReturnPath};
use proptest::prelude::*;
use protocol::agent::{Agent, Cycle};
use protocol::plan::Pacing;
use protocol::stamps::{Point, RECORD_WORDS, Record, StampLog, count_records};
use protocol::status::LOG_OFFSET;
use protocol::wire::MESSAGE_WORDS;
use shm::clock::{Timebase, Virtual};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{Region, Words};
use shm::ring::spsc;
use shm::ring::spsc_mux::{Mux, SpscMuxProducer};
use shm::sync::Ordering;
use std::collections::HashMap;
use strategy::schedule::{Arrivals, DelayRange, Spec, sample};
use strategy::{Player, Session, StrategyAgent};

/// What is simulated.
#[derive(Clone, Debug)]
struct World {
    strategies: u16,
    venues: u16,
    orders: u64,
    capacity: usize,
    max_held: usize,
    max_open: u64,
    arrivals: Arrivals,
    seed: u64,
}

fn world() -> impl Strategy<Value = World> {
    let small = (1u16..4, 1u16..4, 1u64..80, 1u32..4, 1usize..6, 1u64..20);
    (small, proptest::sample::select(Arrivals::ALL), any::<u64>()).prop_map(|(small, arrivals, seed)| {
        let (strategies, venues, orders, capacity_log2, max_held, max_open) = small;
        World { strategies, venues, orders, capacity: 1 << capacity_log2, max_held, max_open, arrivals, seed }
    })
}

/// Does one duty cycle and says whether the agent has finished.
type Step = Box<dyn FnMut(&mut Cycle<Virtual>) -> bool>;

/// One agent with its log, stepped by the simulation.
struct Actor {
    agent: Step,
    cycle: Cycle<Virtual>,
    log: Words,
}

fn actor(clock: &Virtual, mut agent: impl Agent<Virtual> + 'static) -> Actor {
    let log = Region::heap(LOG_OFFSET + 4096 * RECORD_WORDS).words();
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    let cycle = Cycle { clock: clock.clone(), now: 0, time, draining: false, log: StampLog::new(&log) };
    let step = move |cycle: &mut Cycle<Virtual>| {
        agent.duty_cycle(cycle);
        agent.finished(false)
    };
    Actor { agent: Box::new(step), cycle, log }
}

fn rings(count: u16, capacity: usize) -> (Vec<spsc::Producer>, Vec<spsc::Consumer>) {
    (0..count).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(capacity)).unzip()
}

/// Builds the agents: strategies first, then the orchestrator, then the gateways.
fn actors(world: &World, clock: &Virtual) -> Vec<Actor> {
    let World { strategies, venues, orders, arrivals, seed, .. } = *world;
    let delay = DelayRange { min_ns: 0, max_ns: 400 };
    let schedule =
        sample(&Spec { strategies, venues, orders, window_ns: 2_000, arrivals, delay, seed }).unwrap();
    let (submit, submit_ends) = rings(strategies, world.capacity);
    let (completion, completion_ends) = rings(venues, world.capacity);
    let (inbox, inbox_ends) = rings(venues, world.capacity);
    let (returns, return_ends) = rings(strategies, world.capacity);
    let mut actors = Vec::new();
    for (index, (submit, returns)) in (0..).zip(submit.into_iter().zip(return_ends)) {
        let entries = schedule.words(index);
        let words = Region::heap(HEADER_WORDS + entries.len() * 4).words();
        for (word, value) in words[HEADER_WORDS..].iter().zip(entries.iter().flatten()) {
            word.store(*value, Ordering::Relaxed);
        }
        let pacing = if arrivals == Arrivals::Stress { Pacing::Closed } else { Pacing::Scheduled };
        let player = Player::new(words.into(), entries.len(), pacing);
        let session = Session::new(index, world.max_open, SpscMuxProducer(submit), None, returns);
        actors.push(actor(clock, StrategyAgent::new(player, session)));
    }
    let max_open = world.max_open as usize;
    let orchestrator = Orchestrator::new(
        Mux::new(submit_ends),
        Mux::new(completion_ends),
        inbox.into_iter().map(|ring| Inbox::new(ring, None)).collect(),
        returns.into_iter().map(|ring| ReturnPath::new(ring, None, max_open)).collect(),
        Limits::open_orders(world.max_open),
        Work::new(0),
    );
    actors.push(actor(clock, orchestrator));
    for (index, (inbox, completion)) in (0..).zip(inbox_ends.into_iter().zip(completion)) {
        actors.push(actor(
            clock,
            Gateway::new(index, inbox, SpscMuxProducer(completion), None, Venue, world.max_held),
        ));
    }
    actors
}

fn records(log: &Words) -> Vec<Record> {
    let word = |i: usize| log[LOG_OFFSET + i].load(Ordering::Relaxed);
    (0..count_records(&log.clone().into()))
        .map(|i| Record::from_words(word(2 * i), word(2 * i + 1)).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_conserves_the_orders(world in world()) {
        let clock = Virtual::default();
        let mut actors = actors(&world, &clock);
        let strategies = usize::from(world.strategies);
        let mut finished = vec![false; strategies];
        let (mut now, mut random) = (0u64, world.seed | 1);
        let mut steps = 0;
        while !finished.iter().all(|done| *done) {
            steps += 1;
            prop_assert!(steps < 400_000, "somebody waits for ever: {finished:?}");
            // A linear congruential generator (Knuth's constants): who is next, and how much time has passed.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let index = (random >> 33) as usize % actors.len();
            now += random >> 60;
            clock.set(now);
            let Actor { agent, cycle, .. } = &mut actors[index];
            cycle.now = now;
            let done = agent(cycle);
            if let Some(flag) = finished.get_mut(index) {
                *flag = done;
            }
        }

        let mut orders: HashMap<u64, [Option<u64>; 12]> = HashMap::new();
        for actor in &actors {
            for Record { point, id, value } in records(&actor.log) {
                let stamp = &mut orders.entry(id.word()).or_default()[point as usize];
                prop_assert_eq!(*stamp, None, "{} of {} twice", point.name(), id);
                *stamp = Some(value);
            }
        }
        prop_assert_eq!(orders.len() as u64, world.orders);
        for stamps in orders.values() {
            let path: Option<Vec<u64>> = stamps[1..=8].iter().copied().collect();
            let path = path.expect("eight stamps each");
            prop_assert!(path.is_sorted(), "time goes forward: {path:?}");
            prop_assert!(stamps[Point::Release as usize] <= stamps[Point::GatewayDone as usize], "not before its time");
        }
        // First in, first out for each strategy at the orchestrator.
        let mut next = vec![0; strategies];
        for record in records(&actors[strategies].log) {
            if record.point == Point::OrchRecvSubmit {
                let next = &mut next[usize::from(record.id.strategy())];
                prop_assert_eq!(record.id.sequence(), *next);
                *next += 1;
            }
        }
    }
}
