//! The launcher killed before and after its system calls: the next start is clean, each time. An
//! exchange killed during its recovery.

mod births;
mod calls;
mod recovery;
mod series;
mod tracer;
mod trial;

use crate::common::slow;
use series::{Series, series};
use trial::CountedStops;

/// Interval of kills, in stops that change state, and in stops of any kind. `BULKHEAD_SLOW=1`:
/// every stop. Two runs make slightly different calls, so the number of a stop sometimes means
/// another call; the calls that change the world are equal in each run, and all of them are met.
fn levels(isolation: &'static str, interrupted: bool, (changes, all): (usize, usize)) {
    let (changes, all) = if slow() { (1, 1) } else { (changes, all) };
    for (counted, step) in [(CountedStops::Changes, changes), (CountedStops::All, all)] {
        series(&Series { isolation, interrupted, counted, step });
    }
}

#[test]
fn killed_anywhere_the_next_start_is_clean() {
    levels("process", false, (24, 1024));
}

#[test]
fn killed_anywhere_with_threads_the_next_start_is_clean() {
    levels("thread", false, (48, 1024));
}

#[test]
fn sandboxed_launcher_killed_anywhere_leaves_clean_start() {
    levels("sandbox", false, (48, 1024));
}

#[test]
fn interrupted_and_killed_anywhere_the_next_start_is_clean() {
    levels("process", true, (48, 1024));
}
