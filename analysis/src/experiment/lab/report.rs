//! The report of a lab: what each queue and each way of waiting cost and bought.

use super::peaks::peaks;
use super::seed::seed_table;
use super::tables::{CARRIER, against_busy, carried, everything, fairness};
use super::{Lab, charts};
use crate::experiment::{ALL, ExperimentReport, FILES, PAGE, Part, Section, TERMINAL, machine_facts};
use crate::numbers::{count, duration, plain};
use protocol::plan::Isolation;

/// Above the charts of latency against CPU.
const PARETO: &str = "Each dot is a queue and a way of waiting, at the p50 of the latency; its line goes up to the 99th percentile. Left is \
                      cheaper, down is quicker: the stepped line joins what no other beats in both. Of a slow side that works, its work is in \
                      the CPU time.";
/// Above the spread of the run times.
const RUNS: &str = "How the run times of each cell are spread: two humps are two kinds of runs.";

/// What it shows.
pub fn report(lab: &Lab) -> ExperimentReport {
    let (done, all) = lab.progress();
    let nothing = || Part::Text("Nothing measured yet: launcher lab --resume goes on with it.".into());
    let some = |charts: Vec<Part>| if charts.is_empty() { vec![nothing()] } else { charts };
    let mut carriers: Vec<_> = lab.carriers().iter().filter_map(|carrier| carried(lab, carrier)).collect();
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
        facts: machine_facts(&lab.machine),
        notes: notes(lab),
        sections: vec![
            Section::new("waiting", "What a way of waiting costs, and what it buys")
                .with(against_busy(lab).map(|grid| Part::Table(grid, ALL))),
            Section::new("pareto", "Latency against CPU")
                .with([Part::Text(PARETO.into())])
                .with(some(charts::pareto(lab).into_iter().map(Part::Chart).collect())),
            Section::new("runs", "How long each run took")
                .with([Part::Text(RUNS.into())])
                .with(some(charts::distributions(lab).into_iter().map(Part::Chart).collect())),
            Section::new("tables", "All figures")
                .with(carriers.into_iter().map(|grid| Part::Table(grid, TERMINAL)))
                .with([Part::Table(everything(lab), FILES | PAGE)])
                .with(seed_table(lab).map(|grid| Part::Table(grid, ALL)))
                .with(fairness(lab).map(|grid| Part::Table(grid, ALL))),
        ],
        ..ExperimentReport::default()
    }
}

/// What to know of it.
fn notes(lab: &Lab) -> Vec<String> {
    let slack = duration(lab.slack_ns);
    let mut notes = vec![format!(
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
    )];
    notes.extend(lab.notes.iter().cloned());
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
    notes.extend(peaks(lab));
    if lab.cells.iter().any(|cell| cell.isolation == Isolation::Sandbox && cell.technique.is_kernel()) {
        notes.push(
            "what the kernel carries: at sandbox the producers are in the sandbox, the consumers are not"
                .into(),
        );
    }
    notes
}
