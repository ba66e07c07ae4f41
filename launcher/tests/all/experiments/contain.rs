//! `launcher contain`: the matrix in a small form, with real runs.

use super::{done, only};
use crate::common::command;
use serde_json::Value;
use tempfile::TempDir;

/// The document of a small matrix, and the folder of its results.
fn table(flags: &str) -> (Value, TempDir) {
    let out = tempfile::tempdir().unwrap();
    let mut contain = command(&["contain", "--json", "--out", out.path().to_str().unwrap()]);
    let table: Value = serde_json::from_str(&done(contain.args(flags.split_whitespace()))).unwrap();
    assert_eq!(table["schema"], "bulkhead.contain/2");
    assert!(table["cost"]["protected_ns"].as_f64().unwrap() > 0.0);
    (table, out)
}

/// The rows of a small matrix in which the given faults were contained at `process`. A strategy
/// that waited may have been stalled by the machine.
fn rows_with_contained(flags: &str, faults: &[&str]) -> (Vec<Value>, TempDir) {
    let (table, out) = table(flags);
    let rows = table["rows"].as_array().unwrap().clone();
    for fault in faults {
        let contained = row(&rows, "process", fault)["contained"].as_str().unwrap();
        assert!(["yes", "waited"].contains(&contained), "{rows:#?}");
    }
    (rows, out)
}

fn row<'a>(rows: &'a [Value], isolation: &str, fault: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["isolation"] == isolation && row["fault"] == fault);
    found.unwrap_or_else(|| panic!("no row {isolation}/{fault}: {rows:#?}"))
}

#[test]
fn process_contains_faults_that_kill_threaded_run() {
    let faults = ["segv", "scribble"];
    let flags =
        "--technique spsc-mux --isolation thread,process --fault segv;scribble --idle park --window 800ms";
    let (rows, out) = rows_with_contained(flags, &faults);
    for fault in faults {
        let contained = row(&rows, "process", fault);
        assert_eq!(contained["lost_of_others"], 0, "{contained:#}");
        assert!(contained["repair_ns"].as_u64().is_some(), "{contained:#}");
        assert!(contained["losses"]["lost"].as_u64().unwrap() <= 1 || fault == "scribble", "{contained:#}");
    }
    // By what, depends on what it hits first.
    let scribbled = row(&rows, "process", "scribble")["seen"].as_str().unwrap();
    assert!(scribbled.starts_with("quarantined: "), "{scribbled}");
    assert!(row(&rows, "process", "segv")["seen"].as_str().unwrap().contains("SIGSEGV"));
    assert_eq!(row(&rows, "thread", "segv")["contained"], "no", "{rows:#?}");
    let folder = only(&out);
    for file in ["contain.json", "contain.md", "contain.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn push_death_is_contained_and_missing_fault_reported() {
    // Each strategy has 2,000 orders, so the last two never come.
    let faults = "kill@push:half-written:500;hang@push:claimed:500;kill@order:5000;kill:strategy-1@30m";
    let flags = format!("--technique array-queue --isolation process --fault {faults} --idle park");
    let (rows, out) = rows_with_contained(&flags, &["kill in a push, half-written"]);
    assert_eq!(rows.len(), 4);
    let hang = row(&rows, "process", "hang in a push, claimed");
    assert_eq!(
        hang["contained"], "waited",
        "who hangs on a place that is next holds all others up: {hang:#}"
    );
    for row in &rows[..2] {
        assert_eq!((&row["lost_of_others"], &row["losses"]["lost"]), (&0.into(), &1.into()), "{row:#}");
    }
    for row in &rows[2..] {
        assert!(row["contained"] == "nothing" && row["seen"] == "the fault never came", "{row:#}");
    }
    let table = std::fs::read_to_string(only(&out).join("contain.md")).unwrap();
    assert!(table.contains("nothing"), "{table}");
}

/// What a journal buys: without one the run ends with its exchange.
#[test]
fn exchange_restarts_only_with_journal() {
    let (table, _out) = table("--technique spsc-mux --isolation process --fault kill:exchange --idle park");
    let roles = table["roles"].as_array().unwrap();
    let of = |journal: &str| roles.iter().find(|row| row["journal"] == journal).unwrap();
    assert_eq!((roles.len(), table["rows"].as_array().unwrap().len()), (3, 0), "{roles:#?}");
    assert_eq!(of("none")["contained"], "no");
    assert!(of("none")["lost"].as_u64().unwrap() > 0, "{roles:#?}");
    for journal in ["process", "group"] {
        let row = of(journal);
        assert_eq!((&row["contained"], &row["lost"]), (&"yes".into(), &0.into()), "{row:#}");
        assert!(row["recover_ns"].is_u64() && row["served_ns"].is_u64(), "{row:#}");
    }
}
