//! The report of a lab: the cost of each queue with each way of waiting.

use super::figures::CellFigures;
use super::seed::seed_table;
use super::tables::{CARRIER, against_busy, carrier_table, fairness, full_table, waits_against_busy};
use super::{Lab, charts};
use crate::experiment::{
    ALL, ExperimentReport, FILES, PAGE, ReportSection, SectionPart, TERMINAL, machine_facts,
};
use crate::numbers::{count, duration, plain};
use protocol::plan::Isolation;

/// Above the charts of latency against CPU.
const PARETO: &str = "Each dot is a queue and a way of waiting, at the p50 of the latency; its line goes up to the 99th percentile. Left is \
                      cheaper, down is quicker: the stepped line joins what no other beats in both. Of a slow side that works, its work is in \
                      the CPU time.";
/// Above the spread of the run times.
const RUNS: &str = "How the run times of each cell are spread: two humps are two kinds of runs.";

/// Returns the report of a queue benchmark (`launcher lab`).
pub fn report(lab: &Lab) -> ExperimentReport {
    let (done, all) = lab.progress();
    let nothing = || SectionPart::Text("Nothing measured yet: launcher lab --resume goes on with it.".into());
    let some = |charts: Vec<SectionPart>| if charts.is_empty() { vec![nothing()] } else { charts };
    let mut carriers: Vec<_> =
        lab.carriers().iter().filter_map(|carrier| carrier_table(lab, carrier)).collect();
    if let Some(last) = carriers.last_mut().filter(|grid| grid.name == CARRIER) {
        last.notes
            .push("medians over the runs; CPU and wakes are of an event, switches of a thousand".into());
    }
    ExperimentReport {
        name: "lab",
        heading: format!("lab, {} on {}", lab.started, lab.machine.cpu_model),
        title: "Which queue, which way of waiting".into(),
        subject: format!("{} cells, {done} of {all} runs, on {}", lab.cells.len(), lab.machine.cpu_model),
        origin: format!("bulkhead {}", lab.version),
        answer: answer(lab),
        fitness: lab.fitness(),
        conditions: condition_line(lab),
        facts: [machine_facts(&lab.machine), vec![("settings".into(), condition_line(lab))]].concat(),
        notes: notes(lab),
        sections: vec![
            ReportSection::new("pareto", "Latency against CPU")
                .with([SectionPart::Text(PARETO.into())])
                .with(some(charts::pareto(lab).into_iter().map(SectionPart::Chart).collect())),
            ReportSection::new("waiting", "What a way of waiting costs, and what it buys")
                .with(against_busy(lab).map(|grid| SectionPart::Table(grid, ALL))),
            ReportSection::new("runs", "How long each run took")
                .with([SectionPart::Text(RUNS.into())])
                .with(some(charts::distributions(lab).into_iter().map(SectionPart::Chart).collect())),
            ReportSection::new("tables", "All figures")
                .with(carriers.into_iter().map(|grid| SectionPart::Table(grid, TERMINAL)))
                .with([SectionPart::Table(full_table(lab), FILES | PAGE)])
                .with(seed_table(lab).map(|grid| SectionPart::Table(grid, ALL)))
                .with(fairness(lab).map(|grid| SectionPart::Table(grid, ALL))),
        ],
        ..ExperimentReport::default()
    }
}

/// The measuring conditions in one line.
fn condition_line(lab: &Lab) -> String {
    let slack = duration(lab.slack_ns);
    format!(
        "measured {}: {} events a run, {} runs of each cell in turn, {} slots, slow is {} ± {}%, poll sleeps {}, timer slack {slack}, \
         seed {}, clock read {}",
        lab.started,
        count(lab.events),
        lab.runs,
        lab.capacity,
        lab.slow,
        plain(lab.jitter * 100.0),
        duration(lab.poll_ns),
        lab.seed,
        duration(lab.clock_read_ns as u64)
    )
}

/// The result of a lab in one sentence: what each way of waiting costs and buys against busy
/// waiting, or the quickest and the cheapest cell.
fn answer(lab: &Lab) -> String {
    let against = waits_against_busy(lab);
    if !against.is_empty() {
        return against.join("; ");
    }
    let cells: Vec<_> = lab
        .cells
        .iter()
        .filter_map(|cell| Some((cell.name(), CellFigures::from_cell(cell, lab.events)?)))
        .collect();
    let quickest =
        cells.iter().filter_map(|(name, figures)| Some((name, figures.p50?))).min_by_key(|cell| cell.1);
    let cheapest =
        cells.iter().map(|(name, figures)| (name, figures.cpu())).min_by(|a, b| a.1.total_cmp(&b.1));
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

/// Remarks about a lab.
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
