//! The simulation: hundreds of runs hold (CI lets the release build do a thousand), the same seed
//! gives the same run, and what is broken on purpose is found.

mod broken_recoveries;

use crate::common::{output, slow};
use protocol::plan::Technique;
use record::fitness::Fitness;
use shm::ring::array_queue::ArrayQueue;
use simulation::broken::{Defect, LogCorruption};
use simulation::scenario::{Scenario, ScenarioKind, draw_technique, is_simulated};
use simulation::{SimulationOptions, SimulationTotals, Trial, simulate, simulate_all, trial};
use std::collections::BTreeMap;
use std::fmt::Write;

const GOLDEN: u64 = 60;
const GOLDEN_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/simulate.golden");

fn techniques() -> Vec<Technique> {
    Technique::all().into_iter().filter(|technique| is_simulated(*technique)).collect()
}

#[test]
fn hundreds_of_runs_hold() {
    let seeds = if slow() { 1_200_000 } else { 360 };
    let all = simulate_all(seeds, &techniques(), &SimulationOptions::default(), |_| {}).unwrap();
    assert!(all.failed.is_empty(), "{:#?}", all.failed);
    let mut total = SimulationTotals::default();
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    let mut by_technique: BTreeMap<&str, u64> = BTreeMap::new();
    for ((technique, kind), tally) in &all.by {
        total.merge(tally);
        *by_kind.entry(kind).or_default() += tally.runs;
        *by_technique.entry(technique).or_default() += tally.incidents;
    }
    println!("{total:?}\n{by_kind:?}\nincidents: {by_technique:?}");
    assert_eq!(total.runs, seeds);
    // What is drawn takes place: enough of everything, on every technique that can outlive a death.
    // Four of twelve techniques can, and the limits are those of four of ten.
    let share = seeds * 10 / 12;
    assert!(total.returned > 20 * seeds && total.incidents > share / 5, "{total:?}");
    assert!(total.quarantined > share / 50 && total.restarted > share / 10, "{total:?}");
    let kinds = "peace switched interrupted deaths scribble flood garbage foreign-id wrong-epoch repeat gap \
                 unknown-venue forge feign lose hold comebacks";
    for kind in kinds.split(' ') {
        assert!(by_kind.contains_key(kind), "no run with {kind}: {by_kind:?}");
    }
    for technique in ["spsc-mux", "array-queue", "linked", "channel"] {
        assert!(by_technique[technique] > share / 50, "{technique}: {by_technique:?}");
    }
}

/// Seeds whose runs ended too early once. 3595: a kill switch near the end leaves a message queued
/// for a full inbox. 21154: a strategy falsely reports that it is done, before the engine has taken
/// its orders.
#[test]
fn run_ends_after_engine_has_drained() {
    for (seed, technique) in [("3595", "crossbeam-channel"), ("21154", "array-queue")] {
        output(&format!("simulate --seed {seed} --technique {technique}")).succeeds();
    }
}

/// Engine and exchanges die at drawn times, in the middle of what they do and of coming back,
/// together and with strategies.
#[test]
fn engine_and_exchanges_come_back_in_hundreds_of_runs() {
    let seeds = if slow() { 10_000 } else { 80 };
    let asked = SimulationOptions { recovery_only: true, ..SimulationOptions::default() };
    let all = simulate_all(seeds, &techniques(), &asked, |_| {}).unwrap();
    assert!(all.failed.is_empty(), "{:#?}", all.failed);
    let mut total = SimulationTotals::default();
    all.by.values().for_each(|tally| total.merge(tally));
    println!("{total:?}");
    assert_eq!((total.runs, all.by.len()), (seeds, 1), "{:?}", all.by);
    // Strategies that operators retire send no more.
    assert!(total.returned > 15 * seeds && total.recoveries > seeds, "{total:?}");
    assert!(total.restarted > seeds / 10 && total.standby_recoveries > seeds / 4, "{total:?}");
    // Of those in which reports wait for the disk half are to lose their machine: some are over
    // before.
    assert!(total.machine_crashes > seeds / 20, "{total:?}");
    // A run that is over holds nothing open any more: of a hundred whose journals stayed there
    // would be hundreds.
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 300, "{open} descriptors");
    // Another time, on other threads, in other folders: the same.
    let [once, again] = [(); 2].map(|()| simulate_all(8, &techniques(), &asked, |_| {}).unwrap());
    assert_eq!(again.by, once.by);
}

fn line(trial: &Trial) -> String {
    format!(
        "{} {} {}: sent {} returned {} incidents {} quarantined {} restarted {} digest {:016x}\n",
        trial.seed,
        trial.technique,
        trial.kind.name(),
        trial.totals.sent,
        trial.totals.returned,
        trial.totals.incidents,
        trial.totals.quarantined,
        trial.totals.restarted,
        trial.digest
    )
}

#[test]
fn same_seed_gives_same_run_on_every_machine() {
    let techniques = techniques();
    let options = SimulationOptions::default();
    let lines = |seeds: std::ops::Range<u64>| {
        let mut text = String::new();
        for seed in seeds {
            // An event in the surroundings is drawn apart: without it, a run is what it always was.
            let scenario = options.scenario(seed, draw_technique(seed, &techniques)).unwrap();
            let trial = simulate(scenario.without_surroundings(), None).unwrap().judge();
            assert_eq!(trial.broken, Vec::<String>::new(), "seed {seed}");
            text.write_str(&line(&trial)).unwrap();
        }
        text
    };
    // Twice, on two threads.
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| lines(0..GOLDEN));
        let second = scope.spawn(|| lines(0..GOLDEN / 4));
        (first.join().unwrap(), second.join().unwrap())
    });
    assert!(first.starts_with(&second));
    if std::env::var_os("BULKHEAD_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(GOLDEN_FILE, &first).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN_FILE).unwrap();
    for (found, kept) in first.lines().zip(golden.lines()) {
        assert_eq!(
            found, kept,
            "a change of behaviour: if it is meant, BULKHEAD_GOLDEN=write writes the file again"
        );
    }
    assert_eq!(first.lines().count(), golden.lines().count());
}

/// With their events in the surroundings, too.
#[test]
fn same_seed_gives_same_surroundings() {
    let totals = |seed| {
        let trial = trial(seed, draw_technique(seed, &techniques()), &SimulationOptions::default()).unwrap();
        assert_eq!(trial.broken, Vec::<String>::new(), "seed {seed}");
        line(&trial)
    };
    for seed in 0..GOLDEN / 2 {
        assert_eq!(totals(seed), totals(seed));
    }
}

#[test]
fn each_broken_ring_is_found() {
    for technique in [Technique::default(), Technique::from_link::<ArrayQueue>()] {
        for defect in Defect::ALL {
            let found = (0..200).filter_map(|seed| {
                let scenario = Scenario::draw(seed, technique).unwrap().without_surroundings();
                let broken = |scenario| match simulate(scenario, Some(*defect)) {
                    Ok(simulated) => simulated.judge().broken,
                    Err(what) => vec![what],
                };
                (scenario.kind == ScenarioKind::Peace).then(|| (seed, broken(scenario)))
            });
            // Among the first runs in which nothing else goes wrong.
            let found = found.take(10).find(|(_, broken)| !broken.is_empty());
            println!("{technique} {defect}: {found:?}");
            assert!(found.is_some(), "a {technique} that {defect} was not found in 10 runs");
        }
    }
}

#[test]
fn each_log_that_lies_is_found() {
    for lie in LogCorruption::ALL {
        let mut tried = 0;
        for seed in 0..800 {
            let scenario = Scenario::draw(seed, Technique::default()).unwrap().without_surroundings();
            // Every thread's log has some records then.
            let told_in =
                if *lie == LogCorruption::Passes { ScenarioKind::Switched } else { ScenarioKind::Peace };
            if scenario.kind != told_in
                || scenario.plan.trading().orders.contains(&0)
                || scenario.plan.trading().venues > 1
            {
                continue;
            }
            let mut simulated = simulate(scenario, None).unwrap();
            assert_eq!(simulated.judge().broken, Vec::<String>::new());
            // Not every log has what the lie is about: the next one that has.
            let logs = simulated.logs.len();
            let mut turns = (tried..tried + logs).map(|turn| turn % logs);
            let Some(whose) = turns.find(|whose| lie.apply(&mut simulated.logs[*whose], seed)) else {
                assert_eq!(
                    *lie,
                    LogCorruption::Passes,
                    "not every switch has come behind an order that it concerns"
                );
                continue;
            };
            let name = &simulated.scenario.plan.threads[whose].name;
            let broken = simulated.judge().broken;
            assert!(!broken.is_empty(), "seed {seed}: the log of {name} lies ({lie}) and is believed");
            if *lie == LogCorruption::Passes {
                assert!(broken[0].contains("Killed"), "{broken:?}");
            }
            tried += 1;
            if tried == 12 {
                break;
            }
        }
        assert_eq!(tried, 12, "{lie}");
    }
}

#[test]
fn a_failing_seed_is_named_and_replays() {
    let found = output("simulate --seeds 60 --technique spsc-mux --broken doubles").fails(1, &[]);
    let again = found.stderr.lines().find_map(|line| line.trim().strip_prefix("replay: launcher ")).unwrap();
    let (once, twice) = (output(again).fails(1, &[]), output(again));
    assert_eq!(once.stdout, twice.stdout);
    assert!(found.stderr.contains(once.stderr.trim()), "{found:?}\n{once:?}");
}

#[test]
fn the_command_tells_what_it_did() {
    let json = output("simulate --seeds 50 --json");
    let value = json.json();
    assert_eq!((&value["total"]["runs"], &value["failed"]), (&50.into(), &serde_json::json!([])));
    assert_eq!(json.succeeds(), output("simulate --seeds 50 --json").stdout, "independent of the threads");
    let recovery = output("simulate --crash-recovery --seed 1").stdout;
    assert!(recovery.contains(" recovered;"), "{recovery}");
    assert!(recovery.contains("\nNo promise was broken.\n"), "{recovery}");
    assert!(recovery.trim_end().ends_with(&Fitness::simulated().sentence()), "{recovery}");
    // The name of version 0.2 is still accepted.
    assert_eq!(output("simulate --comebacks --seed 1").succeeds(), recovery);
    let wrong = output("simulate --seeds 60 --technique spsc-mux --broken drops").fails(1, &[]);
    let broken = wrong.stdout.lines().rev().nth(1).unwrap_or_default();
    assert!(broken.starts_with("A promise was broken in ") && broken.ends_with("; see above."), "{broken}");
    let people = output("simulate --seeds 10").succeeds();
    assert!(people.contains("\nNo promise was broken in 10 runs.\n"), "{people}");
    let one = output("simulate --seed 3").stdout;
    assert!(one.starts_with("seed 3: "), "{one}");
    output("simulate --technique pipe").fails(2, &["--technique pipe"]);
}
