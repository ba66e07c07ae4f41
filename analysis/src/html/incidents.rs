//! The lanes of strategy deaths below the timeline of a run's page.

use super::scale::Scale;
use super::svg::{Frame, coordinate, line, text};
use crate::report::incidents::{cause, name};
use crate::report::units::duration;
use crate::summary::{IncidentSummary, worst};
use maud::{Markup, html};

/// The maximum number of incidents that are marked: the worst for the survivors.
const MAX_INCIDENTS: usize = 50;
/// More strategies than this have no lane of their own.
const LANES: usize = 12;
/// Height of a lane, and of the space above all lanes.
const LANE: f64 = 18.0;
const HEAD: f64 = 18.0;
/// A band is drawn at least this wide, or it could not be seen.
const MIN_WIDTH: f64 = 2.0;

/// The lanes that show incidents: one for each strategy that died, the last for all others.
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
