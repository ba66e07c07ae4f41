//! A successor killed before and after each of its system calls, from being told to go on, or from
//! its first instruction, until its threads run: the next one recovers, and nothing is lost or done
//! twice.
//!
//! It is its first thread that is traced: of an exchange the spare's, of the engine that of the
//! process which the launcher starts. The one before it is killed, and a cold-started one takes
//! over from the traced one's remains. All in one run.
#![expect(clippy::disallowed_methods, reason = "a tracee is waited for here and nowhere else")]

use super::births::Births;
use super::calls::call_of;
use super::tracer::resume;
use crate::common::{Launcher, Running, is_back, list, newest, signal, slow, wait_until};
use crate::live::comebacks::BASE;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// No stop for this long: the thread waits for those that it has started.
const QUIET: Duration = Duration::from_millis(400);
/// Between two deaths: until there is a spare that has followed the journal.
const APART: Duration = Duration::from_millis(60);

enum KillAttempt {
    At(String),
    /// It exited before its promotion: a standby that is not ready is not waited for.
    Unready,
    /// It has fewer stops.
    Over,
}

/// Kills a tracee at that stop. If it `waits`, the first stop is its promotion: it reads what it
/// has polled.
fn killed_at(
    stop: usize,
    task: Pid,
    waits: bool,
    out: &Path,
    mut meanwhile: impl FnMut() -> nix::Result<()>,
) -> nix::Result<KillAttempt> {
    let (mut seen, mut is_on, mut quiet, mut last) = (0, !waits, Instant::now(), "");
    loop {
        meanwhile()?;
        match waitpid(task, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG))? {
            WaitStatus::StillAlive if is_on && quiet.elapsed() > QUIET => {
                ptrace::interrupt(task)?;
                waitpid(task, Some(WaitPidFlag::__WALL))?;
                ptrace::detach(task, None)?;
                return Ok(KillAttempt::Over);
            }
            WaitStatus::StillAlive => {
                assert!(quiet.elapsed() < Duration::from_secs(60), "the spare was never told to go on");
                std::thread::sleep(Duration::from_micros(20));
            }
            WaitStatus::PtraceSyscall(_) => {
                quiet = Instant::now();
                let call = call_of(task, task, out)?;
                // A poll that was interrupted to be traced goes on as another call.
                is_on |= call.name == "read" && ["poll", "ppoll", "restart_syscall"].contains(&last);
                last = call.name;
                seen += usize::from(is_on);
                if seen == stop {
                    kill(task, Signal::SIGKILL)?;
                    // The kernel lets it die, and tells its parent once the tracer knows.
                    while !matches!(waitpid(task, Some(WaitPidFlag::__WALL))?, WaitStatus::Signaled(..)) {}
                    return Ok(KillAttempt::At(call.what));
                }
                resume(task, None);
            }
            WaitStatus::Stopped(_, signal) => resume(task, Some(signal)),
            WaitStatus::Exited(..) if !is_on => return Ok(KillAttempt::Unready),
            status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {
                panic!("ended by itself behind {last}, at stop {seen} of {stop}: {status:?}")
            }
            _ => resume(task, None),
        }
    }
}

/// Kills the running exchange and, at that stop after its promotion, the standby.
fn spare_killed_at(stop: usize, living: u32, spare: u32, out: &Path) -> nix::Result<KillAttempt> {
    let task = Pid::from_raw(spare as i32);
    ptrace::seize(task, Options::PTRACE_O_TRACESYSGOOD)?;
    ptrace::interrupt(task)?;
    signal(living, "KILL");
    killed_at(stop, task, true, out, || Ok(()))
}

/// Kills the running engine and its standby and, at that stop from its first instruction on, the
/// one that the launcher starts.
fn engine_killed_at(stop: usize, living: u32, launcher: u32, out: &Path) -> nix::Result<KillAttempt> {
    wait_until("there is a spare", || newest(launcher, "spare:engine", living).is_some());
    let mut births = Births::watch(launcher, "engine")?;
    signal(living, "KILL");
    let (since, mut last, mut looked) = (Instant::now(), living, Instant::now());
    let task = loop {
        if let Some(task) = births.look()? {
            break task;
        }
        // Behind it; where the launcher has seen that one die first, also the one in its place:
        // whether it was promoted or not, the next engine starts cold.
        if last == living || looked.elapsed() > Duration::from_millis(20) {
            looked = Instant::now();
            if let Some(spare) = newest(launcher, "spare:engine", last) {
                signal(spare, "KILL");
                last = spare;
            }
        }
        assert!(since.elapsed() < Duration::from_secs(60), "the engine was never started again");
        std::thread::sleep(Duration::from_micros(100));
    };
    resume(task, None);
    let call = killed_at(stop, task, false, out, || births.look().map(drop));
    births.end()?;
    call
}

/// Kills successors in one run at stop 1, 1 + step, and so on, each time after the role before it
/// was killed; where that was.
fn killed_at_every(
    step: usize,
    lasts: Duration,
    mut running: Running,
    role: &str,
    mut at: impl FnMut(usize, u32) -> Option<nix::Result<KillAttempt>>,
) -> Option<(Running, Vec<String>)> {
    let mut living = running.process(role);
    let (mut stop, mut calls) = (1, Vec::new());
    let until = Instant::now() + lasts;
    // On a busy machine fewer than there are: those that come first.
    while Instant::now() < until {
        match at(stop, living) {
            None => {}
            Some(Ok(tried @ (KillAttempt::At(_) | KillAttempt::Unready))) => {
                if let KillAttempt::At(call) = tried {
                    calls.push(call);
                    stop += step;
                }
                let since = Instant::now();
                while newest(running.pid(), role, living).is_none() {
                    let words = "it is not started anew";
                    assert!(
                        since.elapsed() < Duration::from_secs(10),
                        "{words} behind {calls:?}: {:?}",
                        running.end()
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
                living = newest(running.pid(), role, living).unwrap();
            }
            Some(Ok(KillAttempt::Over)) => {
                println!("{role}: all of {} stops, every {step}: {} kills", stop - 1, calls.len());
                return Some((running, calls));
            }
            Some(Err(Errno::EPERM)) => {
                eprintln!("SKIPPED: tracing is not permitted here");
                return None;
            }
            Some(Err(errno)) => {
                // The tracer has waited for it: nobody else can.
                let mut said = String::new();
                let _ = running.child.stderr.take().unwrap().read_to_string(&mut said);
                panic!("stop {stop}: {errno}; the launcher: {said}");
            }
        }
    }
    println!("{role}: no time for more than {stop} stops, every {step}: {} kills", calls.len());
    Some((running, calls))
}

/// A run of the given length in seconds and rate.
fn run_for(window: u64, rate: u64) -> (Launcher, Running) {
    let launcher = Launcher::new();
    let load = format!("--orders {} --window {window}s --strategies 2", window * rate);
    let running = launcher.start(&format!("{BASE} {load} --journal process --liveness 2s --json"));
    (launcher, running)
}

/// Nothing was lost in such a run, with those deaths in it.
fn is_whole(running: Running, calls: &[String], least: usize) {
    // Its window is longer than the kills need on a slow machine.
    let summary = running.interrupt().fails(130, &[]).json();
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{calls:#?}");
    assert_eq!(summary["valid"], true, "{summary:#}");
    assert!(calls.len() >= least, "{calls:#?}");
    let died = list(&summary["comebacks"]);
    // A death before the launcher has seen it running is part of the previous restart.
    assert!(2 * died.len() >= calls.len(), "{} comebacks, {} kills", died.len(), calls.len());
    assert!(died.iter().all(|one| one["in_flight"] == one["answered"]), "{died:#?}");
}

#[test]
fn exchange_killed_at_any_recovery_syscall_recovers() {
    // Fewer orders than may be open: what rests in a long run would stop it.
    let (step, window, rate) = if slow() { (1, 240, 500) } else { (48, 20, 2_000) };
    let (launcher, running) = run_for(window, rate);
    let (pid, out) = (running.pid(), launcher.out.path());
    let lasts = Duration::from_secs(window * 3 / 4);
    let calls = killed_at_every(step, lasts, running, "exchange-0", |stop, living| {
        wait_until("there is a spare", || newest(pid, "spare:exchange-0", living).is_some());
        std::thread::sleep(APART);
        let spare = newest(pid, "spare:exchange-0", living)?;
        Some(spare_killed_at(stop, living, spare, out))
    });
    if let Some((running, calls)) = calls {
        is_whole(running, &calls, 5);
    }
}

#[test]
fn engine_killed_at_any_recovery_syscall_recovers() {
    // The last try must be over before the run is.
    let (step, window, lasts) = if slow() { (1, 1200, 1140) } else { (160, 20, 8) };
    // Few orders, since one journal is carried out again hundreds of times.
    let (launcher, running) = run_for(window, 50);
    let (pid, out) = (running.pid(), launcher.out.path());
    let lasts = Duration::from_secs(lasts);
    let calls = killed_at_every(step, lasts, running, "engine", |stop, living| {
        wait_until("it is back", || is_back(living));
        std::thread::sleep(APART);
        Some(engine_killed_at(stop, living, pid, out))
    });
    if let Some((running, calls)) = calls {
        is_whole(running, &calls, 5);
    }
}
