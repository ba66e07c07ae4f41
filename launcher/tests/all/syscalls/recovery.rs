//! A successor is killed before and after each of its system calls, from its promotion or its first
//! instruction until its threads run. The next one recovers, and no order is lost or duplicated.
//!
//! The successor's main thread is traced: of an exchange its standby's, of the engine that of the
//! process which the launcher starts. Its predecessor is killed before, and a cold-started process
//! recovers after it. All kills are in one run.

use super::calls::call_of;
use super::spawn_tracer::Births;
use crate::common::{
    LIMIT, Launcher, RECOVERABLE, Running, has_role_threads, list, newest_process, serving_process, signal,
    slow, wait_until,
};
use nix::errno::Errno;
use nix::sys::ptrace::Options;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use stepper::{Resume, Stop, Tracee};

/// Without a stop for this long, the thread waits for those that it has started.
const QUIET: Duration = Duration::from_millis(400);
/// Number of kills that are made however long they take.
const MIN_KILLS: usize = 5;
/// Pause between two kills, in which a new standby follows the journal.
const APART: Duration = Duration::from_millis(60);

enum KillAttempt {
    At(String),
    /// The standby ended before its promotion: it was not ready, or was given up.
    Unready,
    /// The process has fewer stops.
    Over,
}

/// Kills a tracee at the given stop. The stops of a standby are counted from its promotion, the
/// first read after a poll.
fn kill_at_stop(
    stop: usize,
    task: Tracee,
    is_standby: bool,
    out: &Path,
    mut poll_births: impl FnMut() -> nix::Result<()>,
) -> nix::Result<KillAttempt> {
    let (mut stops, mut is_counting, mut last_stop_at, mut last) = (0, !is_standby, Instant::now(), "");
    loop {
        poll_births()?;
        match task.poll()? {
            None if is_counting && last_stop_at.elapsed() > QUIET => {
                task.interrupt()?;
                task.wait()?;
                task.detach(None)?;
                return Ok(KillAttempt::Over);
            }
            None => {
                assert!(last_stop_at.elapsed() < Duration::from_secs(60), "the standby was never promoted");
                std::thread::sleep(Duration::from_micros(20));
            }
            Some(Stop::Call) => {
                last_stop_at = Instant::now();
                let call = call_of(task.pid(), task.pid(), out)?;
                // A poll that the tracer interrupted continues as `restart_syscall`.
                is_counting |= call.name == "read" && ["poll", "ppoll", "restart_syscall"].contains(&last);
                last = call.name;
                stops += usize::from(is_counting);
                if stops == stop {
                    task.kill()?;
                    return Ok(KillAttempt::At(call.description));
                }
                task.resume(Resume::Call, None)?;
            }
            Some(end) if end.is_end() && !is_counting => return Ok(KillAttempt::Unready),
            Some(end) if end.is_end() => {
                panic!("ended by itself after {last}, at stop {stops} of {stop}: {end:?}")
            }
            Some(Stop::Signal(signal)) => task.resume(Resume::Call, Some(signal))?,
            Some(Stop::Trap) => task.resume(Resume::Call, Some(Signal::SIGTRAP))?,
            Some(_) => task.resume(Resume::Call, None)?,
        }
    }
}

/// Kills the running exchange and, at the given stop after its promotion, the standby.
fn kill_standby_at(stop: usize, active: u32, standby: u32, out: &Path) -> nix::Result<KillAttempt> {
    let task = Tracee::seize(Pid::from_raw(standby as i32), Options::PTRACE_O_TRACESYSGOOD)?;
    task.interrupt()?;
    signal(active, "KILL");
    kill_at_stop(stop, task, true, out, || Ok(()))
}

/// Kills the running engine and its standby, and then the process that the launcher starts at the
/// given stop after its first instruction.
fn kill_engine_at(stop: usize, active: u32, launcher: u32, out: &Path) -> nix::Result<KillAttempt> {
    wait_until("there is a standby", || newest_process(launcher, "spare:engine", active).is_some());
    let mut births = Births::watch(launcher, "engine")?;
    signal(active, "KILL");
    let (killed_at, mut last, mut last_look) = (Instant::now(), active, Instant::now());
    let task = loop {
        if let Some(task) = births.poll()? {
            break task;
        }
        // Kills the standby after the engine. If the launcher sees the standby's death first, it
        // starts another one, which is killed as well, so the next engine starts cold.
        if last == active || last_look.elapsed() > Duration::from_millis(20) {
            last_look = Instant::now();
            // The killed engine may have been a standby.
            let standby = newest_process(launcher, "spare:engine", last);
            if let Some(standby) = standby.filter(|pid| *pid != active) {
                signal(standby, "KILL");
                last = standby;
            }
        }
        assert!(killed_at.elapsed() < Duration::from_secs(60), "the engine was never started again");
        std::thread::sleep(Duration::from_micros(100));
    };
    task.resume(Resume::Call, None)?;
    let call = kill_at_stop(stop, task, false, out, || births.poll().map(drop));
    births.end()?;
    call
}

/// Kills successors in one run at stop 1, 1 + step and so on, each time after their predecessor was
/// killed. Returns the run and the system calls at which they were killed.
fn kill_at_every_stop(
    step: usize,
    duration: Duration,
    mut running: Running,
    role: &str,
    mut kill_successor: impl FnMut(usize, u32) -> Option<nix::Result<KillAttempt>>,
) -> Option<(Running, Vec<String>)> {
    let mut active = running.process(role);
    let (mut stop, mut calls) = (1, Vec::new());
    let deadline = Instant::now() + duration;
    // On a busy machine only the first stops are reached.
    while Instant::now() < deadline || calls.len() < MIN_KILLS {
        match kill_successor(stop, active) {
            None => {}
            Some(Ok(attempt @ (KillAttempt::At(_) | KillAttempt::Unready))) => {
                if let KillAttempt::At(call) = attempt {
                    calls.push(call);
                    stop += step;
                }
                let killed_at = Instant::now();
                // If the successor had recovered before it was killed, its standby is promoted.
                active = loop {
                    if let Some(serving) = serving_process(running.pid(), role, &[active]) {
                        break serving;
                    }
                    let failure = "the role does not serve again";
                    let can_serve = killed_at.elapsed() < LIMIT && !running.has_ended();
                    assert!(can_serve, "{failure} after {calls:?}: {:?}", running.end());
                    std::thread::sleep(Duration::from_millis(5));
                };
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
                // The tracer has waited for the process, so its parent cannot.
                let mut stderr = String::new();
                let _ = running.child.stderr.take().unwrap().read_to_string(&mut stderr);
                panic!("stop {stop}: {errno}; the launcher: {stderr}");
            }
        }
    }
    println!("{role}: no time for more than {stop} stops, every {step}: {} kills", calls.len());
    Some((running, calls))
}

/// Starts a run of the given length in seconds and rate in orders a second.
fn run_for(window: u64, rate: u64) -> (Launcher, Running) {
    let launcher = Launcher::new();
    let load = format!("--orders {} --window {window}s --strategies 2", window * rate);
    let running = launcher.start(&format!("{RECOVERABLE} {load} --journal process --liveness 2s --json"));
    (launcher, running)
}

/// Checks that the run is valid and lost no order.
fn assert_complete(running: Running, calls: &[String]) {
    // The run is interrupted: its window is longer than the kills take on a slow machine.
    let summary = running.interrupt().fails(130, &[]).json();
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{calls:#?}");
    assert_eq!(summary["valid"], true, "{summary:#}");
    assert!(calls.len() >= MIN_KILLS, "{calls:#?}");
    let restarts = list(&summary["comebacks"]);
    // A death before the launcher has seen the successor running is part of the previous restart.
    assert!(2 * restarts.len() >= calls.len(), "{} restarts, {} kills", restarts.len(), calls.len());
    assert!(restarts.iter().all(|restart| restart["in_flight"] == restart["answered"]), "{restarts:#?}");
}

#[test]
fn exchange_killed_at_any_recovery_syscall_recovers() {
    // Fewer orders than may be open, or resting orders would stop a long run.
    let (step, window, rate, seconds) = if slow() { (1, 240, 500, 180) } else { (48, 240, 125, 3) };
    let (launcher, running) = run_for(window, rate);
    let (pid, out) = (running.pid(), launcher.out.path());
    let duration = Duration::from_secs(seconds);
    let calls = kill_at_every_stop(step, duration, running, "exchange-0", |stop, active| {
        wait_until("there is a standby", || newest_process(pid, "spare:exchange-0", active).is_some());
        std::thread::sleep(APART);
        let standby = newest_process(pid, "spare:exchange-0", active)?;
        Some(kill_standby_at(stop, active, standby, out))
    });
    if let Some((running, calls)) = calls {
        assert_complete(running, &calls);
    }
}

#[test]
fn engine_killed_at_any_recovery_syscall_recovers() {
    // The last kill must be complete before the run ends.
    let (step, window, duration) = if slow() { (1, 1200, 1140) } else { (160, 240, 3) };
    // Few orders, since the journal is replayed hundreds of times.
    let (launcher, running) = run_for(window, 50);
    let (pid, out) = (running.pid(), launcher.out.path());
    let duration = Duration::from_secs(duration);
    let calls = kill_at_every_stop(step, duration, running, "engine", |stop, active| {
        wait_until("it is back", || has_role_threads(active));
        std::thread::sleep(APART);
        Some(kill_engine_at(stop, active, pid, out))
    });
    if let Some((running, calls)) = calls {
        assert_complete(running, &calls);
    }
}
