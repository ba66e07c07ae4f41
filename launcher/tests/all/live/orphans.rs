//! Runs at the isolation level `container` where process 1 reaps nobody, or is the launcher itself:
//! they come to their end all the same.

use super::contained::{CONTAINER, unsupported};
use crate::common::{LIMIT, Launcher, concurrently, signal, text, wait_for, wait_until};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A run of three seconds.
const LOAD: &[&str] =
    &["--strategies", "2", "--venues", "1", "--orders", "3000", "--window", "3s", "--idle", "park"];

/// A namespace of process ids, with these words for its process 1.
const UNSHARE: [&str; 4] = ["--pid", "--fork", "--mount-proc", "--kill-child"];

fn cannot_unshare() -> bool {
    let tried = Command::new("unshare").args(UNSHARE).arg("true").status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("SKIPPED: namespaces of process ids are not allowed here");
    }
    !can
}

/// The processes whose command line holds all of these words, with their parents.
fn processes(words: &[&str]) -> Vec<(u32, u32)> {
    let read = |pid: u32, what: &str| text(&std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default());
    let parent = |pid: u32| {
        let stat = read(pid, "stat");
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = read(*pid, "cmdline").replace('\0', " ");
            words.iter().all(|word| line.contains(word))
        })
        .map(|pid| (pid, parent(pid)))
        .collect()
}

/// A run in a namespace of process ids in which the process outside of a container is killed, so
/// that those inside become orphans. `first` is the shell script of its process 1; the run's
/// command line follows it.
fn ends_normally(first: &str, on_death: &str) {
    let launcher = Launcher::new();
    let run = launcher.run(&[CONTAINER, LOAD, &["--on-death", on_death, "--quiet"]].concat());
    let code = launcher.out.path().with_extension("code");
    let out = launcher.out.path().to_str().unwrap().to_owned();
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", first]).arg(&code).arg(run.get_program()).args(run.get_args());
    let mut unshared = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the run has begun", || {
        launcher.folders().iter().any(|folder| folder.join("run.json").exists())
    });
    let is_launcher = |(pid, _): &(u32, u32)| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe == std::path::Path::new(run.get_program()))
    };
    let (ours, _) = processes(&["run", &out]).into_iter().find(is_launcher).unwrap();
    let outside = wait_for("there is a container", || {
        processes(&["role --contain strategy-1 "]).into_iter().find(|(_, parent)| *parent == ours)
    });
    signal(outside.0, "KILL");
    let (began, mut said) = (Instant::now(), None);
    while said.is_none() && began.elapsed() < LIMIT {
        std::thread::sleep(std::time::Duration::from_millis(50));
        said = std::fs::read_to_string(&code).ok().filter(|said| said.ends_with('\n'));
    }
    let left = processes(&["role --contain", &format!("-{ours}")]);
    unshared.kill().unwrap();
    unshared.wait().unwrap();
    let _ = std::fs::remove_file(&code);
    let wanted = if on_death == "stop" { "1" } else { "0" };
    assert_eq!(said.as_deref().map(str::trim), Some(wanted), "{first}: the exit code");
    assert!(left.is_empty(), "{left:?}");
    let summary = launcher.newest_summary();
    let incidents = summary["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), usize::from(on_death != "stop"), "{incidents:#?}");
    assert_eq!(
        incidents.iter().filter(|one| one["detect_to_repair_ns"].is_null()).count(),
        0,
        "{incidents:#?}"
    );
}

#[test]
fn a_contained_run_ends_where_process_1_reaps_nobody() {
    if unsupported() || cannot_unshare() {
        return;
    }
    // What is left of the shell's arguments is the run; its own process is one that waits for
    // nobody.
    let sleeps = "code=$0; (\"$@\"; echo $? > \"$code\") & exec sleep 600";
    concurrently(2, &["stop", "restart"], |on_death| ends_normally(sleeps, on_death));
}

#[test]
fn a_contained_run_ends_whose_launcher_is_process_1() {
    if unsupported() || cannot_unshare() {
        return;
    }
    // It becomes process 1, and what is written afterwards is by the process that sees its exit.
    let launcher = Launcher::new();
    let mut command = launcher.run(&[CONTAINER, LOAD, &["--on-death", "restart", "--quiet"]].concat());
    let words: Vec<String> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    command = Command::new("unshare");
    let mut unshared = command.args(UNSHARE).args(words).stdin(Stdio::null()).spawn().unwrap();
    wait_until("the run has begun", || {
        launcher.folders().iter().any(|folder| folder.join("run.json").exists())
    });
    let (ours, _) = processes(&["run", launcher.out.path().to_str().unwrap()])
        .into_iter()
        .find(|(_, parent)| *parent == unshared.id())
        .unwrap();
    let outside = wait_for("there is a container", || {
        processes(&["role --contain strategy-1 "]).into_iter().find(|(_, parent)| *parent == ours)
    });
    signal(outside.0, "KILL");
    let began = Instant::now();
    let status = loop {
        match unshared.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > LIMIT => {
                unshared.kill().unwrap();
                unshared.wait().unwrap();
                panic!("the launcher does not end");
            }
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    assert!(status.success(), "{status}");
    let summary = launcher.newest_summary();
    assert_eq!(summary["incidents"].as_array().unwrap().len(), 1);
    assert_eq!(summary["outcome"]["ended"], "complete");
}

/// A stopped process outside of a container does not see that its container is killed.
#[test]
fn container_with_stopped_shim_ends_with_run() {
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let death = ["--on-death", "restart", "--fault", "kill:strategy-1@1500ms", "--quiet"];
    let running = launcher.start(&[CONTAINER, LOAD, &death].concat());
    let pid = running.pid();
    signal(running.process("--contain strategy-1"), "STOP");
    signal(running.process("--contain strategy-0"), "STOP");
    let (code, _, stderr) = running.end();
    // That of strategy 0 is killed at the end: it was asked to exit and did not.
    assert_eq!(code, Some(0), "{stderr}");
    crate::common::assert_nothing_left(pid);
    let summary = launcher.newest_summary();
    let died: Vec<&Value> =
        summary["incidents"].as_array().unwrap().iter().map(|one| &one["strategy"]).collect();
    assert!(died.contains(&&Value::from(1)), "{died:?}");
}
