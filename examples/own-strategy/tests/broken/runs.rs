//! What real runs say to them: processes under kills, with restarts.

use crate::rings::{DEFECTS, NEGLECTS, RINGS};
use crate::{launcher, text};
use serde_json::Value;

const LOAD: &str = "--strategies 3 --venues 2 --orders 6000 --window 1s --delay uniform:1ms..5ms";
const KILLS: &str = "--on-death restart --fault kill:any@100ms_every_50ms";

fn run(technique: &str, defect: Option<&str>) -> Value {
    let found =
        launcher(&format!("run --json --out OUT --technique {technique} {LOAD} {KILLS}"), defect);
    serde_json::from_slice(&found.stdout)
        .unwrap_or_else(|error| panic!("{technique}: {error}: {}", text(&found.stderr)))
}

pub fn the_good_rings_are_valid() {
    for ring in RINGS {
        let summary = run(ring, None);
        println!("{ring}: {} {:#}", summary["valid"], summary["violations"]);
    }
}

pub fn each_broken_ring_is_found() {
    for ring in RINGS {
        for defect in DEFECTS {
            let summary = run(ring, Some(defect));
            println!("{ring}-{defect}: {} {:#}\n{:#}\n{:#}", summary["valid"], summary["violations"], summary["outcome"], summary["incidents"].as_array().map(Vec::len).unwrap());
        }
    }
}

pub fn a_ring_that_neglects_the_dead_is_found() {
    let summary = run(NEGLECTS, None);
    println!("{NEGLECTS}: {} {:#}\n{:#}\n{:#}", summary["valid"], summary["violations"], summary["outcome"], summary["incidents"].as_array().map(Vec::len).unwrap());
}
