//! Core placements: runs with similar core-to-core round trips share a placement.
//!
//! A virtual machine moves its cores between runs: they may be neighbors now and far apart a minute
//! later, which doubles every hand-off. Differences between runs of different placements say
//! nothing about their settings. The same holds for different hosts: each host has its own
//! placements.

use super::outline::{MachineKey, Outline};

/// Maximum relative difference of core-to-core round trips within one placement.
pub const FLOOR_TOLERANCE: f64 = 0.25;

/// Returns `true` if the placement changed during the run, so that its figures belong to neither.
pub fn moved(run: &Outline) -> bool {
    matches!((run.floor_ns, run.floor_after_ns), (Some(before), Some(after)) if apart(before, after))
}

/// Returns the placement of each run, numbered from the closest cores on. Runs without a known
/// round trip share placement 0 with the closest: if it cannot be measured (one core) there is one
/// placement.
pub fn placements(runs: &[&Outline]) -> Vec<usize> {
    let mut floors: Vec<f64> = runs.iter().filter_map(|run| floor(run)).collect();
    floors.sort_by(f64::total_cmp);
    let edges: Vec<f64> =
        floors.windows(2).filter(|pair| apart(pair[0], pair[1])).map(|pair| pair[1]).collect();
    let of = |run: &&Outline| {
        floor(run).map_or(0, |floor| edges.iter().take_while(|edge| floor >= **edge).count())
    };
    runs.iter().map(of).collect()
}

/// Returns a number for the host and placement of each run. Runs with equal numbers are comparable;
/// numbers increase by host, in order of appearance.
pub fn places(runs: &[&Outline]) -> Vec<usize> {
    let mut found = vec![0; runs.len()];
    let mut next = 0;
    for host in hosts(runs) {
        let here: Vec<usize> = (0..runs.len()).filter(|place| runs[*place].machine == *host).collect();
        let own = placements(&here.iter().map(|place| runs[*place]).collect::<Vec<_>>());
        here.iter().zip(&own).for_each(|(place, own)| found[*place] = next + own);
        next += own.iter().max().map_or(0, |highest| highest + 1);
    }
    found
}

/// Returns the hosts of the runs, each once, in order of appearance.
pub fn hosts<'a>(runs: &[&'a Outline]) -> Vec<&'a MachineKey> {
    let mut hosts: Vec<&MachineKey> = Vec::new();
    for run in runs {
        if !hosts.contains(&&run.machine) {
            hosts.push(&run.machine);
        }
    }
    hosts
}

/// Returns the run's core-to-core round trip in nanoseconds: the mean of before and after if both
/// are known.
pub fn floor(run: &Outline) -> Option<f64> {
    match (run.floor_ns, run.floor_after_ns) {
        (Some(before), Some(after)) => Some(f64::midpoint(before, after)),
        (before, after) => before.or(after),
    }
}

fn apart(a: f64, b: f64) -> bool {
    a.max(b) > a.min(b) * (1.0 + FLOOR_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::run;
    use super::*;

    fn with_floor(before: Option<f64>, after: Option<f64>) -> Outline {
        Outline { floor_ns: before, floor_after_ns: after, ..run(0, 1.0) }
    }

    #[test]
    fn similar_round_trips_share_a_placement() {
        let runs = [Some(310.0), Some(45.0), None, Some(341.0), Some(41.0), Some(290.0), Some(900.0)]
            .map(|before| with_floor(before, None));
        assert_eq!(placements(&runs.each_ref()), [1, 0, 0, 1, 0, 1, 2]);
        assert_eq!(placements(&[]), [0; 0]);
    }

    #[test]
    fn placements_of_hosts_are_distinct() {
        let on = |host: &str, floor: f64| {
            let mut run = with_floor(Some(floor), None);
            run.machine.hostname = host.into();
            run
        };
        let runs = [on("a", 300.0), on("b", 300.0), on("a", 45.0), on("b", 310.0), on("c", 45.0)];
        assert_eq!(places(&runs.each_ref()), [1, 2, 0, 2, 3]);
        let runs = [on("a", 300.0), on("a", 45.0)];
        assert_eq!(places(&runs.each_ref()), placements(&runs.each_ref()), "one host");
    }

    #[test]
    fn moved_run_is_detected_by_its_round_trips() {
        assert!(moved(&with_floor(Some(45.0), Some(310.0))));
        assert!(moved(&with_floor(Some(310.0), Some(45.0))));
        assert!(!moved(&with_floor(Some(45.0), Some(48.0))));
        assert!(!moved(&with_floor(Some(45.0), None)));
    }
}
