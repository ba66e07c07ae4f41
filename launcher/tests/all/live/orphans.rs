//! Runs at the isolation level `container` where process 1 reaps nobody, or is the launcher itself:
//! they come to their end all the same.

use super::contained::CONTAINER;
use crate::common::{
    Launcher, Running, concurrently, list, parent, proc, processes, signal, skip, wait_for, wait_until,
};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A run of three seconds.
const LOAD: &str = "--strategies 2 --venues 1 --orders 3000 --window 3s --idle park --quiet";

/// A namespace of process ids, with these words for its process 1.
const UNSHARE: [&str; 4] = ["--pid", "--fork", "--mount-proc", "--kill-child"];

/// A launcher where there are containers and namespaces of process ids.
fn launcher() -> Option<Launcher> {
    let tried = Command::new("unshare").args(UNSHARE).arg("true").status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        skip("namespaces of process ids are not allowed here");
    }
    Launcher::contained().filter(|_| can)
}

/// The processes whose command line holds all of these words.
fn named(words: &[&str]) -> Vec<u32> {
    let is_named = |pid: &u32| {
        let line = proc(*pid, "cmdline").replace('\0', " ");
        words.iter().all(|word| line.contains(word))
    };
    processes().filter(is_named).collect()
}

/// Starts a run in a namespace of process ids as, or by, its process 1, and kills the process
/// outside of the container of strategy 1, so that those inside become orphans. Returns what was
/// started and the launcher's process id.
fn orphaned(launcher: &Launcher, first: &[&str], on_death: &str) -> (Running, u32) {
    let run = launcher.run(&format!("{CONTAINER} {LOAD} --on-death {on_death}"));
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(first).arg(run.get_program()).args(run.get_args());
    let unshared = Running::spawn(command.stdin(Stdio::null()));
    wait_until("the run has begun", || launcher.has_begun());
    let is_launcher =
        |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == run.get_program());
    let out = launcher.out.path().to_str().unwrap();
    let ours = named(&["run", out]).into_iter().find(is_launcher).unwrap();
    let outside = wait_for("there is a container", || {
        named(&["role --contain strategy-1 "]).into_iter().find(|pid| parent(*pid) == Some(ours))
    });
    signal(outside, "KILL");
    (unshared, ours)
}

#[test]
fn a_contained_run_ends_where_process_1_reaps_nobody() {
    let Some(_) = launcher() else { return };
    concurrently(2, &[("stop", "1", 0), ("restart", "0", 1)], |(on_death, wanted, count)| {
        let launcher = Launcher::new();
        let file = launcher.out.path().with_extension("code");
        // What is left of the shell's arguments is the run; its own process is one that waits for
        // nobody.
        let sleeps = "code=$0; (\"$@\"; echo $? > \"$code\") & exec sleep 600";
        let (mut unshared, ours) =
            orphaned(&launcher, &["sh", "-c", sleeps, file.to_str().unwrap()], on_death);
        let code =
            wait_for("it ends", || std::fs::read_to_string(&file).ok().filter(|code| code.ends_with('\n')));
        let left = named(&["role --contain", &format!("-{ours}")]);
        unshared.child.kill().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(code.trim(), *wanted, "{on_death}: the exit code");
        assert!(left.is_empty(), "{left:?}");
        let summary = launcher.newest_summary();
        let incidents = list(&summary["incidents"]);
        assert_eq!(incidents.len(), *count, "{incidents:#?}");
        assert!(incidents.iter().all(|one| one["detect_to_repair_ns"].is_u64()), "{incidents:#?}");
    });
}

#[test]
fn a_contained_run_ends_whose_launcher_is_process_1() {
    let Some(launcher) = launcher() else { return };
    orphaned(&launcher, &[], "restart").0.end().succeeds();
    let summary = launcher.newest_summary();
    assert_eq!(list(&summary["incidents"]).len(), 1);
    assert_eq!(summary["outcome"]["ended"], "complete");
}

/// A stopped process outside of a container does not see that its container is killed.
#[test]
fn container_with_stopped_shim_ends_with_run() {
    let Some(launcher) = Launcher::contained() else { return };
    let death = "--on-death restart --fault kill:strategy-1@1500ms";
    let running = launcher.start(&format!("{CONTAINER} {LOAD} {death}"));
    signal(running.process("--contain strategy-1"), "STOP");
    signal(running.process("--contain strategy-0"), "STOP");
    // That of strategy 0 is killed at the end: it was asked to exit and did not.
    running.end().succeeds();
    let summary = launcher.newest_summary();
    let died: Vec<&Value> = list(&summary["incidents"]).iter().map(|one| &one["strategy"]).collect();
    assert!(died.contains(&&Value::from(1)), "{died:?}");
}
