//! Strategies that are programs of somebody else's at the isolation level `sandbox`: they trade as they do at `process`, what they try is refused before
//! they attach and ends them afterwards, and one that leaves the sandbox out is found.
#![cfg(target_arch = "x86_64")]

use super::programs::{BOOK, Program, planned, told, with_broken};
use super::sandboxed::unsupported;
use crate::common::{Launcher, assert_nothing_left, family, signal, text, wait_until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const SANDBOX: &[&str] = &["--isolation", "sandbox"];

#[test]
fn programs_trade_from_the_sandbox_and_keep_the_same_account_as_the_engine() {
    if unsupported() {
        return;
    }
    let Some(c) = Program::of("examples/c/strategy.c") else { return };
    let Some(cpp) = Program::of("examples/cpp/strategy.cpp") else { return };
    let kinds = format!("player,{},{}", c.exec(""), cpp.exec(""));
    for technique in ["spsc-mux", "array-queue", "linked", "channel"] {
        let launcher = Launcher::new();
        let flags = ["--strategies", "3", "--strategy", &kinds, "--orders", "2400", "--technique", technique];
        let summary = launcher.summary(&[SANDBOX, BOOK, &flags, &["--idle", "yield"]].concat());
        assert_eq!(
            (&summary["isolation"], &summary["orders"]["returned"], &summary["orders"]["lost"]),
            (&"sandbox".into(), &2400.into(), &0.into()),
            "{technique}"
        );
        let positions = summary["trading"]["positions"].as_array().unwrap();
        for strategy in [1, 2] {
            let (said, sent) = (told(&launcher, strategy), planned(&summary, strategy as usize));
            assert_eq!((said["sent"], said["answered"], said["odd"]), (sent, sent, 0), "{technique}");
            let booked = positions.iter().find(|position| position["strategy"] == strategy).unwrap();
            assert_eq!(
                (booked["net"].as_i64(), booked["fills"].as_i64()),
                (Some(said["net"]), Some(said["fills"])),
                "{technique}: {booked:#}"
            );
        }
    }
}

#[test]
fn a_program_in_the_sandbox_holds_its_own_memory_and_nothing_else() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    let launcher = Launcher::new();
    let kinds = format!("player,{}", program.exec("idle"));
    let flags = ["--strategies", "2", "--strategy", &kinds, "--orders", "2000", "--idle", "park"];
    let running = launcher.start(&[SANDBOX, BOOK, &flags].concat());
    let launcher_pid = running.pid();
    let pid = program.processes()[0];
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["1", "1"]);
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let behind = open.map(|fd| fs::read_link(fd.unwrap().path()).unwrap().display().to_string());
    let open: Vec<String> = behind.filter(|link| link != "/dev/null" && !link.ends_with(".stderr")).collect();
    assert!(open.iter().all(|link| link == "anon_inode:[pidfd]" || link.contains("schedule")), "{open:?}");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let not_its_own = |line: &&str| {
        ["thread-strategy-0", "thread-engine", "return-0", "inbox", "repairs", "desk"]
            .iter()
            .any(|what| line.contains(what))
    };
    assert_eq!(maps.lines().find(not_its_own), None);
    signal(launcher_pid, "INT");
    running.end();
    assert_nothing_left(launcher_pid);
}

/// The only incident of a run with that broken program in the sandbox, which ended well for all others.
fn incident(program: &Program, what: &str, liveness: &str) -> Value {
    let flags = ["--on-death", "restart", "--liveness", liveness];
    let (_launcher, output) = with_broken(program, what, &[SANDBOX, &flags].concat());
    let summary: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{what}: {error}: {}", text(&output.stderr)));
    let incidents = summary["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1, "{what}: {incidents:#?}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{what}");
    assert_eq!(summary["outcome"]["ended"], "complete", "{what}: {}", text(&output.stderr));
    assert_eq!(summary["valid"], true, "{what}: {}", summary["reasons"]);
    incidents[0].clone()
}

#[test]
fn what_a_broken_program_does_is_contained_in_the_sandbox_too() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    for (what, cause, comes_back) in [
        ("hang", "hangs", true),
        ("abort", "SIGABRT", true),
        ("segv", "SIGSEGV", true),
        ("leak", "SIGABRT", true),
        ("early", "exit 0 before it had finished", true),
        ("nowhere", "quarantined: unknown-venue", false),
        // Its memory has no name to open.
        ("scribble", "SIGSYS", true),
    ] {
        let incident = incident(&program, what, if what == "hang" { "1s" } else { "10s" });
        let cause_said = incident["cause"].as_str().unwrap();
        assert!(incident["strategy"] == 1 && cause_said.contains(cause), "{what}: {cause_said}");
        assert_eq!(incident["repair_to_restart_ns"].is_u64(), comes_back, "{what}: {incident:#}");
    }
}

#[test]
fn a_program_that_reaches_out_once_it_has_attached_is_ended() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    for what in ["open", "socket", "fork", "ptrace", "signal"] {
        let incident = incident(&program, what, "10s");
        assert_eq!(incident["cause"], "signal 31 (SIGSYS)", "{what}");
        assert!(incident["repair_to_restart_ns"].is_u64(), "{what}: {incident:#}");
    }
}

/// It puts up filters that allow everything, as many as it should: what is closed from outside stays closed.
#[test]
fn a_program_that_only_pretends_is_in_the_sandbox_all_the_same() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    assert_eq!(incident(&program, "pretends", "10s")["cause"], "exit 40", "41: something was allowed");
}

#[test]
fn a_program_that_leaves_the_sandbox_out_is_found_before_anything_is_sent() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    let (launcher, output) = with_broken(&program, "unfiltered", SANDBOX);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("strategy-1 (pid") && error.contains("is not sandboxed"), "{error}");
    assert!(error.contains("filters of system calls instead of"), "{error}");
    assert_eq!(launcher.folders().len(), 0, "a run that never began leaves no folder");
    wait_until("the program is gone", || program.processes().is_empty());
}

#[test]
fn before_it_attaches_a_program_reaches_nothing_but_what_it_reads() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    let (_launcher, output) = with_broken(&program, "before", SANDBOX);
    let error = text(&output.stderr);
    assert!(error.contains("exit 40") && !error.contains("allowed:"), "{error}");
}

#[test]
fn what_the_sandbox_has_no_room_for_is_said_with_the_way_out() {
    if unsupported() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("strategy");
    fs::write(&script, "#!/usr/bin/env python3\nprint()\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("exec:{}", script.display());
    let launcher = Launcher::new();
    for (flags, words) in [
        (&["--strategy", &script][..], &["Python opens files", "--isolation container"][..]),
        (&["--strategy", "exec:sh", "--technique", "pipe"], &["a technique in memory"]),
        (&["--strategy", "exec:sh", "--priority", "fifo:50"], &["Leave --priority out"]),
    ] {
        let output = launcher.run(&[SANDBOX, flags].concat()).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{flags:?}: {error}");
    }
}

#[test]
fn no_program_in_a_sandbox_outlives_its_launcher() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::of("tests/c/broken.c") else { return };
    // One that waits for reports, one that never attaches, one that means to stay.
    for what in ["idle", "never", "stays"] {
        let launcher = Launcher::new();
        let kind = program.exec(what);
        let flags = ["--strategies", "1", "--strategy", &kind, "--quiet", "--orders", "1000"];
        let mut child = launcher.run(&[SANDBOX, &flags].concat()).spawn().unwrap();
        wait_until("the program runs", || !program.processes().is_empty());
        let children = family(child.id());
        signal(child.id(), "KILL");
        child.wait().unwrap();
        wait_until("everybody is gone", || {
            program.processes().is_empty()
                && children.iter().all(|(pid, _)| !std::path::Path::new(&format!("/proc/{pid}/exe")).exists())
        });
        assert_nothing_left(child.id());
    }
}
