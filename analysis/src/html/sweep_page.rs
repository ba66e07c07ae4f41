//! The page of a sweep, and of a bill, which is a sweep over isolation levels and techniques.

use super::bill;
use super::page::{page, section};
use super::search;
use super::sweep_charts;
use crate::experiment::{Bill, SweepRecord, conditions};
use crate::lists;
use crate::report::units::count;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// So many kinds of reasons are listed.
const REASONS: usize = 12;

/// The page; with the bill, if one was made of the sweep.
pub fn sweep_page(sweep: &SweepRecord, bill: Option<&Bill>) -> String {
    let is_bill = bill.is_some() || sweep.kind == "bill";
    let content = html! {
        @if sweep.search.is_none() { (verdict(sweep)) }
        (section("facts", "What was measured", &facts(sweep)))
        @if let Some(bill) = bill {
            (section("bill", "What isolation costs", &bill::draw(bill)))
        }
        @match &sweep.search {
            Some(search) => (section("highest", "The highest rate held", &search::draw(sweep, search))),
            None => {
                (section("table", "Every point", &sweep_charts::table(sweep)))
                (section("charts", "Charts", &sweep_charts::all(sweep)))
            }
        }
    };
    let varied: Vec<String> = sweep
        .axes
        .iter()
        .map(|axis| format!("{} {}", axis.values.len(), plural(axis.axis.name(), axis.values.len())))
        .collect();
    let repeats = if sweep.repeats == 1 { "1 repeat".into() } else { format!("{} repeats", sweep.repeats) };
    let subject = [varied.join(" × "), repeats]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    let dim = format!("started {}, bulkhead {}, {}", sweep.started, sweep.version, sweep.state.name());
    let title = match (is_bill, &sweep.search) {
        (true, _) => "The bill",
        (false, Some(_)) => "Search for the highest rate",
        (false, None) => "Sweep",
    };
    page(title, &subject, &dim, &content)
}

fn plural(name: &str, number: usize) -> String {
    match name {
        "technique" | "rate" | "venue" if number != 1 => format!("{name}s"),
        "isolation" => if number == 1 { "isolation level" } else { "isolation levels" }.into(),
        "work" => if number == 1 { "amount of work" } else { "amounts of work" }.into(),
        "strategies" => if number == 1 { "number of strategies" } else { "numbers of strategies" }.into(),
        other => other.into(),
    }
}

/// How much of it is measured, how much of that may be quoted, and what speaks against the rest.
fn verdict(sweep: &SweepRecord) -> Markup {
    let runs = || sweep.points.iter().flat_map(|point| &point.runs).map(|run| &run.outline);
    let (all, sound) = (runs().count(), runs().filter(|run| run.is_sound()).count());
    let fit = runs().filter(|run| run.is_sound() && run.fit_for_latency).count();
    let planned = sweep.points.len() * sweep.repeats as usize;
    let good = fit == planned && planned > 0;
    // Reasons differ by their figures: one of each kind stands for all. The kind is what stands before the colon.
    let mut kinds: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for reason in runs().flat_map(|run| &run.reasons) {
        let head = reason.split(':').next().unwrap_or(reason);
        let is_figure = |word: &&str| {
            word.contains(|c: char| c.is_ascii_digit()) || ["ns", "µs", "ms", "s"].contains(word)
        };
        let kind = head.split(' ').filter(|word| !is_figure(word)).collect::<Vec<_>>().join(" ");
        kinds.entry(kind).or_insert((0, reason)).0 += 1;
    }
    let mut kinds: Vec<(usize, &str)> = kinds.into_values().collect();
    kinds.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    html! {
        section class=(if good { "verdict good" } else { "verdict bad" }) data-fit=(fit) data-sound=(sound) data-runs=(all)
            data-planned=(planned) {
            h2 {
                span aria-hidden="true" { (if good { "✔" } else { "✘" }) } " "
                @if good { "All " (count(planned as u64)) " runs fit for latency claims" }
                @else { (count(fit as u64)) " of " (count(planned as u64)) " runs fit for latency claims" }
            }
            @if !good {
                ul {
                    @if all < planned { li { (count((planned - all) as u64)) " runs not measured: the sweep is " (sweep.state.name()) } }
                    @if sound < all { li { (count((all - sound) as u64)) " runs incomplete or invalid: left out of every figure" } }
                    @for (number, reason) in kinds.iter().take(REASONS) {
                        li { (count(*number as u64)) @if *number == 1 { " run: " } @else { " runs, for example: " } (reason) }
                    }
                    @if kinds.len() > REASONS { li { (kinds.len() - REASONS) " more kinds of reasons in sweep.json" } }
                }
            }
        }
    }
}

fn facts(sweep: &SweepRecord) -> Markup {
    let machine = &sweep.machine;
    let virtual_ = machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", virtual ({name})"));
    html! {
        div class="columns" {
            dl {
                dt { "machine" } dd { (machine.hostname) (virtual_) }
                dt { "processor" } dd { (machine.cpu_model) }
                dt { "cores" } dd { (lists::format(&machine.cores_allowed)) " of " (machine.cores_online) }
                dt { "kernel" } dd { "Linux " (machine.kernel) ", clock source " (machine.clocksource) }
            }
            dl { @for axis in &sweep.axes { dt { (axis.axis.name()) } dd { (axis.values.join(", ")) } } }
            dl {
                dt { "date" } dd { (sweep.started) }
                @for (name, text) in conditions(sweep) { dt { (name) } dd { (text) } }
            }
        }
        @if !sweep.notes.is_empty() { ul class="note" { @for note in &sweep.notes { li { (note) } } } }
    }
}
