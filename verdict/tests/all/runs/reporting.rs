//! Terminal report and exports: narrow, verdict first.

use super::deaths::run_with_deaths;
use crate::common::{exported, fault, summary};
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, Shape};
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, FaultTarget};
use protocol::status::StatusField;
use protocol::supervision::ProtocolViolation;
use record::screen::DEFAULT_WIDTH;
use verdict::report::{first_screen, terminal};
use verdict::summary::Summary;

fn narrow(summary: &Summary) -> String {
    check_width(terminal(summary, false))
}

/// Returns the first screen, which leaves room for the plan, the folder and the prompt.
fn screen(summary: &Summary) -> String {
    let text = check_width(first_screen(summary, false));
    assert!(text.lines().count() <= 24 - 6, "{} lines:\n{text}", text.lines().count());
    text
}

fn check_width(text: String) -> String {
    for line in text.lines() {
        assert!(line.chars().count() <= DEFAULT_WIDTH, "{} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end());
    }
    assert!(!text.contains('\x1b'));
    text
}

#[test]
fn good_run_report_matches_snapshot() {
    let summary = summary(&Fixture::new(Shape { orders: 5_000, reject_every: 100, ..Shape::PLAIN }));
    insta::assert_snapshot!(narrow(&summary));
}

#[test]
fn first_screen_of_good_run_matches_snapshot() {
    let summary = summary(&Fixture::new(Shape { orders: 5_000, reject_every: 100, ..Shape::PLAIN }));
    insta::assert_snapshot!(screen(&summary));
}

#[test]
fn first_screen_names_first_reason_and_largest_stages() {
    let mut summary = summary(&Fixture::new(Shape { orders: 5_000, ..Shape::PLAIN }));
    summary.reasons = ["lag: read it from due", "a second"].map(String::from).into();
    let text = screen(&summary);
    assert!(
        text.contains("lag: read it from due (and 1 more reason)") && !text.contains("a second"),
        "{text}"
    );
    // Four times the longest stage's time in another makes that the first of the two.
    let median = &mut summary.percentile_breakdowns[0];
    let longest = median.stages.iter().map(|stage| stage.mean_ns).fold(0.0, f64::max);
    median.stages[2].mean_ns = longest * 4.0;
    let named = format!("{} ", median.stages[2].stage);
    let text = screen(&summary);
    let title = text.lines().find(|line| line.starts_with("where the time went")).unwrap();
    let (_, shares) = title.rsplit_once("p99 orders  ").unwrap();
    assert!(shares.starts_with(&named) && shares.contains(", "), "{title}");
    // Senders that lag hide in rt_venue how late an order was sent.
    assert!(text.contains("rt_venue, an order's round trip") && !text.contains(", from due "), "{text}");
    summary.send_lag.p99_ns = summary.rt_venue.p50_ns.map(|ns| ns * 2 + 1);
    assert!(screen(&summary).contains("\nrt_venue, from due "), "{}", screen(&summary));
}

#[test]
fn bad_run_report_matches_snapshot() {
    let mut fixture = Fixture::new(Shape { strategies: 30, venues: 3, ..Shape::PLAIN });
    fixture.status("gateway-0", StatusField::RecordsDropped, 3);
    fixture.status("strategy-7", StatusField::LongestGapTicks, 3_000_000);
    fixture.record.warnings.push(
        "32 spinning threads share 2 cores: every figure is a figure of the scheduler; use --threading shared".into(),
    );
    insta::assert_snapshot!(narrow(&summary(&fixture)));
}

#[test]
fn report_of_run_with_deaths_matches_snapshot() {
    let mut fixture = Fixture::new(Shape { orders: 2_000, strategies: 3, ..Shape::PLAIN });
    fixture.record.plan.faults.push(fault(
        FaultKind::Scribble,
        FaultTarget::Strategy(StrategyIndex(2)),
        20_000_000,
    ));
    for number in 0..10 {
        let restart = (number != 8).then_some(100_000);
        let quarantined = (number == 8).then_some(ProtocolViolation::OutOfSequence);
        let strategy = if number == 8 { 2 } else { (number % 2) as u16 };
        fixture.kill(StrategyDeath {
            restart,
            quarantined,
            ..StrategyDeath::new(strategy, 4_000_000 + number * 5_000_000)
        });
    }
    insta::assert_snapshot!(narrow(&summary(&fixture)));
}

#[test]
fn incident_tables_stay_within_page_width() {
    let mut summary = summary(&run_with_deaths(20));
    for incident in &mut summary.incidents {
        incident.strategy = StrategyIndex(255);
        incident.epoch = 4_095;
        incident.cause = "hangs: no duty cycle for 200ms,\n and so on and on".into();
        incident.detected_ns = u64::MAX;
        (incident.detect_to_repair_ns, incident.repair_to_restart_ns) = (Some(9_999_000), Some(u64::MAX));
        incident.orders.cancelled = 123_456_789;
        incident.survivors.max_ns = Some(9_999_000);
    }
    narrow(&summary);
}

#[test]
fn colors_appear_only_on_request() {
    let summary = summary(&Fixture::new(Shape::PLAIN));
    let colored = terminal(&summary, true);
    let plain: String = colored
        .split('\x1b')
        .enumerate()
        .map(|(number, part)| if number == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert_ne!(colored, plain);
    assert_eq!(plain, terminal(&summary, false));
}

#[test]
fn unusual_values_stay_within_page_width() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    for words in &mut fixture.statuses {
        words[1..].fill(u64::MAX);
    }
    fixture.counters.iter_mut().for_each(|words| words.fill(u64::MAX));
    fixture.record.machine.cpu_model = "x".repeat(300);
    fixture.record.warnings.push("y".repeat(300));
    fixture.record.plan.trading_mut().orders[0] = u64::MAX;
    let summary = summary(&fixture);
    narrow(&summary);
    check_width(first_screen(&summary, false));
}

fn rows(document: &str) -> usize {
    document.lines().filter(|line| line.starts_with('|')).count()
}

#[test]
fn csv_and_markdown_have_every_measure() {
    let [table, document] = exported(&summary(&Fixture::new(Shape::PLAIN)));
    assert_eq!(table.lines().count(), 13);
    assert!(table.starts_with("stage,count,min_ns,p50_ns,"), "{table}");
    assert!(table.contains("\nsubmit,40,200,200,,,,,200,200.0\n"), "{table}");
    assert!(document.contains("**not fit for latency claims**"), "{document}");
    assert!(
        document.contains("- 40 orders came back") && rows(&document) == 14 + 3 + 3 + 2 + 5,
        "{document}"
    );
}

#[test]
fn csv_and_markdown_list_incidents() {
    let [table, document] = exported(&summary(&run_with_deaths(60)));
    assert_eq!(table.lines().count(), 16);
    assert!(table.contains("\ndetect_to_repair,59,200,200,,,,,200,200.0\nsurvivors_before,"), "{table}");
    let all = "- incidents: 59 deaths of 1 strategy, quarantined 0, restarted 59";
    assert!(document.contains(all), "{document}");
    assert!(document.contains("\n- … and 9 more, felt less: see summary.json\n"), "{document}");
    // Each table with head and rule: costs and events of a level, the fifty worst, distributions,
    // fifty lives, refused orders, threads.
    assert_eq!(rows(&document), 14 + 3 + 3 + 2 + 50 + 2 + 3 + 2 + 50 + 2 + 1 + 2 + 5, "{document}");
}
