//! The index page of a folder of surveys: a table, and pictures on common axes.

use super::card::machine_name;
use super::picture::{self, SIZE, STYLE};
use super::{Survey, SurveyPart};
use maud::{Markup, html};
use record::escape::markdown;
use std::fmt::Write;
use verdict::chart::svg::{self, coordinate, line, text};
use verdict::table::grid::wrap;

/// The parts that are drawn, with the heads of their columns.
const COLUMNS: [(SurveyPart, &str); 4] = [
    (SurveyPart::Bill, "a level against threads"),
    (SurveyPart::Queue, "spsc-mux against ArrayQueue"),
    (SurveyPart::Journal, "a journal against none"),
    (SurveyPart::Cores, "a cache line, there and back"),
];
const MARGIN: f64 = 16.0;
const GAP: f64 = 20.0;
const HEAD: f64 = 34.0;
/// Height of a machine's row: its name, its pictures and a gap.
const ROW: f64 = 20.0 + SIZE.1 + 22.0;
const NAME_CHARS: usize = 120;

const INTRODUCTION: &str = "\
# Surveys

What `launcher survey` measured, machine by machine. Ratios may be compared between machines; nanoseconds hold for their machine. A survey
that is not fit for latency claims says why on its card. The pictures show rt_venue at p50 as a ratio with its 95 % interval, and the round
trip of a cache line between each two cores, waiting in lockstep and at random times.

![Ratios and round trips of every machine on common axes](index.svg)

";

const SENDING: &str = "
## Send one in

1. End what else runs on the machine, and run `launcher survey`: at most fifteen minutes.
2. Copy its `experiment.json` into a new folder here, `MACHINE-DATE`. It has no host name, no user and no path in it.
3. Run `launcher survey --index results`, which draws the cards and this page, and open a pull request.
";

/// The contents of the two files of the index page of a folder of surveys: `README.md` and its
/// picture `index.svg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyIndex {
    /// `README.md`.
    pub markdown: String,
    /// `index.svg`.
    pub svg: String,
}

/// Returns the index page of surveys, each with the name of its folder.
pub fn survey_index(surveys: &[(String, Survey)]) -> SurveyIndex {
    let mut page = INTRODUCTION.to_owned();
    page += "| machine | CPUs | date | minutes | latencies | |\n|---|---:|---|---:|---|---|\n";
    for (folder, survey) in surveys {
        let machine = &survey.machine;
        let state = if survey.complete { survey.fitness.verdict() } else { "incomplete" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {state} | [card]({folder}/card.svg), [text]({folder}/card.txt) |",
            markdown(&machine.cpu_model),
            machine.cores_allowed.len(),
            markdown(survey.day()),
            survey.minutes
        );
    }
    page += SENDING;
    SurveyIndex { markdown: page, svg: multiples(surveys) }
}

fn multiples(surveys: &[(String, Survey)]) -> String {
    let left = |column: usize| MARGIN + column as f64 * (SIZE.0 + GAP);
    let width = left(COLUMNS.len()) - GAP + MARGIN;
    let row = |(number, (_, survey)): (usize, &(String, Survey))| -> Markup {
        let top = HEAD + number as f64 * ROW;
        let name = format!("{}, {}: {}", machine_name(survey), survey.day(), survey.fitness.verdict());
        html! {
            (line((MARGIN, top), (width - MARGIN, top), "rule"))
            (text(MARGIN, top + 16.0, "start", "strong", &wrap(&name, NAME_CHARS - 2, 0)[0]))
            @for (column, (part, _)) in COLUMNS.iter().enumerate() {
                g transform={ "translate(" (coordinate(left(column))) " " (coordinate(top + 28.0)) ")" } { (picture::draw(survey, *part)) }
            }
        }
    };
    let content = html! {
        @for (column, (_, head)) in COLUMNS.iter().enumerate() { (text(left(column), 22.0, "start", "dim", head)) }
        @for one in surveys.iter().enumerate() { (row(one)) }
    };
    let size = (width, HEAD + surveys.len() as f64 * ROW);
    svg::file(size, "Surveys of machines", None, STYLE, &content)
}
