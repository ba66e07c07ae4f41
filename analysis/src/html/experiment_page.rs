//! The HTML page of any experiment, from its report.

use crate::experiment::{ExperimentReport, PAGE, ReportSection, SectionPart, with_figures};
use maud::{Markup, PreEscaped, html};
use verdict::html::page::{fact_columns, folded_reasons, page, section, table};

/// Returns the HTML page of an experiment: its answer and verdict, its sections, its settings.
pub fn experiment_page(report: &ExperimentReport) -> String {
    let content = html! {
        (verdict(report))
        @for one in &report.sections { (render_section(one)) }
        @if !report.facts.is_empty() || !report.notes.is_empty() { (settings(report)) }
    };
    page(&report.title, &report.subject, &report.origin, &content)
}

fn verdict(report: &ExperimentReport) -> Markup {
    let fitness = &report.fitness;
    let (class, mark) = if fitness.is_fit { ("good", "✔") } else { ("bad", "✘") };
    // Names are ours and values are numbers: nothing to escape.
    let counts: String =
        report.counts.iter().map(|(name, count)| format!(" data-{name}=\"{count}\"")).collect();
    html! {
        (PreEscaped(format!("<section class=\"verdict {class}\"{counts}>")))
        h2 { (report.answer) }
        p { span aria-hidden="true" { (mark) } " " (fitness.verdict()) }
        (folded_reasons(&fitness.reasons))
        (PreEscaped("</section>"))
    }
}

fn settings(report: &ExperimentReport) -> Markup {
    html! {
        details id="facts" {
            summary { "Machine, settings and remarks" }
            (fact_columns(&report.facts))
            @if !report.notes.is_empty() { ul class="note" { @for note in &report.notes { li { (note) } } } }
        }
    }
}

/// A section, unless nothing of it is for the page.
fn render_section(one: &ReportSection) -> Markup {
    let part = |part: &SectionPart| match part {
        SectionPart::Table(grid, targets) if targets & PAGE != 0 => Some(table(&with_figures(grid)?)),
        SectionPart::Table(..) => None,
        SectionPart::Markup(markup) => Some(markup.clone()),
    };
    let parts: Vec<Markup> = one.parts.iter().filter_map(part).collect();
    html! { @if !parts.is_empty() { (section(&one.id, &one.heading, &html! { @for part in &parts { (part) } })) } }
}
