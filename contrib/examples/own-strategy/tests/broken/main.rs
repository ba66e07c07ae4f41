//! A launcher with broken rings and strategies: each defect is found in the simulation and in real
//! runs under kills, and the good ring stays valid. The program is the launcher and each process of
//! its runs if its first word is a command of the launcher's, otherwise a test program.
#![forbid(unsafe_code)]

mod dying;
mod rings;
mod runs;
mod simulated;

use libtest_mimic::{Arguments, Trial};
use std::process::{Command, ExitCode, Output, Stdio};

/// A name and what it does, which panics where something does not hold.
type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("the_good_rings_hold_in_the_simulation", simulated::the_good_rings_hold),
    ("each_broken_ring_is_found_by_the_simulation", simulated::each_broken_ring_is_found_and_replays),
    ("the_good_rings_are_valid_under_kills", runs::the_good_rings_are_valid),
    ("each_broken_ring_is_found_under_kills", runs::each_broken_ring_is_found),
    ("a_ring_that_forgets_the_dead_is_found", runs::a_ring_that_forgets_the_dead_is_found),
    ("a_panicking_thread_leaves_others_trading", dying::a_panicking_thread_leaves_others_trading),
    ("a_panicking_thread_is_restarted", dying::a_panicking_thread_is_restarted),
    ("threads_that_panic_together_are_restarted", dying::threads_that_panic_together_are_restarted),
    ("a_sleeping_thread_finds_its_fence", dying::a_sleeping_thread_finds_its_fence),
];

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.is_some_and(|word| ["run", "simulate", "role"].contains(&word.as_str())) {
        return rings::harness().main();
    }
    let threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|count| count.parse().ok());
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(threads);
    let trial = |(name, test): &Test| {
        let test = *test;
        Trial::test(*name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit_code()
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
