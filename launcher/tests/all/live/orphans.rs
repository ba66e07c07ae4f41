//! Runs at the isolation level `container` end even if process 1 reaps no orphans, or is the
//! launcher itself.

use super::contained::CONTAINER;
use crate::common::{
    Launcher, Running, concurrently, document, list, proc, processes, signal, skip, string, wait_for,
    wait_until,
};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A run of three seconds.
const LOAD: &str = "--strategies 2 --venues 1 --orders 3000 --window 3s --idle park --quiet";

/// Arguments of `unshare` for a PID namespace, followed by the command of its process 1.
const UNSHARE: [&str; 4] = ["--pid", "--fork", "--mount-proc", "--kill-child"];

/// Returns a launcher if containers and PID namespaces are available; otherwise `None`, with a
/// message.
fn launcher() -> Option<Launcher> {
    let probe = Command::new("unshare").args(UNSHARE).arg("true").status();
    let has_pid_namespaces = probe.is_ok_and(|status| status.success());
    if !has_pid_namespaces {
        skip("namespaces of process ids are not allowed here");
    }
    Launcher::contained().filter(|_| has_pid_namespaces)
}

/// Returns the processes whose command line contains all of these words.
fn processes_with(parts: &[&str]) -> Vec<u32> {
    let is_named = |pid: &u32| {
        let line = proc(*pid, "cmdline").replace('\0', " ");
        parts.iter().all(|word| line.contains(word))
    };
    processes().filter(is_named).collect()
}

/// Starts a run in a PID namespace as, or by, its process 1, and kills the container shim of
/// strategy 1, so that the processes inside become orphans. Returns the started process and the
/// run's id.
fn orphaned(launcher: &Launcher, first: &[&str], on_death: &str) -> (Running, String) {
    let run = launcher.run(&format!("{CONTAINER} {LOAD} --on-death {on_death}"));
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(first).arg(run.get_program()).args(run.get_args());
    let unshared = Running::spawn(command.stdin(Stdio::null()));
    wait_until("the run has begun", || launcher.has_begun());
    let run_id = string(&document(&launcher.folder(), "run.json")["plan"]["run"]).to_owned();
    let shim = wait_for("the container shim exists", || {
        processes_with(&["role --contain strategy-1 ", &run_id]).into_iter().next()
    });
    signal(shim, "KILL");
    (unshared, run_id)
}

#[test]
fn contained_run_ends_if_process_1_reaps_nobody() {
    let Some(_) = launcher() else { return };
    // The ids of runs differ by the launcher's, which starts after one process more.
    let cases = [("stop", "1", 0, ":"), ("restart", "0", 1, ": $(true)")];
    concurrently(2, &cases, |(on_death, expected_code, count, another_process)| {
        let launcher = Launcher::new();
        let file = launcher.out.path().with_extension("code");
        // The shell starts the run and replaces itself with a process that never waits for
        // children.
        let script = format!("{another_process}; code=$0; (\"$@\"; echo $? > \"$code\") & exec sleep 600");
        let (mut unshared, run_id) =
            orphaned(&launcher, &["sh", "-c", &script, file.to_str().unwrap()], on_death);
        let code = wait_for("the run ends", || {
            std::fs::read_to_string(&file).ok().filter(|code| code.ends_with('\n'))
        });
        wait_until("its containers are gone", || processes_with(&["role --contain", &run_id]).is_empty());
        unshared.child.kill().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(code.trim(), *expected_code, "{on_death}: the exit code");
        let summary = launcher.newest_summary();
        let incidents = list(&summary["incidents"]);
        assert_eq!(incidents.len(), *count, "{incidents:#?}");
        assert!(incidents.iter().all(|one| one["detect_to_repair_ns"].is_u64()), "{incidents:#?}");
    });
}

#[test]
fn contained_run_ends_if_launcher_is_process_1() {
    let Some(launcher) = launcher() else { return };
    orphaned(&launcher, &[], "restart").0.end().succeeds();
    let summary = launcher.newest_summary();
    assert_eq!(list(&summary["incidents"]).len(), 1);
    assert_eq!(summary["outcome"]["ended"], "complete");
}

/// A stopped container shim does not notice that its container was killed.
#[test]
fn container_with_stopped_shim_ends_with_run() {
    let Some(launcher) = Launcher::contained() else { return };
    let death = "--on-death restart --fault kill:strategy-1@1500ms";
    let running = launcher.start(&format!("{CONTAINER} {LOAD} {death}"));
    signal(running.process("--contain strategy-1"), "STOP");
    signal(running.process("--contain strategy-0"), "STOP");
    // The shim of strategy 0 is killed at the end, since it did not exit when asked to.
    running.end().succeeds();
    let summary = launcher.newest_summary();
    let died: Vec<&Value> = list(&summary["incidents"]).iter().map(|one| &one["strategy"]).collect();
    assert!(died.contains(&&Value::from(1)), "{died:?}");
}
