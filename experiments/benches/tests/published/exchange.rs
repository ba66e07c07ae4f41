//! The rows of the bench `published-exchange`, run once with small loads: what happened to the
//! orders, never how long it took.

#[path = "../../exchange/published/catalog/mod.rs"]
mod catalog;

use crate::harness;
use harness::arguments::{Arguments, Options, help, parse};
use harness::report::{Row, table};
use harness::subject::{Counts, Figure, Unit};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Loads are as many times smaller than the document's.
const DIVISOR: u64 = 100;

/// Counts of a run of each row.
static COUNTS: LazyLock<BTreeMap<&'static str, Counts>> = LazyLock::new(|| {
    let groups = catalog::groups(DIVISOR);
    groups.into_iter().map(|mut group| (group.figures[0].name, group.subject.count())).collect()
});

#[test]
fn orders_of_each_row_are_conserved() {
    let mut rows = 0;
    for (name, counts) in &*COUNTS {
        let Some(sent) = counts.get("sent quantity") else { continue };
        rows += 1;
        let accounted = 2 * counts["traded"] + counts["cancelled quantity"] + counts["open quantity"];
        assert_eq!(*sent, accounted, "{name}: {counts:?}");
        assert_eq!(counts.get("reports").unwrap_or(&counts["trades"]), &counts["trades"], "{name}");
    }
    assert_eq!(rows, 18);
}

#[test]
fn rows_do_what_their_names_say() {
    let counts = &*COUNTS;
    let of = |row: &str, what: [&str; 5]| what.map(|what| counts[row][what]);
    let main = ["accepted", "rejected", "trades", "cancelled", "open"];
    for (row, expected) in [
        ("cancel_all/100", [10, 0, 0, 10, 0]),
        ("cancel_all/5000", [50, 0, 0, 50, 0]),
        ("cancel_middle_of_1k", [10, 0, 0, 1, 9]),
        ("cancel_best_level/1000", [10, 0, 0, 10, 0]),
        ("match/full_fill_1k", [20, 0, 10, 0, 0]),
        ("match/multi_level_sweep", [101, 0, 50, 0, 50]),
        ("insert/non_crossing/10000", [100, 0, 0, 0, 100]),
        ("mixed_workload_10k", [80, 0, 20, 20, 20]),
        ("e2e/crossing_orders/10k", [200, 0, 100, 0, 0]),
        ("e2e/mixed_100k", [800, 0, 200, 200, 200]),
        ("e2e/avg_crossing_100k", [2_000, 0, 1_000, 0, 0]),
        ("loadgen/p50", [20_000, 0, 6_394, 0, 7_212]),
    ] {
        assert_eq!(of(row, main), expected, "{row}: {main:?}");
    }
}

#[test]
fn load_allocates_nothing_and_rings_lose_nothing() {
    let counts = &*COUNTS;
    assert!(system::alloc::is_counted());
    assert_eq!(counts["loadgen/p50"]["allocations"], 0);
    let sum: u64 = (0..10_000).sum();
    for row in ["u64 / 1M: SPSC ring", "Order (48B) / 1M: SPSC ring", "push_pop_alternating"] {
        assert!(counts[row].values().all(|&found| found == sum), "{row}: {:?}", counts[row]);
    }
    assert!(counts["memory: arena of 1,024 orders"]["bytes"] > 64 << 10);
}

#[test]
fn each_figure_has_a_sample_a_round() {
    let mut groups = catalog::groups(1_000);
    let samples = harness::measure(&mut groups, 2);
    assert_eq!(samples.len(), groups.len());
    assert!(samples.iter().flatten().all(|samples| samples.len() == 2));
}

#[test]
fn arguments_name_rows_or_are_refused() {
    let parsed = |arguments: &[&str]| {
        parse(arguments.iter().map(|word| word.to_string()), &["cancel_all/100", "cancel_all/1000"])
    };
    let names = |arguments: &[&str]| arguments.iter().map(|word| word.to_string()).collect();
    let exact = Options { names: names(&["cancel_all/100"]), json: None, rounds: 31 };
    assert_eq!(parsed(&["cancel_all/100"]), Ok(Arguments::Run(exact)));
    let options = Options {
        names: names(&["cancel_all/100", "cancel_all/1000"]),
        json: Some("x.json".into()),
        rounds: 3,
    };
    assert_eq!(
        parsed(&["--bench", "cancel", "--json", "x.json", "--rounds", "3"]),
        Ok(Arguments::Run(options))
    );
    assert_eq!(parsed(&["--help", "--wrong"]), Ok(Arguments::Help));
    for wrong in [&["--wrong"][..], &["--json"], &["--rounds"], &["--rounds", "0"], &["insert"]] {
        assert!(parsed(wrong).is_err(), "{wrong:?}");
    }
    assert!(help("published-exchange", &["memory"]).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn verdicts_follow_the_better_direction() {
    let verdict =
        |theirs: f64, ours: f64, unit| Row::new(Figure::new("row", theirs, unit, ""), vec![ours]).verdict();
    assert_eq!(verdict(100.0, 94.0, Unit::Nanoseconds), "ahead");
    assert_eq!(verdict(100.0, 104.0, Unit::Nanoseconds), "equal");
    assert_eq!(verdict(100.0, 106.0, Unit::Nanoseconds), "behind");
    assert_eq!(verdict(4.7, 5.0, Unit::MillionPerSecond), "ahead");
    assert_eq!(verdict(8.8, 8.0, Unit::Times), "behind");
    assert_eq!(verdict(6.0, 0.0, Unit::Allocations), "ahead");
}

#[test]
fn table_fits_eighty_columns() {
    let figures = catalog::groups(1_000).into_iter().flat_map(|group| group.figures);
    let rows: Vec<Row> = figures.map(|figure| Row::new(figure, vec![998.7; 3])).collect();
    for line in table(&rows) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
