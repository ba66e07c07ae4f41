//! `launcher disturb`: real runs in a small form. Counts and refusals only: no time is asserted.

use crate::common::{Launcher, entries, list, number, output, string};
use serde_json::Value;
use std::path::Path;

/// Orders of a run, of three strategies.
const ORDERS: u64 = 900;

/// The rows of a small matrix, and its folder.
fn disturb(flags: &str) -> (Vec<Value>, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let load = format!("--orders {ORDERS} --window 300ms --venues 1 --repeats 1");
    let made = output(&format!("disturb --json {load} --out {} {flags}", out.path().display()));
    let found: Value = serde_json::from_str(&made.succeeds()).unwrap();
    assert_eq!(found["schema"], "bulkhead.disturb/1");
    (list(&found["rows"]).to_vec(), out)
}

fn row<'a>(rows: &'a [Value], isolation: &str, kind: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["isolation"] == isolation && row["kind"] == kind);
    found.unwrap_or_else(|| panic!("no row {isolation}/{kind}: {rows:#?}"))
}

#[test]
fn each_disturbance_is_done_and_only_others_are_counted() {
    let kinds = ["fork-storm", "map-storm", "alloc-storm", "fault-storm", "signal-storm", "io-storm"];
    let more = ["syscall-storm", "thrash", "squat-core"];
    let (rows, out) = disturb("--isolation thread,process");
    for level in ["thread", "process"] {
        for kind in ["calm"].iter().chain(&kinds).chain(&more) {
            let row = row(&rows, level, kind);
            assert!(row["steps"].as_f64().unwrap() > 0.0, "{row:#}");
            assert_eq!(number(&row["runs"]), 1, "complete and valid: {row:#}");
            // Two thirds of the orders, less those of the warm-up.
            assert!((1..=ORDERS * 2 / 3).contains(&number(&row["orders"])), "{row:#}");
        }
    }
    let folder = entries(out.path()).remove(0);
    for file in ["experiment.json", "rows.csv", "disturb.md", "disturb_full.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn sandbox_refuses_what_it_does_not_allow() {
    let Some(_) = Launcher::sandboxed() else { return };
    let (rows, _out) = disturb("--isolation sandbox --fault fork-storm;io-storm;squat-core;map-storm");
    for kind in ["fork-storm", "io-storm", "squat-core"] {
        assert_eq!(string(&row(&rows, "sandbox", kind)["refused"]), "exit 41", "{rows:#?}");
    }
    let map_storm = row(&rows, "sandbox", "map-storm");
    assert!(map_storm["refused"].is_null() && map_storm["steps"].as_f64().unwrap() > 10.0, "{map_storm:#}");
}

#[test]
fn container_keeps_a_strategy_on_its_cores() {
    let Some(_) = Launcher::contained() else { return };
    if !Path::new("/sys/fs/cgroup/cpuset").is_dir() {
        return eprintln!("SKIPPED: no controller cpuset");
    }
    let (rows, _out) = disturb("--isolation container --fault squat-core");
    assert_eq!(string(&row(&rows, "container", "squat-core")["refused"]), "exit 41", "{rows:#?}");
}

#[test]
fn others_survive_death_and_containment_table_says_so() {
    let (rows, out) = disturb("--isolation process --fault segv@100ms;hang@100ms --liveness 100ms");
    for kind in ["segv", "hang"] {
        let row = row(&rows, "process", kind);
        assert_eq!(list(&row["outcomes"]).iter().map(number).sum::<u64>(), 1, "{row:#}");
        assert_eq!(
            number(&row["outcomes"][2]) + number(&row["outcomes"][3]),
            0,
            "it came, and stayed: {row:#}"
        );
        assert!((1..=ORDERS * 2 / 3).contains(&number(&row["orders"])), "the others' only: {row:#}");
        assert!(row["gaps"]["classes"].is_array(), "{row:#}");
    }
    let folder = entries(out.path()).remove(0);
    let load = "--isolation process --technique spsc-mux --orders 900 --window 300ms --venues 1";
    let contain = format!("contain --json {load} --fault segv@100ms --disturb {}", folder.display());
    let table: Value = serde_json::from_str(&output(&contain).succeeds()).unwrap();
    let row = &table["rows"][0];
    assert_eq!(string(&row["contained"]), "yes", "{row:#}");
    // One pair of runs decides nothing, and is said to.
    assert!(string(&row["undisturbed"]).starts_with("cannot tell"), "{row:#}");
    let wrong = output(&format!("contain {load} --disturb {}", out.path().display()));
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn fault_of_another_role_is_refused() {
    let refused = output("disturb --fault kill:engine --isolation process");
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
