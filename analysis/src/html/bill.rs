//! The bill: what each isolation level costs with each technique, from `bill.json`, which has the intervals and the
//! verdicts already. Nothing is compared here.

use super::axis;
use super::interval_plot::{self, IntervalRow};
use super::sweep_data::Spread;
use crate::experiment::{Bill, BillRow, Reference};
use crate::report;
use crate::report::units::{count, duration_or_dash, percent, plain};
use crate::stats::{ComparisonLine, Percentile, Verdict};
use crate::summary::Measure;
use maud::{Markup, html};
use protocol::plan::Isolation;

/// A change that would be one if its interval did not hold 1.
const UNSURE: f64 = 0.02;
/// A class for each level, in the order in which they appear.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];

fn line(row: &BillRow, percentile: Percentile) -> Option<&ComparisonLine> {
    let wanted =
        |line: &&ComparisonLine| line.measure == Measure::RtVenue.name() && line.percentile == percentile;
    row.differences.iter().find(wanted)
}

/// The level, and what else sets the row apart.
fn level(row: &BillRow) -> String {
    if row.variant.is_empty() {
        row.isolation.to_string()
    } else {
        format!("{} ({})", row.isolation, row.variant)
    }
}

fn is_reference_of(row: &BillRow, reference: &Reference) -> bool {
    row.variant.is_empty() && (row.isolation, row.technique) == (reference.isolation, reference.technique)
}

fn interval(line: &ComparisonLine) -> Option<Spread> {
    let ratio = line.difference?.ratio;
    let known = [ratio.low, ratio.value, ratio.high];
    // What is not ordered and positive is no interval of a ratio, whoever wrote it.
    let sane = known.iter().all(|value| value.is_finite() && *value > 0.0) && known.is_sorted();
    sane.then_some(Spread { median: ratio.value, low: ratio.low, high: ratio.high })
}

/// `+3.2%, slower`; where nothing can be said, why.
fn words(line: &ComparisonLine) -> String {
    let verdict = line.verdict.words();
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

/// The table, and a chart of the differences for each percentile.
pub fn draw(bill: &Bill) -> Markup {
    let charts: Vec<Markup> =
        Percentile::ALL.iter().filter_map(|percentile| chart(bill, *percentile)).collect();
    html! {
        @if let Some(headline) = report::bill::headline(bill) {
            (super::table::table(&headline, |_| ""))
            ul class="note" { @for note in &headline.notes { li { (note) } } }
        }
        (table(bill))
        @if charts.is_empty() {
            p class="none" { "No difference is known: no row has a reference with enough repeats." }
        } @else {
            p {
                "The difference to the reference of each row: the crate whose algorithm a technique is, or the technique itself "
                "under threads. Dots are ratios, bars their 95% intervals. Where a bar holds 1, no difference is seen."
            }
        }
        @for chart in charts { (chart) }
        @let remarks = remarks(bill);
        @if !remarks.is_empty() { ul class="note" { @for remark in remarks { li { (remark) } } } }
    }
}

fn chart(bill: &Bill, percentile: Percentile) -> Option<Markup> {
    let levels = levels(bill);
    let rows: Vec<IntervalRow> = bill
        .rows
        .iter()
        .filter_map(|row| {
            let (line, reference) = (line(row, percentile)?, row.reference?);
            let rank = levels.iter().position(|level| *level == row.isolation).unwrap_or(0);
            let against = if reference.technique == row.technique {
                reference.isolation.to_string()
            } else {
                reference.technique.to_string()
            };
            Some(IntervalRow {
                name: format!("{}, {} vs {against}", row.technique, level(row)),
                note: words(line),
                class: CLASSES[rank % CLASSES.len()],
                interval: interval(line),
            })
        })
        .collect();
    let id = format!("ratio-{}", percentile.name().replace('.', ""));
    let title = format!("rt_venue {} against the reference", percentile.name());
    interval_plot::draw(&id, &title, "ratio to the reference (1: the same)", &axis::number, Some(1.0), &rows)
}

fn levels(bill: &Bill) -> Vec<Isolation> {
    let mut levels: Vec<Isolation> = bill.rows.iter().map(|row| row.isolation).collect();
    levels.dedup();
    levels
}

/// A ratio as people say it: `+3.2%`, or `×4.12` where that is shorter.
fn change(ratio: f64) -> String {
    if ratio >= 2.0 { format!("×{}", plain(ratio)) } else { format!("{:+.1}%", (ratio - 1.0) * 100.0) }
}

fn table(bill: &Bill) -> Markup {
    let contains = bill.rows.iter().any(|row| row.contains.is_some());
    let time = |ns: Option<f64>| duration_or_dash(ns.map(|ns| ns.max(0.0).round() as u64));
    let number = |value: Option<f64>| value.map_or_else(|| "–".into(), plain);
    let whole =
        |value: Option<f64>| value.map_or_else(|| "–".into(), |value| count(value.max(0.0).round() as u64));
    html! {
        table {
            thead { tr {
                th { "level" } th { "technique" } th class="n" { "runs" }
                @for percentile in Percentile::ALL { th class="n" { "rt_venue " (percentile.name()) } }
                th class="n" { "CPU s/M" } th class="n" { "start-up" } th class="n" { "PSS MiB" } th class="n" { "faults" } th class="n" { "switches" }
                @if contains { th { "contains" } }
            } }
            tbody { @for row in &bill.rows { tr data-level=(row.isolation) data-technique=(row.technique) {
                th scope="row" { (level(row)) } th scope="row" { (row.technique) } td class="n" { (row.runs) }
                @let figures = [(row.p50_ns, None), (row.p99_ns, row.stall_free_p99_ns), (row.p999_ns, row.stall_free_p999_ns)];
                @for (percentile, (value, free)) in Percentile::ALL.into_iter().zip(figures) {
                    td class="n" {
                        (time(value)) (ratio(bill, row, percentile))
                        @if free.is_some() { div class="dim" { "stall-free " (time(free)) " −" (percent(row.taken_out)) } }
                    }
                }
                td class="n" { (number(row.cpu_s_per_million)) }
                td class="n" { (time(row.startup_ns)) }
                td class="n" { (number(row.pss_bytes.map(|bytes| bytes / f64::from(1 << 20)))) }
                td class="n" { (whole(row.page_faults)) } td class="n" { (whole(row.context_switches)) }
                @if contains { td { (row.contains.as_deref().unwrap_or("–")) } }
            } } }
        }
    }
}

/// Below a figure: its ratio to the reference with the interval.
fn ratio(bill: &Bill, row: &BillRow, percentile: Percentile) -> Markup {
    let interval = line(row, percentile).and_then(interval);
    let is_reference = || {
        bill.rows
            .iter()
            .filter_map(|other| other.reference.as_ref())
            .any(|reference| is_reference_of(row, reference))
    };
    let text = match interval {
        Some(Spread { median, low, high }) => format!("×{median:.3} ({low:.3}…{high:.3})"),
        None if row.reference.is_none() && is_reference() => "reference".into(),
        None => return html! {},
    };
    html! { br; span class="note" { (text) } }
}

/// Notes of the bill, why rows are not comparable, and what weakens them; each once, with the rows it is about.
fn remarks(bill: &Bill) -> Vec<String> {
    let mut about: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &bill.rows {
        let reasons = row.differences.iter().flat_map(|line| &line.why).chain(&row.caveats);
        for reason in reasons {
            let name = format!("{} {}", row.technique, level(row));
            match about.iter_mut().find(|(known, _)| known == reason) {
                Some((_, rows)) if rows.contains(&name) => {}
                Some((_, rows)) => rows.push(name),
                None => about.push((reason, vec![name])),
            }
        }
    }
    let rows = about.into_iter().map(|(reason, rows)| format!("{}: {reason}", rows.join(", ")));
    bill.notes.iter().cloned().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Difference, Estimate, Method};

    #[test]
    fn ratios_are_said_shortly() {
        assert_eq!([1.0, 1.032, 0.97, 4.12, 250.0].map(change), ["+0.0%", "+3.2%", "-3.0%", "×4.12", "×250"]);
    }

    #[test]
    fn an_interval_that_is_none_is_not_drawn() {
        let estimate = |value, low, high| Estimate { value, low, high };
        let line = |low, value, high| ComparisonLine {
            measure: "rt_venue".into(),
            percentile: Percentile::P50,
            a_ns: None,
            b_ns: None,
            taken_out: None,
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
        assert_eq!(words(&line(0.9, 1.0, 1.1)), "+0.0%, no difference seen");
        assert_eq!(words(&line(0.9, 1.757, 3.1)), "+75.7%, but the bar holds 1");
        let why = vec!["too few repeats: 4 of at least 5 pairs".into()];
        let few = ComparisonLine { verdict: Verdict::NotComparable, why, ..line(1.0, 1.047, 1.1) };
        assert_eq!(words(&few), "too few repeats");
        let none = ComparisonLine { difference: None, ..line(0.9, 1.0, 1.1) };
        for line in [line(1.1, 1.0, 0.9), line(0.0, 1.0, 2.0), line(0.5, f64::NAN, 2.0), none] {
            assert_eq!(interval(&line), None);
        }
    }
}
