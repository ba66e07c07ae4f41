//! The HTML page of a run.

use super::page::{page, section, table};
use super::{noise_plot, overview, stage_bars, tail_bars, timeline_plot};
use crate::chart::percentile_plot::{self, PercentileLine};
use crate::report;
use crate::summary::{Measure, Summary};
use hdrhistogram::Histogram;
use maud::{Markup, html};
use merge::tail::Tail;
use merge::timeline::Timeline;
use protocol::flow::Stage;
use record::numbers::counted;

const MAX_ROWS: usize = 50;

/// The saved results of a run that its HTML page shows.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// Content of `summary.json`.
    pub summary: Summary,
    /// Content of `histograms.hlog`, or the error of reading it.
    pub histograms: Result<Vec<(Measure, Histogram<u64>)>, String>,
    /// Content of `timeline.json`, or the error of reading it.
    pub timeline: Result<Timeline, String>,
    /// Content of `tail.json`, or the error of reading it: older versions have none.
    pub tail: Result<Tail, String>,
}

/// Returns the HTML page of a run.
pub fn run_page(run: &SavedRun) -> String {
    let summary = &run.summary;
    let content = html! {
        (overview::verdict(summary))
        (overview::headline(summary))
        (section("facts", "What was measured", &overview::facts(summary)))
        (section("latency", "Latency by percentile", &latency_section(run)))
        (section("stages-section", "Stages", &stage_bars::draw(summary)))
        (section("time", "Latency over time", &time_section(run)))
        @if let Some(tail) = run.tail.as_ref().ok().and_then(tail_bars::draw) {
            (section("tail", "Why the slowest orders were slow", &tail))
        }
        @if let Some(noise) = run.tail.as_ref().ok().and_then(|tail| noise_plot::draw(&tail.noise, tail.kernel.as_ref(), &tail.notes)) {
            (section("noise-section", "The machine's noise", &noise))
        }
        @for (heading, grids) in report::sections(summary, MAX_ROWS) {
            @let id = heading.to_lowercase().replace(' ', "-");
            (section(&id, heading, &html! { @for grid in &grids { (table(grid)) } }))
        }
    };
    let title = format!("Run {}", summary.run);
    let dim = format!("started {}, bulkhead {}", summary.started, summary.version);
    page(&title, &overview::subject(summary), &dim, &content)
}

fn latency_section(run: &SavedRun) -> Markup {
    html! {
        @match &run.histograms {
            Ok(histograms) => (percentiles(&run.summary, histograms)),
            Err(error) => p class="none" { "No curves: histograms.hlog: " (error) },
        }
        (table(&report::tables::measures(&run.summary, true)))
    }
}

/// The measures in the percentile plot, with their classes: sums thick, hand-offs thin.
const DRAWN: [(Measure, &str); 6] = [
    (Measure::RtVenueFromDue, "c2 strong dash"),
    (Measure::RtVenue, "c1 strong"),
    (Measure::Stage(Stage::Submit), "c3"),
    (Measure::Stage(Stage::Dispatch), "c4 dash"),
    (Measure::Stage(Stage::Completion), "c5 dots"),
    (Measure::Stage(Stage::Return), "c6 dashdot"),
];

fn percentiles(summary: &Summary, histograms: &[(Measure, Histogram<u64>)]) -> Markup {
    let curve = |(measure, class): &(Measure, &'static str)| {
        let (_, histogram) = histograms.iter().find(|(other, _)| other == measure)?;
        Some((*measure, *class, percentile_plot::curve(histogram)))
    };
    let curves: Vec<_> = DRAWN.iter().filter_map(curve).collect();
    let mut lines = Vec::new();
    for (measure, class, points) in &curves {
        let figures = summary.distribution(*measure);
        lines.push(PercentileLine { name: measure.name(), class, points, figures });
    }
    let none = || html! { p class="none" { "Too few orders came back for a percentile." } };
    percentile_plot::draw("percentiles", &lines).unwrap_or_else(none)
}

fn time_section(run: &SavedRun) -> Markup {
    match &run.timeline {
        Ok(timeline) => html! {
            (timeline_plot::draw(timeline, &run.summary))
            p class="note" {
                "An order stands at the time at which its slowest hand-off began, so that one pause is one peak. A p99 needs "
                "1,000 orders: it covers " (counted(timeline.p99_every as u64, "bucket")) " of "
                (crate::report::units::duration(timeline.bucket_ns)) " at a time."
            }
        },
        Err(error) => html! { p class="none" { "No times: timeline.json: " (error) } },
    }
}
