//! The bill: what each isolation level costs with each technique, from `bill.json`, which has the intervals and the
//! verdicts already. Nothing is compared here.

use super::axis;
use super::interval_plot::{self, IntervalRow};
use super::sweep_data::Spread;
use crate::report::units::{count, duration_or_dash, plain};
use maud::{Markup, html};
use serde::Deserialize;

/// Its name in the bill's folder.
pub const BILL_FILE: &str = "bill.json";
/// The version that this page reads.
pub const BILL_SCHEMA: &str = "bulkhead.bill/1";
/// The percentiles that are compared.
const PERCENTILES: [&str; 3] = ["p50", "p99", "p99.9"];
/// A class for each level, in the order in which they appear.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];

/// The bill, read leniently.
#[derive(Clone, Debug, Deserialize)]
pub struct Bill {
    /// By isolation level, then by technique.
    pub rows: Vec<BillRow>,
    /// What to know about it.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One isolation level with one technique.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BillRow {
    isolation: String,
    technique: String,
    variant: String,
    runs: u64,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    p999_ns: Option<f64>,
    reference: Option<Reference>,
    differences: Vec<DifferenceLine>,
    caveats: Vec<String>,
    cpu_s_per_million: Option<f64>,
    startup_ns: Option<f64>,
    pss_bytes: Option<f64>,
    page_faults: Option<f64>,
    context_switches: Option<f64>,
    contains: Option<String>,
}

/// The row that another is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Reference {
    isolation: String,
    technique: String,
}

/// A percentile of rt_venue against the reference's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DifferenceLine {
    percentile: String,
    difference: Option<Difference>,
    verdict: String,
    why: Vec<String>,
}

/// The ratio with its 95% interval.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Difference {
    ratio: Estimate,
}

/// An estimate with its interval.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Estimate {
    value: f64,
    low: f64,
    high: f64,
}

impl BillRow {
    fn line(&self, percentile: &str) -> Option<&DifferenceLine> {
        self.differences.iter().find(|line| line.percentile == percentile)
    }

    /// The level, and what else sets the row apart.
    fn level(&self) -> String {
        if self.variant.is_empty() {
            self.isolation.clone()
        } else {
            format!("{} ({})", self.isolation, self.variant)
        }
    }

    fn is_reference_of(&self, reference: &Reference) -> bool {
        self.variant.is_empty()
            && self.isolation == reference.isolation
            && self.technique == reference.technique
    }
}

impl DifferenceLine {
    fn interval(&self) -> Option<Spread> {
        let ratio = &self.difference.as_ref()?.ratio;
        let known = [ratio.low, ratio.value, ratio.high];
        // What is not ordered and positive is no interval of a ratio, whoever wrote it.
        let sane = known.iter().all(|value| value.is_finite() && *value > 0.0) && known.is_sorted();
        sane.then_some(Spread { median: ratio.value, low: ratio.low, high: ratio.high })
    }

    /// `+3.2%, slower`.
    fn words(&self) -> String {
        let verdict = self.verdict.replace('-', " ");
        match self.interval() {
            Some(spread) => format!("{}, {verdict}", change(spread.median)),
            None => verdict,
        }
    }
}

/// The table, and a chart of the differences for each percentile.
pub fn draw(bill: &Bill) -> Markup {
    let charts: Vec<Markup> = PERCENTILES.iter().filter_map(|percentile| chart(bill, percentile)).collect();
    html! {
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

fn chart(bill: &Bill, percentile: &str) -> Option<Markup> {
    let levels: Vec<&str> = levels(bill);
    let rows: Vec<IntervalRow> = bill
        .rows
        .iter()
        .filter_map(|row| {
            let (line, reference) = (row.line(percentile)?, row.reference.as_ref()?);
            let level = levels.iter().position(|level| *level == row.isolation).unwrap_or(0);
            let against = if reference.technique == row.technique {
                &reference.isolation
            } else {
                &reference.technique
            };
            Some(IntervalRow {
                name: format!("{}, {} vs {against}", row.technique, row.level()),
                note: line.words(),
                class: CLASSES[level % CLASSES.len()],
                interval: line.interval(),
            })
        })
        .collect();
    let id = format!("ratio-{}", percentile.replace('.', ""));
    let title = format!("rt_venue {percentile} against the reference");
    interval_plot::draw(&id, &title, "ratio to the reference (1: the same)", &axis::number, Some(1.0), &rows)
}

fn levels(bill: &Bill) -> Vec<&str> {
    let mut levels: Vec<&str> = bill.rows.iter().map(|row| row.isolation.as_str()).collect();
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
                @for percentile in PERCENTILES { th class="n" { "rt_venue " (percentile) } }
                th class="n" { "CPU s/M" } th class="n" { "start-up" } th class="n" { "PSS MiB" } th class="n" { "faults" } th class="n" { "switches" }
                @if contains { th { "contains" } }
            } }
            tbody { @for row in &bill.rows { tr data-level=(row.isolation) data-technique=(row.technique) {
                th scope="row" { (row.level()) } th scope="row" { (row.technique) } td class="n" { (row.runs) }
                @for (percentile, value) in PERCENTILES.iter().zip([row.p50_ns, row.p99_ns, row.p999_ns]) {
                    td class="n" { (time(value)) (ratio(bill, row, percentile)) }
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
fn ratio(bill: &Bill, row: &BillRow, percentile: &str) -> Markup {
    let interval = row.line(percentile).and_then(DifferenceLine::interval);
    let is_reference = || {
        bill.rows
            .iter()
            .filter_map(|other| other.reference.as_ref())
            .any(|reference| row.is_reference_of(reference))
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
            let name = format!("{} {}", row.technique, row.level());
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

    #[test]
    fn ratios_are_said_shortly() {
        assert_eq!([1.0, 1.032, 0.97, 4.12, 250.0].map(change), ["+0.0%", "+3.2%", "-3.0%", "×4.12", "×250"]);
    }

    #[test]
    fn an_interval_that_is_none_is_not_drawn() {
        let line = |low, value, high| DifferenceLine {
            difference: Some(Difference { ratio: Estimate { value, low, high } }),
            verdict: "no-difference-seen".into(),
            ..DifferenceLine::default()
        };
        assert_eq!(line(0.9, 1.0, 1.1).words(), "+0.0%, no difference seen");
        for line in
            [line(1.1, 1.0, 0.9), line(0.0, 1.0, 2.0), line(0.5, f64::NAN, 2.0), DifferenceLine::default()]
        {
            assert_eq!(line.interval(), None);
        }
    }
}
