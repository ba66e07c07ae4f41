//! `inspect` on whole and on damaged logs and folders.

use crate::fixture::killing::Death;
use crate::fixture::{Fixture, Shape};
use analysis::document::Document;
use analysis::inspect::{Format, InspectError, Options, inspect};
use analysis::logfile::RECORDS_AT;
use proptest::prelude::*;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

fn show(path: &Path, options: Options) -> (String, Result<(), InspectError>) {
    let mut out = Vec::new();
    let result = inspect(path, &options, &mut out);
    // No run's folder stands in a snapshot.
    let folder = path.ancestors().find(|path| path.is_dir()).map(|path| path.display().to_string());
    (String::from_utf8(out).unwrap().replace(&folder.unwrap_or_default(), "RUN"), result)
}

fn folder() -> tempfile::TempDir {
    Fixture::new(Shape { reject_every: 7, ..Shape::PLAIN }).write()
}

const ORDER: OrderId = OrderId::new(1, 0, 5);
const TEXT: Options = Options { head: None, tail: None, order: None, worst: None, format: Format::Text };

#[test]
fn a_log_a_folder_and_an_order_as_text() {
    let folder = folder();
    let (text, result) =
        show(&folder.path().join("strategy-1.stamps"), Options { tail: Some(2), head: Some(4), ..TEXT });
    result.unwrap();
    insta::assert_snapshot!("log", text);
    let (text, result) = show(folder.path(), TEXT);
    result.unwrap();
    insta::assert_snapshot!("folder", text);
    let (text, result) = show(folder.path(), Options { order: Some(ORDER), ..TEXT });
    result.unwrap();
    insta::assert_snapshot!("order", text);
    let (text, result) = show(folder.path(), Options { order: Some(OrderId::new(0, 0, 6)), ..TEXT });
    result.unwrap();
    insta::assert_snapshot!("rejected", text);
}

#[test]
fn what_the_dead_left_is_shown() {
    // Strategy 1 dies with orders at its venues, is started again, and dies again with one in the ring.
    let mut fixture = Fixture::new(Shape::PLAIN);
    fixture.kill(Death { restart: Some(20_000), ..Death::of(1, 200_000) });
    let in_ring = 17 * 20_000 + 10_100;
    fixture.kill(Death::of(1, in_ring));
    let folder = fixture.write();
    let order = |strategy, epoch, sequence| {
        let id = OrderId::new(strategy, epoch, sequence);
        let (text, result) = show(folder.path(), Options { order: Some(id), ..TEXT });
        result.unwrap();
        text
    };
    insta::assert_snapshot!("cancelled", order(1, 0, 9));
    let (text, result) = show(folder.path(), TEXT);
    result.unwrap();
    insta::assert_snapshot!("epochs", text);
    let refused = order(1, 1, 6);
    assert!(refused.starts_with("order 1.1/6 of run test-1: orphaned"), "{refused}");
    assert!(refused.contains("reason 6"), "{refused}");
    assert_eq!("1.1/6".parse(), Ok(OrderId::new(1, 1, 6)));

    let (text, result) = show(&folder.path().join("gateway-1.stamps"), Options { tail: Some(40), ..TEXT });
    result.unwrap();
    assert!(text.contains("  cancelled  1/9  "), "{text}");
    let (text, _) = show(folder.path(), Options { format: Format::Json, ..TEXT });
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let epochs: Vec<_> = value["logs"].as_array().unwrap().iter().map(|log| log["epochs"].clone()).collect();
    assert_eq!(serde_json::json!(epochs), serde_json::json!([1, 2, null, null, null]));
    assert_eq!(value["incidents"].as_array().unwrap().len(), 2);
}

#[test]
fn json_is_json_and_csv_has_every_record() {
    let folder = folder();
    let log = folder.path().join("strategy-0.stamps");
    let json = |path: &Path, options: Options| -> serde_json::Value {
        let (text, result) = show(path, Options { format: Format::Json, ..options });
        result.unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let value = json(&log, TEXT);
    assert_eq!(value["records"].as_array().unwrap().len(), 62);
    assert_eq!((&value["thread"], &value["total"]), (&"strategy-0".into(), &62.into()));
    assert_eq!(value["agents"][0]["counters"]["sent"], 20);
    assert_eq!(json(&log, Options { tail: Some(3), ..TEXT })["records"][2]["number"], 61);
    assert_eq!(json(&log, Options { head: Some(0), ..TEXT })["records"], serde_json::json!([]));
    assert_eq!(json(folder.path(), TEXT)["logs"][2]["thread"], "orchestrator");
    let path = json(folder.path(), Options { order: Some(ORDER), ..TEXT });
    assert_eq!((&path["became"], &path["rt_venue_ns"]), (&"returned".into(), &790.0.into()));
    assert_eq!(
        (&path["steps"][2]["stage"], &path["steps"][2]["stage_ns"]),
        (&"submit".into(), &200.0.into())
    );

    let lines = |path: &Path, options: Options| {
        let (text, result) = show(path, Options { format: Format::Csv, ..options });
        result.unwrap();
        text.lines().count()
    };
    assert_eq!(lines(&log, TEXT), 63);
    assert_eq!(lines(folder.path(), TEXT), 6);
    assert_eq!(lines(folder.path(), Options { order: Some(ORDER), ..TEXT }), 11);
}

#[test]
fn a_log_alone_is_shown_in_ticks() {
    let (run, alone) = (folder(), tempfile::tempdir().unwrap());
    let path = alone.path().join("x.stamps");
    std::fs::copy(run.path().join("engine.stamps"), &path).unwrap_err();
    std::fs::copy(run.path().join("gateway-0.stamps"), &path).unwrap();
    let (text, result) = show(&path, TEXT);
    result.unwrap();
    assert!(text.contains(" ticks  t4"), "{text}");
}

#[test]
fn damage_is_printed_and_then_an_error() {
    let folder = folder();
    let path = folder.path().join("gateway-1.stamps");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..RECORDS_AT as usize + 16 * 5 + 3]).unwrap();
    let (text, result) = show(&path, TEXT);
    assert!(text.contains("\n5 records"), "{text}");
    assert!(result.unwrap_err().to_string().contains("inside record 5"));
    let (text, result) = show(&path, Options { format: Format::Json, ..TEXT });
    assert!(result.is_err());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["damage"].as_str().unwrap().contains("inside record 5"));

    std::fs::copy(folder.path().join("gateway-0.stamps"), folder.path().join("stranger.stamps")).unwrap();
    let (text, result) = show(folder.path(), TEXT);
    assert!(text.contains("problem: stranger.stamps: run test-1 has no such thread"), "{text}");
    assert!(result.unwrap_err().to_string().starts_with("2 problems in "));
    let (text, result) = show(folder.path(), Options { order: Some(ORDER), ..TEXT });
    assert!(text.contains("problem: ") && result.is_err(), "{text}");
}

#[test]
fn a_log_cut_between_two_records_is_not_whole() {
    let folder = folder();
    let path = folder.path().join("gateway-1.stamps");
    let bytes = std::fs::read(&path).unwrap();
    assert!(show(&path, TEXT).1.is_ok() && show(folder.path(), TEXT).1.is_ok());
    // The last record is a checksum; without all of them nothing says where the end was, but that it is not here.
    for records in [0, 5, 20] {
        std::fs::write(&path, &bytes[..RECORDS_AT as usize + 16 * records]).unwrap();
        let error = show(&path, TEXT).1.unwrap_err().to_string();
        assert!(error.contains(&format!("{records} records and no checksums")), "{error}");
        let (text, result) = show(folder.path(), TEXT);
        assert!(text.contains("problem: gateway-1.stamps: ") && result.is_err(), "{text}");
    }
}

#[test]
fn what_is_no_run_is_refused() {
    let (folder, empty) = (folder(), tempfile::tempdir().unwrap());
    let error = |path: &Path, options| show(path, options).1.unwrap_err().to_string();
    assert!(error(empty.path(), TEXT).contains("no run.json in it"));
    assert!(error(&empty.path().join("nothing"), TEXT).contains("No such file"));
    assert!(error(folder.path(), Options { head: Some(1), ..TEXT }).contains("need a log"));
    let nobody = Some(OrderId::new(1, 0, 999));
    assert!(error(folder.path(), Options { order: nobody, ..TEXT }).contains("no stamp of order 1/999"));
    assert!(
        error(&folder.path().join("strategy-0.stamps"), Options { order: nobody, ..TEXT }).contains("1/999")
    );
    assert!(error(&folder.path().join("run.json"), TEXT).contains("wrong magic"));

    let mut other = Fixture::new(Shape::PLAIN);
    other.record.plan.run = "other".into();
    std::fs::write(folder.path().join("strategy-0.stamps"), other.bytes(0)).unwrap();
    assert!(error(&folder.path().join("strategy-0.stamps"), TEXT).contains("another run than the run.json"));
    assert!(error(folder.path(), TEXT).contains("belongs to another run"));

    for (text, words) in [
        ("{", "EOF"),
        ("{\"schema\":\"bulkhead.run/9\"}", "schema \"bulkhead.run/9\""),
        ("{\"schema\":\"bulkhead.run/1\"}", "use the launcher that wrote it"),
        ("{\"schema\":\"bulkhead.run/3\"}", "missing field"),
    ] {
        std::fs::write(empty.path().join("run.json"), text).unwrap();
        let error = error(empty.path(), TEXT);
        assert!(error.contains(words), "{error}");
    }
    other.record.plan.threads[0].name = "../strategy-0".into();
    std::fs::write(empty.path().join("run.json"), other.record.json().unwrap()).unwrap();
    assert!(error(empty.path(), TEXT).contains("thread name"));
}

/// A reader that hangs up after a few bytes.
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
fn a_reader_that_hangs_up_is_no_error_but_a_full_disk_is() {
    let folder = folder();
    let log = folder.path().join("orchestrator.stamps");
    for format in [Format::Text, Format::Json, Format::Csv] {
        for (path, order) in [(&*log, None), (folder.path(), None), (folder.path(), Some(ORDER))] {
            for bytes in [0, 1, 100, 300] {
                let options = Options { order, format, ..TEXT };
                inspect(path, &options, &mut HangsUp(bytes, ErrorKind::BrokenPipe)).unwrap();
                let full = inspect(path, &options, &mut HangsUp(bytes, ErrorKind::StorageFull));
                assert!(matches!(full, Err(InspectError::Output(_))), "{full:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_damage_makes_it_panic(
        cut in 0usize..2000, scribbles in prop::collection::vec((0usize..2000, any::<u8>()), 0..20), format in 0..3,
    ) {
        let folder = folder();
        let path = folder.path().join("strategy-0.stamps");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(cut);
        for (place, byte) in scribbles {
            if let Some(old) = bytes.get_mut(place) {
                *old = byte;
            }
        }
        std::fs::write(&path, bytes).unwrap();
        let format = [Format::Text, Format::Json, Format::Csv][format as usize];
        let _ = show(&path, Options { format, ..TEXT });
        let _ = show(folder.path(), Options { format, ..TEXT });
        let _ = show(folder.path(), Options { format, order: Some(OrderId::new(0, 0, 3)), ..TEXT });
    }
}

#[test]
fn an_order_stamped_twice_is_a_problem() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    let (thread, place) = fixture.find(Point::OrchReturn, ORDER);
    let twin = fixture.logs[thread][place];
    fixture.logs[thread].push(twin);
    let (text, result) = show(fixture.write().path(), Options { order: Some(ORDER), ..TEXT });
    assert!(text.contains("problem: strategy 1 order 5: t7 twice"), "{text}");
    assert!(result.is_err());
}

#[test]
fn the_worst_orders_say_why_and_it_adds_up() {
    let folder = folder();
    let worst = |format| show(folder.path(), Options { worst: Some(3), format, ..TEXT });
    let (text, result) = worst(Format::Text);
    result.unwrap();
    assert!(
        text.contains("why the slowest of") && text.contains("untouched by the machine's stalls"),
        "{text}"
    );
    let (json, result) = worst(Format::Json);
    result.unwrap();
    let tail: serde_json::Value = serde_json::from_str(&json).unwrap();
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
    let (csv, result) = worst(Format::Csv);
    result.unwrap();
    assert_eq!(csv.lines().count(), 1 + 3 * 6, "{csv}");
    let (_, result) = show(&folder.path().join("strategy-1.stamps"), Options { worst: Some(3), ..TEXT });
    assert!(result.unwrap_err().to_string().contains("needs a run's folder"));
}
