//! Strategies that are programs in another language: C and C++, built here, through the library in
//! `bindings`. They trade, they are supervised, and what is broken of them is contained as what is
//! broken of ours.

use crate::common::{
    CommandResult, Launcher, Running, assert_no_allocations, concurrently, list, output_of, proc, processes,
    signal, skip, text, wait_until,
};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
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
            skip(&format!("there is no compiler {compiler}"));
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

    /// As strategy 1 next to a player, with these words after it.
    pub fn with_player(&self, words: &str) -> String {
        with_player(&self.exec(words))
    }

    /// Its processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        processes().filter(|pid| proc(*pid, "cmdline").starts_with(&self.path())).collect()
    }
}

/// The flags of a run with a player and that program.
pub fn with_player(program: &str) -> String {
    format!("--strategies 2 --strategy 'player,{program}'")
}

/// The names and numbers in what a program printed last.
fn told(launcher: &Launcher, strategy: usize) -> HashMap<String, i64> {
    let said = launcher.read(&format!("strategy-{strategy}.stderr"));
    let words: Vec<&str> = said.lines().last().unwrap_or_default().split(' ').collect();
    words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}

/// How many orders the plan has for a strategy.
pub fn planned(summary: &Value, strategy: usize) -> i64 {
    summary["plan"]["workload"]["trading"]["orders"][strategy].as_i64().unwrap()
}

/// Checks that a program has sent all of its orders, and that it and the engine agree on its fills.
/// Returns how many there were.
pub fn agreed_fills(launcher: &Launcher, summary: &Value, strategy: usize) -> i64 {
    let (said, sent) = (told(launcher, strategy), planned(summary, strategy));
    let wanted = [("sent", sent), ("answered", sent), ("rejected", 0), ("odd", 0)];
    assert!(wanted.iter().all(|(what, count)| said[*what] == *count), "strategy {strategy}: {said:?}");
    let mut positions = list(&summary["trading"]["positions"]).iter();
    let booked = positions.find(|position| position["strategy"] == strategy);
    let figure = |name: &str| booked.map_or(0, |booked| booked[name].as_i64().unwrap());
    assert_eq!((figure("net"), figure("fills")), (said["net"], said["fills"]), "strategy {strategy}");
    said["fills"]
}

/// One venue that is an exchange.
pub const BOOK: &str = "--venue book --venues 1 --window 200ms";

/// A venue at which nothing rests: a run with deaths waits there for no silence at its end.
const DELAY: &str = "--venues 1 --window 200ms --delay fixed:1ms";

/// Through the default technique with programs in every language: see `languages`.
#[test]
fn programs_and_engine_agree_on_exchange_fills() {
    let Some(c) = Program::compile("examples/c/strategy.c") else { return };
    let Some(cpp) = Program::compile("examples/cpp/strategy.cpp") else { return };
    for technique in ["array-queue", "linked", "channel", "pipe", "unix-seqpacket"] {
        let launcher = Launcher::new();
        let idle = if technique == "linked" { "yield" } else { "park" };
        let summary = launcher.summary(&format!(
            "{BOOK} --strategies 3 --strategy 'player,{},{}' --orders 2400 --technique {technique} --idle {idle}",
            c.exec(""),
            cpp.exec("")
        ));
        let orders = &summary["orders"];
        let counts = ["sent", "returned", "lost"].map(|count| &orders[count]);
        assert_eq!(counts, [2400, 2400, 0], "{technique}");
        assert_no_allocations(&summary);
        for strategy in [1, 2] {
            assert!(agreed_fills(&launcher, &summary, strategy) > 0, "{technique}: {strategy}");
        }
    }
}

#[test]
fn a_killed_program_is_started_again_and_goes_on() {
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    let summary = launcher.summary(&format!(
        "{DELAY} {} --orders 20k --idle park --on-death restart --fault kill:strategy-1@30ms",
        program.with_player("")
    ));
    let [incident] = list(&summary["incidents"]) else { panic!("{:#}", summary["incidents"]) };
    assert_eq!((&incident["strategy"], &incident["cause"]), (&1.into(), &"signal 9 (SIGKILL)".into()));
    assert!(incident["repair_to_restart_ns"].is_u64(), "{incident:#}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    let said = told(&launcher, 1);
    assert_eq!((said["sent"] - said["answered"], said["odd"]), (0, 0), "the second incarnation: {said:?}");
    assert!((1..planned(&summary, 1)).contains(&said["sent"]), "what the first had not sent: {said:?}");
}

/// A run with a player and that broken program.
pub fn with_broken(program: &Program, what: &str, more: &str) -> (Launcher, CommandResult) {
    let launcher = Launcher::new();
    let kinds = program.with_player(what);
    let result = launcher.result(&format!("{DELAY} {kinds} --orders 4000 --idle park --json {more}"));
    (launcher, result)
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
    let kinds = broken.map(|(what, ..)| program.exec(what)).join(",");
    let summary = Launcher::new().summary(&format!(
        "{DELAY} --strategies {} --strategy 'player,{kinds}' --orders 16000 --idle park --on-death restart --liveness 2s",
        broken.len() + 1
    ));
    let mut incidents = list(&summary["incidents"]).to_vec();
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
    let (launcher, result) = with_broken(&program, "refused", "");
    let summary = result.json();
    assert_eq!((&summary["valid"], &summary["orders"]["sent"]), (&true.into(), &4000.into()));
    assert_eq!(launcher.read("strategy-1.stderr"), "well\n");
}

#[test]
fn program_that_never_attaches_is_named() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let wrapper = program.folder.path().join("wrapper.sh");
    std::fs::write(&wrapper, format!("#!/bin/sh\n{}\n", program.path())).unwrap();
    let made = Command::new("chmod").arg("+x").arg(&wrapper).status().unwrap();
    assert!(made.success());
    let wrapped = format!("exec:{}", wrapper.display());
    let broken = [
        (program.exec("never"), "500ms", ["not ready after 500ms", "has not attached (bh_attach)"]),
        (program.exec("leaves"), "30s", ["exit 0 before it had finished", "has not attached (bh_attach)"]),
        (program.exec("old"), "30s", ["exit 7", "another version of the interface"]),
        (wrapped, "30s", ["exit 1", "must become it (exec)"]),
    ];
    concurrently(4, &broken, |(kind, timeout, words)| {
        let launcher = Launcher::new();
        let flags = format!("--strategies 1 --strategy '{kind}' --orders 10 --start-timeout {timeout}");
        launcher.result(&flags).fails(1, &["strategy-0 (pid"]).fails(1, words);
        assert_eq!(launcher.folders().len(), 0, "{kind}: a run that never began leaves no folder");
    });
    wait_until("the programs are gone", || program.processes().is_empty());
    let alone = output_of(&mut Command::new(program.path()));
    assert!(alone.stderr.contains("BULKHEAD_RUN is not set"), "{}", alone.stderr);
}

#[test]
fn no_program_outlives_its_launcher() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    // One that waits for reports, one that never attaches, one that means to stay.
    for what in ["idle", "never", "stays"] {
        let launcher = Launcher::new();
        let kind = program.exec(what);
        let flags = format!("--strategies 1 --strategy '{kind}' --quiet --orders 1000");
        let running = Running::spawn(&mut launcher.run(&flags));
        wait_until("the program runs", || !program.processes().is_empty());
        signal(running.pid(), "KILL");
        running.end();
        wait_until("the program is gone", || program.processes().is_empty());
    }
}

#[test]
fn unsupported_program_names_remedy() {
    let launcher = Launcher::new();
    for (flags, words) in [
        ("--strategy exec:sh --isolation thread", ["exec:sh", "--isolation process"]),
        ("--strategy exec:/nowhere/mine", ["/nowhere/mine cannot be started", "No such file"]),
        ("--strategy exec:/etc/passwd", ["/etc/passwd is not executable", "chmod +x"]),
        ("--strategy exec:no-such-program", ["in PATH", "exec:./no-such-program"]),
        ("--strategy exec:", ["exec:COMMAND"; 2]),
        ("--strategy exec:sh --fault hang:strategy-0@1s", ["is a program", "kill or stop"]),
    ] {
        launcher.result(flags).fails(2, &words);
    }
    assert_eq!(launcher.folders().len(), 0);
}
