//! The order of an experiment's runs, chosen so that a drifting machine favors no setting.
//!
//! Repeat by repeat; within a repeat condition by condition; within a condition what is compared,
//! one after the other, beginning with another one in every repeat: A B C, B C A, C A B. So the two
//! runs of a pair are as near in time as can be, and none always runs first.

use super::record::{Experiment, Row, Setting};
use super::{Axis, AxisRecord};
use crate::grouping::{distinct, grouped};
use std::collections::BTreeMap;
use std::ops::Range;

/// Returns the rows of an experiment for a range of repeats of these settings, in the order in
/// which their runs are to be made. `seed` is the random seed of repeat 0; each later repeat has
/// the next one.
pub fn ordered_rows(settings: &[Setting], repeats: Range<u32>, seed: u64) -> Vec<Row> {
    let groups = grouped(settings.iter().map(|setting| (condition(setting), setting)));
    let turns = repeats.flat_map(|repeat| groups.iter().map(move |(_, members)| (repeat, members)));
    let rows = turns.flat_map(|(repeat, members)| {
        let (before, first) = members.split_at(repeat as usize % members.len());
        first.iter().chain(before).map(move |setting| Row {
            setting: (*setting).clone(),
            repeat,
            seed: seed.wrapping_add(repeat.into()),
            ..Row::default()
        })
    });
    rows.collect()
}

impl Experiment {
    /// Replaces the experiment's rows by planned runs of these settings, each with the experiment's
    /// number of repeats.
    pub fn plan_rows(&mut self, settings: &[Setting]) {
        let first = settings.first().map(|setting| setting.settings.clone()).unwrap_or_default();
        let is_shared =
            |key: &str, text: &String| settings.iter().all(|one| one.settings.get(key) == Some(text));
        self.base = first.into_iter().filter(|(key, text)| is_shared(key, text)).collect();
        let mut own = settings.to_vec();
        own.iter_mut().for_each(|one| one.settings.retain(|key, _| !self.base.contains_key(key)));
        self.rows = ordered_rows(&own, 0..self.repeats, self.seed);
    }

    /// Replaces the experiment's rows by planned runs of combinations that each name all their
    /// settings, with a number of repeats for each. Records the settings' values on `axes`.
    pub fn plan_rows_along(&mut self, axes: &[Axis], settings: &[(Setting, u32)]) {
        let values = |axis: &Axis| {
            let values = distinct(settings.iter().filter_map(|(one, _)| one.values.get(axis).cloned()));
            (!values.is_empty()).then_some(AxisRecord { axis: *axis, values })
        };
        self.axes = axes.iter().filter_map(values).collect();
        let all: Vec<Setting> = settings.iter().map(|(one, _)| one.clone()).collect();
        let most: BTreeMap<&str, u32> =
            settings.iter().map(|(one, most)| (one.name.as_str(), *most)).collect();
        let repeats = most.values().copied().max().unwrap_or(0);
        self.rows = ordered_rows(&all, 0..repeats, self.seed);
        self.rows.retain(|row| most.get(row.setting.name.as_str()).is_some_and(|most| row.repeat < *most));
    }

    /// Adds planned runs of these settings, as many repeats as the experiment has, numbered after
    /// all earlier repeats. The settings have only texts of their own, without those that all rows
    /// share. They are paired with each other.
    pub fn plan_more_rows(&mut self, settings: &[Setting]) {
        let first = self.rows.iter().map(|row| row.repeat + 1).max().unwrap_or(0);
        self.rows.extend(ordered_rows(settings, first..first.saturating_add(self.repeats), self.seed));
    }

    /// Plans more repeats of every setting of the experiment.
    pub fn add_repeats(&mut self, more: u32) {
        let repeats = self.repeats..self.repeats.saturating_add(more);
        self.repeats = repeats.end;
        let settings = self.settings();
        self.rows.extend(ordered_rows(&settings, repeats, self.seed));
    }
}

/// Returns each row's turn number, from 0: a turn is consecutive rows of one repeat that differ
/// only in the compared settings. The runs of a turn are compared in pairs.
pub fn turn_of_rows(rows: &[Row]) -> Vec<u32> {
    let is_next = |(a, b): (&Row, &Row)| {
        u32::from((a.repeat, condition(&a.setting)) != (b.repeat, condition(&b.setting)))
    };
    let steps = rows.iter().zip(rows.iter().skip(1)).map(is_next);
    let mut turn = 0;
    let rest = steps.map(move |step| {
        turn += step;
        turn
    });
    (!rows.is_empty()).then_some(0).into_iter().chain(rest).collect()
}

/// What the settings of a group share.
fn condition(setting: &Setting) -> Vec<(Axis, &str)> {
    let shared = setting.values.iter().filter(|(axis, _)| !axis.is_compared());
    shared.map(|(axis, text)| (*axis, text.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(compared: usize, conditions: usize) -> Vec<Setting> {
        let all = (0..conditions).flat_map(|work| (0..compared).map(move |capacity| (work, capacity)));
        all.map(|(work, capacity)| Setting {
            name: format!("{}", work * compared + capacity),
            values: [(Axis::Work, work.to_string()), (Axis::Capacity, capacity.to_string())].into(),
            ..Setting::default()
        })
        .collect()
    }

    #[test]
    fn compared_settings_alternate_and_rotate() {
        let rows = ordered_rows(&settings(2, 2), 0..2, 7);
        let names: Vec<&str> = rows.iter().map(|row| row.setting.name.as_str()).collect();
        assert_eq!(names, ["0", "1", "2", "3", "1", "0", "3", "2"]);
        assert_eq!(turn_of_rows(&rows), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!([rows[3].seed, rows[4].seed], [7, 8], "a repeat has one seed");
        assert_eq!(turn_of_rows(&[]), Vec::<u32>::new());
    }

    proptest! {
        #[test]
        fn every_run_is_made_once(compared in 1usize..6, conditions in 1usize..6, repeats in 1u32..8) {
            let rows = ordered_rows(&settings(compared, conditions), 0..repeats, 0);
            prop_assert!(rows.is_sorted_by_key(|row| row.repeat) && turn_of_rows(&rows).is_sorted());
            let mut runs: Vec<_> = rows.iter().map(|row| (row.repeat, row.setting.name.clone())).collect();
            runs.sort_unstable();
            runs.dedup();
            prop_assert_eq!(runs.len(), compared * conditions * repeats as usize);
        }
    }
}
