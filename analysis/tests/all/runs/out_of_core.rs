//! Out-of-core evaluation: identical results with little memory.

use super::deaths::{T1_OF_20, killed};
use super::pauses::written;
use crate::common::summary_of;
use crate::fixture::killing::StrategyDeath;
use crate::fixture::streamed;
use crate::fixture::{Fixture, RT_VENUE, Shape};
use analysis::evaluation::evaluate;
use proptest::prelude::*;
use protocol::flow::PATH;
use protocol::gaps::LEVELS;
use protocol::plan::Threading;
use protocol::stamps::{Gap, KernelEvents, Record};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use system::scratch::ColumnStore;

/// Returns every result file of a run's evaluation, by name; without the run's own logs.
fn results(fixture: &Fixture, room: impl Fn(&Path) -> ColumnStore) -> BTreeMap<String, Vec<u8>> {
    let folder = fixture.write();
    evaluate(&room(folder.path()), folder.path(), &fixture.record, |_| {}).unwrap();
    let files = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
    let results = files.filter(|path| path.extension().is_none_or(|extension| extension != "stamps"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    results.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// Evaluates in memory, and in files of which nothing may stay resident.
fn both(fixture: &Fixture) -> [BTreeMap<String, Vec<u8>>; 2] {
    [
        results(fixture, |_| ColumnStore::memory()),
        results(fixture, |folder| ColumnStore::files(folder, 0).unwrap()),
    ]
}

/// Adds gaps and sleeps to threads, with some stamps in the gaps.
fn with_gaps(mut fixture: Fixture, every: usize) -> Fixture {
    for (log, thread) in fixture.logs.iter_mut().zip(&mut fixture.record.plan.threads) {
        let times = log.iter().filter(|record| PATH.contains(&record.point)).map(|record| record.value);
        let away: Vec<Record> = times.step_by(every).flat_map(away).collect();
        log.extend(away);
        thread.sleep_records = 1 << 10;
    }
    fixture
}

/// Returns the records of a gap around `at` and a sleep after it.
fn away(at: u64) -> [Record; 2] {
    let gap = Gap { ended: at + 40_000, ticks: 60_000, events: KernelEvents(KernelEvents::INVOLUNTARY) };
    written(|log| {
        log.append_gap(gap);
        log.offer_sleep(at + 70_000, 30_000, &[3; LEVELS]);
    })
}

/// Gives the strategies different kinds, so that they are distinguished.
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
fn run_with_deaths_is_equal_on_disk() {
    assert_same(&killed(&[StrategyDeath { restart: Some(2_000), ..StrategyDeath::new(1, T1_OF_20 + 50) }]));
}

#[test]
fn exchange_run_is_equal_on_disk() {
    assert_same(&Fixture::new(Shape { book: true, market: true, orders: 3_000, ..Shape::PLAIN }));
}

#[test]
fn long_run_is_equal_on_disk() {
    // More rows than a block has, more stamps than are sorted at a time.
    let shape = Shape { orders: 60_000, period: 2_000, delay: 900_000, fills: true, ..Shape::PLAIN };
    assert_same(&with_gaps(of_two_kinds(Fixture::new(shape)), 300));
}

#[test]
fn lossy_table_is_detected() {
    // More rows than fit at the start of a column.
    let fixture = Fixture::new(Shape { strategies: 1, orders: 20_000, ..Shape::PLAIN });
    let honest = results(&fixture, |_| ColumnStore::memory());
    let broken = results(&fixture, |folder| ColumnStore::with_data_loss(folder).unwrap());
    assert_ne!(honest["summary.json"], broken["summary.json"]);
}

#[test]
fn streamed_fixture_equals_in_memory_fixture() {
    let folder = tempfile::tempdir().unwrap();
    streamed::write(
        Shape { strategies: 4, orders: 10_000, period: 2_000, delay: 900_000, ..Shape::PLAIN },
        folder.path(),
    );
    let summary = summary_of(folder.path());
    assert!(summary.valid, "{:?}", summary.violations);
    assert_eq!((summary.rt_venue.count, summary.rt_venue.max_ns), (40_000, Some(RT_VENUE / 2)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn arbitrary_run_is_equal_on_disk(
        strategies in 1u16..4, venues in 1u16..4, orders in 1u64..6_000, period in 1_000u64..20_000,
        reject_every in prop_oneof![Just(0u64), 3u64..9], delay in 0u64..2_000_000, shared in any::<bool>(), kinds in any::<bool>(), every in 20usize..400,
    ) {
        let threading = if shared { Threading::Shared } else { Threading::Dedicated };
        let shape = Shape { strategies, venues, orders, period, reject_every, delay, threading, ..Shape::PLAIN };
        let fixture = with_gaps(Fixture::new(shape), every);
        assert_same(&if kinds { of_two_kinds(fixture) } else { fixture });
    }
}
