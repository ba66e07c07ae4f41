//! The load generator: a million orders through ring, book and report, each timed.

use super::super::harness::subject::{Counts, Figure, Group, Subject, Unit};
use super::book::{QUANTITY, order};
use super::end_to_end::Pipeline;
use exchange::Side;
use hdrhistogram::Histogram;
use std::time::Instant;

/// Prices over which the orders are spread.
const PRICES: u64 = 50;
const FIRST_PRICE: i64 = 10_000;
/// One order in this many warms up.
const WARMUP: u64 = 100;
const MAX_NS: u64 = 1_000_000_000;
const REMARK: &str = "from an order's pop to its encoded report, with two looks at the clock; the order is \
                      popped before. Their clock advances in steps of 100 ns. 1 M offers rest at 50 prices; \
                      1 M bids at these prices trade or rest; the first 10,000 warm up";

pub fn group(scaled: impl Fn(u64) -> u64) -> Group {
    let latency = |name, theirs| Figure::new(name, theirs, Unit::Nanoseconds, REMARK);
    let maximum = "median of the maxima of all runs, each of 990,000 orders; theirs of one run";
    let rate = "of the same runs, with the looks at the clock and the histogram";
    let allocations = "on the heap, while the orders are measured; theirs are nodes of its BTreeMap";
    let figures = vec![
        latency("loadgen/p50", 100.0),
        latency("loadgen/p90", 200.0),
        latency("loadgen/p99", 500.0),
        latency("loadgen/p99.9", 800.0),
        Figure::new("loadgen/max", 38.0, Unit::Microseconds, maximum),
        latency("loadgen/mean", 151.0),
        Figure::new("loadgen/throughput", 4.7, Unit::MillionPerSecond, rate),
        Figure::new("loadgen/allocations", 6.0, Unit::Allocations, allocations),
    ];
    Group { figures, subject: Box::new(Load { orders: scaled(1_000_000) }) }
}

struct Load {
    orders: u64,
}

impl Load {
    /// Runs the load. Returns the pipeline after it, and the figures.
    fn run(&self) -> (Pipeline, Vec<f64>) {
        let mut pipeline = Pipeline::new(self.orders, self.orders.next_power_of_two());
        let price = |n: u64| FIRST_PRICE + (n % PRICES) as i64;
        for n in 0..self.orders {
            pipeline.book.add(n + 1, Side::Sell, price(n), QUANTITY);
            pipeline.push(order(self.orders + n + 1, Side::Buy, price(n), QUANTITY));
        }
        for _ in 0..self.orders / WARMUP {
            pipeline.step();
        }
        let mut times = Histogram::<u64>::new_with_bounds(1, MAX_NS, 3).expect("valid bounds");
        let allocations = system::alloc::allocations();
        let started = Instant::now();
        while let Ok(Some(message)) = pipeline.consumer.try_pop() {
            let start = Instant::now();
            pipeline.apply(message);
            times.saturating_record(start.elapsed().as_nanos() as u64);
        }
        let elapsed_s = started.elapsed().as_secs_f64();
        let allocations = system::alloc::allocations() - allocations;
        let at = |quantile| times.value_at_quantile(quantile) as f64;
        let figures = vec![
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            times.max() as f64 / 1e3,
            times.mean(),
            times.len() as f64 / elapsed_s / 1e6,
            allocations as f64,
        ];
        (pipeline, figures)
    }
}

impl Subject for Load {
    fn sample(&mut self) -> Vec<f64> {
        self.run().1
    }

    fn count(&mut self) -> Counts {
        let (pipeline, figures) = self.run();
        let mut counts = pipeline.counts();
        counts.insert("allocations", figures[7] as u64);
        counts
    }
}
