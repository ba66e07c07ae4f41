//! The HTML page of a run.

use super::curve::Curve;
use super::page::{page, section};
use super::{
    incidents, noise_plot, overview, percentile_plot, stage_bars, table, tail_bars, timeline_plot, trading,
};
use crate::report;
use crate::report::units::{count, duration_or_dash};
use crate::summary::{Measure, Summary};
use crate::tail::Tail;
use crate::timeline::Timeline;
use maud::{Markup, html};

/// The saved results of a run that its HTML page shows.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// `summary.json`.
    pub summary: Summary,
    /// `histograms.hlog`, or what is wrong with it.
    pub curves: Result<Vec<Curve>, String>,
    /// `timeline.json`, or what is wrong with it.
    pub timeline: Result<Timeline, String>,
    /// `tail.json`, or what is wrong with it: older versions have none.
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
        @if let Some(trading) = trading::draw(summary) {
            (section("trading", "Trading", &trading))
        }
        @if let Some(incidents) = incidents::draw(summary) {
            (section("incidents", "Strategies that died", &incidents))
        }
        @if let Some(comebacks) = report::role_restarts::grid(summary) {
            (section("comebacks", "Came back from their journals", &table::table(&comebacks)))
        }
        @let venues = report::venues::grids(summary);
        @if !venues.is_empty() {
            (section("venues", "Venues with faults", &html! { @for grid in &venues { (table::table(grid)) } }))
        }
        @let strategies = report::strategies::grids(summary);
        @if !strategies.is_empty() {
            (section("strategies", "By strategy", &html! { @for grid in &strategies { (table::table(grid)) } }))
        }
        (section("threads", "Threads", &overview::threads(summary)))
    };
    let title = format!("Run {}", summary.run);
    let dim = format!("started {}, bulkhead {}", summary.started, summary.version);
    page(&title, &overview::subject(summary), &dim, &content)
}

fn latency_section(run: &SavedRun) -> Markup {
    html! {
        figure {
            @match &run.curves {
                Ok(curves) => (percentile_plot::draw(&run.summary, curves)),
                Err(error) => p class="none" { "No curves: histograms.hlog: " (error) },
            }
        }
        (measures(&run.summary))
    }
}

fn time_section(run: &SavedRun) -> Markup {
    match &run.timeline {
        Ok(timeline) => html! {
            (timeline_plot::draw(timeline, &run.summary))
            p class="note" {
                "An order stands at the time at which its slowest hand-off began, so that one pause is one peak. A p99 needs "
                "1,000 orders: it covers " (timeline.p99_every)
                @if timeline.p99_every == 1 { " bucket" } @else { " buckets" } " of "
                (crate::report::units::duration(timeline.bucket_ns)) " at a time."
            }
        },
        Err(error) => html! { p class="none" { "No times: timeline.json: " (error) } },
    }
}

/// Every measure with every percentile.
fn measures(summary: &Summary) -> Markup {
    let strong = [Measure::RtVenue, Measure::RtVenueFromDue];
    html! {
        table {
            thead { tr {
                th { "measure" } th class="wordy" { "what it is" } th class="n" { "orders" } th class="n" { "least" } th class="n" { "p50" }
                th class="n" { "p90" } th class="n" { "p99" } th class="n" { "p99.9" } th class="n" { "p99.99" }
                th class="n" { "greatest" }
            } }
            tbody { @for measure in summary.measures() {
                @let f = summary.distribution(measure);
                tr class=[strong.contains(&measure).then_some("strong")] {
                    th scope="row" { @if matches!(measure, Measure::Exchange(_) | Measure::StallFree) { "· " } (measure.name()) }
                    td class="wordy" { (stage_bars::meaning(measure)) }
                    td class="n" { (count(f.count)) }
                    @for value in [f.min_ns, f.p50_ns, f.p90_ns, f.p99_ns, f.p999_ns, f.p9999_ns, f.max_ns] {
                        td class="n" { (duration_or_dash(value)) }
                    }
                }
            } }
        }
    }
}
