//! Core placements: runs with similar core-to-core round trips share a placement.
//!
//! A virtual machine moves its cores between runs: they may be neighbors now and far apart a minute
//! later, which doubles every hand-off. Differences between runs of different placements are not
//! caused by their settings. The same holds for different hosts: each host has its own placements.

use super::outline::{MachineKey, RunOutline};
use crate::grouping::distinct;

/// Maximum relative difference of core-to-core round trips (0.25 is 25 %) within one core
/// placement.
pub const CORE_RTT_TOLERANCE: f64 = 0.25;

/// Returns `true` if the core-to-core round trip changed by more than 25 % during the run: the
/// hypervisor moved the cores.
pub fn has_moved(run: &RunOutline) -> bool {
    matches!((run.core_rtt_ns, run.core_rtt_after_ns), (Some(before), Some(after)) if differs(before, after))
}

/// Groups runs by similar core-to-core round trip, and returns each run's group number, 0 for the
/// closest cores. Runs without a known round trip (a single core) have placement 0.
pub fn placements(runs: &[&RunOutline]) -> Vec<usize> {
    let mut floors: Vec<f64> = runs.iter().filter_map(|run| core_rtt(run)).collect();
    floors.sort_by(f64::total_cmp);
    let edges: Vec<f64> =
        floors.windows(2).filter(|pair| differs(pair[0], pair[1])).map(|pair| pair[1]).collect();
    let placement_of = |run: &&RunOutline| {
        core_rtt(run).map_or(0, |rtt| edges.iter().take_while(|edge| rtt >= **edge).count())
    };
    runs.iter().map(placement_of).collect()
}

/// Returns a number for each run that identifies its host and core placement: runs with equal
/// numbers are comparable.
pub fn host_placements(runs: &[&RunOutline]) -> Vec<usize> {
    let mut host_placement_of_run = vec![0; runs.len()];
    let mut next = 0;
    for host in hosts(runs) {
        let runs_on_host: Vec<usize> =
            (0..runs.len()).filter(|index| runs[*index].machine == *host).collect();
        let placements_on_host =
            placements(&runs_on_host.iter().map(|index| runs[*index]).collect::<Vec<_>>());
        runs_on_host
            .iter()
            .zip(&placements_on_host)
            .for_each(|(index, placement)| host_placement_of_run[*index] = next + placement);
        next += placements_on_host.iter().max().map_or(0, |highest| highest + 1);
    }
    host_placement_of_run
}

/// Returns the hosts on which runs were made, each once, in order of appearance.
pub fn hosts<'a>(runs: &[&'a RunOutline]) -> Vec<&'a MachineKey> {
    distinct(runs.iter().map(|run| &run.machine))
}

/// Returns the run's core-to-core round trip in nanoseconds: the mean of those before and after it,
/// or the only known one.
pub fn core_rtt(run: &RunOutline) -> Option<f64> {
    match (run.core_rtt_ns, run.core_rtt_after_ns) {
        (Some(before), Some(after)) => Some(f64::midpoint(before, after)),
        (before, after) => before.or(after),
    }
}

fn differs(a: f64, b: f64) -> bool {
    a.max(b) > a.min(b) * (1.0 + CORE_RTT_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::run;
    use super::*;

    fn with_core_rtt(before: Option<f64>, after: Option<f64>) -> RunOutline {
        RunOutline { core_rtt_ns: before, core_rtt_after_ns: after, ..run(0, 1.0) }
    }

    #[test]
    fn similar_round_trips_share_a_placement() {
        let runs = [Some(310.0), Some(45.0), None, Some(341.0), Some(41.0), Some(290.0), Some(900.0)]
            .map(|before| with_core_rtt(before, None));
        assert_eq!(placements(&runs.each_ref()), [1, 0, 0, 1, 0, 1, 2]);
        assert_eq!(placements(&[]), [0; 0]);
    }

    #[test]
    fn placements_of_hosts_are_distinct() {
        let on = |host: &str, rtt: f64| {
            let mut run = with_core_rtt(Some(rtt), None);
            run.machine.hostname = host.into();
            run
        };
        let runs = [on("a", 300.0), on("b", 300.0), on("a", 45.0), on("b", 310.0), on("c", 45.0)];
        assert_eq!(host_placements(&runs.each_ref()), [1, 2, 0, 2, 3]);
        let runs = [on("a", 300.0), on("a", 45.0)];
        assert_eq!(host_placements(&runs.each_ref()), placements(&runs.each_ref()), "one host");
    }

    #[test]
    fn moved_run_is_detected_by_its_round_trips() {
        assert!(has_moved(&with_core_rtt(Some(45.0), Some(310.0))));
        assert!(has_moved(&with_core_rtt(Some(310.0), Some(45.0))));
        assert!(!has_moved(&with_core_rtt(Some(45.0), Some(48.0))));
        assert!(!has_moved(&with_core_rtt(Some(45.0), None)));
    }
}
