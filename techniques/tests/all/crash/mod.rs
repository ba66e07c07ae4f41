//! Real processes killed by SIGKILL at every instruction of the release build's push and pop, and
//! the effects on the others.
//!
//! A *victim* (`victim/`) is traced: it is stopped before the first instruction of one push,
//! executes a number of instructions, and is killed. Then the ring is repaired as in a run: the
//! kernel confirms the death, the fence is set, the consumer retires the producer. All messages of
//! the others must arrive, whole and in order, and all of the victim except perhaps the one in
//! flight. The ring must work with its full capacity for two laps, and for two more with a
//! successor.
//!
//! `cargo test --release -p techniques --test all crash:: -- --nocapture` prints the numbers;
//! `BULKHEAD_SLOW=1` tries ten times as much.

mod bed;
mod boards;
mod commands;
mod consumers;
mod deaths;
pub mod report;
mod retirements;
mod setups;
mod stalls;
mod victim;

use bed::TestBed;
use report::{CrashReport, TrialCounts, is_slow, on_all_cores};
use setups::SetUp;
use techniques::Technique;
use techniques::with_link;

fn between_processes() -> Vec<Technique> {
    Technique::all().into_iter().filter(|technique| technique.crosses_processes()).collect()
}

fn resumable() -> Vec<Technique> {
    between_processes().into_iter().filter(|technique| technique.info().consumer_resumable).collect()
}

/// Runs `work` for every suitable state of these techniques, shifted by `round`, on all cores.
fn in_all_states(
    techniques: &[Technique],
    round: u64,
    report: &CrashReport,
    is_fit: impl Fn(&SetUp) -> bool,
    work: impl Fn(Technique, &SetUp) -> TrialCounts + Sync,
) {
    // To run a single technique: `BULKHEAD_ONLY=linked`.
    let only = std::env::var("BULKHEAD_ONLY").unwrap_or_default();
    let mut jobs = Vec::new();
    for &technique in techniques.iter().filter(|technique| technique.name().contains(&only)) {
        let run = bed::run(technique);
        let states = with_link!(technique, T => setups::set_ups(technique, TestBed::<T>::new(&run).capacity));
        // Seven is coprime to every ring size here.
        let shift = |set_up: SetUp| set_up.shifted(7 * round);
        jobs.extend(states.into_iter().filter(&is_fit).map(shift).map(|set_up| (technique, set_up)));
    }
    on_all_cores(jobs, |(technique, set_up)| {
        let mut tally = work(technique, &set_up);
        tally.add("set-ups", 1);
        report.add(technique, tally);
    });
}

/// Prints the report. It may have no violation, and every boundary must have been tried.
fn assert_clean(report: &CrashReport) {
    assert_eq!(report.print(), 0, "violations");
    assert_eq!(report.sum("boundaries"), report.sum("all boundaries"), "100% of the boundaries");
}

/// `in_all_states!(techniques, round, report, is_fit, trial)`: as [`in_all_states`], with a bed of
/// the technique for each trial.
macro_rules! in_all_states {
    ($techniques:expr, $round:expr, $report:expr, $is_fit:expr, $trial:path) => {
        in_all_states(&$techniques, $round, &$report, $is_fit, |technique, set_up| {
            let run = bed::run(technique);
            with_link!(technique, T => $trial(&mut TestBed::<T>::new(&run), set_up))
        })
    };
}

/// Begins a report; `None`, with the reason printed, if processes cannot be traced here.
fn begin(title: &'static str, columns: &'static [&'static str]) -> Option<CrashReport> {
    match victim::refusal() {
        None => Some(CrashReport::new(title, columns)),
        Some(reason) => {
            println!("SKIPPED, NOTHING WAS PROVED: {reason}");
            None
        }
    }
}

fn min_deaths() -> u64 {
    if is_slow() { 100_000 } else { 7_000 }
}

#[test]
fn producer_may_die_at_every_instruction() {
    let columns = &[
        "set-ups",
        "boundaries",
        "all boundaries",
        "distinct states",
        "deaths",
        "interfered",
        "passed over",
        "waited for slow producer",
        "violations",
    ];
    let Some(report) = begin("producers that died at an instruction of their push", columns) else { return };
    for round in 0.. {
        let is_fit = |set_up: &SetUp| round == 0 || !set_up.interrupts();
        in_all_states!(between_processes(), round, report, is_fit, deaths::try_all_boundaries);
        if report.sum("deaths") >= min_deaths() {
            break;
        }
    }
    assert_clean(&report);
}

#[test]
fn consumer_may_die_at_every_instruction() {
    let columns = &[
        "set-ups",
        "boundaries",
        "all boundaries",
        "distinct states",
        "deaths",
        "received again",
        "taken",
        "violations",
    ];
    let Some(report) = begin("consumers that died at an instruction of their pop", columns) else { return };
    for round in 0..if is_slow() { 10 } else { 1 } {
        let is_fit = |set_up: &SetUp| !set_up.interrupts();
        in_all_states!(resumable(), round, report, is_fit, consumers::try_all_boundaries);
    }
    assert_clean(&report);
}

#[test]
fn consumer_may_die_during_retirement() {
    let columns = &["set-ups", "distinct states", "deaths", "violations"];
    let Some(report) = begin("consumers that died while they retired a producer", columns) else { return };
    in_all_states!(resumable(), 0, report, SetUp::is_fill_only, retirements::try_all_boundaries);
    assert_eq!(report.print(), 0, "violations");
}

#[test]
fn stalled_producer_is_never_treated_as_dead() {
    let title = "producers that stalled at an instruction of their push, and then continued";
    let columns = &[
        "set-ups",
        "boundaries",
        "all boundaries",
        "stalled",
        "treated as dead",
        "sent later",
        "violations",
    ];
    let Some(report) = begin(title, columns) else { return };
    in_all_states!(between_processes(), 0, report, |_| true, stalls::stall_at_all_boundaries);
    assert_clean(&report);
    assert_eq!(report.sum("treated as dead"), 0);
}

#[test]
fn repair_of_running_producer_is_harmful() {
    let title = "the rule broken: stalled producers were retired in their push, and then continued";
    let columns =
        &["set-ups", "boundaries", "harmed", "torn", "twice or out of order", "lost", "stuck", "damage"];
    let Some(report) = begin(title, columns) else { return };
    let in_memory = between_processes().into_iter().filter(|technique| !technique.is_kernel());
    let in_memory: Vec<_> = in_memory.collect();
    in_all_states!(
        in_memory,
        0,
        report,
        |set_up: &SetUp| set_up.thorough,
        stalls::repair_early_at_all_boundaries
    );
    report.print();
    assert!(report.all_have("harmed"), "otherwise the tests of dead and slow producers would detect nothing");
}
