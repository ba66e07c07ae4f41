//! The report of a lab: the cost of each queue with each way of waiting.

use super::figures::{Measured, measured};
use super::seed::seed_table;
use super::tables::{against_busy, carrier_table, fairness, full_table, waits_against_busy};
use super::{Lab, charts};
use crate::experiment::{ALL, ExperimentReport, FILES, PAGE, ReportSection, TERMINAL, machine_facts};
use crate::grouping::distinct;
use crate::numbers::{counted, duration, plain};
use crate::table::Grid;
use maud::Markup;
use protocol::plan::Isolation;

const PARETO: &str = "Each dot is a queue and a way of waiting, at the p50 of the latency; its line goes up to the 99th percentile. Left is \
                      cheaper, down is quicker: the stepped line joins what no other beats in both. Of a slow side that works, its work is in \
                      the CPU time.";
const RUNS: &str = "How the run times of each cell are spread: two humps are two kinds of runs.";

/// Returns the report of a queue benchmark (`launcher lab`).
pub fn report(lab: &Lab) -> ExperimentReport {
    let (done, all) = lab.progress();
    let charts = |section: ReportSection, charts: Vec<Markup>| match charts.is_empty() {
        true => section.text("Nothing measured yet: launcher lab --resume goes on with it."),
        false => section.charts(charts),
    };
    let measured = measured(lab);
    let carriers = distinct(measured.iter().map(|(cell, _)| cell.carrier()));
    let mut carriers: Vec<Grid> =
        carriers.iter().filter_map(|carrier| carrier_table(&measured, carrier)).collect();
    if let Some(last) = carriers.last_mut() {
        last.notes
            .push("medians over the runs; CPU and wakes are of an event, switches of a thousand".into());
    }
    ExperimentReport {
        name: "lab",
        heading: format!("lab, {} on {}", lab.started, lab.machine.cpu_model),
        title: "Which queue, which way of waiting".into(),
        subject: format!(
            "{}, {done} of {all} runs, on {}",
            counted(lab.cells.len() as u64, "cell"),
            lab.machine.cpu_model
        ),
        origin: format!("started {}, bulkhead {}", lab.started, lab.version),
        answer: answer(&measured),
        fitness: lab.fitness(),
        conditions: condition_line(lab),
        facts: [machine_facts(&lab.machine), vec![("settings".into(), condition_line(lab))]].concat(),
        notes: notes(lab),
        sections: vec![
            charts(
                ReportSection::new("pareto", "Latency against CPU").text(PARETO),
                charts::pareto(&measured),
            ),
            ReportSection::new("waiting", "What a way of waiting costs, and what it buys")
                .tables(ALL, against_busy(lab, &measured)),
            charts(
                ReportSection::new("runs", "How long each run took").text(RUNS),
                charts::distributions(lab).into_iter().collect(),
            ),
            ReportSection::new("tables", "All figures")
                .tables(TERMINAL, carriers)
                .tables(FILES | PAGE, [full_table(lab, &measured)])
                .tables(ALL, seed_table(lab, &measured))
                .tables(ALL, fairness(lab)),
        ],
        ..ExperimentReport::default()
    }
}

fn condition_line(lab: &Lab) -> String {
    let slack = duration(lab.slack_ns);
    format!(
        "measured {}: {} a run, {} of each cell in turn, {} slots, slow is {} ± {}%, poll sleeps {}, timer slack {slack}, \
         seed {}, clock read {}",
        lab.started,
        counted(lab.events, "event"),
        counted(lab.runs.into(), "run"),
        lab.capacity,
        lab.slow,
        plain(lab.jitter * 100.0),
        duration(lab.poll_ns),
        lab.seed,
        duration(lab.clock_read_ns as u64)
    )
}

/// The result: what each way of waiting costs and buys, or the quickest and the cheapest cell.
fn answer(measured: &[Measured<'_>]) -> String {
    let against = waits_against_busy(measured);
    if !against.is_empty() {
        return against.join("; ");
    }
    let cells = measured.iter().map(|(cell, figures)| (cell.name(), figures));
    let quickest =
        cells.clone().filter_map(|(name, figures)| Some((name, figures.p50?))).min_by_key(|cell| cell.1);
    let cheapest = cells.map(|(name, figures)| (name, figures.cpu())).min_by(|a, b| a.1.total_cmp(&b.1));
    match (quickest, cheapest) {
        (Some((quick, p50)), Some((cheap, cpu))) => format!(
            "quickest is {quick}, p50 {}; cheapest is {cheap}, {} of CPU an event",
            duration(p50),
            duration(cpu as u64)
        ),
        (None, Some((cheap, cpu))) => {
            format!("cheapest is {cheap}, {} of CPU an event", duration(cpu as u64))
        }
        _ => "nothing is measured yet".into(),
    }
}

fn notes(lab: &Lab) -> Vec<String> {
    let mut notes = lab.notes.clone();
    if let Some(sleep) = lab.sleep {
        notes.push(format!(
            "a sleep of 1 ms takes {} here with the usual timer slack of 50 µs, {} with one of 1 ns; in the seed benchmark 1.09 ms. \
             What is above 1 ms is the timer's and no queue's",
            duration(sleep.default_ns),
            duration(sleep.precise_ns)
        ));
    }
    let (done, all) = lab.progress();
    if done < all {
        notes.push(format!("{done} of {all} runs are done and sound"));
    }
    if lab.cells.iter().any(|cell| cell.isolation == Isolation::Sandbox && cell.technique.is_kernel()) {
        notes.push(
            "what the kernel carries: at sandbox the producers are in the sandbox, the consumers are not"
                .into(),
        );
    }
    notes
}
