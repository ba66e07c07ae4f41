//! The tables of each level's certain figures: CPU time, memory, start and counts.

use super::level_figures::{LevelFigure, LevelFigures, MIN_REPEATS, STOLEN_MARGIN, StolenShare};
use super::{IsolationCostRow, IsolationCosts};
use crate::stats::{Estimate, Verdict};
use record::numbers::{duration_or_dash, plain};
use verdict::report::change;
use verdict::report::strategy_costs::kibibytes;
use verdict::summary::StrategyCosts;
use verdict::table::{Column, Grid};

/// A row of the bill with what is known of its level.
type LevelRow<'a> = (&'a IsolationCostRow, &'a LevelFigures);

/// Returns the rows whose runs saved what their strategies used.
fn rows(bill: &IsolationCosts) -> Vec<LevelRow<'_>> {
    bill.rows.iter().filter_map(|row| Some((row, row.level_figures.as_ref()?))).collect()
}

/// Returns `true` if the bill has a table by level.
pub(super) fn is_known(bill: &IsolationCosts) -> bool {
    bill.rows.iter().any(|row| row.level_figures.is_some())
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("−{}", plain(-value)) } else { format!("+{}", plain(value)) }
}

/// `15.2 [14.9, 15.5]`
fn value(figure: Option<LevelFigure>) -> String {
    let Some(LevelFigure { value, interval, .. }) = figure else { return "–".into() };
    let ends = interval.map(|ends| format!(" [{}]", ends.map(|end| plain(end.max(0.0))).join(", ")));
    format!("{}{}", plain(value), ends.unwrap_or_default())
}

/// `+2.50 [+2.01, +2.99]`
fn added(figure: Option<LevelFigure>) -> String {
    let added = figure.and_then(|figure| figure.added);
    let text = |of: Estimate| format!("{} [{}, {}]", signed(of.value), signed(of.low), signed(of.high));
    added.map_or_else(|| "–".into(), text)
}

fn ratio(ratio: Option<Estimate>) -> String {
    ratio.map_or_else(|| "–".into(), |of| change([of.value, of.low, of.high]))
}

fn of_strategy(row: &LevelRow<'_>, figure: fn(&StrategyCosts) -> Option<f64>) -> Option<f64> {
    row.0.strategy.as_ref().and_then(figure)
}

fn size(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "–".into(), kibibytes)
}

/// Returns the table of CPU time, memory and start by level, led by the ratios of levels that took
/// turns, and the table of counts. None for runs of older launchers.
pub(super) fn tables(bill: &IsolationCosts) -> Vec<Grid> {
    let rows = rows(bill);
    if rows.is_empty() {
        return Vec::new();
    }
    vec![costs(&rows), counts(&rows)]
}

/// Returns the key columns: the level, and the technique where there are several.
fn keys<'a>(rows: &[LevelRow<'_>]) -> Vec<Column<'a, LevelRow<'a>>> {
    let mut keys: Vec<Column<'a, LevelRow<'a>>> = vec![("level", &|row| row.0.level())];
    if rows.iter().any(|row| row.0.technique != rows[0].0.technique) {
        keys.push(("technique", &|row| row.0.technique.to_string()));
    }
    keys
}

fn costs(rows: &[LevelRow<'_>]) -> Grid {
    let mut columns = keys(rows);
    let keys = columns.len();
    let turns: Vec<usize> = rows.iter().filter_map(|row| Some(row.1.turns.as_ref()?.repeats)).collect();
    if !turns.is_empty() {
        columns.extend::<[Column<'_, LevelRow<'_>>; 3]>([
            ("p50", &|row| ratio(row.1.turns.and_then(|turns| turns.p50))),
            ("p99", &|row| ratio(row.1.turns.and_then(|turns| turns.p99))),
            ("beyond p99", &|row| ratio(row.1.turns.and_then(|turns| turns.beyond_p99))),
        ]);
    }
    columns.extend::<[Column<'_, LevelRow<'_>>; 6]>([
        ("CPU s/M", &|row| value(row.1.cpu_s_per_million)),
        ("CPU adds", &|row| added(row.1.cpu_s_per_million)),
        ("PSS", &|row| size(of_strategy(row, |costs| costs.pss_bytes))),
        ("private", &|row| size(of_strategy(row, |costs| costs.private_bytes))),
        ("tables", &|row| size(of_strategy(row, |costs| costs.page_table_bytes))),
        ("start", &|row| duration_or_dash(of_strategy(row, |costs| costs.startup_ns).map(|ns| ns as u64))),
    ]);
    let title = match turns.is_empty() {
        true => "What a level costs for certain, a strategy",
        false => {
            "By turns in the same runs: rt_venue from due against threads; and what a level costs for certain, a strategy"
        }
    };
    let grid = Grid::from_rows("bill_by_level", title, keys, &columns, rows)
        .note(format!("[95 % interval], {}; CPU s/M: CPU seconds of strategies for a million of their orders; adds: more than thread", samples(rows)))
        .note("memory of a strategy's process (a thread has none of its own), and the time from its start until it can trade");
    match turns.iter().max() {
        Some(most) if *most < MIN_REPEATS => {
            grid.note("p50, p99, orders beyond the threads' p99: over the blocks of each repeat; repeats may differ more")
        }
        Some(_) => grid.note("p50, p99, orders beyond the threads' p99: Student's over repeats, so that blocks of one run are no samples of their own; –: a repeat has none beyond"),
        None => grid,
    }
}

/// Says what the samples of the intervals are.
fn samples(rows: &[LevelRow<'_>]) -> &'static str {
    if rows.iter().any(|row| row.1.repeats > 1) {
        "Student's over repeats, of the difference over pairs"
    } else {
        "Student's over the strategies of the only repeat"
    }
}

fn counts(rows: &[LevelRow<'_>]) -> Grid {
    let mut columns = keys(rows);
    let keys = columns.len();
    columns.extend::<[Column<'_, LevelRow<'_>>; 8]>([
        ("preempted/s", &|row| value(row.1.preempted_per_s)),
        ("adds", &|row| added(row.1.preempted_per_s)),
        ("slept/s", &|row| value(row.1.slept_per_s)),
        ("adds", &|row| added(row.1.slept_per_s)),
        ("minor faults/s", &|row| value(row.1.minor_faults_per_s)),
        ("adds", &|row| added(row.1.minor_faults_per_s)),
        ("major faults/s", &|row| value(row.1.major_faults_per_s)),
        ("adds", &|row| added(row.1.major_faults_per_s)),
    ]);
    let has_interrupts = rows.iter().any(|row| row.1.interrupts_per_s.is_some());
    if has_interrupts {
        columns.extend::<[Column<'_, LevelRow<'_>>; 2]>([
            ("interrupts/s", &|row| value(row.1.interrupts_per_s)),
            ("adds", &|row| added(row.1.interrupts_per_s)),
        ]);
    }
    columns.extend::<[Column<'_, LevelRow<'_>>; 2]>([
        ("touched by steal", &|row| stolen(row.1.stolen)),
        ("against thread", &|row| against_threads(row.1.stolen)),
    ]);
    let title = "What isolation can change, a strategy: preemptions, sleeps and page faults a second";
    let interrupts = if has_interrupts {
        "interrupts: of the cores on which only the level's strategies ran"
    } else {
        "interrupts are not known by level: no level has cores of its own, or the kernel does not count them"
    };
    Grid::from_rows("bill_counts", title, keys, &columns, rows)
        .note(format!("[95 % interval], {}; adds: more than thread", samples(rows)))
        .note(interrupts)
        .note(format!(
            "touched by steal: the orders that p99 without steal leaves out, which no level should change: = within {} points",
            plain(STOLEN_MARGIN * 100.0)
        ))
}

/// `2.31 % [1.90, 2.72]`
fn stolen(found: Option<StolenShare>) -> String {
    let Some(StolenShare { share, .. }) = found else { return "not known".into() };
    let percent = |share: f64| plain((share * 100.0).clamp(0.0, 100.0));
    let ends = share.interval.map(|ends| format!(" [{}]", ends.map(percent).join(", ")));
    format!("{} %{}", percent(share.value), ends.unwrap_or_default())
}

/// `= +0.10 [−0.05, +0.25]`, in percentage points.
fn against_threads(found: Option<StolenShare>) -> String {
    let Some((added, equality)) = found.and_then(|found| found.share.added.zip(found.equality)) else {
        return "–".into();
    };
    let mark = match equality {
        Verdict::Equivalent => "=",
        Verdict::Slower => "more:",
        Verdict::Faster => "fewer:",
        Verdict::CannotTell => "?",
    };
    let points = |share: f64| signed(share * 100.0);
    format!("{mark} {} [{}, {}]", points(added.value), points(added.low), points(added.high))
}
