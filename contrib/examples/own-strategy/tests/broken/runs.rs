//! Real runs of the broken rings: processes that are killed and restarted.

use crate::rings::DEFECTS;
use crate::{launcher, text};
use serde_json::Value;

const LOAD: &str = "--strategies 3 --venues 2 --orders 6000 --window 1s --delay uniform:1ms..5ms --idle park";
const KILLS: &str = "--on-death restart --fault kill:any@100ms_every_50ms";

/// The summary of such a run, whatever its content.
fn run(technique: &str, faults: &str, defect: Option<&str>) -> Value {
    let found = launcher(&format!("run --json --out OUT --technique {technique} {LOAD} {faults}"), defect);
    serde_json::from_slice(&found.stdout)
        .unwrap_or_else(|error| panic!("{technique}: {error}: {}", text(&found.stderr)))
}

/// Kinds of violations that it names.
fn kinds(summary: &Value) -> Vec<&str> {
    let violations = summary["violations"].as_array().unwrap().iter();
    violations.map(|violation| violation["kind"].as_str().unwrap()).collect()
}

pub fn the_good_rings_are_valid(ring: &str) {
    let summary = run(ring, KILLS, None);
    assert_eq!(summary["valid"], true, "{ring}: {:#}", summary["violations"]);
    assert_eq!(summary["outcome"]["ended"], "complete", "{ring}");
    let kills = summary["incidents"].as_array().unwrap().len();
    assert!(kills > 5, "{ring}: {kills} kills");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{ring}");
}

/// The kinds of finding that detect each defect. In a ring for each producer the engine blames the
/// strategy, and the merge reports that it need not be the culprit.
const FOUND_BY: [(&str, &[&str]); 4] = [
    ("doubles", &["duplicate", "peer-faults"]),
    ("drops", &["lost", "peer-faults"]),
    ("reorders", &["completion-order", "peer-faults"]),
    ("tears", &["checksum"]),
];

pub fn each_broken_ring_is_found(ring: &str) {
    for (defect, kinds_of_it) in FOUND_BY {
        let summary = run(ring, KILLS, Some(defect));
        assert_eq!(summary["valid"], false, "{ring} that {defect}: not found");
        let found = kinds(&summary);
        println!(
            "{ring} that {defect}: {found:?}, {} incidents",
            summary["incidents"].as_array().unwrap().len()
        );
        assert!(
            kinds_of_it.iter().any(|kind| found.contains(kind)),
            "{ring} that {defect}: {:#}",
            summary["violations"]
        );
    }
    assert_eq!(FOUND_BY.map(|(defect, _)| defect), DEFECTS);
}

/// Nothing passes the message that the dead producer has abandoned.
pub fn a_ring_that_forgets_the_dead_is_found(ring: &str) {
    let kill = "--on-death restart --fault kill:strategy-1@push:half-written:100";
    let summary = run(ring, kill, None);
    let outcome = &summary["outcome"];
    assert_eq!((&summary["valid"], &outcome["ended"]), (&false.into(), &"failed".into()), "{outcome:#}");
    let what = outcome["what"].as_str().unwrap();
    assert!(what.contains("ring-damaged") || what.contains("never written"), "{what}");
    let good = run("array-queue", kill, None);
    assert_eq!((&good["valid"], &good["outcome"]["ended"]), (&true.into(), &"complete".into()));
}
