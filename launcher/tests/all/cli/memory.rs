//! `--max-memory`: results that are larger than memory are made in little of it, and nothing is
//! left of them.

use crate::common::{command, slow, text};
use crate::fixture::{Fixture, Shape, streamed};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

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

/// The given number of orders, of four strategies, in a folder that is written as it is made up.
fn long(orders: u64) -> TempDir {
    let folder = tempfile::Builder::new().prefix("bulkhead-test-").tempdir().unwrap();
    let shape = Shape { strategies: 4, orders: orders / 4, period: 2_000, delay: 900_000, ..Shape::PLAIN };
    streamed::write(shape, folder.path());
    folder
}

/// What a command has in memory without a bound and with 48 MiB.
fn assert_bounded(what: &str, free: u64, bounded: u64) {
    println!("{what}: {} MiB, with --max-memory 48M {} MiB", free >> 20, bounded >> 20);
    assert!(free > bounded + (16 << 20), "the broken variant of the bound: {what} without it, {free} bytes");
    assert!(bounded < 56 << 20, "{what}: {bounded} bytes");
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

/// An export of a run, and another one with 48 MiB: equal files.
fn assert_export_bounded(run: &Path, words: &[&str], wanted: usize) {
    let (free, plain) = exported(run, words);
    let (bounded, same) = exported(run, &[words, &["--max-memory", "48M"]].concat());
    let (plain, same) = (files(plain.path()), files(same.path()));
    assert_eq!(plain.len(), wanted, "{:?}", plain.keys());
    assert!(plain == same, "{words:?}: other files");
    assert_bounded(&words.join(" "), free, bounded);
}

#[test]
fn results_keep_to_the_memory_that_they_may_take() {
    let folder = long(500_000);
    let (free, plain) = reported(folder.path(), &[]);
    let (bounded, same) = reported(folder.path(), &["--max-memory", "48M"]);
    assert!(plain == same, "another report");
    assert_bounded("report", free, bounded);
    assert_export_bounded(folder.path(), &["--perfetto", "INTO/trace", "--orders", "2k"], 1);
    assert_export_bounded(folder.path(), &["--csv", "INTO/orders.csv"], 1);
}

/// `BULKHEAD_SLOW=1 cargo test -p launcher --test all memory::how_memory_grows -- --nocapture`
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
    let fixture = Fixture::new(Shape { orders: 20_000, ..Shape::PLAIN });
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
fn invalid_or_small_max_memory_is_refused() {
    let mut fixture = Fixture::new(Shape { orders: 1, ..Shape::PLAIN });
    fixture.record.plan.trading_mut().orders = vec![100_000_000; 2];
    let folder = fixture.write();
    let run = folder.path().to_str().unwrap();
    for (size, wanted) in
        [("64M", "at least 128M for this run of 200,000,000"), ("lots", "not a size"), ("64", "not a size")]
    {
        for words in [&["report", run][..], &["export", run, "--perfetto", "/dev/null"]] {
            let output = command(words).args(["--max-memory", size]).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{words:?} {size}");
            assert!(text(&output.stderr).contains(wanted), "{words:?} {size}: {}", text(&output.stderr));
        }
    }
}
