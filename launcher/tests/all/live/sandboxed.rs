//! Live runs at the isolation level `sandbox`. What the kernel refuses is tested in
//! `system/tests/all/sandbox`.
#![cfg(target_arch = "x86_64")]

use super::faults::{OWN_SEGMENTS, mapped};
use crate::common::{
    CommandResult, LONG, Launcher, Running, SHORT, assert_exists, assert_no_allocations, assert_nothing_left,
    family, newest, number, output, proc, segments, wait_until,
};
use std::process::{Command, Stdio};

const SANDBOX: &str = "--isolation sandbox";

/// Also through the kernel, and with every way of waiting. With the engine's process alone it is a
/// test of all techniques.
#[test]
fn every_technique_reaches_sandboxed_gateways() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    let techniques = ["spsc-mux", "array-queue", "linked", "channel", "pipe", "unix-seqpacket"];
    for (technique, idle) in techniques.iter().zip(["spin", "yield", "backoff", "park"].iter().cycle()) {
        let how = format!("--technique {technique} --idle {idle} --process gateways");
        let summary = launcher.summary(&format!("{SANDBOX} {SHORT} {how}"));
        let wanted = (&"sandbox".into(), &2000.into());
        assert_eq!((&summary["isolation"], &summary["orders"]["returned"]), wanted, "{how}");
        assert_no_allocations(&summary);
    }
}

/// What a process has open in addition to null, null, and the file that stderr goes to. The
/// launcher's pidfd, which it watches, says when that one dies and no more: no system call that
/// takes one is allowed.
fn open_files(pid: u32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let behind = open.map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap().display().to_string());
    behind.filter(|link| link != "/dev/null" && !link.ends_with(".stderr")).collect()
}

/// A shell that runs the launcher may have files open; every experiment starts processes.
#[test]
fn no_experiment_hands_on_what_the_shell_had_open() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    for (experiment, capacity) in [("run", "1024"), ("sweep", "1024,2048")] {
        let run = launcher.run(&format!("{SANDBOX} {LONG} --capacity {capacity}"));
        let mut command = Command::new("sh");
        command.args(["-c", "exec 9</dev/zero; exec \"$0\" \"$@\""]).arg(run.get_program());
        command.arg(experiment).args(run.get_args().skip(1));
        let running = Running::spawn(command.stdin(Stdio::null()));
        let strategy = || newest(running.pid(), "strategy-0", 0);
        // In the sandbox it has let go of all that it attached to.
        let confined = |pid: u32| proc(pid, "status").contains("Seccomp:\t2");
        wait_until("a strategy is in the sandbox", || strategy().is_some_and(confined));
        assert_eq!(open_files(strategy().unwrap()), ["anon_inode:[pidfd]"], "{experiment}");
        running.interrupt();
    }
}

#[test]
fn a_strategy_holds_its_own_memory_and_nothing_else() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    let mut running = launcher.start(&format!("{SANDBOX} {LONG}"));
    let (pid, strategy) = (running.pid(), running.process("strategy-1"));
    let status = proc(strategy, "status");
    for holds in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapPrm:\t0000000000000000"] {
        assert!(status.contains(holds), "{holds}: {status}");
    }
    let limits = proc(strategy, "limits");
    let limit = |what: &str| {
        let line = limits.lines().find(|line| line.starts_with(what)).unwrap();
        line[what.len()..].split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(limit("Max open files"), "1 1");
    assert_eq!(limit("Max core file size"), "0 0");
    assert_eq!(limit("Max file size"), format!("{0} {0}", system::sandbox::STDERR_BYTES));
    assert_eq!(mapped(strategy), OWN_SEGMENTS);
    assert_eq!(open_files(strategy), ["anon_inode:[pidfd]"]);
    assert_eq!(segments(pid).len(), 3, "only the control segment and the two of the desk have names");

    // Its launcher is killed.
    let children = family(pid);
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
fn limited(limit: &str) -> CommandResult {
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
    limited("-Sn 100").succeeds();
    let refused = limited("-n 100").fails(1, &["files open", "ulimit -Hn", "--strategies"]);
    assert!(!refused.stderr.contains("os error"), "{}", refused.stderr);
}
