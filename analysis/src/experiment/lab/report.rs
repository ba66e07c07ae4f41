//! The report of a lab: the cost of each queue with each way of waiting.

use super::against::{CPU, P50, RunFigure, factor, rank_cells, wait_against_busy};
use super::figures::{CellFigures, MeasuredLabCell, measured};
use super::seed::{delivery_table, seed_table};
use super::tables::{against_busy, brief_table, carrier_table, fairness, full_table};
use super::{KIND, Lab, LabCell, Wait, charts};
use crate::experiment::{
    ALL, BriefReport, ExperimentReport, FILES, PAGE, ReportSection, TERMINAL, machine_facts,
};
use crate::grouping::distinct;
use maud::Markup;
use protocol::plan::Isolation;
use record::numbers::{counted, duration, plain};
use verdict::table::Grid;

const PARETO: &str = "Each dot is a queue and a way of waiting, at the p50 of the latency; its line goes up to the 99th percentile. Left is \
                      cheaper, down is quicker: the stepped line joins what no other beats in both. Of a slow side that works, its work is in \
                      the CPU time.";
const RUNS: &str = "How the run times of each cell are spread: two humps are two kinds of runs.";

/// Returns the report of a queue benchmark (`launcher lab`).
pub fn report(lab: &Lab) -> ExperimentReport {
    let (done, all) = lab.progress();
    let charts = |section: ReportSection, charts: Vec<Markup>| match charts.is_empty() {
        true => section.text("Nothing measured yet: launcher resume FOLDER goes on with it."),
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
        title: KIND.title.into(),
        subject: format!(
            "{}, {done} of {all} runs, on {}",
            counted(lab.cells.len() as u64, "cell"),
            lab.machine.cpu_model
        ),
        origin: format!("started {}, bulkhead {}", lab.started, lab.version),
        answer: answer(&measured),
        brief: BriefReport {
            table: Some(brief_table(&measured)).filter(|grid| !grid.rows.is_empty()),
            ..BriefReport::default()
        },
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
                .tables(ALL, delivery_table(lab, &measured))
                .tables(ALL, fairness(lab)),
        ],
        ..ExperimentReport::default()
    }
}

fn condition_line(lab: &Lab) -> String {
    let slack = duration(lab.plan.slack_ns);
    format!(
        "measured {}: {} a run, {} of each cell in turn, {} slots, slow is {} ± {}%, poll sleeps {}, timer slack {slack}, \
         seed {}, clock read {}",
        lab.started,
        counted(lab.plan.events, "event"),
        counted(lab.plan.runs.into(), "run"),
        lab.plan.capacity,
        lab.plan.slow,
        plain(lab.plan.jitter * 100.0),
        duration(lab.plan.poll_ns),
        lab.plan.seed,
        duration(lab.plan.clock_read_ns as u64)
    )
}

/// The result: what each way of waiting costs and buys, or the quickest and the cheapest cell.
fn answer(measured: &[MeasuredLabCell<'_>]) -> String {
    let against = |wait: &Wait| {
        let of = |figure| wait_against_busy(measured, *wait, &|_| true, figure);
        let p50 = of(P50).map_or_else(String::new, |found| format!(", p50 {}", factor(&found)));
        Some(format!("{wait} against busy: CPU {}{p50}", factor(&of(CPU)?)))
    };
    let against: Vec<String> =
        Wait::ALL.iter().filter(|wait| **wait != Wait::Busy).filter_map(against).collect();
    if !against.is_empty() {
        return against.join("; ");
    }
    let p50 =
        |figures: &CellFigures| figures.p50.map_or_else(String::new, |ns| format!(", p50 {}", duration(ns)));
    let cpu = |figures: &CellFigures| format!(", {} of CPU an event", duration(figures.cpu() as u64));
    match measured {
        [] => "nothing is measured yet".into(),
        [(cell, figures)] => format!("{}{}{}", cell.name(), p50(figures), cpu(figures)),
        _ => {
            let best = [best(measured, "quickest", P50, &p50), best(measured, "cheapest", CPU, &cpu)];
            best.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    }
}

/// Names the best cell by a figure, or why none is known to be.
fn best(
    measured: &[MeasuredLabCell<'_>],
    word: &str,
    figure: RunFigure,
    shown: &dyn Fn(&CellFigures) -> String,
) -> Option<String> {
    let cells: Vec<&LabCell> = measured.iter().map(|(cell, _)| *cell).collect();
    let (cells, ranking) = rank_cells(&cells, figure)?;
    let (best, rival) = (cells[ranking.lowest], cells[ranking.rival]);
    if !ranking.is_shown() {
        let why = ranking.evidence.describe();
        return Some(format!("no cell is {word}: {} against {}: {why}", rival.name(), best.name()));
    }
    let (_, figures) = measured.iter().find(|(cell, _)| std::ptr::eq(*cell, best))?;
    Some(format!("{word} is {}{}", best.name(), shown(figures)))
}

fn notes(lab: &Lab) -> Vec<String> {
    let mut notes = lab.notes.clone();
    if let Some(sleep) = lab.plan.sleep {
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

#[cfg(test)]
mod tests {
    use super::super::{LabLatency, LabRun};
    use super::*;
    use crate::fixture;

    /// The golden lab, busy and parked, with a run for each of these p50.
    fn lab(busy: &[u64], park: &[u64]) -> Lab {
        let mut lab = Lab::from_experiment(&fixture("saved/lab.json")).unwrap();
        lab.plan.runs = busy.len() as u32;
        for (cell, p50) in lab.cells.iter_mut().zip([busy, park]) {
            let run = LabRun { problems: Vec::new(), ..cell.made[0].clone() };
            cell.made.clear();
            for (number, ns) in (0..).zip(p50) {
                let latency = run.latency.map(|known| LabLatency { p50_ns: Some(*ns), ..known });
                let run = LabRun { number, latency, ..run.clone() };
                cell.made.push(run);
            }
        }
        lab
    }

    const BUSY: [u64; 10] = [240, 241, 239, 240, 242, 238, 240, 243, 240, 239];

    #[test]
    fn headline_has_factor_only_if_repeats_agree() {
        let agreed = lab(&BUSY, &BUSY.map(|ns| 10 * ns));
        let message = answer(&measured(&agreed));
        assert!(
            message.starts_with("park against busy: CPU ") && message.contains("p50 10.0 × [10.0–10.0]"),
            "{message}"
        );
        // A regression: 754, 1,219 and 32.6 times in three labs, each as a headline.
        let wild = [180_960, 7_824, 292_560, 9_000, 410, 250_000, 6_000, 120_000, 2_000, 300_000];
        let disagreed = lab(&BUSY, &wild);
        let message = answer(&measured(&disagreed));
        assert!(message.contains("p50 [") && message.ends_with("] ×"), "bounds only: {message}");
        let around = [120, 900, 60, 2_000, 100, 500, 90, 240, 700, 30];
        let message = answer(&measured(&lab(&BUSY, &around)));
        assert!(message.contains("p50 cannot tell: "), "{message}");
        let message = answer(&measured(&lab(&BUSY[..3], &[2_400; 3])));
        assert!(message.contains("p50 cannot tell: too few repeats: 3 of at least 5 pairs"), "{message}");
    }

    #[test]
    fn quickest_cell_is_marked_only_if_others_are_slower() {
        let shown = |lab: &Lab| {
            let cells: Vec<&LabCell> = lab.cells.iter().collect();
            rank_cells(&cells, P50).unwrap().1.is_shown()
        };
        assert!(shown(&lab(&BUSY, &BUSY.map(|ns| 2 * ns))));
        assert!(!shown(&lab(&BUSY, &BUSY)));
        assert!(!shown(&lab(&BUSY[..4], &[999; 4])), "four runs have no interval");
    }
}
