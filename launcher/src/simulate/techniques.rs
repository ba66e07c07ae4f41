//! From a technique's name to the simulation that is compiled for it: a table, filled once, at the start of the program.

use super::scenario::Scenario;
use super::{Simulated, run};
use protocol::plan::Technique;
use roles::registry::Links;
use shm::ring::Link;
use std::sync::OnceLock;
use techniques::Visitor;

/// Simulates a scenario over one technique.
type Run = fn(Scenario) -> Result<Simulated, String>;

static TABLE: OnceLock<Vec<(Technique, Run)>> = OnceLock::new();

struct Fill(Vec<(Technique, Run)>);

impl Visitor for Fill {
    fn visit<L: Link>(&mut self) {
        self.0.push((Technique::of::<L>(), run::<L>));
    }
}

fn table<T: Links>() -> Vec<(Technique, Run)> {
    let mut fill = Fill(Vec::new());
    T::each(&mut fill);
    fill.0
}

/// Makes these techniques, and the built-in ones, those that the program can simulate, if nothing was simulated yet.
pub(crate) fn install<T: Links>() {
    let _ = TABLE.set(table::<T>());
}

/// How a scenario is simulated over that technique; `None` for one that was never installed.
pub(super) fn simulation_of(technique: Technique) -> Option<Run> {
    let table = TABLE.get_or_init(table::<()>);
    table.iter().find(|(known, _)| *known == technique).map(|(_, run)| *run)
}
