//! The page of a lab: which way of waiting costs how much CPU and buys how much latency.

use super::lab_charts;
use super::page::{page, section};
use super::table::table;
use crate::experiment::Lab;
use crate::report::lab::{narrow, notes, wide};
use maud::html;

/// The page.
pub fn lab_page(lab: &Lab) -> String {
    let headline = narrow(lab).into_iter().next().filter(|grid| grid.name == "waiting");
    let others = wide(lab).into_iter().filter(|grid| grid.name != "waiting");
    let (done, all) = lab.progress();
    let nothing = html! { p class="none" { "Nothing measured yet: launcher lab --resume goes on with it." } };
    let content = html! {
        @if let Some(grid) = &headline {
            (section("waiting", "What a way of waiting costs, and what it buys", &table(grid)))
        }
        (section("pareto", "Latency against CPU", &html! {
            p {
                "Each letter is a queue, each colour a way of waiting. It stands at the p50 of the latency; the line goes up to the 99th "
                "percentile. Left is cheaper, down is quicker: the stepped line joins what no other beats in both."
            }
            @match lab_charts::pareto(lab) { Some(chart) => (chart), None => (nothing) }
        }))
        (section("cpu", "CPU time for each event", &html! {
            p { "Of a slow side that works, its work is in it: see what slow means below." }
            @match lab_charts::cpu(lab) { Some(chart) => (chart), None => (nothing) }
        }))
        (section("runs", "How long each run took", &html! {
            p { "How the run times of each cell are spread: two humps are two kinds of runs." }
            @match lab_charts::distributions(lab) { Some(chart) => (chart), None => (nothing) }
        }))
        (section("tables", "All figures", &html! { @for grid in others { (table(&grid)) } }))
        ul class="note" { @for note in notes(lab) { li { (note) } } }
    };
    let subject = format!("{} cells, {done} of {all} runs, on {}", lab.cells.len(), lab.machine.cpu_model);
    page("Which queue, which way of waiting", &subject, &format!("bulkhead {}", lab.version), &content)
}
