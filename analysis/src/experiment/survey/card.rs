//! The card of a survey: the answers for one machine, as text of 80 columns and as a picture.

use super::picture::{self, SIZE, STYLE};
use super::{Recovery, Survey, SurveyPart};
use crate::experiment::contain::{self, disturb};
use crate::experiment::ratio::{describe_verdict, line_of, ratio_cell};
use crate::experiment::{Comparison, isolation_cost};
use crate::stats::{ComparisonLine, Percentile, Spread};
use maud::{Markup, html};
use record::numbers::{count, counted, duration, plain};
use record::switch_price::SwitchPrice;
use record::units::human_bytes;
use verdict::chart::svg::{self, coordinate, line, text};
use verdict::table::grid::wrap;

const WIDTH: usize = 80;
const NAMES: usize = 13;

/// The rows of the card: the answers that most are asked for first.
const ROWS: [SurveyPart; 7] = [
    SurveyPart::Bill,
    SurveyPart::Queue,
    SurveyPart::Containment,
    SurveyPart::Disturbance,
    SurveyPart::Recovery,
    SurveyPart::Journal,
    SurveyPart::Cores,
];

/// Iterates over the rows of a survey's card. Older surveys have no disturbances.
pub(super) fn rows(survey: &Survey) -> impl Iterator<Item = SurveyPart> {
    let is_older = survey.disturbance.is_none() && survey.shortfall(SurveyPart::Disturbance).is_none();
    ROWS.into_iter().filter(move |part| !is_older || *part != SurveyPart::Disturbance)
}

pub(super) fn headline(survey: &Survey) -> String {
    let day = survey.day();
    let incomplete = if survey.complete { "" } else { ", INCOMPLETE: it was interrupted" };
    format!("bulkhead {} survey of {day}, {} min{incomplete}", survey.version, survey.minutes)
}

/// Returns what a switch to another process costs more than one to a thread. Older surveys have
/// none.
fn switch_price(survey: &Survey) -> Option<String> {
    let prices: Vec<String> = survey.switch.iter().map(SwitchPrice::describe).collect();
    let all = prices.join("; ");
    (!prices.is_empty()).then(|| format!("to another process longer than to another thread: {all}"))
}

fn machine_line(survey: &Survey) -> String {
    let machine = &survey.machine;
    let memory = human_bytes(machine.memory_bytes);
    format!("{}, {memory} memory, Linux {}", machine_name(survey), machine.kernel)
}

/// Returns the machine's CPU, how many cores may be used, and whether it is virtual.
pub(super) fn machine_name(survey: &Survey) -> String {
    let machine = &survey.machine;
    let hypervisor = match machine.hypervisor.as_deref() {
        None => String::new(),
        Some("unknown") => ", virtual".into(),
        Some(name) => format!(", virtual ({name})"),
    };
    let (allowed, online) = (machine.cores_allowed.len(), machine.cores_online);
    format!("{}, {allowed} of {online} CPUs{hypervisor}", machine.cpu_model)
}

/// Returns the survey's answers for one machine as text of 80 columns.
pub fn text_card(survey: &Survey) -> String {
    let mut text = String::new();
    for line in [headline(survey), machine_line(survey), survey.fitness.sentence()] {
        text += &wrap(&line, WIDTH - 2, 0).join("\n  ");
        text.push('\n');
    }
    text.push('\n');
    let gap = format!("\n{:NAMES$}", "");
    for part in rows(survey) {
        let lines = wrap(&answer(survey, part), WIDTH - NAMES - 2, 0);
        text += &format!("{:NAMES$}{}\n", part.name(), lines.join(&gap));
    }
    if let Some(price) = switch_price(survey) {
        text += &format!("{:NAMES$}{}\n", "switch", wrap(&price, WIDTH - NAMES - 2, 0).join(&gap));
    }
    text
}

/// Width of the picture, its margin, and the left edges of answers and drawings.
const CARD_WIDTH: f64 = 860.0;
const MARGIN: f64 = 24.0;
const ANSWERS: f64 = 136.0;
const DRAWINGS: f64 = CARD_WIDTH - MARGIN - SIZE.0;
/// Characters in a line of an answer, and of the whole width.
const ANSWER_CHARS: usize = 68;
const LINE_CHARS: usize = 116;
const LINE: f64 = 18.0;

/// Returns the survey's answers for one machine as an SVG file.
pub fn svg_card(survey: &Survey) -> String {
    let (size, content) = drawing(survey);
    svg::file(size, &headline(survey), None, STYLE, &content)
}

/// Returns width, height and content of the picture, without the element `svg` around it.
pub(super) fn drawing(survey: &Survey) -> ((f64, f64), Markup) {
    let mut top = 34.0;
    let mut parts: Vec<Markup> = vec![text(MARGIN, top, "start", "heading", &headline(survey))];
    let class = if survey.fitness.is_fit { "dim" } else { "warning" };
    let price = switch_price(survey).map(|price| ("dim", format!("A switch {price}")));
    let lines = [Some(("dim", machine_line(survey))), price, Some((class, survey.fitness.sentence()))];
    for (class, sentence) in lines.into_iter().flatten() {
        for sentence in wrap(&sentence, LINE_CHARS - 2, 0) {
            top += LINE;
            parts.push(text(MARGIN, top, "start", class, &sentence));
        }
    }
    top += LINE;
    for part in rows(survey) {
        let lines = wrap(&answer(survey, part), ANSWER_CHARS - 2, 0);
        parts.push(html! {
            (line((MARGIN, top), (CARD_WIDTH - MARGIN, top), "rule"))
            (text(MARGIN, top + 24.0, "start", "strong", part.name()))
            @for (number, sentence) in lines.iter().enumerate() {
                (text(ANSWERS, top + 24.0 + LINE * number as f64, "start", "", sentence))
            }
            g transform={ "translate(" (coordinate(DRAWINGS)) " " (coordinate(top + 10.0)) ")" } { (picture::draw(survey, part)) }
        });
        top += (LINE * lines.len() as f64 + 20.0).max(SIZE.1 + 18.0);
    }
    if let Some((height, matrix)) = picture::matrix(survey, CARD_WIDTH - ANSWERS - MARGIN) {
        parts.push(html! { g transform={ "translate(" (coordinate(ANSWERS)) " " (coordinate(top)) ")" } { (matrix) } });
        top += height + MARGIN;
    }
    let content = html! { @for part in &parts { (part) } };
    ((CARD_WIDTH, top), content)
}

/// Returns the answer of a part, followed by what is missing in it.
pub(super) fn answer(survey: &Survey, part: SurveyPart) -> String {
    let found = match part {
        SurveyPart::Cores => survey.cores.as_ref().and_then(|matrix| {
            // What the picture has as dots: each of the two, whether or not the other is known.
            let synchronized = matrix.spread(|pair| pair.synchronized_ns).map(times);
            let unsynchronized = matrix.spread(|pair| pair.unsynchronized_ns).map(times);
            (synchronized.is_some() || unsynchronized.is_some()).then(|| {
                let or_unknown = |times: Option<String>| times.unwrap_or_else(|| "a time not known".into());
                format!(
                    "a cache line takes {} there and back synchronized, {} unsynchronized ({} cores)",
                    or_unknown(synchronized),
                    or_unknown(unsynchronized),
                    matrix.cores.len()
                )
            })
        }),
        SurveyPart::Recovery => recovery(&survey.recovery),
        SurveyPart::Containment => survey.containment.as_ref().map(contain::answer),
        SurveyPart::Disturbance => survey.disturbance.as_ref().map(disturb::short_answer),
        SurveyPart::Journal => survey.journal.as_ref().and_then(|found| {
            let one = found.comparisons.first()?;
            let line = line_of(&one.lines, one.endpoint.measure(), Percentile::P50)?;
            Some(difference(line, "a journal that survives the process"))
        }),
        SurveyPart::Bill => survey.isolation_costs.as_ref().map(isolation_cost::answer),
        SurveyPart::Queue => survey.queue.as_ref().and_then(|found| {
            let loads: Vec<String> = found.comparisons.iter().map(queue_ratio).collect();
            (!loads.is_empty()).then(|| {
                let measure =
                    found.comparisons.first().map_or("rt_venue", |one| one.endpoint.measure.as_str());
                format!("spsc-mux against crossbeam's ArrayQueue, ratio of {measure}: {}", loads.join("; "))
            })
        }),
    };
    match (found, survey.shortfall(part)) {
        (Some(found), None) => found,
        (Some(found), Some(why)) => format!("{found} ({why})"),
        (None, Some(why)) => format!("not measured: {why}"),
        (None, None) => "not measured".into(),
    }
}

/// `68.2 ns`, or `65.0 to 310 ns (median 120)` over several pairs of cores.
fn times(spread: Spread) -> String {
    if spread.low == spread.high {
        return format!("{} ns", plain(spread.median));
    }
    format!("{} to {} ns (median {})", plain(spread.low), plain(spread.high), plain(spread.median))
}

fn recovery(runs: &[Recovery]) -> Option<String> {
    runs.first()?;
    let sent = count(runs.iter().map(|run| run.sent).sum());
    let returned = count(runs.iter().map(|run| run.returned).sum());
    let death = |run: &Recovery| {
        format!("{} recovered {} of {}", run.role, run.recovered, counted(run.killed as u64, "time"))
    };
    let deaths = runs.iter().map(death).collect::<Vec<_>>().join(", ");
    let all = runs.iter().flat_map(|run| &run.recover_ns).map(|ns| *ns as f64);
    let median = Spread::from_values(all).map(|spread| duration(spread.median as u64));
    let median = median.map_or_else(String::new, |median| format!(", after {median} at the median"));
    let problems = runs.iter().map(|run| run.problem.as_str()).filter(|problem| !problem.is_empty());
    let problems = problems.collect::<Vec<_>>().join("; ");
    let problems = if problems.is_empty() { problems } else { format!("; NOT VALID: {problems}") };
    Some(format!("{returned} of {sent} orders came back; {deaths}{median}{problems}"))
}

/// `a journal that survives against 721 ns without, at p50: slower: costs +80 ns [+70, +90]`.
fn difference(line: &ComparisonLine, what: &str) -> String {
    let base = line.a_ns.map_or_else(|| "an unknown time".into(), |ns| duration(ns as u64));
    format!("{what}, to {base} at p50: {}", describe_verdict(line))
}

/// `400k/s p50 0.861 [0.840–0.880], p99 0.930 [0.900–0.960]`.
fn queue_ratio(comparison: &Comparison) -> String {
    let rate = picture::rate_of(comparison);
    let at = |percentile: Percentile| {
        let line = line_of(&comparison.lines, comparison.endpoint.measure(), percentile)?;
        let evidence = line.evidence();
        let why = evidence.why.split(':').next().unwrap_or_default();
        Some(match evidence.difference {
            None => format!("{} not comparable ({why})", percentile.name()),
            Some(_) => format!("{} {}", percentile.name(), ratio_cell(&evidence)),
        })
    };
    let mut figures: Vec<String> = [Percentile::P50, Percentile::P99].into_iter().filter_map(at).collect();
    if figures.len() == 2 && figures[0].contains('(') && figures[1].contains('(') {
        figures.pop();
    }
    format!("{rate}/s {}", figures.join(", "))
}
