//! The plot of strategy deaths below the timeline of a run's page, a lane for each strategy.

use crate::chart::plot::{MarkedSpan, Plot, PlotAxis, SpanTone};
use crate::report::incidents::{cause, name};
use crate::report::units::{counted, duration};
use crate::summary::{IncidentSummary, worst};
use protocol::index::StrategyIndex;

/// The maximum number of incidents that are marked: the worst for the survivors.
const MAX_INCIDENTS: usize = 50;
/// More strategies than this have no lane of their own.
const LANES: usize = 12;
/// Height of a lane, and of the axis below all lanes, in CSS pixels.
const LANE: u32 = 20;
const AXIS: u32 = 60;

/// Returns the plot of up to 50 strategy deaths, those with the slowest order of a surviving
/// strategy, each as a span of time. A span goes from the strategy's death to its return, or to the
/// end of the timeline.
pub fn plot(incidents: &[IncidentSummary], timeline: &Plot) -> Plot {
    let incidents = worst(incidents, MAX_INCIDENTS);
    let mut strategies: Vec<StrategyIndex> = incidents.iter().map(|incident| incident.strategy).collect();
    strategies.sort_unstable();
    strategies.dedup();
    let has_others = strategies.len() > LANES;
    strategies.truncate(LANES - usize::from(has_others));
    let lane = |strategy| strategies.iter().position(|own| *own == strategy).unwrap_or(strategies.len());
    let end = timeline.x.range.map_or(0.0, |range| range[1]);
    let span = |incident: &&IncidentSummary| {
        let (began, back) = (began(incident), returned(incident));
        let at = format!("{:.4} s", began as f64 / 1e9);
        let fate = match back {
            Some(back) => format!("back after {}", duration(back.saturating_sub(began))),
            None => "did not return".into(),
        };
        MarkedSpan {
            from: began as f64,
            to: back.map_or(end, |back| back as f64),
            tone: if back.is_some() { SpanTone::Stall } else { SpanTone::Lost },
            lane: Some(lane(incident.strategy)),
            mark: String::new(),
            label: format!("strategy {}: {}, at {at}, {fate}", name(incident), cause(incident)),
        }
    };
    let names = strategies.iter().map(|strategy| format!("strategy {strategy}"));
    let names: Vec<String> = names.chain(has_others.then(|| "others".into())).collect();
    Plot {
        id: "deaths".into(),
        title: "Strategies that died: away from death to return, or to the end".into(),
        description: format!("{} of {}.", counted(incidents.len() as u64, "death"), names.join(", ")),
        height: names.len() as u32 * LANE + AXIS,
        x: timeline.x.clone(),
        y: PlotAxis::with_names(names),
        group: timeline.group,
        spans: incidents.iter().map(span).collect(),
        ..Plot::default()
    }
}

/// Returns the time of the fault, or of its detection if the fault's time is not known or is later.
/// In nanoseconds from the start of the schedule.
fn began(incident: &IncidentSummary) -> u64 {
    incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns)
}

fn returned(incident: &IncidentSummary) -> Option<u64> {
    let repaired = incident.detected_ns.saturating_add(incident.detect_to_repair_ns?);
    Some(repaired.saturating_add(incident.repair_to_restart_ns?))
}
