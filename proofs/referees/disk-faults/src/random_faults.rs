//! Calls of libc fail at random, several of them in one run, by fiu-run of libfiu.

use crate::trial::{Ending, Place};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Sets of libfiu's points of failure. Not among them: closing, and mappings. There Rust's standard
/// library panics itself.
const POINTS: [&[&str]; 3] = [
    &["posix/io/sync/*", "posix/io/rw/*", "posix/io/dir/rename", "posix/io/dir/unlink"],
    &["posix/io/rw/read/reduce", "posix/io/rw/pread/reduce", "posix/io/rw/write/reduce", "posix/io/rw/pread"],
    &["posix/io/oc/open", "posix/io/dir/opendir", "posix/io/dir/readdir", "posix/io/sync/*"],
];

/// Runs victims whose calls fail at random. Returns the exit code.
pub fn run(root: &Path, runs: u64) -> i32 {
    let mut endings: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failures = 0;
    for run in 0..runs {
        let points = POINTS[(run % 3) as usize];
        // From one failure in 20 calls to one in 1,000.
        let probability = [0.05, 0.01, 0.003, 0.001][(run / 3 % 4) as usize];
        let mode = if run / 12 % 2 == 0 { "every" } else { "group" };
        let place = Place::new(root);
        let mut command = Command::new("fiu-run");
        command.arg("-x");
        for point in points {
            command.args(["-c", &format!("enable_random name={point},probability={probability}")]);
        }
        command.arg(std::env::current_exe().expect("a program has a path"));
        command.arg("victim").arg(&place.folder).args([mode, "no"]);
        let ending = place.run(&mut command);
        let word = match &ending {
            Ending::Complete => "complete",
            Ending::Error(_) => "error reported",
            Ending::NoMemory => "out of memory",
            Ending::Killed | Ending::Wrong(_) => "wrong",
        };
        *endings.entry(word).or_default() += 1;
        if let Err(why) = place.judge(&ending) {
            failures += 1;
            println!("FAILED: {mode} {points:?} {probability}: {why}");
        }
    }
    println!("{runs} runs: {endings:?}");
    let _ = fs::remove_dir_all(root);
    i32::from(failures > 0)
}
