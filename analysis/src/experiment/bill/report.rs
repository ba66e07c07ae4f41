//! The report of a bill: what a level adds to a technique, latencies, costs, and ratios to the
//! reference.

use super::{Added, Bill, BillRow};
use crate::chart::axis;
use crate::chart::interval_plot::{self, IntervalRow};
use crate::experiment::sweep::{frame, points};
use crate::experiment::{ALL, ExperimentReport, FILES, PAGE, Part, Section, SweepRecord, TERMINAL};
use crate::numbers::{count, duration, duration_or_dash, percent, plain, short};
use crate::stats::{ComparisonLine, Percentile, Spread, Verdict, format_ratio};
use crate::summary::Measure;
use crate::table::{Column, Grid, GridRow};
use crate::units::human_bytes;
use maud::Markup;
use protocol::plan::{Isolation, Technique};

/// A change that would be one if its interval did not hold 1.
const UNSURE: f64 = 0.02;
/// A class for each level, in the order in which they appear.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];
/// Above the charts.
const CHARTS: &str = "The difference to the reference of each row: the crate whose algorithm a technique is, or the technique itself under \
                      threads. Dots are ratios, bars their 95% intervals. Where a bar holds 1, no difference is seen.";

/// What a bill of that sweep shows: on the page with every point of the sweep.
pub fn report(sweep: &SweepRecord, bill: &Bill) -> ExperimentReport {
    let charts: Vec<Part> =
        Percentile::ALL.iter().filter_map(|percentile| chart(bill, *percentile)).map(Part::Chart).collect();
    let no_charts = "No difference is known: no row has a reference with enough repeats.";
    let text = Part::Text(if charts.is_empty() { no_charts } else { CHARTS }.into());
    let section = Section::new("bill", "What isolation costs")
        .with(headline(bill).map(|grid| Part::Table(grid, ALL)))
        .with(tables(bill))
        .with([text])
        .with(charts)
        .with([Part::List(remarks(bill))]);
    ExperimentReport {
        name: "bill",
        notes: bill.notes.clone(),
        sections: [vec![section], points(sweep)].concat(),
        ..frame(sweep, "The bill")
    }
}

/// The tables of the terminal and the page, a column each in the one for documents and programs.
fn tables(bill: &Bill) -> Vec<Part> {
    type Columns<'a> = Vec<Column<'a, BillRow>>;
    let keys: Columns<'_> =
        vec![("isolation", &BillRow::level), ("technique", &|row| row.technique.to_string())];
    let mut costs: Columns<'_> = vec![
        ("CPU s/M", &|row| row.cpu_s_per_million.map_or_else(|| "–".into(), plain)),
        ("start", &|row| time(row.startup_ns)),
        ("PSS", &|row| row.pss_bytes.map_or_else(|| "–".into(), |bytes| human_bytes(bytes as u64))),
        ("faults", &|row| whole(row.page_faults)),
        ("switches", &|row| whole(row.context_switches)),
    ];
    // This column is there once there is something in it.
    if bill.rows.iter().any(|row| row.contains.is_some()) {
        costs.push(("contains", &|row| row.contains.clone().unwrap_or_else(|| "–".into())));
    }
    let latencies: Columns<'_> = vec![
        ("p50", &|row| time(row.p50_ns)),
        ("p99", &|row| time(row.p99_ns)),
        ("p99.9", &|row| time(row.p999_ns)),
    ];
    let of = |measure, percentile| move |row: &BillRow| difference(row, measure, percentile);
    let ratios = Percentile::ALL.map(|percentile| of(Measure::RtVenue, percentile));
    let free = [Percentile::P99, Percentile::P999].map(|percentile| of(Measure::StallFree, percentile));
    let grid = |name: &str, title: &str, columns: &[Columns<'_>]| {
        Grid::from_rows(name, title, 2, &columns.concat(), &bill.rows)
    };
    let cost = grid("bill_cost", "what else a level costs", &[keys.clone(), costs.clone()]);
    let latency = grid(
        "bill_latency",
        "rt_venue: what the engine adds to an order",
        &[keys.clone(), latencies.clone(), vec![("against", &reference)]],
    );
    let against: Columns<'_> = vec![
        ("p50 vs reference", &ratios[0]),
        ("p99 vs reference", &ratios[1]),
        ("p99.9 vs reference", &ratios[2]),
    ];
    let against = grid(
        "bill_difference",
        "rt_venue against the reference: ratio [95 % interval]",
        &[keys.clone(), against],
    )
    .note("▲ slower, ▼ faster, no mark: no difference seen, ✗ not comparable");
    let mut shown = vec![cost, latency, against];
    if bill.rows.iter().any(|row| row.taken_out.is_some()) {
        let columns: Columns<'_> = vec![
            ("p99", &|row| time(row.p99_ns)),
            ("stall-free", &|row| time(row.stall_free_p99_ns)),
            ("p99.9", &|row| time(row.p999_ns)),
            ("stall-free", &|row| time(row.stall_free_p999_ns)),
            ("out", &|row| percent(row.taken_out)),
        ];
        let title = "rt_venue without the machine's stalls, beside what it is with them";
        shown.push(grid("bill_stall_free", title, &[keys.clone(), columns]).note(
            "out: the share of the orders that a stall touched; they are not in the stall-free figures",
        ));
        let columns: Columns<'_> =
            vec![("stall-free p99 vs reference", &free[0]), ("stall-free p99.9 vs reference", &free[1])];
        let title = "the same against the reference: ratio [95 % interval]";
        shown.push(grid("bill_stall_free_difference", title, &[keys.clone(), columns]));
    }
    let rest: Columns<'_> = vec![
        ("reference", &reference),
        ("p50 ratio", &ratios[0]),
        ("p99 ratio", &ratios[1]),
        ("p99.9 ratio", &ratios[2]),
        ("p99 stall-free", &|row| time(row.stall_free_p99_ns)),
        ("p99.9 stall-free", &|row| time(row.stall_free_p999_ns)),
        ("taken out", &|row| percent(row.taken_out)),
        ("p99 stall-free ratio", &free[0]),
        ("p99.9 stall-free ratio", &free[1]),
    ];
    let title = "The bill (rt_venue; ratio to the reference with its 95 % interval: ▲ slower, ▼ faster, ✗ not comparable)";
    let wide = grid("bill", title, &[keys, latencies, rest, costs]);
    let shown = shown.into_iter().map(|grid| Part::Table(grid, TERMINAL | PAGE));
    shown.chain([Part::Table(wide, FILES)]).collect()
}

fn time(ns: Option<f64>) -> String {
    duration_or_dash(ns.map(|ns| ns as u64))
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| short(value.round() as u64))
}

fn reference(row: &BillRow) -> String {
    row.reference.map_or_else(|| "–".into(), |found| format!("{}/{}", found.isolation, found.technique))
}

/// The line of a row that compares that figure with its reference.
fn line(row: &BillRow, measure: Measure, percentile: Percentile) -> Option<&ComparisonLine> {
    row.differences.iter().find(|line| line.measure == measure.name() && line.percentile == percentile)
}

const fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "▲ ",
        Verdict::Faster => "▼ ",
        Verdict::NoDifferenceSeen => "",
        Verdict::NotComparable => "✗ ",
    }
}

fn difference(row: &BillRow, measure: Measure, percentile: Percentile) -> String {
    let Some(line) = line(row, measure, percentile) else { return "–".into() };
    line.difference
        .as_ref()
        .map_or_else(|| "✗".into(), |found| format!("{}{}", mark(line.verdict), format_ratio(found)))
}

/// The table of what a level adds; `None` where no level stands beside threads. A row for each
/// technique, and one for each place of the machine's cores where it had several.
fn headline(bill: &Bill) -> Option<Grid> {
    let mut levels: Vec<String> = Vec::new();
    let mut rows: Vec<(Technique, Option<u64>)> = Vec::new();
    for row in &bill.rows {
        if !row.adds.is_empty() && !levels.contains(&row.level()) {
            levels.push(row.level());
        }
        for added in &row.adds {
            let key = (row.technique, place(added));
            if !rows.contains(&key) {
                rows.push(key);
            }
        }
    }
    (!levels.is_empty()).then_some(())?;
    // Technique by technique as the rows have them, all runs first, then from the nearest cores on.
    let order = |technique: &Technique| rows.iter().position(|(other, _)| other == technique);
    let mut sorted = rows.clone();
    sorted.sort_by_key(|(technique, floor)| (order(technique), *floor));
    let several = sorted.iter().any(|(_, floor)| floor.is_some());
    let cells = |(technique, floor): &(Technique, Option<u64>)| {
        let of = |level: &String| {
            let row = bill.rows.iter().find(|row| row.technique == *technique && row.level() == *level)?;
            row.adds.iter().find(|added| place(added) == *floor)
        };
        let threads = levels.iter().find_map(|level| of(level)?.line.a_ns);
        let mut cells = vec![technique.to_string()];
        cells.extend(several.then(|| floor.map_or_else(|| "all".into(), duration)));
        cells.push(duration_or_dash(threads.map(|ns| ns as u64)));
        cells.extend(levels.iter().map(|level| of(level).map_or_else(|| "–".into(), adds)));
        GridRow::plain(cells)
    };
    let mut head = vec!["technique".to_owned()];
    head.extend(several.then(|| "floor".to_owned()));
    head.push(Isolation::Thread.to_string());
    head.extend(levels.iter().map(|level| format!("{level} adds")));
    let mut notes = vec![
        "difference of rt_venue p50 [95 % interval]; ▲ more, ▼ less, no mark: no difference seen, ✗ not comparable".to_owned(),
    ];
    notes.extend(several.then(|| "floor: core to core; the machine moved its cores between runs, so each place has a line of its own".to_owned()));
    let few = bill.rows.iter().flat_map(|row| &row.adds).find(|added| added.line.difference.is_none());
    notes.extend(few.and_then(|added| Some(format!("no interval: {}", added.line.why.first()?))));
    Some(Grid {
        name: "bill_adds".into(),
        title: "What a level adds to the same technique under threads, nanoseconds".into(),
        head,
        keys: 1 + usize::from(several),
        rows: sorted.iter().map(cells).collect(),
        notes,
    })
}

/// The place's floor in whole nanoseconds.
fn place(added: &Added) -> Option<u64> {
    added.floor_ns.map(|floor| floor.round() as u64)
}

/// `▲ +12 [+3, +20]`; without an interval the plain difference of the medians, in brackets.
fn adds(added: &Added) -> String {
    let whole = |ns: f64| format!("{}{}", if ns < 0.0 { "−" } else { "+" }, count(ns.abs().round() as u64));
    let line = &added.line;
    match (line.difference, line.a_ns.zip(line.b_ns)) {
        (Some(found), _) => {
            let by = found.difference;
            format!("{}{} [{}, {}]", mark(line.verdict), whole(by.value), whole(by.low), whole(by.high))
        }
        (None, Some((a, b))) => format!("({})", whole(b - a)),
        (None, None) => "–".into(),
    }
}

/// The differences of each row to its reference.
fn chart(bill: &Bill, percentile: Percentile) -> Option<Markup> {
    let mut levels: Vec<Isolation> = bill.rows.iter().map(|row| row.isolation).collect();
    levels.dedup();
    let row = |row: &BillRow| {
        let (line, reference) = (line(row, Measure::RtVenue, percentile)?, row.reference?);
        let rank = levels.iter().position(|level| *level == row.isolation).unwrap_or(0);
        let against = match reference.technique == row.technique {
            true => reference.isolation.to_string(),
            false => reference.technique.to_string(),
        };
        Some(IntervalRow {
            name: format!("{}, {} vs {against}", row.technique, row.level()),
            note: verdict(line),
            class: CLASSES[rank % CLASSES.len()],
            interval: interval(line),
        })
    };
    let rows: Vec<IntervalRow> = bill.rows.iter().filter_map(row).collect();
    let id = format!("ratio-{}", percentile.name().replace('.', ""));
    let title = format!("rt_venue {} against the reference", percentile.name());
    interval_plot::draw(&id, &title, "ratio to the reference (1: the same)", &axis::number, Some(1.0), &rows)
}

fn interval(line: &ComparisonLine) -> Option<Spread> {
    let ratio = line.difference?.ratio;
    let known = [ratio.low, ratio.value, ratio.high];
    // What is not ordered and positive is no interval of a ratio, whoever wrote it.
    let sane = known.iter().all(|value| value.is_finite() && *value > 0.0) && known.is_sorted();
    sane.then_some(Spread { median: ratio.value, low: ratio.low, high: ratio.high })
}

/// `+3.2%, slower`; where nothing can be said, why.
fn verdict(line: &ComparisonLine) -> String {
    let verdict = line.verdict.text();
    match (line.verdict, interval(line)) {
        (Verdict::NotComparable, _) => {
            let why = line.why.first().map_or("", |why| why.split(':').next().unwrap_or(why));
            if why.is_empty() { verdict.to_owned() } else { why.to_owned() }
        }
        (Verdict::NoDifferenceSeen, Some(spread))
            if (spread.median - 1.0).abs() >= UNSURE && (spread.low..=spread.high).contains(&1.0) =>
        {
            format!("{}, but the bar holds 1", change(spread.median))
        }
        (_, Some(spread)) => format!("{}, {verdict}", change(spread.median)),
        (_, None) => verdict.to_owned(),
    }
}

/// A ratio as people say it: `+3.2%`, or `×4.12` where that is shorter.
fn change(ratio: f64) -> String {
    if ratio >= 2.0 { format!("×{}", plain(ratio)) } else { format!("{:+.1}%", (ratio - 1.0) * 100.0) }
}

/// Why rows are not comparable, and what weakens them; each once, with the rows it is about.
fn remarks(bill: &Bill) -> Vec<String> {
    let mut about: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &bill.rows {
        let name = format!("{} {}", row.technique, row.level());
        for reason in row.differences.iter().flat_map(|line| &line.why).chain(&row.caveats) {
            match about.iter_mut().find(|(known, _)| known == reason) {
                Some((_, rows)) if rows.contains(&name) => {}
                Some((_, rows)) => rows.push(name.clone()),
                None => about.push((reason, vec![name.clone()])),
            }
        }
    }
    about.into_iter().map(|(reason, rows)| format!("{}: {reason}", rows.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Difference, Estimate, MIN_PAIRS, Method, compare_figure, fixtures, pair_runs};

    fn row(isolation: Isolation, runs: usize, adds: &[Option<f64>]) -> BillRow {
        let side = |ns: f64| (0..runs).map(|repeat| fixtures::run(repeat, ns)).collect::<Vec<_>>();
        let line =
            || compare_figure(&pair_runs(&side(300.0), &side(312.0)), Measure::RtVenue, Percentile::P50);
        BillRow {
            isolation,
            technique: Technique::default(),
            variant: String::new(),
            runs,
            p50_ns: Some(300.0),
            p99_ns: None,
            p999_ns: None,
            stall_free_p99_ns: None,
            stall_free_p999_ns: None,
            taken_out: None,
            reference: None,
            differences: Vec::new(),
            adds: adds.iter().map(|floor_ns| Added { floor_ns: *floor_ns, line: line() }).collect(),
            caveats: Vec::new(),
            cpu_s_per_million: None,
            startup_ns: None,
            pss_bytes: None,
            page_faults: None,
            context_switches: None,
            contains: None,
        }
    }

    #[test]
    fn each_level_says_what_it_adds_place_by_place() {
        let adds = [None, Some(45.0), Some(310.0)];
        let rows = vec![
            row(Isolation::Thread, 8, &[]),
            row(Isolation::Process, 8, &adds),
            row(Isolation::Sandbox, 8, &adds[..1]),
        ];
        let grid = headline(&Bill { rows, notes: Vec::new() }).unwrap();
        assert_eq!(grid.head, ["technique", "floor", "thread", "process adds", "sandbox adds"]);
        assert_eq!(grid.rows.len(), 3);
        assert_eq!(grid.rows[0].cells[1..], ["all", "300 ns", "▲ +12 [+12, +12]", "▲ +12 [+12, +12]"]);
        assert_eq!((grid.rows[1].cells[1].as_str(), grid.rows[2].cells[1].as_str()), ("45 ns", "310 ns"));
        assert_eq!(grid.rows[1].cells[4], "–");
    }

    #[test]
    fn too_few_pairs_have_a_difference_and_no_interval() {
        let rows = vec![row(Isolation::Process, MIN_PAIRS - 1, &[None])];
        let grid = headline(&Bill { rows, notes: Vec::new() }).unwrap();
        assert_eq!(grid.rows[0].cells[2], "(+12)");
        assert!(grid.notes.iter().any(|note| note.contains("too few repeats")), "{:?}", grid.notes);
        assert_eq!(headline(&Bill { rows: vec![row(Isolation::Thread, 5, &[])], notes: Vec::new() }), None);
    }

    #[test]
    fn an_interval_that_is_none_is_not_drawn() {
        assert_eq!([1.0, 1.032, 0.97, 4.12, 250.0].map(change), ["+0.0%", "+3.2%", "-3.0%", "×4.12", "×250"]);
        let estimate = |value, low, high| Estimate { value, low, high };
        let line = |low, value, high| ComparisonLine {
            measure: "rt_venue".into(),
            percentile: Percentile::P50,
            a_ns: None,
            b_ns: None,
            excluded_share: None,
            difference: Some(Difference {
                pairs: 9,
                ratio: estimate(value, low, high),
                difference: estimate(0.0, 0.0, 0.0),
                method: Method::Ranks,
            }),
            hosts: Vec::new(),
            verdict: Verdict::NoDifferenceSeen,
            why: Vec::new(),
        };
        assert_eq!(verdict(&line(0.9, 1.0, 1.1)), "+0.0%, no difference seen");
        assert_eq!(verdict(&line(0.9, 1.757, 3.1)), "+75.7%, but the bar holds 1");
        let why = vec!["too few repeats: 4 of at least 5 pairs".into()];
        let few = ComparisonLine { verdict: Verdict::NotComparable, why, ..line(1.0, 1.047, 1.1) };
        assert_eq!(verdict(&few), "too few repeats");
        let none = ComparisonLine { difference: None, ..line(0.9, 1.0, 1.1) };
        for line in [line(1.1, 1.0, 0.9), line(0.0, 1.0, 2.0), line(0.5, f64::NAN, 2.0), none] {
            assert_eq!(interval(&line), None);
        }
    }
}
