//! The settings of one case of the board benchmark, and the cores and the work that follow from
//! them.

use super::mode::WriteLoad;
use super::nodes::BoardNodes;
use analysis::experiment::{BoardPlan, SettingTexts};
use planner::config::UsageError;
use planner::host::Machine;
use protocol::plan::{BoardWork, Isolation, ReaderWaiting};
use std::path::PathBuf;

/// The text of a board that is in memory.
pub(super) const MEMORY: &str = "memory";

/// One combination of the settings that `launcher board` varies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CaseSettings {
    pub mode: WriteLoad,
    pub readers: u16,
    /// Number of 64-bit words of a value.
    pub words: usize,
    /// Number of cells of the board.
    pub cells: usize,
    pub isolation: Isolation,
    /// Wait strategy of the readers; `None`: as suits the cores.
    pub waiting: Option<ReaderWaiting>,
    /// The NUMA nodes of writer and readers; `None`: those of the listed cores.
    pub nodes: Option<BoardNodes>,
    /// The folder in which the board is a file; `None`: the board is in memory.
    pub folder: Option<PathBuf>,
}

impl CaseSettings {
    /// Reads the settings of a row.
    pub(super) fn from_texts(texts: &SettingTexts) -> Result<Self, UsageError> {
        let text = |key: &str| texts.get(key).map_or("", String::as_str);
        let wrong = |key: &str| UsageError(format!("{key} {:?} of a case", text(key)));
        let number = |key: &str| text(key).parse::<usize>().map_err(|_| wrong(key));
        let nodes = texts.get("nodes").map(|text| text.parse().map_err(UsageError)).transpose()?;
        Ok(Self {
            mode: text("mode").parse().map_err(UsageError)?,
            readers: text("readers").parse().map_err(|_| wrong("readers"))?,
            words: number("size_bytes")? / 8,
            cells: number("cells")?,
            isolation: Isolation::from_name(text("isolation")).ok_or_else(|| wrong("isolation"))?,
            waiting: ReaderWaiting::from_name(text("waiting")),
            nodes,
            folder: Some(text("on")).filter(|on| *on != MEMORY).map(PathBuf::from),
        })
    }
}

/// Returns the cores to use for a case of a board benchmark, the writer's first: of those that were
/// asked for, or of all.
pub(super) fn cores(
    asked: Option<&Vec<u32>>,
    nodes: Option<BoardNodes>,
    machine: &Machine,
) -> Result<Vec<u32>, UsageError> {
    let cores = asked.unwrap_or(&machine.cores_allowed);
    nodes.map_or_else(|| Ok(cores.clone()), |nodes| nodes.cores(&machine.numa_nodes, cores))
}

/// Returns what writer and readers of a case do, without the number of writes that are due.
pub(super) fn work_of(settings: &CaseSettings, plan: &BoardPlan, is_shared: bool) -> BoardWork {
    let usual = if is_shared { ReaderWaiting::Yield } else { ReaderWaiting::Spin };
    BoardWork {
        readers: settings.readers,
        waiting: settings.waiting.unwrap_or(usual),
        cells: settings.cells,
        words: settings.words,
        scheduled: None,
        duration_ns: plan.duration_ns,
        folder: settings.folder.clone(),
        decide_every_ns: plan.decide_every_ns,
    }
}

/// The cores of the writer and the readers, and whether readers share theirs with others.
pub(super) fn assign_cores(cores: &[u32], readers: usize) -> (Vec<Option<u32>>, bool) {
    let rest = match cores {
        [] => return (vec![None; readers + 1], true),
        [only] => std::slice::from_ref(only),
        [_, rest @ ..] => rest,
    };
    let places = (0..readers).map(|reader| Some(rest[reader % rest.len()]));
    let all = std::iter::once(Some(cores[0])).chain(places).collect();
    (all, readers > 0 && (cores.len() == 1 || readers > rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_has_the_first_core_and_readers_the_others() {
        let some = |cores: &[u32]| cores.iter().map(|core| Some(*core)).collect::<Vec<_>>();
        assert_eq!(assign_cores(&[4, 5, 6], 2), (some(&[4, 5, 6]), false));
        assert_eq!(assign_cores(&[4, 5, 6], 3), (some(&[4, 5, 6, 5]), true));
        assert_eq!(assign_cores(&[0], 1), (some(&[0, 0]), true));
        assert_eq!(assign_cores(&[0], 0), (some(&[0]), false));
        assert_eq!(assign_cores(&[], 1), (vec![None, None], true));
    }
}
