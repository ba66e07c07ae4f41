//! The launcher killed before and after its system calls: the next start is clean, each time. An
//! exchange killed so while it comes back.

mod births;
mod calls;
mod recovery;
mod series;
mod tracer;
mod trial;

use series::{Series, series};
use trial::Counted;

/// `BULKHEAD_SLOW=1`: every stop of every level. Two runs do not make quite the same calls, so the
/// number of a stop means another call now and then; the calls that change the world are the same
/// in each, and all of them are met.
fn slow() -> bool {
    std::env::var_os("BULKHEAD_SLOW").is_some_and(|value| value == "1")
}

/// Kills at every so many stops that change the world, and at every so many of all.
fn levels(isolation: &'static str, interrupted: bool, (changes, all): (usize, usize)) {
    let (changes, all) = if slow() { (1, 1) } else { (changes, all) };
    for (counted, step) in [(Counted::Changes, changes), (Counted::All, all)] {
        series(&Series { isolation, interrupted, counted, step });
    }
}

#[test]
fn killed_anywhere_the_next_start_is_clean() {
    levels("process", false, (4, 128));
}

#[test]
fn killed_anywhere_with_threads_the_next_start_is_clean() {
    levels("thread", false, (8, 128));
}

#[test]
fn killed_anywhere_with_a_sandbox_the_next_start_is_clean() {
    levels("sandbox", false, (8, 128));
}

#[test]
fn interrupted_and_killed_anywhere_the_next_start_is_clean() {
    levels("process", true, (8, 128));
}
