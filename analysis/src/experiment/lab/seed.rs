//! The table of the benchmark that this project started from, and the timer's share of slow runs.

use super::against::{RUN_TIME, against, multiple};
use super::figures::{Measured, PAIRS};
use super::{Lab, Speed, Wait};
use crate::numbers::{duration, plain};
use crate::table::{Grid, GridRow};

/// Returns the table of the benchmark that this project started from: run times of the four pairs
/// of speeds.
pub fn seed_table(lab: &Lab, measured: &[Measured<'_>]) -> Option<Grid> {
    let of = |technique: &str, wait: Wait, pair: (Speed, Speed)| {
        let is_it = |(cell, _): &&Measured<'_>| {
            cell.technique.name() == technique
                && (cell.producers, cell.consumers, cell.wait) == (1, 1, wait)
                && (cell.producer, cell.consumer) == pair
        };
        measured.iter().find(is_it)
    };
    let not_busy = [Wait::Poll, Wait::Park, Wait::Yield]
        .into_iter()
        .find(|wait| lab.cells.iter().any(|cell| cell.wait == *wait))?;
    let row = |pair: (Speed, Speed)| {
        let times = [
            of("array-queue", Wait::Busy, pair),
            of("linked", Wait::Busy, pair),
            of("array-queue", not_busy, pair),
            of("linked", not_busy, pair),
        ];
        times.iter().any(Option::is_some).then_some(())?;
        let time = |found: Option<&Measured<'_>>| {
            found.map_or_else(|| "–".into(), |(_, figures)| format!("{} ms", plain(figures.run.median / 1e6)))
        };
        let ratio = |a: Option<&Measured<'_>>, b: Option<&Measured<'_>>| {
            a.zip(b).map_or_else(|| "–".into(), |((a, _), (b, _))| multiple(&against(b, a, RUN_TIME)))
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
    let head = [
        "prod/cons".to_owned(),
        "array busy".into(),
        "linked busy".into(),
        format!("array {not_busy}"),
        format!("linked {not_busy}"),
        "a/l busy".into(),
        format!("a/l {not_busy}"),
        format!("b/{not_busy} array"),
        format!("b/{not_busy} linked"),
    ];
    let title = format!("The seed benchmark's table, at {isolation}: median time of a run, and ratios");
    let mut grid = Grid::new("seed", title, 1, head, rows).note(
        "a/l: array to linked; b/…: busy to the other way. The seed's own figures are in docs/src/lab.md: compare these ratios with \
         them, not the times",
    );
    grid.notes.extend(shares_of_a_slow_run(lab, measured));
    (!grid.rows.is_empty()).then_some(grid)
}

/// Splits a run with a slow end into its slowness, the timer's lateness, and the queue's rest.
fn shares_of_a_slow_run(lab: &Lab, measured: &[Measured<'_>]) -> Option<String> {
    let (kind, time) = lab.slow.split_once(':')?;
    let asked = time.parse::<crate::units::Nanos>().ok()?.0 as f64;
    let (cell, figures) = measured.iter().find(|(cell, _)| {
        (cell.producer, cell.consumer, cell.producers, cell.consumers) == (Speed::Slow, Speed::Fast, 1, 1)
    })?;
    let each = figures.run.median / lab.events as f64;
    if kind == "work" {
        return Some(format!(
            "{}: {} an event, of which {} are the work that was asked for",
            cell.name(),
            duration(each as u64),
            duration(asked as u64)
        ));
    }
    let sleep = lab.sleep?;
    let took = if lab.slack_ns >= 50_000 { sleep.default_ns } else { sleep.precise_ns } as f64;
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
