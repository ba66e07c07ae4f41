//! `disturb`: what a strategy that makes no mistake does to its neighbors, by isolation level.
//!
//! Each disturbance is compared with the same runs in which the strategy does nothing
//! ([`FaultKind::Calm`]), one after the other. The disturbing strategy's own orders are in no
//! percentile, so `rt_venue_from_due` is the others'.

mod gaps;
mod report;

pub use gaps::{EngineGaps, GapComparison};
pub use report::report;
pub(in crate::experiment) use report::short_answer;

use super::{Contained, Undisturbed};
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::sweep::{self, condition_line};
use crate::experiment::{Answer, Axis, Endpoint, Experiment, Figures, KindEntry, ratio};
use crate::stats::{
    ComparisonLine, Margin, Percentile, RunOutline, RunPairing, Verdict, compare_figure, correct_family,
    correct_secondary, median, pair_runs,
};
use protocol::flow::Stage;
use protocol::plan::{FaultKind, IsolationLevels, Technique};
use record::document::answer_json;
use report::disturbance_picture;
use serde::{Deserialize, Serialize};
use verdict::summary::Measure;

/// The entry of `launcher disturb`.
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
    "no disturbance has enough pairs of runs: measure at least 5, for example launcher disturb --repeats 10";

/// The name of what the disturbing strategy did, among the figures of a run.
const DONE: &str = "disturbing";
/// The stage of the engine's own work before an order leaves, and that after its report.
const ENGINE: [Measure; 2] = [Measure::Stage(Stage::OrchPreDispatch), Measure::Stage(Stage::OrchPostProcess)];

/// The margin unless told: what adds less than half does not disturb.
pub const DISTURBANCE_MARGIN: Margin = Margin { ns: 10.0, share: 0.5 };

/// What the disturbing strategy of a run did, and what became of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisturbanceDone {
    /// Steps of the disturbance, such as processes started.
    pub steps: u64,
    /// How the strategy ended, if it died; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub died: String,
    /// Whether the others survived it; null in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survived: Option<Contained>,
    /// The gaps of the engine's thread.
    #[serde(default)]
    pub gaps: EngineGaps,
}

impl Figures {
    /// Adds what the disturbing strategy did to the figures of its run.
    pub fn insert_disturbance(&mut self, done: &DisturbanceDone) {
        self.insert(DONE, done);
    }
}

/// The answer of `launcher disturb`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbances {
    /// The declared figures and their margin.
    pub endpoint: Endpoint,
    /// Rows by isolation level, technique and disturbance.
    pub rows: Vec<Disturbance>,
    /// The measuring conditions in one line.
    pub conditions: String,
    /// Remarks, one line each.
    pub notes: Vec<String>,
}

/// What one disturbance does to the others at an isolation level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// The isolation levels of the run's strategies.
    pub isolation: IsolationLevels,
    /// The technique.
    pub technique: Technique,
    /// The disturbance or other fault; `calm` is a test of the method.
    pub kind: FaultKind,
    /// The fault as `launcher contain` names it: `kill in a push, half-written`.
    #[serde(default)]
    pub fault: String,
    /// Number of runs by what became of the others, in the order of [`Contained`].
    #[serde(default)]
    pub outcomes: [usize; 4],
    /// Number of complete and valid runs.
    pub runs: usize,
    /// Orders of the others in these runs.
    pub orders: u64,
    /// Steps a run, median.
    pub steps: Option<f64>,
    /// How the disturbing strategy died in most runs: the level refused what it tried. Empty if it
    /// went on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refused: String,
    /// The others' `rt_venue_from_due`, then the engine's stages, each at p50, p99 and p99.9,
    /// against calm runs.
    pub lines: Vec<ComparisonLine>,
    /// The gaps of the engine's thread; null if no pair of runs has them.
    #[serde(default)]
    pub gaps: Option<GapComparison>,
    /// What is concluded; null in documents of older versions.
    #[serde(rename = "effect", default)]
    pub concluded: Option<Effect>,
}

/// What is concluded of one disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The strategy did nothing, or no run was usable.
    NotTried,
    /// The level refused what the strategy tried.
    Refused,
    /// The others did not survive it.
    Spread,
    /// Every figure of the endpoint is equivalent within its margin.
    Undisturbed,
    /// A figure of the endpoint is slower.
    Disturbed,
    /// The runs decide nothing.
    CannotTell,
}

impl Disturbance {
    /// Returns the name of the disturbance or other fault.
    pub fn name(&self) -> String {
        if self.fault.is_empty() { self.kind.to_string() } else { self.fault.clone() }
    }

    /// Iterates over the figures that were declared: of the others, and of the engine if its points
    /// were stamped.
    pub(super) fn declared<'a>(&'a self, endpoint: &'a Endpoint) -> impl Iterator<Item = &'a ComparisonLine> {
        self.lines.iter().filter(|line| is_declared(line, endpoint) && line.a_ns.is_some())
    }

    /// Returns what is concluded from the declared figures.
    pub fn effect(&self, endpoint: &Endpoint) -> Effect {
        let declared = || self.declared(endpoint);
        if !self.refused.is_empty() {
            return Effect::Refused;
        }
        if 2 * self.outcomes[Contained::No as usize] > self.outcomes.iter().sum() {
            return Effect::Spread;
        }
        if self.runs == 0 || self.steps.is_none_or(|steps| steps <= 0.0) {
            return Effect::NotTried;
        }
        let mut verdicts: Vec<Verdict> = declared().map(|line| line.verdict).collect();
        verdicts.extend(self.gaps.iter().flat_map(GapComparison::verdicts));
        if verdicts.contains(&Verdict::Slower) {
            Effect::Disturbed
        } else if !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == Verdict::Equivalent) {
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

    /// Returns the share of the calm figure within which every declared figure lies at 90 %: 0.12
    /// for ±12 %. `None` if one of them is not known.
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

impl Disturbances {
    /// Compares the runs of an experiment with its calm ones.
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
            rows.push(Disturbance { fault, ..row });
        }
        conclude_all(&mut rows, &endpoint);
        let mut notes = sweep::notes(&record);
        notes.push(format!(
            "endpoint, declared before: {} of the other strategies, {} of the engine, its gaps of 15 µs and longer, and the time that it lost to all gaps, \
             with Holm's correction within a row, and p99.9 behind p99; margin of times the larger of {}, of gaps of 25 a second and 25%, of the time lost of 1 ms a second \
             and 50%; all else is secondary, corrected over all rows",
            endpoint.describe(),
            ENGINE[0].name(),
            endpoint.margin.to_string().replace(',', " and ")
        ));
        Ok(Self { endpoint, rows, conditions: condition_line(&record), notes })
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

    /// Returns what is concluded of each fault in runs with one level, for a containment table.
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
mod tests {
    use super::*;
    use crate::stats::fixtures;
    use protocol::plan::Isolation;
    use statistics::seeded_rng::SeededRng;
    use verdict::cause::{GapClass, GapTotal};
    use verdict::summary::Distribution;

    /// The mean length of a simulated gap.
    const USUAL_GAP_NS: u64 = 20_000;

    fn compared(ns: f64, steps: u64, died: &str, more_gaps: u64) -> (Disturbance, Endpoint) {
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

    /// Returns the effect of a fault that does nothing but add long gaps of the engine, a second,
    /// and change their mean length, in ten simulated pairs of runs. Times vary by a tenth, p99 by
    /// a fifth, gaps by a tenth.
    fn simulated_effect(more_gaps: f64, gap_ns: u64, draws: &mut SeededRng) -> Effect {
        let endpoint = Endpoint { margin: DISTURBANCE_MARGIN, ..Endpoint::default() };
        let side = |name: &str,
                    more_gaps: f64,
                    gap_ns: u64,
                    draws: &mut SeededRng|
         -> (Vec<RunOutline>, Vec<DoneInRun>) {
            let mut noise = |share: f64| {
                let normal = (0..12).map(|_| draws.next_unit()).sum::<f64>() - 6.0;
                (share * normal).exp()
            };
            let run = |repeat: usize| {
                let times = |ns: f64, noise: &mut dyn FnMut(f64) -> f64| Distribution {
                    count: 10_000,
                    p50_ns: Some((ns * noise(0.1)) as u64),
                    p99_ns: Some((8.0 * ns * noise(0.2)) as u64),
                    ..Distribution::default()
                };
                let measures = [(endpoint.measure(), 1_200.0), (ENGINE[0], 60.0)];
                let measures = measures.map(|(of, ns)| (of.name().to_owned(), times(ns, &mut noise)));
                let long = ((400.0 + more_gaps) * noise(0.1)) as u64;
                let ns = (long as f64 * gap_ns as f64 * noise(0.1)) as u64;
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
            (0..10).map(run).unzip()
        };
        let (calm, with) = (side("calm", 0.0, USUAL_GAP_NS, draws), side("other", more_gaps, gap_ns, draws));
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
            (0..100).filter(|_| simulated_effect(more_gaps, gap_ns, &mut draws) == wanted).count()
        };
        let found = count(100.0, USUAL_GAP_NS, Effect::Disturbed);
        let longer = count(0.0, 2 * USUAL_GAP_NS, Effect::Disturbed);
        let wrong = count(0.0, USUAL_GAP_NS, Effect::Disturbed);
        let asleep = count(0.0, USUAL_GAP_NS, Effect::Undisturbed);
        assert!(found >= 80 && longer >= 95, "{found} and {longer} found");
        assert!(wrong <= 5 && asleep >= 95, "{wrong} wrong, {asleep} asleep");
    }
}
