//! The table of the benchmark that this project started from, and the timer's share of slow runs.

use super::against::{RUN_TIME, judge_cells, multiple};
use super::figures::{MeasuredLabCell, PAIRS};
use super::{Lab, Speed, Wait};
use record::numbers::{count, duration, plain};
use verdict::table::{Grid, GridRow};

/// Techniques that stand for the seed's array, and for its linked list. The first of a lab counts.
const ARRAYS: [&str; 2] = ["array-queue", "crossbeam-array-queue"];
const LISTS: [&str; 2] = ["linked", "std-mpsc"];

/// The four queues of the seed benchmark's table: array and linked, busy, and with another way of
/// waiting.
struct SeedQueues<'a> {
    measured: &'a [MeasuredLabCell<'a>],
    array: &'static str,
    linked: &'static str,
    not_busy: Wait,
}

impl<'a> SeedQueues<'a> {
    fn new(lab: &Lab, measured: &'a [MeasuredLabCell<'a>]) -> Option<Self> {
        let is_there = |name: &&str| lab.cells.iter().any(|cell| cell.technique.name() == *name);
        let first = |names: [&'static str; 2]| names.into_iter().find(is_there).unwrap_or(names[0]);
        let not_busy = [Wait::Poll, Wait::Park, Wait::Yield]
            .into_iter()
            .find(|wait| lab.cells.iter().any(|cell| cell.wait == *wait))?;
        Some(Self { measured, array: first(ARRAYS), linked: first(LISTS), not_busy })
    }

    /// Returns the four cells at a pair of speeds; `None` if none of them was measured.
    fn at(&self, pair: (Speed, Speed)) -> Option<[Option<&'a MeasuredLabCell<'a>>; 4]> {
        let of = |technique: &str, wait: Wait| {
            self.measured.iter().find(|(cell, _)| {
                cell.technique.name() == technique
                    && (cell.producers, cell.consumers, cell.wait) == (1, 1, wait)
                    && (cell.producer, cell.consumer) == pair
            })
        };
        let cells = [Wait::Busy, self.not_busy].map(|wait| [of(self.array, wait), of(self.linked, wait)]);
        let cells = [cells[0][0], cells[0][1], cells[1][0], cells[1][1]];
        cells.iter().any(Option::is_some).then_some(cells)
    }

    /// Returns the column heads of the four queues.
    fn heads(&self) -> [String; 4] {
        let not_busy = self.not_busy;
        ["array busy".into(), "linked busy".into(), format!("array {not_busy}"), format!("linked {not_busy}")]
    }

    /// Names the techniques that stand for array and linked, with what they hold.
    fn legend(&self) -> String {
        let holds = |name: &str| {
            let cell = self.measured.iter().find(|(cell, _)| cell.technique.name() == name);
            let capacity = cell.and_then(|(cell, _)| cell.capacity);
            capacity
                .map_or_else(|| name.to_owned(), |events| format!("{name}, which holds {}", count(events)))
        };
        format!("array: {}; linked: {}; the seed's queues held 1,000", holds(self.array), holds(self.linked))
    }
}

/// Returns the lab's run times in the original queue benchmark's layout, with ratios of array to
/// linked queues and of busy to other waiting. A row is a pair of producer and consumer speeds.
pub fn seed_table(lab: &Lab, measured: &[MeasuredLabCell<'_>]) -> Option<Grid> {
    let queues = SeedQueues::new(lab, measured)?;
    let row = |pair: (Speed, Speed)| {
        let times = queues.at(pair)?;
        let time = |found: Option<&MeasuredLabCell<'_>>| {
            found.map_or_else(|| "–".into(), |(_, figures)| format!("{} ms", plain(figures.run.median / 1e6)))
        };
        let ratio = |a: Option<&MeasuredLabCell<'_>>, b: Option<&MeasuredLabCell<'_>>| {
            a.zip(b).map_or_else(|| "–".into(), |((a, _), (b, _))| multiple(&judge_cells(b, a, RUN_TIME)))
        };
        let [array_busy, linked_busy, array, linked] = times;
        let mut cells = vec![format!("{}/{}", pair.0, pair.1)];
        cells.extend(times.map(time));
        cells.extend([
            ratio(array_busy, linked_busy),
            ratio(array, linked),
            ratio(array_busy, array),
            ratio(linked_busy, linked),
        ]);
        Some(GridRow::plain(cells))
    };
    let rows: Vec<GridRow> = PAIRS.into_iter().filter_map(row).collect();
    let isolation = lab.cells.first()?.isolation;
    let not_busy = queues.not_busy;
    let ratios = [
        "a/l busy".into(),
        format!("a/l {not_busy}"),
        format!("b/{not_busy} array"),
        format!("b/{not_busy} linked"),
    ];
    let head = ["prod/cons".to_owned()].into_iter().chain(queues.heads()).chain(ratios);
    let title = format!("The seed benchmark's table, at {isolation}: median time of a run, and ratios");
    let mut grid = Grid::new("seed", title, 1, head, rows)
        .note(
            "a/l: array to linked; b/…: busy to the other way. The seed's own figures are in docs/src/lab.md: compare these ratios \
             with them, not the times",
        )
        .note(queues.legend());
    grid.notes.extend(sizes(lab, measured));
    grid.notes.extend(shares_of_a_slow_run(lab, measured));
    (!grid.rows.is_empty()).then_some(grid)
}

/// Returns the table of mean times from push to pop, for the queues and speeds of this project's
/// original benchmark.
pub fn delivery_table(lab: &Lab, measured: &[MeasuredLabCell<'_>]) -> Option<Grid> {
    let queues = SeedQueues::new(lab, measured)?;
    let row = |pair: (Speed, Speed)| {
        let mean = |found: Option<&MeasuredLabCell<'_>>| {
            let mean = found.and_then(|(_, figures)| figures.mean);
            mean.map_or_else(|| "–".into(), |ns| duration(ns as u64))
        };
        let cells = queues.at(pair)?.map(mean);
        Some(GridRow::plain([format!("{}/{}", pair.0, pair.1)].into_iter().chain(cells).collect()))
    };
    let rows: Vec<GridRow> = PAIRS.into_iter().filter_map(row).collect();
    let head = ["prod/cons".to_owned()].into_iter().chain(queues.heads());
    let title = "Mean delivery of an event, from push to pop: median over the runs";
    (!rows.is_empty()).then(|| {
        Grid::new("delivery", title, 1, head, rows).note(
            "the seed's event system delivered in 170 µs on average; a full queue adds the wait for its consumer",
        )
    })
}

/// Describes the sizes of cells that are not those of the lab, and which runs were side by side.
fn sizes(lab: &Lab, measured: &[MeasuredLabCell<'_>]) -> Vec<String> {
    let size = |(cell, _): &MeasuredLabCell<'_>| (lab.plan.events_of(cell), lab.plan.runs_of(cell));
    let mut sizes: Vec<(u64, u32)> = measured.iter().map(size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut notes = Vec::new();
    if sizes.len() > 1 {
        let size = |(events, runs): &(u64, u32)| format!("{runs} × {}", count(*events));
        let sizes: Vec<String> = sizes.iter().map(size).collect();
        notes.push(format!("runs × events of a cell: {}", sizes.join(" or ")));
    }
    let width = lab.side_by_side();
    if width > 0 {
        notes.push(format!(
            "cells whose ends sleep were made up to {width} side by side, not pinned; all others alone"
        ));
    }
    notes
}

/// Splits a run with a slow end into its slowness, the timer's lateness, and the queue's rest.
fn shares_of_a_slow_run(lab: &Lab, measured: &[MeasuredLabCell<'_>]) -> Option<String> {
    let (kind, time) = lab.plan.slow.split_once(':')?;
    let asked = time.parse::<record::units::Nanos>().ok()?.0 as f64;
    let (cell, figures) = measured.iter().find(|(cell, _)| {
        (cell.producer, cell.consumer, cell.producers, cell.consumers) == (Speed::Slow, Speed::Fast, 1, 1)
    })?;
    let each = figures.run.median / lab.plan.events_of(cell) as f64;
    if kind == "work" {
        return Some(format!(
            "{}: {} an event, of which {} are the work that was asked for",
            cell.name(),
            duration(each as u64),
            duration(asked as u64)
        ));
    }
    let sleep = lab.plan.sleep?;
    let took = if lab.plan.slack_ns >= 50_000 { sleep.default_ns } else { sleep.precise_ns } as f64;
    let late = (took - 1e6).max(0.0);
    let rest = each - asked - late;
    Some(format!(
        "{}: {} an event: {} asked for, {} the timer's lateness (of a sleep of 1 ms here), {} all else: the queue, the stamps, the \
         switches",
        cell.name(),
        duration(each as u64),
        duration(asked as u64),
        duration(late as u64),
        if rest >= 0.0 { duration(rest as u64) } else { format!("-{}", duration(-rest as u64)) }
    ))
}
