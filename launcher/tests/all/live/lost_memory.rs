//! Memory of an active run is removed. A hostile contained strategy cannot do that; another process
//! of the same user can truncate every named segment. Launcher and reaper survive, save the
//! remaining logs, and blame no strategy.

use super::full_filesystems::run_in_namespace;
use super::programs::{Program, with_player};
use crate::common::{
    CommandResult, Launcher, Running, assert_exists, concurrently, document, segments, signal, slow,
    wait_until,
};
use shm::memory::SHM_DIR;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};

/// A run of a minute with a segment of each kind: an exchange in a process of its own, boards,
/// tapes, sessions.
const EVERYTHING: &str = "--strategies 2 --venues 1 --orders 6000 --window 60s --venue book --exchange process \
                          --idle park --liveness 5s";

/// Makes a run with a contained program that punches holes into its memory, and a player, in a
/// `/dev/shm` of 64 MiB.
fn run_puncher(when: &str) -> Option<CommandResult> {
    Launcher::contained()?;
    let program = Program::compile("tests/c/puncher.c")?;
    let kinds = with_player(&program.exec(when));
    run_in_namespace(&format!(
        "mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 9; \
         $L run --isolation container {kinds} --venues 1 --orders 2000 --window 1s \
         --idle park --on-death continue --out $OUT --json > $OUT/../json.$$; echo rc=$?; cat $OUT/../json.$$; rm $OUT/../json.$$; \
         echo; ls $OUT/*/ 2>/dev/null; echo left=$(ls /dev/shm | wc -l)"
    ))
}

#[test]
fn contained_strategy_cannot_punch_holes_before_attaching() {
    let Some(result) = run_puncher("early") else { return };
    result.shows(&["rc=1", "left=0"], "").complains(&["exit 40"]);
    assert!(!result.stderr.contains("allowed:"), "{}", result.stderr);
}

#[test]
fn contained_strategy_cannot_punch_holes_while_trading() {
    let Some(result) = run_puncher("late") else { return };
    let files = ["run.json", "strategy-1.stamps"];
    result.shows(&["rc=0", "\"exit 40\"", "\"valid\": true", "left=0"], "").shows(&files, "");
}

/// Returns a segment's name within its run, without numbers.
fn segment_kind(name: &str) -> String {
    name.split(['-', '.']).filter(|part| part.parse::<u32>().is_err()).collect::<Vec<_>>().join("-")
}

/// Returns one segment name, within the run, for each kind of segment.
fn segments_by_kind(running: &Running) -> BTreeMap<String, String> {
    let names = segments(running.pid());
    let names = names.iter().filter_map(|name| name.splitn(3, '.').nth(2));
    names.map(|name| (segment_kind(name), name.to_owned())).collect()
}

fn segment_path(running: &Running, segment_name: &str) -> String {
    let all = segments(running.pid());
    let name = all.into_iter().find(|name| name.ends_with(&format!(".{segment_name}")));
    format!("{SHM_DIR}/{}", name.unwrap_or_else(|| panic!("no segment {segment_name}")))
}

fn truncate(running: &Running, segment_name: &str) {
    File::options()
        .write(true)
        .open(segment_path(running, segment_name))
        .and_then(|file| file.set_len(0))
        .unwrap();
}

/// Truncates a segment of an active run. The launcher must exit normally, name the segment, and
/// save the other logs.
fn assert_truncation_survived(segment_name: &str, flags: &str) {
    let launcher = Launcher::new();
    let running = launcher.start(&format!("{EVERYTHING} {flags}"));
    truncate(&running, segment_name);
    // If no process needs the segment's content the run continues. It is then interrupted, and
    // still names the segment.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let result = if running.has_ended() { running.end() } else { running.interrupt() };
    assert!(matches!(result.code, Some(1 | 130)), "{segment_name}: {result:?}");
    let folder = launcher.folder();
    let outcome = &document(&folder, "run.json")["outcome"];
    let text = outcome.to_string();
    assert!(text.contains(&format!("{segment_name} (truncated to 0 of")), "{segment_name}: {text}");
    assert!(!text.contains("quarantined") && !text.contains("heartbeat"), "{segment_name}: {text}");
    for thread in ["strategy-0", "strategy-1", "exchange-0"] {
        assert_exists(&folder.join(format!("{thread}.stamps")));
    }
    let summary = launcher.newest_summary();
    let incidents = summary["incidents"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(
        incidents.iter().all(|incident| incident["quarantined"].is_null()),
        "{segment_name}: {incidents:#?}"
    );
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains(segment_name), "{segment_name}: {reasons}");
}

/// Some kinds of segments; `BULKHEAD_SLOW=1`: each kind, and some with `--on-death restart`.
#[test]
fn truncated_segment_is_named_and_blames_nobody() {
    let launcher = Launcher::new();
    let running = launcher.start(EVERYTHING);
    let segments_by_kind = segments_by_kind(&running);
    running.interrupt();
    assert!(segments_by_kind.len() >= 12, "{segments_by_kind:?}");
    let kinds = segments_by_kind.values().map(|segment_name| (segment_name.as_str(), ""));
    let contained = ["thread-strategy-1", "control", "repairs", "submit-1"];
    // What is read by the launcher, by a strategy, by the engine, and by nobody until the end.
    let some = ["control", "thread-engine", "submit-1", "return-1"];
    let mut cases: Vec<_> = if slow() { kinds.collect() } else { some.map(|name| (name, "")).to_vec() };
    let contained = &contained[..if slow() { contained.len() } else { 1 }];
    cases.extend(contained.iter().map(|segment_name| (*segment_name, "--on-death restart")));
    concurrently(4, &cases, |(segment_name, flags)| assert_truncation_survived(segment_name, flags));
}

/// Holes in a full `/dev/shm`: the segments keep their length, and each access to a hole raises
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
    let Some(result) = run_in_namespace(script) else { return };
    // The run may have no figures: the merge refuses a log with a hole in its middle.
    result.shows(&["rc=1\n1\nleft=0", "run.json", "engine.stamps", "strategy-0.stamps"], "");
}

#[test]
fn reaper_saves_what_a_truncated_log_leaves() {
    let launcher = Launcher::new();
    let mut running = launcher.start(EVERYTHING);
    wait_until("strategy-0 has begun", || {
        let log = std::fs::metadata(segment_path(&running, "thread-strategy-0"));
        log.is_ok_and(|facts| facts.len() > 0)
    });
    signal(running.process("engine"), "STOP");
    truncate(&running, "thread-strategy-1");
    running.kill();
    running.end();
    for thread in ["strategy-0", "engine", "exchange-0"] {
        assert_exists(&launcher.folder().join(format!("{thread}.stamps")));
    }
    let text = launcher.read("reaper.stderr");
    assert!(text.contains("strategy-1") && !text.contains("strategy-0"), "{text}");
}
