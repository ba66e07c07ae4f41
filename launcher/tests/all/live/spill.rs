//! Runs whose logs are moved to disk while they last: the same run as without, whichever process
//! dies; and where records are lost, that is said.

use crate::common::{
    Launcher, Running, assert_nothing_left, document, family, newest, output, segments, signal, wait_for,
    wait_until,
};
use analysis::document::Document;
use analysis::logfile::LogReader;
use analysis::merge::log_path;
use analysis::record::RunRecord;
use protocol::stamps::Point;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Six seconds of orders, in which the ring of the engine's log is written over more than once. It
/// has room for two seconds: a machine that keeps the spiller waiting for that long is not one that
/// a test can count on.
const SPILLED: &[&str] = &[
    "--strategies",
    "1",
    "--venues",
    "2",
    "--orders",
    "60k",
    "--window",
    "6s",
    "--delay",
    "uniform:1ms..20ms",
    "--idle",
    "park",
    "--spill=6MiB",
];

fn spilled(more: &[&'static str]) -> Vec<&'static str> {
    [SPILLED, more].concat()
}

pub fn summary(folder: &Path) -> Value {
    document(folder, "summary.json")
}

/// How many records of each point each log has: all but the gaps and the sleeps, of which no two
/// runs have as many.
pub fn points(folder: &Path) -> BTreeMap<(String, u8), u64> {
    let record = RunRecord::read(folder).unwrap();
    let mut counts = BTreeMap::new();
    for thread in &record.plan.threads {
        let path = log_path(folder, &thread.name);
        let mut log = LogReader::open(&path, Some(&record.plan.run)).unwrap();
        while let Some(block) = log.next_block().unwrap() {
            for record in block.records().filter(|it| !matches!(it.point, Point::Gap | Point::Slept)) {
                *counts.entry((thread.name.clone(), record.point as u8)).or_insert(0) += 1;
            }
        }
    }
    counts
}

/// What the run says of lost records; `None`: nothing was lost.
fn said_lost(summary: &Value) -> Option<String> {
    let text = summary.to_string();
    text.contains("the spiller was behind").then_some(text)
}

/// The summary of a run that lost nothing, or that says what it lost.
pub fn honest(folder: &Path) -> (Value, bool) {
    let summary = summary(folder);
    let lost = said_lost(&summary).is_some();
    if lost {
        eprintln!(
            "this machine kept the spiller waiting for seconds: the run says so, and no more is looked at"
        );
    } else {
        assert_eq!(summary["valid"], true, "{summary:#}");
    }
    (summary, lost)
}

pub fn spiller(running: &Running, but: u32) -> u32 {
    wait_for("there is a spiller", || newest(running.pid(), "spill", but))
}

#[test]
fn spilled_run_has_same_counts_as_unspilled() {
    let launcher = Launcher::new();
    let whole = launcher.start(&SPILLED[..SPILLED.len() - 1]).end();
    assert_eq!(whole.0, Some(0), "{}", whole.2);
    let running = launcher.start(&spilled(&[]));
    let pid = running.pid();
    // The ring is what there is of the log, however long the run.
    let sizes: u64 = segments(pid)
        .iter()
        .filter(|name| name.contains(".thread-"))
        .filter_map(|name| Some(std::fs::metadata(format!("/dev/shm/{name}")).ok()?.len()))
        .sum();
    assert!(sizes < 8 << 20, "{sizes}");
    let (code, _, stderr) = running.end();
    let folders = launcher.folders();
    let (_, lost) = honest(&folders[1]);
    if !lost {
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(points(&folders[0]), points(&folders[1]));
        assert!(
            std::fs::metadata(folders[1].join("engine.stamps")).unwrap().len() > 2 * sizes,
            "it was turned"
        );
    }
    assert_nothing_left(pid);
}

#[test]
fn repeatedly_killed_spiller_loses_nothing() {
    let launcher = Launcher::new();
    let running = launcher.start(&spilled(&[]));
    let (pid, mut last) = (running.pid(), 0);
    for _ in 0..6 {
        last = spiller(&running, last);
        signal(last, "KILL");
        std::thread::sleep(Duration::from_millis(200));
    }
    let (_, _, stderr) = running.end();
    let folder = &launcher.folders()[0];
    let (summary, lost) = honest(folder);
    assert!(stderr.contains("the spiller (pid") && stderr.contains("SIGKILL"), "{stderr}");
    assert!(summary.to_string().contains("the spiller exited"), "{summary:#}");
    if !lost {
        assert_eq!(summary["orders"]["returned"], 60_000);
        assert_eq!(points(folder)[&("strategy-0".into(), Point::StrategySend as u8)], 60_000);
    }
    assert_nothing_left(pid);
}

#[test]
fn stopped_spiller_loses_records_and_reports_it() {
    let launcher = Launcher::new();
    let running = launcher.start(&spilled(&[]));
    let pid = running.pid();
    signal(spiller(&running, 0), "STOP");
    let (code, stdout, stderr) = running.end();
    let summary = summary(&launcher.folders()[0]);
    let said = said_lost(&summary).unwrap_or_else(|| panic!("{summary:#}"));
    assert!(said.contains("engine: ") && said.contains("records were lost between records"), "{said}");
    assert_eq!((code, &summary["valid"]), (Some(1), &Value::Bool(false)), "{stdout}{stderr}");
    assert_nothing_left(pid);
}

#[test]
fn a_strategy_goes_on_where_its_log_has_left() {
    let launcher = Launcher::new();
    let faults = ["--on-death", "restart", "--fault", "kill:strategy-0@2s; kill:strategy-0@4500ms"];
    let sandbox = ["--isolation", "sandbox", "--allow-weaker-sandbox"];
    let running = launcher.start(&[&spilled(&faults)[..], &sandbox].concat());
    let pid = running.pid();
    let (_, _, stderr) = running.end();
    let folder = launcher.folders().pop().unwrap();
    let (summary, lost) = honest(&folder);
    if !lost {
        assert_eq!(summary["incidents"].as_array().map(Vec::len), Some(2), "{stderr}{summary:#}");
        let sent = summary["orders"]["sent"].as_u64().unwrap();
        assert!((20_000..=60_000).contains(&sent), "nothing is sent twice: {sent}");
        assert_eq!(points(&folder)[&("strategy-0".into(), Point::StrategySend as u8)], sent);
    }
    assert_nothing_left(pid);
}

#[test]
fn unspilled_tail_is_saved_when_engine_dies() {
    let launcher = Launcher::new();
    let running = launcher.start(&spilled(&["--fault", "kill:engine@3s"]));
    let pid = running.pid();
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(1), "{stderr}");
    let summary = summary(&launcher.folders()[0]);
    assert_eq!(summary["outcome"]["ended"], "failed");
    assert!(summary["orders"]["sent"].as_u64().unwrap() > 5_000, "{summary:#}");
    assert_nothing_left(pid);
}

#[test]
fn killed_launcher_ends_spiller_and_completes_logs() {
    for isolation in ["process", "sandbox"] {
        let launcher = Launcher::new();
        let more = ["--isolation", isolation, "--allow-weaker-sandbox"];
        let mut running = launcher.start(&[SPILLED, &more[..]].concat());
        let pid = running.pid();
        std::thread::sleep(Duration::from_secs(3));
        signal(pid, "KILL");
        running.child.wait().unwrap();
        wait_until("its children are gone", || family(pid).is_empty());
        wait_until("its reaper has removed the segments", || segments(pid).is_empty());
        let folder = &launcher.folders()[0];
        let report = output(&["report", folder.to_str().unwrap(), "--json"]);
        let summary: Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(summary["outcome"]["ended"], "failed");
        let sent = summary["orders"]["sent"].as_u64().unwrap();
        assert!(sent > 5_000, "{summary:#}");
        let points = points(folder);
        assert_eq!(points[&("strategy-0".into(), Point::StrategySend as u8)], sent);
    }
}

#[test]
fn repeated_schedule_continues_after_kill() {
    let launcher = Launcher::new();
    let laps = ["--strategies", "2", "--venues", "2", "--orders", "2000", "--window", "400ms", "--laps", "4"];
    let laps = [&laps[..], &["--delay", "uniform:1ms..20ms", "--idle", "yield"]].concat();
    let summary = launcher.summary(&laps);
    assert_eq!((&summary["orders"]["sent"], &summary["orders"]["scheduled"]), (&8_000.into(), &8_000.into()));
    let record = RunRecord::read(&launcher.folders()[0]).unwrap();
    assert_eq!(record.plan.trading().lap_ns, 400_000_000);
    // The last order of all is due in the last lap.
    assert!((1_500_000_000..=1_600_000_000).contains(&record.input.window_ns), "{}", record.input.window_ns);
    let faults = ["--on-death", "restart", "--fault", "kill:strategy-0@700ms"];
    let running = launcher.start(&[&laps[..], &faults, &["--seed", "2"]].concat());
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let again = self::summary(&launcher.folders()[1]);
    let sent = again["orders"]["sent"].as_u64().unwrap();
    assert!((4_000..=8_000).contains(&sent), "{sent}");
}

#[test]
fn threads_of_one_process_are_spilled_too() {
    let launcher = Launcher::new();
    let running = launcher.start(&spilled(&["--isolation", "thread"]));
    let pid = running.pid();
    let (code, _, stderr) = running.end();
    let (summary, lost) = honest(&launcher.folders()[0]);
    if !lost {
        assert_eq!((code, &summary["orders"]["returned"]), (Some(0), &60_000.into()), "{stderr}");
    }
    assert_nothing_left(pid);
}
