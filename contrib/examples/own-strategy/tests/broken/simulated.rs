//! Simulated runs of the broken rings.

use crate::rings::DEFECTS;
use crate::{launcher, text};

pub fn the_good_rings_hold(ring: &str) {
    let found = launcher(&format!("simulate --seeds 40 --technique {ring}"), None);
    assert!(found.status.success(), "{ring}: {}", text(&found.stderr));
}

pub fn each_broken_ring_is_found_and_replays(ring: &str) {
    for defect in DEFECTS {
        let simulate = |words: &str| launcher(words, Some(defect));
        let found = simulate(&format!("simulate --seeds 80 --technique {ring}"));
        let stderr = text(&found.stderr);
        assert_eq!(found.status.code(), Some(1), "{ring} {defect}: {stderr}");
        let again = stderr.lines().find_map(|line| line.trim().strip_prefix("replay: ")).unwrap();
        let (_, words) = again.split_once(' ').unwrap();
        let (once, twice) = (simulate(words), simulate(words));
        assert_eq!((once.status.code(), &once.stdout), (Some(1), &twice.stdout), "{again}");
        assert!(stderr.contains(text(&once.stderr).trim()), "{stderr}\n{}", text(&once.stderr));
        println!("{ring} {defect}: {stderr}");
    }
}
