//! `watch` of active runs at several levels, and of a run whose strategy scribbles over its memory.

use crate::common::{
    LONG, Launcher, Running, assert_nothing_left, command, output, signal, text, wait_until,
};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn once(run: &str) -> Value {
    let output = output(&["watch", run, "--once", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a role is doing.
fn role<'a>(looked: &'a Value, name: &str) -> &'a Value {
    let roles = looked["roles"].as_array().unwrap();
    roles.iter().find(|role| role["role"] == name).unwrap_or_else(|| panic!("no {name} in {looked:#}"))
}

fn refused(args: &[&str], word: &str) {
    let output = output(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(text(&output.stderr).contains(word), "{args:?}: {}", text(&output.stderr));
}

/// A run that goes on, of which something was counted already.
fn started(launcher: &Launcher, flags: &[&str]) -> (Running, String) {
    let running = launcher.start(&[LONG, flags].concat());
    let folder = launcher.folders()[0].to_str().unwrap().to_owned();
    wait_until("orders flow", || once(&folder)["settled"].as_u64() > Some(100));
    (running, folder)
}

fn watches(flags: &[&str], sees_rings: bool) {
    let launcher = Launcher::new();
    let (running, folder) = started(&launcher, flags);
    let pid = running.pid();
    let looked = once(&folder);
    assert_eq!((&looked["version"], &looked["state"]), (&2.into(), &"running".into()));
    for name in ["strategy-0", "strategy-1", "orchestrator", "gateway-0", "gateway-1"] {
        let role = role(&looked, name);
        assert_eq!(role["state"], "running", "{role:#}");
        assert!(role["rate"].as_f64().unwrap() > 0.0, "{role:#}");
        assert!(role["heartbeat_age_ns"].is_u64() && role["reports"].as_u64() > Some(0), "{role:#}");
    }
    assert!(role(&looked, "strategy-0")["counters"]["sent"].as_u64().unwrap() > 0);
    let rings = looked["rings"].as_array().unwrap();
    assert!(!sees_rings || rings.len() > 4 && rings.iter().all(|ring| ring["fill"].is_u64()), "{rings:#?}");

    // The same run by other names, and as text.
    let run = looked["run"].as_str().unwrap();
    assert_eq!(once(run)["run"], looked["run"]);
    let frame = output(&["watch", run]);
    let frame = text(&frame.stdout);
    for word in [run, "orchestrator", "capacity", "rate/s", "deaths"] {
        assert!(frame.contains(word), "no {word} in\n{frame}");
    }
    assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");

    // What operators do shows.
    assert!(output(&["kill", run, "--strategy", "1", "--timeout", "60s"]).status.success());
    wait_until("the kill shows", || {
        let looked = once(run);
        looked["strategies"][1]["killed"][0] == "strategy-1 by operator"
            && looked["strategies"][0]["killed"] == serde_json::json!([])
            && looked["rejected"].as_u64() > Some(0)
    });

    // A watcher notices its end, and a later one is refused.
    let mut stream = command(&["watch", run, "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(stream.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut states = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap()["state"].clone());
    assert_eq!(states.next(), Some("running".into()));
    signal(pid, "INT");
    assert_eq!(states.last(), Some("over".into()));
    assert!(stream.wait().unwrap().success());
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(130), "{stdout}{stderr}");
    assert_nothing_left(pid);
    refused(&["watch", &folder, "--once"], "is over");
}

#[test]
fn process_run_is_watched_from_start_to_end() {
    watches(&["--isolation", "process", "--technique", "spsc-mux"], true);
}

#[test]
fn a_run_whose_memory_has_no_names_is_watched() {
    watches(&["--isolation", "sandbox", "--technique", "array-queue"], true);
}

#[test]
fn a_run_of_threads_is_watched() {
    watches(&["--isolation", "thread", "--technique", "crossbeam-array-queue"], false);
}

/// A strategy that writes over all that it can, and its status first of all: the others are seen as
/// they are, and nothing that it wrote reaches the terminal.
#[test]
fn scribbled_memory_does_not_mislead_watch() {
    let launcher = Launcher::new();
    let flags = ["--isolation", "process", "--on-death", "continue", "--fault", "scribble:strategy-0@1s"];
    let running = launcher.start(&[LONG, &flags].concat());
    let pid = running.pid();
    let folder = launcher.folders()[0].to_str().unwrap().to_owned();
    wait_until("it is dead", || {
        let frame = output(&["watch", &folder, "--once"]);
        assert!(frame.status.success(), "{}", text(&frame.stderr));
        let is_plain = |byte: &u8| *byte == b'\n' || *byte >= b' ' && *byte != 0x7F;
        assert!(frame.stdout.iter().all(is_plain), "{:?}", text(&frame.stdout));
        assert!(!text(&frame.stdout).chars().any(|c| ('\u{80}'..'\u{A0}').contains(&c)));
        once(&folder)["strategies"][0]["is_fenced"] == true
    });
    let looked = once(&folder);
    assert_eq!(looked["strategies"][0]["incidents"], 1);
    assert_eq!(looked["strategies"][1]["incidents"], 0);
    assert_eq!(role(&looked, "strategy-0")["pid"], Value::Null);
    assert!(role(&looked, "strategy-1")["rate"].as_f64().unwrap() > 0.0, "{looked:#}");
    signal(pid, "INT");
    running.end();
    assert_nothing_left(pid);
}

#[test]
fn unwatchable_run_is_refused() {
    refused(&["watch", "20000101-000000000", "--once"], "no run 20000101-000000000");
}
