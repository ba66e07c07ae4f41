//! Both parts of a bridge over a network that falls apart, with processes that die, on a virtual
//! clock and without Aeron: whatever happens, every order of the far host has one end, and the
//! engine's side had those that are said to have been taken.

use crate::far::{Ask, Broken, Far, Lanes as FarLanes, Orders};
use crate::near::{Lanes, Near, Told};
use crate::place::Place;
use crate::pump::{Part, Turn};
use bridge::frame::FRAME;
use bridge::link::{Link, Past, Timing};
use launcher::protocol::wire::{Order, OrderId, Report};
use std::collections::HashMap;

const RUN: u32 = 7;
const TIMING: Timing = Timing { heartbeat_ns: 1_000_000, silence_ns: 40_000_000, hello_ns: 15_000_000 };
const STEP_NS: u64 = 250_000;
const TRANSIT_NS: u64 = 600_000;
const ORDERS: u64 = 400;
/// No world takes so many steps.
const MOST_STEPS: u64 = 200_000;

/// What goes wrong, each in so many of ten thousand steps.
#[derive(Clone, Copy)]
struct Weather {
    partitions: u64,
    /// The engine's side is killed, and writes nothing down.
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

/// The network: when, to the engine's side or not, what.
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

    /// A side's turn; whether its part is over.
    fn turn(&mut self, to_engine: bool, link: &mut Link, part: &mut impl Part) -> bool {
        self.deliver(!to_engine, link);
        while let Some(event) = link.next_event() {
            part.event(event, link);
        }
        let is_over = part.turn(link, self.now) == Turn::Over;
        if !is_over || link.is_over() {
            let (due, is_parted) = (self.now + TRANSIT_NS, self.now < self.parted_until);
            link.turn(self.now, |bytes| {
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
    fn turn(&mut self, lanes: &FarLanes, dice: &mut Dice) {
        if self.sent < ORDERS && lanes.takes.is_up() && dice.roll(4) == 0 {
            let order = Order { quantity: 1, ..Order::new(OrderId::new(0, 0, self.sent), 0) };
            lanes.asks.push(Ask::Order(order)).unwrap();
            self.sent += 1;
        }
        while let Some(report) = lanes.reports.pop() {
            *self.ended.entry(report.id.sequence()).or_default() += u32::from(report.is_last);
        }
        if self.sent == ORDERS && self.ended.len() as u64 == ORDERS {
            lanes.ends.set(true);
        }
    }
}

/// What became of the orders, and how many came to the engine's side; or what is wrong.
fn world(seed: u64, weather: Weather, broken: Option<Broken>) -> Result<(Orders, u64), String> {
    let place = Place::alone(&format!("world-{seed}-{broken:?}").to_lowercase().replace(['(', ')'], ""))
        .map_err(|error| error.to_string())?;
    let far_lanes = FarLanes::default();
    let (mut far, mut far_link) = (Far::new(&far_lanes), Link::far(RUN, 1, TIMING));
    far.broken = broken;
    let (mut dice, mut book) = (Dice(seed), Book::default());
    let mut net = Net { now: 1, parted_until: 0, flying: Vec::new() };
    let (mut came, mut steps, mut epoch) = (0, 0, 0);
    'incarnations: loop {
        let lanes = Lanes::default();
        let past = place.past().and_then(Past::from_words).unwrap_or_default();
        let mut link = Link::engine(RUN, epoch, TIMING).remembering(past);
        let mut near = Near::new(&lanes, &place);
        let mut answers: Vec<(u64, Report, _)> = Vec::new();
        epoch += 1;
        loop {
            steps += 1;
            net.now += STEP_NS;
            if steps > MOST_STEPS {
                break 'incarnations;
            }
            if dice.roll(10_000) < weather.partitions {
                net.parted_until = net.now + dice.roll(3 * TIMING.silence_ns);
            }
            book.turn(&far_lanes, &mut dice);
            if net.turn(true, &mut far_link, &mut far) {
                break 'incarnations;
            }
            let is_over = net.turn(false, &mut link, &mut near);
            let mut is_gone = false;
            while let Some(told) = lanes.told.pop() {
                match told {
                    Told::Order(order, echo) => {
                        came += 1;
                        let due = net.now + dice.roll(30_000_000);
                        answers.push((due, Report::full_fill(&order), Some(echo)));
                    }
                    Told::Gone(_) => is_gone = true,
                    Told::Up | Told::Over => {}
                }
            }
            while let Some(at) = answers.iter().position(|(due, ..)| *due <= net.now) {
                let (_, report, echo) = answers.remove(at);
                lanes.reports.push((report, echo)).unwrap();
            }
            if lanes.far_ends.is_up() && answers.is_empty() {
                lanes.ends.set(true);
            }
            if is_gone || (is_over && !link.is_over()) || dice.roll(10_000) < weather.kills {
                continue 'incarnations;
            }
        }
    }
    far.give_up(&mut far_link);
    place.remove();
    let twice = book.ended.values().filter(|ends| **ends != 1).count();
    let orders = far.orders;
    let Orders { answered, lost, cut_off, unknown, refused, .. } = orders;
    match (twice, answered + lost + cut_off + unknown + refused) {
        (0, ORDERS) if book.ended.len() as u64 == ORDERS => {}
        all => return Err(format!("{all:?} of {}: {orders:?}", book.ended.len())),
    }
    // Of those that nobody knows of, each may have come.
    if (answered + cut_off..=answered + cut_off + unknown).contains(&came) {
        Ok((orders, came))
    } else {
        Err(format!("{came} came: {orders:?}"))
    }
}

const ROUGH: Weather = Weather { partitions: 30, kills: 0 };

#[test]
fn every_order_has_one_end_and_what_was_taken_had_come() {
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
