//! The tables of `lab`: ways of waiting compared with busy waiting, each queue, all figures,
//! fairness.

use super::against::{CPU, P50, P99, multiple, rank_cells, wait_against_busy};
use super::figures::{CellFigures, MeasuredLabCell, PAIRS};
use super::{Lab, LabCell, LabRun, Speed, Wait};
use crate::experiment::time_unit::TimeUnit;
use crate::stats::Spread;
use record::numbers::{count, duration, duration_or_dash, plain};
use verdict::table::{Column, Grid, GridRow};

/// Returns the number of runs of a cell that were made at the same time; 0: each alone.
fn side_by_side(cell: &LabCell) -> u32 {
    cell.valid_runs().map(|run| run.side_by_side).max().unwrap_or(0)
}

/// Formats a share for the table of fairness.
fn times(share: Option<f64>) -> String {
    share.map_or_else(|| "–".into(), |share| format!("{}×", plain(share)))
}

/// Returns the table of CPU time and latency of each way of waiting relative to busy waiting:
/// medians over the queues.
pub fn against_busy(lab: &Lab, measured: &[MeasuredLabCell<'_>]) -> Option<Grid> {
    let is_used = |wait: &&Wait| lab.cells.iter().any(|cell| cell.wait == **wait);
    let (busy, others): (Vec<Wait>, Vec<Wait>) =
        Wait::ALL.iter().filter(is_used).partition(|wait| **wait == Wait::Busy);
    if busy.is_empty() || others.is_empty() {
        return None;
    }
    let heads = others.iter().flat_map(|wait| ["CPU", "p50", "p99"].map(|figure| format!("{wait} {figure}")));
    let row = |pair| {
        let first = lab.cells.iter().find(|cell| (cell.producer, cell.consumer) == pair)?;
        let is_it = |cell: &LabCell| (cell.producer, cell.consumer) == pair;
        let of = |wait: &Wait| {
            [CPU, P50, P99].map(|figure| {
                let found = wait_against_busy(measured, *wait, &is_it, figure);
                found.map_or_else(|| "–".into(), |found| multiple(&found))
            })
        };
        Some(GridRow::plain([first.speeds()].into_iter().chain(others.iter().flat_map(of)).collect()))
    };
    let title = "What a way of waiting costs in CPU and in latency, as a multiple of busy";
    let head = ["speeds".to_owned()].into_iter().chain(heads);
    Some(Grid::new("waiting", title, 1, head, PAIRS.into_iter().filter_map(row)).note(
        "below 1× is better; the median over the queues; CPU is that of both sides, the work of a slow side included; bounds where the \
         repeats disagree by more than 25 %, cannot tell where they decide nothing, –: fewer than 5 runs",
    ))
}

/// Returns the first-screen table of the queue benchmark: CPU time and latency of each way of
/// waiting as a multiple of busy waiting. A row compares a way of waiting with busy waiting, at one
/// speed of producers and one of consumers. If nothing was measured with busy waiting, a row is the
/// latency and the CPU time of one cell.
pub fn brief_table(measured: &[MeasuredLabCell<'_>]) -> Grid {
    let pairs = PAIRS.into_iter().flat_map(|pair| Wait::ALL.iter().map(move |wait| (pair, *wait)));
    let row = |(pair, wait): ((Speed, Speed), Wait)| {
        let is_it = |cell: &LabCell| (cell.producer, cell.consumer) == pair;
        let first = measured.iter().find(|(cell, _)| is_it(cell) && cell.wait == wait)?.0;
        let [cpu, p50, p99] = [CPU, P50, P99].map(|figure| {
            (wait != Wait::Busy).then(|| wait_against_busy(measured, wait, &is_it, figure)).flatten()
        });
        cpu.as_ref()?;
        let cells = [cpu, p50, p99].map(|found| found.map_or_else(|| "–".into(), |found| multiple(&found)));
        Some(GridRow::plain([first.speeds(), wait.to_string()].into_iter().chain(cells).collect()))
    };
    let rows: Vec<GridRow> = pairs.filter_map(row).collect();
    if !rows.is_empty() {
        let title = "CPU time of both sides and latency, as a multiple of busy waiting";
        return Grid::new("lab_brief", title, 2, ["speeds", "wait", "CPU", "p50", "p99"], rows);
    }
    let columns: [Column<'_, MeasuredLabCell<'_>>; 6] = [
        ("queue", &|(cell, _)| cell.carrier()),
        ("speeds", &|(cell, _)| cell.speeds()),
        ("wait", &|(cell, _)| cell.wait.to_string()),
        ("p50", &|(_, figures)| duration_or_dash(figures.p50)),
        ("p99", &|(_, figures)| duration_or_dash(figures.p99)),
        ("CPU", &|(_, figures)| duration(figures.cpu() as u64)),
    ];
    let title = "Latency from push to pop, and CPU time of an event on both sides; medians over the runs";
    Grid::from_rows("lab_brief", title, 3, &columns, measured)
}

/// Returns the table of one queue: a row for each way of waiting at each pair of producer and
/// consumer speeds.
pub fn carrier_table(measured: &[MeasuredLabCell<'_>], carrier: &str) -> Option<Grid> {
    let cells: Vec<&MeasuredLabCell<'_>> =
        measured.iter().filter(|(cell, _)| cell.carrier() == carrier).collect();
    let run_unit = TimeUnit::for_durations(cells.iter().map(|(_, figures)| figures.run.median));
    let unit = TimeUnit::for_durations(cells.iter().flat_map(|(_, figures)| {
        let latencies = [figures.p50, figures.p99].into_iter().flatten().map(|ns| ns as f64);
        latencies.chain(figures.mean).chain([figures.producer_cpu, figures.consumer_cpu])
    }));
    let mut rows = Vec::new();
    for pair in PAIRS {
        let group = || cells.iter().filter(move |(cell, _)| (cell.producer, cell.consumer) == pair);
        let rivals: Vec<&LabCell> = group().map(|(cell, _)| *cell).collect();
        let winner = |figure| {
            let (cells, ranking) = rank_cells(&rivals, figure)?;
            ranking.is_shown().then(|| cells[ranking.lowest])
        };
        let (quickest, cheapest) = (winner(P50), winner(CPU));
        for (cell, figures) in group() {
            let is_it = |best: Option<&LabCell>| best.is_some_and(|best| std::ptr::eq(best, *cell));
            let (is_quick, is_cheap) = (is_it(quickest), is_it(cheapest));
            let marks = [(4, is_quick), (6, is_cheap), (7, is_cheap)].into_iter();
            let best = marks.filter(|(_, is_best)| *is_best).map(|(column, _)| column);
            let cells = vec![
                cell.speeds(),
                cell.wait.to_string(),
                run_unit.format(figures.run.median),
                figures.mean.map_or_else(|| "–".into(), |ns| unit.format(ns)),
                unit.format_whole(figures.p50),
                unit.format_whole(figures.p99),
                unit.format(figures.producer_cpu),
                unit.format(figures.consumer_cpu),
                plain(figures.switches),
                plain(figures.wakes),
            ];
            rows.push(GridRow { cells, best: best.collect() });
        }
    }
    let head = ["speeds", "wait", "run", "mean", "p50", "p99", "CPU prod", "CPU cons", "switches", "wakes"];
    let title = format!("{carrier}, in {}; run in {}", unit.name(), run_unit.name());
    (!rows.is_empty()).then(|| Grid::new("carrier", title, 2, head, rows))
}

/// Returns the table of every measured cell of the queue benchmark, with all figures.
pub fn full_table(lab: &Lab, measured: &[MeasuredLabCell<'_>]) -> Grid {
    let text = |cell: &LabCell, text: &dyn Fn(&CellFigures) -> String| {
        let found = measured.iter().find(|(other, _)| std::ptr::eq(*other, cell));
        found.map_or_else(|| "–".into(), |(_, figures)| text(figures))
    };
    let figures = || measured.iter().map(|(_, figures)| figures);
    let run_unit = TimeUnit::for_durations(figures().map(|figures| figures.run.high));
    let unit = TimeUnit::for_durations(figures().flat_map(|figures| {
        let CellFigures { p50, p99, p999, p999_of_all, max, .. } = *figures;
        let latencies = [p50, p99, p999, p999_of_all, max].into_iter().flatten().map(|ns| ns as f64);
        latencies.chain(figures.mean).chain([figures.producer_cpu, figures.consumer_cpu])
    }));
    let columns: [Column<'_, LabCell>; 24] = [
        ("technique", &|cell| cell.technique.to_string()),
        ("isolation", &|cell| cell.isolation.to_string()),
        ("producers", &|cell| cell.producers.to_string()),
        ("consumers", &|cell| cell.consumers.to_string()),
        ("speeds", &LabCell::speeds),
        ("wait", &|cell| cell.wait.to_string()),
        ("capacity", &|cell| cell.capacity.map_or_else(|| "–".into(), count)),
        ("events", &|cell| count(lab.plan.events_of(cell))),
        ("side by side", &|cell| side_by_side(cell).to_string()),
        ("runs", &|cell| cell.valid_runs().count().to_string()),
        ("run", &|cell| text(cell, &|figures| run_unit.format(figures.run.median))),
        ("run least", &|cell| text(cell, &|figures| run_unit.format(figures.run.low))),
        ("run greatest", &|cell| text(cell, &|figures| run_unit.format(figures.run.high))),
        ("events/s", &|cell| text(cell, &|figures| count(figures.rate as u64))),
        ("mean", &|cell| {
            text(cell, &|figures| figures.mean.map_or_else(|| "–".into(), |ns| unit.format(ns)))
        }),
        ("p50", &|cell| text(cell, &|figures| unit.format_whole(figures.p50))),
        ("p99", &|cell| text(cell, &|figures| unit.format_whole(figures.p99))),
        ("p99.9", &|cell| text(cell, &|figures| unit.format_whole(figures.p999))),
        ("p99.9 of all", &|cell| text(cell, &|figures| unit.format_whole(figures.p999_of_all))),
        ("max", &|cell| text(cell, &|figures| unit.format_whole(figures.max))),
        ("CPU prod", &|cell| text(cell, &|figures| unit.format(figures.producer_cpu))),
        ("CPU cons", &|cell| text(cell, &|figures| unit.format(figures.consumer_cpu))),
        ("switches/1000", &|cell| text(cell, &|figures| plain(figures.switches))),
        ("wakes", &|cell| text(cell, &|figures| plain(figures.wakes))),
    ];
    let title = format!(
        "Every cell: medians over the runs, and p99.9 and the greatest of all runs together; CPU for each event; in {}, run in {}",
        unit.name(),
        run_unit.name()
    );
    Grid::from_rows("cells", title, 6, &columns, &lab.cells)
}

/// Returns the table of how evenly a queue serves several producers: their shares of the events and
/// their longest waits.
pub fn fairness(lab: &Lab) -> Option<Grid> {
    let row = |cell: &LabCell| {
        let share = |pick: fn(f64, f64) -> f64, from: f64| {
            let of = |run: &LabRun| run.shares.iter().copied().fold(from, pick) * run.shares.len() as f64;
            let shares = Spread::from_values(cell.valid_runs().filter(|run| !run.shares.is_empty()).map(of));
            times(shares.map(|spread| spread.median))
        };
        let longest = cell.valid_runs().flat_map(|run| run.longest_wait_ns.iter().copied()).max()?;
        Some(GridRow::plain(vec![
            format!("{}, {}", cell.carrier(), cell.speeds()),
            cell.wait.to_string(),
            share(f64::min, f64::INFINITY),
            share(f64::max, 0.0),
            duration(longest),
        ]))
    };
    let rows: Vec<GridRow> = lab.cells.iter().filter(|cell| cell.producers > 1).filter_map(row).collect();
    let title = "Producers' shares of the first half of the events, 1× is an even share";
    let head = ["queue", "wait", "least", "greatest", "longest wait"];
    (!rows.is_empty()).then(|| {
        Grid::new("fairness", title, 2, head, rows)
            .note("medians over the runs; the longest wait for room is the longest of all")
    })
}
