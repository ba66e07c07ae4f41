//! Capacity by level: the highest rate at which p99 from due stays below a limit, searched in runs
//! of one level each.
//!
//! A search knows its answer up to a bracket, from the highest rate that was held to the lowest
//! that was not. So a ratio to threads is a range: its ends are those of both brackets.

use super::IsolationCosts;
use crate::experiment::{Axis, Experiment, RateSearch, SearchLimits};
use crate::stats::Estimate;
use protocol::plan::{Isolation, IsolationLevel};
use record::numbers::{duration, duration_or_dash, plain};
use serde::{Deserialize, Serialize};
use verdict::table::{Column, Grid};

/// The capacity of each isolation level (highest order rate within a latency limit, in orders a
/// second), and the search's settings, such as that limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The limits of the search: the bound on p99, and the first rate.
    pub limits: SearchLimits,
    /// The capacity of each level; empty until the search has begun.
    #[serde(default)]
    pub levels: Vec<LevelCapacity>,
}

/// The capacity search's result at one isolation level: the highest order rate within the latency
/// limit, in orders a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCapacity {
    /// Isolation level.
    pub level: IsolationLevel,
    /// The values of the conditions that vary; empty if none does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Whether this is the second search of the same threads, the A/A test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aa_test: bool,
    /// The highest rate below the latency limit, in orders a second; null if there is none, or not
    /// yet.
    pub held_per_s: Option<f64>,
    /// The lowest rate above it that exceeded the latency limit, in orders a second; null if none
    /// did.
    pub not_held_per_s: Option<f64>,
    /// p99 of `rt_venue` from due at the highest rate below the limit, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Number of tried rates.
    pub steps: usize,
    /// Why the search ended; empty until then.
    pub ended: String,
    /// Ratio of the level's capacity to that of threads at the same condition: the middle and the
    /// ends of its range. Null for those threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
}

impl Capacity {
    /// The name of the capacities among the figures of a bill, the experiment on isolation costs.
    pub const NAME: &'static str = "capacity";

    /// Returns the capacity search's plan and result saved in a bill (experiment on isolation
    /// costs); `None` if none was requested.
    pub fn from_bill(bill: &Experiment) -> Result<Option<Self>, String> {
        bill.figures.part(Self::NAME).map_err(|error| error.to_string())
    }

    /// Computes each isolation level's highest order rate within the latency limit, from the rows
    /// of the experiment that searched for it.
    pub fn from_search(search: &Experiment) -> Result<Self, String> {
        let limits = SearchLimits::from_experiment(search)?;
        let settings = search.settings();
        let capacity = |(found, setting): (RateSearch, &crate::experiment::Setting)| {
            let level =
                setting.values.get(&Axis::Isolation).and_then(|text| IsolationLevel::from_name(text))?;
            let others = setting.values.iter().filter(|(axis, _)| **axis != Axis::Isolation);
            let condition =
                others.map(|(axis, text)| format!("{axis} {text}")).collect::<Vec<_>>().join(", ");
            let held_per_s = found.highest_per_s;
            let best = found.steps.iter().find(|step| Some(step.rate_per_s) == held_per_s && step.held);
            let p99_ns = best.and_then(|step| step.bounded_ns(&limits));
            Some(LevelCapacity {
                level,
                condition,
                is_aa_test: setting.is_aa_test,
                held_per_s,
                not_held_per_s: found.lowest_failed_per_s(),
                p99_ns,
                steps: found.steps.len(),
                ended: found.ended,
                ratio: None,
            })
        };
        let mut levels: Vec<LevelCapacity> =
            RateSearch::all(search)?.into_iter().zip(&settings).filter_map(capacity).collect();
        let all = levels.clone();
        for own in &mut levels {
            let is_threads = |other: &&LevelCapacity| {
                other.level == Isolation::Thread && !other.is_aa_test && other.condition == own.condition
            };
            let threads = all.iter().find(is_threads);
            let is_them = own.level == Isolation::Thread && !own.is_aa_test;
            own.ratio = threads.filter(|_| !is_them).and_then(|threads| own.ratio_to(threads));
        }
        Ok(Self { limits, levels })
    }
}

impl LevelCapacity {
    /// Returns the ratio to another level's capacity; `None` unless both have a bracket.
    fn ratio_to(&self, other: &Self) -> Option<Estimate> {
        let (held, failed) = (self.held_per_s?, self.not_held_per_s?);
        let (other_held, other_failed) = (other.held_per_s?, other.not_held_per_s?);
        let value = (held * failed / (other_held * other_failed)).sqrt();
        Some(Estimate { value, low: held / other_failed, high: failed / other_held })
    }

    fn name(&self) -> String {
        let aa_test = if self.is_aa_test { "A/A" } else { "" };
        let parts: Vec<&str> =
            [&self.condition, aa_test].into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            self.level.to_string()
        } else {
            format!("{} ({})", self.level, parts.join(", "))
        }
    }
}

/// Returns the table of capacity by level, of a bill that was asked for it.
pub(super) fn table(bill: &IsolationCosts) -> Option<Grid> {
    let found = bill.capacity.as_ref().filter(|found| !found.levels.is_empty())?;
    let percentile = found.limits.percentile.name();
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".into(), plain);
    let title = format!(
        "Capacity: the highest orders/s with rt_venue from due {percentile} ≤ {}, in runs of a level alone",
        duration(found.limits.bound_ns)
    );
    let columns: [Column<'_, LevelCapacity>; 6] = [
        ("level", &|row| row.name()),
        ("highest held", &|row| row.held_per_s.map_or_else(|| "none".into(), plain)),
        ("lowest not held", &|row| rate(row.not_held_per_s)),
        (percentile, &|row| duration_or_dash(row.p99_ns)),
        ("of thread's", &|row| {
            let text = |of: Estimate| format!("{:.2} [{:.2}–{:.2}]", of.value, of.low, of.high);
            row.ratio.map_or_else(|| "–".into(), text)
        }),
        ("rates tried", &|row| row.steps.to_string()),
    ];
    let grid = Grid::from_rows("bill_capacity", title, 1, &columns, &found.levels)
        .note("a rate is held if most of its runs hold it: at least 99 % sent, and the limit; levels are tried in turn")
        .note("of thread's: the middle and the ends that both brackets allow, no interval");
    let open = found.levels.iter().filter(|level| level.ended.is_empty());
    let open = open.map(|level| format!("{}: the search is not complete", level.name()));
    Some(open.fold(grid, Grid::note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Kind, RateStep, Setting};
    use crate::fixture;
    use crate::stats::Percentile;

    /// A search on a machine that holds these rates with these levels, as far as its steps go.
    fn searched(limits: &[(&str, bool, f64)], max_steps: u32) -> Experiment {
        let setting = |(level, is_aa_test, _): &(&str, bool, f64)| Setting {
            name: format!("isolation={level}{}", if *is_aa_test { " A/A" } else { "" }),
            values: [(Axis::Isolation, (*level).to_owned())].into(),
            is_aa_test: *is_aa_test,
            ..Setting::default()
        };
        let settings: Vec<Setting> = limits.iter().map(setting).collect();
        let plan: Experiment = fixture("golden/experiment.json");
        let mut search = Experiment { kind: Kind::MaxRate, repeats: 1, ..plan };
        search.plan_rows(&settings);
        let bound = SearchLimits {
            bound_ns: 2_000_000,
            percentile: Percentile::P99,
            max_steps,
            first_per_s: 20_000.0,
            max_open: None,
        };
        search.figures.insert(SearchLimits::NAME, &bound);
        for ((_, _, limit), setting) in limits.iter().zip(&settings) {
            let mut steps: Vec<RateStep> = Vec::new();
            while let crate::experiment::NextStep::Try(rate) =
                crate::experiment::search::next_step(&steps, &bound)
            {
                let held = rate <= *limit;
                let step = RateStep {
                    rate_per_s: rate,
                    achieved_per_s: Some(rate),
                    p999_ns: None,
                    p99_ns: Some(if held { 900_000 } else { 9_000_000 }),
                    held,
                    runs_held: u32::from(held),
                    why: String::new(),
                    folders: Vec::new(),
                };
                search.add_step(&setting.name, &step);
                steps.push(step);
            }
        }
        search
    }

    #[test]
    fn planted_capacities_lie_in_their_brackets() {
        let planted =
            [("thread", false, 100_000.0), ("thread", true, 101_000.0), ("process", false, 70_000.0)];
        let found = Capacity::from_search(&searched(&planted, 12)).unwrap();
        for (level, (_, _, limit)) in found.levels.iter().zip(planted) {
            let (held, failed) = (level.held_per_s.unwrap(), level.not_held_per_s.unwrap());
            assert!(held <= limit && limit < failed && failed / held <= 1.05, "{level:?}");
            assert_eq!(level.p99_ns, Some(900_000));
        }
        let ratio = |at: usize| found.levels[at].ratio.unwrap();
        assert_eq!(found.levels[0].ratio, None);
        assert!(ratio(1).low <= 1.01 && 1.01 <= ratio(1).high, "{:?}", ratio(1));
        assert!(ratio(2).low <= 0.7 && 0.7 <= ratio(2).high && ratio(2).high < 0.8, "{:?}", ratio(2));
        let figures: Experiment = {
            let mut bill: Experiment = fixture("golden/experiment.json");
            bill.figures.insert(Capacity::NAME, &found);
            bill
        };
        assert_eq!(Capacity::from_bill(&figures).unwrap(), Some(found));
    }

    #[test]
    fn capacity_without_a_bracket_has_no_ratio() {
        let planted = [("thread", false, 100_000.0), ("process", false, 0.0)];
        let found = Capacity::from_search(&searched(&planted, 12)).unwrap();
        assert_eq!((found.levels[1].held_per_s, found.levels[1].ratio), (None, None));
        // A search that is over after two steps has held rates, and none that failed.
        let short = Capacity::from_search(&searched(&[("thread", false, 1e9)], 2)).unwrap();
        assert_eq!((short.levels[0].held_per_s, short.levels[0].not_held_per_s), (Some(40_000.0), None));
    }
}
