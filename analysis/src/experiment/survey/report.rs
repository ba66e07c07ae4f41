//! The report of a survey: its card, and the table of its parts with their commands.

use super::brief::brief;
use super::card::{answer, drawing, headline, machine_name, rows};
use super::picture::STYLE;
use super::{KIND, PartRecord, Survey, SurveyPart};
use crate::experiment::{ALL, ExperimentReport, ReportSection, machine_facts};
use maud::{Markup, PreEscaped, html};
use record::machine_check::MachineCheck;
use record::numbers::{counted, duration};
use verdict::chart::svg::coordinate;
use verdict::table::Grid;

/// Returns the report of a survey (`launcher survey`).
pub fn report(survey: &Survey) -> ExperimentReport {
    ExperimentReport {
        name: "survey",
        heading: headline(survey),
        title: KIND.title.into(),
        subject: machine_name(survey),
        origin: format!("started {}, bulkhead {}", survey.started, survey.version),
        answer: answer(survey, SurveyPart::Bill),
        brief: brief(survey),
        fitness: survey.fitness.clone(),
        facts: machine_facts(&survey.machine),
        sections: vec![
            ReportSection::new("card", "The card").charts([card(survey)]),
            ReportSection::new("parts", "What was measured")
                .text(&format!("At most {}.", counted(survey.minutes.into(), "minute")))
                .tables(ALL, [parts(survey)]),
            ReportSection::new("checks", "What doctor found").tables(ALL, [checks(survey)]),
        ],
        ..ExperimentReport::default()
    }
}

/// The card's picture. Its style is that of a file of its own, so here it is for its figure only.
fn card(survey: &Survey) -> Markup {
    let ((width, height), content) = drawing(survey);
    html! {
        figure class="card" {
            style { (PreEscaped(format!(".card {{ {STYLE} }}"))) }
            svg class="chart" viewBox={ "0 0 " (coordinate(width)) " " (coordinate(height)) } role="img" aria-labelledby="card-title" {
                title id="card-title" { (headline(survey)) }
                (content)
            }
        }
    }
}

fn parts(survey: &Survey) -> Grid {
    let record = |part: &SurveyPart| survey.parts.iter().find(|record| record.part == *part);
    let took = |record: &PartRecord| duration((record.took_s * 1e9) as u64);
    Grid::from_rows(
        "survey_parts",
        "",
        1,
        &[
            ("part", &|part: &SurveyPart| part.name().to_owned()),
            ("took", &|part| record(part).map_or_else(|| "–".into(), took)),
            ("commands", &|part| {
                record(part).map_or_else(|| "–".into(), |record| record.commands.join("; "))
            }),
        ],
        &rows(survey).collect::<Vec<_>>(),
    )
}

fn checks(survey: &Survey) -> Grid {
    Grid::from_rows(
        "survey_checks",
        "",
        1,
        &[
            ("check", &|check: &MachineCheck| check.name.clone()),
            ("state", &|check| format!("{:?}", check.state).to_lowercase()),
            ("found", &|check| check.found.clone()),
        ],
        &survey.checks,
    )
}
