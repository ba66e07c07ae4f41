//! `disturb`: the effect of a strategy that makes no mistake on its neighbors, by isolation level.
//!
//! Each disturbance is compared with the same runs in which the strategy does nothing
//! ([`FaultKind::Calm`]), one after the other. The disturbing strategy's own orders are in no
//! percentile, so `rt_venue_from_due` is the others'.

mod brief;
mod gaps;
mod limit;
mod report;

pub use gaps::{EngineGaps, GapComparison};
pub use limit::{FIRST_EVERY, StormLimit, StormSearch, TriedStorm, plan_next_storms};
pub use report::report;
pub(in crate::experiment) use report::short_answer;

use super::{Contained, Undisturbed};
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::sweep::{self, condition_line};
use crate::experiment::{Answer, Axis, Endpoint, Experiment, Figures, KindEntry, ratio};
use crate::stats::{
    ComparisonLine, Difference, Margin, Percentile, RunOutline, RunPairing, Verdict, compare_figure,
    correct_family, correct_secondary, median, pair_runs,
};
use protocol::flow::Stage;
use protocol::plan::{FaultKind, IsolationLevels, Technique};
use record::document::answer_json;
use record::units::Nanos;
use report::disturbance_picture;
use serde::{Deserialize, Serialize};
use verdict::summary::Measure;

/// The entry of `launcher disturb` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. In its runs one strategy disturbs the others.
pub const KIND: KindEntry = KindEntry {
    title: "What disturbs",
    keeps_failures: true,
    answer: |experiment, _| {
        let found = Disturbances::from_experiment(experiment)?;
        let json = answer_json("bulkhead.disturb/1", &found).map_err(|error| error.to_string())?;
        Ok(Answer { report: report(&found, &ExperimentRuns::new(experiment)), json })
    },
    picture: Some(|experiment| {
        let found = Disturbances::from_experiment(experiment)?;
        disturbance_picture(&found).ok_or_else(|| NO_DISTURBANCE.into())
    }),
    // All pairs decide where too few are kept: none is replaced.
    ..sweep::RUNS
};

/// Why there is no picture: nothing was compared with calm runs.
const NO_DISTURBANCE: &str =
    "no disturbance has enough pairs of runs: measure at least 5, for example launcher disturb --repeats 12";

/// The name of what the disturbing strategy did, among the figures of a run.
const DONE: &str = "disturbing";
/// The stage of the engine's own work before an order leaves, and that after its report.
const ENGINE: [Measure; 2] = [Measure::Stage(Stage::OrchPreDispatch), Measure::Stage(Stage::OrchPostProcess)];

/// The default equivalence margin of a disturbance's effect on latency: the larger of 10 ns and
/// half the calm latency, at p99 the whole latency. It is what the protection costs: where
/// strategies share a core, processes instead of threads make p50 1.2 to 1.4 times and p99 1.7 to
/// 2.8 times as long, so nobody would buy them against less than that.
pub const DISTURBANCE_MARGIN: Margin = Margin { ns: 10.0, share: 0.5 };
/// What the margin's share is multiplied by at p99.
const TAIL_FACTOR: f64 = 2.0;

/// The record of a disturbing strategy in one run: its steps, its end, the others' survival, and
/// the engine thread's gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisturbanceDone {
    /// Number of steps of the disturbance, such as processes started.
    pub steps: u64,
    /// How the strategy ended, if it died; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub died: String,
    /// Whether the other strategies survived the disturbance; null in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survived: Option<Contained>,
    /// The gaps of the engine's thread.
    #[serde(default)]
    pub gaps: EngineGaps,
}

impl Figures {
    /// Adds what the disturbing strategy did in a run to the run's figures.
    pub fn insert_disturbance(&mut self, done: &DisturbanceDone) {
        self.insert(DONE, done);
    }
}

/// The answer of `launcher disturb`: the effect of each disturbance on the other strategies by
/// isolation level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbances {
    /// The declared figures and their equivalence margin.
    pub endpoint: Endpoint,
    /// Rows by isolation level, technique and disturbance.
    pub rows: Vec<Disturbance>,
    /// Results of a search for the heaviest storm, for each disturbance at each level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<StormLimit>,
    /// The measuring conditions in one line.
    pub conditions: String,
    /// Remarks, one line each.
    pub notes: Vec<String>,
}

/// The effect of one disturbance on the other strategies at an isolation level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// The isolation levels of the run's strategies.
    pub isolation: IsolationLevels,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// The kind of disturbance or other fault; `calm` is a test of the method.
    pub kind: FaultKind,
    /// The fault as `launcher contain` names it: `kill in a push, half-written`.
    #[serde(default)]
    pub fault: String,
    /// Number of runs by the outcome of the other strategies, in the order of [`Contained`].
    #[serde(default)]
    pub outcomes: [usize; 4],
    /// Number of complete and valid runs.
    pub runs: usize,
    /// Number of orders of the other strategies in the complete and valid runs.
    pub orders: u64,
    /// Number of steps in a run, median.
    pub steps: Option<f64>,
    /// Requested time from one step to the next, in nanoseconds; null if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
    /// Achieved steps a second, median; null in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_per_s: Option<f64>,
    /// How the disturbing strategy died in most runs, because the level refused its attempt. Empty
    /// if it went on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refused: String,
    /// Comparisons with calm runs: the others' `rt_venue_from_due`, then the engine's stages, each
    /// at p50, p99 and p99.9.
    pub lines: Vec<ComparisonLine>,
    /// The gaps of the engine's thread; null if no pair of runs has them.
    #[serde(default)]
    pub gaps: Option<GapComparison>,
    /// The concluded effect on the others; null in documents of older versions.
    #[serde(rename = "effect", default)]
    pub concluded: Option<Effect>,
}

/// The concluded effect of one disturbance on the other strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The strategy did nothing, or no run was usable.
    NotTried,
    /// The isolation level refused the strategy's attempt.
    Refused,
    /// The other strategies did not survive the disturbance.
    Spread,
    /// No declared time, nor the time that the engine lost, is longer than its margin allows.
    Undisturbed,
    /// A declared figure is slower, and may be longer than its margin allows.
    Disturbed,
    /// The runs do not decide between disturbed and undisturbed.
    CannotTell,
}

impl Disturbance {
    /// Returns the name of the disturbance or other fault, such as `kill`: the text in `fault`, or
    /// the name of its kind if that is empty.
    pub fn name(&self) -> String {
        if self.fault.is_empty() { self.kind.to_string() } else { self.fault.clone() }
    }

    /// Iterates over the figures that were declared: of the others, and of the engine if its points
    /// were stamped.
    pub(super) fn declared<'a>(&'a self, endpoint: &'a Endpoint) -> impl Iterator<Item = &'a ComparisonLine> {
        self.lines.iter().filter(|line| is_declared(line, endpoint) && line.a_ns.is_some())
    }

    /// Returns the concluded effect of this disturbance on the other strategies, from their
    /// survival, their declared latencies and the engine's gaps.
    pub fn effect(&self, endpoint: &Endpoint) -> Effect {
        if !self.refused.is_empty() {
            return Effect::Refused;
        }
        if 2 * self.outcomes[Contained::No as usize] > self.outcomes.iter().sum() {
            return Effect::Spread;
        }
        if self.runs == 0 || self.steps.is_none_or(|steps| steps <= 0.0) {
            return Effect::NotTried;
        }
        // Times: slower, and within the margin.
        let mut found: Vec<(bool, bool)> = self
            .declared(endpoint)
            .map(|line| (line.verdict == Verdict::Slower, is_within_margin(line, endpoint)))
            .collect();
        if let Some(gaps) = &self.gaps {
            let [number, lost] = gaps.verdicts();
            found.push((lost == Verdict::Slower, gaps.is_lost_within_margin()));
            // What a number of gaps costs is the time lost, so none may be shown to be larger.
            found.push((number == Verdict::Slower, number != Verdict::Slower));
        }
        if found.iter().any(|(is_slower, is_within)| *is_slower && !is_within) {
            Effect::Disturbed
        } else if !found.is_empty() && found.iter().all(|(_, is_within)| *is_within) {
            Effect::Undisturbed
        } else {
            Effect::CannotTell
        }
    }

    /// Iterates over the figures, each with whether it was declared.
    fn family_lines(&mut self, endpoint: &Endpoint) -> impl Iterator<Item = (&mut ComparisonLine, bool)> {
        self.lines.iter_mut().map(|line| {
            let is_declared = is_declared(line, endpoint);
            (line, is_declared)
        })
    }

    /// Corrects the declared figures, six answers to one question, and concludes from them. The
    /// p99.9 of a declared measure is tested only if its p99 differs, within the row.
    fn conclude(&mut self, endpoint: &Endpoint) {
        let gaps = self.gaps.iter_mut().flat_map(GapComparison::known_mut);
        correct_family(self.lines.iter_mut().filter(|line| is_declared(line, endpoint)), gaps);
        let declared: Vec<String> = self.declared(endpoint).map(|line| line.measure.clone()).collect();
        correct_secondary(self.family_lines(endpoint).filter(|(line, _)| declared.contains(&line.measure)));
        self.concluded = Some(self.effect(endpoint));
    }

    /// Returns the largest change of any declared figure that 90 % confidence does not exclude, as
    /// a share of the calm figure. 0.12 is ±12 %. `None` if a figure is not known.
    pub fn reach(&self, endpoint: &Endpoint) -> Option<f64> {
        let share = |line: &ComparisonLine| {
            let test = line.deciding()?.equivalence?;
            Some(test.high.max(-test.low) / line.a_ns?)
        };
        let shares: Option<Vec<f64>> = self.declared(endpoint).map(share).collect();
        shares?.into_iter().reduce(f64::max)
    }

    /// Returns the line of a figure.
    pub(in crate::experiment) fn line(
        &self,
        measure: Measure,
        percentile: Percentile,
    ) -> Option<&ComparisonLine> {
        ratio::line_of(&self.lines, measure, percentile)
    }
}

/// Corrects all figures, and concludes from the declared ones.
fn conclude_all(rows: &mut [Disturbance], endpoint: &Endpoint) {
    rows.iter_mut().for_each(|row| row.conclude(endpoint));
    correct_secondary(rows.iter_mut().flat_map(|row| row.family_lines(endpoint)));
}

/// Returns `true` for the percentiles of the endpoint, of its measure and of the engine's own work.
fn is_declared(line: &ComparisonLine, endpoint: &Endpoint) -> bool {
    let is_measure = [endpoint.measure.as_str(), ENGINE[0].name()].contains(&line.measure.as_str());
    is_measure && endpoint.percentiles().any(|percentile| percentile == line.percentile)
}

/// Returns `true` if, at 95 %, the figure is not longer than its margin allows. All declared
/// figures must be, so their p-values are not corrected (an intersection-union test).
fn is_within_margin(line: &ComparisonLine, endpoint: &Endpoint) -> bool {
    let factor = if line.percentile == Percentile::P50 { 1.0 } else { TAIL_FACTOR };
    let margin = Margin { share: factor * endpoint.margin.share, ..endpoint.margin };
    line.why.is_empty()
        && line.a_ns.zip(line.deciding()).is_some_and(|(calm, found)| is_at_most(&found, calm, margin))
}

/// Returns `true` if, at 95 %, the figure is at most the margin longer than the calm one. Documents
/// of older versions have only the test for equivalence.
fn is_at_most(found: &Difference, calm: f64, margin: Margin) -> bool {
    found.equivalence.is_some_and(|test| {
        test.ratio_high.map_or_else(|| test.is_shown(), |high| high <= 1.0 + margin.to_ns(calm) / calm)
    })
}

impl Disturbances {
    /// Compares the disturbed runs of an experiment with its calm ones.
    ///
    /// # Errors
    /// A row's settings or figures cannot be read.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        let record = ExperimentRuns::new(experiment);
        let endpoint = record.endpoint.for_runs(record.runs().map(|run| &run.outline));
        let done = |point: &Point| -> Result<Vec<DoneInRun>, String> {
            let rows = experiment.made().filter(|row| row.setting.name == point.name);
            let parts = rows.filter_map(|row| {
                let run = row.outline().map_or_else(String::new, |outline| outline.run);
                row.figures.part(DONE).transpose().map(|done| done.map(|done| (run, done)))
            });
            parts.collect::<Result<_, _>>().map_err(|error| format!("{DONE}: {error}"))
        };
        let mut rows = Vec::new();
        for point in &record.points {
            let key = Key::of(point).ok_or_else(|| format!("{}: not a disturbance", point.name))?;
            let is_reference = |other: &&Point| {
                let calm = Key { kind: FaultKind::Calm, ..key };
                !other.is_aa_test && Key::of(other) == Some(calm)
            };
            let calm = record.points.iter().find(is_reference);
            // The reference itself.
            if calm.is_none_or(|calm| calm.name == point.name) {
                continue;
            }
            let (calm, calm_done) = match calm {
                Some(calm) => (calm.outlines(), done(calm)?),
                None => (Vec::new(), Vec::new()),
            };
            let row = compare(key, [&calm, &point.outlines()], [&calm_done, &done(point)?], &endpoint);
            let fault = point.name.split(" against ").next().unwrap_or("").to_owned();
            let done_per_s = row.steps.zip(disturbed_s(point)).map(|(steps, time)| steps / time);
            rows.push(Disturbance { fault, every_ns: every_ns(point), done_per_s, ..row });
        }
        conclude_all(&mut rows, &endpoint);
        let mut notes = sweep::notes(&record);
        notes.push(format!(
            "endpoint, declared before: {} of the other strategies, {} of the engine, and the time that it lost to all gaps; undisturbed: at 95 %, none is longer by \
             more than the larger of {}, twice that share at p99, and 1 ms a second and 50% of the time lost (about what processes cost where a core is shared); \
             disturbed: one of these, or the number of gaps of 15 µs and longer, is slower, with Holm's correction within a row; p99.9 behind p99; all else is \
             secondary, corrected over all rows",
            endpoint.describe(),
            ENGINE[0].name(),
            endpoint.margin.to_string().replace(',', " and ")
        ));
        let limits = StormLimit::of_rows(&rows, StormSearch::from_experiment(experiment)?);
        Ok(Self { endpoint, rows, limits, conditions: condition_line(&record), notes })
    }
}

impl Disturbances {
    /// Iterates over the rows with a disturbance or fault, each with the median of the others.
    pub(in crate::experiment) fn real(
        &self,
    ) -> impl Iterator<Item = (&Disturbance, Option<&ComparisonLine>)> {
        let rows = self.rows.iter().filter(|row| row.kind != FaultKind::Calm);
        rows.map(|row| (row, row.line(self.endpoint.measure(), self.endpoint.percentile)))
    }

    /// Returns a verdict in words on each disturbance or other fault, from runs with a single
    /// isolation level, for a containment table.
    pub fn conclusions(&self) -> Vec<Undisturbed> {
        let conclusion = |row: &Disturbance| {
            let isolation = row.isolation.only()?;
            let verdict = report::describe(row, self);
            Some(Undisturbed { isolation, technique: row.technique, fault: row.name(), verdict })
        };
        self.rows.iter().filter(|row| row.kind != FaultKind::Calm).filter_map(conclusion).collect()
    }
}

/// What sets a row apart.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Key {
    isolation: IsolationLevels,
    technique: Technique,
    kind: FaultKind,
}

impl Key {
    fn of(point: &Point) -> Option<Self> {
        Some(Self {
            isolation: point.value(Axis::Isolation)?.parse().ok()?,
            technique: Technique::from_name(point.value(Axis::Technique)?)?,
            // The last one: a fault that ends the strategy comes after its calm.
            kind: FaultKind::from_name(
                point.value(Axis::Fault)?.rsplit(';').next()?.trim().split([':', '@', ' ']).next()?,
            )?,
        })
    }
}

/// Returns the time between two steps of a point's disturbance, if the point says so.
fn every_ns(point: &Point) -> Option<u64> {
    let (_, every) = point.value(Axis::Fault)?.rsplit(';').next()?.split_once(" every ")?;
    every.split(" for ").next()?.trim().parse::<Nanos>().ok().map(|every| every.0)
}

/// Returns the seconds for which a disturbance goes on: from a tenth of the window to its end.
fn disturbed_s(point: &Point) -> Option<f64> {
    Some(0.9e-9 * point.settings.get("window")?.parse::<Nanos>().ok()?.0 as f64)
}

/// The id of a run, and what its disturbing strategy did.
type DoneInRun = (String, DisturbanceDone);

/// Compares runs with calm ones, which are given first.
fn compare(
    Key { isolation, technique, kind }: Key,
    [calm, runs]: [&[RunOutline]; 2],
    [calm_done, done]: [&[DoneInRun]; 2],
    endpoint: &Endpoint,
) -> Disturbance {
    let pairing: RunPairing<'_> = pair_runs(calm, runs).with_margin(endpoint.margin);
    let usable = || runs.iter().filter(|run| run.is_usable());
    let measures = [endpoint.measure()].into_iter().chain(ENGINE);
    let lines = measures.flat_map(|measure| Percentile::ALL.map(|percentile| (measure, percentile)));
    let gaps = calm_done.iter().chain(done).map(|(run, done)| (run.as_str(), &done.gaps)).collect();
    let done = || done.iter().map(|(_, done)| done);
    let died: Vec<&DisturbanceDone> = done().filter(|run| !run.died.is_empty()).collect();
    let steps: Vec<f64> = done().map(|run| run.steps as f64).collect();
    let mut outcomes = [0; 4];
    done().filter_map(|run| run.survived).for_each(|outcome| outcomes[outcome as usize] += 1);
    Disturbance {
        isolation,
        technique,
        kind,
        fault: String::new(),
        outcomes,
        runs: usable().count(),
        orders: usable().map(|run| run.measure(Measure::RtVenueFromDue).count).sum(),
        steps: median(&steps),
        every_ns: None,
        done_per_s: None,
        refused: died
            .first()
            .filter(|_| kind.is_disturbance() && 2 * died.len() > steps.len())
            .map_or_else(String::new, |run| run.died.clone()),
        lines: lines.map(|(measure, percentile)| compare_figure(&pairing, measure, percentile)).collect(),
        gaps: GapComparison::of_pairs(&pairing, &gaps),
        concluded: None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::stats::fixtures;
    use merge::cause::{GapClass, GapTotal};
    use protocol::plan::Isolation;
    use statistics::seeded_rng::SeededRng;
    use verdict::summary::Distribution;

    /// The mean length of a simulated gap.
    const USUAL_GAP_NS: u64 = 20_000;

    /// Compares runs of that latency with calm ones of 300 ns.
    pub(in crate::experiment::contain::disturb) fn compared(
        ns: f64,
        steps: u64,
        died: &str,
        more_gaps: u64,
    ) -> (Disturbance, Endpoint) {
        let side = |name: &str, ns: f64| {
            let run = |repeat| RunOutline { run: format!("{name}-{repeat}"), ..fixtures::run(repeat, ns) };
            (0..10).map(run).collect::<Vec<_>>()
        };
        let endpoint = Endpoint::legacy();
        let key = Key {
            isolation: Isolation::Process.into(),
            technique: Technique::default(),
            kind: FaultKind::MapStorm,
        };
        let (calm, runs) = (side("calm", 300.0), side("other", ns));
        let done = |runs: &[RunOutline], long: u64| -> Vec<DoneInRun> {
            let classes =
                vec![GapTotal { class: GapClass::Other, gaps: long, ns: long * USUAL_GAP_NS, long }];
            let gaps = EngineGaps { running_ns: 1_000_000_000, classes };
            let done = DisturbanceDone { steps, died: died.into(), survived: Some(Contained::Yes), gaps };
            runs.iter().map(|run| (run.run.clone(), done.clone())).collect()
        };
        let done = [done(&calm, 300), done(&runs, 300 + more_gaps)];
        (compare(key, [&calm, &runs], [&done[0], &done[1]], &endpoint), endpoint)
    }

    #[test]
    fn effect_needs_steps_and_a_verdict() {
        for (ns, steps, died, more_gaps, wanted) in [
            (301.0, 500, "", 0, Effect::Undisturbed),
            (900.0, 500, "", 0, Effect::Disturbed),
            (301.0, 500, "", 100, Effect::Disturbed),
            (301.0, 0, "", 0, Effect::NotTried),
            (900.0, 0, "", 0, Effect::NotTried),
            (301.0, 1, "signal 31 (SIGSYS)", 0, Effect::Refused),
        ] {
            let (found, endpoint) = compared(ns, steps, died, more_gaps);
            assert_eq!(found.effect(&endpoint), wanted, "{ns} {steps} {died} {more_gaps}");
        }
    }

    #[test]
    fn p999_is_shown_behind_p99_among_many_rows() {
        let with_p999 = |ns: f64| {
            let (mut row, endpoint) = compared(ns, 500, "", 0);
            let p99 = row.line(endpoint.measure(), Percentile::P99).unwrap().clone();
            let is_p999 = |line: &&mut ComparisonLine| {
                line.measure == p99.measure && line.percentile == Percentile::P999
            };
            let line = row.lines.iter_mut().find(is_p999).unwrap();
            *line = ComparisonLine { percentile: Percentile::P999, ..p99 };
            (row, endpoint)
        };
        let (disturbed, endpoint) = with_p999(9_000.0);
        let (calm, _) = with_p999(300.0);
        let mut rows = vec![calm; 38];
        rows.push(disturbed);
        conclude_all(&mut rows, &endpoint);
        let verdict = |row: &Disturbance| row.line(endpoint.measure(), Percentile::P999).unwrap().verdict;
        assert_eq!([verdict(&rows[0]), verdict(&rows[38])], [Verdict::Equivalent, Verdict::Slower]);
    }

    #[test]
    fn others_that_did_not_survive_were_not_undisturbed() {
        let (found, endpoint) = compared(301.0, 500, "", 0);
        let spread = Disturbance { outcomes: [4, 0, 6, 0], ..found };
        assert_eq!(spread.effect(&endpoint), Effect::Spread);
    }

    /// Spreads of a run's figures: standard deviations of their logarithms.
    #[derive(Clone, Copy)]
    struct RunNoise {
        others: [f64; 2],
        engine: [f64; 2],
        /// Of the number of long gaps, and of the time lost to all.
        gaps: f64,
        lost: f64,
    }

    /// Little noise: times vary by a tenth, p99 by a fifth, gaps by a tenth.
    const QUIET: RunNoise = RunNoise { others: [0.1, 0.2], engine: [0.1, 0.2], gaps: 0.1, lost: 0.1 };
    /// Of the calm pairs on 16 cores (`data/results/2026-11-27-xeon-16core-disturb`), whose
    /// differences vary by 1.4 times that.
    const SIXTEEN_CORES: RunNoise =
        RunNoise { others: [0.06, 0.17], engine: [0.17, 0.30], gaps: 0.5, lost: 0.15 };

    /// Returns the effect of a fault that makes the others' p50 and p99 these times as long, adds
    /// long gaps of the engine, a second, and changes their mean length, in 12 simulated pairs of
    /// runs.
    fn simulated_effect(
        longer: [f64; 2],
        more_gaps: f64,
        gap_ns: u64,
        spread: RunNoise,
        draws: &mut SeededRng,
    ) -> Effect {
        let endpoint = Endpoint { margin: DISTURBANCE_MARGIN, ..Endpoint::default() };
        let side = |name: &str,
                    longer: [f64; 2],
                    more_gaps: f64,
                    gap_ns: u64,
                    draws: &mut SeededRng|
         -> (Vec<RunOutline>, Vec<DoneInRun>) {
            let mut noise = |share: f64| {
                let normal = (0..12).map(|_| draws.next_unit()).sum::<f64>() - 6.0;
                (share * normal).exp()
            };
            let run = |repeat: usize| {
                let mut times = |[p50, p99]: [f64; 2], spread: [f64; 2]| Distribution {
                    count: 10_000,
                    p50_ns: Some((p50 * noise(spread[0])) as u64),
                    p99_ns: Some((p99 * noise(spread[1])) as u64),
                    ..Distribution::default()
                };
                let of_others = times([1_200.0 * longer[0], 8_000.0 * longer[1]], spread.others);
                let of_engine = times([60.0, 480.0], spread.engine);
                let measures = [(endpoint.measure(), of_others), (ENGINE[0], of_engine)];
                let measures = measures.map(|(of, times)| (of.name().to_owned(), times));
                let long = ((400.0 + more_gaps) * noise(spread.gaps)) as u64;
                let ns = ((400.0 + more_gaps) * gap_ns as f64 * noise(spread.lost)) as u64;
                let classes = vec![GapTotal { class: GapClass::Other, gaps: long, ns, long }];
                let run = format!("{name}-{repeat}");
                let outline = RunOutline {
                    run: run.clone(),
                    measures: measures.into(),
                    ..fixtures::run(repeat, 1_200.0)
                };
                let gaps = EngineGaps { running_ns: 1_000_000_000, classes };
                let survived = Some(Contained::Yes);
                (outline, (run, DisturbanceDone { steps: 9, died: String::new(), survived, gaps }))
            };
            (0..12).map(run).unzip()
        };
        let calm = side("calm", [1.0; 2], 0.0, USUAL_GAP_NS, draws);
        let with = side("other", longer, more_gaps, gap_ns, draws);
        let key = Key {
            isolation: Isolation::Process.into(),
            technique: Technique::default(),
            kind: FaultKind::MapStorm,
        };
        let mut row = compare(key, [&calm.0, &with.0], [&calm.1, &with.1], &endpoint);
        row.conclude(&endpoint);
        row.concluded.unwrap()
    }

    /// 20 µs every 10 ms are a hundred more gaps a second, or longer ones where a thread is
    /// preempted more often anyway.
    #[test]
    fn planted_stalls_are_found_and_sleep_is_not() {
        let mut draws = SeededRng::new(59);
        let mut count = |more_gaps, gap_ns, wanted| {
            let effect =
                |_: &usize| simulated_effect([1.0; 2], more_gaps, gap_ns, QUIET, &mut draws) == wanted;
            (0..100).filter(effect).count()
        };
        let found = count(100.0, USUAL_GAP_NS, Effect::Disturbed);
        let longer = count(0.0, 2 * USUAL_GAP_NS, Effect::Disturbed);
        let wrong = count(0.0, USUAL_GAP_NS, Effect::Disturbed);
        let asleep = count(0.0, USUAL_GAP_NS, Effect::Undisturbed);
        assert!(found >= 80 && longer >= 95, "{found} and {longer} found");
        assert!(wrong <= 5 && asleep >= 95, "{wrong} wrong, {asleep} asleep");
    }

    /// With the spread of the saved runs a calm strategy is undisturbed, in nine of ten. One that
    /// makes the others' p99 as long as the margin allows, or their p50, is so in one of twenty at
    /// most, and what is twice as long as that is found.
    #[test]
    fn calm_is_undisturbed_and_what_exceeds_the_margin_is_not() {
        let mut draws = SeededRng::new(61);
        let mut effects = |longer: [f64; 2]| {
            let effect = |_| simulated_effect(longer, 0.0, USUAL_GAP_NS, SIXTEEN_CORES, &mut draws);
            let all: Vec<Effect> = (0..100).map(effect).collect();
            [Effect::Undisturbed, Effect::Disturbed]
                .map(|wanted| all.iter().filter(|is| **is == wanted).count())
        };
        let [undisturbed, disturbed] = effects([1.0, 1.0]);
        assert!(undisturbed >= 90 && disturbed <= 5, "calm: {undisturbed} and {disturbed} of 100");
        for at_margin in [[1.0, 2.0], [1.5, 1.0]] {
            let [undisturbed, _] = effects(at_margin);
            assert!(undisturbed <= 10, "{at_margin:?}: {undisturbed} of 100");
        }
        for beyond in [[1.0, 4.0], [3.0, 1.0]] {
            let [undisturbed, disturbed] = effects(beyond);
            assert!(undisturbed == 0 && disturbed >= 90, "{beyond:?}: {undisturbed} and {disturbed} of 100");
        }
    }
}
