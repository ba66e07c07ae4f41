//! Both sides of a bridge over a network with partitions and crashes, on a virtual clock: every
//! order of the far host has one outcome, and the engine's side received those reported as taken.

use crate::bridge_dir::BridgeDir;
use crate::engine_side::{BridgeEvent, EngineQueues, EngineSide};
use crate::pump::{BridgeSide, TurnResult};
use crate::strategy_side::{BridgeRequest, Broken, Orders, StrategyQueues, StrategySide};
use bridge::frame::FRAME;
use bridge::link::{Link, SessionHistory, Timing};
use launcher::protocol::wire::{OrderId, OrderRequest, Report};
use std::collections::HashMap;

const RUN: u32 = 7;
const TIMING: Timing = Timing { heartbeat_ns: 1_000_000, silence_ns: 40_000_000, hello_ns: 15_000_000 };
const STEP_NS: u64 = 250_000;
const TRANSIT_NS: u64 = 600_000;
const ORDERS: u64 = 400;
const MAX_STEPS: u64 = 200_000;

/// Failures, each per ten thousand steps.
#[derive(Clone, Copy)]
struct Weather {
    partitions: u64,
    /// Kills of the engine's side, without saving its history.
    kills: u64,
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, cases: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % cases
    }
}

/// The network: frames in flight with due time and direction.
struct Net {
    now: u64,
    parted_until: u64,
    flying: Vec<(u64, bool, [u8; FRAME])>,
}

impl Net {
    fn deliver(&mut self, to_engine: bool, link: &mut Link) {
        while let Some(at) = self.flying.iter().position(|(due, to, _)| *to == to_engine && *due <= self.now)
        {
            let (_, _, bytes) = self.flying.remove(at);
            link.receive(&bytes, self.now);
        }
    }

    /// Runs a step of a side. Returns `true` if it has finished.
    fn try_finish_step(&mut self, to_engine: bool, link: &mut Link, side: &mut impl BridgeSide) -> bool {
        self.deliver(!to_engine, link);
        while let Some(event) = link.next_event() {
            side.event(event, link);
        }
        let is_over = side.turn(link, self.now) == TurnResult::Over;
        if !is_over || link.is_over() {
            let (due, is_parted) = (self.now + TRANSIT_NS, self.now < self.parted_until);
            link.poll(self.now, |bytes| {
                if !is_parted {
                    self.flying.push((due, to_engine, *bytes));
                }
                true
            });
        }
        is_over
    }
}

/// The far host's strategies, all in one.
#[derive(Default)]
struct Book {
    sent: u64,
    ended: HashMap<u64, u32>,
}

impl Book {
    fn turn(&mut self, queues: &StrategyQueues, dice: &mut Dice) {
        if self.sent < ORDERS && queues.accepts_orders.is_up() && dice.roll(4) == 0 {
            let order = OrderRequest { quantity: 1, ..OrderRequest::to_venue(0) }
                .with_id(OrderId::new(0, 0, self.sent));
            queues.requests.push(BridgeRequest::Order(order)).unwrap();
            self.sent += 1;
        }
        while let Some(report) = queues.reports.pop() {
            *self.ended.entry(report.id.sequence()).or_default() += u32::from(report.is_last);
        }
        if self.sent == ORDERS && self.ended.len() as u64 == ORDERS {
            queues.is_ending.set(true);
        }
    }
}

/// Returns the outcomes of the orders and the number that the engine's side received, or an error.
fn world(seed: u64, weather: Weather, broken: Option<Broken>) -> Result<(Orders, u64), String> {
    let place =
        BridgeDir::for_process(&format!("world-{seed}-{broken:?}").to_lowercase().replace(['(', ')'], ""))
            .map_err(|error| error.to_string())?;
    let far_queues = StrategyQueues::default();
    let (mut far, mut far_link) = (StrategySide::new(&far_queues), Link::strategy_side(RUN, 1, TIMING));
    far.broken = broken;
    let (mut dice, mut book) = (Dice(seed), Book::default());
    let mut net = Net { now: 1, parted_until: 0, flying: Vec::new() };
    let (mut came, mut steps, mut epoch) = (0, 0, 0);
    'incarnations: loop {
        let queues = EngineQueues::default();
        let past = place.history().and_then(SessionHistory::from_words).unwrap_or_default();
        let mut link = Link::engine_side(RUN, epoch, TIMING).with_history(past);
        let mut near = EngineSide::new(&queues, &place);
        let mut answers: Vec<(u64, Report, _)> = Vec::new();
        epoch += 1;
        loop {
            steps += 1;
            net.now += STEP_NS;
            if steps > MAX_STEPS {
                break 'incarnations;
            }
            if dice.roll(10_000) < weather.partitions {
                net.parted_until = net.now + dice.roll(3 * TIMING.silence_ns);
            }
            book.turn(&far_queues, &mut dice);
            if net.try_finish_step(true, &mut far_link, &mut far) {
                break 'incarnations;
            }
            let is_over = net.try_finish_step(false, &mut link, &mut near);
            let mut is_gone = false;
            while let Some(event) = queues.events.pop() {
                match event {
                    BridgeEvent::Order(order, echo) => {
                        came += 1;
                        let due = net.now + dice.roll(30_000_000);
                        answers.push((due, Report::full_fill(&order), Some(echo)));
                    }
                    BridgeEvent::Gone(_) => is_gone = true,
                    BridgeEvent::Up | BridgeEvent::Over => {}
                }
            }
            while let Some(at) = answers.iter().position(|(due, ..)| *due <= net.now) {
                let (_, report, echo) = answers.remove(at);
                queues.reports.push((report, echo)).unwrap();
            }
            if queues.strategy_side_ends.is_up() && answers.is_empty() {
                queues.is_ending.set(true);
            }
            if is_gone || (is_over && !link.is_over()) || dice.roll(10_000) < weather.kills {
                continue 'incarnations;
            }
        }
    }
    far.give_up(&mut far_link);
    place.remove();
    let twice = book.ended.values().filter(|times| **times != 1).count();
    let orders = far.orders;
    let Orders { answered, lost, cut_off, unknown, refused, .. } = orders;
    match (twice, answered + lost + cut_off + unknown + refused) {
        (0, ORDERS) if book.ended.len() as u64 == ORDERS => {}
        all => return Err(format!("{all:?} of {}: {orders:?}", book.ended.len())),
    }
    // Each of those with an unknown outcome may have come.
    if (answered + cut_off..=answered + cut_off + unknown).contains(&came) {
        Ok((orders, came))
    } else {
        Err(format!("{came} came: {orders:?}"))
    }
}

const ROUGH: Weather = Weather { partitions: 30, kills: 0 };

#[test]
fn every_order_has_one_outcome() {
    let mut all = Orders::default();
    for seed in 0..60 {
        let (orders, _) = world(seed, ROUGH, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        all.answered += orders.answered;
        all.lost += orders.lost;
        all.cut_off += orders.cut_off;
        all.unknown += orders.unknown;
    }
    assert!(all.answered > 0 && all.lost > 0 && all.cut_off > 0, "{all:?}");
    assert_eq!(all.unknown, 0, "what is taken is written down before the process ends");
}

#[test]
fn with_an_engine_s_side_that_is_killed_too() {
    let mut unknown = 0;
    for seed in 0..60 {
        let (orders, _) = world(seed, Weather { kills: 20, ..ROUGH }, None)
            .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        unknown += orders.unknown;
    }
    assert!(unknown > 0);
}

#[test]
fn calm_weather_costs_no_order() {
    let (orders, came) = world(1, Weather { partitions: 0, kills: 0 }, None).unwrap();
    assert_eq!((orders.answered, came), (ORDERS, ORDERS));
}

#[test]
fn broken_parts_are_found() {
    for broken in [Broken::KeepsEarlier, Broken::CallsTakenLost, Broken::ClosesAtOnce] {
        assert!((0..60).any(|seed| world(seed, ROUGH, Some(broken)).is_err()), "{broken:?}");
    }
}
