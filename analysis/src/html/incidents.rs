//! The section of a run's page on strategy deaths: a table of incidents, their effect on other
//! strategies, and their lanes below the timeline.

use super::scale::Scale;
use super::svg::{Frame, coordinate, line, text};
use crate::report::incidents::{cause, name};
use crate::report::units::{count, duration, duration_or_dash};
use crate::summary::{Containment, IncidentSummary, Summary, worst};
use maud::{Markup, html};

/// The maximum number of incidents that are listed and marked: the worst for the survivors.
const MAX_INCIDENTS: usize = 50;
/// More strategies than this have no lane of their own.
const LANES: usize = 12;
/// Height of a lane, and of the space above all lanes.
const LANE: f64 = 18.0;
const HEAD: f64 = 18.0;
/// A band is drawn at least this wide, or it could not be seen.
const MIN_WIDTH: f64 = 2.0;

/// Draws the section of a run's page on strategy deaths; `None` for a run without any.
pub fn draw(summary: &Summary) -> Option<Markup> {
    let containment = summary.containment.as_ref()?;
    let shown = worst(&summary.incidents, MAX_INCIDENTS);
    let hidden = summary.incidents.len() - shown.len();
    Some(html! {
        (totals(containment))
        (distributions(containment))
        (table(&shown))
        @if hidden > 0 {
            p class="note" { (count(hidden as u64)) " incidents that the survivors felt less are in summary.json." }
        }
        p class="note" {
            "An order is touched by an incident if it was on its way through the engine, out or home, between the fault \
             (or the detection) and 10 ms after the repair. Before: the orders that had come back when the first incident began."
        }
    })
}

fn totals(containment: &Containment) -> Markup {
    let many = |number: u64, one: &str, more: &str| {
        format!("{} {}", count(number), if number == 1 { one } else { more })
    };
    let orders = &containment.orders;
    html! {
        p data-incidents=(containment.incidents) data-lost-of-survivors=(containment.lost_of_survivors) {
            (many(containment.incidents, "death", "deaths")) " of "
            (many(containment.strategies, "strategy", "strategies")) ", "
            (count(containment.quarantined)) " after a quarantine, " (count(containment.restarted)) " followed by a restart. "
            "Orders of the dead: " (count(orders.cancelled)) " cancelled, " (count(orders.orphaned)) " orphaned, "
            (count(orders.lost)) " lost. Orders lost by survivors: " (count(containment.lost_of_survivors)) "."
        }
    }
}

fn distributions(containment: &Containment) -> Markup {
    let meanings = [
        "from detection to repair",
        "rt_venue of orders before the first incident",
        "rt_venue of survivors' orders that an incident touched",
    ];
    html! {
        table {
            thead { tr {
                th { "measure" } th class="wordy" { "what it is" } th class="n" { "samples" } th class="n" { "least" } th class="n" { "p50" }
                th class="n" { "p99" } th class="n" { "p99.9" } th class="n" { "greatest" }
            } }
            tbody { @for ((name, f), meaning) in containment.distributions().into_iter().zip(meanings) {
                tr data-containment=(name) data-samples=(f.count) data-greatest-ns=[f.max_ns] {
                    th scope="row" { (name) }
                    td class="wordy" { (meaning) }
                    td class="n" { (count(f.count)) }
                    @for value in [f.min_ns, f.p50_ns, f.p99_ns, f.p999_ns, f.max_ns] {
                        td class="n" { (duration_or_dash(value)) }
                    }
                }
            } }
        }
    }
}

fn table(incidents: &[&IncidentSummary]) -> Markup {
    html! {
        table {
            thead { tr {
                th { "died" } th class="n" { "at" } th { "cause" } th class="n" { "repaired after" } th class="n" { "restarted after" }
                th class="n" { "cancelled" } th class="n" { "orphaned" } th class="n" { "lost" } th class="n" { "touched" }
                th class="n" { "p50" } th class="n" { "p99.9" } th class="n" { "greatest" }
            } }
            tbody { @for incident in incidents {
                @let IncidentSummary { orders, survivors, .. } = incident;
                tr data-died=(name(incident)) data-detected-ns=(incident.detected_ns)
                    data-touched=(survivors.orders) data-greatest-ns=[survivors.max_ns] {
                    th scope="row" { "strategy " (name(incident)) }
                    td class="n" { (format!("{:.4} s", incident.detected_ns as f64 / 1e9)) }
                    td { (cause(incident)) }
                    td class="n" { (duration_or_dash(incident.detect_to_repair_ns)) }
                    td class="n" { (duration_or_dash(incident.repair_to_restart_ns)) }
                    @for number in [orders.cancelled, orders.orphaned, orders.lost, survivors.orders] {
                        td class="n" { (count(number)) }
                    }
                    @for value in [survivors.p50_ns, survivors.p999_ns, survivors.max_ns] {
                        td class="n" { (duration_or_dash(value)) }
                    }
                }
            } }
        }
    }
}

/// Lanes below a chart's time axis that show incidents. One for each strategy that died, the last
/// one for all others.
pub struct Lanes<'a> {
    incidents: Vec<&'a IncidentSummary>,
    strategies: Vec<u16>,
    others: bool,
}

impl<'a> Lanes<'a> {
    /// Creates lanes for the incidents with the greatest effect on the surviving strategies.
    pub fn from_incidents(incidents: &'a [IncidentSummary]) -> Self {
        let incidents = worst(incidents, MAX_INCIDENTS);
        let mut strategies: Vec<u16> = incidents.iter().map(|incident| incident.strategy).collect();
        strategies.sort_unstable();
        strategies.dedup();
        let others = strategies.len() > LANES;
        strategies.truncate(LANES - usize::from(others));
        Self { incidents, strategies, others }
    }

    fn count(&self) -> usize {
        self.strategies.len() + usize::from(self.others)
    }

    /// Returns the height that the lanes add to the chart.
    pub fn height(&self) -> f64 {
        if self.incidents.is_empty() { 0.0 } else { HEAD + self.count() as f64 * LANE + 8.0 }
    }

    /// Draws each incident from the strategy's death to its return, or to the end of the chart.
    /// `size` is the number of nanoseconds in the scale's unit; `top` is where the room for the
    /// lanes begins.
    pub fn draw(&self, top: f64, frame: &Frame, x: &Scale, size: f64) -> Markup {
        let began =
            |incident: &IncidentSummary| incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns);
        let back = |incident: &IncidentSummary| {
            let repaired = incident.detected_ns.saturating_add(incident.detect_to_repair_ns?);
            Some(repaired.saturating_add(incident.repair_to_restart_ns?))
        };
        let at = |ns: u64| x.at(ns as f64 / size).clamp(frame.left, frame.right);
        let lane = |incident: &IncidentSummary| {
            let own = self.strategies.iter().position(|strategy| *strategy == incident.strategy);
            own.unwrap_or(self.strategies.len())
        };
        let y = |number: usize| top + HEAD + number as f64 * LANE;
        let named = |number: usize| {
            self.strategies
                .get(number)
                .map_or_else(|| "others".into(), |strategy| format!("strategy {strategy}"))
        };
        html! {
            g class="incidents" {
                (text(frame.left, top + 12.0, "start", "title", "strategies that died: away from death to return, or to the end"))
                @for number in 0..self.count() {
                    (line((frame.left, y(number) + LANE / 2.0), (frame.right, y(number) + LANE / 2.0), "lane"))
                    (text(frame.right + 22.0, y(number) + LANE / 2.0 + 4.0, "start", "tick", &named(number)))
                }
                @for incident in &self.incidents {
                    @let (from, to) = (at(began(incident)), back(incident).map_or(frame.right, at));
                    rect x=(coordinate(from)) y=(coordinate(y(lane(incident)) + 3.0)) width=(coordinate((to - from).max(MIN_WIDTH)))
                        height=(coordinate(LANE - 6.0)) class=(if back(incident).is_some() { "incident back" } else { "incident" })
                        data-incident=(name(incident)) data-at-ns=(began(incident)) data-back-ns=[back(incident)] {
                        title {
                            "strategy " (name(incident)) ": " (cause(incident)) ", at " (format!("{:.4} s", began(incident) as f64 / 1e9))
                            @match back(incident) {
                                Some(back) => { ", back after " (duration(back.saturating_sub(began(incident)))) },
                                None => ", did not come back",
                            }
                        }
                    }
                }
            }
        }
    }
}
