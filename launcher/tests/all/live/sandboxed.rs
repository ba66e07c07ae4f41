//! Live runs at the isolation level `sandbox`. What the kernel refuses is tested in
//! `system/tests/all/sandbox`.
#![cfg(target_arch = "x86_64")]

use crate::common::{
    LONG, Launcher, SHORT, assert_exists, assert_nothing_left, family, segments, signal, text, wait_until,
};
use serde_json::Value;
use std::process::Stdio;

pub fn unsupported() -> bool {
    let missing = system::sandbox::missing();
    if !missing.is_empty() {
        eprintln!("SKIPPED: {}", missing.join("; "));
    }
    !missing.is_empty()
}

const SANDBOX: &[&str] = &["--isolation", "sandbox"];

#[test]
fn every_idle_strategy_carries_a_sandboxed_run() {
    if unsupported() {
        return;
    }
    for idle in ["spin", "yield", "backoff", "park"] {
        let summary = Launcher::new().summary(&[SANDBOX, SHORT, &["--idle", idle]].concat());
        assert_eq!(
            (&summary["isolation"], &summary["orders"]["returned"]),
            (&"sandbox".into(), &2000.into())
        );
        for thread in summary["processes"].as_array().unwrap() {
            assert_eq!(thread["allocations"], 0, "{thread}");
        }
    }
}

/// Also through the kernel. With the engine's process alone it is a test of all techniques.
#[test]
fn every_technique_reaches_sandboxed_gateways() {
    if unsupported() {
        return;
    }
    for technique in ["spsc-mux", "array-queue", "linked", "channel", "pipe", "unix-seqpacket"] {
        let flags = ["--technique", technique, "--process", "gateways", "--idle", "park"];
        let summary = Launcher::new().summary(&[SANDBOX, SHORT, &flags].concat());
        assert_eq!(summary["orders"]["returned"], 2000, "{technique}");
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
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let out = launcher.out.path().to_str().unwrap();
    for (experiment, capacity) in [("run", "1024"), ("sweep", "1024,2048")] {
        let mut command = std::process::Command::new("sh");
        command.args([
            "-c",
            "exec 9</dev/zero; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_launcher"),
            experiment,
        ]);
        command.args(["--out", out]).args(SANDBOX).args(LONG).args(["--capacity", capacity]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let strategy =
            || family(child.id()).into_iter().find(|(_, cmdline)| cmdline.contains("role strategy-0 "));
        // In the sandbox it has let go of all that it attached to.
        let confined = |pid: u32| {
            std::fs::read_to_string(format!("/proc/{pid}/status"))
                .is_ok_and(|status| status.contains("Seccomp:\t2"))
        };
        wait_until("a strategy is in the sandbox", || strategy().is_some_and(|(pid, _)| confined(pid)));
        assert_eq!(open_files(strategy().unwrap().0), ["anon_inode:[pidfd]"], "{experiment}");
        signal(child.id(), "INT");
        child.wait().unwrap();
        assert_nothing_left(child.id());
    }
}

#[test]
fn a_strategy_holds_its_own_memory_and_nothing_else() {
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let running = launcher.start(&[SANDBOX, LONG].concat());
    let (pid, strategy) = (running.pid(), running.process("strategy-1"));
    let proc = |file: &str| std::fs::read_to_string(format!("/proc/{strategy}/{file}")).unwrap();
    let status = proc("status");
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
    let limits = proc("limits");
    let limit = |what: &str| {
        let line = limits.lines().find(|line| line.starts_with(what)).unwrap();
        line[what.len()..].split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(limit("Max open files"), "1 1");
    assert_eq!(limit("Max core file size"), "0 0");
    assert_eq!(limit("Max file size"), format!("{0} {0}", system::sandbox::STDERR_BYTES));

    let maps = proc("maps");
    let rights: Vec<(&str, &str)> = maps
        .lines()
        .filter_map(|line| {
            let name = line.split('.').skip(2).collect::<Vec<_>>().join(".");
            let (_, what) = line.split_once("bulkhead.")?;
            let what = what.split_once('.')?.1.trim_end_matches(" (deleted)");
            assert!(!name.is_empty());
            Some((what, line.split(' ').nth(1)?))
        })
        .collect();
    let mut expected = vec![
        ("control", "r--s"),
        ("schedule-1", "r--s"),
        ("return-1", "r--s"),
        ("submit-1.head", "r--s"),
        ("submit-1", "rw-s"),
        ("return-1.head", "rw-s"),
        ("thread-strategy-1", "rw-s"),
        ("bell-strategy-1", "rw-s"),
        ("bell-engine", "r--s"),
    ];
    let mut rights = rights;
    rights.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rights, expected, "its own to write, the engine's to read, nobody else's at all");
    assert_eq!(open_files(strategy), ["anon_inode:[pidfd]"]);
    assert_eq!(segments(pid).len(), 3, "only the control segment and the two of the desk have names");

    signal(pid, "INT");
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert_nothing_left(pid);
}

#[test]
fn killed_sandboxed_launcher_saves_logs_and_cleans_up() {
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let mut running = launcher.start(&[SANDBOX, LONG].concat());
    let pid = running.pid();
    let children = family(pid);
    assert_eq!(children.len(), 4, "two strategies, the engine, the reaper: {children:?}");
    signal(pid, "KILL");
    running.child.wait().unwrap();
    wait_until("its children are gone", || {
        children.iter().all(|(pid, _)| !std::path::Path::new(&format!("/proc/{pid}/exe")).exists())
    });
    wait_until("the control segment is gone", || segments(pid).is_empty());
    let folder = &launcher.folders()[0];
    assert_exists(&folder.join("engine.stamps"));
    let report = crate::common::output(&["report", folder.to_str().unwrap(), "--json"]);
    let summary: Value =
        serde_json::from_slice(&report.stdout).unwrap_or_else(|_| panic!("{}", text(&report.stderr)));
    assert!(summary["orders"]["sent"].as_u64().unwrap() > 0);
}

/// Runs the launcher under a limit of open files.
fn limited(limit: &str, strategies: &str) -> (Option<i32>, String, Vec<String>) {
    let launcher = Launcher::new();
    let script = format!(
        "ulimit {limit}; exec \"$0\" run --out \"$1\" --isolation sandbox --strategies {strategies} --venues 1 --orders 200 \
         --window 20ms --delay uniform:1ms..2ms --idle park"
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_launcher")]).arg(launcher.out.path());
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stderr), segments(pid))
}

#[test]
fn low_descriptor_limit_is_raised_or_refused() {
    if unsupported() {
        return;
    }
    let (code, stderr, left) = limited("-Sn 100", "8");
    assert_eq!((code, left.len()), (Some(0), 0), "{stderr}");
    let (code, stderr, left) = limited("-n 100", "8");
    assert_eq!((code, left.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains("files open") && stderr.contains("ulimit -Hn"), "{stderr}");
    assert!(stderr.contains("--strategies") && !stderr.contains("os error"), "{stderr}");
}
