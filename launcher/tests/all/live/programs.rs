//! Strategies that are programs in another language: C and C++, built here, through the library in
//! `bindings`. They trade, they are supervised, and what is broken of them is contained as what is
//! broken of ours.

use crate::common::{Launcher, assert_nothing_left, concurrently, signal, text, wait_until};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Where Cargo has put the library that this test program was built with.
pub(super) fn libraries() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(bulkhead::abi::bh_version() > 0, "it is linked here too");
    assert!(folder.join("libbulkhead.so").exists(), "no libbulkhead.so in {}", folder.display());
    folder
}

/// A folder with a program that was built from one of the sources in `bindings`, ready to be a
/// `--strategy`.
pub struct Program {
    folder: TempDir,
}

impl Program {
    /// `None`, with a message: no compiler here.
    pub fn compile(source: &str) -> Option<Self> {
        let (folder, libraries) = (tempfile::tempdir().unwrap(), libraries());
        let bindings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings");
        let [compiler, standard] =
            if source.ends_with(".cpp") { ["c++", "-std=c++17"] } else { ["cc", "-std=c11"] };
        let mut cc = Command::new(compiler);
        cc.args([standard, "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]);
        cc.arg(folder.path().join("program")).arg(bindings.join(source));
        cc.arg("-I").arg(bindings.join("include")).arg("-L").arg(&libraries).arg("-lbulkhead");
        // Its library next to it, as a distribution would: a container shows a program its own
        // folder, and hides others below `/tmp`, where this checkout may be.
        let (library, beside) = (libraries.join("libbulkhead.so"), folder.path().join("libbulkhead.so"));
        std::fs::hard_link(&library, &beside)
            .or_else(|_| std::fs::copy(&library, &beside).map(|_| ()))
            .unwrap();
        cc.arg("-Wl,-rpath,$ORIGIN");
        let Ok(output) = cc.output() else {
            eprintln!("SKIPPED: there is no compiler {compiler}");
            return None;
        };
        assert!(output.status.success(), "{source}: {}", text(&output.stderr));
        Some(Self { folder })
    }

    pub(super) fn path(&self) -> String {
        self.folder.path().join("program").display().to_string()
    }

    /// As a strategy, with these words behind it.
    pub fn exec(&self, words: &str) -> String {
        format!("exec:{} {words}", self.path()).trim_end().to_owned()
    }

    /// Its processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        let path = self.path();
        let is_it = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| text(&line).starts_with(&path))
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_it).collect()
    }
}

/// The names and numbers in what a program printed last.
pub fn told(launcher: &Launcher, strategy: u64) -> HashMap<String, i64> {
    let path = launcher.folders()[0].join(format!("strategy-{strategy}.stderr"));
    let said = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let words: Vec<&str> = said.lines().last().unwrap_or_default().split(' ').collect();
    words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}

/// How many orders the plan has for a strategy.
pub(super) fn planned(summary: &Value, strategy: usize) -> i64 {
    summary["plan"]["workload"]["trading"]["orders"][strategy].as_i64().unwrap()
}

/// One venue that is an exchange, and a player next to the program.
pub const BOOK: &[&str] = &["--venue", "book", "--venues", "1", "--window", "200ms"];

/// A venue at which nothing rests: a run with deaths waits there for no silence at its end.
const DELAY: [&str; 6] = ["--venues", "1", "--window", "200ms", "--delay", "fixed:1ms"];

#[test]
fn programs_and_engine_agree_on_exchange_fills() {
    let Some(c) = Program::compile("examples/c/strategy.c") else { return };
    let Some(cpp) = Program::compile("examples/cpp/strategy.cpp") else { return };
    let kinds = format!("player,{},{}", c.exec(""), cpp.exec(""));
    for technique in ["spsc-mux", "array-queue", "linked", "channel", "pipe", "unix-seqpacket"] {
        let launcher = Launcher::new();
        let flags = ["--strategies", "3", "--strategy", &kinds, "--orders", "2400", "--technique", technique];
        let idle = ["--idle", if technique == "linked" { "yield" } else { "park" }];
        let summary = launcher.summary(&[BOOK, &flags, &idle].concat());
        let orders = &summary["orders"];
        assert_eq!(
            (&orders["sent"], &orders["returned"], &orders["lost"]),
            (&2400.into(), &2400.into(), &0.into()),
            "{technique}"
        );
        for thread in summary["processes"].as_array().unwrap() {
            assert_eq!(thread["allocations"], 0, "{technique}: {thread:#}");
        }
        let positions = summary["trading"]["positions"].as_array().unwrap();
        for strategy in [1, 2] {
            let said = told(&launcher, strategy);
            let sent = planned(&summary, strategy as usize);
            let wanted = [("sent", sent), ("answered", sent), ("rejected", 0), ("odd", 0)];
            assert!(wanted.iter().all(|(what, count)| said[*what] == *count), "{technique}: {said:?}");
            let booked = positions.iter().find(|position| position["strategy"] == strategy).unwrap();
            assert_eq!(
                (booked["net"].as_i64(), booked["fills"].as_i64()),
                (Some(said["net"]), Some(said["fills"])),
                "{technique}: {booked:#}"
            );
            assert!(said["fills"] > 0, "{technique}: {said:?}");
        }
    }
}

#[test]
fn a_killed_program_is_started_again_and_goes_on() {
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    let kinds = format!("player,{}", program.exec(""));
    let flags = ["--strategies", "2", "--strategy", &kinds, "--orders", "20k", "--idle", "park"];
    let death = ["--on-death", "restart", "--fault", "kill:strategy-1@30ms", "--strict-faults"];
    let summary = launcher.summary(&[&DELAY[..], &flags, &death].concat());
    let incidents = summary["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1, "{incidents:#?}");
    assert_eq!(
        (&incidents[0]["strategy"], &incidents[0]["cause"]),
        (&1.into(), &"signal 9 (SIGKILL)".into())
    );
    assert!(incidents[0]["repair_to_restart_ns"].is_u64(), "{incidents:#?}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    let said = told(&launcher, 1);
    assert_eq!((said["sent"] - said["answered"], said["odd"]), (0, 0), "the second incarnation: {said:?}");
    assert!((1..planned(&summary, 1)).contains(&said["sent"]), "what the first had not sent: {said:?}");
}

/// A run with a player and that broken program.
pub(super) fn with_broken(program: &Program, what: &str, more: &[&str]) -> (Launcher, Output) {
    let launcher = Launcher::new();
    let kinds = format!("player,{}", program.exec(what));
    let flags = ["--strategies", "2", "--strategy", &kinds, "--orders", "4000", "--idle", "park", "--json"];
    let output = launcher.run(&[&DELAY[..], &flags, more].concat()).output().unwrap();
    (launcher, output)
}

#[test]
fn broken_program_is_contained() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let broken = [
        ("hang", "hangs", true),
        ("abort", "SIGABRT", true),
        ("segv", "SIGSEGV", true),
        ("leak", "SIGABRT", true),
        ("early", "exit 0 before it had finished", true),
        ("nowhere", "quarantined: unknown-venue", false),
        ("scribble", "quarantined: ", false),
    ];
    let kinds: Vec<String> = broken.iter().map(|(what, ..)| program.exec(what)).collect();
    let (kinds, strategies) = (format!("player,{}", kinds.join(",")), (broken.len() + 1).to_string());
    let flags = ["--strategies", &strategies, "--strategy", &kinds, "--orders", "16000", "--idle", "park"];
    let death = ["--on-death", "restart", "--liveness", "2s"];
    let summary = Launcher::new().summary(&[&DELAY[..], &flags, &death].concat());
    let mut incidents = summary["incidents"].as_array().unwrap().clone();
    incidents.sort_by_key(|incident| incident["strategy"].as_u64());
    assert_eq!(incidents.len(), broken.len(), "{incidents:#?}");
    for (((what, cause, comes_back), incident), strategy) in broken.iter().zip(&incidents).zip(1..) {
        let said = incident["cause"].as_str().unwrap();
        assert!(incident["strategy"] == strategy && said.contains(cause), "{what}: {said}");
        assert_eq!(incident["repair_to_restart_ns"].is_u64(), *comes_back, "{what}: {incident:#}");
    }
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    assert_eq!(summary["outcome"]["ended"], "complete");
}

#[test]
fn invalid_library_calls_send_nothing() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let (launcher, output) = with_broken(&program, "refused", &[]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["valid"], &summary["orders"]["sent"]), (&true.into(), &4000.into()));
    let said = std::fs::read_to_string(launcher.folders()[0].join("strategy-1.stderr")).unwrap();
    assert_eq!(said, "well\n");
}

#[test]
fn program_that_never_attaches_is_named() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let wrapper = program.folder.path().join("wrapper.sh");
    std::fs::write(&wrapper, format!("#!/bin/sh\n{}\n", program.path())).unwrap();
    let made = Command::new("chmod").arg("+x").arg(&wrapper).status().unwrap();
    assert!(made.success());
    let wrapped = format!("exec:{}", wrapper.display());
    let is_named = |kind: &str, words: &[&str]| {
        let launcher = Launcher::new();
        let timeout = if words[0].contains("500ms") { "500ms" } else { "30s" };
        let flags = ["--strategies", "1", "--strategy", kind, "--orders", "10", "--start-timeout", timeout];
        let output = launcher.run(&flags).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{kind}: {error}");
        assert!(error.contains("strategy-0 (pid"), "{kind}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{kind}: {error}");
        assert_eq!(launcher.folders().len(), 0, "{kind}: a run that never began leaves no folder");
    };
    let broken = [
        (program.exec("never"), &["not ready after 500ms", "has not attached (bh_attach)"][..]),
        (program.exec("leaves"), &["exit 0 before it had finished", "has not attached (bh_attach)"]),
        (program.exec("old"), &["exit 7", "another version of the interface"]),
        (wrapped, &["exit 1", "must become it (exec)"]),
    ];
    concurrently(4, &broken, |(kind, words)| is_named(kind, words));
    wait_until("the programs are gone", || program.processes().is_empty());
    let alone = Command::new(program.path()).output().unwrap();
    assert!(text(&alone.stderr).contains("BULKHEAD_RUN is not set"), "{}", text(&alone.stderr));
}

#[test]
fn no_program_outlives_its_launcher() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    // One that waits for reports, one that never attaches, one that means to stay.
    for what in ["idle", "never", "stays"] {
        let launcher = Launcher::new();
        let kind = program.exec(what);
        let flags = ["--strategies", "1", "--strategy", &kind, "--quiet", "--orders", "1000"];
        let mut child = launcher.run(&flags).spawn().unwrap();
        wait_until("the program runs", || !program.processes().is_empty());
        signal(child.id(), "KILL");
        child.wait().unwrap();
        wait_until("the program is gone", || program.processes().is_empty());
        assert_nothing_left(child.id());
    }
}

#[test]
fn unsupported_program_names_remedy() {
    let launcher = Launcher::new();
    for (flags, words) in [
        (&["--strategy", "exec:sh", "--isolation", "thread"][..], &["exec:sh", "--isolation process"][..]),
        (&["--strategy", "exec:/nowhere/mine"], &["/nowhere/mine cannot be started: No such file"]),
        (&["--strategy", "exec:/etc/passwd"], &["/etc/passwd is not executable", "chmod +x"]),
        (&["--strategy", "exec:no-such-program"], &["in PATH", "exec:./no-such-program"]),
        (&["--strategy", "exec:"], &["exec:COMMAND"]),
        (&["--strategy", "exec:sh", "--fault", "hang:strategy-0@1s"], &["is a program", "kill or stop"]),
    ] {
        let output = launcher.run(flags).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{flags:?}: {error}");
    }
    assert_eq!(launcher.folders().len(), 0);
}
