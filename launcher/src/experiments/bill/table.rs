//! The bill as tables: latencies, their differences to the reference, and the other costs. In Markdown and CSV it is
//! one wide table.

use analysis::experiment::{Bill, BillRow};
use analysis::report::bill as report;
use analysis::report::grid::{Grid, GridRow};
use analysis::report::units::{duration_or_dash, percent, plain, short};
use analysis::stats::{ComparisonLine, Percentile, Verdict, ratio};
use analysis::summary::Measure;
use analysis::units::human_bytes;

const KEYS: [&str; 2] = ["isolation", "technique"];

/// The tables for the terminal.
pub(super) fn narrow(bill: &Bill) -> Vec<Grid> {
    let latencies = ["p50", "p99", "p99.9", "against"];
    let costs = cost_heads(bill);
    let percentiles = Percentile::ALL.map(|percentile| format!("{} vs reference", percentile.name()));
    let grid = |name: &str, title: &str, heads: Vec<String>, cells: &dyn Fn(&BillRow) -> Vec<String>| Grid {
        name: name.into(),
        title: title.into(),
        head: KEYS.iter().map(|key| (*key).to_owned()).chain(heads).collect(),
        keys: KEYS.len(),
        rows: bill.rows.iter().map(|row| GridRow::plain([keys(row).to_vec(), cells(row)].concat())).collect(),
        notes: Vec::new(),
    };
    let mut against = grid(
        "bill_difference",
        "rt_venue against the reference: ratio [95 % interval]",
        percentiles.to_vec(),
        &|row| Percentile::ALL.map(|percentile| difference(row, Measure::RtVenue, percentile)).to_vec(),
    );
    against.notes.push("▲ slower, ▼ faster, no mark: no difference seen, ✗ not comparable".into());
    let rest = [
        grid("bill_cost", "what else a level costs", owned(&costs), &|row| cost(row, bill)),
        grid("bill_latency", "rt_venue: what the engine adds to an order", owned(&latencies), &latency),
        against,
    ];
    let free = bill.rows.iter().any(|row| row.taken_out.is_some()).then(|| {
        let mut free = grid(
            "bill_stall_free",
            "rt_venue without the machine's stalls, beside what it is with them",
            owned(&FREE),
            &|row| stall_free(row).to_vec(),
        );
        free.notes.push(
            "out: the share of the orders that a stall touched; they are not in the stall-free figures"
                .into(),
        );
        let heads = TAIL.map(|percentile| format!("stall-free {} vs reference", percentile.name()));
        let ratios = grid(
            "bill_stall_free_difference",
            "the same against the reference: ratio [95 % interval]",
            heads.to_vec(),
            &|row| TAIL.map(|percentile| difference(row, Measure::StallFree, percentile)).to_vec(),
        );
        [free, ratios]
    });
    report::headline(bill).into_iter().chain(rest).chain(free.into_iter().flatten()).collect()
}

/// The percentiles that stalls of the machine reach.
const TAIL: [Percentile; 2] = [Percentile::P99, Percentile::P999];
/// Both of them, with and without stalls, and the share that is taken out.
const FREE: [&str; 5] = ["p99", "stall-free", "p99.9", "stall-free", "out"];

fn stall_free(row: &BillRow) -> [String; 5] {
    let figure = |ns: Option<f64>| duration_or_dash(ns.map(|ns| ns as u64));
    let [p99, free_p99, p999, free_p999] =
        [row.p99_ns, row.stall_free_p99_ns, row.p999_ns, row.stall_free_p999_ns].map(figure);
    [p99, free_p99, p999, free_p999, percent(row.taken_out)]
}

/// One table with everything, for documents and programs.
pub(super) fn wide(bill: &Bill) -> Grid {
    let mut head = owned(&["isolation", "technique", "p50", "p99", "p99.9", "reference"]);
    head.extend(Percentile::ALL.map(|percentile| format!("{} ratio", percentile.name())));
    head.extend(owned(&[
        "p99 stall-free",
        "p99.9 stall-free",
        "taken out",
        "p99 stall-free ratio",
        "p99.9 stall-free ratio",
    ]));
    head.extend(owned(&cost_heads(bill)));
    let row = |row: &BillRow| {
        let differences = Percentile::ALL.map(|percentile| difference(row, Measure::RtVenue, percentile));
        let [_, p99, _, p999, out] = stall_free(row);
        let free = TAIL.map(|percentile| difference(row, Measure::StallFree, percentile));
        let free = [vec![p99, p999, out], free.to_vec()].concat();
        GridRow::plain(
            [keys(row).to_vec(), latency(row), differences.to_vec(), free, cost(row, bill)].concat(),
        )
    };
    Grid {
        name: "bill".into(),
        title: "The bill (rt_venue; ratio to the reference with its 95 % interval: ▲ slower, ▼ faster, ✗ not comparable)"
            .into(),
        head,
        keys: KEYS.len(),
        rows: bill.rows.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn keys(row: &BillRow) -> [String; 2] {
    let level = match row.variant.as_str() {
        "" => row.isolation.to_string(),
        variant => format!("{} ({variant})", row.isolation),
    };
    [level, row.technique.to_string()]
}

fn latency(row: &BillRow) -> Vec<String> {
    let figure = |ns: Option<f64>| duration_or_dash(ns.map(|ns| ns as u64));
    let reference =
        row.reference.map_or_else(|| "–".into(), |found| format!("{}/{}", found.isolation, found.technique));
    vec![figure(row.p50_ns), figure(row.p99_ns), figure(row.p999_ns), reference]
}

fn difference(row: &BillRow, measure: Measure, percentile: Percentile) -> String {
    let wanted = |line: &&ComparisonLine| line.measure == measure.name() && line.percentile == percentile;
    let Some(line) = row.differences.iter().find(wanted) else { return "–".into() };
    let ComparisonLine { difference, verdict, .. } = line;
    let mark = match verdict {
        Verdict::Slower => "▲ ",
        Verdict::Faster => "▼ ",
        Verdict::NoDifferenceSeen => "",
        Verdict::NotComparable => "✗ ",
    };
    difference.as_ref().map_or_else(|| "✗".into(), |found| format!("{mark}{}", ratio(found)))
}

/// The containment column appears once there is something in it.
fn cost_heads(bill: &Bill) -> Vec<&'static str> {
    let mut heads = vec!["CPU s/M", "start", "PSS", "faults", "switches"];
    if bill.rows.iter().any(|row| row.contains.is_some()) {
        heads.push("contains");
    }
    heads
}

fn cost(row: &BillRow, bill: &Bill) -> Vec<String> {
    let dash = || "–".to_owned();
    let count = |value: Option<f64>| value.map_or_else(dash, |value| short(value.round() as u64));
    let mut cells = vec![
        row.cpu_s_per_million.map_or_else(dash, plain),
        duration_or_dash(row.startup_ns.map(|ns| ns as u64)),
        row.pss_bytes.map_or_else(dash, |bytes| human_bytes(bytes as u64)),
        count(row.page_faults),
        count(row.context_switches),
    ];
    if cost_heads(bill).len() > cells.len() {
        cells.push(row.contains.clone().unwrap_or_else(dash));
    }
    cells
}
