//! Synthetic runs with a latency tail, and their pages.

use super::dom::check_alone;
use crate::fixture::{Fixture, RT_VENUE, Shape, scatter};
use protocol::stamps::Point;
use protocol::wire::OrderId;
use std::path::Path;
use tempfile::TempDir;

/// A run of one strategy whose reports are late, most by little, a few by far. Orders never
/// overlap, so that a late one delays no other.
pub fn tailed(orders: u64) -> Fixture {
    let mut fixture = Fixture::new(Shape { strategies: 1, orders, period: 1_000_000, ..Shape::PLAIN });
    let strategy = fixture.thread("strategy-0");
    for record in &mut fixture.logs[strategy] {
        if record.point == Point::StrategyRecv {
            record.value += lateness(record.id);
        }
    }
    fixture
}

/// Returns the lateness of an order's report, in ticks: one in 1,000 is 1,000 times as late.
pub fn lateness(id: OrderId) -> u64 {
    let draw = scatter(id.sequence()) % 100_000 + 1;
    RT_VENUE / 2 * (100_000 / draw).min(800)
}

pub fn page(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join("report.html")).unwrap()
}

/// Saves a page for inspection: `BULKHEAD_PAGES=FOLDER cargo test -p analysis html::`.
pub fn keep(name: &str, html: &str) {
    if let Some(pages) = std::env::var_os("BULKHEAD_PAGES") {
        std::fs::write(Path::new(&pages).join(name), html).unwrap();
    }
}

/// Writes the page of a folder and checks that it is self-contained.
pub fn written(folder: &Path) -> String {
    let file = folder.join("report.html");
    analysis::html::write(folder, &file).unwrap();
    let html = std::fs::read_to_string(file).unwrap();
    check_alone(&html);
    html
}
