//! The flags of `launcher board`, and the cases that they select.

use super::healthy::{self, HealthyLimits};
use super::mode::WriteLoad;
use super::nodes::BoardNodes;
use crate::benchmark::check_cores;
use crate::presets::{BoardPreset, seed_board};
use analysis::experiment::BoardWarnings;
use clap::Args;
use planner::config::value::named;
use planner::config::{Choice, CoreList, UsageError};
use planner::host::Machine;
use protocol::plan::{BoardWork, Isolation, ReaderWaiting};
use record::units::{Count, Nanos};
use shm::board::BoardShape;
use std::path::PathBuf;

const MAX_READERS: u64 = BoardWork::MAX_READERS as u64;
const MAX_SIZE: u64 = BoardShape::MAX_WORDS as u64 * 8;
const MAX_DURATION_NS: u64 = 600_000_000_000;

/// The command-line flags of `launcher board`. With lists of values each combination is a case.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct BoardFlags {
    /// Take the seed's defaults: --readers 12 --duration 10s --size 96 --healthy
    #[arg(long, value_name = "NAME", value_parser = BoardPreset::parse)]
    pub preset: Option<BoardPreset>,
    /// How writes arrive: poisson:10k, pareto:10k, stress, replay:FILE; a list
    #[arg(
        long,
        value_name = "LOADS",
        value_delimiter = ',',
        default_value = "poisson:10k,pareto:10k,stress"
    )]
    pub mode: Vec<WriteLoad>,
    /// Readers; a list
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "4",
        default_value_if("preset", SEED, seed_board::READERS)
    )]
    pub readers: Vec<Count>,
    /// How long each case takes
    #[arg(
        long,
        value_name = "DUR",
        default_value = "3s",
        default_value_if("preset", SEED, seed_board::DURATION)
    )]
    pub duration: Nanos,
    /// Bytes of a value, a multiple of 8; a list
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64",
        default_value_if("preset", SEED, seed_board::SIZE)
    )]
    pub size: Vec<Count>,
    /// Cells of the board; writes go to them in turn
    #[arg(long, value_name = "N", default_value = "1")]
    pub cells: Count,
    /// What stands between writer and readers; a list
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', value_parser = named::<Isolation>(), default_value = "process")]
    pub isolation: Vec<Isolation>,
    /// How readers wait; auto spins where each has a core of its own and yields elsewhere; a list
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = named::<Choice<ReaderWaiting>>(), default_value = "auto")]
    pub waiting: Vec<Choice<ReaderWaiting>>,
    /// Cores: the writer has the first, readers the others [default: all]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<CoreList>,
    /// NUMA nodes of the writer and of the readers, as 0:1; a list
    #[arg(long, value_name = "W:R", value_delimiter = ',')]
    pub nodes: Vec<BoardNodes>,
    /// Put the board into a file in this folder, to compare file systems; a list [default: memory]
    #[arg(long, value_name = "DIRS", value_delimiter = ',')]
    pub board_folder: Vec<PathBuf>,
    /// Seed of the times at which writes are due
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: Count,
    /// Warn of figures at their limits, the seed's unless named: write-p99=5us,write-rate=off
    #[arg(long, value_name = "LIMITS", num_args = 0..=1, default_missing_value = healthy::SEED, default_value_if("preset", SEED, seed_board::HEALTHY))]
    pub healthy: Option<HealthyLimits>,
    /// Warn of a writer whose p99 is longer
    #[arg(long, value_name = "DUR")]
    pub warn_writer: Option<Nanos>,
    /// Warn of readers whose read's p99 is longer
    #[arg(long, value_name = "DUR")]
    pub warn_reader: Option<Nanos>,
    /// Where to save it
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub out: PathBuf,
    /// Print JSON on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Continue if the kernel lacks a sandbox feature
    #[arg(long)]
    pub allow_weaker_sandbox: bool,
}

/// The preset whose defaults the flags name.
const SEED: &str = BoardPreset::Seed.name();

/// One combination of the settings that `launcher board` varies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CaseSettings {
    pub mode: WriteLoad,
    pub readers: u16,
    /// Words of a value.
    pub words: usize,
    pub isolation: Isolation,
    /// How readers wait; `None`: as suits the cores.
    pub waiting: Option<ReaderWaiting>,
    /// The NUMA nodes of writer and readers; `None`: as the list of cores has them.
    pub nodes: Option<BoardNodes>,
    /// The folder with the board's file; `None`: memory.
    pub folder: Option<PathBuf>,
}

fn usage<T>(text: String) -> Result<T, UsageError> {
    Err(UsageError(text))
}

impl BoardFlags {
    pub(super) fn cells(&self) -> Result<Vec<CaseSettings>, UsageError> {
        let Self { duration, cells, .. } = self;
        if !(1_000_000..=MAX_DURATION_NS).contains(&duration.0) {
            return usage(format!("--duration {duration}: a case takes 1ms to 10m"));
        }
        if let Some(readers) = self.readers.iter().find(|readers| readers.0 > MAX_READERS) {
            return usage(format!("--readers {readers}: {MAX_READERS} is the most"));
        }
        let is_bad = |size: &&Count| !(8..=MAX_SIZE).contains(&size.0) || !size.0.is_multiple_of(8);
        if let Some(size) = self.size.iter().find(is_bad) {
            return usage(format!("--size {size}: values have 8 to {MAX_SIZE} bytes, a multiple of 8"));
        }
        if !(1..=BoardShape::MAX_CELLS as u64).contains(&cells.0) {
            return usage(format!("--cells {cells}: a board has 1 to {} cells", BoardShape::MAX_CELLS));
        }
        if cells.0 > 1 && self.waiting.contains(&Choice::Fixed(ReaderWaiting::Park)) {
            return usage(format!(
                "--waiting park with --cells {cells}: a reader sleeps on one cell's version; use --cells 1, or yield"
            ));
        }
        let folders = self.folders()?;
        let mut found = Vec::new();
        for mode in &self.mode {
            // Before the first case: a file that cannot be read, more writes than there is room
            // for.
            mode.schedule(duration.0, self.seed.0)?;
            for (size, readers, waiting, isolation) in self.ends() {
                for folder in &folders {
                    found.extend(self.node_pairs().into_iter().map(|nodes| CaseSettings {
                        mode: mode.clone(),
                        readers: readers.0 as u16,
                        words: (size.0 / 8) as usize,
                        isolation,
                        waiting: match waiting {
                            Choice::Auto => None,
                            Choice::Fixed(waiting) => Some(waiting),
                        },
                        nodes,
                        folder: folder.clone(),
                    }));
                }
            }
        }
        Ok(found)
    }

    /// Iterates over the combinations of size, readers, waiting and isolation.
    fn ends(&self) -> impl Iterator<Item = (Count, Count, Choice<ReaderWaiting>, Isolation)> {
        let readers =
            self.size.iter().flat_map(|size| self.readers.iter().map(move |readers| (*size, *readers)));
        let waiting = readers.flat_map(|(s, r)| self.waiting.iter().map(move |waiting| (s, r, *waiting)));
        waiting.flat_map(|(s, r, w)| self.isolation.iter().map(move |isolation| (s, r, w, *isolation)))
    }

    fn node_pairs(&self) -> Vec<Option<BoardNodes>> {
        if self.nodes.is_empty() { vec![None] } else { self.nodes.iter().copied().map(Some).collect() }
    }

    /// Returns the folders for the board's file, with their full paths.
    fn folders(&self) -> Result<Vec<Option<PathBuf>>, UsageError> {
        if self.board_folder.is_empty() {
            return Ok(vec![None]);
        }
        if self.isolation.iter().any(|level| !matches!(level, Isolation::Thread | Isolation::Process)) {
            return usage(
                "--board-folder with --isolation container or sandbox: a board there is sealed memory; use thread or process"
                    .into(),
            );
        }
        let full = |folder: &PathBuf| {
            let name = folder.display();
            let full = folder.canonicalize().map_err(|error| format!("--board-folder {name}: {error}"));
            match full {
                Ok(full) if full.is_dir() && full.to_str().is_some() => Ok(Some(full)),
                Ok(_) => usage(format!("--board-folder {name}: not a folder with a name in UTF-8")),
                Err(error) => usage(format!("{error}; name a folder that exists")),
            }
        };
        self.board_folder.iter().map(full).collect()
    }

    /// Returns the cores to use for a case of a board benchmark, the writer's first.
    pub fn cores(&self, nodes: Option<BoardNodes>, machine: &Machine) -> Result<Vec<u32>, UsageError> {
        let asked = check_cores(self.cores.as_ref(), machine)?;
        let cores = asked.unwrap_or_else(|| machine.cores_allowed.clone());
        nodes.map_or(Ok(cores.clone()), |nodes| nodes.cores(&machine.numa_nodes, &cores))
    }

    pub fn warnings(&self) -> BoardWarnings {
        let limits = self.healthy.map_or_else(BoardWarnings::default, |limits| limits.0);
        BoardWarnings {
            writer_p99_ns: self.warn_writer.map(|limit| limit.0).or(limits.writer_p99_ns),
            reader_p99_ns: self.warn_reader.map(|limit| limit.0).or(limits.reader_p99_ns),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: BoardFlags,
    }

    fn flags(line: &str) -> Result<BoardFlags, String> {
        let line = TestCommandLine::try_parse_from(["board"].into_iter().chain(line.split_whitespace()));
        Ok(line.map_err(|error| error.to_string())?.flags)
    }

    fn cases(line: &str) -> Result<Vec<CaseSettings>, String> {
        flags(line)?.cells().map_err(|error| error.0)
    }

    #[test]
    fn lists_are_combined() {
        let all =
            cases("--mode stress,poisson:5k --readers 0,2 --size 8,4096 --isolation thread,sandbox").unwrap();
        assert_eq!(all.len(), 16);
        assert_eq!((all[0].readers, all[0].words, all[0].isolation), (0, 1, Isolation::Thread));
        assert_eq!((all[15].mode.clone(), all[15].words), (WriteLoad::Poisson(5_000), 512));
        assert_eq!(cases("").unwrap().len(), 3, "three loads by default");
    }

    #[test]
    fn folders_and_nodes_are_varied() {
        let all = cases("--mode stress --board-folder /tmp,/ --nodes 0:0,0:1").unwrap();
        let found: Vec<(String, &str)> = all
            .iter()
            .map(|case| (case.nodes.unwrap().to_string(), case.folder.as_ref().unwrap().to_str().unwrap()))
            .collect();
        let wanted = [("0:0", "/tmp"), ("0:1", "/tmp"), ("0:0", "/"), ("0:1", "/")];
        assert_eq!(found, wanted.map(|(nodes, folder)| (nodes.to_owned(), folder)));
        assert_eq!(cases("--mode stress").unwrap()[0].folder, None);
    }

    #[test]
    fn preset_fills_only_what_is_open() {
        let all = cases("--preset seed").unwrap();
        let modes: Vec<String> = all.iter().map(|case| case.mode.to_string()).collect();
        assert_eq!(modes, ["poisson:10000", "pareto:10000", "stress"]);
        assert!(all.iter().all(|case| (case.readers, case.words) == (12, 12)));
        let seed = flags("--preset seed").unwrap();
        assert_eq!((seed.duration, seed.warnings()), (Nanos(10_000_000_000), BoardWarnings::SEED));
        let own = flags("--preset seed --readers 2,3 --duration 1s --healthy write-rate=off").unwrap();
        assert_eq!((own.readers.clone(), own.duration), (vec![Count(2), Count(3)], Nanos(1_000_000_000)));
        assert_eq!((own.size.clone(), own.warnings().writes_per_s), (vec![Count(96)], None));
        assert!(flags("--preset sead").unwrap_err().contains("seed"));
    }

    #[test]
    fn healthy_takes_the_seeds_limits() {
        let limits = |line: &str| flags(line).unwrap().warnings();
        assert_eq!(limits(""), BoardWarnings::default());
        assert_eq!(limits("--healthy"), BoardWarnings::SEED);
        assert_eq!(limits("--healthy --json"), BoardWarnings::SEED);
        let set = BoardWarnings { writer_p99_ns: Some(7), ..BoardWarnings::SEED };
        assert_eq!(limits("--healthy write-p99=7ns"), set);
        assert_eq!(limits("--healthy --warn-writer 7ns"), set);
        let only = BoardWarnings { writer_p99_ns: Some(7), ..BoardWarnings::default() };
        assert_eq!(limits("--warn-writer 7ns"), only);
    }

    #[test]
    fn invalid_flags_are_named() {
        for (line, word) in [
            ("--size 12", "--size 12"),
            ("--size 0", "--size 0"),
            ("--readers 1000", "--readers 1000"),
            ("--cells 0", "--cells 0"),
            ("--cells 2 --waiting park", "--waiting park"),
            ("--duration 1us", "--duration 1us"),
            ("--duration 1h", "--duration"),
            ("--mode poisson:1M --duration 10m", "--mode poisson:1000000"),
            ("--mode replay:none.csv", "none.csv"),
            ("--mode often", "often"),
            ("--waiting never", "never"),
            ("--nodes 0-1", "0-1"),
            ("--board-folder /nowhere/at/all", "--board-folder /nowhere/at/all"),
            ("--board-folder /tmp --isolation sandbox", "use thread or process"),
            ("--healthy write-p98=5us", "write-p50"),
        ] {
            let error = cases(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
