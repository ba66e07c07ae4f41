//! Whatever dies, hangs or is interrupted: the run ends, says why, keeps what was measured and
//! leaves nothing behind.

use crate::common::{
    LONG, Launcher, Running, SHORT, assert_exists, assert_nothing_left, concurrently, family, output,
    segments, signal, text, wait_until,
};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn death_or_hang_ends_run_naming_process() {
    let deaths = [
        ("strategy-1", "KILL", "SIGKILL"),
        ("engine", "ABRT", "SIGABRT"),
        ("gateways", "KILL", "SIGKILL"),
        ("strategy-0", "STOP", "hangs"),
    ];
    concurrently(4, &deaths, |(victim, name, says)| {
        let launcher = Launcher::new();
        let apart: &[&str] = if *victim == "gateways" { &["--process", "gateways"] } else { &[] };
        let running = launcher.start(&[LONG, apart, &["--liveness", "1s"]].concat());
        let (pid, process) = (running.pid(), running.process(victim));
        signal(process, name);
        let (code, _, stderr) = running.end();
        assert_eq!(code, Some(1), "{victim}: {stderr}");
        assert!(stderr.contains(&format!("{victim} (pid {process})")) && stderr.contains(*says), "{stderr}");
        assert_nothing_left(pid);
        let summary = launcher.newest_summary();
        assert_eq!(summary["outcome"]["ended"], "failed");
        assert!(summary["orders"]["sent"].as_u64().unwrap() > 0, "the logs were gathered");
        let lost = summary["orders"]["lost"].as_u64().unwrap();
        assert_eq!(summary["valid"], lost == 0, "no incident explains what was lost: {}", summary["reasons"]);
        assert_eq!(summary["fit_for_latency"], false);
    });
}

#[test]
fn process_late_at_start_is_named() {
    let launcher = Launcher::new();
    let mut command = launcher.run(LONG);
    let output = command.args(["--start-timeout", "1ns"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("pid") && stderr.contains("not ready after 1ns"), "{stderr}");
    assert_eq!(launcher.folders().len(), 0, "a run that never began leaves no folder");
}

#[test]
fn ctrl_c_drains_and_reports_measured_orders() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let pid = running.pid();
    std::thread::sleep(Duration::from_millis(300));
    signal(pid, "INT");
    let (code, stdout, _) = running.end();
    assert_eq!(code, Some(130));
    assert!(stdout.contains("rt_venue"), "{stdout}");
    assert_nothing_left(pid);
    let summary = launcher.newest_summary();
    let orders = &summary["orders"];
    assert_eq!((&summary["valid"], &summary["outcome"]["ended"]), (&true.into(), &"interrupted".into()));
    assert_eq!(orders["sent"], orders["returned"], "what was sent came home");
    assert!(orders["sent"].as_u64() < orders["scheduled"].as_u64());
}

#[test]
fn killed_launcher_leaves_only_mergeable_logs() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    assert!(family(pid).len() >= 4, "two strategies, the engine, the reaper");
    assert!(!segments(pid).is_empty());
    signal(pid, "KILL");
    running.child.wait().unwrap();
    wait_until("its children are gone", || family(pid).is_empty());
    assert_eq!(segments(pid), Vec::<String>::new());
    let folder = &launcher.folders()[0];
    assert_exists(&folder.join("engine.stamps"));
    for role in ["strategy-0", "strategy-1", "engine"] {
        let said = std::fs::read_to_string(folder.join(format!("{role}.stderr"))).unwrap();
        assert!(said.contains(&format!("the launcher (pid {pid}) died")), "{role}: {said:?}");
    }
    let report = output(&["report", folder.to_str().unwrap(), "--json"]);
    let summary: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(summary["outcome"]["ended"], "failed");
    assert!(summary["orders"]["sent"].as_u64().unwrap() > 0);
}

#[test]
fn a_stopped_role_ends_with_its_launcher_too() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    signal(running.process("strategy-1"), "STOP");
    signal(pid, "KILL");
    running.child.wait().unwrap();
    assert_nothing_left(pid);
}

#[test]
fn start_during_log_rescue_leaves_logs_alone() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    signal(pid, "KILL");
    running.child.wait().unwrap();
    assert!(output(&["clean"]).status.success());
    assert_nothing_left(pid);
    assert_exists(&launcher.folders()[0].join("engine.stamps"));
}

#[test]
fn next_start_removes_segments_of_killed_reaper() {
    let launcher = Launcher::new();
    let mut running = launcher.start(LONG);
    let pid = running.pid();
    // A launcher that sees its reaper die starts another one.
    signal(pid, "STOP");
    signal(running.process("reaper"), "KILL");
    signal(pid, "KILL");
    running.child.wait().unwrap();
    wait_until("its children are gone", || family(pid).is_empty());
    assert!(!segments(pid).is_empty(), "nobody was left to remove them");
    let cleaned = output(&["clean"]);
    assert!(cleaned.status.success());
    assert_nothing_left(pid);
}

#[test]
fn a_killed_reaper_is_named_and_another_one_watches() {
    for isolation in ["process", "sandbox"] {
        let launcher = Launcher::new();
        let flags = [LONG, &["--isolation", isolation, "--allow-weaker-sandbox"]].concat();
        let running = launcher.start(&flags);
        let (pid, first) = (running.pid(), running.process("reaper"));
        signal(first, "KILL");
        let reapers = || -> Vec<u32> {
            let found = family(pid).into_iter().filter(|(_, line)| line.contains("role reaper "));
            found.map(|(reaper, _)| reaper).filter(|reaper| *reaper != first).collect()
        };
        wait_until("there is another one", || !reapers().is_empty());
        // It does what the first one would have done.
        signal(pid, "KILL");
        let (_, _, stderr) = running.end();
        assert!(
            stderr.contains(&format!("the reaper (pid {first}) exited (signal 9 (SIGKILL))")),
            "{stderr}"
        );
        // A sandboxed reaper does not get the run's id, and is orphaned now.
        wait_until("nothing is left", || family(pid).is_empty() && segments(pid).is_empty());
        wait_until("the logs are saved", || launcher.folders()[0].join("engine.stamps").exists());
    }
}

/// Whether this process was started with SIGHUP ignored; its children are too.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn exit_code_names_ending_signal() {
    for (name, wanted) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && ignores_hangups() {
            eprintln!("SKIPPED: SIGHUP: these tests run under nohup, and so would the launcher");
            continue;
        }
        let launcher = Launcher::new();
        let running = launcher.start(LONG);
        let pid = running.pid();
        signal(pid, name);
        assert_eq!(running.end().0, Some(wanted), "{name}");
        assert_nothing_left(pid);
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let launcher = Launcher::new();
    let flags: Vec<String> = launcher.run(&[]).get_args().map(|arg| arg.to_str().unwrap().into()).collect();
    // As `nohup` starts it: with SIGHUP ignored. The signal comes while it sets up, or trades;
    // either way it is ignored.
    let script = "trap '' HUP; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_launcher")]).args(flags);
    command.args(["--strategies", "2", "--venues", "2", "--orders", "2000", "--window", "1s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running { child: command.spawn().unwrap() };
    let pid = running.pid();
    wait_until("the run has begun", || {
        launcher.folders().iter().any(|folder| folder.join("run.json").exists())
    });
    signal(pid, "HUP");
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_nothing_left(pid);
    assert_eq!(launcher.newest_summary()["orders"]["returned"], 2000);
}

#[test]
fn closed_reader_keeps_run_and_exit_code() {
    for (fault, wanted) in [(None, 0), (Some("kill:engine@100ms"), 1)] {
        let launcher = Launcher::new();
        let mut command = launcher.run(SHORT);
        command.args(fault.map(|fault| ["--fault", fault]).into_iter().flatten());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(wanted), "{fault:?}");
        assert_exists(&launcher.folders()[0].join("summary.json"));
    }
}

#[test]
fn ps_shows_who_is_who() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let comm = |name: &str| std::fs::read_to_string(format!("/proc/{}/comm", running.process(name))).unwrap();
    assert_eq!((comm("strategy-1").trim(), comm("engine").trim()), ("strategy-1", "engine"));
    let pid = running.pid();
    signal(pid, "TERM");
    assert_eq!(running.end().0, Some(143));
    assert_nothing_left(pid);
}
