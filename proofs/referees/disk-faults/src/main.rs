//! Makes the system calls of a journal fail, one after the other: see README.md.
//!
//! ```text
//! disk-faults strace FOLDER              every call of each kind, by strace; and the broken variants
//! disk-faults fiu FOLDER RUNS            random failures, by fiu-run
//! disk-faults victim FOLDER MODE BROKEN  the program whose calls fail: MODE is every or group
//! disk-faults check FOLDER LAST          recovers what a victim left, which has at least LAST records
//! ```

mod random_faults;
mod single_faults;
mod trial;
mod victim;

use std::path::Path;
use victim::Broken;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let code = match words[..] {
        ["victim", folder, mode, broken] => {
            let broken = match broken {
                "reports-early" => Broken::ReportsEarly,
                "hides-errors" => Broken::HidesErrors,
                _ => Broken::No,
            };
            victim::run(Path::new(folder), mode, broken)
        }
        ["check", folder, last] => match victim::check(Path::new(folder)) {
            Ok(found) if last.parse().is_ok_and(|last: u64| found >= last) => {
                println!("{found}");
                0
            }
            other => {
                eprintln!("{last} records were acknowledged: {other:?}");
                1
            }
        },
        ["strace", folder] => single_faults::run(Path::new(folder)),
        ["fiu", folder, runs] => random_faults::run(Path::new(folder), runs.parse().unwrap_or(100)),
        _ => {
            eprintln!("usage: disk-faults strace FOLDER | fiu FOLDER RUNS | victim … | check FOLDER LAST");
            2
        }
    };
    std::process::exit(code);
}
