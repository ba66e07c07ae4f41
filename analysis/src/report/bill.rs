//! The headline of a bill: what process and sandbox add to each technique, in nanoseconds, with the interval.

use super::grid::{Grid, GridRow};
use super::units::{count, duration, duration_or_dash};
use crate::experiment::{Added, Bill, BillRow};
use crate::stats::Verdict;
use protocol::plan::{Isolation, Technique};

/// The table; `None` where no level stands beside threads. A row for each technique, and one for each place of the machine's cores
/// where it had several.
pub fn headline(bill: &Bill) -> Option<Grid> {
    let mut levels: Vec<String> = Vec::new();
    let mut rows: Vec<(Technique, Option<u64>)> = Vec::new();
    for row in &bill.rows {
        if !row.adds.is_empty() && !levels.contains(&level(row)) {
            levels.push(level(row));
        }
        for added in &row.adds {
            let key = (row.technique, place(added));
            if !rows.contains(&key) {
                rows.push(key);
            }
        }
    }
    // Technique by technique as the rows have them, all runs first, then from the nearest cores on.
    let order = |technique: &Technique| rows.iter().position(|(other, _)| other == technique);
    let mut sorted = rows.clone();
    sorted.sort_by_key(|(technique, floor)| (order(technique), *floor));
    let several = sorted.iter().any(|(_, floor)| floor.is_some());
    let line = |(technique, floor): &(Technique, Option<u64>)| {
        let of = |level_name: &String| {
            let row =
                bill.rows.iter().find(|row| row.technique == *technique && level(row) == *level_name)?;
            row.adds.iter().find(|added| place(added) == *floor)
        };
        let threads = levels.iter().find_map(|level| of(level)?.line.a_ns);
        let mut cells = vec![technique.to_string()];
        if several {
            cells.push(floor.map_or_else(|| "all".into(), duration));
        }
        cells.push(duration_or_dash(threads.map(|ns| ns as u64)));
        cells.extend(levels.iter().map(|level| of(level).map_or_else(|| "–".into(), words)));
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
    (!levels.is_empty()).then(|| Grid {
        name: "bill_adds".into(),
        title: "What a level adds to the same technique under threads, nanoseconds".into(),
        head,
        keys: 1 + usize::from(several),
        rows: sorted.iter().map(line).collect(),
        notes,
    })
}

/// The place's floor in whole nanoseconds.
fn place(added: &Added) -> Option<u64> {
    added.floor_ns.map(|floor| floor.round() as u64)
}

fn level(row: &BillRow) -> String {
    match row.variant.as_str() {
        "" => row.isolation.to_string(),
        variant => format!("{} ({variant})", row.isolation),
    }
}

/// `▲ +12 [+3, +20]`; without an interval the plain difference of the medians, in brackets.
fn words(added: &Added) -> String {
    let line = &added.line;
    let mark = match line.verdict {
        Verdict::Slower => "▲ ",
        Verdict::Faster => "▼ ",
        Verdict::NoDifferenceSeen => "",
        Verdict::NotComparable => "✗ ",
    };
    match (line.difference, line.a_ns.zip(line.b_ns)) {
        (Some(found), _) => {
            let by = found.difference;
            format!("{mark}{} [{}, {}]", whole(by.value), whole(by.low), whole(by.high))
        }
        (None, Some((a, b))) => format!("({})", whole(b - a)),
        (None, None) => "–".into(),
    }
}

fn whole(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "−" } else { "+" }, count(ns.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{FEWEST_PAIRS, Percentile, fixtures, judge, pair};
    use crate::summary::Measure;

    fn row(isolation: Isolation, runs: usize, adds: &[Option<f64>]) -> BillRow {
        let side = |ns: f64| (0..runs).map(|repeat| fixtures::run(repeat, ns)).collect::<Vec<_>>();
        let line = || judge(&pair(&side(300.0), &side(312.0)), Measure::RtVenue, Percentile::P50);
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
        let rows = vec![row(Isolation::Process, FEWEST_PAIRS - 1, &[None])];
        let grid = headline(&Bill { rows, notes: Vec::new() }).unwrap();
        assert_eq!(grid.rows[0].cells[2], "(+12)");
        assert!(grid.notes.iter().any(|note| note.contains("too few repeats")), "{:?}", grid.notes);
        assert_eq!(headline(&Bill { rows: vec![row(Isolation::Thread, 5, &[])], notes: Vec::new() }), None);
    }
}
