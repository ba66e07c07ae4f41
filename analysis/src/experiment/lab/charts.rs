//! The charts of the queue benchmark `lab`: latency against CPU time, and the spread of run times.

use super::figures::{Measured, PAIRS};
use super::{Lab, LabCell, Speed, Wait};
use crate::chart::axis::{self, duration};
use crate::chart::labels::{self, LineLabel};
use crate::chart::scale::Scale;
use crate::chart::svg::{Frame, SvgPath, WIDTH, coordinate, legend, line, text, text_width};
use crate::grouping::grouped;
use crate::stats::Spread;
use maud::{Markup, html};

const fn class(wait: Wait) -> &'static str {
    match wait {
        Wait::Busy => "c2",
        Wait::Yield => "c1",
        Wait::Poll => "c4",
        Wait::Park => "c3",
    }
}

struct ParetoPoint<'a> {
    cell: &'a LabCell,
    cpu: f64,
    p50: f64,
    p99: f64,
}

/// The points that no other beats in both, by CPU.
fn pareto_front(points: &[ParetoPoint<'_>]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = points.iter().map(|point| (point.cpu, point.p50)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut front: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        if front.last().is_none_or(|last| point.1 < last.1) {
            front.push(point);
        }
    }
    front
}

/// Draws latency against CPU time per event, a chart for each pair of speeds.
pub fn pareto(measured: &[Measured<'_>]) -> Vec<Markup> {
    PAIRS.into_iter().filter_map(|pair| pareto_of(measured, pair)).collect()
}

fn pareto_of<'a>(measured: &[Measured<'a>], (producer, consumer): (Speed, Speed)) -> Option<Markup> {
    let cells = measured.iter().filter(|(cell, _)| (cell.producer, cell.consumer) == (producer, consumer));
    let point = |(cell, figures): &Measured<'a>| {
        let p50 = (figures.p50? as f64).max(1.0);
        let p99 = figures.p99.map_or(p50, |p99| p99 as f64);
        Some(ParetoPoint { cell, cpu: figures.cpu().max(1.0), p50, p99 })
    };
    let points: Vec<ParetoPoint<'_>> = cells.filter_map(point).collect();
    // High enough for a name next to each dot.
    let frame = Frame::new(330.0f64.max(points.len() as f64 * LABEL_HEIGHT + 70.0));
    let x = Spread::from_values(points.iter().map(|point| point.cpu))?;
    let y = Spread::from_values(points.iter().flat_map(|point| [point.p50, point.p99]))?;
    let (x, y) = (Scale::log(x.low, x.high, frame.x_range()), Scale::log(y.low, y.high, frame.y_range()));
    let mut best = SvgPath::default();
    for (cpu, p50) in pareto_front(&points) {
        if let Some((_, height)) = best.pen() {
            best.line_to(x.at(cpu), height);
        }
        best.line_to(x.at(cpu), y.at(p50));
    }
    let label = |point: &ParetoPoint<'_>| LineLabel {
        x: x.at(point.cpu),
        y: y.at(point.p50),
        text: format!("{} {}", point.cell.carrier(), point.cell.wait),
        class: class(point.cell.wait).into(),
    };
    let names: Vec<LineLabel> = points.iter().map(label).collect();
    let content = html! {
        (axis::left(&frame, &y, "latency (logarithmic)", &duration))
        (axis::bottom(&frame, &x, "CPU time for each event (logarithmic)", &duration))
        path d=(best.data()) class="line thin whole" {}
        @for point in &points {
            @let (across, height) = (x.at(point.cpu), y.at(point.p50));
            g data-cell=(point.cell.name()) data-cpu=(point.cpu as u64) data-p50=(point.p50) data-p99=(point.p99) {
                (line((across, height), (across, y.at(point.p99)), &format!("bar {}", class(point.cell.wait))))
                circle cx=(coordinate(across)) cy=(coordinate(height)) r="5" class={ "dot " (class(point.cell.wait)) } {}
                title { (point.cell.name()) ": p50 " (duration(point.p50)) ", p99 " (duration(point.p99)) ", CPU " (duration(point.cpu)) }
            }
        }
        (labels::draw(frame.right + 22.0, frame.top + 6.0, frame.bottom, &names))
    };
    let description = "The median latency of an event against the CPU time of both sides for an event, both logarithmic: a dot for each \
                       queue and way of waiting, a line up to its p99. The table has the figures.";
    let title = format!("{producer} producer → {consumer} consumer");
    let id = format!("lab-pareto-{producer}-{consumer}");
    let waits = Wait::ALL.iter().filter(|wait| points.iter().any(|point| point.cell.wait == **wait));
    let legend = legend(waits.map(|wait| (class(*wait), wait.to_string())));
    Some(
        html! { figure { figcaption { (title) } (frame.drawing(&id, &title, description, &content)) } (legend) },
    )
}

fn short_duration(ns: f64) -> String {
    let digits = 10f64.powf(ns.max(1.0).log10().floor() - 2.0);
    duration((ns / digits).round() * digits)
}

/// The height of a line of labels, with the gap below it.
const LABEL_HEIGHT: f64 = 15.0;
/// The number of bars of a distribution.
const BIN_COUNT: usize = 28;

/// Draws the spread of run times: a panel for each queue and speeds, a strip for each wait.
pub fn distributions(lab: &Lab) -> Option<Markup> {
    const STRIP: f64 = 30.0;
    let cells = lab.cells.iter().filter(|cell| cell.sound().next().is_some());
    let panels = grouped(cells.map(|cell| (format!("{}, {}", cell.carrier(), cell.speeds()), cell)));
    let strips = panels.iter().map(|(_, cells)| cells.len()).max()?;
    let longest = panels.iter().map(|(title, _)| text_width(title)).fold(0.0, f64::max);
    let columns = ((WIDTH / (longest + 60.0)) as usize).clamp(1, 3);
    let tall = strips as f64 * STRIP + 54.0;
    let across = WIDTH / columns as f64;
    let height = panels.len().div_ceil(columns) as f64 * tall;
    let paper = Frame { height, left: 0.0, right: WIDTH, top: 0.0, bottom: height };
    let content = html! {
        @for (number, (title, cells)) in panels.iter().enumerate() {
            @let (x0, y0) = ((number % columns) as f64 * across, (number / columns) as f64 * tall);
            (run_time_panel(title, cells, (x0 + 46.0, x0 + across - 26.0), y0, STRIP))
        }
    };
    let description =
        "A panel for each queue and pair of speeds, in it a histogram of run times for each way of waiting.";
    Some(html! { figure { (paper.drawing("lab-runs", "Run times", description, &content)) } })
}

fn run_time_panel(title: &str, cells: &[&LabCell], (left, right): (f64, f64), y0: f64, strip: f64) -> Markup {
    let times = || cells.iter().flat_map(|cell| cell.sound().map(|run| run.run_ns as f64));
    let (min, max) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let most = max.max(min * 1.02).max(min + 1.0);
    let x = Scale::linear_exact(min, most, (left, right));
    let width = (right - left) / BIN_COUNT as f64;
    let bottom = y0 + 22.0 + cells.len() as f64 * strip;
    html! {
        (text(left, y0 + 14.0, "start", "strong", title))
        @for (place, cell) in cells.iter().enumerate() {
            @let base = y0 + 22.0 + (place + 1) as f64 * strip;
            @let bins = bins(cell, min, most);
            @let fullest = bins.iter().copied().max().unwrap_or(1).max(1);
            g class=(class(cell.wait)) data-cell=(cell.name()) data-runs=(cell.sound().count()) {
                title { (cell.name()) ": " (cell.sound().count()) " runs" }
                (text(left - 6.0, base - 6.0, "end", "tick", cell.wait.name()))
                @for (bin, runs) in bins.iter().enumerate().filter(|(_, runs)| **runs > 0) {
                    @let tall = *runs as f64 / fullest as f64 * (strip - 7.0);
                    rect x=(coordinate(left + bin as f64 * width)) y=(coordinate(base - tall)) width=(coordinate(width)) height=(coordinate(tall)) class="fill piece" {}
                }
            }
            (line((left, base), (right, base), "grid"))
        }
        (text(x.at(min), bottom + 15.0, "start", "tick", &short_duration(min)))
        (text(x.at(most), bottom + 15.0, "end", "tick", &short_duration(most)))
    }
}

fn bins(cell: &LabCell, min: f64, max: f64) -> [usize; BIN_COUNT] {
    let mut bins = [0; BIN_COUNT];
    for run in cell.sound() {
        let share = (run.run_ns as f64 - min) / (max - min);
        bins[((share * BIN_COUNT as f64) as usize).min(BIN_COUNT - 1)] += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_at_an_axis_have_three_digits() {
        assert_eq!(
            [5.4, 1_234.0, 98_765.0, 1.5e6].map(short_duration),
            ["5.4 ns", "1.23 µs", "98.8 µs", "1.5 ms"]
        );
    }
}
