//! Where the machine had its cores: runs whose core-to-core floor is alike belong to one placement.
//!
//! A virtual machine moves its cores about between runs: neighbours now, far apart a minute later, and every hand-off
//! takes twice as long. What two runs of unlike placement differ by says nothing about their settings.

use super::outline::Outline;

/// Floors that lie no further apart than this share belong to one placement.
pub const FLOOR_TOLERANCE: f64 = 0.25;

/// Whether the placement changed while the run was going on: its figures are of neither.
pub fn moved(run: &Outline) -> bool {
    matches!((run.floor_ns, run.floor_after_ns), (Some(before), Some(after)) if apart(before, after))
}

/// The placement of each run, counted from the nearest cores on. Runs whose floor is not known share placement 0 with
/// the nearest: where no floor can be measured (one core) there is one placement.
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

/// The run's floor: the mean of before and after where both are known.
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
    fn floors_that_are_alike_are_one_placement() {
        let runs = [Some(310.0), Some(45.0), None, Some(341.0), Some(41.0), Some(290.0), Some(900.0)]
            .map(|before| with_floor(before, None));
        assert_eq!(placements(&runs.each_ref()), [1, 0, 0, 1, 0, 1, 2]);
        assert_eq!(placements(&[]), [0; 0]);
    }

    #[test]
    fn a_run_that_was_moved_is_told_by_its_two_floors() {
        assert!(moved(&with_floor(Some(45.0), Some(310.0))));
        assert!(moved(&with_floor(Some(310.0), Some(45.0))));
        assert!(!moved(&with_floor(Some(45.0), Some(48.0))));
        assert!(!moved(&with_floor(Some(45.0), None)));
    }
}
