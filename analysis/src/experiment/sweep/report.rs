//! The report of a sweep, and the parts that all saved experiments share.

use super::charts::{self, mebibytes, rt_venue};
use super::{SweepPoint, SweepRecord, knee, search, tables};
use crate::experiment::{
    ALL, Answer, ExperimentReport, FILES, PAGE, Part, Section, TERMINAL, conditions, machine_facts,
};
use crate::numbers::{count, duration, percent, plain};
use crate::stats::{Percentile, RunOutline};
use crate::summary::Measure;
use crate::table::Grid;
use std::collections::BTreeMap;

/// So many kinds of reasons are listed.
const REASONS: usize = 12;

/// What a sweep shows, or a search for the highest rate; also of an experiment that is not
/// complete.
pub fn report(sweep: &SweepRecord) -> ExperimentReport {
    let title = match sweep.kind.as_str() {
        "bill" => "The bill",
        "max-rate" => "Search for the highest rate",
        _ => "Sweep",
    };
    let report = ExperimentReport { name: "sweep", notes: notes(sweep), ..frame(sweep, title) };
    let sections = match &sweep.search {
        Some(search) => vec![search::section(sweep, search)],
        None => {
            let rt_venue =
                tables::rt_venue(sweep).into_iter().map(|grid| Part::Table(grid, TERMINAL | FILES));
            let others = [tables::by_floor(sweep), tables::by_host(sweep), knee::knee(sweep)];
            let others = others.into_iter().flatten().map(|grid| Part::Table(grid, ALL));
            let table = Section::new("tables", "By placement, host and load").with(rt_venue).with(others);
            [vec![table], points(sweep)].concat()
        }
    };
    ExperimentReport { sections, ..report }
}

/// Everything but the tables: headings, verdict, machine, conditions.
pub(in crate::experiment) fn frame(sweep: &SweepRecord, title: &str) -> ExperimentReport {
    let axes = sweep.axes.iter().map(|axis| {
        let number = axis.values.len();
        format!("{number} {}", plural(axis.axis.name(), number))
    });
    let axes = axes.collect::<Vec<_>>().join(" × ");
    let repeats = if sweep.repeats == 1 { "1 repeat".into() } else { format!("{} repeats", sweep.repeats) };
    let values = sweep.axes.iter().map(|axis| (axis.axis.to_string(), axis.values.join(", ")));
    let date = [("date".to_owned(), sweep.started.clone())];
    ExperimentReport {
        heading: heading(sweep),
        title: title.into(),
        subject: if axes.is_empty() { repeats } else { format!("{axes}, {repeats}") },
        origin: format!("started {}, bulkhead {}, {}", sweep.started, sweep.version, sweep.state.name()),
        answer: sweep.search.is_none().then(|| answer(sweep)),
        facts: machine_facts(&sweep.machine)
            .into_iter()
            .chain(values)
            .chain(date)
            .chain(conditions(sweep))
            .collect(),
        ..ExperimentReport::default()
    }
}

/// The heading of an experiment's document.
fn heading(sweep: &SweepRecord) -> String {
    let preset = sweep.preset.as_ref().filter(|preset| **preset != sweep.kind);
    let what = preset.map_or_else(String::new, |preset| format!(" {preset}"));
    format!("{}{what}, {} on {}", sweep.kind, sweep.started, sweep.machine.cpu_model)
}

/// What to know about an experiment as a whole.
pub fn notes(sweep: &SweepRecord) -> Vec<String> {
    let said: Vec<String> = conditions(sweep).iter().map(|(name, text)| format!("{name} {text}")).collect();
    let measured = (!said.is_empty()).then(|| format!("measured {}: {}", sweep.started, said.join(", ")));
    let mut notes: Vec<String> = measured.into_iter().chain(sweep.notes.iter().cloned()).collect();
    let (all, wanted) = (sweep.runs().count(), sweep.points.len() * sweep.repeats as usize);
    if sweep.search.is_none() && all < wanted {
        notes.push(format!("{all} of {wanted} runs are done"));
    }
    let unfit: Vec<_> = sweep.runs().filter(|run| !run.outline.fit_for_latency).collect();
    if let Some(first) = unfit.first().filter(|_| !sweep.keeps_failures) {
        let why = first.outline.reasons.first().map_or("no reason given", String::as_str);
        notes.push(format!("{} of {all} runs are not fit for latency claims, e.g. {why}", unfit.len()));
    }
    notes
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
fn answer(sweep: &SweepRecord) -> Answer {
    let runs = || sweep.runs().map(|run| &run.outline);
    let (all, sound) = (runs().count(), runs().filter(|run| run.is_sound()).count());
    let fit = runs().filter(|run| run.is_sound() && run.fit_for_latency).count();
    let planned = sweep.points.len() * sweep.repeats as usize;
    let good = fit == planned && planned > 0;
    // Reasons differ by their figures: one of each kind stands for all. The kind is what stands
    // before the colon.
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
    let mut reasons = Vec::new();
    if all < planned {
        let missing = count((planned - all) as u64);
        reasons.push(format!("{missing} runs not measured: the sweep is {}", sweep.state.name()));
    }
    if sound < all {
        reasons.push(format!(
            "{} runs incomplete or invalid: left out of every figure",
            count((all - sound) as u64)
        ));
    }
    let word = |number| if number == 1 { "run" } else { "runs, for example" };
    reasons.extend(
        kinds.iter().take(REASONS).map(|(number, reason)| format!("{number} {}: {reason}", word(*number))),
    );
    if kinds.len() > REASONS {
        reasons.push(format!("{} more kinds of reasons in sweep.json", kinds.len() - REASONS));
    }
    if good {
        reasons.clear();
    }
    let of = if good {
        format!("All {}", count(planned as u64))
    } else {
        format!("{} of {}", count(fit as u64), count(planned as u64))
    };
    Answer {
        good,
        sentence: format!("{of} runs fit for latency claims"),
        reasons,
        counts: [("fit", fit), ("sound", sound), ("runs", all), ("planned", planned)]
            .map(|(name, number)| (name, number as u64))
            .to_vec(),
    }
}

/// Every point as a table and as charts, for the page.
pub(in crate::experiment) fn points(sweep: &SweepRecord) -> Vec<Section> {
    let time = |spread: Option<crate::stats::Spread>| {
        spread.map_or_else(|| "–".into(), |spread| duration(spread.median as u64))
    };
    let number = |spread: Option<crate::stats::Spread>| {
        spread.map_or_else(|| "–".into(), |spread| plain(spread.median))
    };
    let at = |point: &SweepPoint, percentile| time(point.spread(|run| rt_venue(run, percentile)));
    let free = |point: &SweepPoint, percentile: Percentile| {
        time(point.spread(|run| Some(percentile.get(&run.measure(Measure::StallFree))? as f64)))
    };
    let per_million = |point: &SweepPoint, of: fn(&RunOutline) -> u64| {
        let share = |run: &RunOutline| (run.returned > 0).then(|| of(run) as f64 * 1e6 / run.returned as f64);
        number(point.spread(share))
    };
    let table = Grid::from_rows(
        "points",
        "Every point: rt_venue, and what it cost",
        1,
        &[
            ("point", &|point: &SweepPoint| point.name_without(&sweep.axes, None)),
            ("runs", &|point| format!("{} of {}", point.sound().count(), sweep.repeats)),
            ("fit", &|point| point.sound().filter(|run| run.fit_for_latency).count().to_string()),
            ("p50", &|point| at(point, Percentile::P50)),
            ("p99", &|point| at(point, Percentile::P99)),
            ("stall-free", &|point| free(point, Percentile::P99)),
            ("p99.9", &|point| at(point, Percentile::P999)),
            ("stall-free", &|point| free(point, Percentile::P999)),
            ("taken out", &|point| percent(point.spread(RunOutline::excluded_share).map(|spread| spread.median))),
            ("CPU s/M orders", &|point| number(point.spread(RunOutline::cpu_s_per_million))),
            ("start-up", &|point| time(point.spread(|run| Some(run.startup_ns as f64)))),
            ("PSS MiB", &|point| number(point.spread(mebibytes))),
            ("faults/M", &|point| per_million(point, |run| run.page_faults)),
            ("switches/M", &|point| per_million(point, |run| run.context_switches)),
            ("busy %", &|point| number(point.spread(|run| Some(run.utilization? * 100.0)))),
        ],
        &sweep.points,
    )
    .note(
        "Medians over the sound repeats. A figure that one of them lacks is left out (–). Stall-free: the same of the orders that no stall \
         of the machine touched; taken out: the share that a stall touched.",
    );
    vec![
        Section::new("table", "Every point").with([Part::Table(table, PAGE)]),
        Section::new("charts", "Charts").with(charts::all(sweep).into_iter().map(Part::Chart)),
    ]
}
