//! A launcher with broken rings and strategies: each defect is found in the simulation and in real
//! runs under kills, and the good ring stays valid. The program is the launcher and each process of
//! its runs if its first word is a command of the launcher's, otherwise a test program.
#![forbid(unsafe_code)]

mod dying;
mod rings;
mod runs;
mod simulated;

use dying::TECHNIQUES;
use libtest_mimic::{Arguments, Trial};
use rings::{FORGETS, RINGS};
use std::process::{Command, ExitCode, Output, Stdio};

/// A name, its cases, and what it does with one, which panics where something does not hold. Each
/// case is a test, so that the runs of one property do not wait for each other.
type Test = (&'static str, &'static [&'static str], fn(&str));

const TESTS: &[Test] = &[
    ("each_broken_ring_is_found_under_kills", &RINGS, runs::each_broken_ring_is_found),
    (
        "a_panicking_thread_leaves_others_trading",
        &TECHNIQUES,
        dying::a_panicking_thread_leaves_others_trading,
    ),
    ("a_sleeping_thread_finds_its_fence", &["continue", "restart"], dying::a_sleeping_thread_finds_its_fence),
    ("a_panicking_thread_is_restarted", &TECHNIQUES, dying::a_panicking_thread_is_restarted),
    ("threads_that_panic_together_are_restarted", &["all"], dying::threads_that_panic_together_are_restarted),
    ("the_good_rings_are_valid_under_kills", &RINGS, runs::the_good_rings_are_valid),
    ("a_ring_that_forgets_the_dead_is_found", &[FORGETS], runs::a_ring_that_forgets_the_dead_is_found),
    ("the_good_rings_hold_in_the_simulation", &RINGS, simulated::the_good_rings_hold),
    ("each_broken_ring_is_found_by_the_simulation", &RINGS, simulated::each_broken_ring_is_found_and_replays),
];

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.is_some_and(|word| ["run", "simulate", "role"].contains(&word.as_str())) {
        return rings::harness().main();
    }
    let threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|count| count.parse().ok());
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(threads);
    let trials = TESTS.iter().flat_map(|(name, cases, test)| {
        let trial = move |case: &&'static str| {
            let (case, test) = (*case, *test);
            Trial::test(format!("{name}::{case}"), move || {
                test(case);
                Ok(())
            })
        };
        cases.iter().map(trial)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Runs this program as the launcher with a defect; `OUT`: a fresh folder, `_`: a space in a word.
fn launcher(words: &str, defect: Option<&str>) -> Output {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let word = |word: &str| if word == "OUT" { folder.into() } else { word.replace('_', " ") };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(words.split_whitespace().map(word)).envs(defect.map(|defect| (rings::DEFECT, defect)));
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
