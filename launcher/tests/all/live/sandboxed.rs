//! Live runs at the isolation level `sandbox`. What the kernel refuses is tested in
//! `system/tests/all/sandbox`.
#![cfg(target_arch = "x86_64")]

use super::faults::{OWN_SEGMENTS, mapped};
use crate::common::{
    CommandResult, LONG, Launcher, Running, SHORT, assert_exists, assert_no_allocations, assert_nothing_left,
    makers, newest_process, number, output, proc, run_processes, segments, wait_until,
};
use std::process::{Command, Stdio};

const SANDBOX: &str = "--isolation sandbox";

/// Techniques in memory and of the kernel.
#[test]
fn techniques_reach_sandboxed_gateways() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    for (technique, idle) in [("array-queue", "park"), ("pipe", "backoff"), ("unix-seqpacket", "yield")] {
        let how = format!("--technique {technique} --idle {idle} --process gateways");
        let summary = launcher.summary(&format!("{SANDBOX} {SHORT} {how}"));
        let expected = (&"sandbox".into(), &2000.into());
        assert_eq!((&summary["isolation"], &summary["orders"]["returned"]), expected, "{how}");
        assert_no_allocations(&summary);
    }
}

/// Returns the open files of a process except `/dev/null` and its stderr. The launcher's pidfd only
/// reports the launcher's death, since no system call that uses a pidfd is allowed.
fn open_files(pid: u32) -> Vec<String> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = descriptors.map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap().display().to_string());
    links.filter(|link| link != "/dev/null" && !link.ends_with(".stderr")).collect()
}

/// The shell that starts the launcher may have files open, which no role may inherit.
#[test]
fn experiments_pass_on_no_inherited_descriptors() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    for (experiment, capacity) in [("run", "1024"), ("sweep", "1024,2048")] {
        let run = launcher.run(&format!("{SANDBOX} {LONG} --capacity {capacity}"));
        let mut command = Command::new("sh");
        command.args(["-c", "exec 9</dev/zero; exec \"$0\" \"$@\""]).arg(run.get_program());
        command.arg(experiment).args(run.get_args().skip(1));
        let running = Running::spawn(command.stdin(Stdio::null()));
        let strategy = || {
            let launchers = makers(running.pid()).into_iter().chain([running.pid()]);
            launchers.into_iter().find_map(|launcher| newest_process(launcher, "strategy-0", 0))
        };
        // A sandboxed process has closed the descriptors of all segments that it attached.
        let is_confined = |pid: u32| proc(pid, "status").contains("Seccomp:\t2");
        wait_until("a strategy is in the sandbox", || strategy().is_some_and(is_confined));
        assert_eq!(open_files(strategy().unwrap()), ["anon_inode:[pidfd]"], "{experiment}");
        running.interrupt();
    }
}

#[test]
fn sandboxed_strategy_holds_only_its_own_memory() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    let mut running = launcher.start(&format!("{SANDBOX} {LONG}"));
    let (pid, strategy) = (running.pid(), running.process("strategy-1"));
    let status = proc(strategy, "status");
    for expected_field in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapPrm:\t0000000000000000"] {
        assert!(status.contains(expected_field), "{expected_field}: {status}");
    }
    let limits = proc(strategy, "limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(limit("Max open files"), "1 1");
    assert_eq!(limit("Max core file size"), "0 0");
    assert_eq!(limit("Max file size"), format!("{0} {0}", system::sandbox::STDERR_BYTES));
    assert_eq!(mapped(strategy), OWN_SEGMENTS);
    assert_eq!(open_files(strategy), ["anon_inode:[pidfd]"]);
    assert_eq!(
        segments(pid).len(),
        3,
        "only the control segment and the two of the command channel have names"
    );

    // Now the launcher is killed.
    let children = run_processes(pid);
    assert_eq!(children.len(), 4, "two strategies, the engine, the reaper: {children:?}");
    running.kill();
    wait_until("its children are gone", || {
        children.iter().all(|(pid, _)| !std::path::Path::new(&format!("/proc/{pid}/exe")).exists())
    });
    assert_nothing_left(pid);
    let folder = launcher.folder();
    assert_exists(&folder.join("engine.stamps"));
    let summary = output(&format!("report {} --json", folder.display())).json();
    assert!(number(&summary["orders"]["sent"]) > 0);
}

/// Runs the launcher under a limit of open files.
fn run_with_limit(limit: &str) -> CommandResult {
    let launcher = Launcher::new();
    let load = "--strategies 8 --venues 1 --orders 200 --window 20ms --delay uniform:1ms..2ms --idle park";
    let run = launcher.run(&format!("{SANDBOX} {load}"));
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(run.get_program()).args(run.get_args());
    Running::spawn(&mut command).end()
}

#[test]
fn low_descriptor_limit_is_raised_or_refused() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    run_with_limit("-Sn 100").succeeds();
    let refused = run_with_limit("-n 100").fails(2, &["files open", "ulimit -Hn", "--strategies"]);
    assert!(!refused.stderr.contains("os error"), "{}", refused.stderr);
}
