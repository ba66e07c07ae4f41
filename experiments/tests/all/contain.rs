//! `launcher contain`: the matrix in a small form, with real runs.

use crate::common::{entries, list, number, output, string};
use serde_json::Value;

/// A small matrix, and its folder.
fn contain(flags: &str) -> (Value, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let load = format!("--idle park --orders 3k --out {}", out.path().display());
    let made = output(&format!("contain --json {load} {flags}"));
    (serde_json::from_str(&made.succeeds()).unwrap(), out)
}

/// A strategy that waited may have been stalled by the machine.
fn assert_contained(row: &Value) {
    assert!(["yes", "waited"].contains(&string(&row["contained"])), "{row:#}");
}

fn row<'a>(rows: &'a [Value], isolation: &str, fault: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["isolation"] == isolation && row["fault"] == fault);
    found.unwrap_or_else(|| panic!("no row {isolation}/{fault}: {rows:#?}"))
}

/// At one level, and in runs that mix two: there a row has the level of the faulty strategy, and
/// those of the others.
#[test]
fn process_contains_faults_that_kill_threaded_run() {
    let levels = "thread,process,thread+process,process+thread";
    let flags = format!("--technique spsc-mux --isolation {levels} --fault segv --window 800ms");
    let (table, out) = contain(&format!("{flags} --liveness 2s"));
    assert_eq!(table["schema"], "bulkhead.contain/2");
    assert!(table["cost"]["protected_ns"].as_f64().unwrap() > 0.0);
    let rows = list(&table["rows"]);
    assert_eq!(rows.len(), 4, "{rows:#?}");
    for found in rows {
        if found["isolation"] == "thread" {
            assert_eq!(found["contained"], "no", "a thread takes the engine with it: {found:#}");
            continue;
        }
        assert_contained(found);
        assert_eq!(found["lost_of_others"], 0, "{found:#}");
        assert!(found["repair_ns"].is_u64() && number(&found["losses"]["lost"]) <= 1, "{found:#}");
        assert!(string(&found["seen"]).contains("SIGSEGV"), "{found:#}");
    }
    let others = |level: &str| -> Vec<Vec<Value>> {
        let of_level = rows.iter().filter(|row| row["isolation"] == level);
        of_level.filter_map(|row| row["others"].as_array().cloned()).collect()
    };
    assert!(others("thread").contains(&vec!["process".into()]), "{rows:#?}");
    assert!(others("process").contains(&vec!["thread".into()]), "{rows:#?}");
    let folder = entries(out.path()).remove(0);
    for file in ["experiment.json", "rows.csv", "contain.md", "contain.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    for file in ["contain.md", "contain.csv", "report.html"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let is_named = |levels: &&str| text.contains(*levels);
        assert!(["process, others thread", "thread, others process"].iter().all(is_named), "{file}: {text}");
    }
}

/// The engine's log, which has every order, is gone: the level did not contain that.
#[test]
fn overwritten_log_of_the_engine_is_a_result() {
    let flags = "--technique spsc-mux --isolation thread,process --fault wild-engine --window 800ms";
    let (table, out) = contain(&format!("{flags} --liveness 2s"));
    let rows = list(&table["rows"]);
    let destroyed = row(rows, "thread", "wild-engine");
    assert_eq!(destroyed["contained"], "no", "{destroyed:#}");
    assert!(string(&destroyed["seen"]).starts_with("engine.stamps: record 0"), "{destroyed:#}");
    assert!(destroyed["lost_of_others"].is_null(), "{destroyed:#}");
    assert_contained(row(rows, "process", "wild-engine"));
    // Saved as every other result: nothing is left to do.
    let folder = entries(out.path()).remove(0);
    let before = entries(&folder).len();
    output(&format!("resume {}", folder.display())).succeeds();
    assert_eq!(entries(&folder).len(), before, "no run is made again");
}

/// A thread reads what the process has mapped; a process must open it by its name, which a sandbox
/// refuses.
#[test]
fn reads_of_others_memory_tell_which_level_is_confidential() {
    let flags = "--technique spsc-mux --isolation thread,process,process*2,sandbox --fault read-others";
    let (table, _out) = contain(&format!("{flags} --window 800ms --liveness 2s"));
    let found: Vec<(&str, &str, bool)> = list(&table["confidentiality"])
        .iter()
        .map(|level| {
            let texts = (string(&level["isolation"]), string(&level["confidential"]));
            (texts.0, texts.1, level["is_tried"] == true)
        })
        .collect();
    let wanted = [
        ("thread", "no", true),
        ("process", "against-mistakes", true),
        ("process*2", "no", true),
        ("sandbox", "yes", true),
    ];
    assert_eq!(found, wanted, "{table:#}");
}

/// Another strategy's heap is in reach of a thread, and of one of the same group.
#[test]
fn wild_write_to_a_heap_stays_in_its_group() {
    let flags = "--technique spsc-mux --isolation thread,process*2 --strategies 4 --fault wild-heap";
    let (table, _out) = contain(&format!("{flags} --window 800ms --liveness 2s"));
    let rows = list(&table["rows"]);
    let hit = row(rows, "thread", "wild-heap");
    assert_eq!(hit["contained"], "no", "{hit:#}");
    assert!(string(&hit["seen"]).contains("another strategy has overwritten its heap"), "{hit:#}");
    assert_contained(row(rows, "process*2", "wild-heap"));
}

/// Also, what a journal buys: without one the run ends with its exchange.
#[test]
fn push_death_is_contained_and_missing_fault_reported() {
    // Each strategy has 1,000 orders, so the last two of these never come.
    let faults = "kill@push:half-written:500;hang@push:claimed:500;kill@order:5000;kill:strategy-1@30m";
    // On a busy machine recovery takes most of a second: orders must be due after it, or none is
    // served.
    let how = "--technique array-queue --isolation process --window 3s --allow-unfired";
    let (table, out) = contain(&format!("{how} --fault {faults};kill:exchange"));
    assert_exchange_restarts_only_with_journal(list(&table["roles"]));
    let rows = list(&table["rows"]);
    assert_eq!(rows.len(), 4);
    assert_contained(row(rows, "process", "kill in a push, half-written"));
    let hang = row(rows, "process", "hang in a push, claimed");
    assert_eq!(hang["contained"], "waited", "a hang on the next slot holds all others up: {hang:#}");
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

fn assert_exchange_restarts_only_with_journal(roles: &[Value]) {
    let of = |journal: &str| roles.iter().find(|row| row["journal"] == journal).unwrap();
    assert_eq!(roles.len(), 3, "{roles:#?}");
    assert_eq!(of("none")["contained"], "no");
    assert!(number(&of("none")["lost"]) > 0, "{roles:#?}");
    for journal in ["process", "group"] {
        let row = of(journal);
        assert_eq!((&row["contained"], &row["lost"]), (&"yes".into(), &0.into()), "{row:#}");
        assert!(row["recover_ns"].is_u64() && row["served_ns"].is_u64(), "{row:#}");
    }
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
