//! `ladder`: every isolation level that a machine can do, side by side.
//!
//! Its folder holds a bill whose levels take turns on a shared core, the faults of a strategy, and
//! its disturbances; a comparison as well, if the launcher has a strategy that runs in a Wasm
//! runtime. The ladder makes no runs and computes no statistics of its own: a rung has their
//! results for one level.

mod card;
mod wasm;

pub use card::svg_card;

use super::contain::disturb::Effect;
use super::{
    ALL, Answer, Containments, Disturbance, Disturbances, Experiment, ExperimentReport, ExperimentRuns,
    IsolationCosts, KindEntry, ReportSection, RowKind, machine_facts, sweep,
};
use crate::experiment::contain::{
    CONFIDENTIAL_NOTE, Confidential, Contained, Containment, LevelConfidentiality,
};
use crate::grouping::distinct;
use crate::stats::{Estimate, Percentile};
use ::record::document::{Document, answer_json};
use ::record::fitness::Fitness;
use ::record::machine::Machine;
use ::record::numbers::{counted, duration, plain};
use ::record::units::human_bytes;
use protocol::plan::FaultKind;
use serde::{Deserialize, Serialize};
use std::path::Path;
use system::named_enum;
use verdict::report::change;
use verdict::table::Grid;

named_enum! {
    /// An experiment of a ladder.
    LadderPart {
        /// What each level costs on a shared core, by turns.
        Cost = "cost",
        /// What a module in a Wasm runtime costs.
        Wasm = "wasm",
        /// Where faults of a strategy stay.
        Faults = "faults",
        /// What a strategy that makes no mistake does to the others.
        Disturbances = "disturbances",
    }
}

/// The entry of `launcher ladder` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command compares a machine's isolation
/// levels.
pub const KIND: KindEntry = KindEntry {
    title: "The ladder of isolation",
    keeps_failures: true,
    rows: RowKind::SurveyPart,
    summary: |experiment| {
        let rungs = Rung::planned(experiment);
        let possible = rungs.iter().filter(|rung| rung.missing.is_none()).count();
        format!("ladder of {}", counted(possible as u64, "level"))
    },
    fitness: |experiment| experiment.figures.part("fitness").ok().flatten().unwrap_or_default(),
    check: |experiment| {
        let rungs = experiment.figures.part::<Vec<Rung>>(Rung::NAME);
        rungs.map(drop).map_err(|error| error.to_string())
    },
    answer: |experiment, folder| {
        let ladder = Ladder::read(experiment, folder)?;
        let json = answer_json("bulkhead.ladder/1", &ladder).map_err(|error| error.to_string())?;
        Ok(Answer { report: report(&ladder), json })
    },
    ..sweep::RUNS
};

/// The answer of `launcher ladder`: the isolation levels of a machine, with their costs and
/// benefits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// Version of bulkhead.
    pub version: String,
    /// Time at which the ladder began, RFC 3339.
    pub started: String,
    /// The machine, without its host name.
    pub machine: Machine,
    /// The load under which the costs were measured: `4 strategies of each level, parked on one
    /// core, 20,000 orders/s`.
    pub load: String,
    /// Whether the ladder's latencies may be quoted.
    pub fitness: Fitness,
    /// A row for each level.
    pub rungs: Vec<Rung>,
    /// Parts without a result, or with less than planned, with the reason.
    pub shortfalls: Vec<String>,
}

/// A rung of the ladder: an isolation level with its costs and the faults that it contains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rung {
    /// Name of the level, as for `--isolation`.
    pub level: String,
    /// Reason why this machine cannot run the level; null if it can.
    pub missing: Option<String>,
    /// Ratio of the p50 of `rt_venue` from due to that of threads, by turns.
    pub p50: Option<Estimate>,
    /// Ratio of the p99 of `rt_venue` from due to that of threads, by turns.
    pub p99: Option<Estimate>,
    /// CPU seconds of the level's strategies for a million of their orders.
    pub cpu_s_per_million: Option<f64>,
    /// Difference of those CPU seconds to threads.
    pub cpu_added: Option<Estimate>,
    /// Proportional set size of a strategy's process, in bytes; null without one.
    pub pss_bytes: Option<f64>,
    /// Time from the start of a strategy's process until it can trade, in nanoseconds.
    pub start_ns: Option<f64>,
    /// The injected faults, each with whether it was contained.
    pub faults: Vec<RungFault>,
    /// Whether the level hides a strategy's memory from others; null if the machine cannot run it.
    pub confidential: Option<LevelConfidentiality>,
    /// The disturbances, each with its effect on the other strategies.
    pub disturbances: Vec<RungDisturbance>,
}

/// The outcome of one injected fault at one isolation level of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RungFault {
    /// The name of the fault, as for `launcher contain`.
    pub fault: String,
    /// Number of runs in which the fault was contained, and number of runs in which it occurred.
    pub contained: [usize; 2],
    /// Number of the contained runs in which the other strategies waited far longer than before.
    pub waited: usize,
}

/// The effect of one disturbance on the other strategies at one isolation level of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RungDisturbance {
    /// The name of the disturbance, as for `launcher disturb`.
    pub disturbance: String,
    /// The concluded effect, as far as few repeats allow.
    pub effect: Effect,
    /// Ratio of the others' p50 from due to that of calm runs, with its interval; null with too few
    /// pairs.
    pub p50: Option<Estimate>,
    /// Ratio of the median p50 in disturbed and in calm runs, without an interval.
    pub p50_ratio: Option<f64>,
}

impl Rung {
    /// The name of the ladder's planned isolation levels among the figures of an experiment.
    pub const NAME: &'static str = "rungs";

    /// Creates the ladder's row of an isolation level, without measurements.
    pub fn new(level: &str, missing: Option<String>) -> Self {
        Self { level: level.into(), missing, ..Self::default() }
    }

    /// Returns the levels of a ladder with nothing measured.
    fn planned(experiment: &Experiment) -> Vec<Self> {
        experiment.figures.part(Self::NAME).ok().flatten().unwrap_or_default()
    }

    fn add_cost(&mut self, costs: &IsolationCosts) {
        let is_own = |row: &&super::isolation_cost::IsolationCostRow| {
            row.isolation.to_string() == self.level && row.variant.is_empty()
        };
        let Some(row) = costs.rows.iter().find(is_own) else { return };
        let turns = row.level_figures.as_ref().and_then(|figures| figures.turns);
        (self.p50, self.p99) = (turns.and_then(|turns| turns.p50), turns.and_then(|turns| turns.p99));
        let cpu = row.level_figures.as_ref().and_then(|figures| figures.cpu_s_per_million);
        (self.cpu_s_per_million, self.cpu_added) = (cpu.map(|cpu| cpu.value), cpu.and_then(|cpu| cpu.added));
        let strategy = row.strategy.as_ref();
        (self.pss_bytes, self.start_ns) =
            (strategy.and_then(|costs| costs.pss_bytes), strategy.and_then(|costs| costs.startup_ns));
    }

    fn add_faults(&mut self, all: &Containments) {
        for row in all.rows.iter().filter(|row| row.levels() == self.level) {
            // A fault that reads has a column of its own.
            if row.contained == Contained::Nothing || row.fault == FaultKind::ReadOthers.name() {
                continue;
            }
            let is_contained = usize::from(row.contained != Contained::No);
            let waited = usize::from(row.contained == Contained::Waited);
            match self.faults.iter_mut().find(|own| own.fault == row.fault) {
                Some(own) => {
                    own.contained[0] += is_contained;
                    own.contained[1] += 1;
                    own.waited += waited;
                }
                None => {
                    let (fault, contained) = (row.fault.clone(), [is_contained, 1]);
                    self.faults.push(RungFault { fault, contained, waited });
                }
            }
        }
    }

    /// Says whether the level hides memory: by a fault that reads, or else by its rules.
    fn add_confidentiality(&mut self, rows: &[Containment]) {
        let level = self.level.parse().ok().filter(|_| self.missing.is_none());
        self.confidential = level.map(|level| LevelConfidentiality::of(level, rows));
        if self.level == Self::WASM && self.missing.is_none() {
            self.confidential = Some(wasm::CONFIDENTIALITY);
        }
    }

    fn add_disturbances(&mut self, all: &Disturbances) {
        let is_own =
            |row: &&Disturbance| row.isolation.to_string() == self.level && row.kind != FaultKind::Calm;
        for row in all.rows.iter().filter(is_own) {
            let line = row.line(all.endpoint.measure(), Percentile::P50);
            let p50 = line.and_then(|line| line.evidence().difference).map(|found| found.ratio);
            let medians = line.and_then(|line| line.a_ns.zip(line.b_ns));
            let p50_ratio = medians.map(|(calm, disturbed)| disturbed / calm);
            let (disturbance, effect) = (row.name(), row.effect(&all.endpoint));
            let found = RungDisturbance { disturbance, effect, p50, p50_ratio };
            self.disturbances.push(found);
        }
    }
}

/// Returns the key in a ladder's figures under which the folder name of its experiment `part` is
/// saved.
pub fn folder_key(part: LadderPart) -> String {
    format!("folder.{part}")
}

impl Ladder {
    /// Reads a ladder of isolation levels and the experiments in its folder.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn read(experiment: &Experiment, folder: &Path) -> Result<Self, String> {
        let text = |key: &str| experiment.figures.part::<String>(key).ok().flatten().unwrap_or_default();
        let mut ladder = Self {
            version: experiment.version.clone(),
            started: experiment.started.clone(),
            machine: experiment.machine.clone(),
            load: text("load"),
            fitness: (KIND.fitness)(experiment),
            rungs: Rung::planned(experiment),
            shortfalls: experiment.notes.clone(),
        };
        ladder.rungs.iter_mut().for_each(|rung| rung.add_confidentiality(&[]));
        for part in LadderPart::ALL {
            let name = text(&folder_key(*part));
            if name.is_empty() {
                continue;
            }
            let nested = Experiment::read(&folder.join(&name)).map_err(|error| error.to_string())?;
            ladder.add(*part, &nested)?;
        }
        Ok(ladder)
    }

    /// Adds why the latencies of a part may not be quoted. Those next to a fault are not shown.
    fn add_fitness(&mut self, part: LadderPart, found: &Experiment) {
        let reasons = (found.kind.entry().fitness)(found).reasons;
        let reasons = reasons.into_iter().map(|reason| format!("{part}: {reason}"));
        let reasons = reasons.filter(|_| part != LadderPart::Faults);
        let all = self.fitness.reasons.drain(..).chain(reasons).collect::<Vec<_>>();
        self.fitness = Fitness::new(distinct(all));
    }

    /// Adds what one of its experiments says of each level.
    fn add(&mut self, part: LadderPart, found: &Experiment) -> Result<(), String> {
        self.add_fitness(part, found);
        match part {
            LadderPart::Cost => {
                let costs = IsolationCosts::from_runs(&ExperimentRuns::new(found))?;
                self.rungs.iter_mut().for_each(|rung| rung.add_cost(&costs));
            }
            LadderPart::Wasm => {
                let runs = ExperimentRuns::new(found);
                let rung = self.rungs.iter_mut().find(|rung| rung.level == Rung::WASM);
                rung.map_or(Ok(()), |rung| rung.add_comparison(&runs))?;
            }
            LadderPart::Faults => {
                let all = Containments::from_experiment(found)?;
                self.rungs.iter_mut().for_each(|rung| {
                    rung.add_faults(&all);
                    rung.add_confidentiality(&all.rows);
                });
            }
            LadderPart::Disturbances => {
                let all = Disturbances::from_experiment(found)?;
                self.rungs.iter_mut().for_each(|rung| rung.add_disturbances(&all));
            }
        }
        Ok(())
    }

    /// Returns a line for each isolation level that this machine cannot run, with the reason.
    pub fn missing(&self) -> Vec<String> {
        let why = |rung: &Rung| Some(format!("{}: {}", rung.level, rung.missing.as_ref()?));
        self.rungs.iter().filter_map(why).collect()
    }

    /// Formats the ladder of isolation levels in one line, to be pasted into an issue.
    pub fn line(&self) -> String {
        let rung = |rung: &Rung| {
            let faults = contained(rung);
            format!(
                "{}: p50 {}, CPU {}, faults contained {faults}",
                rung.level,
                ratio(rung.p50),
                added(rung.cpu_added)
            )
        };
        let day = self.started.split('T').next().unwrap_or_default();
        let possible = self.rungs.iter().filter(|rung| rung.missing.is_none()).map(rung);
        format!(
            "bulkhead {} ladder, {day}, {}, {}; {}",
            self.version,
            self.machine.cpu_model,
            counted(self.machine.cores_allowed.len() as u64, "CPU"),
            possible.collect::<Vec<_>>().join("; ")
        )
    }
}

/// `+6.4 % [+4.1, +8.7]`, or `–`.
fn ratio(of: Option<Estimate>) -> String {
    of.map_or_else(|| "–".into(), |of| change([of.value, of.low, of.high]))
}

/// `+3.4 µs`, of CPU seconds for a million orders.
fn added(of: Option<Estimate>) -> String {
    let sign = |value: f64| if value < 0.0 { "−" } else { "+" };
    of.map_or_else(|| "–".into(), |of| format!("{}{} µs", sign(of.value), plain(of.value.abs())))
}

/// `2 of 2`, or `–`.
fn contained(rung: &Rung) -> String {
    if rung.faults.is_empty() {
        return "–".into();
    }
    let whole = |fault: &&RungFault| fault.contained[0] == fault.contained[1];
    format!("{} of {}", rung.faults.iter().filter(whole).count(), rung.faults.len())
}

/// `× 4.6`, `refused`, or `–`.
fn disturbed(rung: &Rung, name: &str) -> String {
    let Some(found) = rung.disturbances.iter().find(|found| found.disturbance == name) else {
        return "–".into();
    };
    match (found.effect, found.p50, found.p50_ratio) {
        (Effect::Refused, ..) => "refused".into(),
        (Effect::Spread, ..) => "ends the run".into(),
        (_, Some(ratio), _) => {
            format!("× {} [{}, {}]", plain(ratio.value), plain(ratio.low), plain(ratio.high))
        }
        (_, None, Some(ratio)) => format!("× {}", plain(ratio)),
        (_, None, None) => "–".into(),
    }
}

/// Returns the names of all faults, or disturbances, in order of appearance.
fn names(ladder: &Ladder, of: impl Fn(&Rung) -> Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in ladder.rungs.iter().flat_map(of) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn fault_names(rung: &Rung) -> Vec<String> {
    rung.faults.iter().map(|fault| fault.fault.clone()).collect()
}

fn disturbance_names(rung: &Rung) -> Vec<String> {
    rung.disturbances.iter().map(|found| found.disturbance.clone()).collect()
}

/// Returns the report of a ladder (`launcher ladder`).
fn report(ladder: &Ladder) -> ExperimentReport {
    ExperimentReport {
        name: "ladder",
        heading: KIND.title.into(),
        title: KIND.title.into(),
        subject: ladder.machine.cpu_model.clone(),
        origin: format!("started {}, bulkhead {}", ladder.started, ladder.version),
        answer: answer(ladder),
        fitness: ladder.fitness.clone(),
        facts: machine_facts(&ladder.machine),
        notes: ladder.shortfalls.clone(),
        sections: vec![
            ReportSection::new("levels", "What each level costs and buys")
                .charts([card::figure(ladder)])
                .tables(ALL, [costs(ladder), protection(ladder)]),
        ],
        ..ExperimentReport::default()
    }
}

/// Returns the levels that protect from every fault, and what the cheapest of them costs.
fn answer(ladder: &Ladder) -> String {
    let contains_all = |rung: &&Rung| {
        !rung.faults.is_empty() && rung.faults.iter().all(|fault| fault.contained[0] == fault.contained[1])
    };
    let cpu = |rung: &&Rung| rung.cpu_added.map_or(f64::INFINITY, |added| added.value);
    let safe: Vec<&Rung> = ladder.rungs.iter().filter(contains_all).collect();
    let cheapest = safe.iter().copied().min_by(|a, b| cpu(a).total_cmp(&cpu(b)));
    let faults = names(ladder, fault_names).join(", ");
    match cheapest {
        None => format!("{}: no level contained every fault that was tried ({faults}).", ladder.load),
        Some(rung) => format!(
            "{}: {} contain {faults}; the least CPU time of them takes {}, {} an order more than threads, with p50 {}.",
            ladder.load,
            safe.iter().map(|rung| rung.level.as_str()).collect::<Vec<_>>().join(", "),
            rung.level,
            added(rung.cpu_added),
            ratio(rung.p50)
        ),
    }
}

fn costs(ladder: &Ladder) -> Grid {
    let cpu =
        |rung: &Rung| rung.cpu_s_per_million.map_or_else(|| "–".into(), |cpu| format!("{} µs", plain(cpu)));
    let size = |rung: &Rung| rung.pss_bytes.map_or_else(|| "–".into(), |bytes| human_bytes(bytes as u64));
    let start = |rung: &Rung| rung.start_ns.map_or_else(|| "–".into(), |ns| duration(ns as u64));
    // What the machine cannot do comes last: a screen that is too short cuts that.
    let (possible, missing): (Vec<Rung>, Vec<Rung>) =
        ladder.rungs.iter().cloned().partition(|rung| rung.missing.is_none());
    let grid = Grid::from_rows(
        "ladder_costs",
        format!("cost, by turns: {}", ladder.load),
        1,
        &[
            ("level", &|rung: &Rung| rung.level.clone()),
            ("p50", &|rung| ratio(rung.p50)),
            ("p99", &|rung| ratio(rung.p99)),
            ("CPU/order", &cpu),
            ("adds", &|rung| added(rung.cpu_added)),
            ("memory", &size),
            ("start", &start),
        ],
        &[possible, missing].concat(),
    );
    let grid = ladder.missing().into_iter().fold(grid, Grid::note).note(
        "p50, p99: of rt_venue from due against threads, 95 % intervals; memory: PSS of a strategy's process",
    );
    if wasm::is_measured(ladder) { grid.note(wasm::COST_NOTE) } else { grid }
}

fn protection(ladder: &Ladder) -> Grid {
    let faults = names(ladder, fault_names);
    let disturbances = names(ladder, disturbance_names);
    let head = ["level".to_owned()]
        .into_iter()
        .chain(faults.iter().cloned())
        .chain(["confidential".to_owned()])
        .chain(disturbances.iter().map(|name| format!("{name}: others' p50")));
    let cell = |rung: &Rung, name: &String| {
        let found = rung.faults.iter().find(|fault| fault.fault == *name);
        found.map_or_else(
            || "–".into(),
            |RungFault { contained: [contained, runs], waited, .. }| match (contained, runs) {
                (contained, runs) if contained == runs && *waited > 0 => {
                    format!("contained, others waited in {waited} of {runs}")
                }
                (contained, runs) if contained == runs => format!("contained, {runs} of {runs}"),
                (0, _) => "NOT contained".into(),
                (contained, runs) => format!("contained in {contained} of {runs}"),
            },
        )
    };
    let row = |rung: &Rung| {
        let cells = [rung.level.clone()]
            .into_iter()
            .chain(faults.iter().map(|name| cell(rung, name)))
            .chain([rung.confidential.as_ref().map_or_else(|| "–".into(), LevelConfidentiality::cell)])
            .chain(disturbances.iter().map(|name| disturbed(rung, name)));
        verdict::table::grid::GridRow::plain(cells.collect())
    };
    let grid = Grid::new(
        "ladder_protection",
        "faults of a strategy, and what a strategy that makes none does",
        1,
        head,
        ladder.rungs.iter().map(row),
    )
    .note(CONFIDENTIAL_NOTE);
    if wasm::is_measured(ladder) { grid.note(wasm::FAULTS_NOTE) } else { grid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64) -> Option<Estimate> {
        Some(Estimate { value, low: value - 0.01, high: value + 0.01 })
    }

    pub(super) fn ladder() -> Ladder {
        let fault = |contained| RungFault { fault: "segv".into(), contained: [contained, 2], waited: 0 };
        let fork = |ratio| RungDisturbance {
            disturbance: "fork-storm".into(),
            effect: Effect::CannotTell,
            p50: estimate(ratio),
            p50_ratio: Some(ratio),
        };
        let rung = |level: &str, p50, cpu, contained, ratio| Rung {
            level: level.into(),
            p50,
            cpu_added: cpu,
            faults: vec![fault(contained)],
            disturbances: vec![fork(ratio)],
            ..Rung::default()
        };
        Ladder {
            version: "0.2.0".into(),
            started: "2026-11-30T01:02:03Z".into(),
            machine: Machine { cpu_model: "A CPU".into(), cores_allowed: vec![0, 1], ..Machine::default() },
            load: "4 strategies".into(),
            fitness: Fitness::default(),
            rungs: vec![
                rung("thread", None, None, 0, 56.0),
                rung("process", estimate(1.064), estimate(3.4), 2, 4.6),
                rung("sandbox", estimate(1.096), estimate(4.2), 2, 4.6),
                Rung::new("container", Some("no user namespaces <here>".into())),
            ],
            shortfalls: Vec::new(),
        }
    }

    #[test]
    fn unfit_runs_of_shown_latencies_are_reasons_once() {
        let unfit: Experiment = crate::fixture("saved/max-rate.json");
        let mut ladder = ladder();
        ladder.add_fitness(LadderPart::Faults, &unfit);
        assert!(ladder.fitness.is_fit, "{:?}", ladder.fitness);
        (0..2).for_each(|_| ladder.add_fitness(LadderPart::Cost, &unfit));
        let [reason] = &ladder.fitness.reasons[..] else { panic!("{:?}", ladder.fitness) };
        assert!(reason.starts_with("cost: a search keeps no verdicts"), "{reason}");
    }

    #[test]
    fn answer_names_safe_levels_and_the_cheapest() {
        let found = answer(&ladder());
        assert!(found.contains("process, sandbox contain segv"), "{found}");
        assert!(found.contains("takes process, +3.40 µs an order more"), "{found}");
        let mut unsafe_ladder = ladder();
        unsafe_ladder.rungs.iter_mut().flat_map(|rung| &mut rung.faults).for_each(|it| it.contained[0] = 1);
        assert!(answer(&unsafe_ladder).contains("no level contained every fault"));
    }

    #[test]
    fn level_that_machine_cannot_do_has_row_with_reason() {
        let ladder = ladder();
        let text = costs(&ladder).terminal(false);
        assert!(text.contains("container: no user namespaces"), "{text}");
        assert_eq!(ladder.missing(), ["container: no user namespaces <here>"]);
        assert!(!ladder.line().contains("container"), "{}", ladder.line());
        assert!(ladder.line().contains("process: p50 +6.4 %"), "{}", ladder.line());
    }

    #[test]
    fn partly_contained_fault_is_told_as_such() {
        let mut ladder = ladder();
        ladder.rungs[1].faults[0].contained = [1, 2];
        let text = protection(&ladder).terminal(false);
        assert!(text.contains("contained in 1 of 2") && text.contains("NOT contained"), "{text}");
        assert!(text.contains("× 56"), "{text}");
    }
}
