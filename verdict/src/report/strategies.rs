//! Report that compares strategies of several kinds or languages.

use super::units::{count, duration, duration_or_dash as time, percent, short};
use crate::summary::{StrategySummary, Summary};
use crate::table::{Column, Grid};
use merge::tail::Cause;
use protocol::plan::Trading;
use record::escape::is_control;

const MAX_STRATEGIES: usize = 16;
const MAX_NAME_WIDTH: usize = 20;

fn file_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// Returns how tables name a kind of strategy: a built-in kind by its own name (`player`), a
/// command by its program (`python3 strategy.py`). The command's last argument that is neither an
/// option nor a number is added to the program.
pub fn display_name(kind: &str) -> String {
    let Some(command) = Trading::command_of(kind) else { return kind.to_owned() };
    let mut arguments = command.split_whitespace();
    let program = file_name(arguments.next().unwrap_or_default());
    let is_name = |word: &&str| !word.starts_with('-') && word.parse::<f64>().is_err();
    let what = arguments.rfind(is_name).map(file_name);
    let name = match what {
        Some(what) => format!("{program} {what}"),
        None => program.to_owned(),
    };
    let plain = name.chars().map(|c| if is_control(c) { '?' } else { c });
    if name.chars().count() <= MAX_NAME_WIDTH {
        plain.collect()
    } else {
        plain.take(MAX_NAME_WIDTH - 1).chain(['…']).collect()
    }
}

fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "–".into(), |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)))
}

/// Returns the tables that compare strategies of several kinds; none for a run with one kind.
pub(super) fn grids(summary: &Summary) -> Vec<Grid> {
    let all = &summary.strategies;
    if all.is_empty() {
        return Vec::new();
    }
    let isolation =
        |row: &StrategySummary| row.level.map_or_else(|| "–".to_owned(), |level| level.to_string());
    let mut keys: Vec<Column<'_, StrategySummary>> =
        vec![("strategy", &|row| row.strategy.to_string()), ("program", &|row| display_name(&row.kind))];
    if summary.isolation.only().is_none() {
        keys.push(("isolation", &isolation));
    }
    let grid = |name, title, columns: &[Column<'_, StrategySummary>]| {
        Grid::from_rows(name, title, keys.len(), &[&keys, columns].concat(), all.iter().take(MAX_STRATEGIES))
    };
    let latency = grid(
        "strategies",
        "by strategy: rt_venue of its orders, and how late it sent those that were due (slip)",
        &[
            ("sent", &|row| short(row.sent)),
            ("p50", &|row| time(row.rt_venue.p50_ns)),
            ("p99", &|row| time(row.rt_venue.p99_ns)),
            ("p99.9", &|row| time(row.rt_venue.p999_ns)),
            ("max", &|row| time(row.rt_venue.max_ns)),
            ("slip p50", &|row| time(row.send_lag.p50_ns)),
            ("slip p99", &|row| time(row.send_lag.p99_ns)),
        ],
    );
    let took = grid(
        "strategies_usage",
        "what each took, by the kernel: time and CPU until it was ready, CPU from then on, most memory, what of it is shared with the run",
        &[
            ("start-up", &|row| time(row.usage.unwrap_or_default().startup_ns)),
            ("its CPU", &|row| time(row.usage.unwrap_or_default().startup_cpu_ns)),
            ("CPU", &|row| time(row.cpu_ns())),
            ("memory", &|row| mebibytes(row.usage.unwrap_or_default().peak_bytes)),
            ("shared", &|row| mebibytes(row.usage.unwrap_or_default().shared_bytes)),
            ("gaps", &|row| short(row.gaps)),
            ("longest", &|row| duration(row.longest_gap_ns)),
        ],
    );
    let count_or_dash = |number: Option<u64>| number.map_or_else(|| "–".into(), short);
    let touched = |row: &StrategySummary| count_or_dash(row.tail.as_ref().map(|tail| tail.stall_affected));
    let slowest = |row: &StrategySummary| count_or_dash(row.tail.as_ref().map(|tail| tail.orders));
    let share =
        |cause| move |row: &StrategySummary| percent(row.tail.as_ref().and_then(|tail| tail.share(cause)));
    let shares = Cause::DISPLAY_ORDER.map(|cause| (cause.name(), share(cause)));
    let mut columns: Vec<Column<'_, StrategySummary>> = vec![("touched", &touched), ("slowest", &slowest)];
    columns.extend(shares.iter().map(|(name, share)| (*name, share as _)));
    let why = grid(
        "strategies_tail",
        "orders that a gap touched, and where the time of the slowest 1 % of each went",
        &columns,
    );
    let mut grids = vec![latency, took, why];
    if let Some(hidden) = all.len().checked_sub(MAX_STRATEGIES).filter(|hidden| *hidden > 0) {
        let note = format!("… and {} more: see summary.json", count(hidden as u64));
        grids.iter_mut().for_each(|grid| grid.notes.push(note.clone()));
    }
    grids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_name_strips_interpreter_and_flags() {
        for (kind, name) in [
            ("player", "player"),
            ("exec:./strategy", "strategy"),
            ("exec:/a/b/strategy-c 50000", "strategy-c"),
            ("exec:python3 -X dev x/strategy.py 50000", "python3 strategy.py"),
            ("exec:/jdk/bin/java -Xmx64m -cp classes Strategy 0 7", "java Strategy"),
            ("exec:./a-program-with-a-name-of-its-own", "a-program-with-a-na…"),
            ("exec:", ""),
        ] {
            assert_eq!(display_name(kind), name, "{kind}");
        }
    }
}
