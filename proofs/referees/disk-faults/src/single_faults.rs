//! Every system call of each kind fails once, by strace's injection of faults.

use crate::trial::{Ending, Place};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// System calls and the errors that they return. The first ones change the disk: when one of them
/// fails in the journal's directory, the journal must report an error.
const CALLS: [(&str, &str, bool); 21] = [
    ("fdatasync", "EIO", true),
    ("fsync", "EIO", true),
    ("write", "EIO", true),
    ("write", "ENOSPC", true),
    ("pwrite64", "EIO", true),
    ("fallocate", "ENOSPC", true),
    ("fallocate", "EOPNOTSUPP", false),
    ("ftruncate", "EIO", true),
    ("rename", "EIO", true),
    ("unlink", "EIO", false),
    ("openat", "EMFILE", false),
    ("openat", "EIO", false),
    ("mmap", "ENOMEM", false),
    ("pread64", "EIO", false),
    ("read", "EIO", false),
    ("getdents64", "EIO", true),
    ("statx", "EIO", false),
    ("mkdir", "ENOSPC", false),
    ("flock", "ENOLCK", false),
    ("madvise", "ENOMEM", false),
    ("clone3", "EAGAIN", false),
];

/// The calls at which a victim is killed, so that nothing after them happens.
const KILLS: [&str; 5] = ["fdatasync", "fsync", "write", "rename", "unlink"];

/// The largest number of a call.
const MAX_NUMBER: u64 = 400;

struct Trial<'a> {
    root: &'a Path,
    mode: &'a str,
    broken: &'a str,
}

impl Trial<'_> {
    /// Runs a victim whose call number `number` fails. Returns `None` if it makes fewer calls, else
    /// how it ended, and what is wrong.
    fn run(&self, call: &str, fault: &str, number: u64) -> Option<(Ending, Result<(), String>, bool)> {
        let place = Place::new(self.root);
        let mut command = Command::new("strace");
        let is_killing = fault.starts_with("signal");
        // With the filter, strace 6.1 sends a signal only at the first call.
        command.args(if is_killing { &["-f"][..] } else { &["-f", "--seccomp-bpf"] });
        command.args(["-q", "-y", "-e", "signal=none", "-o"]).arg(&place.log);
        command.args(["-e", &format!("trace={call}")]);
        command.args(["-e", &format!("inject={call}:{fault}:when={number}")]);
        command.arg(std::env::current_exe().expect("a program has a path"));
        command.arg("victim").arg(&place.folder).args([self.mode, self.broken]);
        let ending = place.run(&mut command);
        let log = fs::read_to_string(&place.log).unwrap_or_default();
        if if is_killing { ending != Ending::Killed } else { !log.contains("(INJECTED)") } {
            return None;
        }
        let folder = place.folder.to_string_lossy().into_owned();
        let is_in_journal = log.lines().any(|line| line.contains("(INJECTED)") && line.contains(&folder));
        let judged = place.judge(&ending);
        Some((ending, judged, is_in_journal))
    }
}

fn count_faults(trial: &Trial<'_>, limit: u64, failures: &mut Vec<String>) {
    let errors = CALLS.iter().map(|(call, error, must)| (*call, format!("error={error}"), *must));
    let kills = KILLS.iter().map(|call| (*call, "signal=KILL".to_owned(), false));
    for (call, fault, must_report) in errors.chain(kills) {
        let mut endings: BTreeMap<&str, u64> = BTreeMap::new();
        for number in 1..=limit {
            let Some((ending, judged, is_in_journal)) = trial.run(call, &fault, number) else { break };
            let word = match &ending {
                Ending::Complete => "complete",
                Ending::Error(_) => "error reported",
                Ending::Killed => "killed",
                Ending::NoMemory => "out of memory",
                Ending::Wrong(_) => "wrong",
            };
            *endings.entry(word).or_default() += 1;
            let judged = judged.and_then(|()| {
                let is_hidden = must_report && is_in_journal && ending == Ending::Complete;
                if is_hidden { Err("no error was reported".to_owned()) } else { Ok(()) }
            });
            if let Err(why) = judged {
                failures.push(format!("{} {call}:{fault}:when={number}: {why}", trial.mode));
            }
        }
        println!("{:<6} {call:<11} {fault:<17} {endings:?}", trial.mode);
    }
}

/// Makes every call of each kind fail once. Returns the exit code.
pub fn run(root: &Path) -> i32 {
    let mut failures = Vec::new();
    for mode in ["every", "group"] {
        count_faults(&Trial { root, mode, broken: "no" }, MAX_NUMBER, &mut failures);
    }
    failures.iter().for_each(|failure| println!("FAILED: {failure}"));
    let mut code = i32::from(!failures.is_empty());
    for (broken, call, fault) in
        [("reports-early", "fdatasync", "signal=KILL"), ("hides-errors", "fdatasync", "error=EIO")]
    {
        let trial = Trial { root, mode: "every", broken };
        let is_found =
            (1..=MAX_NUMBER).map_while(|number| trial.run(call, fault, number)).any(|(ending, judged, _)| {
                judged.is_err() || (broken == "hides-errors" && ending == Ending::Complete)
            });
        println!("a victim that {broken}: {}", if is_found { "found" } else { "NOT FOUND" });
        code |= i32::from(!is_found);
    }
    let _ = fs::remove_dir_all(root);
    code
}
