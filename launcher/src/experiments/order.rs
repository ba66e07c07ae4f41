//! In which order the runs of a sweep are made, so that a machine whose mood changes harms nobody in particular.
//!
//! Repeat by repeat; within a repeat condition by condition; within a condition what is compared, one after the other,
//! beginning with another one in every repeat: A B C, B C A, C A B. So the two runs of a pair are as near in time as
//! can be, and none always runs first.

use super::axes::Axis;
use analysis::experiment::SweepPoint;

/// What the points of a group share.
type Condition = Vec<(Axis, String)>;

/// Every run: repeat and index of the point.
pub(super) fn order(points: &[SweepPoint], repeats: u32) -> Vec<(u32, usize)> {
    let mut groups: Vec<(Condition, Vec<usize>)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let condition = condition(point);
        match groups.iter_mut().find(|(other, _)| *other == condition) {
            Some((_, members)) => members.push(index),
            None => groups.push((condition, vec![index])),
        }
    }
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        for (_, members) in &groups {
            let first = repeat as usize % members.len();
            runs.extend(members[first..].iter().chain(&members[..first]).map(|point| (repeat, *point)));
        }
    }
    runs
}

/// The turn of each of those runs: a condition in a repeat. The runs of a turn are compared with each other in pairs.
pub(super) fn turns(points: &[SweepPoint], runs: &[(u32, usize)]) -> Vec<u32> {
    let mut turn = 0;
    let mut turns = Vec::with_capacity(runs.len());
    let key = |(repeat, point): &(u32, usize)| (*repeat, condition(&points[*point]));
    for (place, run) in runs.iter().enumerate() {
        turn += u32::from(place > 0 && key(&runs[place - 1]) != key(run));
        turns.push(turn);
    }
    turns
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
    fn what_is_compared_alternates_and_takes_turns_to_be_first() {
        let runs: Vec<usize> = order(&points(2, 2), 2).into_iter().map(|(_, point)| point).collect();
        assert_eq!(runs, [0, 1, 2, 3, 1, 0, 3, 2]);
        assert_eq!(turns(&points(2, 2), &order(&points(2, 2), 2)), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    proptest! {
        #[test]
        fn every_run_is_made_once(compared in 1usize..6, conditions in 1usize..6, repeats in 1u32..8) {
            let mut runs = order(&points(compared, conditions), repeats);
            prop_assert!(runs.is_sorted_by_key(|(repeat, _)| *repeat));
            runs.sort_unstable();
            runs.dedup();
            prop_assert_eq!(runs.len(), compared * conditions * repeats as usize);
        }
    }
}
