//! Memory of a living run that is taken away: by a contained strategy that means harm, which
//! cannot, and by another process of the same user, which can truncate every segment that has a
//! name. Launcher and reaper survive, save what there is, and blame nobody.

use super::contained::unsupported;
use super::programs::Program;
use super::room::in_namespace;
use crate::common::{
    Launcher, Running, assert_exists, assert_nothing_left, command, concurrently, document, segments, signal,
    text, wait_for, wait_until,
};
use serde_json::Value;
use shm::memory::SHM_DIR;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};

/// A run of a minute with a segment of each kind: an exchange in a process of its own, boards,
/// tapes, sessions.
const EVERYTHING: &[&str] = &[
    "--strategies",
    "2",
    "--venues",
    "1",
    "--orders",
    "6000",
    "--window",
    "60s",
    "--venue",
    "book",
    "--exchange",
    "process",
    "--idle",
    "park",
    "--liveness",
    "5s",
];

/// The script that runs a contained program and a player in a `/dev/shm` of 64 MiB.
fn punched(program: &Program, when: &str) -> Option<(String, String)> {
    let kinds = format!("player,{}", program.exec(when));
    let script = format!(
        "mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 9; \
         $L run --isolation container --strategies 2 --strategy '{kinds}' --venues 1 --orders 2000 --window 1s \
         --idle park --on-death continue --out $OUT --json > $OUT/../json.$$; echo rc=$?; cat $OUT/../json.$$; rm $OUT/../json.$$; \
         echo; ls $OUT/*/ 2>/dev/null; echo left=$(ls /dev/shm | wc -l)"
    );
    let output = in_namespace(&script)?;
    Some((text(&output.stdout), text(&output.stderr)))
}

#[test]
fn contained_strategy_takes_no_memory_before_it_attaches() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::compile("tests/c/puncher.c") else { return };
    let Some((stdout, stderr)) = punched(&program, "early") else { return };
    assert!(stdout.contains("rc=1") && stderr.contains("exit 40"), "{stdout}{stderr}");
    assert!(!stderr.contains("allowed:") && stdout.contains("left=0"), "{stdout}{stderr}");
}

#[test]
fn contained_strategy_takes_no_memory_while_it_trades() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::compile("tests/c/puncher.c") else { return };
    let Some((stdout, stderr)) = punched(&program, "late") else { return };
    assert!(stdout.contains("rc=0") && stdout.contains("\"exit 40\""), "{stdout}{stderr}");
    assert!(stdout.contains("\"valid\": true") && stdout.contains("run.json"), "{stdout}{stderr}");
    assert!(stdout.contains("strategy-1.stamps") && stdout.contains("left=0"), "{stdout}{stderr}");
}

/// What `contain` says of a strategy that takes its own memory away, by level.
#[test]
fn punch_is_refused_where_memory_is_sealed() {
    let levels = if unsupported() { "process,sandbox" } else { "process,container,sandbox" };
    let out = tempfile::tempdir().unwrap();
    let flags = ["--technique", "spsc-mux", "--isolation", levels, "--fault", "punch", "--idle", "park"];
    let mut contain = command(&["contain", "--json", "--allow-weaker-sandbox", "--out"]);
    let output = contain.arg(out.path()).args(flags).output().unwrap();
    let table: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    for row in table["rows"].as_array().unwrap() {
        let (contained, seen) = (row["contained"].as_str().unwrap(), row["seen"].as_str().unwrap());
        if row["isolation"] == "process" {
            assert!(contained == "no" && seen.contains("thread-strategy-1 (truncated to 0 of"), "{row:#}");
        } else {
            assert!(["yes", "waited"].contains(&contained) && seen == "exit 41", "{row:#}");
            assert_eq!(row["lost_of_others"], 0, "{row:#}");
        }
    }
}

/// A segment's name without the run's and without numbers.
fn kind(name: &str) -> String {
    let what = name.splitn(3, '.').nth(2).unwrap_or(name);
    what.split(['-', '.']).filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join("-")
}

/// A segment of each kind that a run of everything has: by its kind the name within the run.
fn kinds(running: &Running) -> BTreeMap<String, String> {
    let what = |name: String| name.splitn(3, '.').nth(2).unwrap_or_default().to_owned();
    segments(running.pid()).into_iter().map(|name| (kind(&name), what(name))).collect()
}

fn path(running: &Running, what: &str) -> String {
    let all = segments(running.pid());
    let name = all.into_iter().find(|name| name.ends_with(&format!(".{what}")));
    format!("{SHM_DIR}/{}", name.unwrap_or_else(|| panic!("no segment {what}")))
}

fn truncate(running: &Running, what: &str) {
    File::options().write(true).open(path(running, what)).and_then(|file| file.set_len(0)).unwrap();
}

/// Truncates that segment of a living run. The launcher must end in order, name it, and save the
/// rest.
fn survives(what: &str, more: &[&str]) {
    let launcher = Launcher::new();
    let mut running = launcher.start(&[EVERYTHING, more].concat());
    let pid = running.pid();
    truncate(&running, what);
    // Where nobody needs what was in there the run goes on: it is ended, and says so all the same.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) && matches!(running.child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    if matches!(running.child.try_wait(), Ok(None)) {
        signal(pid, "INT");
    }
    let (code, _, stderr) = running.end();
    assert!(matches!(code, Some(1 | 130)), "{what}: {code:?} {stderr}");
    assert_nothing_left(pid);
    let folder = &launcher.folders()[0];
    let outcome = &document(folder, "run.json")["outcome"];
    let said = outcome.to_string();
    assert!(said.contains(&format!("{what} (truncated to 0 of")), "{what}: {said}");
    assert!(!said.contains("quarantined") && !said.contains("heartbeat"), "{what}: {said}");
    for thread in ["strategy-0", "strategy-1", "exchange-0"] {
        assert_exists(&folder.join(format!("{thread}.stamps")));
    }
    let summary = document(folder, "summary.json");
    let incidents = summary["incidents"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(incidents.iter().all(|incident| incident["quarantined"].is_null()), "{what}: {incidents:#?}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains(what), "{what}: {reasons}");
}

#[test]
fn truncated_segment_of_any_kind_is_survived_and_named() {
    let launcher = Launcher::new();
    let running = launcher.start(EVERYTHING);
    let kinds = kinds(&running);
    let pid = running.pid();
    signal(pid, "INT");
    drop(running.end());
    assert!(kinds.len() >= 12, "{kinds:?}");
    let kinds: Vec<String> = kinds.into_values().collect();
    concurrently(4, &kinds, |what| survives(what, &[]));
}

#[test]
fn truncated_segment_blames_nobody_where_deaths_are_contained() {
    for what in ["thread-strategy-1", "control", "repairs", "submit-1"] {
        survives(what, &["--on-death", "restart"]);
    }
}

/// Holes that no memory is left to fill: the length is what it was, and each access to a hole is a
/// SIGBUS.
#[test]
fn hole_in_full_dev_shm_is_named() {
    let script = "which fallocate >/dev/null || { echo SKIPPED; exit; }; \
                  mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 9; \
                  $L run --strategies 2 --venues 1 --orders 4000 --window 20s --idle park --out $OUT >/dev/null & PID=$!; \
                  until ls $OUT/*/run.json >/dev/null 2>&1; do sleep 0.05; done; kill -STOP $PID; \
                  for log in /dev/shm/*.thread-*; do fallocate -p -o 4096 -l $(stat -c %s $log) $log; done; \
                  cat /dev/zero > /dev/shm/filler 2>/dev/null; kill -CONT $PID; sleep 2; kill -INT $PID 2>/dev/null; wait $PID; echo rc=$?; \
                  grep -c 'there was no memory for its pages' $OUT/*/run.json; rm /dev/shm/filler; echo left=$(ls /dev/shm | wc -l); \
                  ls $OUT/*/";
    let Some(output) = in_namespace(script) else { return };
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if stdout.contains("SKIPPED") {
        eprintln!("SKIPPED: no fallocate here");
        return;
    }
    assert!(stdout.contains("rc=1\n1\nleft=0"), "{stdout}{stderr}");
    // Whether there are figures depends on where the holes are: a log with a hole in its middle is
    // refused when it is merged.
    for file in ["run.json", "engine.stamps", "strategy-0.stamps"] {
        assert!(stdout.contains(file), "{file}: {stdout}{stderr}");
    }
}

#[test]
fn reaper_saves_what_a_truncated_log_leaves() {
    let launcher = Launcher::new();
    let running = launcher.start(EVERYTHING);
    let pid = running.pid();
    let folder = launcher.folders()[0].clone();
    wait_until("it trades", || {
        let log = std::fs::metadata(path(&running, "thread-strategy-0"));
        log.is_ok_and(|facts| facts.len() > 0)
    });
    signal(running.process("engine"), "STOP");
    truncate(&running, "thread-strategy-1");
    signal(pid, "KILL");
    drop(running.end());
    wait_for("the reaper is done", || segments(pid).is_empty().then_some(()));
    assert_nothing_left(pid);
    for thread in ["strategy-0", "engine", "exchange-0"] {
        assert_exists(&folder.join(format!("{thread}.stamps")));
    }
    let said = std::fs::read_to_string(folder.join("reaper.stderr")).unwrap();
    assert!(said.contains("strategy-1") && !said.contains("strategy-0"), "{said}");
}
