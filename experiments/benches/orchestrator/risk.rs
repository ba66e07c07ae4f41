//! The cost of each pre-trade control: `risk` prints a table, `risk --only ROW N` runs one row N
//! times for callgrind.
//!
//! Rows are alternated, so that what disturbs the machine disturbs all of them. A row's figure is
//! the median over its rounds of a round's mean: one check is shorter than a read of the clock.
#![forbid(unsafe_code)]

use benches::quantile;
use orchestrator::Positions;
use orchestrator::risk::{Risk, RiskSetup};
use protocol::instrument::Instrument;
use protocol::kill::Scope;
use protocol::limits::{LimitSetting, RiskControl};
use protocol::wire::{Order, OrderId, OrderRequest, Report, Side};
use std::hint::black_box;
use std::time::Instant;

const STRATEGIES: u16 = 8;
const INSTRUMENTS: u16 = 4;
const ORDERS: usize = 4_096;
const ROUNDS: usize = 401;
const GAP: u64 = 1_000;

/// The rows but "all", which has the controls of these: name, and the controls that are on.
const ROWS: [(&str, &[(RiskControl, u64)]); 12] = [
    ("off", &[]),
    ("off again", &[]),
    ("order volume", &[(RiskControl::MaxOrderVolume, 1 << 40)]),
    ("order value", &[(RiskControl::MaxOrderValue, 1 << 40)]),
    ("price collar", &[(RiskControl::PriceCollar, 1_000)]),
    ("message rate", &[(RiskControl::MessageRate, 1_000_000)]),
    ("execution throttle", &[(RiskControl::MaxExecutions, 1 << 30)]),
    ("duplicate", &[(RiskControl::DuplicateWindow, 100_000)]),
    ("position", &[(RiskControl::MaxPosition, 1 << 60)]),
    ("gross and net exposure", &[(RiskControl::GrossExposure, 1 << 60), (RiskControl::NetExposure, 1 << 60)]),
    (
        "credential's rate and open orders",
        &[(RiskControl::CredentialRate, 10_000_000), (RiskControl::CredentialOpenOrders, 1 << 30)],
    ),
    ("kill by rate", &[(RiskControl::KillMessageRate, 100_000_000)]),
];

struct Row {
    name: &'static str,
    risk: Risk,
    positions: Positions,
    now: u64,
}

fn rows() -> impl Iterator<Item = Row> {
    let all = ROWS.iter().flat_map(|(_, controls)| *controls).copied().collect();
    let rows = ROWS.iter().map(|(name, controls)| (*name, controls.to_vec()));
    rows.chain([("all", all)]).map(|(name, controls)| row(name, &controls))
}

fn row(name: &'static str, controls: &[(RiskControl, u64)]) -> Row {
    let instrument = Instrument { tick: 5, lot: 100, reference_price: 100_000, ..Instrument::default() };
    let instruments = vec![instrument; INSTRUMENTS.into()];
    let limit = |&(control, value): &_| LimitSetting { scope: Scope::All, control, value };
    let limits: Vec<LimitSetting> = controls.iter().map(limit).collect();
    let setup = RiskSetup {
        instruments: &instruments,
        limits: &limits,
        ..RiskSetup::open_orders(STRATEGIES.into(), 4, 1_024)
    };
    let risk = Risk::new(&setup).expect("the limits are in their ranges");
    let positions = Positions::new(STRATEGIES.into(), INSTRUMENTS.into(), 1_024);
    Row { name, risk, positions, now: 0 }
}

/// Orders of all strategies in all instruments, in no order that a branch predictor could learn,
/// none of which is refused.
fn orders() -> Vec<Order> {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    (0..ORDERS as u64)
        .map(|sequence| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let strategy = (state % u64::from(STRATEGIES)) as u16;
            OrderRequest {
                instrument: (state >> 8) as u16 % INSTRUMENTS,
                side: if state >> 20 & 1 == 0 { Side::Buy } else { Side::Sell },
                price: 100_000 + ((state >> 24) % 512) as i64 * 5,
                quantity: 100 * (1 + sequence),
                ..OrderRequest::to_venue((state >> 16) as u16 % 4)
            }
            .with_id(OrderId::new(strategy, 0, sequence))
        })
        .collect()
}

impl Row {
    /// Checks every order. Returns how many passed.
    fn check(&mut self, orders: &[Order]) -> usize {
        let mut passed = 0;
        for order in orders {
            self.now += GAP;
            // As the orchestrator does: the rate that kills is looked at for every message.
            let floods = self.risk.count_message(order.id.strategy(), self.now).is_some();
            let is_ok = self.risk.check(black_box(order), &self.positions, self.now).is_ok();
            passed += usize::from(!floods & is_ok);
        }
        passed
    }

    /// Sends every order and settles its one report.
    fn keep_books(&mut self, orders: &[Order]) {
        for order in orders {
            let strategy = order.id.strategy();
            let change = self.positions.send(black_box(order));
            self.risk.book(strategy, &change, 0, &self.positions);
            let report = Report::full_fill(order);
            if let Some(change) = self.positions.settle(black_box(&report), true) {
                self.risk.book(strategy, &change, report.price, &self.positions);
            }
        }
    }
}

fn nanoseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / ORDERS as f64
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let orders = orders();
    if let [only, name, rounds] = args.as_slice()
        && only == "--only"
    {
        let (mut row, mut passed) = (rows().find(|row| row.name == name).expect("a row of the table"), 0);
        let rounds: usize = rounds.parse().expect("a number of rounds");
        (0..rounds).for_each(|_| passed += row.check(&orders));
        println!("{name}: {} checks, {passed} passed", rounds * ORDERS);
        return;
    }
    let mut rows: Vec<Row> = rows().collect();
    for row in &mut rows {
        assert_eq!(row.check(&orders), ORDERS, "{}: nothing is refused", row.name);
    }
    let samples = benches::alternate(ROUNDS, &mut rows, |row| {
        let checked = nanoseconds(|| {
            black_box(row.check(&orders));
        });
        (checked, nanoseconds(|| row.keep_books(&orders)))
    });
    let samples = samples.into_iter().map(|samples| samples.into_iter().unzip());
    let mut samples: Vec<(Vec<f64>, Vec<f64>)> = samples.collect();
    println!("{ROUNDS} rounds of {ORDERS} orders, alternated; ns an order: median (10 % to 90 %)\n");
    println!("| control | check | beyond off | books |");
    println!("|---|--:|--:|--:|");
    let off = quantile(&mut samples[0].0, 0.5);
    for (row, (checks, books)) in rows.iter().zip(&mut samples) {
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| quantile(checks, share));
        let books = quantile(books, 0.5);
        println!(
            "| {} | {middle:.1} ({low:.1} to {high:.1}) | {:+.1} | {books:.1} |",
            row.name,
            middle - off
        );
    }
}
