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
    assert_eq!(table["schema"], "bulkhead.contain/1");
    assert!(table["cost"]["protected_ns"].as_f64().unwrap() > 0.0);
    (table["rows"].as_array().unwrap().clone(), out)
}

fn row<'a>(rows: &'a [Value], isolation: &str, fault: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["isolation"] == isolation && row["fault"] == fault);
    found.unwrap_or_else(|| panic!("no row {isolation}/{fault}: {rows:#?}"))
}

#[test]
fn a_process_contains_what_takes_a_thread_s_process_down() {
    let (rows, out) =
        rows(&["--technique", "spsc-mux", "--isolation", "thread,process", "--fault", "kill;segv;scribble"]);
    for fault in ["kill", "segv", "scribble"] {
        let contained = row(&rows, "process", fault);
        assert_ne!(contained["contained"], "no", "{contained:#}");
        assert_eq!(contained["lost_of_others"], 0, "{contained:#}");
        assert!(contained["repair_ns"].as_u64().is_some(), "{contained:#}");
        assert!(contained["toll"]["lost"].as_u64().unwrap() <= 1 || fault == "scribble", "{contained:#}");
    }
    assert_eq!(row(&rows, "process", "scribble")["seen"], "quarantined: bad-cursor");
    assert!(row(&rows, "process", "segv")["seen"].as_str().unwrap().contains("SIGSEGV"));
    for fault in ["kill", "segv"] {
        assert_eq!(row(&rows, "thread", fault)["contained"], "no", "{rows:#?}");
    }
    let folder = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    for file in ["contain.json", "contain.md", "contain.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn a_death_in_the_middle_of_a_push_is_contained_in_a_shared_ring_too() {
    let (rows, _out) = rows(&[
        "--technique",
        "array-queue",
        "--isolation",
        "process",
        "--fault",
        "kill@push:half-written:500;hang@push:claimed:500",
    ]);
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_ne!(row["contained"], "no", "{row:#}");
        assert_eq!(
            (row["lost_of_others"].as_u64(), row["toll"]["lost"].as_u64()),
            (Some(0), Some(1)),
            "{row:#}"
        );
    }
}

#[test]
fn what_cannot_be_tried_is_a_usage_error() {
    for (flags, word) in [
        (&["--isolation", "process", "--technique", "std-mpsc"][..], "nothing to try"),
        (&["--work", "0ns,500ns"], "launcher sweep"),
        (&["--fault", "explode"], "explode"),
        (&["--preset", "seed"], "--preset"),
    ] {
        let made = output(&[&["contain"], flags].concat());
        assert_eq!(made.status.code(), Some(2), "{flags:?}: {}", text(&made.stderr));
        assert!(text(&made.stderr).contains(word), "{flags:?}: {}", text(&made.stderr));
    }
}
