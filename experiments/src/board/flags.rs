//! The flags of `launcher board`, and the cases that they select.

use super::case::{CaseSettings, MEMORY, assign_cores, cores, work_of};
use super::healthy::{self, HealthyLimits};
use super::mode::WriteLoad;
use super::nodes::BoardNodes;
use crate::benchmark::{check_cores, refuse_keys};
use crate::flags::{AxisValue, texts, values_on};
use crate::points::combinations;
use crate::presets::{BoardPreset, seed_board};
use analysis::experiment::board::AXES;
use analysis::experiment::{BoardPlan, BoardWarnings, Experiment, Figures, Kind, Setting, SettingTexts};
use clap::Args;
use planner::config::value::{Named, named};
use planner::config::{Choice, CoreList, ReportLength, UsageError};
use planner::host::Machine;
use protocol::plan::{BoardWork, Isolation, ReaderWaiting};
use record::units::{Count, Nanos};
use shm::board::BoardShape;
use std::path::PathBuf;
use std::time::SystemTime;

const MAX_READERS: u64 = BoardWork::MAX_READERS as u64;
const MAX_SIZE: u64 = BoardShape::MAX_WORDS as u64 * 8;
const DECIDE_EVERY_NS: core::ops::RangeInclusive<u64> = 1_000..=1_000_000_000;
const MAX_DURATION_NS: u64 = 600_000_000_000;

/// Remarks on every case.
const NOTES: [&str; 5] = [
    "write: from before to behind the call, as the writer's core sees it; with park, the wake-up is part of it. Making a value's \
     content and checking it is in no time, but in writes/s and reads/s",
    "from due: from when the write was due (open loop: a late write is not forgiven)",
    "propagation: from before the write until a reader has the value whole; read: from when it saw the version",
    "stale: from when the version behind the one that a reader had was due until it has a newer one",
    "times over 1,000 ns are kept to one part in 1,000, greatest and least exactly; all readers' counts are added up",
];

/// The command-line flags of `launcher board`, the benchmark of boards in shared memory. With
/// lists of values each combination is a case.
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
    /// Publish a decision tick at most this often, and report how far apart the readers decide
    #[arg(long, value_name = "DUR")]
    pub decide_every: Option<Nanos>,
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
    /// Print the answer on one screen, or every table and note
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t)]
    pub report: ReportLength,
    /// Continue if the kernel lacks a sandbox feature
    #[arg(long)]
    pub allow_weaker_sandbox: bool,
}

/// The preset whose defaults the flags name.
const SEED: &str = BoardPreset::Seed.name();

fn usage<T>(text: String) -> Result<T, UsageError> {
    Err(UsageError(text))
}

impl BoardFlags {
    /// Returns the record of the requested benchmark, with nothing measured and nothing saved.
    pub(super) fn plan(&self, machine: &Machine) -> Result<Experiment, UsageError> {
        let cases = self.cases()?;
        let plan = BoardPlan {
            warn: self.warnings(),
            unfit: Vec::new(),
            duration_ns: self.duration.0,
            seed: self.seed.0,
            cores: check_cores(self.cores.as_ref(), machine)?,
            decide_every_ns: self.decide_every.map(|every| every.0),
        };
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let mut record = Experiment {
            seed: plan.seed,
            weaker_sandbox: self.allow_weaker_sandbox,
            notes: NOTES.map(String::from).into(),
            figures: Figures::from_record(&plan),
            ..Experiment::new(Kind::Board, env!("CARGO_PKG_VERSION"), &started, machine)
        };
        let setting = |(number, mut texts): (usize, SettingTexts)| {
            let case = CaseSettings::from_texts(&texts)?;
            let (_, is_shared) =
                assign_cores(&cores(plan.cores.as_ref(), case.nodes, machine)?, case.readers.into());
            let work = work_of(&case, &plan, is_shared);
            let slots = work.shape().map_or(0, |shape| shape.slots());
            let own = [
                ("waiting", work.waiting.name().into()),
                ("slots", slots.to_string()),
                ("carrier", "board".into()),
            ];
            texts.extend(own.map(|(key, text)| (key.to_owned(), text)));
            Ok((Setting::from_texts(format!("case {number}"), texts, &AXES), 1))
        };
        let settings: Vec<_> = cases.into_iter().enumerate().map(setting).collect::<Result<_, _>>()?;
        record.plan_rows_along(&AXES, &settings);
        Ok(record)
    }

    /// Returns the texts of every case.
    fn cases(&self) -> Result<Vec<SettingTexts>, UsageError> {
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
        if let Some(every) = self.decide_every.filter(|every| !DECIDE_EVERY_NS.contains(&every.0)) {
            return usage(format!("--decide-every {every}: give 1us to 1s"));
        }
        refuse_keys(&self.isolation)?;
        let folders = self.folders()?;
        // Before the first case: a file that cannot be read, more writes than there is room for.
        self.mode.iter().try_for_each(|mode| mode.schedule(duration.0, self.seed.0).map(drop))?;
        let axes = [
            texts(&self.mode),
            self.size.iter().map(|size| size.0.to_string()).collect(),
            self.readers.iter().map(|readers| readers.0.to_string()).collect(),
            self.waiting.iter().map(|waiting| waiting.name_of().to_owned()).collect(),
            texts(&self.isolation),
            folders,
            texts(&self.nodes),
        ];
        let case = |values: Vec<AxisValue>| {
            let values = values.into_iter().map(|value| (value.axis.key(), value.text));
            values.chain([("cells".to_owned(), cells.0.to_string())]).collect()
        };
        Ok(combinations(&values_on(&AXES, axes)).into_iter().map(case).collect())
    }

    /// Returns the folders for the board's file, with their full paths.
    fn folders(&self) -> Result<Vec<String>, UsageError> {
        if self.board_folder.is_empty() {
            return Ok(vec![MEMORY.into()]);
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
            match full.map(|full| full.to_str().filter(|_| full.is_dir()).map(str::to_owned)) {
                Ok(Some(full)) => Ok(full),
                Ok(None) => usage(format!("--board-folder {name}: not a folder with a name in UTF-8")),
                Err(error) => usage(format!("{error}; name a folder that exists")),
            }
        };
        self.board_folder.iter().map(full).collect()
    }

    /// Returns the limits of latency and rate beyond which a case gets a warning, from `--healthy`,
    /// `--warn-writer` and `--warn-reader`.
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
        let cases = flags(line)?.cases().map_err(|error| error.0)?;
        cases.iter().map(|case| CaseSettings::from_texts(case).map_err(|error| error.0)).collect()
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
