//! Whatever dies, hangs or is interrupted: the run ends, says why, keeps what was measured and
//! leaves nothing behind.

use crate::common::{
    LONG, Launcher, Running, SHORT, assert_exists, assert_nothing_left, concurrently, ended, family, number,
    output, proc, segments, signal, wait_until,
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
    concurrently(4, &deaths, |(victim, name, says, more)| {
        let launcher = Launcher::new();
        let running = launcher.start(&format!("{LONG} --liveness 1s {more}"));
        let process = running.process(victim);
        signal(process, name);
        running.end().fails(1, &[&format!("{victim} (pid {process})"), says]);
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
    assert_eq!(orders["sent"], orders["returned"], "what was sent came home");
    assert!(number(&orders["sent"]) < number(&orders["scheduled"]));
}

/// A start that comes before the reaper has saved the logs leaves them alone.
#[test]
fn killed_launcher_leaves_only_mergeable_logs() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    assert!(family(pid).len() >= 4, "two strategies, the engine, the reaper");
    assert!(!segments(pid).is_empty());
    running.kill();
    output("clean").succeeds();
    assert_nothing_left(pid);
    let folder = launcher.folder();
    assert_exists(&folder.join("engine.stamps"));
    for role in ["strategy-0", "strategy-1", "engine"] {
        let said = launcher.read(&format!("{role}.stderr"));
        assert!(said.contains(&format!("the launcher (pid {pid}) died")), "{role}: {said:?}");
    }
    let summary = output(&format!("report {} --json", folder.display())).json();
    assert_eq!(summary["outcome"]["ended"], "failed");
    assert!(number(&summary["orders"]["sent"]) > 0);
}

#[test]
fn a_stopped_role_ends_with_its_launcher_too() {
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
    // A launcher that sees its reaper die starts another one.
    signal(pid, "STOP");
    signal(running.process("reaper"), "KILL");
    // Starts of other tests leave the run alone while its control segment is locked.
    let control = segments(pid).into_iter().find(|name| name.ends_with(".control")).unwrap();
    let held = File::open(Path::new(SHM_DIR).join(control)).unwrap();
    lock_shared(&held).unwrap();
    running.kill();
    wait_until("its children are gone", || family(pid).is_empty());
    assert!(!segments(pid).is_empty(), "nobody was left to remove them");
    drop(held);
    output("clean").succeeds();
    assert_nothing_left(pid);
}

#[test]
fn a_killed_reaper_is_named_and_another_one_watches() {
    for isolation in ["process", "sandbox"] {
        let launcher = Launcher::new();
        let mut running = launcher.start(&format!("{LONG} --isolation {isolation} --allow-weaker-sandbox"));
        let (pid, first) = (running.pid(), running.process("reaper"));
        signal(first, "KILL");
        let is_other = |(reaper, line): &(u32, String)| *reaper != first && line.contains("role reaper ");
        wait_until("there is another one", || family(pid).iter().any(is_other));
        // It does what the first one would have done.
        running.kill();
        let stderr = running.end().stderr;
        let named = format!("the reaper (pid {first}) exited (signal 9 (SIGKILL))");
        assert!(stderr.contains(&named), "{stderr}");
        // A sandboxed reaper does not get the run's id, and is orphaned now.
        assert_nothing_left(pid);
        wait_until("the logs are saved", || launcher.folder().join("engine.stamps").exists());
    }
}

#[test]
fn exit_code_names_ending_signal() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let launcher = Launcher::new();
        // These tests may run under nohup, which the launcher would inherit.
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
fn a_run_under_nohup_outlives_its_terminal() {
    let launcher = Launcher::new();
    // As `nohup` starts it: with SIGHUP ignored. The signal comes while it sets up, or trades;
    // either way it is ignored.
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
    for (fault, wanted) in [("", 0), ("--fault kill:engine@100ms", 1)] {
        let launcher = Launcher::new();
        let mut child = launcher.run(&format!("{SHORT} {fault}")).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(ended(&mut child).code(), Some(wanted), "{fault}");
        assert_exists(&launcher.folder().join("summary.json"));
    }
}
