//! The drawings of a lab: latency against CPU, CPU of both sides, and how the run times are spread.

use super::axis::duration;
use super::scale::Scale;
use super::svg::{Frame, Path, WIDTH, line, num, text, text_width};
use crate::experiment::{Lab, LabCell, Wait};
use crate::report::lab::{CellFigures, PAIRS};
use maud::{Markup, html};

/// The colour of a way of waiting.
const fn class(wait: Wait) -> &'static str {
    match wait {
        Wait::Busy => "c2",
        Wait::Yield => "c1",
        Wait::Poll => "c4",
        Wait::Park => "c3",
    }
}

/// The letter of a carrier.
fn letter(index: usize) -> String {
    char::from(b'A' + (index % 26) as u8).to_string()
}

/// What colours and letters stand for, over a chart.
fn legend(lab: &Lab, letters: bool) -> Markup {
    let waits = Wait::ALL.iter().filter(|wait| lab.cells.iter().any(|cell| cell.wait == **wait));
    html! {
        p class="legend" {
            @for wait in waits { span class=(class(*wait)) { span class="swatch" {} (wait) " \u{2003}" } }
            @if letters { @for (index, carrier) in lab.carriers().iter().enumerate() {
                b { (letter(index)) } " " (carrier) " \u{2003}"
            } }
        }
    }
}

/// A place for one of several drawings on one paper.
struct Panel {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Panel {
    /// Axes with their ticks, and the panel's title.
    fn axes(&self, title: &str, x: &Scale, y: &Scale) -> Markup {
        html! {
            (text(self.left, self.top - 8.0, "start", "strong", title))
            @for tick in y.ticks().into_iter().filter(|tick| tick.labelled) {
                @let place = y.at(tick.value);
                (line((self.left, place), (self.right, place), "grid"))
                (text(self.left - 6.0, place + 4.0, "end", "tick", &duration(tick.value)))
            }
            @for tick in x.ticks().into_iter().filter(|tick| tick.labelled) {
                @let place = x.at(tick.value);
                (line((place, self.top), (place, self.bottom), "grid"))
                (text(place, self.bottom + 16.0, "middle", "tick", &duration(tick.value)))
            }
            (line((self.left, self.bottom), (self.right, self.bottom), "base"))
        }
    }
}

/// A cell on the chart of latency against CPU.
struct Point<'a> {
    cell: &'a LabCell,
    letter: String,
    cpu: f64,
    p50: f64,
    p99: f64,
}

/// Those that no other beats in both, by CPU.
fn front(points: &[Point<'_>]) -> Vec<(f64, f64)> {
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

/// Latency against CPU time for each event: a panel for each pair of speeds.
pub fn pareto(lab: &Lab) -> Option<Markup> {
    let carriers = lab.carriers();
    let of = |cell: &'_ LabCell| -> Option<(f64, f64, f64)> {
        let figures = CellFigures::of(cell, lab.events)?;
        let p50 = figures.p50? as f64;
        Some((figures.cpu().max(1.0), p50.max(1.0), figures.p99.map_or(p50, |p99| p99 as f64).max(1.0)))
    };
    let panels: Vec<(String, Vec<Point<'_>>)> = PAIRS
        .iter()
        .map(|(producer, consumer)| {
            let cells =
                lab.cells.iter().filter(|cell| (cell.producer, cell.consumer) == (*producer, *consumer));
            let points = cells.filter_map(|cell| {
                let (cpu, p50, p99) = of(cell)?;
                let index = carriers.iter().position(|carrier| *carrier == cell.carrier()).unwrap_or(0);
                Some(Point { cell, letter: letter(index), cpu, p50, p99 })
            });
            (format!("{producer} producer → {consumer} consumer"), points.collect())
        })
        .filter(|(_, points): &(String, Vec<Point<'_>>)| !points.is_empty())
        .collect();
    if panels.is_empty() {
        return None;
    }
    let (across, tall) = (WIDTH / 2.0, 330.0);
    let height = panels.len().div_ceil(2) as f64 * tall + 8.0;
    let paper = Frame { height, left: 0.0, right: WIDTH, top: 0.0, bottom: height };
    let content = html! {
        @for (number, (title, points)) in panels.iter().enumerate() {
            (panel(title, points, (number % 2) as f64 * across, (number / 2) as f64 * tall, across, tall))
        }
    };
    let description = "A panel for each pair of speeds: the median latency of an event against the CPU time of both sides for an \
                       event, both logarithmic, a letter for each queue and a colour for each way of waiting. The table has the figures.";
    Some(
        html! { (legend(lab, true)) figure { (paper.drawing("lab-pareto", "Latency against CPU", description, &content)) } },
    )
}

fn panel(title: &str, points: &[Point<'_>], x0: f64, y0: f64, across: f64, tall: f64) -> Markup {
    let place =
        Panel { left: x0 + 66.0, right: x0 + across - 26.0, top: y0 + 26.0, bottom: y0 + tall - 50.0 };
    let range = |values: &dyn Fn(&Point<'_>) -> [f64; 2]| {
        let all = || points.iter().flat_map(values);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        // A little air, and never a range of nothing.
        (low * 0.9, (high * 1.1).max(low * 2.0))
    };
    let (x, y) = (range(&|point| [point.cpu, point.cpu]), range(&|point| [point.p50, point.p99]));
    let x = Scale::log(x.0, x.1, (place.left, place.right));
    let y = Scale::log(y.0, y.1, (place.bottom, place.top));
    let mut best = Path::default();
    for (cpu, p50) in front(points) {
        if let Some((_, height)) = best.pen() {
            best.to(x.at(cpu), height);
        }
        best.to(x.at(cpu), y.at(p50));
    }
    html! {
        (place.axes(title, &x, &y))
        (text(f64::midpoint(place.left, place.right), place.bottom + 34.0, "middle", "title", "CPU for each event"))
        path d=(best.data()) class="line thin whole" {}
        @for point in points {
            @let (across, height) = (x.at(point.cpu), y.at(point.p50));
            g data-cell=(point.cell.name()) data-cpu=(point.cpu as u64) data-p50=(point.p50) data-p99=(point.p99) {
                (line((across, height), (across, y.at(point.p99)), &format!("bar {}", class(point.cell.wait))))
                circle cx=(num(across)) cy=(num(height)) r="8" class={ "dot " (class(point.cell.wait)) } {}
                text x=(num(across)) y=(num(height + 4.0)) text-anchor="middle" class="letter" { (point.letter) }
                title { (point.cell.name()) ": p50 " (duration(point.p50)) ", p99 " (duration(point.p99)) ", CPU " (duration(point.cpu)) }
            }
        }
    }
}

/// CPU time of both sides for each event.
pub fn cpu(lab: &Lab) -> Option<Markup> {
    const ROW: f64 = 19.0;
    let rows: Vec<(&LabCell, CellFigures)> =
        lab.cells.iter().filter_map(|cell| Some((cell, CellFigures::of(cell, lab.events)?))).collect();
    let most = rows.iter().map(|(_, figures)| figures.cpu()).reduce(f64::max)?;
    let names = rows.iter().map(|(cell, _)| text_width(&cell.name())).fold(120.0, f64::max).min(WIDTH * 0.5);
    let height = rows.len() as f64 * ROW + 60.0;
    let frame = Frame { height, left: names + 16.0, right: WIDTH - 90.0, top: 8.0, bottom: height - 50.0 };
    let x = Scale::linear(0.0, most, frame.across());
    let content = html! {
        (super::axis::bottom(&frame, &x, "CPU time for each event", &duration))
        @for (number, (cell, figures)) in rows.iter().enumerate() {
            @let top = frame.top + number as f64 * ROW;
            @let (half, end) = (x.at(figures.producer_cpu), x.at(figures.cpu()));
            g class=(class(cell.wait)) data-cell=(cell.name()) data-producer=(figures.producer_cpu as u64)
                data-consumer=(figures.consumer_cpu as u64) {
                title { (cell.name()) ": producers " (duration(figures.producer_cpu)) ", consumers " (duration(figures.consumer_cpu)) }
                (text(frame.left - 8.0, top + 13.0, "end", "label", &cell.name()))
                rect x=(num(frame.left)) y=(num(top + 2.0)) width=(num((half - frame.left).max(0.0))) height=(num(ROW - 5.0))
                    class="fill piece" {}
                rect x=(num(half)) y=(num(top + 2.0)) width=(num((end - half).max(0.0))) height=(num(ROW - 5.0))
                    class="fill piece band" {}
                (text(end + 6.0, top + 13.0, "start", "tick", &short(figures.cpu())))
            }
        }
    };
    let description =
        "A bar for each cell: the CPU time of the producers, then, paler, that of the consumers.";
    Some(html! {
        (legend(lab, false))
        p class="note" { "Full colour: producers. Paler: consumers." }
        figure { (frame.drawing("lab-cpu", "CPU time for each event", description, &content)) }
    })
}

/// A duration of at most three digits.
fn short(ns: f64) -> String {
    let digits = 10f64.powf(ns.max(1.0).log10().floor() - 2.0);
    duration((ns / digits).round() * digits)
}

/// How many bars a distribution has.
const BINS: usize = 28;

/// How the run times of each cell are spread: a panel for each carrier and pair of speeds, a strip for each way of waiting.
pub fn distributions(lab: &Lab) -> Option<Markup> {
    const STRIP: f64 = 30.0;
    let mut panels: Vec<(String, Vec<&LabCell>)> = Vec::new();
    for cell in lab.cells.iter().filter(|cell| cell.sound().next().is_some()) {
        let title = format!("{}, {}", cell.carrier(), cell.speeds());
        match panels.iter_mut().find(|(known, _)| *known == title) {
            Some((_, cells)) => cells.push(cell),
            None => panels.push((title, vec![cell])),
        }
    }
    let strips = panels.iter().map(|(_, cells)| cells.len()).max()?;
    let (columns, tall) = (3, strips as f64 * STRIP + 54.0);
    let across = WIDTH / columns as f64;
    let height = panels.len().div_ceil(columns) as f64 * tall;
    let paper = Frame { height, left: 0.0, right: WIDTH, top: 0.0, bottom: height };
    let content = html! {
        @for (number, (title, cells)) in panels.iter().enumerate() {
            @let (x0, y0) = ((number % columns) as f64 * across, (number / columns) as f64 * tall);
            (spread(title, cells, (x0 + 46.0, x0 + across - 26.0), y0, STRIP))
        }
    };
    let description =
        "A panel for each queue and pair of speeds, in it a histogram of run times for each way of waiting.";
    Some(
        html! { (legend(lab, false)) figure { (paper.drawing("lab-runs", "Run times", description, &content)) } },
    )
}

fn spread(title: &str, cells: &[&LabCell], (left, right): (f64, f64), y0: f64, strip: f64) -> Markup {
    let times = || cells.iter().flat_map(|cell| cell.sound().map(|run| run.run_ns as f64));
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let most = most.max(least * 1.02).max(least + 1.0);
    let x = Scale::linear_exact(least, most, (left, right));
    let width = (right - left) / BINS as f64;
    let bottom = y0 + 22.0 + cells.len() as f64 * strip;
    html! {
        (text(left, y0 + 14.0, "start", "strong", title))
        @for (place, cell) in cells.iter().enumerate() {
            @let base = y0 + 22.0 + (place + 1) as f64 * strip;
            @let bins = bins(cell, least, most);
            @let fullest = bins.iter().copied().max().unwrap_or(1).max(1);
            g class=(class(cell.wait)) data-cell=(cell.name()) data-runs=(cell.sound().count()) {
                title { (cell.name()) ": " (cell.sound().count()) " runs" }
                (text(left - 6.0, base - 6.0, "end", "tick", cell.wait.name()))
                @for (bin, runs) in bins.iter().enumerate().filter(|(_, runs)| **runs > 0) {
                    @let tall = *runs as f64 / fullest as f64 * (strip - 7.0);
                    rect x=(num(left + bin as f64 * width)) y=(num(base - tall)) width=(num(width)) height=(num(tall)) class="fill piece" {}
                }
            }
            (line((left, base), (right, base), "grid"))
        }
        (text(x.at(least), bottom + 15.0, "start", "tick", &short(least)))
        (text(x.at(most), bottom + 15.0, "end", "tick", &short(most)))
    }
}

/// How many runs fall into each bar.
fn bins(cell: &LabCell, least: f64, most: f64) -> [usize; BINS] {
    let mut bins = [0; BINS];
    for run in cell.sound() {
        let share = (run.run_ns as f64 - least) / (most - least);
        bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beside_bars_have_three_digits() {
        assert_eq!([5.4, 1_234.0, 98_765.0, 1.5e6].map(short), ["5.4 ns", "1.23 µs", "98.8 µs", "1.5 ms"]);
        assert_eq!(letter(0) + &letter(27), "AB");
    }
}
