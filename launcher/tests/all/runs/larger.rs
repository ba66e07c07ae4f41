//! Results that are larger than memory: the same to the byte, in little of it.

use super::deaths::{T1_OF_20, killed};
use super::fixture::{Fixture, RT_VENUE, Shape};
use super::killing::Death;
use super::longer;
use crate::common::{command, slow, text};
use launcher::runtime::progress::Progress;
use launcher::runtime::run::evaluate_in;
use proptest::prelude::*;
use protocol::flow::PATH;
use protocol::gaps::PARTS;
use protocol::plan::Threading;
use protocol::stamps::{Gap, Record, StampLog, Switches};
use protocol::status::LOG_OFFSET;
use serde_json::{Value, json};
use shm::memory::Region;
use shm::sync::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use system::scratch::Room;
use tempfile::TempDir;

/// Every file that the evaluation of a run leaves, by its name; the logs are the run's own.
fn results(fixture: &Fixture, room: impl Fn(&Path) -> Room) -> BTreeMap<String, Vec<u8>> {
    let folder = fixture.write();
    evaluate_in(&room(folder.path()), folder.path(), &fixture.record, &Progress::new(false)).unwrap();
    let files = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
    let results = files.filter(|path| path.extension().is_none_or(|extension| extension != "stamps"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    results.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// In memory, and in files of which nothing may stay resident.
fn both(fixture: &Fixture) -> [BTreeMap<String, Vec<u8>>; 2] {
    [results(fixture, |_| Room::memory()), results(fixture, |folder| Room::files(folder, 0).unwrap())]
}

/// Threads that were away now and then, and slept now and then: some of their stamps lie in gaps.
fn with_gaps(mut fixture: Fixture, every: usize) -> Fixture {
    for (log, thread) in fixture.logs.iter_mut().zip(&mut fixture.record.plan.threads) {
        let times = log.iter().filter(|record| PATH.contains(&record.point)).map(|record| record.value);
        let away: Vec<Record> = times.step_by(every).flat_map(away).collect();
        log.extend(away);
        thread.sleep_records = 1 << 10;
    }
    fixture
}

/// A gap around that time and a sleep behind it, as their records.
fn away(at: u64) -> [Record; 2] {
    let gap = Gap { ended: at + 40_000, ticks: 60_000, switches: Switches(Switches::INVOLUNTARY) };
    [at_first(|log| log.append_gap(gap)), at_first(|log| log.offer_sleep(at + 70_000, 30_000, &[3; PARTS]))]
}

/// What is written into a log.
fn at_first(write: impl FnOnce(&mut StampLog)) -> Record {
    let segment = Region::heap(LOG_OFFSET + 4).words();
    write(&mut StampLog::new(&segment).keeping(8));
    let [key, value] = [0, 1].map(|word| segment[LOG_OFFSET + word].load(Ordering::Relaxed));
    Record::from_words(key, value).unwrap()
}

/// The strategies are told apart, as those of several kinds are.
fn of_two_kinds(mut fixture: Fixture) -> Fixture {
    fixture.record.plan.trading_mut().strategy_kinds = vec!["maker".into(), "taker".into()];
    fixture
}

fn assert_same(fixture: &Fixture) {
    let [memory, files] = both(fixture);
    assert_eq!(memory.keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
    for (name, bytes) in &memory {
        assert!(*bytes == files[name], "{name} differs");
    }
    assert!(memory.contains_key("tail.json") && memory.contains_key("report.html"));
}

#[test]
fn a_run_with_deaths_is_the_same() {
    assert_same(&killed(&[Death { restart: Some(2_000), ..Death::of(1, T1_OF_20 + 50) }]));
}

#[test]
fn an_exchange_with_market_data_is_the_same() {
    assert_same(&Fixture::new(Shape { book: true, market: true, orders: 3_000, ..Shape::default() }));
}

#[test]
fn a_long_run_is_the_same() {
    // More rows than a block has, more stamps than are sorted at a time.
    let shape = Shape {
        strategies: 2,
        venues: 2,
        orders: 60_000,
        period: 2_000,
        delay: 900_000,
        fills: true,
        ..Shape::default()
    };
    assert_same(&with_gaps(of_two_kinds(Fixture::new(shape)), 300));
}

#[test]
fn a_table_that_forgets_is_found() {
    // More rows than fit where a column begins.
    let fixture = Fixture::new(Shape { strategies: 1, orders: 20_000, ..Shape::default() });
    let honest = results(&fixture, |_| Room::memory());
    let broken = results(&fixture, |folder| Room::forgetful(folder).unwrap());
    assert_ne!(honest["summary.json"], broken["summary.json"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn any_run_is_the_same(
        strategies in 1u16..4, venues in 1u16..4, orders in 1u64..6_000, period in 1_000u64..20_000,
        reject_every in prop_oneof![Just(0u64), 3u64..9], delay in 0u64..2_000_000, shared in any::<bool>(), kinds in any::<bool>(), every in 20usize..400,
    ) {
        let threading = if shared { Threading::Shared } else { Threading::Dedicated };
        let shape = Shape { strategies, venues, orders, period, reject_every, delay, threading, ..Shape::default() };
        let fixture = with_gaps(Fixture::new(shape), every);
        assert_same(&if kinds { of_two_kinds(fixture) } else { fixture });
    }
}

/// What `launcher report` has in memory at most, and what it prints.
fn reported(folder: &Path, more: &[&str]) -> (u64, String) {
    watched(&[&["report", folder.to_str().unwrap(), "--json"], more].concat())
}

/// What the launcher has in memory at most with these words, and what it prints.
fn watched(words: &[&str]) -> (u64, String) {
    let mut command = command(words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let ended = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut most = 0;
    while !ended.is_finished() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(most);
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = ended.join().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (most << 10, text(&output.stdout))
}

/// So many orders, of four strategies, in a folder that is written as it is made up.
fn long(orders: u64) -> TempDir {
    let folder = tempfile::Builder::new().prefix("bulkhead-test-").tempdir().unwrap();
    let shape = Shape {
        strategies: 4,
        venues: 2,
        orders: orders / 4,
        period: 2_000,
        delay: 900_000,
        ..Shape::default()
    };
    longer::write(shape, folder.path());
    folder
}

#[test]
fn what_is_written_as_it_is_made_up_is_a_run() {
    let folder = long(40_000);
    let (_, summary) = reported(folder.path(), &[]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["valid"], &summary["violations"]), (&true.into(), &json!([])), "{summary:#}");
    assert_eq!(summary["rt_venue"]["count"], 40_000);
    assert_eq!(summary["rt_venue"]["max_ns"], RT_VENUE / 2);
}

#[test]
fn a_report_keeps_to_the_memory_that_it_may_have() {
    let folder = long(800_000);
    let (free, plain) = reported(folder.path(), &[]);
    let (bounded, same) = reported(folder.path(), &["--max-memory", "48M"]);
    assert!(plain == same, "the same report");
    println!("800,000 orders: {} MiB, with --max-memory 48M {} MiB", free >> 20, bounded >> 20);
    assert!(free > 80 << 20, "the broken variant of the bound: without it {free} bytes");
    assert!(bounded < 56 << 20, "{bounded} bytes");
}

/// Exports of a run, into a folder: `launcher export` with these words.
fn exported(run: &Path, words: &[&str]) -> (u64, TempDir) {
    let into = tempfile::tempdir().unwrap();
    let paths: Vec<String> =
        words.iter().map(|word| word.replace("INTO", into.path().to_str().unwrap())).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (most, _) = watched(&[&["export", run.to_str().unwrap()], &paths[..]].concat());
    (most, into)
}

/// The files below a folder, by their paths within it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(
                files(&entry.path()).into_iter().map(|(path, bytes)| (format!("{name}/{path}"), bytes)),
            ),
            false => drop(found.insert(name, fs::read(entry.path()).unwrap())),
        }
    }
    found
}

/// An export of a long run, and the same with 48 MiB: the same files, and in so much memory.
fn assert_bounded(words: &[&str], wanted: usize) {
    let folder = long(800_000);
    let (free, plain) = exported(folder.path(), words);
    let (bounded, same) = exported(folder.path(), &[words, &["--max-memory", "48M"]].concat());
    let (plain, same) = (files(plain.path()), files(same.path()));
    println!("{words:?}: {} MiB, with --max-memory 48M {} MiB", free >> 20, bounded >> 20);
    assert_eq!(plain.len(), wanted, "{:?}", plain.keys());
    assert!(plain == same, "the same files");
    assert!(free > 64 << 20, "the broken variant of the bound: without it {free} bytes");
    assert!(bounded < 56 << 20, "{bounded} bytes");
}

#[test]
fn a_trace_keeps_to_the_memory_that_it_may_take() {
    assert_bounded(&["--perfetto", "INTO/trace", "--orders", "2k"], 1);
}

#[cfg(feature = "parquet")]
#[test]
fn tables_keep_to_the_memory_that_they_may_take() {
    assert_bounded(&["--parquet", "INTO"], 2);
    assert_bounded(&["--parquet", "INTO", "--partitioned"], 8);
}

/// `BULKHEAD_SLOW=1 cargo test -p launcher --test all larger::how_memory_grows -- --nocapture`
#[test]
fn how_memory_grows_with_the_orders() {
    if !slow() {
        eprintln!(
            "SKIPPED: set BULKHEAD_SLOW=1 to see how memory grows up to 16 million orders: minutes, and 5 GB of disk"
        );
        return;
    }
    for millions in [1, 4, 16] {
        let folder = long(millions * 1_000_000);
        let start = Instant::now();
        let (bounded, _) = reported(folder.path(), &["--max-memory", "64M"]);
        println!(
            "{millions} million orders: --max-memory 64M {} KiB, {:.1?}",
            bounded >> 10,
            start.elapsed()
        );
        let start = Instant::now();
        let (free, _) = reported(folder.path(), &[]);
        println!("{millions} million orders: without {} KiB, {:.1?}", free >> 10, start.elapsed());
    }
}

#[test]
fn nothing_is_left_of_a_report_that_is_killed() {
    let fixture = Fixture::new(Shape { orders: 20_000, ..Shape::default() });
    let folder = fixture.write();
    let names = || fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
    let names = || names().map(|name| name.into_string().unwrap()).collect::<BTreeSet<_>>();
    let report = || {
        let mut command = command(&["report", folder.path().to_str().unwrap(), "--max-memory", "64M"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut seen = BTreeSet::new();
    for wait in [0, 3, 10, 30, 60, 100] {
        let mut child = report().spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        seen.extend(names());
    }
    assert!(report().status().unwrap().success(), "and the next one has all it needs");
    // Who is killed while it writes a result leaves the draft of it, for the next one.
    let is_draft = |name: &&String| name.starts_with('.') && name.ends_with(".new");
    let odd: Vec<&String> = seen.iter().filter(|name| !is_draft(name)).collect();
    assert!(odd.iter().all(|name| names().contains(*name)), "{odd:?}");
}

#[test]
fn memory_that_is_too_little_or_no_size_is_refused() {
    let mut fixture = Fixture::new(Shape { orders: 1, ..Shape::default() });
    fixture.record.plan.trading_mut().orders = vec![100_000_000; 2];
    let folder = fixture.write();
    let run = folder.path().to_str().unwrap();
    for (size, wanted) in
        [("64M", "at least 128M for this run of 200,000,000"), ("lots", "no size"), ("64", "no size")]
    {
        for words in [&["report", run][..], &["export", run, "--perfetto", "/dev/null"]] {
            let output = command(words).args(["--max-memory", size]).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{words:?} {size}");
            assert!(text(&output.stderr).contains(wanted), "{words:?} {size}: {}", text(&output.stderr));
        }
    }
}
