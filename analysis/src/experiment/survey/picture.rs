//! Small pictures of a survey's answers.
//!
//! They have the same axes for every machine.

use super::{Survey, SurveyPart};
use crate::experiment::{Comparison, Disturbances, LevelCost, isolation_cost, ratio};
use crate::stats::{ComparisonLine, Percentile, Verdict};
use maud::{Markup, html};
use verdict::chart::scale::Scale;
use verdict::chart::svg::{coordinate, line, text};

/// Width and height of a survey's small pictures, in SVG units.
pub const SIZE: (f64, f64) = (232.0, 62.0);
/// The style sheet of a survey's card and index page.
pub const STYLE: &str = include_str!("survey.css");
/// The ends of the axes of ratios and of round trips in nanoseconds; beyond: at the edge.
const RATIOS: (f64, f64) = (0.5, 2.0);
const ROUND_TRIPS: (f64, f64) = (20.0, 2_000.0);
/// Left edge of the axes: names are left of it.
const LEFT: f64 = 66.0;
const AXIS: f64 = 48.0;
const FAULT: f64 = 10.0;

/// Draws the answer of one of the survey's experiments as a picture of [`SIZE`]; empty without an
/// answer.
pub fn draw(survey: &Survey, part: SurveyPart) -> Markup {
    match part {
        SurveyPart::Cores => cores(survey),
        SurveyPart::Recovery => recovery(survey),
        SurveyPart::Containment => containment(survey),
        SurveyPart::Disturbance => {
            let found = survey.disturbance.iter().flat_map(Disturbances::real);
            ratios(&found.map(|(row, line)| (row.isolation.to_string(), line.cloned())).collect::<Vec<_>>())
        }
        SurveyPart::Journal => {
            let found = survey.journal.iter().flat_map(|found| &found.comparisons);
            ratios(&found.map(|one| ("journal".into(), median(one))).collect::<Vec<_>>())
        }
        SurveyPart::Bill => {
            let rows = survey.isolation_costs.iter().flat_map(|isolation_costs| &isolation_costs.rows);
            let technique = survey.isolation_costs.as_ref().and_then(isolation_cost::headline_technique);
            let rows = rows.filter(|row| Some(row.technique) == technique && !row.adds.is_empty());
            let cost = |adds: &[LevelCost]| Some(adds.first()?.line.clone());
            let rows = rows.map(|row| (row.level(), cost(&row.adds)));
            ratios(&rows.collect::<Vec<_>>())
        }
        SurveyPart::Queue => {
            let found = survey.queue.iter().flat_map(|found| &found.comparisons);
            ratios(&found.map(|one| (format!("{}/s", rate_of(one)), median(one))).collect::<Vec<_>>())
        }
    }
}

fn median(one: &Comparison) -> Option<ComparisonLine> {
    ratio::line_of(&one.lines, one.endpoint.measure(), Percentile::P50).cloned()
}

/// Draws ratios with their intervals on one logarithmic axis, with a line at 1. One that is not
/// known has the words of the card instead of a dot.
fn ratios(rows: &[(String, Option<ComparisonLine>)]) -> Markup {
    let x = Scale::log_exact(RATIOS.0, RATIOS.1, (LEFT, SIZE.0 - 8.0));
    let at = |ratio: f64| x.at(ratio.clamp(RATIOS.0, RATIOS.1));
    let step = (AXIS - 4.0) / rows.len().max(1) as f64;
    html! {
        @if !rows.is_empty() {
            (axis(&x, &[(0.5, "× 0.5"), (1.0, "1"), (2.0, "2")]))
            (line((at(1.0), 0.0), (at(1.0), AXIS), "one"))
        }
        @for (number, (name, line_of_row)) in rows.iter().enumerate() {
            @let y = (number as f64 + 0.5) * step;
            @let spread = line_of_row.as_ref().and_then(ratio::interval);
            (text(LEFT - 6.0, y + 4.0, "end", "small", name))
            @if let Some(spread) = spread {
                (line((at(spread.low), y), (at(spread.high), y), "bar"))
                circle class="dot" cx=(coordinate(at(spread.median))) cy=(coordinate(y)) r="2.5" {}
            } @else {
                (text(at(1.0) + 8.0, y + 4.0, "start", "small", Verdict::CannotTell.name()))
            }
        }
    }
}

/// Draws the round trip of every pair of cores, synchronized above and unsynchronized below.
fn cores(survey: &Survey) -> Markup {
    let Some(matrix) = &survey.cores else { return html! {} };
    let x = Scale::log_exact(ROUND_TRIPS.0, ROUND_TRIPS.1, (LEFT, SIZE.0 - 8.0));
    let at = |ns: f64| x.at(ns.clamp(ROUND_TRIPS.0, ROUND_TRIPS.1));
    html! {
        (axis(&x, &[(20.0, "20 ns"), (200.0, "200 ns"), (2_000.0, "2 µs")]))
        (text(LEFT - 6.0, 15.0, "end", "small", "lockstep"))
        (text(LEFT - 6.0, 37.0, "end", "small", "random"))
        @for pair in &matrix.pairs {
            circle class="pair" cx=(coordinate(at(pair.synchronized_ns))) cy="11" r="3.5" {}
            @if pair.unsynchronized_ns > 0.0 {
                circle class="pair" cx=(coordinate(at(pair.unsynchronized_ns))) cy="33" r="3.5" {}
            }
        }
    }
}

fn recovery(survey: &Survey) -> Markup {
    let step = (AXIS - 4.0) / survey.recovery.len().max(1) as f64;
    let width = SIZE.0 - 8.0 - LEFT;
    html! {
        @for (number, run) in survey.recovery.iter().enumerate() {
            @let y = (number as f64 + 0.5) * step;
            @let share = if run.sent == 0 { 0.0 } else { run.returned as f64 / run.sent as f64 };
            (text(LEFT - 6.0, y + 4.0, "end", "small", run.role.trim_end_matches("-0")))
            rect class="no" x=(coordinate(LEFT)) y=(coordinate(y - 5.0)) width=(coordinate(width)) height="10" {}
            rect class="yes" x=(coordinate(LEFT)) y=(coordinate(y - 5.0)) width=(coordinate(width * share)) height="10" {}
        }
    }
}

/// Draws a square for each fault: stayed, others waited, spread, or never came.
fn containment(survey: &Survey) -> Markup {
    let rows = survey.containment.iter().flat_map(|found| &found.rows);
    let columns = (SIZE.0 / (FAULT + 2.0)) as usize;
    html! {
        @for (number, row) in rows.enumerate() {
            @let (x, y) = ((number % columns) as f64 * (FAULT + 2.0), (number / columns) as f64 * (FAULT + 2.0));
            rect class=(row.contained.name().to_lowercase()) x=(coordinate(x)) y=(coordinate(y)) width=(FAULT) height=(FAULT) {
                title { (row.fault) ", " (row.levels()) ": " (row.contained.name()) }
            }
        }
    }
}

fn axis(x: &Scale, labels: &[(f64, &str)]) -> Markup {
    html! {
        (line((x.at(labels[0].0), AXIS), (x.at(labels[labels.len() - 1].0), AXIS), "axis"))
        @for (number, (value, label)) in labels.iter().enumerate() {
            @let anchor = if number + 1 == labels.len() { "end" } else { "middle" };
            (line((x.at(*value), AXIS), (x.at(*value), AXIS + 3.0), "axis"))
            (text(x.at(*value), AXIS + 14.0, anchor, "tick", label))
        }
    }
}

/// Returns the order rate in a comparison's name, such as `400k`; empty if there is none.
pub(super) fn rate_of(comparison: &Comparison) -> &str {
    comparison.b.split_whitespace().find_map(|word| word.strip_prefix("rate=")).unwrap_or_default()
}

/// Draws the median cache-line round trips between all cores as a matrix, at most `width` SVG units
/// wide. Returns its height and the drawing; `None` for fewer than three cores.
pub fn matrix(survey: &Survey, width: f64) -> Option<(f64, Markup)> {
    let matrix = survey.cores.as_ref().filter(|matrix| matrix.cores.len() > 2)?;
    let spread = matrix.spread(|pair| pair.synchronized_ns)?;
    let cell = ((width - LEFT) / matrix.cores.len() as f64).min(22.0);
    let shade = Scale::log_exact(spread.low, spread.high.max(spread.low * 1.01), (0.12, 1.0));
    let at = |index: usize| LEFT + index as f64 * cell;
    let top = 24.0;
    let has_names = cell >= 16.0;
    let title = format!(
        "round trip between each two CPUs, synchronized: {:.0} ns light, {:.0} ns dark",
        spread.low, spread.high
    );
    let drawing = html! {
        (text(0.0, 10.0, "start", "small", &title))
        @for (row, a) in matrix.cores.iter().enumerate() {
            @let y = top + row as f64 * cell;
            @if has_names { (text(LEFT - 6.0, y + cell * 0.7, "end", "small", &a.to_string())) }
            @for (column, b) in matrix.cores.iter().enumerate() {
                @if let Some(pair) = matrix.pair(*a, *b) {
                    rect class="pair" x=(coordinate(at(column))) y=(coordinate(y)) width=(coordinate(cell - 1.0))
                        height=(coordinate(cell - 1.0)) style={ "fill-opacity:" (format!("{:.2}", shade.at(pair.synchronized_ns))) } {
                        title { (a) " and " (b) ": " (format!("{:.0}", pair.synchronized_ns)) " ns" }
                    }
                }
            }
        }
    };
    Some((top + matrix.cores.len() as f64 * cell, drawing))
}
