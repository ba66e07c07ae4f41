//! Memory of a living run that is taken away: by a contained strategy that means harm, which
//! cannot, and by another process of the same user, which can truncate every segment that has a
//! name. Launcher and reaper survive, save what there is, and blame nobody.

use super::programs::{Program, with_player};
use super::room::in_namespace;
use crate::common::{
    CommandResult, Launcher, Running, assert_exists, concurrently, document, list, output, segments, signal,
    string, wait_until,
};
use shm::memory::SHM_DIR;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};

/// A run of a minute with a segment of each kind: an exchange in a process of its own, boards,
/// tapes, sessions.
const EVERYTHING: &str = "--strategies 2 --venues 1 --orders 6000 --window 60s --venue book --exchange process \
                          --idle park --liveness 5s";

/// What came of a contained program and a player in a `/dev/shm` of 64 MiB.
fn punched(when: &str) -> Option<CommandResult> {
    Launcher::contained()?;
    let program = Program::compile("tests/c/puncher.c")?;
    let kinds = with_player(&program.exec(when));
    in_namespace(&format!(
        "mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 9; \
         $L run --isolation container {kinds} --venues 1 --orders 2000 --window 1s \
         --idle park --on-death continue --out $OUT --json > $OUT/../json.$$; echo rc=$?; cat $OUT/../json.$$; rm $OUT/../json.$$; \
         echo; ls $OUT/*/ 2>/dev/null; echo left=$(ls /dev/shm | wc -l)"
    ))
}

#[test]
fn contained_strategy_takes_no_memory_before_it_attaches() {
    let Some(result) = punched("early") else { return };
    result.shows(&["rc=1", "left=0"], "").complains(&["exit 40"]);
    assert!(!result.stderr.contains("allowed:"), "{}", result.stderr);
}

#[test]
fn contained_strategy_takes_no_memory_while_it_trades() {
    let Some(result) = punched("late") else { return };
    let files = ["run.json", "strategy-1.stamps"];
    result.shows(&["rc=0", "\"exit 40\"", "\"valid\": true", "left=0"], "").shows(&files, "");
}

/// What `contain` says of a strategy that takes its own memory away, by level.
#[test]
fn punch_is_refused_where_memory_is_sealed() {
    let contained = if Launcher::contained().is_some() { ",container" } else { "" };
    let out = tempfile::tempdir().unwrap();
    let how = "--technique spsc-mux --fault punch --idle park --window 800ms --allow-weaker-sandbox --json";
    let levels = format!("--isolation process,sandbox{contained}");
    let table = output(&format!("contain --out {} {how} {levels}", out.path().display())).json();
    for row in list(&table["rows"]) {
        let (contained, seen) = (string(&row["contained"]), string(&row["seen"]));
        if row["isolation"] == "process" {
            assert!(contained == "no" && seen.contains("thread-strategy-1 (truncated to 0 of"), "{row:#}");
        } else {
            assert!(["yes", "waited"].contains(&contained) && seen == "exit 41", "{row:#}");
            assert_eq!(row["lost_of_others"], 0, "{row:#}");
        }
    }
}

/// A segment's name within its run, without numbers.
fn kind(name: &str) -> String {
    name.split(['-', '.']).filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join("-")
}

/// A segment of each kind that a run of everything has: by its kind the name within the run.
fn kinds(running: &Running) -> BTreeMap<String, String> {
    let names = segments(running.pid());
    let names = names.iter().filter_map(|name| name.splitn(3, '.').nth(2));
    names.map(|name| (kind(name), name.to_owned())).collect()
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
fn survives(what: &str, more: &str) {
    let launcher = Launcher::new();
    let running = launcher.start(&format!("{EVERYTHING} {more}"));
    truncate(&running, what);
    // Where nobody needs what was in there the run goes on: it is ended, and says so all the same.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let result = if running.has_ended() { running.end() } else { running.interrupt() };
    assert!(matches!(result.code, Some(1 | 130)), "{what}: {result:?}");
    let folder = launcher.folder();
    let outcome = &document(&folder, "run.json")["outcome"];
    let said = outcome.to_string();
    assert!(said.contains(&format!("{what} (truncated to 0 of")), "{what}: {said}");
    assert!(!said.contains("quarantined") && !said.contains("heartbeat"), "{what}: {said}");
    for thread in ["strategy-0", "strategy-1", "exchange-0"] {
        assert_exists(&folder.join(format!("{thread}.stamps")));
    }
    let summary = launcher.newest_summary();
    let incidents = summary["incidents"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(incidents.iter().all(|incident| incident["quarantined"].is_null()), "{what}: {incidents:#?}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains(what), "{what}: {reasons}");
}

/// Each kind, and some of them where deaths are contained.
#[test]
fn truncated_segment_is_named_and_blames_nobody() {
    let launcher = Launcher::new();
    let running = launcher.start(EVERYTHING);
    let kinds = kinds(&running);
    running.interrupt();
    assert!(kinds.len() >= 12, "{kinds:?}");
    let mut cases: Vec<_> = kinds.values().map(|what| (what.as_str(), "")).collect();
    let contained = ["thread-strategy-1", "control", "repairs", "submit-1"];
    cases.extend(contained.map(|what| (what, "--on-death restart")));
    concurrently(4, &cases, |(what, more)| survives(what, more));
}

/// Holes that no memory is left to fill: the length is what it was, and each access to a hole is a
/// SIGBUS.
#[test]
fn hole_in_full_dev_shm_is_named() {
    let script = "which fallocate >/dev/null || { echo SKIPPED: no fallocate here; exit; }; \
                  mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 9; \
                  $L run --strategies 2 --venues 1 --orders 4000 --window 20s --idle park --out $OUT >/dev/null & PID=$!; \
                  until ls $OUT/*/run.json >/dev/null 2>&1; do sleep 0.05; done; kill -STOP $PID; \
                  for log in /dev/shm/*.thread-*; do fallocate -p -o 4096 -l $(stat -c %s $log) $log; done; \
                  cat /dev/zero > /dev/shm/filler 2>/dev/null; kill -CONT $PID; sleep 2; kill -INT $PID 2>/dev/null; wait $PID; echo rc=$?; \
                  grep -c 'there was no memory for its pages' $OUT/*/run.json; rm /dev/shm/filler; echo left=$(ls /dev/shm | wc -l); \
                  ls $OUT/*/";
    let Some(result) = in_namespace(script) else { return };
    // Whether there are figures depends on where the holes are: a log with a hole in its middle is
    // refused when it is merged.
    result.shows(&["rc=1\n1\nleft=0", "run.json", "engine.stamps", "strategy-0.stamps"], "");
}

#[test]
fn reaper_saves_what_a_truncated_log_leaves() {
    let launcher = Launcher::new();
    let mut running = launcher.start(EVERYTHING);
    wait_until("it trades", || {
        let log = std::fs::metadata(path(&running, "thread-strategy-0"));
        log.is_ok_and(|facts| facts.len() > 0)
    });
    signal(running.process("engine"), "STOP");
    truncate(&running, "thread-strategy-1");
    running.kill();
    running.end();
    for thread in ["strategy-0", "engine", "exchange-0"] {
        assert_exists(&launcher.folder().join(format!("{thread}.stamps")));
    }
    let said = launcher.read("reaper.stderr");
    assert!(said.contains("strategy-1") && !said.contains("strategy-0"), "{said}");
}
