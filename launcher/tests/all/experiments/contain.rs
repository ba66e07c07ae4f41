//! `launcher contain`: the matrix in a small form, with real runs.

use crate::common::{command, output, text};
use serde_json::Value;

/// The rows of a small matrix.
fn rows(flags: &[&str]) -> (Vec<Value>, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let made =
        command(&["contain", "--json", "--out", out.path().to_str().unwrap()]).args(flags).output().unwrap();
    assert!(made.status.success(), "{flags:?}: {}{}", text(&made.stdout), text(&made.stderr));
    let table: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(table["schema"], "bulkhead.contain/2");
    assert!(table["cost"]["protected_ns"].as_f64().unwrap() > 0.0);
    (table["rows"].as_array().unwrap().clone(), out)
}

/// The rows of a small matrix in which the given faults were contained at `process`. A strategy
/// that waited may have been stalled by the machine.
fn rows_with_contained(flags: &[&str], faults: &[&str]) -> (Vec<Value>, tempfile::TempDir) {
    let (rows, out) = rows(flags);
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
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let (rows, out) = rows_with_contained(&flags, &faults);
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
    let folder = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    for file in ["contain.json", "contain.md", "contain.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn push_death_is_contained_and_missing_fault_reported() {
    // Each strategy has 2,000 orders, so the last two never come.
    let faults = "kill@push:half-written:500;hang@push:claimed:500;kill@order:5000;kill:strategy-1@30m";
    let flags = ["--technique", "array-queue", "--isolation", "process", "--fault", faults, "--idle", "park"];
    let (rows, out) = rows_with_contained(&flags, &["kill in a push, half-written"]);
    assert_eq!(rows.len(), 4);
    let hang = row(&rows, "process", "hang in a push, claimed");
    assert_eq!(
        hang["contained"], "waited",
        "who hangs on a place that is next holds all others up: {hang:#}"
    );
    for row in &rows[..2] {
        assert_eq!(
            (row["lost_of_others"].as_u64(), row["losses"]["lost"].as_u64()),
            (Some(0), Some(1)),
            "{row:#}"
        );
    }
    for row in &rows[2..] {
        assert_eq!(
            (&row["contained"], &row["seen"]),
            (&"nothing".into(), &"the fault never came".into()),
            "{row:#}"
        );
    }
    let folder = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    let table = std::fs::read_to_string(folder.join("contain.md")).unwrap();
    assert!(table.contains("nothing"), "{table}");
}

#[test]
fn impossible_containment_test_is_usage_error() {
    for (flags, word) in [
        (&["--isolation", "process", "--technique", "std-mpsc"][..], "its twin over shared memory"),
        (&["--work", "0ns,500ns"], "launcher sweep"),
        (&["--fault", "explode"], "explode"),
        (&["--preset", "seed"], "--preset"),
    ] {
        let made = output(&[&["contain"], flags].concat());
        assert_eq!(made.status.code(), Some(2), "{flags:?}: {}", text(&made.stderr));
        assert!(text(&made.stderr).contains(word), "{flags:?}: {}", text(&made.stderr));
    }
}

/// What a journal buys: without one the run ends with its exchange.
#[test]
fn exchange_restarts_only_with_journal() {
    let out = tempfile::tempdir().unwrap();
    let flags =
        ["--technique", "spsc-mux", "--isolation", "process", "--fault", "kill:exchange", "--idle", "park"];
    let made =
        command(&["contain", "--json", "--out", out.path().to_str().unwrap()]).args(flags).output().unwrap();
    assert!(made.status.success(), "{}{}", text(&made.stdout), text(&made.stderr));
    let table: Value = serde_json::from_slice(&made.stdout).unwrap();
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
