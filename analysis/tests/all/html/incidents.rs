//! The page of a run in which strategies died: the table, the totals, and the marks on the
//! timeline.

use super::dom::{check_alone, having, text};
use super::fixtures::{keep, page};
use super::run_page::check_figures;
use crate::common::evaluated;
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, START, Shape};
use analysis::summary::{IncidentSummary, Summary, worst};
use protocol::stamps::Point;
use protocol::supervision::ProtocolViolation;
use tempfile::TempDir;

/// Returns a run with alternating deaths of three strategies in its middle.
fn deaths(number: u64) -> (TempDir, Summary) {
    let mut fixture = Fixture::new(Shape { orders: 2_000, strategies: 3, ..Shape::PLAIN });
    for number in 0..number {
        let at = 4_000_000 + number * 600_000;
        fixture.kill(StrategyDeath { restart: Some(100_000), ..StrategyDeath::new((number % 3) as u16, at) });
    }
    evaluated(&fixture)
}

fn name(incident: &IncidentSummary) -> String {
    match incident.epoch {
        0 => incident.strategy.to_string(),
        epoch => format!("{}.{epoch}", incident.strategy),
    }
}

/// Checks that table and marks show the incidents with the greatest effect on survivors.
fn check_incidents(html: &str, summary: &Summary) {
    let shown = worst(&summary.incidents, 50);
    let (rows, marks) = (having(html, "data-died"), having(html, "data-incident"));
    assert_eq!((rows.len(), marks.len()), (shown.len(), shown.len()));
    for ((row, mark), incident) in rows.iter().zip(&marks).zip(&shown) {
        assert_eq!(row.get("data-died"), Some(name(incident).as_str()));
        assert_eq!(row.whole("data-detected-ns"), Some(incident.detected_ns));
        assert_eq!(row.whole("data-touched"), Some(incident.survivors.orders));
        assert_eq!(row.whole("data-greatest-ns"), incident.survivors.max_ns);
        assert_eq!(mark.get("data-incident"), Some(name(incident).as_str()));
        assert_eq!(mark.whole("data-at-ns"), incident.fault_ns);
    }
    let containment = summary.containment.as_ref().unwrap();
    let all = &having(html, "data-incidents")[0];
    assert_eq!(all.whole("data-incidents"), Some(containment.incidents));
    assert_eq!(all.whole("data-lost-of-survivors"), Some(containment.lost_of_survivors));
    let figures = having(html, "data-containment");
    assert_eq!(figures.len(), 3);
    for (row, (name, expected)) in figures.iter().zip(containment.distributions()) {
        assert_eq!(row.get("data-containment"), Some(name));
        assert_eq!(row.whole("data-samples"), Some(expected.count));
        assert_eq!(row.whole("data-greatest-ns"), expected.max_ns);
    }
}

fn lines(html: &str) -> Vec<f64> {
    having(html, "data-incident").iter().map(|mark| mark.number("x").unwrap()).collect()
}

#[test]
fn incidents_appear_in_table_and_timeline() {
    let (folder, summary) = deaths(7);
    let html = page(&folder);
    check_alone(&html);
    check_figures(&html, &summary);
    check_incidents(&html, &summary);
    let text = text(&html);
    assert!(text.contains("Strategies that died") && text.contains("7 deaths of 3 strategies"), "{text}");
    assert!(text.contains(" cancelled, ") && text.contains(" orphaned, "));
    // Distances in the chart are proportional to time: one scale for all.
    let places = lines(&html);
    let at = |index: usize| summary.incidents[index].fault_ns.unwrap() as f64;
    let scale = (places[6] - places[0]) / (at(6) - at(0));
    for (index, x) in places.iter().enumerate() {
        assert!((x - places[0] - (at(index) - at(0)) * scale).abs() < 0.2, "{places:?}");
    }
}

#[test]
fn worst_of_many_incidents_are_shown() {
    let (folder, summary) = deaths(70);
    let html = page(&folder);
    keep("deaths.html", &html);
    check_alone(&html);
    check_incidents(&html, &summary);
    assert_eq!(lines(&html).len(), 50);
    // A lane for each strategy that died; each band ends where the strategy was restarted.
    for lane in ["strategy 0", "strategy 1", "strategy 2"] {
        assert!(html.contains(&format!(">{lane}</text>")), "{lane}");
    }
    let bands = having(&html, "data-incident");
    let heights: std::collections::BTreeSet<_> =
        bands.iter().map(|band| band.get("y").unwrap().to_owned()).collect();
    assert_eq!(heights.len(), 3);
    assert!(bands.iter().all(|band| band.whole("data-back-ns") > band.whole("data-at-ns")));
    assert!(text(&html).contains("20 incidents that the survivors felt less are in summary.json."));
}

#[test]
fn run_without_deaths_has_no_incident_section() {
    let (folder, summary) = evaluated(&Fixture::new(Shape::PLAIN));
    let html = page(&folder);
    assert_eq!(summary.containment, None);
    for attribute in ["data-incidents", "data-incident", "data-died", "data-containment"] {
        assert!(having(&html, attribute).is_empty(), "{attribute}");
    }
    assert!(!text(&html).contains("Strategies that died") && !text(&html).contains("cancelled"));
}

#[test]
fn unusual_incidents_are_drawn() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    let quarantined = Some(ProtocolViolation::Flood);
    fixture.kill(StrategyDeath { quarantined, ..StrategyDeath::new(1, 60_000) });
    fixture.logs[0].retain(|record| record.point != Point::StrategyRecv || record.value < START);
    let incident = &mut fixture.record.incidents[0];
    incident.cause = "<script>alert(1)</script>\n\u{1b}[31m".into();
    (incident.detected_ns, incident.fenced_ns) = (u64::MAX, 0);
    (incident.repaired_ns, incident.restarted_ns) = (Some(3), Some(1));
    let mut unknown = incident.clone();
    (unknown.strategy, unknown.epoch, unknown.repaired_ns) = (999, 65_535, None);
    fixture.record.incidents.push(unknown);
    let (folder, summary) = evaluated(&fixture);
    let html = page(&folder);
    check_alone(&html);
    assert_eq!(summary.incidents.len(), 2);
    assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains('\u{1b}'));
    assert!(text(&html).contains("No order came back."));
}
