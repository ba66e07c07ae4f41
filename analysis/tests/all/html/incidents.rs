//! The page of a run in which strategies died: the table, the totals, and the marks on the
//! timeline.

use super::dom::{check_alone, plot, text, texts};
use super::fixtures::{keep, page};
use super::run_page::check_figures;
use crate::common::evaluated;
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, START, Shape};
use protocol::index::StrategyIndex;
use protocol::stamps::Point;
use protocol::supervision::ProtocolViolation;
use verdict::report::units::duration_or_dash;
use verdict::summary::{IncidentSummary, Summary, worst};

fn name(incident: &IncidentSummary) -> String {
    match incident.epoch {
        0 => incident.strategy.to_string(),
        epoch => format!("{}.{epoch}", incident.strategy),
    }
}

/// Checks that table and marks show the incidents with the greatest effect on survivors.
fn check_incidents(html: &str, summary: &Summary) {
    let (shown, drawn, text) = (worst(&summary.incidents, 50), plot(html, "deaths"), text(html));
    let marks = drawn["spans"].as_array().unwrap();
    assert_eq!(marks.len(), shown.len());
    for (mark, incident) in marks.iter().zip(&shown) {
        let label = mark["label"].as_str().unwrap();
        assert!(label.starts_with(&format!("strategy {}: ", name(incident))), "{label}");
        assert_eq!(mark["from"].as_u64(), incident.fault_ns);
        let at = format!("{:.3}", incident.detected_ns as f64 / 1e9);
        assert!(text.contains(&at) && text.contains(&duration_or_dash(incident.survivors.max_ns)), "{at}");
    }
    for (name, figures) in summary.containment.as_ref().unwrap().distributions() {
        assert!(text.contains(name) && text.contains(&duration_or_dash(figures.max_ns)), "{name}");
    }
}

#[test]
fn worst_of_many_incidents_are_in_table_and_timeline() {
    let mut fixture = Fixture::new(Shape { orders: 2_000, strategies: 3, ..Shape::PLAIN });
    for number in 0..70 {
        let death = StrategyDeath::new((number % 3) as u16, 4_000_000 + number * 600_000);
        fixture.kill(StrategyDeath { restart: Some(100_000), ..death });
    }
    let (folder, summary) = evaluated(&fixture);
    let html = page(&folder);
    keep("deaths.html", &html);
    check_alone(&html);
    check_figures(&html, &summary);
    check_incidents(&html, &summary);
    // A lane for each strategy that died, on the same time axis as the latencies; each band ends
    // where the strategy was restarted.
    let (deaths, timeline) = (plot(&html, "deaths"), plot(&html, "timeline"));
    assert_eq!(texts(&deaths["y"]["names"]), ["strategy 0", "strategy 1", "strategy 2"]);
    assert_eq!((&deaths["x"], &deaths["group"]), (&timeline["x"], &timeline["group"]));
    let bands = deaths["spans"].as_array().unwrap();
    assert_eq!(bands.len(), 50);
    let lanes: std::collections::BTreeSet<u64> =
        bands.iter().map(|band| band["lane"].as_u64().unwrap()).collect();
    assert_eq!(lanes.len(), 3);
    assert!(bands.iter().all(|band| band["to"].as_u64() > band["from"].as_u64() && band["tone"] == "stall"));
    let text = text(&html);
    for words in
        ["Strategies that died", "70 deaths of 3 strategies", "… and 20 more, felt less: see summary.json"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
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
    (unknown.strategy, unknown.epoch, unknown.repaired_ns) = (StrategyIndex(999), 65_535, None);
    fixture.record.incidents.push(unknown);
    let (folder, summary) = evaluated(&fixture);
    let html = page(&folder);
    check_alone(&html);
    assert_eq!(summary.incidents.len(), 2);
    assert!(html.contains("&lt;script&gt;alert(1)") && !html.contains('\u{1b}'));
    assert!(text(&html).contains("No order came back."));
}
