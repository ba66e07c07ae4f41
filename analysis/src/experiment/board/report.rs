//! The report of the board benchmark: cases, readers, and the figures that the tables of the
//! benchmark that this project started from omit.

use super::seed_tables::{self, Labelled};
use super::time_plot;
use super::{BoardCase, BoardReader, BoardSkew, BoardUsage, Boards, KIND};
use crate::experiment::time_unit::TimeUnit;
use crate::experiment::{ALL, BriefReport, ExperimentReport, PAGE, ReportSection, TERMINAL, machine_facts};
use maud::{Markup, html};
use record::cpu_list;
use record::numbers::{count, counted, duration, duration_or_dash, percent, plain, plural, short};
use verdict::chart::percentile_plot::{self, PercentileLine};
use verdict::summary::Distribution;
use verdict::table::{Column, Grid, GridRow};

/// More readers than this are not listed one by one.
const MAX_READERS_LISTED: usize = 16;

/// Returns the tables and charts of the board benchmark (`launcher board`).
pub fn report(boards: &Boards) -> ExperimentReport {
    let cases: Vec<Labelled<'_>> = boards.cases.iter().zip(labels(&boards.cases)).collect();
    let section = |(number, (case, label)): (usize, &Labelled<'_>)| {
        ReportSection::new(format!("case-{number}"), label)
            .charts(percentiles(case, number))
            .charts(time_plot::draw(case, number))
            .tables(TERMINAL | PAGE, [case_table(case, number)])
            .tables(TERMINAL | PAGE, readers(case, number))
    };
    let [writes, reads] = seed_tables::tables(boards, &cases);
    let rows = [writes, reads, second_table(&cases)];
    let rows =
        ReportSection::new("rows", "All cases").tables(ALL, rows.into_iter().chain(skew_table(&cases)));
    let interrupted = if boards.interrupted { ", interrupted" } else { "" };
    ExperimentReport {
        name: "board",
        heading: format!("board, {} on {}", boards.started, boards.machine.cpu_model),
        title: KIND.title.into(),
        subject: format!("{}, on {}", counted(boards.cases.len() as u64, "case"), boards.machine.cpu_model),
        origin: format!("started {}, bulkhead {}{interrupted}", boards.started, boards.version),
        answer: answer(boards),
        brief: BriefReport { answer: brief_answer(boards, &cases), table: Some(brief_table(&cases)) },
        fitness: boards.fitness(),
        counts: counts(boards),
        facts: machine_facts(&boards.machine),
        notes: boards.notes.clone(),
        sections: cases.iter().enumerate().map(section).chain([rows]).collect(),
        ..ExperimentReport::default()
    }
}

fn counts(boards: &Boards) -> Vec<(&'static str, u64)> {
    let valid = boards.cases.iter().filter(|case| case.is_valid()).count();
    vec![("sound", valid as u64), ("torn", torn(boards)), ("cases", boards.cases.len() as u64)]
}

fn torn(boards: &Boards) -> u64 {
    boards.cases.iter().map(|case| case.all.torn).fold(0, u64::saturating_add)
}

/// The result in one sentence: the propagation of the first case with readers, and torn values.
fn answer(boards: &Boards) -> String {
    let (all, torn) = (boards.cases.len(), torn(boards));
    let valid = boards.cases.iter().filter(|case| case.is_valid()).count();
    let checked = format!(
        "{valid} of {} sound, {} torn{}",
        counted(all as u64, "case"),
        counted(torn, "value"),
        missed(boards)
    );
    let timed = boards.cases.iter().find_map(|case| Some((case, case.all.propagation.p50_ns?)));
    match timed {
        Some((case, p50)) => {
            let p99 = case.all.propagation.p99_ns;
            let p99 = p99.map_or_else(String::new, |p99| format!(", {} at p99", duration(p99)));
            let readers = counted(case.readers, "reader");
            format!(
                "a reader has a written value after {} at p50{p99} ({}, {readers}); {checked}",
                duration(p50),
                case.mode
            )
        }
        None => checked,
    }
}

/// Returns the answer with the first problem or figure at its limit, and the number of the others.
fn brief_answer(boards: &Boards, cases: &[Labelled<'_>]) -> String {
    let problem = |(case, label): &Labelled<'_>| {
        let problems = case.problems.iter().map(|problem| format!("NOT SOUND: {label}: {problem}"));
        let warnings = boards.warn.check(case).into_iter();
        let warnings = warnings.map(|warning| format!("WARNING: {label}: {}", warning.describe()));
        problems.chain(warnings).collect::<Vec<_>>()
    };
    let found: Vec<String> = cases.iter().flat_map(problem).collect();
    let Some((first, others)) = found.split_first() else { return answer(boards) };
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    format!("{}. {first}{more}", answer(boards))
}

/// Returns the table of the first screen: how long a value takes to the readers, in each case.
fn brief_table(cases: &[Labelled<'_>]) -> Grid {
    let time = |ns: Option<u64>| duration_or_dash(ns);
    let columns: [Column<'_, Labelled<'_>>; 7] = [
        ("load", &|(_, label)| label.clone()),
        ("writes/s", &|(case, _)| short(case.writer.writes_per_s.round() as u64)),
        ("write p99", &|(case, _)| time(case.writer.write.p99_ns)),
        ("p50", &|(case, _)| time(case.all.propagation.p50_ns)),
        ("p99", &|(case, _)| time(case.all.propagation.p99_ns)),
        ("missed", &|(case, _)| percent(case.missed_share())),
        ("torn", &|(case, _)| short(case.all.torn)),
    ];
    let title = "The call to write; p50 and p99 from the write until a reader has the value";
    Grid::from_rows("board_brief", title, 1, &columns, cases)
}

/// The share of versions from which on a headline names what the readers missed.
const MIN_MISSED: f64 = 0.01;

/// What the readers missed in the case that missed most; empty if that is next to nothing.
fn missed(boards: &Boards) -> String {
    let shares = boards.cases.iter().filter_map(|case| Some((case, case.missed_share()?)));
    match shares.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share >= MIN_MISSED) {
        Some((case, share)) => {
            format!("; readers missed {} of the versions ({})", percent(Some(share)), case.mode)
        }
        None => String::new(),
    }
}

/// The settings that distinguish the cases, in short.
fn labels(cases: &[BoardCase]) -> Vec<String> {
    let parts = |case: &BoardCase| {
        [
            case.mode.clone(),
            counted(case.readers, "reader"),
            size(case.size_bytes),
            case.isolation.to_string(),
            case.waiting.clone(),
            case.on.clone(),
            format!("nodes {}", case.nodes),
        ]
    };
    let all: Vec<_> = cases.iter().map(parts).collect();
    let varies: Vec<bool> =
        (0..7).map(|part| part == 0 || all.iter().any(|parts| parts[part] != all[0][part])).collect();
    let label = |parts: &[String; 7]| {
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
fn measures(case: &BoardCase) -> Vec<(&'static str, Distribution)> {
    let BoardCase { writer, all, .. } = case;
    let mut measures = vec![("write", writer.write)];
    measures.extend(writer.from_due.map(|figures| ("from due", figures)));
    if case.readers > 0 {
        measures.extend([("propagation", all.propagation), ("read", all.read)]);
        measures.extend(all.stale.map(|figures| ("stale", figures)));
    }
    measures
}

fn percentiles(case: &BoardCase, number: usize) -> Option<Markup> {
    const CLASSES: [&str; 5] = ["c1 strong", "c2 dash", "c3 strong", "c4 dash", "c5 dots"];
    let measures = measures(case);
    let mut lines = Vec::new();
    for ((name, figures), class) in measures.iter().zip(CLASSES) {
        let curve = case.curves.iter().find(|curve| curve.measure == *name);
        lines.extend(curve.map(|curve| PercentileLine {
            name,
            class,
            points: &curve.points,
            figures: *figures,
        }));
    }
    let drawing = percentile_plot::draw(&format!("percentiles-{number}"), &lines)?;
    Some(html! { figure { figcaption { "Latency by percentile" } (drawing) } })
}

fn case_table(case: &BoardCase, number: usize) -> Grid {
    let values = |figures: &Distribution| {
        let Distribution { p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = *figures;
        [p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns]
    };
    let unit = TimeUnit::for_known(measures(case).iter().flat_map(|(_, figures)| values(figures)));
    let row = |(name, figures): (&str, Distribution)| {
        let values = values(&figures).map(|ns| unit.format_whole(ns));
        GridRow::plain([vec![name.to_owned()], values.to_vec(), vec![short(figures.count)]].concat())
    };
    let title = format!("{}, in {}", title(case), unit.name());
    let head = ["measure", "p50", "p90", "p99", "p99.9", "p99.99", "max", "count"];
    let rows = measures(case).into_iter().map(row);
    Grid { notes: notes(case), ..Grid::new(format!("case-{number}"), title, 1, head, rows) }
}

fn title(case: &BoardCase) -> String {
    let waits = if case.readers > 0 {
        format!(" that {}{}", case.waiting, if case.readers == 1 { "s" } else { "" })
    } else {
        String::new()
    };
    let readers = plural("reader", case.readers);
    let carrier = if case.carrier == "board" { String::new() } else { format!(" ({})", case.carrier) };
    let cells = plural("cell", case.cells);
    let nodes = if case.nodes.is_empty() { String::new() } else { format!(", NUMA nodes {}", case.nodes) };
    format!(
        "{}: {} {readers}{waits}, {},\n{} in {} {cells} of {} slots on {}{nodes}, {}{carrier}",
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

fn cpu(usage: Option<BoardUsage>, case: &BoardCase) -> String {
    percent(usage.map(|usage| usage.cpu_ns as f64 / case.duration_ns as f64))
}

fn notes(case: &BoardCase) -> Vec<String> {
    let BoardCase { writer, all, .. } = case;
    let of_readers: Option<f64> =
        case.each.iter().map(|reader| reader.usage.map(|usage| usage.cpu_ns as f64)).sum();
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
            percent(of_readers.map(|cpu| cpu / case.duration_ns as f64)),
        ),
    }];
    let cores = cpu_list::format(&case.reader_cores);
    notes.push(match (case.writer_core, case.readers, case.shared) {
        (None, ..) => "not pinned: this process may use no core that is known".into(),
        (Some(core), 0, _) => format!("writer on core {core}"),
        (Some(core), _, false) => format!("writer on core {core}, a core for each reader: {cores}"),
        (Some(core), readers, true) if case.reader_cores == [core] => {
            format!(
                "one core for the writer and {}: every time includes waiting for it",
                counted(readers, "reader")
            )
        }
        (Some(core), readers, true) => format!(
            "writer on core {core}, {readers} readers share {cores}: propagation and staleness include waiting for it"
        ),
    });
    notes.extend(case.problems.iter().map(|problem| format!("NOT SOUND: {problem}")));
    notes
}

/// The readers of a case, one by one; nothing for fewer than two.
fn readers(case: &BoardCase, number: usize) -> Option<Grid> {
    if case.each.len() < 2 {
        return None;
    }
    let unit = TimeUnit::for_known(case.each.iter().flat_map(|reader| {
        let Distribution { p50_ns, p99_ns, max_ns, .. } = reader.reading.propagation;
        [p50_ns, p99_ns, max_ns]
    }));
    let core = |reader: &BoardReader| reader.core.map_or_else(|| "–".into(), |core| core.to_string());
    let columns: [Column<'_, BoardReader>; 10] = [
        ("reader", &|reader| reader.name.clone()),
        ("core", &core),
        ("reads", &|reader| short(reader.reading.reads)),
        ("missed", &|reader| short(reader.reading.missed)),
        ("unseen", &|reader| short(reader.reading.unseen)),
        ("torn", &|reader| short(reader.reading.torn)),
        ("p50", &|reader| unit.format_whole(reader.reading.propagation.p50_ns)),
        ("p99", &|reader| unit.format_whole(reader.reading.propagation.p99_ns)),
        ("max", &|reader| unit.format_whole(reader.reading.propagation.max_ns)),
        ("cpu", &|reader| cpu(reader.usage, case)),
    ];
    let title = format!("Each reader: propagation in {}, and what it missed", unit.name());
    let listed = case.each.iter().take(MAX_READERS_LISTED);
    let grid = Grid::from_rows(format!("readers-{number}"), title, 1, &columns, listed);
    Some(match case.each.len().saturating_sub(MAX_READERS_LISTED) {
        0 => grid,
        hidden => grid.note(format!("{hidden} more in experiment.json")),
    })
}

/// How far apart readers decided; nothing without decision ticks.
fn skew_table(cases: &[Labelled<'_>]) -> Option<Grid> {
    let with_ticks: Vec<(&BoardSkew, &String)> =
        cases.iter().filter_map(|(case, label)| Some((case.skew.as_ref()?, label))).collect();
    let (first, _) = with_ticks.first()?;
    let unit = TimeUnit::for_known([first.apart.p50_ns, first.apart.p99_ns, first.apart.max_ns]);
    let share = |part: u64, skew: &BoardSkew| {
        percent((skew.decisions > 0).then(|| part as f64 / skew.decisions as f64))
    };
    let columns: [Column<'_, (&BoardSkew, &String)>; 8] = [
        ("load", &|(_, label)| (*label).clone()),
        ("decisions", &|(skew, _)| short(skew.decisions)),
        ("differ", &|(skew, _)| share(skew.differing, skew)),
        ("versions apart", &|(skew, _)| short(skew.max_versions)),
        ("p50", &|(skew, _)| unit.format_whole(skew.apart.p50_ns)),
        ("p99", &|(skew, _)| unit.format_whole(skew.apart.p99_ns)),
        ("max", &|(skew, _)| unit.format_whole(skew.apart.max_ns)),
        ("named lost", &|(skew, _)| share(skew.overwritten, skew)),
    ];
    let title =
        format!("What readers decided on, tick by tick; from the first read to the last, in {}", unit.name());
    let grid = Grid::from_rows("skew", title, 1, &columns, &with_ticks);
    Some(grid.note(
        "differ: decisions whose readers took the newest value and had different versions. named lost: those for \
         which a reader could not read the version that the tick names any more; all others decide on one version",
    ))
}

/// What those rows leave out.
fn second_table(cases: &[Labelled<'_>]) -> Grid {
    let unit = TimeUnit::for_known(cases.iter().flat_map(|(case, _)| {
        let p99 = [case.writer.from_due, case.all.stale].map(|figures| figures?.p99_ns);
        p99.into_iter().chain([case.all.propagation.p50_ns, case.all.propagation.p99_ns])
    }));
    let p99 = |figures: Option<Distribution>| unit.format_whole(figures.and_then(|figures| figures.p99_ns));
    let columns: [Column<'_, Labelled<'_>>; 7] = [
        ("load", &|(_, label)| label.clone()),
        ("due p99", &|(case, _)| p99(case.writer.from_due)),
        ("prop p50", &|(case, _)| unit.format_whole(case.all.propagation.p50_ns)),
        ("p99", &|(case, _)| unit.format_whole(case.all.propagation.p99_ns)),
        ("stale p99", &|(case, _)| p99(case.all.stale)),
        ("missed", &|(case, _)| percent(case.missed_share())),
        ("torn", &|(case, _)| short(case.all.torn)),
    ];
    let title =
        format!("What they leave out: lateness, the way to the readers, in {}; what was missed", unit.name());
    Grid::from_rows("left-out", title, 1, &columns, cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn headline_names_what_readers_missed() {
        let mut boards = Boards::from_experiment(&fixture("saved/board.json")).unwrap();
        boards.cases.truncate(1);
        let case = &mut boards.cases[0];
        (case.mode, case.readers, case.writer.writes) = ("stress".into(), 2, 1_000);
        // A regression: "1 of 1 cases sound", and nothing else.
        case.all.missed = 1_900;
        let message = answer(&boards);
        assert!(message.ends_with("; readers missed 95% of the versions (stress)"), "{message}");
        boards.cases[0].all.missed = 3;
        assert!(!answer(&boards).contains("missed"), "{}", answer(&boards));
    }
}
