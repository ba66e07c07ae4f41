//! The first screen of a survey, and its line to paste into an issue, with each part in a few
//! words.

use super::card::{machine_name, rows};
use super::{Recovery, Survey, SurveyPart};
use crate::experiment::contain::disturb::Effect;
use crate::experiment::contain::{Contained, Containments};
use crate::experiment::ratio::{line_of, ratio_cell};
use crate::experiment::{BriefReport, Comparison, Disturbances, IsolationCosts, isolation_cost};
use crate::stats::{ComparisonLine, Percentile, Spread};
use record::numbers::{counted, duration, plain};
use verdict::table::grid::wrap;
use verdict::table::{Grid, GridRow};

/// Characters in a line of what a part found.
const FOUND_CHARS: usize = 64;

/// Returns the answer, and the table with a row for each part.
pub(super) fn brief(survey: &Survey) -> BriefReport {
    // A long text goes on in rows of its own.
    let lines = |part: SurveyPart| {
        let lines = wrap(&in_short(survey, part), FOUND_CHARS, 0).into_iter().enumerate();
        lines.map(move |(number, line)| {
            let name = if number == 0 { part.name() } else { "" };
            GridRow::plain(vec![name.into(), line])
        })
    };
    let incomplete = if survey.complete { "" } else { ", INCOMPLETE: it was interrupted" };
    let table = Grid::new("survey_brief", "", 2, ["part", "found"], rows(survey).flat_map(lines));
    BriefReport { answer: machine_name(survey) + incomplete, table: Some(table) }
}

/// Returns the survey of one machine in one line, to be pasted into an issue.
pub fn issue_line(survey: &Survey) -> String {
    let part = |part: SurveyPart| format!("{part}: {}", in_short(survey, part));
    let fit = if survey.fitness.is_fit { "fit" } else { "not fit" };
    format!(
        "bulkhead {} survey, {}, {} min{}, {}, Linux {}, {fit} for latency claims; {}",
        survey.version,
        survey.day(),
        survey.minutes,
        if survey.complete { "" } else { ", INCOMPLETE" },
        machine_name(survey),
        survey.machine.kernel,
        rows(survey).map(part).collect::<Vec<_>>().join("; ")
    )
}

/// Returns the answer of a part in a few words; why there is none.
fn in_short(survey: &Survey, part: SurveyPart) -> String {
    let found = match part {
        SurveyPart::Cores => survey.cores.as_ref().and_then(|matrix| {
            let spread = matrix.spread(|pair| pair.synchronized_ns)?;
            Some(format!("{} to another core and back", range(spread)))
        }),
        SurveyPart::Recovery => recovery(&survey.recovery),
        SurveyPart::Containment => survey.containment.as_ref().map(containment),
        SurveyPart::Disturbance => survey.disturbance.as_ref().map(disturbance),
        SurveyPart::Journal => survey.journal.as_ref().and_then(|found| {
            let line = median(found.comparisons.first()?)?;
            Some(format!("p50 × {}", ratio_cell(&line.evidence())))
        }),
        SurveyPart::Bill => survey.isolation_costs.as_ref().and_then(levels),
        SurveyPart::Queue => survey.queue.as_ref().and_then(|found| {
            let ratio = |one| Some(ratio_cell(&median(one)?.evidence()));
            let ratios: Vec<String> = found.comparisons.iter().filter_map(ratio).collect();
            Some(format!("spsc-mux against ArrayQueue, p50 × {}", ratios.first()?))
        }),
    };
    found.unwrap_or_else(|| match survey.shortfall(part) {
        Some(why) => format!("not measured: {why}"),
        None => "not measured".into(),
    })
}

fn median(one: &Comparison) -> Option<&ComparisonLine> {
    line_of(&one.lines, one.endpoint.measure(), Percentile::P50)
}

/// `68.2 ns`, or `65.0 to 310 ns` over several pairs of cores.
fn range(spread: Spread) -> String {
    let [low, high] = [spread.low, spread.high].map(plain);
    if low == high { format!("{low} ns") } else { format!("{low} to {high} ns") }
}

/// Returns p50 of each level against threads: `process × = 1.010 [0.980–1.020], sandbox …`.
fn levels(costs: &IsolationCosts) -> Option<String> {
    let technique = isolation_cost::headline_technique(costs)?;
    let rows = costs.rows.iter().filter(|row| row.technique == technique);
    let level = |row: &isolation_cost::IsolationCostRow| {
        let cost = row.adds.first()?;
        Some(format!("{} {}", row.level(), ratio_cell(&cost.line.evidence())))
    };
    let levels: Vec<String> = rows.filter_map(level).collect();
    (!levels.is_empty()).then(|| format!("p50 × {}", levels.join(", ")))
}

fn containment(found: &Containments) -> String {
    let outcomes = found.rows.iter().map(|row| row.contained);
    let outcomes: Vec<Contained> = outcomes.chain(found.roles.iter().map(|row| row.contained)).collect();
    let is_contained = |outcome: &&Contained| **outcome == Contained::Yes;
    let contained = outcomes.iter().filter(is_contained).count();
    format!("{contained} of {} contained", counted(outcomes.len() as u64, "fault"))
}

fn disturbance(found: &Disturbances) -> String {
    let real = || found.real().map(|(row, _)| row);
    let with = |effect| real().filter(|row| row.effect(&found.endpoint) == effect).count();
    let unknown = with(Effect::CannotTell) + with(Effect::NotTried);
    let disturbed = with(Effect::Disturbed);
    format!(
        "{disturbed} of {} disturbed the others, {unknown} cannot tell",
        counted(real().count() as u64, "try")
    )
}

fn recovery(runs: &[Recovery]) -> Option<String> {
    runs.first()?;
    let (killed, recovered) =
        runs.iter().fold((0, 0), |(killed, back), run| (killed + run.killed, back + run.recovered));
    let times = Spread::from_values(runs.iter().flat_map(|run| &run.recover_ns).map(|ns| *ns as f64));
    let after = times.map_or_else(String::new, |times| format!(", after {}", duration(times.median as u64)));
    let problem = runs.iter().any(|run| !run.problem.is_empty());
    let problem = if problem { "; NOT VALID" } else { "" };
    Some(format!(
        "recovered from {recovered} of {} of engine and exchange{after}{problem}",
        counted(killed as u64, "kill")
    ))
}
