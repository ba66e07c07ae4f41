//! Common test helpers: change a synthetic run, merge it, summarize it, evaluate it.

use crate::fixture::{Fixture, NS_PER_TICK};
use merge::{MergeError, MergedRun, OrderCounts, ViolationKind, merge};
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use protocol::stamps::{Point, Record};
use protocol::wire::OrderId;
use record::document::Document;
use record::run::RunRecord;
use std::path::Path;
use tempfile::TempDir;
use verdict::evaluation::evaluate;
use verdict::report::{csv, markdown};
use verdict::summary::{Figures, Summary, summarize};

/// A change of a run that introduces a defect.
pub type Defect = fn(&mut Fixture);

/// Writes a run and merges it.
pub fn run(fixture: &Fixture) -> MergedRun {
    let folder = fixture.write();
    let record = RunRecord::read(folder.path()).unwrap();
    assert_eq!(record, fixture.record);
    let mut last = (0, 0);
    let merged = merge(folder.path(), &record, |done, total| {
        assert!(done >= last.0 && done <= total);
        last = (done, total);
    });
    let merged = merged.unwrap();
    assert_eq!(last.0, merged.records);
    merged
}

/// Writes a run, overwrites bytes of a thread's log, and merges it.
pub fn scribbled(
    fixture: &Fixture,
    thread: &str,
    scribble: impl FnOnce(&mut Vec<u8>),
) -> Result<MergedRun, MergeError> {
    let folder = fixture.write();
    scribble_on(&folder.path().join(format!("{thread}.stamps")), scribble);
    merge(folder.path(), &fixture.record, |_, _| {})
}

/// Cuts a log and overwrites bytes of it; those past its end are ignored.
pub fn damage(bytes: &mut Vec<u8>, cut: usize, scribbles: &[(usize, u8)]) {
    bytes.truncate(cut);
    for (index, byte) in scribbles {
        if let Some(old) = bytes.get_mut(*index) {
            *old = *byte;
        }
    }
}

/// Returns the report of a run as CSV and as Markdown.
pub fn exported(summary: &Summary) -> [String; 2] {
    let (mut table, mut document) = (Vec::new(), Vec::new());
    csv(summary, &mut table).unwrap();
    markdown(summary, &mut document).unwrap();
    [table, document].map(|bytes| String::from_utf8(bytes).unwrap())
}

pub fn scribble_on(path: &Path, scribble: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    scribble(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

pub fn summary(fixture: &Fixture) -> Summary {
    let merged = run(fixture);
    summarize(
        &fixture.record,
        &merged,
        &Figures::measure(&merged, fixture.record.plan.isolation, NS_PER_TICK),
    )
}

pub fn evaluated(fixture: &Fixture) -> (TempDir, Summary) {
    let folder = tempfile::Builder::new().prefix("bulkhead-test-").tempdir().unwrap();
    let summary = evaluate_into(folder.path(), fixture);
    (folder, summary)
}

pub fn evaluate_into(folder: &Path, fixture: &Fixture) -> Summary {
    fixture.write_to(folder);
    evaluate(folder, &fixture.record, |_| {}).unwrap()
}

pub fn kinds(merged: &MergedRun) -> Vec<ViolationKind> {
    merged.violations.iter().map(|violation| violation.kind).collect()
}

/// Returns the only violation of a run: its kind and its first example. Checks that every order is
/// accounted for.
#[track_caller]
pub fn only(merged: &MergedRun) -> (ViolationKind, String) {
    all_accounted(&merged.orders);
    let [violation] = merged.violations.as_slice() else {
        panic!("one violation expected, got {:?}", merged.violations)
    };
    (violation.kind, violation.first.clone())
}

/// Introduces one defect in each honest run: its only violation has that kind, and its first
/// example contains these words.
#[track_caller]
pub fn check_each(honest: impl Fn() -> Fixture, ways: &[(ViolationKind, &str, Defect)]) {
    for (kind, words, spoil) in ways {
        let mut fixture = honest();
        spoil(&mut fixture);
        let (found, first) = only(&run(&fixture));
        assert!(found == *kind && first.contains(words), "{kind:?}, {words}: {found:?}, {first}");
    }
}

#[track_caller]
pub fn all_accounted(orders: &OrderCounts) {
    let sum = orders.returned + orders.rejected + orders.cancelled + orders.orphaned + orders.lost;
    assert_eq!(orders.sent, sum, "{orders:?}");
}

/// Returns a stamp without a detail.
pub const fn stamp(point: Point, id: OrderId, value: u64) -> Record {
    Record { point, id, detail: 0, value }
}

/// Returns a fault that begins `ns` nanoseconds after the start.
pub fn fault(kind: FaultKind, target: FaultTarget, ns: u64) -> Fault {
    Fault { kind, target, when: FaultTime::At { ns }, every_ns: None, lasts_ns: None }
}
