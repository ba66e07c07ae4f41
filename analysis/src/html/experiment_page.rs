//! The page of any experiment, from what it shows.

use super::page::{fact_columns, page, section};
use super::table::table;
use crate::experiment::{Answer, ExperimentReport, PAGE, Part, Section};
use maud::{Markup, PreEscaped, html};

/// The page.
pub fn experiment_page(report: &ExperimentReport) -> String {
    let content = html! {
        @if let Some(answer) = &report.answer { (verdict(answer)) }
        @if !report.facts.is_empty() || !report.notes.is_empty() {
            (section("facts", "What was measured", &facts(report)))
        }
        @for one in &report.sections { (content_of(one)) }
    };
    page(&report.title, &report.subject, &report.origin, &content)
}

fn verdict(answer: &Answer) -> Markup {
    let (class, mark) = if answer.good { ("good", "✔") } else { ("bad", "✘") };
    // Names are ours and values are numbers: nothing to escape.
    let counts: String =
        answer.counts.iter().map(|(name, count)| format!(" data-{name}=\"{count}\"")).collect();
    html! {
        (PreEscaped(format!("<section class=\"verdict {class}\"{counts}>")))
        h2 { span aria-hidden="true" { (mark) } " " (answer.sentence) }
        @if !answer.reasons.is_empty() { ul { @for reason in &answer.reasons { li { (reason) } } } }
        (PreEscaped("</section>"))
    }
}

fn facts(report: &ExperimentReport) -> Markup {
    html! {
        (fact_columns(&report.facts))
        @if !report.notes.is_empty() { ul class="note" { @for note in &report.notes { li { (note) } } } }
    }
}

/// A section, unless nothing of it is for the page.
fn content_of(one: &Section) -> Markup {
    let part = |part: &Part| {
        Some(match part {
            Part::Text(text) => html! { p { (text) } },
            Part::List(lines) if !lines.is_empty() => {
                html! { ul class="note" { @for line in lines { li { (line) } } } }
            }
            Part::Table(grid, places) if places & PAGE != 0 => table(grid),
            Part::Chart(chart) => chart.clone(),
            _ => return None,
        })
    };
    let parts: Vec<Markup> = one.parts.iter().filter_map(part).collect();
    html! { @if !parts.is_empty() { (section(&one.id, &one.heading, &html! { @for part in &parts { (part) } })) } }
}
