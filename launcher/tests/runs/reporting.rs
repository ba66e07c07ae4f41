//! The report: readable, narrow, verdict first.

use crate::figures::summary;
use crate::fixture::{Fixture, Shape};
use launcher::report::{WIDTH, csv, markdown, terminal};
use launcher::summary::Summary;
use shm::status::Field;

fn narrow(summary: &Summary) -> String {
    let text = terminal(summary, false);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end());
    }
    assert!(!text.contains('\x1b'));
    text
}

#[test]
fn the_report_of_a_good_run() {
    let summary = summary(&Fixture::new(Shape { orders: 5_000, reject_every: 100, ..Shape::default() }));
    insta::assert_snapshot!(narrow(&summary));
}

#[test]
fn the_report_of_a_bad_run() {
    let mut fixture = Fixture::new(Shape { strategies: 30, venues: 3, ..Shape::default() });
    fixture.status("gateway-0", Field::RecordsDropped, 3);
    fixture.status("strategy-7", Field::LongestGapTicks, 3_000_000);
    fixture.record.warnings.push(
        "32 spinning threads share 2 cores: every figure is a figure of the scheduler; use --threading shared".into(),
    );
    insta::assert_snapshot!(narrow(&summary(&fixture)));
}

#[test]
fn colours_only_when_asked_for() {
    let summary = summary(&Fixture::new(Shape::default()));
    let coloured = terminal(&summary, true);
    let plain: String = coloured
        .split('\x1b')
        .enumerate()
        .map(|(number, part)| if number == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert_ne!(coloured, plain);
    assert_eq!(plain, terminal(&summary, false));
}

#[test]
fn odd_values_stay_within_the_page() {
    let mut fixture = Fixture::new(Shape::default());
    for words in &mut fixture.statuses {
        words[1..].fill(u64::MAX);
    }
    fixture.record.machine.cpu_model = "x".repeat(300);
    fixture.record.warnings.push("y".repeat(300));
    fixture.record.plan.orders[0] = u64::MAX;
    narrow(&summary(&fixture));
}

#[test]
fn csv_and_markdown_carry_every_measure() {
    let summary = summary(&Fixture::new(Shape::default()));
    let mut text = Vec::new();
    csv(&summary, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 13);
    assert!(text.starts_with("stage,count,min_ns,p50_ns,"), "{text}");
    assert!(text.contains("\nsubmit,40,200,200,,,,,200,200.0\n"), "{text}");

    let mut text = Vec::new();
    markdown(&summary, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("**not fit for latency claims**") && text.contains("- 40 orders came back"),
        "{text}"
    );
    assert!(text.lines().filter(|line| line.starts_with('|')).count() == 14, "{text}");
}
