//! A process crashes, hangs or is interrupted: the run ends with the reason, keeps its measurements
//! and leaves no processes or segments.

use crate::common::{
    LONG, Launcher, Running, SHORT, assert_exists, assert_nothing_left, concurrently, ended, number, output,
    proc, run_processes, segments, signal, wait_until,
};
use launcher::shm::memory::{SHM_DIR, lock::lock_shared};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn death_or_hang_ends_run_naming_process() {
    let deaths = [
        ("strategy-1", "KILL", "SIGKILL", ""),
        ("engine", "ABRT", "SIGABRT", ""),
        ("gateways", "KILL", "SIGKILL", "--process gateways"),
        ("strategy-0", "STOP", "hangs", ""),
    ];
    concurrently(4, &deaths, |(victim, name, reason, flags)| {
        let launcher = Launcher::new();
        let running = launcher.start(&format!("{LONG} --liveness 1s {flags}"));
        let process = running.process(victim);
        signal(process, name);
        running.end().fails(1, &[&format!("{victim} (pid {process})"), reason]);
        let summary = launcher.newest_summary();
        assert_eq!(summary["outcome"]["ended"], "failed");
        assert!(number(&summary["orders"]["sent"]) > 0, "the logs were gathered");
        let lost = number(&summary["orders"]["lost"]);
        assert_eq!(summary["valid"], lost == 0, "no incident explains what was lost: {}", summary["reasons"]);
        assert_eq!(summary["fit_for_latency"], false);
    });
}

#[test]
fn process_late_at_start_is_named() {
    let launcher = Launcher::new();
    let late = launcher.result(&format!("{LONG} --start-timeout 1ns"));
    late.fails(1, &["pid", "not ready after 1ns"]);
    assert_eq!(launcher.folders().len(), 0, "a run that never began leaves no folder");
}

#[test]
fn ctrl_c_drains_and_reports_measured_orders() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    std::thread::sleep(Duration::from_millis(300));
    let result = running.interrupt().fails(130, &[]);
    assert!(result.stdout.contains("rt_venue"), "{}", result.stdout);
    let summary = launcher.newest_summary();
    let orders = &summary["orders"];
    assert_eq!((&summary["valid"], &summary["outcome"]["ended"]), (&true.into(), &"interrupted".into()));
    assert_eq!(orders["sent"], orders["returned"], "every sent order returned");
    assert!(number(&orders["sent"]) < number(&orders["scheduled"]));
}

/// A start before the reaper has saved the logs does not remove them.
#[test]
fn killed_launcher_leaves_only_mergeable_logs() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    assert!(run_processes(pid).len() >= 4, "two strategies, the engine, the reaper");
    assert!(!segments(pid).is_empty());
    running.kill();
    output("clean").succeeds();
    assert_nothing_left(pid);
    let folder = launcher.folder();
    assert_exists(&folder.join("engine.stamps"));
    for role in ["strategy-0", "strategy-1", "engine"] {
        let stderr = launcher.read(&format!("{role}.stderr"));
        assert!(stderr.contains(&format!("the launcher (pid {pid}) died")), "{role}: {stderr:?}");
    }
    let summary = output(&format!("report {} --json", folder.display())).json();
    assert_eq!(summary["outcome"]["ended"], "failed");
    assert!(number(&summary["orders"]["sent"]) > 0);
}

#[test]
fn stopped_role_ends_with_its_launcher() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    signal(running.process("strategy-1"), "STOP");
    running.kill();
    running.end();
}

#[test]
fn next_start_removes_segments_of_killed_reaper() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    // A launcher restarts a dead reaper, so it is stopped first.
    signal(pid, "STOP");
    signal(running.process("reaper"), "KILL");
    // Starts of other tests leave the run alone while its control segment is locked.
    let control = segments(pid).into_iter().find(|name| name.ends_with(".control")).unwrap();
    let locked_control = File::open(Path::new(SHM_DIR).join(control)).unwrap();
    lock_shared(&locked_control).unwrap();
    running.kill();
    wait_until("its children are gone", || run_processes(pid).is_empty());
    assert!(!segments(pid).is_empty(), "no process was left to remove them");
    drop(locked_control);
    output("clean").succeeds();
    assert_nothing_left(pid);
}

#[test]
fn killed_reaper_is_named_and_replaced() {
    let launcher = Launcher::new();
    let mut running = launcher.start(&format!("{LONG} --isolation sandbox --allow-weaker-sandbox"));
    let (pid, first) = (running.pid(), running.process("reaper"));
    signal(first, "KILL");
    let is_replacement = |(reaper, line): &(u32, String)| *reaper != first && line.contains("role reaper ");
    wait_until("another reaper has started", || run_processes(pid).iter().any(is_replacement));
    // The second reaper does the first one's work.
    running.kill();
    let stderr = running.end().stderr;
    let exit_message = format!("the reaper (pid {first}) exited (signal 9 (SIGKILL))");
    assert!(stderr.contains(&exit_message), "{stderr}");
    // A sandboxed reaper has no run id in its command line, and is now an orphan.
    assert_nothing_left(pid);
    wait_until("the logs are saved", || launcher.folder().join("engine.stamps").exists());
}

#[test]
fn exit_code_names_ending_signal() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let launcher = Launcher::new();
        // The launcher would inherit an ignored SIGHUP if the tests run under nohup.
        let run = launcher.run(LONG);
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP").arg(run.get_program()).args(run.get_args());
        let running = Running::spawn(&mut command);
        wait_until("the run has begun", || launcher.has_begun());
        for role in ["strategy-1", "engine"] {
            assert_eq!(proc(running.process(role), "comm").trim(), role, "as `ps` shows it");
        }
        signal(running.pid(), name);
        running.end().fails(code, &[]);
    }
}

#[test]
fn nohup_run_outlives_its_terminal() {
    let launcher = Launcher::new();
    // SIGHUP is ignored, as under `nohup`, when the signal arrives during start or trading.
    let run = launcher.run("--strategies 2 --venues 2 --orders 2000 --window 1s");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    let running = Running::spawn(&mut command);
    wait_until("the run has begun", || launcher.has_begun());
    signal(running.pid(), "HUP");
    running.end().succeeds();
    assert_eq!(launcher.newest_summary()["orders"]["returned"], 2000);
}

#[test]
fn closed_reader_keeps_run_and_exit_code() {
    for (fault, expected) in [("", 0), ("--fault kill:engine@100ms", 1)] {
        let launcher = Launcher::new();
        let mut child = launcher.run(&format!("{SHORT} {fault}")).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(ended(&mut child).code(), Some(expected), "{fault}");
        assert_exists(&launcher.folder().join("summary.json"));
    }
}
