//! The launcher is killed before and after its system calls; each next start must be clean. An
//! exchange and an engine are killed during their recovery.

mod calls;
mod recovery;
mod series;
pub mod spawn_tracer;
pub mod tracer;
mod trial;

use crate::common::slow;
use series::{Series, series};
use trial::CountedStops;

/// Makes two series with the given intervals of kills: in stops that change state, and in stops of
/// any kind. `BULKHEAD_SLOW=1`: every stop. Two runs make slightly different calls, so the same
/// stop number may be another call. The calls that change state are equal in each run, so all of
/// them are met.
fn levels(isolation: &'static str, interrupted: bool, (changes, all): (usize, usize)) {
    let (changes, all) = if slow() { (1, 1) } else { (changes, all) };
    for (counted, step) in [(CountedStops::Changes, changes), (CountedStops::All, all)] {
        series(&Series { isolation, interrupted, counted, step });
    }
}

#[test]
fn launcher_killed_at_any_syscall_leaves_clean_start() {
    levels("process", false, (48, 4096));
}

#[test]
fn threaded_launcher_killed_at_any_syscall_leaves_clean_start() {
    levels("thread", false, (96, 4096));
}

#[test]
fn sandboxed_launcher_killed_at_any_syscall_leaves_clean_start() {
    levels("sandbox", false, (96, 4096));
}

#[test]
fn launcher_killed_while_interrupted_leaves_clean_start() {
    levels("process", true, (96, 4096));
}
