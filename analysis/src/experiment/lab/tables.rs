//! The tables of the queue benchmark `lab`: the headline, a table for each queue, all figures,
//! fairness.

use super::figures::{CellFigures, PAIRS};
use super::{Lab, LabCell, LabRun, Speed, Wait};
use crate::experiment::time_unit::TimeUnit;
use crate::numbers::{count, duration, plain};
use crate::stats::{Spread, median};
use crate::table::{Column, Grid, GridRow};

/// The name of the table with the results of one queue.
pub const CARRIER: &str = "carrier";

/// Returns the table of CPU time and latency of each way of waiting, relative to busy polling. Each
/// figure is the median over the queues.
pub fn against_busy(lab: &Lab) -> Option<Grid> {
    let waits: Vec<Wait> =
        Wait::ALL.iter().copied().filter(|wait| lab.cells.iter().any(|cell| cell.wait == *wait)).collect();
    if waits.len() < 2 || !waits.contains(&Wait::Busy) {
        return None;
    }
    let others = || waits.iter().filter(|wait| **wait != Wait::Busy);
    let mut head = strings(&["speeds"]);
    head.extend(
        others().flat_map(|wait| [format!("{wait} CPU"), format!("{wait} p50"), format!("{wait} p99")]),
    );
    let row = |(producer, consumer): (Speed, Speed)| {
        let is_it = |cell: &LabCell| (cell.producer, cell.consumer) == (producer, consumer);
        lab.cells.iter().find(|cell| is_it(cell))?;
        let times =
            |ratio: Option<f64>| ratio.map_or_else(|| "–".into(), |ratio| format!("{}×", plain(ratio)));
        let of = |wait: &Wait| FIGURES.map(|of| times(ratio_to_busy(lab, *wait, &is_it, of)));
        Some(GridRow::plain(
            [format!("{producer}→{consumer}")].into_iter().chain(others().flat_map(of)).collect(),
        ))
    };
    Some(Grid {
        name: "waiting".into(),
        title: "What a way of waiting costs in CPU and in latency, as a multiple of busy".into(),
        head,
        keys: 1,
        rows: PAIRS.into_iter().filter_map(row).collect(),
        notes: strings(&[
            "below 1× is better; the median over the queues; CPU is that of both sides, the work of a slow side included",
        ]),
    })
}

/// CPU time, p50 and p99 of a cell, which are compared with those of busy waiting.
const FIGURES: [fn(&CellFigures) -> Option<f64>; 3] = [
    |figures| Some(figures.cpu()),
    |figures| figures.p50.map(|ns| ns as f64),
    |figures| figures.p99.map(|ns| ns as f64),
];

/// A figure of a way of waiting over that of busy waiting at the same speeds: the median over the
/// queues of the cells that `is_it` selects.
fn ratio_to_busy(
    lab: &Lab,
    wait: Wait,
    is_it: &dyn Fn(&LabCell) -> bool,
    of: fn(&CellFigures) -> Option<f64>,
) -> Option<f64> {
    let figure = |cell: &LabCell| of(&CellFigures::from_cell(cell, lab.events)?);
    let ratio = |cell: &LabCell| {
        let busy = lab.cells.iter().find(|busy| {
            busy.wait == Wait::Busy && (busy.carrier(), busy.speeds()) == (cell.carrier(), cell.speeds())
        })?;
        Some(figure(cell)? / figure(busy)?).filter(|ratio| ratio.is_finite())
    };
    let cells = lab.cells.iter().filter(|cell| cell.wait == wait && is_it(cell));
    median(&cells.filter_map(ratio).collect::<Vec<_>>())
}

/// Returns CPU and median latency of each way of waiting against busy waiting, over all speeds and
/// queues: `park: 0.10 × the CPU of busy, 4.20 × its p50`. Empty without busy waiting to compare
/// with.
pub fn waits_against_busy(lab: &Lab) -> Vec<String> {
    let sentence = |wait: &Wait| {
        let [cpu, p50, _] = FIGURES.map(|of| ratio_to_busy(lab, *wait, &|_| true, of).map(plain));
        let p50 = p50.map_or_else(String::new, |p50| format!(", {p50} × its p50"));
        Some(format!("{wait}: {} × the CPU of busy{p50}", cpu?))
    };
    Wait::ALL.iter().filter(|wait| **wait != Wait::Busy).filter_map(sentence).collect()
}

/// Returns the table of one queue: a row for each pair of speeds and way of waiting.
pub fn carrier_table(lab: &Lab, carrier: &str) -> Option<Grid> {
    let cells = lab.cells.iter().filter(|cell| cell.carrier() == carrier);
    let all: Vec<_> = cells.filter_map(|cell| CellFigures::from_cell(cell, lab.events)).collect();
    let run_unit = TimeUnit::for_durations(all.iter().map(|figures| figures.run.median));
    let unit = TimeUnit::for_durations(all.iter().flat_map(|figures| {
        let latencies = [figures.p50, figures.p99].into_iter().flatten().map(|ns| ns as f64);
        latencies.chain([figures.producer_cpu, figures.consumer_cpu])
    }));
    let mut rows = Vec::new();
    for (producer, consumer) in PAIRS {
        let group: Vec<(&LabCell, CellFigures)> = lab
            .cells
            .iter()
            .filter(|cell| {
                cell.carrier() == carrier && (cell.producer, cell.consumer) == (producer, consumer)
            })
            .filter_map(|cell| Some((cell, CellFigures::from_cell(cell, lab.events)?)))
            .collect();
        let min = |of: &dyn Fn(&CellFigures) -> f64| {
            group.iter().map(|(_, figures)| of(figures)).fold(f64::INFINITY, f64::min)
        };
        let p50 = |figures: &CellFigures| figures.p50.map_or(f64::INFINITY, |ns| ns as f64);
        let (quickest, cheapest) = (min(&p50), min(&CellFigures::cpu));
        for (cell, figures) in &group {
            let marks = [
                (3, p50(figures) <= quickest),
                (5, figures.cpu() <= cheapest),
                (6, figures.cpu() <= cheapest),
            ];
            let best = marks
                .into_iter()
                .filter(|(_, is)| *is && group.len() > 1)
                .map(|(column, _)| column)
                .collect();
            let cells = vec![
                cell.speeds(),
                cell.wait.to_string(),
                run_unit.format(figures.run.median),
                unit.format_whole(figures.p50),
                unit.format_whole(figures.p99),
                unit.format(figures.producer_cpu),
                unit.format(figures.consumer_cpu),
                plain(figures.switches),
                plain(figures.wakes),
            ];
            rows.push(GridRow { cells, best });
        }
    }
    let head = ["speeds", "wait", "run", "p50", "p99", "CPU prod", "CPU cons", "switches", "wakes"];
    (!rows.is_empty()).then(|| Grid {
        name: CARRIER.into(),
        title: format!("{carrier}, in {}; run in {}", unit.name(), run_unit.name()),
        head: strings(&head),
        keys: 2,
        rows,
        notes: Vec::new(),
    })
}

/// A cell and its figures, if a run of it was sound.
type Measured<'a> = (&'a LabCell, Option<CellFigures>);

/// Returns the table of every figure for every combination of settings.
pub fn full_table(lab: &Lab) -> Grid {
    fn cell_text(measured: &Measured<'_>, text: impl Fn(&CellFigures) -> String) -> String {
        measured.1.as_ref().map_or_else(|| "–".into(), text)
    }
    let rows: Vec<Measured<'_>> =
        lab.cells.iter().map(|cell| (cell, CellFigures::from_cell(cell, lab.events))).collect();
    let figures = || rows.iter().filter_map(|(_, figures)| figures.as_ref());
    let run_unit = TimeUnit::for_durations(figures().map(|figures| figures.run.high));
    let unit = TimeUnit::for_durations(figures().flat_map(|figures| {
        let CellFigures { p50, p99, p999, p999_of_all, max, .. } = *figures;
        let latencies = [p50, p99, p999, p999_of_all, max].into_iter().flatten().map(|ns| ns as f64);
        latencies.chain([figures.producer_cpu, figures.consumer_cpu])
    }));
    let columns: [Column<'_, Measured<'_>>; 20] = [
        ("technique", &|row| row.0.technique.to_string()),
        ("isolation", &|row| row.0.isolation.to_string()),
        ("producers", &|row| row.0.producers.to_string()),
        ("consumers", &|row| row.0.consumers.to_string()),
        ("speeds", &|row| row.0.speeds()),
        ("wait", &|row| row.0.wait.to_string()),
        ("runs", &|row| row.0.sound().count().to_string()),
        ("run", &|row| cell_text(row, |figures| run_unit.format(figures.run.median))),
        ("run least", &|row| cell_text(row, |figures| run_unit.format(figures.run.low))),
        ("run greatest", &|row| cell_text(row, |figures| run_unit.format(figures.run.high))),
        ("events/s", &|row| cell_text(row, |figures| count(figures.rate as u64))),
        ("p50", &|row| cell_text(row, |figures| unit.format_whole(figures.p50))),
        ("p99", &|row| cell_text(row, |figures| unit.format_whole(figures.p99))),
        ("p99.9", &|row| cell_text(row, |figures| unit.format_whole(figures.p999))),
        ("p99.9 of all", &|row| cell_text(row, |figures| unit.format_whole(figures.p999_of_all))),
        ("max", &|row| cell_text(row, |figures| unit.format_whole(figures.max))),
        ("CPU prod", &|row| cell_text(row, |figures| unit.format(figures.producer_cpu))),
        ("CPU cons", &|row| cell_text(row, |figures| unit.format(figures.consumer_cpu))),
        ("switches/1000", &|row| cell_text(row, |figures| plain(figures.switches))),
        ("wakes", &|row| cell_text(row, |figures| plain(figures.wakes))),
    ];
    let title = format!(
        "Every cell: medians over the runs, and p99.9 and the greatest of all runs together; CPU for each event; in {}, run in {}",
        unit.name(),
        run_unit.name()
    );
    Grid::from_rows("cells", title, 6, &columns, &rows)
}

/// Returns the table of how evenly several producers get their events through one queue.
pub fn fairness(lab: &Lab) -> Option<Grid> {
    let row = |cell: &LabCell| {
        let shares = |pick: fn(f64, f64) -> f64, from: f64| {
            let of = |run: &LabRun| run.shares.iter().copied().fold(from, pick) * run.shares.len() as f64;
            Spread::from_values(cell.sound().filter(|run| !run.shares.is_empty()).map(of))
        };
        let longest = cell.sound().flat_map(|run| run.longest_wait_ns.iter().copied()).max()?;
        let text = |spread: Option<Spread>| {
            spread.map_or_else(|| "–".into(), |spread| format!("{}×", plain(spread.median)))
        };
        Some(GridRow::plain(vec![
            format!("{}, {}", cell.carrier(), cell.speeds()),
            cell.wait.to_string(),
            text(shares(f64::min, f64::INFINITY)),
            text(shares(f64::max, 0.0)),
            duration(longest),
        ]))
    };
    let rows: Vec<GridRow> = lab.cells.iter().filter(|cell| cell.producers > 1).filter_map(row).collect();
    (!rows.is_empty()).then(|| Grid {
        name: "fairness".into(),
        title: "Producers' shares of the first half of the events, 1× is an even share".into(),
        head: strings(&["queue", "wait", "least", "greatest", "longest wait"]),
        keys: 2,
        rows,
        notes: strings(&["medians over the runs; the longest wait for room is the longest of all"]),
    })
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
