//! Real processes that die, by SIGKILL, at every instruction of the release build's push and pop;
//! and what the others make of it.
//!
//! A *victim* (`victim/`) is traced: it stands before the first instruction of one push, does so
//! many instructions, and is killed. Then the ring is repaired as in a run (the kernel confirms the
//! death, the fence goes up, the consumer retires), and everything that the others sent must come,
//! whole and in order, of the dead one everything but perhaps the message on its way, and the ring
//! must go on to its last place, for two laps and two more with a new producer in the dead one's
//! place.
//!
//! `cargo test --release -p techniques --test all crash:: -- --nocapture` prints the numbers;
//! `BULKHEAD_SLOW=1` tries ten times as much.

mod batches;
mod bed;
mod boards;
mod consumers;
mod deaths;
mod orders;
mod report;
mod retirements;
mod setups;
mod victim;
mod zombies;

use bed::Bed;
use report::{CrashReport, Tally, is_slow, on_all_cores};
use setups::SetUp;
use shm::ring::spsc_mux::SpscMux;
use techniques::Technique;
use techniques::with_link;

/// The techniques between processes.
fn between_processes() -> Vec<Technique> {
    Technique::all().into_iter().filter(|technique| technique.crosses_processes()).collect()
}

/// Those over memory that they share.
fn in_memory() -> Vec<Technique> {
    between_processes().into_iter().filter(|technique| !technique.is_kernel()).collect()
}

/// Those whose consumer can be replaced.
fn resumable() -> Vec<Technique> {
    between_processes().into_iter().filter(|technique| technique.record().resumable).collect()
}

/// Does something with every state of these techniques that is fit for it, `round` times moved on,
/// on all cores.
fn in_all_states(
    techniques: &[Technique],
    round: u64,
    report: &CrashReport,
    is_fit: impl Fn(&SetUp) -> bool,
    work: impl Fn(Technique, &SetUp) -> Tally + Sync,
) {
    // For who looks for something: `BULKHEAD_ONLY=linked`.
    let only = std::env::var("BULKHEAD_ONLY").unwrap_or_default();
    let mut jobs = Vec::new();
    for &technique in techniques.iter().filter(|technique| technique.name().contains(&only)) {
        let run = bed::run(technique);
        let states = with_link!(technique, T => setups::all(technique, Bed::<T>::new(&run).room));
        // Seven places are around every ring here after a while.
        let move_on = |set_up: SetUp| set_up.moved_on(7 * round);
        jobs.extend(states.into_iter().filter(&is_fit).map(move_on).map(|set_up| (technique, set_up)));
    }
    on_all_cores(jobs, |(technique, set_up)| {
        let mut tally = work(technique, &set_up);
        tally.add("set-ups", 1);
        report.add(technique, tally);
    });
}

/// `with_bed!(technique, bed => expression)`: the expression with a bed of that technique.
macro_rules! with_bed {
    ($technique:expr, $bed:ident => $body:expr) => {{
        let run = bed::run($technique);
        with_link!($technique, T => {
            let $bed = &mut Bed::<T>::new(&run);
            $body
        })
    }};
}

/// Whether processes can be traced here; says loudly if not.
fn may_trace() -> bool {
    let refusal = victim::refusal();
    if let Some(why) = &refusal {
        println!("SKIPPED, NOTHING WAS PROVED: {why}");
    }
    refusal.is_none()
}

/// How many deaths of producers there must be at least.
fn enough() -> u64 {
    if is_slow() { 100_000 } else { 10_000 }
}

#[test]
fn a_producer_may_die_at_every_instruction() {
    if !may_trace() {
        return;
    }
    const COLUMNS: &[&str] = &[
        "set-ups",
        "boundaries",
        "of",
        "distinct states",
        "deaths",
        "meddled with",
        "passed over",
        "waited for the slow",
        "violations",
    ];
    let report = CrashReport::new("producers that died at an instruction of their push", COLUMNS);
    for round in 0.. {
        let is_fit = |set_up: &SetUp| round == 0 || !set_up.interrupts();
        in_all_states(
            &between_processes(),
            round,
            &report,
            is_fit,
            |technique, set_up| with_bed!(technique, bed => deaths::exhaust(bed, set_up)),
        );
        if report.sum("deaths") >= enough() {
            break;
        }
    }
    assert_eq!(report.print(), 0, "violations");
    assert_eq!(report.sum("boundaries"), report.sum("of"), "100% of the boundaries");
}

#[test]
fn a_consumer_may_die_at_every_instruction() {
    if !may_trace() {
        return;
    }
    const COLUMNS: &[&str] =
        &["set-ups", "boundaries", "of", "distinct states", "deaths", "came again", "taken", "violations"];
    let report = CrashReport::new("consumers that died at an instruction of their pop", COLUMNS);
    for round in 0..enough() / 10_000 {
        let is_fit = |set_up: &SetUp| !set_up.interrupts();
        in_all_states(
            &resumable(),
            round,
            &report,
            is_fit,
            |technique, set_up| with_bed!(technique, bed => consumers::exhaust(bed, set_up)),
        );
    }
    assert_eq!(report.print(), 0, "violations");
    assert_eq!(report.sum("boundaries"), report.sum("of"), "100% of the boundaries");
}

/// Of techniques that have batches of their own.
#[test]
fn either_end_may_die_at_every_instruction_of_a_batch() {
    if !may_trace() {
        return;
    }
    const COLUMNS: &[&str] =
        &["set-ups", "boundaries", "of", "distinct states", "deaths", "in part", "violations"];
    let own = [Technique::of::<SpscMux>()];
    for (title, exhaust) in [
        (
            "producers that died at an instruction of a batch",
            batches::producers as fn(Technique, &SetUp) -> Tally,
        ),
        ("consumers that died at an instruction of a batch", batches::consumers),
    ] {
        let report = CrashReport::new(title, COLUMNS);
        in_all_states(&own, 0, &report, |set_up| !set_up.interrupts(), exhaust);
        assert_eq!(report.print(), 0, "violations");
        assert_eq!(report.sum("boundaries"), report.sum("of"), "100% of the boundaries");
    }
}

#[test]
fn a_consumer_may_die_in_the_middle_of_a_retirement() {
    if !may_trace() {
        return;
    }
    const COLUMNS: &[&str] = &["set-ups", "distinct states", "deaths", "violations"];
    let report = CrashReport::new("consumers that died while they retired a producer", COLUMNS);
    in_all_states(
        &resumable(),
        0,
        &report,
        SetUp::takes_nothing,
        |technique, set_up| with_bed!(technique, bed => retirements::exhaust(bed, set_up)),
    );
    assert_eq!(report.print(), 0, "violations");
}

#[test]
fn a_producer_that_stands_still_at_any_instruction_is_not_dead() {
    if !may_trace() {
        return;
    }
    const COLUMNS: &[&str] =
        &["set-ups", "boundaries", "of", "stood still", "taken for dead", "sent after all", "violations"];
    let report = CrashReport::new(
        "producers that stood still at an instruction of their push, and then went on",
        COLUMNS,
    );
    in_all_states(
        &between_processes(),
        0,
        &report,
        |_| true,
        |technique, set_up| with_bed!(technique, bed => zombies::stand_still(bed, set_up)),
    );
    assert_eq!(report.print(), 0, "violations");
    assert_eq!(report.sum("taken for dead"), 0);
    assert_eq!(report.sum("boundaries"), report.sum("of"), "100% of the boundaries");
}

#[test]
fn a_repair_of_the_living_would_do_harm() {
    if !may_trace() {
        return;
    }
    const COLUMNS: &[&str] =
        &["set-ups", "boundaries", "harmed", "torn", "twice or out of order", "lost", "stuck", "damage"];
    let title = "the rule broken: producers that stood still in their push were retired, and then went on";
    let report = CrashReport::new(title, COLUMNS);
    let is_fit = |set_up: &SetUp| set_up.thorough;
    in_all_states(
        &in_memory(),
        0,
        &report,
        is_fit,
        |technique, set_up| with_bed!(technique, bed => zombies::break_the_rule(bed, set_up)),
    );
    report.print();
    assert!(report.all_have("harmed"), "the tests of the dead and the slow would find nothing either");
}
