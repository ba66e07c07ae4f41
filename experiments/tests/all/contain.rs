//! `launcher contain`: the matrix in a small form, with real runs.

use crate::common::{CommandResult, entries, list, number, output, string};
use serde_json::Value;

fn contained(flags: &str) -> (CommandResult, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    (output(&format!("contain --json --idle park --orders 6k --out {} {flags}", out.path().display())), out)
}

/// A small matrix, and its folder.
fn contain(flags: &str) -> (Value, tempfile::TempDir) {
    let (made, out) = contained(flags);
    (serde_json::from_str(&made.succeeds()).unwrap(), out)
}

/// The rows of a small matrix in which the given faults were contained at `process`. A strategy
/// that waited may have been stalled by the machine.
fn rows_with_contained(flags: &str, faults: &[&str]) -> (Vec<Value>, tempfile::TempDir) {
    let (table, out) = contain(flags);
    assert_eq!(table["schema"], "bulkhead.contain/2");
    assert!(table["cost"]["protected_ns"].as_f64().unwrap() > 0.0);
    let rows = list(&table["rows"]).to_vec();
    for fault in faults {
        let contained = string(&row(&rows, "process", fault)["contained"]);
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
    let flags = "--technique spsc-mux --isolation thread,process --fault segv;scribble --window 800ms";
    let (rows, out) = rows_with_contained(flags, &faults);
    for fault in faults {
        let contained = row(&rows, "process", fault);
        assert_eq!(contained["lost_of_others"], 0, "{contained:#}");
        assert!(contained["repair_ns"].is_u64(), "{contained:#}");
        assert!(number(&contained["losses"]["lost"]) <= 1 || fault == "scribble", "{contained:#}");
    }
    // By what, depends on what it hits first.
    let scribbled = string(&row(&rows, "process", "scribble")["seen"]);
    assert!(scribbled.starts_with("quarantined: "), "{scribbled}");
    assert!(string(&row(&rows, "process", "segv")["seen"]).contains("SIGSEGV"));
    assert_eq!(row(&rows, "thread", "segv")["contained"], "no", "{rows:#?}");
    let folder = entries(out.path()).remove(0);
    for file in ["experiment.json", "rows.csv", "contain.md", "contain.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn push_death_is_contained_and_missing_fault_reported() {
    // Each strategy has 2,000 orders, so the last two never come.
    let faults = "kill@push:half-written:500;hang@push:claimed:500;kill@order:5000;kill:strategy-1@30m";
    let flags = format!("--technique array-queue --isolation process --fault {faults} --allow-unfired");
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
        let wanted = (&"nothing".into(), &"the fault never came".into());
        assert_eq!((&row["contained"], &row["seen"]), wanted, "{row:#}");
    }
    let folder = entries(out.path()).remove(0);
    let table = std::fs::read_to_string(folder.join("contain.md")).unwrap();
    assert!(table.contains("nothing"), "{table}");
}

#[test]
fn containment_test_whose_fault_never_fired_fails() {
    let flags = "--technique spsc-mux --isolation process --fault kill:strategy-1@30m";
    let result = contained(flags).0.fails(1, &["kill:strategy-1", "never fired", "due after"]);
    assert_eq!(result.json()["rows"][0]["contained"], "nothing");
}

#[test]
fn impossible_containment_test_is_usage_error() {
    for (flags, word) in [
        ("--isolation process --technique std-mpsc", "its twin over shared memory"),
        ("--work 0ns,500ns", "launcher sweep"),
        ("--fault explode", "explode"),
        ("--preset seed", "--preset"),
    ] {
        output(&format!("contain {flags}")).fails(2, &[word]);
    }
}

/// What a journal buys: without one the run ends with its exchange.
#[test]
fn exchange_restarts_only_with_journal() {
    // On a busy machine recovery takes most of a second: orders must be due after it, or none is
    // served.
    let flags = "--technique spsc-mux --isolation process --fault kill:exchange --window 3s";
    let (table, _) = contain(flags);
    let roles = list(&table["roles"]);
    let of = |journal: &str| roles.iter().find(|row| row["journal"] == journal).unwrap();
    assert_eq!((roles.len(), list(&table["rows"]).len()), (3, 0), "{roles:#?}");
    assert_eq!(of("none")["contained"], "no");
    assert!(number(&of("none")["lost"]) > 0, "{roles:#?}");
    for journal in ["process", "group"] {
        let row = of(journal);
        assert_eq!((&row["contained"], &row["lost"]), (&"yes".into(), &0.into()), "{row:#}");
        assert!(row["recover_ns"].is_u64() && row["served_ns"].is_u64(), "{row:#}");
    }
}

/// In a run that mixes levels a row has the level of the faulty strategy, and those of the others.
#[test]
fn mixed_levels_are_named_by_victim_and_others() {
    let flags = "--technique spsc-mux --isolation thread+process,process+thread --fault segv";
    let (table, out) = contain(&format!("{flags} --window 800ms --liveness 2s"));
    let rows = list(&table["rows"]);
    let of = |level: &str| rows.iter().find(|row| row["isolation"] == level).unwrap();
    let (thread, process) = (of("thread"), of("process"));
    assert_eq!(
        (list(&thread["others"]), list(&process["others"])),
        (&["process".into()][..], &["thread".into()][..])
    );
    assert_eq!(thread["contained"], "no", "a thread takes the engine with it: {thread:#}");
    assert!(["yes", "waited"].contains(&string(&process["contained"])), "{process:#}");
    assert_eq!(process["lost_of_others"], 0, "{process:#}");
    let folder = entries(out.path()).remove(0);
    for file in ["contain.md", "contain.csv", "report.html"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let is_named = |levels: &&str| text.contains(*levels);
        assert!(["process, others thread", "thread, others process"].iter().all(is_named), "{file}: {text}");
    }
}
