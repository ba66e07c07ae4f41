//! The plot of a case's latency over time.

use super::{BoardCase, BoardSlice};
use maud::Markup;
use verdict::chart::plot::{DataSeries, Plot, PlotAxis, Unit};

type SliceFigure = fn(&BoardSlice) -> Option<u64>;

/// The lines of the plot: name, class, figure.
const LINES: [(&str, &str, SliceFigure); 9] = [
    ("write p50", "c1 strong", |slice| slice.write_p50_ns),
    ("write p99", "c1 dash", |slice| slice.write_p99_ns),
    ("write max", "c1 dots", |slice| slice.write_max_ns),
    ("read p50", "c2 strong", |slice| slice.read_p50_ns),
    ("read p99", "c2 dash", |slice| slice.read_p99_ns),
    ("read max", "c2 dots", |slice| slice.read_max_ns),
    ("propagation p50", "c3 strong", |slice| slice.propagation_p50_ns),
    ("propagation p99", "c3 dash", |slice| slice.propagation_p99_ns),
    ("propagation max", "c3 dots", |slice| slice.propagation_max_ns),
];

/// Draws median, p99 and maximum over time; `None` without a timeline.
pub(super) fn draw(case: &BoardCase, number: usize) -> Option<Markup> {
    let series: Vec<DataSeries> = LINES.iter().filter_map(|line| series(case, *line)).collect();
    series.first()?;
    let plot = Plot {
        id: format!("time-{number}"),
        title: "Latency over time".into(),
        description: "Lines over time: median, p99 and greatest of write, read and propagation, in sixty parts of the time, by when \
                      each began. Parts with too few values are passed over. latency-*.csv has the figures of each thread."
            .into(),
        height: 380,
        x: PlotAxis::new("time in seconds", Unit::Number),
        y: PlotAxis::with_log("latency", Unit::Duration, true),
        series,
        ..Plot::default()
    };
    Some(plot.figure())
}

/// Returns the line of a figure; `None` without a point.
fn series(case: &BoardCase, (name, class, figure): (&str, &str, SliceFigure)) -> Option<DataSeries> {
    // A logarithmic axis has no zero.
    let point = |slice: &BoardSlice| Some((slice.begin_ns as f64 / 1e9, figure(slice)?.max(1) as f64));
    let (x, y): (Vec<f64>, Vec<f64>) = case.timeline.iter().filter_map(point).unzip();
    (!x.is_empty()).then(|| DataSeries { x, y, ..DataSeries::with_class(name, class) })
}

#[cfg(test)]
mod tests {
    use super::super::Boards;
    use super::*;
    use crate::fixture;

    #[test]
    fn plot_has_the_lines_that_have_points() {
        let mut case = Boards::from_experiment(&fixture("saved/board.json")).unwrap().cases.remove(0);
        case.timeline.clear();
        assert!(draw(&case, 0).is_none());
        let slice = |number: u64| BoardSlice {
            begin_ns: number * 50_000_000,
            write_p50_ns: Some(number),
            read_max_ns: (number == 1).then_some(700),
            ..BoardSlice::default()
        };
        case.timeline = (0..60).map(slice).collect();
        let figure = draw(&case, 3).unwrap().into_string();
        assert!(
            figure.contains("id=\"time-3\"") && figure.contains("write p50") && figure.contains("read max")
        );
        assert!(!figure.contains("\"propagation p50\""), "{figure}");
    }
}
