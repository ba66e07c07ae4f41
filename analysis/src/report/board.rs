//! The tables of the benchmark of the board: each case, its readers, and the rows that the seed's benchmark has.

use crate::experiment::{BoardCase, BoardUsage, Boards};
use crate::lists;
use crate::report::grid::{Grid, GridRow};
use crate::report::units::{count, duration, duration_or_dash, percent, plain, short};
use crate::summary::Distribution;

/// More readers than this are not listed one by one.
const READERS_SHOWN: usize = 16;

/// What tells the cases apart, in short.
pub fn labels(cases: &[BoardCase]) -> Vec<String> {
    let parts = |case: &BoardCase| {
        [
            case.mode.clone(),
            format!("{} readers", case.readers),
            size(case.size_bytes),
            case.isolation.to_string(),
            case.waiting.clone(),
            case.on.clone(),
        ]
    };
    let all: Vec<_> = cases.iter().map(parts).collect();
    let varies: Vec<bool> =
        (0..6).map(|part| part == 0 || all.iter().any(|parts| parts[part] != all[0][part])).collect();
    let label = |parts: &[String; 6]| {
        let shown: Vec<&str> =
            parts.iter().zip(&varies).filter(|(_, varies)| **varies).map(|(part, _)| part.as_str()).collect();
        shown.join(" ")
    };
    all.iter().map(label).collect()
}

/// `64 B`, `4 KiB`.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// What a case's measures are called, with their figures.
pub fn measures(case: &BoardCase) -> Vec<(&'static str, Distribution)> {
    let BoardCase { writer, all, .. } = case;
    let mut measures = vec![("write", writer.write)];
    measures.extend(writer.from_due.map(|figures| ("from due", figures)));
    if case.readers > 0 {
        measures.extend([("propagation", all.propagation), ("read", all.read)]);
        measures.extend(all.stale.map(|figures| ("stale", figures)));
    }
    measures
}

/// The figures of a case: where its times go.
pub fn case(case: &BoardCase, number: usize) -> Grid {
    let row = |(name, figures): (&str, Distribution)| {
        let Distribution { count, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = figures;
        let values = [p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns].map(duration_or_dash);
        GridRow::plain([vec![name.to_owned()], values.to_vec(), vec![short(count)]].concat())
    };
    Grid {
        name: format!("case-{number}"),
        title: title(case),
        head: ["measure", "p50", "p90", "p99", "p99.9", "p99.99", "max", "count"].map(String::from).into(),
        keys: 1,
        rows: measures(case).into_iter().map(row).collect(),
        notes: notes(case),
    }
}

fn title(case: &BoardCase) -> String {
    let waits = if case.readers > 0 {
        format!(" that {}{}", case.waiting, if case.readers == 1 { "s" } else { "" })
    } else {
        String::new()
    };
    let readers = if case.readers == 1 { "reader" } else { "readers" };
    let carrier = if case.carrier == "board" { String::new() } else { format!(" ({})", case.carrier) };
    let cells = if case.cells == 1 { "cell" } else { "cells" };
    format!(
        "{}: {} {readers}{waits}, {},\n{} in {} {cells} of {} slots on {}, {}{carrier}",
        case.mode,
        case.readers,
        case.isolation,
        size(case.size_bytes),
        count(case.cells),
        case.slots,
        case.on,
        duration(case.duration_ns),
    )
}

/// A thread's share of a core.
fn cpu(usage: Option<BoardUsage>, case: &BoardCase) -> String {
    percent(usage.map(|usage| usage.cpu_ns as f64 / case.duration_ns as f64))
}

fn notes(case: &BoardCase) -> Vec<String> {
    let BoardCase { writer, all, .. } = case;
    let mut notes = vec![match case.readers {
        0 => {
            format!("{} writes/s; CPU of the writer {}", plain(writer.writes_per_s), cpu(writer.usage, case))
        }
        _ => format!(
            "{} writes/s, {} reads/s; missed {}, torn {}, given up {}; CPU of the writer {}, of all readers {}",
            plain(writer.writes_per_s),
            plain(all.reads_per_s),
            count(all.missed),
            count(all.torn),
            count(all.overtaken),
            cpu(writer.usage, case),
            percent(
                case.each
                    .iter()
                    .map(|reader| reader.usage.map(|usage| usage.cpu_ns as f64))
                    .sum::<Option<f64>>()
                    .map(|cpu| cpu / case.duration_ns as f64)
            ),
        ),
    }];
    let cores = lists::format(&case.reader_cores);
    notes.push(match (case.writer_core, case.readers, case.shared) {
        (None, ..) => "not pinned: this process may use no core that is known".into(),
        (Some(core), 0, _) => format!("writer on core {core}"),
        (Some(core), _, false) => format!("writer on core {core}, a core for each reader: {cores}"),
        (Some(core), readers, true) if case.reader_cores == [core] => {
            format!("one core for the writer and {readers} readers: every time includes waiting for it")
        }
        (Some(core), readers, true) => format!(
            "writer on core {core}, {readers} readers share {cores}: propagation and staleness include waiting for it"
        ),
    });
    notes.extend(case.problems.iter().map(|problem| format!("NOT SOUND: {problem}")));
    notes
}

/// The readers of a case, one by one; nothing for fewer than two.
pub fn readers(case: &BoardCase, number: usize) -> Option<Grid> {
    if case.each.len() < 2 {
        return None;
    }
    let row = |reader: &crate::experiment::BoardReader| {
        let reading = &reader.reading;
        let Distribution { p50_ns, p99_ns, max_ns, .. } = reading.propagation;
        let mut cells = vec![
            reader.name.clone(),
            reader.core.map_or_else(|| "–".into(), |core| core.to_string()),
            short(reading.reads),
            short(reading.missed),
            short(reading.unseen),
            short(reading.torn),
        ];
        cells.extend([p50_ns, p99_ns, max_ns].map(duration_or_dash));
        cells.push(cpu(reader.usage, case));
        GridRow::plain(cells)
    };
    let hidden = case.each.len().saturating_sub(READERS_SHOWN);
    let mut notes = Vec::new();
    if hidden > 0 {
        notes.push(format!("{hidden} more in board.json"));
    }
    Some(Grid {
        name: format!("readers-{number}"),
        title: "Each reader: propagation, and what it missed".into(),
        head: ["reader", "core", "reads", "missed", "unseen", "torn", "p50", "p99", "max", "cpu"]
            .map(String::from)
            .into(),
        keys: 1,
        rows: case.each.iter().take(READERS_SHOWN).map(row).collect(),
        notes,
    })
}

/// The rows that the seed's benchmark has, in its layout.
pub fn seed_rows(boards: &Boards) -> Grid {
    let row = |(case, label): (&BoardCase, String)| {
        let (write, read) = (case.writer.write, case.all.read);
        let values = [write.p50_ns, write.p99_ns, write.max_ns, read.p50_ns, read.p99_ns, read.max_ns];
        let cells = values.map(duration_or_dash).to_vec();
        let rates = [case.writer.writes_per_s, case.all.reads_per_s].map(|rate| short(rate.round() as u64));
        GridRow::plain([vec![label], cells, rates.to_vec()].concat())
    };
    let mut notes = Vec::new();
    for (case, label) in boards.cases.iter().zip(labels(&boards.cases)) {
        let measured = [
            ("writer", case.writer.write.p99_ns, boards.warn.writer_p99_ns),
            ("readers", case.all.read.p99_ns, boards.warn.reader_p99_ns),
        ];
        for (who, found, limit) in measured {
            if let (Some(found), Some(limit)) = (found, limit)
                && found > limit
            {
                notes.push(format!(
                    "WARNING: {label}: p99 of the {who} is {}, above {}",
                    duration(found),
                    duration(limit)
                ));
            }
        }
    }
    Grid {
        name: "seed-rows".into(),
        title: "The seed's rows: the call to write, the call to read, and how many".into(),
        head: ["load", "write p50", "p99", "max", "read p50", "p99", "max", "writes/s", "reads/s"]
            .map(String::from)
            .into(),
        keys: 1,
        rows: boards.cases.iter().zip(labels(&boards.cases)).map(row).collect(),
        notes,
    }
}

/// What those rows leave out.
pub fn left_out(boards: &Boards) -> Grid {
    let row = |(case, label): (&BoardCase, String)| {
        let late = case.writer.from_due.and_then(|figures| figures.p99_ns);
        let Distribution { p50_ns, p99_ns, .. } = case.all.propagation;
        let stale = case.all.stale.and_then(|figures| figures.p99_ns);
        let written = case.writer.writes.saturating_mul(case.readers);
        let missed = (written > 0).then(|| case.all.missed as f64 / written as f64);
        let mut cells = vec![label];
        cells.extend([late, p50_ns, p99_ns, stale].map(duration_or_dash));
        cells.extend([percent(missed), short(case.all.torn)]);
        GridRow::plain(cells)
    };
    Grid {
        name: "left-out".into(),
        title: "What they leave out: lateness, the way to the readers, what was missed".into(),
        head: ["load", "due p99", "prop p50", "p99", "stale p99", "missed", "torn"].map(String::from).into(),
        keys: 1,
        rows: boards.cases.iter().zip(labels(&boards.cases)).map(row).collect(),
        notes: Vec::new(),
    }
}

/// All tables, as they are printed.
pub fn grids(boards: &Boards) -> Vec<Grid> {
    let mut grids = Vec::new();
    for (number, one) in boards.cases.iter().enumerate() {
        grids.push(case(one, number));
        grids.extend(readers(one, number));
    }
    grids.extend([seed_rows(boards), left_out(boards)]);
    grids
}
