//! The page of a run in which strategies died: the table, the totals, and the marks on the
//! timeline.

use super::dom::{check_alone, having, text};
use super::fixtures::{keep, page};
use super::run_page::check_figures;
use crate::common::evaluated;
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, START, Shape};
use analysis::report::units::duration_or_dash;
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
    let (shown, marks, text) = (worst(&summary.incidents, 50), having(html, "data-incident"), text(html));
    assert_eq!(marks.len(), shown.len());
    for (mark, incident) in marks.iter().zip(&shown) {
        assert_eq!(mark.get("data-incident"), Some(name(incident).as_str()));
        assert_eq!(mark.whole("data-at-ns"), incident.fault_ns);
        let at = format!("{:.3}", incident.detected_ns as f64 / 1e9);
        assert!(text.contains(&at) && text.contains(&duration_or_dash(incident.survivors.max_ns)), "{at}");
    }
    for (name, figures) in summary.containment.as_ref().unwrap().distributions() {
        assert!(text.contains(name) && text.contains(&duration_or_dash(figures.max_ns)), "{name}");
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
    assert!(text(&html).contains("… and 20 more, felt less: see summary.json"));
}

#[test]
fn run_without_deaths_has_no_incident_section() {
    let (folder, summary) = evaluated(&Fixture::new(Shape::PLAIN));
    let html = page(&folder);
    assert_eq!(summary.containment, None);
    assert!(having(&html, "data-incident").is_empty());
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
