//! Tests of `inspect` on valid and damaged logs and folders.

use crate::common::{damage, scribble_on};
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, Shape};
use proptest::prelude::*;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use record::document::Document;
use record::logfile::RECORDS_AT;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use verdict::inspect::{Format, Options, inspect};

fn show(path: &Path, options: Options) -> (String, anyhow::Result<()>) {
    let mut out = Vec::new();
    let result = inspect(path, &options, &mut out);
    // Snapshots contain no path of a run's folder.
    let folder = path.ancestors().find(|path| path.is_dir()).map(|path| path.display().to_string());
    (String::from_utf8(out).unwrap().replace(&folder.unwrap_or_default(), "RUN"), result)
}

#[track_caller]
fn shown(path: &Path, options: Options) -> String {
    let (text, result) = show(path, options);
    result.unwrap();
    text
}

#[track_caller]
fn error(path: &Path, options: Options) -> String {
    format!("{:#}", show(path, options).1.unwrap_err())
}

fn folder() -> tempfile::TempDir {
    Fixture::new(Shape { reject_every: 7, ..Shape::PLAIN }).write()
}

const ORDER: OrderId = OrderId::new(1, 0, 5);
const TEXT: Options = Options { head: None, tail: None, order: None, worst: None, format: Format::Text };
const JSON: Options = Options { format: Format::Json, ..TEXT };
const CSV: Options = Options { format: Format::Csv, ..TEXT };

#[test]
fn inspect_prints_log_folder_and_order() {
    let folder = folder();
    let log = folder.path().join("strategy-1.stamps");
    insta::assert_snapshot!("log", shown(&log, Options { tail: Some(2), head: Some(4), ..TEXT }));
    insta::assert_snapshot!("folder", shown(folder.path(), TEXT));
    let order = |id| shown(folder.path(), Options { order: Some(id), ..TEXT });
    insta::assert_snapshot!("order", order(ORDER));
    insta::assert_snapshot!("rejected", order(OrderId::new(0, 0, 6)));
}

#[test]
fn inspect_shows_dead_strategy_orders() {
    // Strategy 1 dies with orders at its venues, is restarted, and dies again with one in the ring.
    let mut fixture = Fixture::new(Shape::PLAIN);
    fixture.kill(StrategyDeath { restart: Some(20_000), ..StrategyDeath::new(1, 200_000) });
    fixture.kill(StrategyDeath::new(1, 17 * 20_000 + 10_100));
    let folder = fixture.write();
    let order = |id| shown(folder.path(), Options { order: Some(id), ..TEXT });
    insta::assert_snapshot!("cancelled", order(OrderId::new(1, 0, 9)));
    insta::assert_snapshot!("epochs", shown(folder.path(), TEXT));
    let refused = order("1.1/6".parse().unwrap());
    assert!(refused.starts_with("order 1.1/6 of run test-1: orphaned"), "{refused}");
    assert!(refused.contains("reason 6"), "{refused}");

    let text = shown(&folder.path().join("gateway-1.stamps"), Options { tail: Some(40), ..TEXT });
    assert!(text.contains("  cancelled  1/9  "), "{text}");
    let value: serde_json::Value = serde_json::from_str(&show(folder.path(), JSON).0).unwrap();
    let epochs: Vec<_> = value["logs"].as_array().unwrap().iter().map(|log| log["epochs"].clone()).collect();
    assert_eq!(serde_json::json!(epochs), serde_json::json!([1, 2, null, null, null]));
    assert_eq!(value["incidents"].as_array().unwrap().len(), 2);
}

#[test]
fn inspect_json_parses_and_csv_is_complete() {
    let folder = folder();
    let log = folder.path().join("strategy-0.stamps");
    let json = |path: &Path, options: Options| -> serde_json::Value {
        serde_json::from_str(&shown(path, options)).unwrap()
    };
    let value = json(&log, JSON);
    assert_eq!(value["records"].as_array().unwrap().len(), 62);
    assert_eq!((&value["thread"], &value["total"]), (&"strategy-0".into(), &62.into()));
    assert_eq!(value["agents"][0]["counters"]["sent"], 20);
    assert_eq!(json(&log, Options { tail: Some(3), ..JSON })["records"][2]["number"], 61);
    assert_eq!(json(&log, Options { head: Some(0), ..JSON })["records"], serde_json::json!([]));
    assert_eq!(json(folder.path(), JSON)["logs"][2]["thread"], "orchestrator");
    let path = json(folder.path(), Options { order: Some(ORDER), ..JSON });
    assert_eq!((&path["became"], &path["rt_venue_ns"]), (&"returned".into(), &790.0.into()));
    let step = &path["steps"][2];
    assert_eq!((&step["stage"], &step["stage_ns"]), (&"submit".into(), &200.0.into()));

    let lines = |path: &Path, options: Options| shown(path, options).lines().count();
    assert_eq!((lines(&log, CSV), lines(folder.path(), CSV)), (63, 6));
    assert_eq!(lines(folder.path(), Options { order: Some(ORDER), ..CSV }), 11);
}

#[test]
fn log_without_record_is_shown_in_ticks() {
    let (run, alone) = (folder(), tempfile::tempdir().unwrap());
    let path = alone.path().join("x.stamps");
    std::fs::copy(run.path().join("gateway-0.stamps"), &path).unwrap();
    let text = shown(&path, TEXT);
    assert!(text.contains(" ticks  t4"), "{text}");
}

#[test]
fn damage_is_printed_before_the_error() {
    let folder = folder();
    let path = folder.path().join("gateway-1.stamps");
    scribble_on(&path, |bytes| bytes.truncate(RECORDS_AT as usize + 16 * 5 + 3));
    let (text, result) = show(&path, TEXT);
    assert!(text.contains("\n5 records"), "{text}");
    assert!(result.unwrap_err().to_string().contains("inside record 5"));
    let (text, result) = show(&path, JSON);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(result.is_err() && value["damage"].as_str().unwrap().contains("inside record 5"));

    std::fs::copy(folder.path().join("gateway-0.stamps"), folder.path().join("stranger.stamps")).unwrap();
    let (text, result) = show(folder.path(), TEXT);
    assert!(text.contains("problem: stranger.stamps: run test-1 has no such thread"), "{text}");
    assert!(result.unwrap_err().to_string().starts_with("2 problems in "));
    let (text, result) = show(folder.path(), Options { order: Some(ORDER), ..TEXT });
    assert!(text.contains("problem: ") && result.is_err(), "{text}");
}

#[test]
fn log_cut_between_records_is_incomplete() {
    let folder = folder();
    let path = folder.path().join("gateway-1.stamps");
    shown(&path, TEXT);
    shown(folder.path(), TEXT);
    // The last record is a checksum. Without any, the end is unknown, but it is missing.
    for records in [20, 5, 0] {
        scribble_on(&path, |bytes| bytes.truncate(RECORDS_AT as usize + 16 * records));
        let error = error(&path, TEXT);
        assert!(error.contains(&format!("{records} records and no checksums")), "{error}");
        let (text, result) = show(folder.path(), TEXT);
        assert!(text.contains("problem: gateway-1.stamps: ") && result.is_err(), "{text}");
    }
}

#[test]
fn paths_that_are_not_runs_are_refused() {
    let (folder, empty) = (folder(), tempfile::tempdir().unwrap());
    let (run, log) = (folder.path(), folder.path().join("strategy-0.stamps"));
    let nobody = Options { order: Some(OrderId::new(1, 0, 999)), ..TEXT };
    for (path, options, expected) in [
        (empty.path(), TEXT, "no run.json in it"),
        (&empty.path().join("nothing"), TEXT, "No such file"),
        (run, Options { head: Some(1), ..TEXT }, "need a log"),
        (run, nobody, "no stamp of order 1/999"),
        (&log, nobody, "1/999"),
        (&run.join("run.json"), TEXT, "wrong magic"),
    ] {
        let error = error(path, options);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let mut other = Fixture::new(Shape::PLAIN);
    other.record.plan.run = "other".into();
    std::fs::write(&log, other.bytes(0)).unwrap();
    assert!(error(&log, TEXT).contains("another run than the run.json"));
    assert!(error(run, TEXT).contains("belongs to another run"));

    other.record.plan.threads[0].name = "../strategy-0".into();
    let damaged = String::from_utf8(other.record.json().unwrap()).unwrap();
    for (text, expected) in [
        ("{", "EOF"),
        ("{\"schema\":\"bulkhead.run/9\"}", "schema \"bulkhead.run/9\""),
        ("{\"schema\":\"bulkhead.run/1\"}", "use the launcher that wrote it"),
        ("{\"schema\":\"bulkhead.run/3\"}", "missing field"),
        (&damaged, "thread name"),
    ] {
        std::fs::write(empty.path().join("run.json"), text).unwrap();
        let error = error(empty.path(), TEXT);
        assert!(error.contains(expected), "{error}");
    }
}

/// A reader that closes the pipe after a few bytes.
struct HangsUp(usize, ErrorKind);

impl Write for HangsUp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(self.1.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn closed_pipe_succeeds_and_full_disk_fails() {
    let folder = folder();
    let log = folder.path().join("orchestrator.stamps");
    for format in [Format::Text, Format::Json, Format::Csv] {
        for (path, order) in [(&*log, None), (folder.path(), None), (folder.path(), Some(ORDER))] {
            for bytes in [0, 1, 100, 300] {
                let options = Options { order, format, ..TEXT };
                inspect(path, &options, &mut HangsUp(bytes, ErrorKind::BrokenPipe)).unwrap();
                let full = inspect(path, &options, &mut HangsUp(bytes, ErrorKind::StorageFull));
                assert!(full.as_ref().is_err_and(|error| error.is::<io::Error>()), "{full:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_logs_never_panic_inspect(
        cut in 0usize..2000, scribbles in prop::collection::vec((0usize..2000, any::<u8>()), 0..20), format in 0..3,
    ) {
        let folder = folder();
        let path = folder.path().join("strategy-0.stamps");
        scribble_on(&path, |bytes| damage(bytes, cut, &scribbles));
        let format = [Format::Text, Format::Json, Format::Csv][format as usize];
        let _ = show(&path, Options { format, ..TEXT });
        let _ = show(folder.path(), Options { format, ..TEXT });
        let _ = show(folder.path(), Options { format, order: Some(OrderId::new(0, 0, 3)), ..TEXT });
    }
}

#[test]
fn order_stamped_twice_is_a_problem() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    fixture.double(Point::OrchReturn, ORDER);
    let (text, result) = show(fixture.write().path(), Options { order: Some(ORDER), ..TEXT });
    assert!(text.contains("problem: strategy 1 order 5: t7 twice"), "{text}");
    assert!(result.is_err());
}

#[test]
fn worst_orders_list_causes_that_sum() {
    let folder = folder();
    let worst = |format| shown(folder.path(), Options { worst: Some(3), format, ..TEXT });
    let text = worst(Format::Text);
    assert!(text.contains("why the slowest of"), "{text}");
    assert!(text.contains("untouched by the machine's stalls"), "{text}");
    let tail: serde_json::Value = serde_json::from_str(&worst(Format::Json)).unwrap();
    let orders = tail["worst"].as_array().unwrap();
    assert_eq!(orders.len(), 3);
    for order in orders {
        let stages = order["stages"].as_array().unwrap();
        let causes = stages.iter().flat_map(|stage| stage[2].as_array().unwrap());
        let sum: u64 = causes.map(|ns| ns.as_u64().unwrap()).sum();
        assert!(stages.len() == 6 && Some(sum) == order["rt_venue_ns"].as_u64(), "{order:#}");
    }
    let slowest: Vec<u64> = orders.iter().map(|order| order["rt_venue_ns"].as_u64().unwrap()).collect();
    assert!(slowest.is_sorted_by(|a, b| a >= b), "{slowest:?}");
    let csv = worst(Format::Csv);
    assert_eq!(csv.lines().count(), 1 + 3 * 6, "{csv}");
    let log = folder.path().join("strategy-1.stamps");
    assert!(error(&log, Options { worst: Some(3), ..TEXT }).contains("needs a run's folder"));
}
