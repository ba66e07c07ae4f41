//! The report of a comparison: a table and a verdict for each pair of settings.

use super::{Comparison, Comparisons};
use crate::experiment::{ALL, ExperimentReport, Part, Section};
use crate::numbers::{duration_or_dash, signed};
use crate::stats::{ComparisonLine, MIN_PAIRS, Percentile, Verdict, format_ratio};
use crate::summary::Measure;
use crate::table::Grid;

/// What it shows: every stage where there is one comparison, rt_venue alone where there are more.
pub fn report(all: &Comparisons) -> ExperimentReport {
    let single = all.comparisons.len() == 1;
    let table = |(number, comparison): (usize, &Comparison)| {
        let name = if single { "compare".into() } else { format!("compare_{}", number + 1) };
        Part::Table(Grid { name, ..table(comparison, single) }, ALL)
    };
    let tables = all.comparisons.iter().enumerate().map(table);
    ExperimentReport {
        name: "compare",
        heading: "Comparison".into(),
        title: "Comparison".into(),
        notes: all.notes.clone(),
        sections: vec![Section::new("compare", "B against A").with(tables)],
        ..ExperimentReport::default()
    }
}

/// The verdict on `rt_venue`, with the machine's stalls or without them, in one sentence. `None`:
/// nobody knows of stalls.
fn sentence(comparison: &Comparison, measure: Measure) -> Option<String> {
    let lines: Vec<&ComparisonLine> =
        comparison.lines.iter().filter(|line| line.measure == measure.name()).collect();
    if measure == Measure::StallFree && !lines.iter().any(|line| line.excluded_share.is_some()) {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    for verdict in [Verdict::Slower, Verdict::Faster, Verdict::NoDifferenceSeen, Verdict::NotComparable] {
        let with = lines.iter().filter(|line| line.verdict == verdict);
        let names: Vec<&str> = with.clone().map(|line| line.percentile.name()).collect();
        let Some(first) = with.clone().next() else { continue };
        let why = match first.difference.filter(|_| verdict == Verdict::NoDifferenceSeen) {
            _ if !first.why.is_empty() => format!(" ({})", first.why.join("; ")),
            Some(found) if (found.ratio.value - 1.0).abs() >= 0.02 => format!(
                " (the interval {:.3} to {:.3} holds 1, so {:.3} may be chance)",
                found.ratio.low, found.ratio.high, found.ratio.value
            ),
            _ => String::new(),
        };
        parts.push(format!("{} at {}{why}", verdict.text(), names.join(", ")));
    }
    let what =
        if measure == Measure::StallFree { "rt_venue without the machine's stalls" } else { "rt_venue" };
    Some(format!("B against A, {what}: {}", parts.join("; ")))
}

/// Whether the hosts agree about rt_venue.
fn agreement(comparison: &Comparison) -> String {
    let lines = || comparison.lines.iter().filter(|line| line.measure == Measure::RtVenue.name());
    let disagree = lines().find_map(|line| Some((line.percentile.name(), line.disagreement()?)));
    let judged = |line: &ComparisonLine| line.hosts.iter().filter(|host| host.difference.is_some()).count();
    match (disagree, lines().map(judged).max().unwrap_or(0)) {
        (Some((percentile, how)), _) => format!("the hosts disagree at {percentile}: {how}"),
        (None, 0 | 1) => {
            format!("whether the hosts agree nobody can tell: {MIN_PAIRS} pairs on each are needed")
        }
        (None, hosts) => {
            format!("the hosts agree, those {hosts} with {MIN_PAIRS} pairs or more: their intervals overlap")
        }
    }
}

/// The lines of the table: each percentile of rt_venue from p99 on has the one without the
/// machine's stalls below it.
fn shown(comparison: &Comparison, all: bool) -> impl Iterator<Item = &ComparisonLine> {
    let of = |measure: Measure| comparison.lines.iter().filter(move |line| line.measure == measure.name());
    let head = of(Measure::RtVenue).flat_map(move |line| {
        let is_tail = line.percentile != Percentile::P50;
        let free = of(Measure::StallFree).find(|free| is_tail && free.percentile == line.percentile);
        // Nobody looked: no line of dashes.
        std::iter::once(line).chain(free.filter(|free| free.excluded_share.is_some()))
    });
    let is_head = |line: &&ComparisonLine| {
        [Measure::RtVenue, Measure::StallFree].iter().any(|head| line.measure == head.name())
    };
    head.chain(comparison.lines.iter().filter(move |line| all && !is_head(line)))
}

/// What a line is of; where stalls were taken out, with the share of A's and of B's orders that
/// went with them.
fn name(line: &ComparisonLine) -> String {
    match line.excluded_share {
        Some([a, b]) => {
            let out = |share: f64| format!("{:.0}", share * 100.0);
            format!("· stall-free −{}/{} %", out(a), out(b))
        }
        None => format!("{} {}", line.measure, line.percentile.name()),
    }
}

fn figure(ns: Option<f64>) -> String {
    duration_or_dash(ns.map(|ns| ns as u64))
}

/// The table; `all` with every stage, else of `rt_venue` alone.
fn table(comparison: &Comparison, all: bool) -> Grid {
    let mut grid = Grid::from_rows(
        "compare",
        "B against A, median over the repeats",
        1,
        &[
            ("figure", &name),
            ("A", &|line| figure(line.a_ns)),
            ("B", &|line| figure(line.b_ns)),
            ("B/A [95%]", &|line| line.difference.as_ref().map_or_else(|| "–".into(), format_ratio)),
            ("verdict", &|line| line.verdict.text().into()),
        ],
        shown(comparison, all),
    );
    let notes = &mut grid.notes;
    notes.extend([format!("A: {}", comparison.a), format!("B: {}", comparison.b)]);
    notes.extend(sentence(comparison, Measure::RtVenue));
    if let Some(free) = sentence(comparison, Measure::StallFree) {
        let meaning = "stall-free: the same percentile of the orders that no stall of the machine touched; the share of A's and of B's that is \
                       taken out stands beside it";
        notes.extend([free, meaning.into()]);
    }
    if let Some(found) = comparison.lines.first().and_then(|line| line.difference) {
        let (by, pairs, method) = (found.difference, comparison.pairs, found.method.describe());
        notes.push(format!(
            "rt_venue p50 differs by {} [{}, {}]",
            signed(by.value),
            signed(by.low),
            signed(by.high)
        ));
        notes.push(format!(
            "{pairs} pairs; B/A with its 95 % interval: {method}; each line is a test of its own"
        ));
    }
    notes.extend(comparison.placed.iter().map(|placed| {
        let host = if placed.host.is_empty() { String::new() } else { format!("{}, ", placed.host) };
        format!(
            "{host}core-to-core floor {}: {} runs of A, {} of B, rt_venue p50 {} and {}",
            figure(placed.floor_ns),
            placed.a,
            placed.b,
            figure(placed.a_ns),
            figure(placed.b_ns)
        )
    }));
    if comparison.placed.iter().any(|placed| !placed.host.is_empty()) {
        notes.push("several hosts: B/A compares runs of one host and one floor with each other".into());
        notes.push(agreement(comparison));
    } else if !comparison.placed.is_empty() {
        notes.push("the machine moved its cores: B/A compares runs of one floor with each other".into());
    }
    notes.extend(comparison.caveats.iter().cloned());
    grid
}
