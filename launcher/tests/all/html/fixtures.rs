//! Folders of made-up runs with a tail, evaluated.

use super::fixture::{Fixture, RT_VENUE, Shape, scatter};
use analysis::summary::Summary;
use launcher::runtime::progress::Progress;
use launcher::runtime::run::evaluate;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use tempfile::TempDir;

/// A run of one strategy whose reports come late, most by little, a few by far. Orders never overlap, so that a late
/// one holds up no other.
pub fn tailed(orders: u64) -> Fixture {
    let mut fixture = Fixture::new(Shape { strategies: 1, orders, period: 1_000_000, ..Shape::default() });
    let strategy = fixture.thread("strategy-0");
    for record in &mut fixture.logs[strategy] {
        if record.point == Point::StrategyRecv {
            record.value += lateness(record.id);
        }
    }
    fixture
}

/// How late an order's report is made, in ticks: 1,000 times as late for one in 1,000.
pub fn lateness(id: OrderId) -> u64 {
    let draw = scatter(id.sequence()) % 100_000 + 1;
    RT_VENUE / 2 * (100_000 / draw).min(800)
}

/// Writes the folder and everything that belongs into it.
pub fn evaluated(fixture: &Fixture) -> (TempDir, Summary) {
    let folder = fixture.write();
    let summary = evaluate(folder.path(), &fixture.record, &Progress::new(false)).unwrap();
    (folder, summary)
}

/// The page in a folder.
pub fn page(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join("report.html")).unwrap()
}
