//! The sandbox of a program that is not ours, in two steps.
//!
//! A program is linked, starts its runtime and opens files before its first line runs: with what a strategy keeps it could not even start.
//! And what it does to itself later is its own to leave out. So:
//!
//! 1. **Before it is there** [`enclose`] confines the process that becomes it: no privileges, no socket, no process of its own, no file but to
//!    read; and what a strategy does not keep goes through a [gate](super::Gate), which is open for now.
//! 2. **When it attaches** the library confines it as our strategies are ([`super::PROGRAM`]). Then the gate is closed from outside, whatever
//!    the program has done, and [`unconfined`] sees whether it has.

use super::limits;
use super::{Files, SandboxError, calls, gate, landlock, privileges, starting};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The folders of which a program sees nothing: other programs' sockets, files and memory.
pub const CLOSED: [&str; 3] = ["/dev", "/run", "/tmp"];
/// What it reads of them all the same.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The filters that a program has when it starts, beside those of who starts it.
const FILTERS_BEFORE: u32 = 3;
/// Those that it puts up when it attaches.
const FILTERS_ATTACHED: u32 = 2;

/// The threads that a program may have when it has attached: the one that trades, and the one that watches the launcher.
const THREADS: usize = 2;

/// Confines the calling process, which has one thread and is about to execute somebody's program, to what that needs to start, and hands its gate
/// over at that socket. From the closed folders it sees these folders and files. What it has open it keeps.
///
/// # Errors
/// [`SandboxError::Threads`], or the layer that could not be put up. What was put up stays: the process should end.
pub fn enclose(
    sees: &[PathBuf],
    handed_to: BorrowedFd<'_>,
    weaker_is_fine: bool,
) -> Result<(), SandboxError> {
    super::alone()?;
    let seen = seen(sees).map_err(SandboxError::Unknown)?;
    let seen: Vec<&Path> = seen.iter().map(PathBuf::as_path).collect();
    let read = DEVICES.map(Path::new).into_iter().filter(|device| device.exists());
    let read: Vec<&Path> = read.collect();
    privileges::give_up().map_err(SandboxError::Privileges)?;
    landlock::restrict(&Files { read: &read, programs: &seen, ..Files::default() }, weaker_is_fine)?;
    limits::set(limits::STARTING).map_err(SandboxError::Limits)?;
    let kept = || calls::TRADING.iter().chain(starting::KEPT);
    let gate = gate::put_up(kept().chain(gate::HANDING))
        .and_then(|gate| gate::hand_over(&gate, handed_to))
        .map_err(|error| SandboxError::Calls(error.to_string()));
    gate?;
    calls::restrict(kept().chain(starting::STARTING).chain(starting::older::STARTING))?;
    // The last one: of two that refuse a call, the later one says how.
    calls::hide(starting::UNSEEN.iter())
}

/// What a program reads, lists and executes: everything but the closed folders, and of those what is given.
fn seen(given: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let closed = CLOSED.map(PathBuf::from);
    let mut seen = Vec::new();
    for entry in fs::read_dir("/")? {
        // A link may lead into a closed one, or nowhere.
        let Ok(path) = entry?.path().canonicalize() else { continue };
        if !closed.iter().any(|closed| path.starts_with(closed) || closed.starts_with(&path)) {
            seen.push(path);
        }
    }
    // Nor is all of a closed folder given by who stands in it.
    let given = given.iter().filter(|path| !closed.iter().any(|closed| closed.starts_with(path)));
    seen.extend(given.cloned());
    Ok(seen)
}

/// What a process, which says that it has attached, has not put up, in words; `None`: it is in its sandbox, or has ended. How many filters there are
/// is all that the kernel shows of them: who puts up others in their place is not found, and what the gate was closed to stays closed to it.
///
/// # Errors
/// Its status cannot be read: most often it is gone.
pub fn unconfined(pid: u32) -> io::Result<Option<String>> {
    let own = field(&fs::read_to_string("/proc/self/status")?, "Seccomp_filters").unwrap_or(0);
    let wanted = own + FILTERS_BEFORE + FILTERS_ATTACHED;
    let mut threads = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // One that has ended in between has nothing to say.
        let Ok(status) = fs::read_to_string(task?.path().join("status")) else { continue };
        threads += 1;
        if let Some(found) = lacks(&status, wanted) {
            return Ok(Some(found));
        }
    }
    Ok((threads > THREADS).then(|| format!("it has {threads} threads")))
}

fn field(status: &str, name: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

/// What a thread with that status has not put up. Kernels before 5.9 do not count filters.
fn lacks(status: &str, wanted: u32) -> Option<String> {
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    if state.is_none_or(|state| state.trim_start().starts_with(['Z', 'X'])) {
        return None;
    }
    for (name, least) in [("NoNewPrivs", 1), ("Seccomp", 2)] {
        match field(status, name) {
            Some(found) if found >= least => {}
            found => return Some(format!("{name} is {}", found.map_or("unknown".into(), |n| n.to_string()))),
        }
    }
    let found = field(status, "Seccomp_filters").filter(|found| *found < wanted)?;
    Some(format!("it has {found} filters of system calls instead of {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_a_filter_is_found() {
        let status = |state: &str, privileges: u32, mode: u32, filters: &str| {
            format!("Name:\tx\nState:\t{state}\nNoNewPrivs:\t{privileges}\nSeccomp:\t{mode}\n{filters}")
        };
        let count = "Seccomp_filters:\t5\n";
        assert_eq!(lacks(&status("S (sleeping)", 1, 2, count), 5), None);
        assert_eq!(lacks(&status("S (sleeping)", 1, 2, ""), 5), None, "a kernel that does not count them");
        assert_eq!(lacks(&status("Z (zombie)", 0, 0, ""), 5), None, "it has ended");
        for (status, wanted, words) in [
            (status("R (running)", 1, 2, count), 6, "5 filters of system calls instead of 6"),
            (status("R (running)", 0, 2, count), 5, "NoNewPrivs is 0"),
            (status("R (running)", 1, 0, count), 5, "Seccomp is 0"),
        ] {
            let found = lacks(&status, wanted).unwrap();
            assert!(found.contains(words), "{found}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no folders")]
    fn nobody_sees_a_closed_folder_by_standing_in_it() {
        let given = ["/tmp", "/", "/dev", "/tmp/mine", "/dev/shm/mine"].map(PathBuf::from);
        let seen = seen(&given).unwrap();
        // Where programs' libraries are; an emulator shows those of its own.
        let is_open = |path: &PathBuf| path.starts_with("/usr") || path.starts_with("/lib");
        assert!(seen.iter().any(is_open) && seen.contains(&"/tmp/mine".into()), "{seen:?}");
        for path in ["/tmp", "/", "/dev"] {
            assert!(!seen.contains(&path.into()), "{path}: {seen:?}");
        }
    }
}
