//! Strategies in debuggers. One that a person has stopped does not hang; one that has itself
//! stopped does.

use super::contained::CONTAINER;
use super::programs::{Program, run_broken};
use super::replacements::assert_nothing_lost;
use super::watching::{start_trading, watch_once};
use crate::common::{
    Launcher, concurrently, list, newest_process, number, read_until, signal, skip, string, wait_until,
};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::process::{Command, Stdio};

const FLAGS: &str = "--isolation process --technique spsc-mux --liveness 500ms --on-death continue";

/// A debugger of all threads of a process, which this thread is. It detaches on drop.
struct TestDebugger(Vec<Pid>);

impl TestDebugger {
    /// Stops all threads of a process. Returns `None`, with a message, if that is refused.
    fn attach(pid: u32) -> Option<Self> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let threads = tasks.map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap());
        let threads: Vec<Pid> = threads.map(Pid::from_raw).collect();
        for thread in &threads {
            if let Err(error) = ptrace::seize(*thread, ptrace::Options::empty()) {
                skip(&format!("ptrace is refused here: {error}"));
                return None;
            }
            ptrace::interrupt(*thread).unwrap();
            waitpid(*thread, Some(WaitPidFlag::__WALL)).unwrap();
        }
        Some(Self(threads))
    }
}

impl Drop for TestDebugger {
    fn drop(&mut self) {
        // A thread that was killed has no debugger any more.
        for thread in &self.0 {
            let _ = ptrace::detach(*thread, None);
        }
    }
}

/// Returns the orders that the first strategy has sent.
fn sent(run: &str) -> u64 {
    number(&watch_once(run)["roles"][0]["orders"])
}

/// A debugger that does not wait for a dead strategy keeps it as a zombie. The run goes on, and
/// names the debugger.
#[test]
fn dead_strategy_in_debugger_is_replaced() {
    let launcher = Launcher::new();
    let (mut running, run) = start_trading(&launcher, &FLAGS.replace("continue", "restart"));
    let victim = running.process("strategy-1");
    let Some(debugger) = TestDebugger::attach(victim) else { return drop(running.interrupt()) };
    signal(victim, "KILL");
    let own = format!("(pid {}), which may keep it from ending", std::process::id());
    read_until(running.child.stderr.as_mut().unwrap(), &own);
    wait_until("its successor trades", || newest_process(running.pid(), "strategy-1", victim).is_some());
    assert_eq!(watch_once(&run)["strategies"][1]["incidents"], 1);
    drop(debugger);
    assert_nothing_lost(&launcher.interrupted(running));
}

/// A tracer that the strategy has started, directly or by a process that has ended, exempts
/// nobody.
#[test]
fn strategy_traced_by_itself_counts_as_hung() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let levels = ["--isolation process", CONTAINER];
    let count = if Launcher::contained().is_some() { 2 } else { 1 };
    let cases: Vec<_> = levels[..count]
        .iter()
        .flat_map(|level| ["traced-by-child", "traced-by-orphan"].map(|behavior| (level, behavior)))
        .collect();
    // Each mostly waits for its deadline.
    concurrently(4, &cases, |(level, behavior)| {
        // The player has as long to exit when it is done.
        let flags = format!("{level} --on-death continue --liveness 3s");
        let (_launcher, result) = run_broken(&program, behavior, &flags);
        let summary = result.json();
        let [incident] = list(&summary["incidents"]) else { panic!("{:#}", summary["incidents"]) };
        let cause = string(&incident["cause"]);
        if cause.contains("exit 3") {
            return skip("ptrace is refused here");
        }
        assert!(cause.contains("hangs"), "{level} {behavior}: {cause}");
        assert!(!summary["reasons"].to_string().contains("a debugger"), "{}", summary["reasons"]);
    });
}

/// A tracer that never waits for the strategy keeps it as a zombie, which the launcher cannot wait
/// for. Children that strategies leave end with the run.
#[test]
fn kept_zombies_are_fenced_and_leftovers_end() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let behaviors = ["kept-by-child", "kept-at-exit", "crash-handler", "leaves-child"];
    let kinds = behaviors.map(|behavior| program.exec(behavior)).join(",");
    let flags = "--venues 1 --window 200ms --delay fixed:1ms --idle park --on-death restart --liveness 500ms";
    let strategies = behaviors.len() + 1;
    let result = Launcher::new().result(&format!(
        "--strategies {strategies} --strategy 'player,{kinds}' --orders 10000 {flags} --json"
    ));
    assert_eq!(program.processes(), [0; 0], "{}", result.stderr);
    let summary = result.json();
    assert_eq!(summary["outcome"]["ended"], "complete", "{}", result.stderr);
    let mut incidents = list(&summary["incidents"]).to_vec();
    incidents.sort_by_key(|incident| incident["strategy"].as_u64());
    if incidents.iter().any(|incident| string(&incident["cause"]).contains("exit 3")) {
        return skip("ptrace is refused here");
    }
    let dead: Vec<_> = incidents.iter().map(|incident| incident["strategy"].as_u64().unwrap()).collect();
    assert_eq!(dead, [1, 2, 3], "{incidents:#?}");
    for incident in &incidents {
        assert!(string(&incident["cause"]).contains("hangs"), "{incident:#}");
        assert!(incident["repair_to_restart_ns"].is_u64(), "{incident:#}");
    }
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
}

/// The command of the book: `gdb -p`.
#[test]
fn gdb_stops_strategy_without_incident() {
    let launcher = Launcher::new();
    let (mut running, run) = start_trading(&launcher, FLAGS);
    let pid = running.process("strategy-1").to_string();
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    // Until the launcher has noticed, however long that takes.
    let (seen_path, folder_path) = (seen.display(), folder.path().display());
    let hold = format!("shell until [ -e {seen_path} ] || [ ! -d {folder_path} ]; do sleep 0.05; done");
    let arguments = ["-p", &pid, "--batch", "-ex", "bt", "-ex", &hold, "-ex", "detach"];
    let mut command = Command::new("gdb");
    let Ok(mut gdb) = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        skip("there is no gdb");
        return drop(running.interrupt());
    };
    let before = sent(&run);
    read_until(running.child.stderr.as_mut().unwrap(), "gdb): its deadline (--liveness) waits");
    wait_until("the other trades on", || sent(&run) > before);
    std::fs::write(&seen, "").unwrap();
    assert!(gdb.wait().unwrap().success());
    let summary = launcher.interrupted(running);
    assert_eq!(list(&summary["incidents"]).len(), 0, "{:#}", summary["incidents"]);
}
