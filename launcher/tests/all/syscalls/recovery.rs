//! An exchange's successor killed before and after each of its system calls, from being told to go on until its threads run: the next one
//! comes back all the same, and nothing is lost or done twice.
//!
//! It is the spare that is traced, its first thread; the exchange before it is killed, and one that is started anew takes over from the
//! traced one's remains. All in one run.
#![expect(clippy::disallowed_methods, reason = "a tracee is waited for here and nowhere else")]

use super::calls::call_of;
use crate::common::{Launcher, family, signal, slow, wait_until};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// No stop for so long: the thread waits for those that it has started.
const QUIET: Duration = Duration::from_millis(400);
/// Between two deaths: until there is a spare that has followed the journal.
const APART: Duration = Duration::from_millis(60);

/// The run's newest process of that role but one.
fn newest(launcher: u32, role: &str, but: u32) -> Option<u32> {
    let of_role = |(pid, cmdline): &(u32, String)| cmdline.contains(&format!("role {role} ")) && *pid != but;
    family(launcher).into_iter().filter(of_role).map(|(pid, _)| pid).max()
}

/// Lets a tracee go on to its next stop.
fn on(task: Pid, by: Option<Signal>) {
    match ptrace::syscall(task, by) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(errno) => panic!("cannot resume {task}: {errno}"),
    }
}

/// Kills the living exchange and, at that stop behind its call to go on, the spare. `None`: there are not so many stops.
fn killed_at(stop: usize, living: u32, spare: u32, out: &Path) -> nix::Result<Option<String>> {
    let task = Pid::from_raw(spare as i32);
    ptrace::seize(task, Options::PTRACE_O_TRACESYSGOOD)?;
    ptrace::interrupt(task)?;
    let (mut seen, mut is_on, mut quiet) = (0, false, Instant::now());
    signal(living, "KILL");
    loop {
        match waitpid(task, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG))? {
            WaitStatus::StillAlive if is_on && quiet.elapsed() > QUIET => {
                ptrace::interrupt(task)?;
                waitpid(task, Some(WaitPidFlag::__WALL))?;
                ptrace::detach(task, None)?;
                return Ok(None);
            }
            WaitStatus::StillAlive => {
                assert!(quiet.elapsed() < Duration::from_secs(60), "the spare was never told to go on");
                std::thread::sleep(Duration::from_micros(20));
            }
            WaitStatus::PtraceSyscall(_) => {
                quiet = Instant::now();
                let call = call_of(task, task, out)?;
                is_on |= call.name == "read";
                seen += usize::from(is_on);
                if seen == stop {
                    kill(task, Signal::SIGKILL)?;
                    // The kernel lets it die, and tells its parent once the tracer knows.
                    while !matches!(waitpid(task, Some(WaitPidFlag::__WALL))?, WaitStatus::Signaled(..)) {}
                    return Ok(Some(call.what));
                }
                on(task, None);
            }
            WaitStatus::Stopped(_, signal) => on(task, Some(signal)),
            _ => on(task, None),
        }
    }
}

#[test]
fn a_successor_killed_at_any_system_call_of_its_recovery_leaves_nothing_undone() {
    let (step, window) = if slow() { (1, 240) } else { (12, 20) };
    let (launcher, lasts) = (Launcher::new(), format!("{window}s"));
    let orders = if slow() { "480k" } else { "40k" };
    let base = ["--venue", "book", "--venues", "1", "--exchange", "process", "--on-death", "restart"];
    let how =
        ["--idle", "park", "--isolation", "process", "--journal", "process", "--liveness", "2s", "--json"];
    let flags = [&base[..], &how, &["--orders", orders, "--window", &lasts, "--strategies", "2"]].concat();
    let running = launcher.start(&flags);
    let pid = running.pid();
    let mut living = running.process("exchange-0");
    let (mut stop, mut calls) = (1, Vec::new());
    let until = Instant::now() + Duration::from_secs(window * 3 / 4);
    // On a busy machine fewer than there are: those that come first.
    while Instant::now() < until {
        wait_until("there is a spare", || newest(pid, "spare:exchange-0", living).is_some());
        std::thread::sleep(APART);
        let Some(spare) = newest(pid, "spare:exchange-0", living) else { continue };
        match killed_at(stop, living, spare, launcher.out.path()) {
            Ok(Some(call)) => {
                calls.push(call);
                wait_until("it is started anew", || newest(pid, "exchange-0", living).is_some());
                living = newest(pid, "exchange-0", living).unwrap();
                stop += step;
            }
            Ok(None) => break,
            Err(Errno::EPERM) => {
                eprintln!("SKIPPED: tracing is not permitted here");
                return;
            }
            Err(errno) => panic!("stop {stop}: {errno}"),
        }
    }
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}\n{calls:#?}");
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{calls:#?}");
    assert!(calls.len() >= 5, "{calls:#?}");
    let died = summary["comebacks"].as_array().unwrap();
    assert!(died.len() >= calls.len(), "{died:#?}");
    assert!(died.iter().all(|one| one["in_flight"] == one["answered"]), "{died:#?}");
}
