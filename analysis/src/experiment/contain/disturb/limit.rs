//! Searches for each level the heaviest storm that leaves the other strategies undisturbed: a
//! bisection over the rate of a disturbance's steps.
//!
//! Each rate is compared with calm runs of its own, which take turns with it. All levels take turns
//! too, rate by rate. The rows are the whole state, so a search can be resumed.

use super::{Disturbance, Disturbances, Effect, Key};
use crate::experiment::runs::ExperimentRuns;
use crate::experiment::search::{Bisection, BisectionBounds, bisect};
use crate::experiment::{Axis, Experiment, Setting};
use protocol::plan::{FaultKind, IsolationLevels, Technique};
use record::numbers::plain;
use record::units::Nanos;
use serde::{Deserialize, Serialize};

/// The time from one step of a disturbance (such as a started process) to the next, in nanoseconds,
/// that a limit search tries first.
pub const FIRST_EVERY: Nanos = Nanos(500_000);
/// The rates that are tried: from some twenty steps in a window of a second to one between almost
/// every two duty cycles.
const RATES_PER_S: [f64; 2] = [20.0, 100_000.0];
/// Ratio of two rates that ends a search.
const CLOSE_ENOUGH: f64 = 1.5;
/// A storm that does less than this share of its rate does what it can.
const MIN_DONE_SHARE: f64 = 0.5;
const S: f64 = 1e9;

/// The settings of a search for the lowest rate of a disturbance's steps (such as started
/// processes) that affects other strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormSearch {
    /// Maximum number of rates tried at each level.
    pub max_steps: u32,
}

impl StormSearch {
    /// The name of the storm search's settings among the figures of an experiment.
    pub const NAME: &'static str = "storm_search";

    /// Returns the conditions of a search; `None` if the experiment is none.
    pub(super) fn from_experiment(experiment: &Experiment) -> Result<Option<Self>, String> {
        experiment.figures.part(Self::NAME).map_err(|error| error.to_string())
    }
}

/// The result of a search for the highest rate of a disturbance that leaves other strategies
/// undisturbed, at one isolation level. Rates are steps a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StormLimit {
    /// The isolation levels of the run's strategies.
    pub isolation: IsolationLevels,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// The kind of disturbance.
    pub kind: FaultKind,
    /// The tried step rates, in order.
    pub tried: Vec<TriedStorm>,
    /// The highest rate in steps a second at which the others were undisturbed, below every rate
    /// that disturbed them.
    pub undisturbed_per_s: Option<f64>,
    /// The lowest rate in steps a second at which the others were disturbed.
    pub disturbed_per_s: Option<f64>,
    /// Why the search ended; empty during the search.
    pub ended: String,
}

/// A rate of a disturbance's steps, in steps a second, that a limit search tried, with the effect
/// on other strategies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedStorm {
    /// The requested rate, in steps a second.
    pub per_s: f64,
    /// The achieved rate in steps a second, a median over the runs.
    pub done_per_s: Option<f64>,
    /// The concluded effect on the others.
    pub effect: Effect,
}

/// What a search does next.
#[derive(Clone, Debug, PartialEq)]
enum NextStorm {
    Try(f64),
    Done(String),
}

/// Returns what to do after these rates.
fn next_storm(tried: &[TriedStorm], max_steps: u32) -> NextStorm {
    if let Some(refused) =
        tried.iter().find(|storm| matches!(storm.effect, Effect::Refused | Effect::NotTried))
    {
        let what = if refused.effect == Effect::Refused { "refused" } else { "not tried: no step was done" };
        return NextStorm::Done(what.into());
    }
    let is_all_it_can = |storm: &&TriedStorm| {
        let done = storm.done_per_s.unwrap_or(storm.per_s);
        storm.effect == Effect::Undisturbed && done < MIN_DONE_SHARE * storm.per_s
    };
    if let Some(done) = tried.iter().find(is_all_it_can).and_then(|storm| storm.done_per_s) {
        return NextStorm::Done(format!("it does no more than {}/s", plain(done)));
    }
    let held: Vec<(f64, bool)> =
        tried.iter().map(|storm| (storm.per_s, storm.effect == Effect::Undisturbed)).collect();
    let [min, max] = RATES_PER_S;
    let bounds = BisectionBounds {
        first: S / FIRST_EVERY.0 as f64,
        min,
        max,
        up: 4.0,
        down: 4.0,
        close_enough: CLOSE_ENOUGH,
        max_steps,
    };
    match bisect(&held, &bounds) {
        Bisection::Try(rate) => NextStorm::Try(rate),
        Bisection::NoneHeld(rate) => NextStorm::Done(format!("not undisturbed even at {}/s", plain(rate))),
        Bisection::AllHeld(_) => NextStorm::Done("the highest rate tried".into()),
        Bisection::Found(..) => NextStorm::Done(format!("within a factor of {CLOSE_ENOUGH}")),
        Bisection::OutOfSteps(_) => NextStorm::Done(format!("after all {max_steps} steps")),
    }
}

impl StormLimit {
    fn new(rows: &[&Disturbance], search: StormSearch) -> Self {
        let first = rows[0];
        let tried: Vec<TriedStorm> = rows.iter().filter_map(|row| row.tried()).collect();
        let rates = |wanted: Effect| {
            tried.iter().filter(move |storm| storm.effect == wanted).map(|storm| storm.per_s)
        };
        let highest = rates(Effect::Undisturbed).reduce(f64::max);
        let ended = match next_storm(&tried, search.max_steps) {
            NextStorm::Try(_) => String::new(),
            NextStorm::Done(why) => why,
        };
        Self {
            isolation: first.isolation,
            technique: first.technique,
            kind: first.kind,
            undisturbed_per_s: highest,
            disturbed_per_s: rates(Effect::Disturbed).reduce(f64::min),
            ended,
            tried,
        }
    }

    /// Returns the limits of an experiment's rows; empty for other experiments.
    pub(super) fn of_rows(rows: &[Disturbance], search: Option<StormSearch>) -> Vec<Self> {
        let Some(search) = search else { return Vec::new() };
        let storms = rows.iter().filter(|row| row.kind != FaultKind::Calm);
        let mut found: Vec<Vec<&Disturbance>> = Vec::new();
        for row in storms {
            let is_of = |of: &&mut Vec<&Disturbance>| {
                (of[0].isolation, of[0].technique, of[0].kind) == (row.isolation, row.technique, row.kind)
            };
            match found.iter_mut().find(is_of) {
                Some(of) => of.push(row),
                None => found.push(vec![row]),
            }
        }
        found.iter().map(|rows| Self::new(rows, search)).collect()
    }
}

impl Disturbance {
    /// Returns the rate of a storm with what it did.
    pub(super) fn tried(&self) -> Option<TriedStorm> {
        let every_ns = self.every_ns? as f64;
        Some(TriedStorm { per_s: S / every_ns, done_per_s: self.done_per_s, effect: self.concluded? })
    }
}

/// Plans the runs of the next disturbance rate that each unfinished limit search tries, and calm
/// runs for comparison. Returns `false` if all searches have ended, or the experiment has none.
///
/// # Errors
/// A row's settings or figures cannot be read.
pub fn plan_next_storms(experiment: &mut Experiment) -> Result<bool, String> {
    let Some(search) = StormSearch::from_experiment(experiment)? else { return Ok(false) };
    let found = Disturbances::from_experiment(experiment)?;
    let points = ExperimentRuns::new(experiment).points;
    let settings = experiment.settings();
    let setting_of = |wanted: Key| {
        let point = points.iter().find(|point| !point.is_aa_test && Key::of(point) == Some(wanted))?;
        settings.iter().find(|setting| setting.name == point.name)
    };
    let mut next: Vec<Setting> = Vec::new();
    for StormLimit { isolation, technique, kind, tried, .. } in found.limits {
        let NextStorm::Try(rate) = next_storm(&tried, search.max_steps) else { continue };
        let key = Key { isolation, technique, kind };
        let calm = setting_of(Key { kind: FaultKind::Calm, ..key });
        let (Some(storm), Some(calm)) = (setting_of(key), calm) else { continue };
        if next.iter().all(|one| one.name != calm.name) {
            next.push(calm.clone());
        }
        next.push(with_rate(storm, kind, rate));
    }
    experiment.plan_more_rows(&next);
    Ok(!next.is_empty())
}

/// Returns the setting of the same storm at another rate.
fn with_rate(storm: &Setting, kind: FaultKind, per_s: f64) -> Setting {
    // A tenth of a microsecond is exact enough.
    let every = Nanos(((S / per_s / 100.0).round() * 100.0) as u64);
    let of_key = |text: &str| {
        let head = text.split(" every").next().unwrap_or(text);
        format!("{head} every {every}")
    };
    let tail = storm.name.split_once(" against ").map_or("", |(_, tail)| tail);
    let mut setting = Setting { name: format!("{kind} every {every} against {tail}"), ..storm.clone() };
    if let Some(text) = setting.settings.get_mut(&Axis::Fault.key()) {
        *text = of_key(text);
    }
    if let Some(text) = setting.values.get_mut(&Axis::Fault) {
        *text = of_key(text);
    }
    setting
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches where rates up to `limit` leave the others undisturbed, and the storm does at most
    /// `most` steps a second. Above `unclear` times the limit it disturbs; between, nothing is
    /// told.
    fn searched(limit: f64, most: f64, unclear: f64, max_steps: u32) -> (Vec<TriedStorm>, String) {
        let mut tried = Vec::new();
        loop {
            match next_storm(&tried, max_steps) {
                NextStorm::Done(why) => return (tried, why),
                NextStorm::Try(per_s) => {
                    let done = per_s.min(most);
                    let effect = match done {
                        done if done <= limit => Effect::Undisturbed,
                        done if done <= unclear * limit => Effect::CannotTell,
                        _ => Effect::Disturbed,
                    };
                    tried.push(TriedStorm { per_s, done_per_s: Some(done), effect });
                }
            }
        }
    }

    #[test]
    fn rate_is_quadrupled_until_it_disturbs_and_then_bisected() {
        let (tried, why) = searched(20_000.0, f64::INFINITY, 1.0, 8);
        let rates: Vec<f64> = tried.iter().map(|storm| storm.per_s.round()).collect();
        assert_eq!(rates[..4], [2_000.0, 8_000.0, 32_000.0, 16_000.0]);
        assert_eq!(why, "within a factor of 1.5");
        let (tried, why) = searched(0.0, f64::INFINITY, 1.0, 8);
        assert_eq!((tried.len(), why.as_str()), (5, "not undisturbed even at 20.0/s"));
    }

    #[test]
    fn storm_that_does_all_it_can_is_not_driven_further() {
        let (tried, why) = searched(1e9, 600.0, 1.0, 8);
        assert_eq!((tried.len(), why.as_str()), (1, "it does no more than 600/s"));
        let refused = TriedStorm { per_s: 2_000.0, done_per_s: Some(1.0), effect: Effect::Refused };
        assert_eq!(next_storm(&[refused], 8), NextStorm::Done("refused".into()));
    }

    proptest! {
        #[test]
        fn search_ends_and_never_calls_an_unclear_rate_undisturbed(
            limit in 1.0f64..1e6, unclear in 1.0f64..10.0, max_steps in 1u32..12,
        ) {
            let (tried, _) = searched(limit, f64::INFINITY, unclear, max_steps);
            prop_assert!(!tried.is_empty() && tried.len() <= max_steps as usize);
            let highest = tried.iter().filter(|storm| storm.effect == Effect::Undisturbed).map(|storm| storm.per_s);
            prop_assert!(highest.clone().all(|rate| rate <= limit));
            if max_steps > 9 && limit > RATES_PER_S[0] && limit < RATES_PER_S[1] {
                let highest = highest.reduce(f64::max).unwrap_or(0.0);
                prop_assert!(highest * CLOSE_ENOUGH * 1.001 >= limit, "{highest} for {limit}");
            }
        }
    }
}
