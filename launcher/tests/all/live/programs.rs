//! Strategies that are C and C++ programs, built here against the library in `contrib/bindings`.
//! They trade and are supervised, and their faults are contained like those of built-in strategies.

use crate::common::{
    CommandResult, Launcher, Running, assert_no_allocations, concurrently, list, output_of, proc, processes,
    signal, skip, text, wait_until,
};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Returns the folder of the library that this test program was built with.
pub(super) fn libraries() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(bulkhead::abi::bh_version() > 0, "the library is linked here as well");
    assert!(folder.join("libbulkhead.so").exists(), "no libbulkhead.so in {}", folder.display());
    folder
}

/// A folder with a program built from a source file in `contrib/bindings`, for use as a
/// `--strategy`.
pub struct Program {
    folder: TempDir,
}

impl Program {
    /// Compiles a program. Returns `None`, with a message, without a compiler.
    pub fn compile(source: &str) -> Option<Self> {
        let (folder, libraries) = (tempfile::tempdir().unwrap(), libraries());
        let bindings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/bindings");
        let [compiler, standard] =
            if source.ends_with(".cpp") { ["c++", "-std=c++17"] } else { ["cc", "-std=c11"] };
        let mut cc = Command::new(compiler);
        cc.args([standard, "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]);
        cc.arg(folder.path().join("program")).arg(bindings.join(source));
        cc.arg("-I").arg(bindings.join("include")).arg("-L").arg(&libraries).arg("-lbulkhead");
        // The library is placed next to the program, as in a distribution: a container shows a
        // program its own folder, and hides others below `/tmp`, where this checkout may be.
        let (library, copy) = (libraries.join("libbulkhead.so"), folder.path().join("libbulkhead.so"));
        std::fs::hard_link(&library, &copy).or_else(|_| std::fs::copy(&library, &copy).map(|_| ())).unwrap();
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

    /// Returns the `exec:` strategy with these arguments.
    pub fn exec(&self, arguments: &str) -> String {
        format!("exec:{} {arguments}", self.path()).trim_end().to_owned()
    }

    /// Returns the flags of a run with a player and, as strategy 1, this program with these
    /// arguments.
    pub fn with_player(&self, arguments: &str) -> String {
        with_player(&self.exec(arguments))
    }

    /// Returns the processes of the program.
    pub(super) fn processes(&self) -> Vec<u32> {
        processes().filter(|pid| proc(*pid, "cmdline").starts_with(&self.path())).collect()
    }
}

/// Returns the flags of a run with a player and, as strategy 1, a program.
pub fn with_player(program: &str) -> String {
    format!("--strategies 2 --strategy 'player,{program}'")
}

/// Returns the names and numbers in the last line that a program printed.
fn last_printed_counts(launcher: &Launcher, strategy: usize) -> HashMap<String, i64> {
    let counts = launcher.read(&format!("strategy-{strategy}.stderr"));
    let parts: Vec<&str> = counts.lines().last().unwrap_or_default().split(' ').collect();
    parts.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
}

/// Returns the number of orders that the plan has for a strategy.
pub fn planned(summary: &Value, strategy: usize) -> i64 {
    summary["plan"]["workload"]["trading"]["orders"][strategy].as_i64().unwrap()
}

/// Checks that a program has sent all of its orders and that it and the engine agree on its fills.
/// Returns the number of fills.
pub fn checked_fills(launcher: &Launcher, summary: &Value, strategy: usize) -> i64 {
    let (counts, sent) = (last_printed_counts(launcher, strategy), planned(summary, strategy));
    let expected = [("sent", sent), ("answered", sent), ("rejected", 0), ("odd", 0)];
    assert!(expected.iter().all(|(name, count)| counts[*name] == *count), "strategy {strategy}: {counts:?}");
    let mut positions = list(&summary["trading"]["positions"]).iter();
    let booked = positions.find(|position| position["strategy"] == strategy);
    let figure = |name: &str| booked.map_or(0, |booked| booked[name].as_i64().unwrap());
    assert_eq!((figure("net"), figure("fills")), (counts["net"], counts["fills"]), "strategy {strategy}");
    counts["fills"]
}

/// One venue that is an exchange.
pub const BOOK: &str = "--venue book --venues 1 --window 200ms";

/// A venue without resting orders: the end of a run with deaths need not wait for them.
const DELAY: &str = "--venues 1 --window 200ms --delay fixed:1ms";

/// The module `languages` tests the default technique.
#[test]
fn programs_and_engine_agree_on_exchange_fills() {
    let Some(c) = Program::compile("examples/c/strategy.c") else { return };
    let Some(cpp) = Program::compile("examples/cpp/strategy.cpp") else { return };
    for technique in ["linked", "unix-seqpacket"] {
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
            assert!(checked_fills(&launcher, &summary, strategy) > 0, "{technique}: {strategy}");
        }
    }
}

#[test]
fn killed_program_restarts_and_continues() {
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
    let counts = last_printed_counts(&launcher, 1);
    assert_eq!(
        (counts["sent"] - counts["answered"], counts["odd"]),
        (0, 0),
        "the second incarnation has answers to all its orders: {counts:?}"
    );
    assert!(
        (1..planned(&summary, 1)).contains(&counts["sent"]),
        "the second incarnation sends the remaining orders: {counts:?}"
    );
}

/// Makes a run with a player and a faulty program.
pub fn run_broken(program: &Program, behavior: &str, more: &str) -> (Launcher, CommandResult) {
    let launcher = Launcher::new();
    let kinds = program.with_player(behavior);
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
    let kinds = broken.map(|(behavior, ..)| program.exec(behavior)).join(",");
    let summary = Launcher::new().summary(&format!(
        "{DELAY} --strategies {} --strategy 'player,{kinds}' --orders 16000 --idle park --on-death restart --liveness 2s",
        broken.len() + 1
    ));
    let mut incidents = list(&summary["incidents"]).to_vec();
    incidents.sort_by_key(|incident| incident["strategy"].as_u64());
    assert_eq!(incidents.len(), broken.len(), "{incidents:#?}");
    for (((behavior, cause, is_restarted), incident), strategy) in broken.iter().zip(&incidents).zip(1..) {
        let counts = incident["cause"].as_str().unwrap();
        assert!(incident["strategy"] == strategy && counts.contains(cause), "{behavior}: {counts}");
        assert_eq!(incident["repair_to_restart_ns"].is_u64(), *is_restarted, "{behavior}: {incident:#}");
    }
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    assert_eq!(summary["outcome"]["ended"], "complete");
}

#[test]
fn invalid_library_calls_send_nothing() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let (launcher, result) = run_broken(&program, "refused", "");
    let summary = result.json();
    assert_eq!((&summary["valid"], &summary["orders"]["sent"]), (&true.into(), &4000.into()));
    assert_eq!(launcher.read("strategy-1.stderr"), "well\n");
}

#[test]
fn forked_child_sends_nothing() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let (launcher, result) = run_broken(&program, "forks", "");
    let summary = result.json();
    assert_eq!((&summary["valid"], &summary["orders"]["sent"]), (&true.into(), &4000.into()));
    assert_eq!(launcher.read("strategy-1.stderr"), "well\n");
}

#[test]
fn successor_inherits_positions() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let (launcher, result) = run_broken(&program, "inherits", "--on-death restart");
    assert_eq!(result.json()["valid"], true, "{}", result.stderr);
    // 50 orders of 1,000,000 at 41,300 were filled.
    let lines = "epoch 0 inherits 0 at 0\nepoch 1 inherits 50000000 at 41300\n";
    assert_eq!(launcher.read("strategy-1.stderr"), lines);
}

#[test]
fn program_that_never_attaches_is_named() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let wrapper = program.folder.path().join("wrapper.sh");
    std::fs::write(&wrapper, format!("#!/bin/sh\n{}\n", program.path())).unwrap();
    let status = Command::new("chmod").arg("+x").arg(&wrapper).status().unwrap();
    assert!(status.success());
    let wrapped = format!("exec:{}", wrapper.display());
    let broken = [
        (program.exec("never"), "500ms", ["not ready after 500ms", "has not attached (bh_attach)"]),
        (program.exec("leaves"), "30s", ["exit 0 before it had finished", "has not attached (bh_attach)"]),
        (program.exec("old"), "30s", ["exit 7", "another version of the interface"]),
        (wrapped, "30s", ["exit 1", "must become it (exec)"]),
    ];
    concurrently(4, &broken, |(kind, timeout, expected)| {
        let launcher = Launcher::new();
        let flags = format!("--strategies 1 --strategy '{kind}' --orders 10 --start-timeout {timeout}");
        launcher.result(&flags).fails(1, &["strategy-0 (pid"]).fails(1, expected);
        assert_eq!(launcher.folders().len(), 0, "{kind}: a run that never began leaves no folder");
    });
    wait_until("the programs are gone", || program.processes().is_empty());
    let alone = output_of(&mut Command::new(program.path()));
    assert!(alone.stderr.contains("BULKHEAD_RUN is not set"), "{}", alone.stderr);
}

#[test]
fn no_program_outlives_its_launcher() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    // Programs that wait for reports, never attach, or ignore the end of the run.
    for behavior in ["idle", "never", "stays"] {
        let launcher = Launcher::new();
        let kind = program.exec(behavior);
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
    for (flags, expected) in [
        ("--strategy exec:sh --isolation thread", ["exec:sh", "--isolation process"]),
        ("--strategy exec:/nowhere/mine", ["/nowhere/mine cannot be started", "No such file"]),
        ("--strategy exec:/etc/passwd", ["/etc/passwd is not executable", "chmod +x"]),
        ("--strategy exec:no-such-program", ["in PATH", "exec:./no-such-program"]),
        ("--strategy exec:", ["exec:COMMAND"; 2]),
        ("--strategy exec:sh --fault hang:strategy-0@1s", ["is a program", "kill or stop"]),
    ] {
        launcher.result(flags).fails(2, &expected);
    }
    assert_eq!(launcher.folders().len(), 0);
}
