//! The order of the runs of a sweep, chosen so that a drifting machine favors no setting.
//!
//! Repeat by repeat; within a repeat condition by condition; within a condition what is compared,
//! one after the other, beginning with another one in every repeat: A B C, B C A, C A B. So the two
//! runs of a pair are as near in time as can be, and none always runs first.

use analysis::experiment::{Axis, SweepPoint};

/// What the points of a group share.
type Condition = Vec<(Axis, String)>;

/// A run at its position in the order in which a sweep makes its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedRun {
    /// A condition in a repeat, from 0: the runs of a turn are compared with each other in pairs.
    pub turn: u32,
    pub repeat: u32,
    /// The index of its point.
    pub point: usize,
}

pub fn order(points: &[SweepPoint], repeats: u32) -> Vec<OrderedRun> {
    let mut groups: Vec<(Condition, Vec<usize>)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let condition = condition(point);
        match groups.iter_mut().find(|(other, _)| *other == condition) {
            Some((_, members)) => members.push(index),
            None => groups.push((condition, vec![index])),
        }
    }
    let turns = (0..repeats).flat_map(|repeat| groups.iter().map(move |(_, members)| (repeat, members)));
    let runs = (0..).zip(turns).flat_map(|(turn, (repeat, members))| {
        let (before, first) = members.split_at(repeat as usize % members.len());
        first.iter().chain(before).map(move |point| OrderedRun { turn, repeat, point: *point })
    });
    runs.collect()
}

fn condition(point: &SweepPoint) -> Condition {
    let shared = point.values.iter().filter(|(axis, _)| !axis.is_compared());
    shared.map(|(axis, text)| (*axis, text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(compared: usize, conditions: usize) -> Vec<SweepPoint> {
        let all = (0..conditions).flat_map(|work| (0..compared).map(move |capacity| (work, capacity)));
        all.map(|(work, capacity)| SweepPoint {
            name: format!("{work} {capacity}"),
            values: [(Axis::Work, work.to_string()), (Axis::Capacity, capacity.to_string())].into(),
            settings: Default::default(),
            runs: Vec::new(),
        })
        .collect()
    }

    #[test]
    fn compared_settings_alternate_and_rotate() {
        let runs: Vec<_> = order(&points(2, 2), 2).iter().map(|run| (run.turn, run.point)).collect();
        assert_eq!(runs, [(0, 0), (0, 1), (1, 2), (1, 3), (2, 1), (2, 0), (3, 3), (3, 2)]);
    }

    proptest! {
        #[test]
        fn every_run_is_made_once(compared in 1usize..6, conditions in 1usize..6, repeats in 1u32..8) {
            let runs = order(&points(compared, conditions), repeats);
            prop_assert!(runs.is_sorted_by_key(|run| (run.repeat, run.turn)));
            let mut runs: Vec<_> = runs.iter().map(|run| (run.repeat, run.point)).collect();
            runs.sort_unstable();
            runs.dedup();
            prop_assert_eq!(runs.len(), compared * conditions * repeats as usize);
        }
    }
}
