//! Formats the summary of a run for the terminal, as CSV and as Markdown.

pub mod export;
mod first_screen;
pub mod incidents;
mod levels;
mod lives;
mod role_restarts;
mod stall_free;
pub mod strategies;
pub mod strategy_costs;
pub mod tables;
mod text;
mod text_writer;
mod trading;
mod venues;
pub use record::numbers as units;

pub use crate::table::grid;
pub use export::{csv, markdown, positions_csv};
pub use first_screen::first_screen;
pub use levels::change;
pub(crate) use stall_free::stall_free_grid;
pub use text::terminal;
pub(crate) use text::{result_fields, setup_fields};

use crate::summary::Summary;
use crate::table::Grid;
use record::cpu_list;
use record::machine::Machine;

/// Returns the tables of a run's report that follow the table of measures, in sections with their
/// headings. Empty sections are left out. A table of incidents, positions or threads has at most
/// `max` rows.
pub fn sections(summary: &Summary, max: usize) -> Vec<(&'static str, Vec<Grid>)> {
    let sections = [
        ("Strategies that died", incidents::grids(summary, max)),
        ("Lives of strategies", lives::grid(summary, max).into_iter().collect()),
        ("Came back from their journals", role_restarts::grids(summary)),
        ("Venues with faults", venues::grids(summary)),
        ("By isolation level", levels::grid(summary).into_iter().chain(levels::crossover(summary)).collect()),
        ("By strategy", strategies::grids(summary)),
        ("Costs", strategy_costs::grids(summary)),
        ("Trading", trading::grids(summary, max)),
        ("Threads", vec![tables::threads(summary, max)]),
    ];
    sections.into_iter().filter(|(_, grids)| !grids.is_empty()).collect()
}

/// Returns the facts about a machine as names and texts for an HTML page: host, CPU, cores and
/// kernel.
pub fn machine_facts(machine: &Machine) -> Vec<(String, String)> {
    let hypervisor =
        machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", virtual ({name})"));
    let cores = format!("{} of {}", cpu_list::format(&machine.cores_allowed), machine.cores_online);
    let governor = machine.governor.as_deref().unwrap_or("not shown");
    let kernel =
        format!("Linux {}, clock source {}, governor {governor}", machine.kernel, machine.clocksource);
    [
        // A survey has no host name.
        ("machine", format!("{}{hypervisor}", machine.hostname).trim_start_matches(", ").to_owned()),
        ("processor", machine.cpu_model.clone()),
        ("cores", cores),
        ("kernel", kernel),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec()
}
