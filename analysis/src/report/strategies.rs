//! Strategies of several kinds, or in several languages, beside each other.

use super::units::{count, duration, duration_or_dash, percent, short};
use crate::escape::is_obeyed;
use crate::summary::{StrategySummary, Summary};
use crate::table::{Grid, GridRow};
use crate::tail::Cause;
use protocol::plan::Trading;

/// More strategies than this are not listed one by one.
const SHOWN: usize = 16;
/// A name is no longer than this.
const NAME: usize = 20;

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// What a kind is called in a table: one of bulkhead's own by its name; of a command the program, and behind one that runs others the last of
/// its words that is no flag and no number: `python3 strategy.py`.
pub fn called(kind: &str) -> String {
    let Some(command) = Trading::command_of(kind) else { return kind.to_owned() };
    let mut words = command.split_whitespace();
    let program = last(words.next().unwrap_or_default());
    let is_name = |word: &&str| !word.starts_with('-') && word.parse::<f64>().is_err();
    let what = words.rfind(is_name).map(last);
    let name = match what {
        Some(what) => format!("{program} {what}"),
        None => program.to_owned(),
    };
    let plain = name.chars().map(|c| if is_obeyed(c) { '?' } else { c });
    if name.chars().count() <= NAME { plain.collect() } else { plain.take(NAME - 1).chain(['…']).collect() }
}

fn names(own: &StrategySummary) -> Vec<String> {
    vec![own.strategy.to_string(), called(&own.kind)]
}

fn grid(name: &str, title: &str, head: &[&str], rows: Vec<Vec<String>>) -> Grid {
    Grid {
        name: name.into(),
        title: title.into(),
        head: head.iter().map(|head| (*head).to_owned()).collect(),
        keys: 2,
        rows: rows.into_iter().map(GridRow::plain).collect(),
        notes: Vec::new(),
    }
}

/// Mebibytes.
fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "–".into(), |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)))
}

/// The tables; none for a run whose strategies are all of one kind.
pub(crate) fn grids(summary: &Summary) -> Vec<Grid> {
    let all = &summary.strategies;
    if all.is_empty() {
        return Vec::new();
    }
    let rows = |cells: &dyn Fn(&StrategySummary) -> Vec<String>| -> Vec<Vec<String>> {
        all.iter().take(SHOWN).map(|own| [names(own), cells(own)].concat()).collect()
    };
    let latency = rows(&|own| {
        let (way, slip) = (&own.rt_venue, &own.slip);
        let times = [way.p50_ns, way.p99_ns, way.p999_ns, way.max_ns, slip.p50_ns, slip.p99_ns];
        [short(own.sent)].into_iter().chain(times.map(duration_or_dash)).collect()
    });
    let took = rows(&|own| {
        let usage = own.usage.unwrap_or_default();
        vec![
            duration_or_dash(usage.startup_ns),
            duration_or_dash(usage.startup_cpu_ns),
            duration_or_dash(own.cpu_ns()),
            mebibytes(usage.peak_bytes),
            mebibytes(usage.shared_bytes),
            short(own.gaps),
            duration(own.longest_gap_ns),
        ]
    });
    let why = rows(&|own| {
        let tail = own.tail.as_ref();
        let share = |cause| percent(tail.and_then(|tail| tail.share(cause)));
        let touched = tail.map_or_else(|| "–".into(), |tail| short(tail.touched));
        let orders = tail.map_or_else(|| "–".into(), |tail| short(tail.orders));
        [touched, orders].into_iter().chain(Cause::SHOWN.map(share)).collect::<Vec<_>>()
    });
    let mut grids = vec![
        grid(
            "strategies",
            "by strategy: rt_venue of its orders, and how late it sent those that were due (slip)",
            &["strategy", "program", "sent", "p50", "p99", "p99.9", "max", "slip p50", "slip p99"],
            latency,
        ),
        grid(
            "strategies_usage",
            "what each took, by the kernel: time and CPU until it was ready, CPU from then on, most memory, what of it is shared with the run",
            &["strategy", "program", "start-up", "its CPU", "CPU", "memory", "shared", "gaps", "longest"],
            took,
        ),
        grid(
            "strategies_tail",
            "orders that a gap touched, and where the time of the slowest 1 % of each went",
            &[&["strategy", "program", "touched", "slowest"][..], &Cause::SHOWN.map(Cause::name)].concat(),
            why,
        ),
    ];
    if let Some(hidden) = all.len().checked_sub(SHOWN).filter(|hidden| *hidden > 0) {
        let note = format!("… and {} more: see summary.json", count(hidden as u64));
        grids.iter_mut().for_each(|grid| grid.notes.push(note.clone()));
    }
    grids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_by_what_it_is() {
        for (kind, name) in [
            ("player", "player"),
            ("exec:./strategy", "strategy"),
            ("exec:/a/b/strategy-c 50000", "strategy-c"),
            ("exec:python3 -X dev x/strategy.py 50000", "python3 strategy.py"),
            ("exec:/jdk/bin/java -Xmx64m -cp classes Strategy 0 7", "java Strategy"),
            ("exec:./a-program-with-a-name-of-its-own", "a-program-with-a-na…"),
            ("exec:", ""),
        ] {
            assert_eq!(called(kind), name, "{kind}");
        }
    }
}
