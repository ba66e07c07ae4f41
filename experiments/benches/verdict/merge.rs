//! Benchmark of the merge: a synthetic run of 4 million orders is merged, checked and measured.
//!
//! `cargo bench -p benches --bench merge [-- MILLIONS_OF_ORDERS]`; the folder is created in the
//! temporary directory.
#![allow(missing_docs)]

#[path = "../../../verdict/tests/all/fixture/mod.rs"]
mod fixture;

use fixture::{Fixture, Shape};
use merge::figures::Figures;
use protocol::plan::Threading;
use std::time::Instant;

fn main() {
    let argument = std::env::args().skip(1).find_map(|argument| argument.parse::<f64>().ok());
    let orders = (argument.unwrap_or(4.0) * 1e6) as u64;
    for threading in [Threading::Dedicated, Threading::Shared] {
        // Delays of 5 to 15 ms at 1 M orders/s: about 10,000 orders are open at a time.
        let shape = Shape {
            strategies: 8,
            venues: if threading == Threading::Shared { 1 } else { 4 },
            orders: orders / 8,
            threading,
            period: 2_000,
            delay: 10_000_000,
            ..Shape::PLAIN
        };
        let fixture = Fixture::new(shape);
        let (record, folder) = (fixture.record.clone(), fixture.write());
        drop(fixture);
        for _ in 0..3 {
            let start = Instant::now();
            let merged = merge::merge(folder.path(), &record, |_, _| {}).expect("an honest run");
            let joined = start.elapsed().as_secs_f64();
            let figures = Figures::measure(&merged, record.plan.isolation, record.clock.ns_per_tick);
            let all = start.elapsed().as_secs_f64();
            assert!(merged.violations.is_empty(), "{:?}", merged.violations);
            assert_eq!(merged.orders.returned, orders / 8 * 8);
            std::hint::black_box(figures);
            let resident = resident_bytes();
            let rate = |seconds: f64| merged.records as f64 / seconds / 1e6;
            println!(
                "{threading}: {} stamps, join and checks {joined:.2} s = {:.1} M/s, with histograms {all:.2} s = {:.1} M/s, \
                 {:.0} resident bytes an order",
                merged.records,
                rate(joined),
                rate(all),
                resident / merged.orders.sent as f64
            );
        }
    }
}

/// Returns the resident memory of the process (`VmRSS`), in bytes.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1024.0
}
