//! A lab as tables and in words: what each queue and each way of waiting cost, and what it bought.

mod figures;
mod peaks;
mod seed;
mod tables;

pub use figures::{CellFigures, PAIRS};
pub use peaks::{TwoPeaks, two_peaks};
pub use seed::seed_table;
pub use tables::against_busy;

use crate::experiment::Lab;
use crate::report::grid::Grid;
use crate::report::units::{count, duration, plain};
use peaks::peaks;
use protocol::plan::Isolation;
use tables::{CARRIER, carried, everything, fairness};

/// The heading of a lab's document.
pub fn heading(lab: &Lab) -> String {
    format!("lab, {} on {}", lab.started, lab.machine.cpu_model)
}

/// What to know of it.
pub fn notes(lab: &Lab) -> Vec<String> {
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

/// The tables for the terminal.
pub fn narrow(lab: &Lab) -> Vec<Grid> {
    let mut grids: Vec<Grid> = against_busy(lab).into_iter().collect();
    grids.extend(lab.carriers().iter().filter_map(|carrier| carried(lab, carrier)));
    if let Some(last) = grids.last_mut().filter(|grid| grid.name == CARRIER) {
        let note = "medians over the runs; CPU and wakes are of an event, switches of a thousand";
        last.notes.push(note.into());
    }
    grids.extend(seed_table(lab));
    grids.extend(fairness(lab));
    grids
}

/// The tables for the files.
pub fn wide(lab: &Lab) -> Vec<Grid> {
    let mut grids: Vec<Grid> = against_busy(lab).into_iter().collect();
    grids.push(everything(lab));
    grids.extend(seed_table(lab));
    grids.extend(fairness(lab));
    grids
}
