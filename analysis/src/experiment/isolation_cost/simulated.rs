//! Bills of simulated machines with a planted cost: how often the cost is found, and how often a
//! cost is claimed where there is none.

use super::{IsolationCostRow, IsolationCosts, REPEATS};
use crate::experiment::{Axis, Experiment, ExperimentRuns, Figures, Kind, Setting};
use crate::fixture;
use crate::stats::{RunOutline, Sample, Verdict, fixtures};
use protocol::plan::Isolation;
use statistics::seeded_rng::SeededRng;
use statistics::synthetic::{CoreMoves, DISTURBED, Machine, QUIET, moving_runs};
use verdict::summary::{Distribution, LevelSummary};

/// Cores that never move, that move in one run in two, and in one run in eight.
const MOVES: [CoreMoves; 3] = [[0.0, 1.0], [0.5, 0.5], [0.125, 0.875]];

/// Returns the bill of one simulated experiment: threads, their A/A test, and processes that take
/// `planted_ns` more. p99 is twice as high, with the noise of a busy machine.
fn simulated_bill(moves: CoreMoves, planted_ns: f64, draws: &mut SeededRng) -> IsolationCosts {
    let repeats = REPEATS as usize;
    let machines: [Machine; 2] = [(QUIET, moves, 0.02), (DISTURBED, moves, 0.05)];
    let added = [0.0, 0.0, planted_ns];
    let [p50, p99] = machines.map(|machine| moving_runs(machine, repeats, added, draws));
    let setting = |level: &str, is_aa_test| Setting {
        name: format!("isolation={level} {is_aa_test}"),
        values: [(Axis::Isolation, level.to_owned())].into(),
        is_aa_test,
        settings: [("isolation", level), ("technique", "spsc-mux")]
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into(),
    };
    let settings = [setting("thread", false), setting("thread", true), setting("process", false)];
    let plan: Experiment = fixture("golden/experiment.json");
    let mut experiment = Experiment {
        kind: Kind::Bill,
        repeats: REPEATS,
        axes: Vec::new(),
        endpoint: Default::default(),
        ..plan
    };
    experiment.plan_rows(&settings);
    for row in &mut experiment.rows {
        let side = settings.iter().position(|setting| setting.name == row.setting.name).unwrap();
        let repeat = row.repeat as usize;
        row.figures = Figures::from_outline(&outline(repeat, p50[side][repeat], p99[side][repeat], side));
    }
    IsolationCosts::from_runs(&ExperimentRuns::new(&experiment)).unwrap()
}

fn outline(repeat: usize, p50: Sample, p99: Sample, side: usize) -> RunOutline {
    let rtt = Some(if p50.placement == 0 { 45.0 } else { 310.0 });
    let figures = Distribution {
        count: 20_000,
        p50_ns: Some(p50.value as u64),
        p99_ns: Some((2.0 * p99.value) as u64),
        ..Distribution::default()
    };
    RunOutline {
        run: format!("{repeat}-{side}"),
        core_rtt_ns: rtt,
        core_rtt_after_ns: rtt,
        clock_step_ns: 10.0,
        measures: [("rt_venue_from_due".to_owned(), figures)].into(),
        ..fixtures::run(repeat, p50.value)
    }
}

/// The verdicts of simulated bills: how many find the planted cost at p50, how many claim a
/// difference in their A/A test at either percentile, and how many declare it equivalent at p50.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    found: usize,
    wrong: usize,
    equivalent: usize,
}

fn tally(bills: usize, moves: CoreMoves, planted_ns: f64, seed: u64) -> Tally {
    let mut draws = SeededRng::new(seed);
    let mut tally = Tally::default();
    for _ in 0..bills {
        let isolation_costs = simulated_bill(moves, planted_ns, &mut draws);
        let [_, aa, process] = &isolation_costs.rows[..] else { panic!("{:?}", isolation_costs.rows) };
        assert_eq!((aa.variant.as_str(), aa.level().as_str()), (IsolationCostRow::AA_TEST, "thread (A/A)"));
        let differs = |verdict| matches!(verdict, Verdict::Slower | Verdict::Faster);
        tally.found += usize::from(process.adds[0].line.verdict == Verdict::Slower);
        tally.wrong += usize::from(aa.adds[0].lines().any(|line| differs(line.verdict)));
        tally.equivalent += usize::from(aa.adds[0].line.verdict == Verdict::Equivalent);
    }
    tally
}

/// Checks the promises of a bill over `bills` simulated ones of each machine and planted cost.
/// Returns what their A/A tests claimed, machine by machine.
fn check_planted_costs(bills: usize) -> Vec<Tally> {
    let check = |(moves, seed): (CoreMoves, u64)| {
        let small = tally(bills, moves, 50.0, seed);
        let large = tally(bills, moves, 200.0, seed + 10);
        assert!(small.found * 10 >= bills * 9, "50 ns: {small:?} of {bills} at {moves:?}");
        assert!(large.found * 100 >= bills * 99, "200 ns: {large:?} of {bills} at {moves:?}");
        small
    };
    MOVES.into_iter().zip(7..).map(check).collect()
}

/// Checks that A/A tests claim a difference in at most 5 % and equivalence in at least 80 %.
fn check_aa_tests(bills: usize, aa: &Tally) {
    assert!(aa.wrong * 20 <= bills, "{aa:?} of {bills}");
    assert!(aa.equivalent * 10 >= bills * 8, "{aa:?} of {bills}");
}

#[test]
fn planted_costs_are_found_in_ten_bills() {
    let all = check_planted_costs(10);
    let sum = |of: fn(&Tally) -> usize| all.iter().map(of).sum();
    let pooled =
        Tally { found: sum(|aa| aa.found), wrong: sum(|aa| aa.wrong), equivalent: sum(|aa| aa.equivalent) };
    check_aa_tests(10 * all.len(), &pooled);
}

#[test]
#[ignore = "takes minutes: .ci/nightly runs it"]
fn planted_costs_are_found_in_hundred_bills() {
    check_planted_costs(100).iter().for_each(|aa| check_aa_tests(100, aa));
}

/// Returns the part of a run that has the strategies of one level, with this p50.
fn level(level: Isolation, again: usize, p50_ns: u64) -> LevelSummary {
    let figures = Distribution {
        count: 20_000,
        p50_ns: Some(p50_ns),
        p99_ns: Some(2 * p50_ns),
        ..Distribution::default()
    };
    let measures = [("rt_venue", figures), ("rt_venue_from_due", figures)];
    LevelSummary {
        level: level.into(),
        again,
        strategies: 1,
        measures: measures.map(|(name, figures)| (name.to_owned(), figures)).into(),
    }
}

#[test]
fn levels_of_one_run_are_compared_with_each_other() {
    let text = "thread+thread+process";
    let setting = Setting {
        name: format!("isolation={text}"),
        values: [(Axis::Isolation, text.to_owned())].into(),
        settings: [("isolation", text), ("technique", "spsc-mux")]
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into(),
        ..Setting::default()
    };
    let plan: Experiment = fixture("golden/experiment.json");
    let mut experiment =
        Experiment { kind: Kind::Bill, repeats: 8, axes: Vec::new(), endpoint: Default::default(), ..plan };
    experiment.plan_rows(&[setting]);
    for row in &mut experiment.rows {
        // Each run is slower than the one before, and its cores moved: for all levels alike.
        let p50 = 1_000 + 100 * u64::from(row.repeat);
        let levels = vec![
            level(Isolation::Thread, 0, p50),
            level(Isolation::Thread, 1, p50 + u64::from(row.repeat % 2)),
            level(Isolation::Process, 0, p50 + 200),
        ];
        let run = fixtures::run(row.repeat as usize, p50 as f64);
        let moved = RunOutline { levels, core_rtt_after_ns: Some(310.0), fit_for_latency: false, ..run };
        row.figures = Figures::from_outline(&moved);
    }
    let runs = ExperimentRuns::new(&experiment);
    let isolation_costs = IsolationCosts::from_runs(&runs).unwrap();
    let verdicts: Vec<_> = isolation_costs.rows[1..]
        .iter()
        .map(|row| (row.level(), row.adds[0].line.pairs, row.adds[0].line.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [("thread (A/A)".to_owned(), 8, Verdict::Equivalent), ("process".to_owned(), 8, Verdict::Slower)]
    );
    let fitness = runs.fitness().sentence();
    assert!(fitness.contains("0 of 8 runs"), "a run is one run: {fitness}");
}
