//! The rows of the bench `published-journal`, run once with small loads: what was written and read,
//! never how long it took.

#[path = "../../journal/published/rows/mod.rs"]
mod catalog;

use crate::harness;
use harness::report::{Row, table};
use harness::subject::Counts;
use std::collections::BTreeMap;

/// Loads are as many times smaller than the document's.
const DIVISOR: usize = 10;

fn counts() -> BTreeMap<&'static str, Counts> {
    let groups = catalog::groups(DIVISOR);
    groups.into_iter().map(|mut group| (group.figures[0].name, group.subject.count())).collect()
}

#[test]
fn each_row_of_the_log_writes_its_records() {
    let counts = counts();
    for (row, records) in [
        ("wal/encode_new_order", 1_000),
        ("wal/encode+crc_10k", 1_000),
        ("wal/mixed_encode+crc_10k", 1_000),
        ("wal/append_new_order", 1_000),
        ("wal/append_synced_by_256", 256),
    ] {
        assert_eq!(counts[row]["records"], records, "{row}");
    }
    assert_eq!(counts["wal/append_synced_by_256"]["durable"], 256);
}

#[test]
fn snapshots_hold_and_restore_all_orders() {
    let counts = counts();
    for row in
        ["snapshot/all_resting_orders_10k", "snapshot/full_cycle_10k", "snapshot/serialize_six_fields_10k"]
    {
        assert_eq!(counts[row]["orders"], 1_000, "{row}");
    }
    assert!(counts["snapshot/bincode_serialize_10k"]["bytes"] > 10_000);
    for row in [
        "snapshot/serialize_six_fields_10k",
        "snapshot/bincode_deserialize_10k",
        "snapshot/restore_from_orders_10k",
    ] {
        assert_eq!(counts[row]["equal"], 1, "{row}");
    }
    // As many cancels as new orders.
    let expected = Counts::from([("records", 1_000), ("orders", 1_000)]);
    assert_eq!(counts["recovery/snapshot+10k_records"], expected);
}

#[test]
fn table_of_the_journal_fits_eighty_columns() {
    let mut groups = catalog::groups(100);
    let samples = harness::measure(&mut groups, 1);
    let rows: Vec<Row> = groups
        .into_iter()
        .zip(samples)
        .flat_map(|(group, samples)| group.figures.into_iter().zip(samples))
        .map(|(figure, samples)| Row::new(figure, samples))
        .collect();
    assert_eq!(rows.len(), 12);
    for line in table(&rows) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
