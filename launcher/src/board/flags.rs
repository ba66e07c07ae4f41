//! The flags of `board`, and the cases that they ask for.

use super::mode::Mode;
use super::plan::{Carrier, Case, Waiting};
use crate::config::CoreList;
use crate::config::value::named;
use crate::config::{Choice, UsageError};
use crate::host::Machine;
use analysis::experiment::BoardWarnings;
use analysis::units::{Count, Nanos};
use clap::Args;
use protocol::plan::Isolation;
use shm::board::Shape;
use shm::memory::SHM_DIR;
use std::path::PathBuf;

/// The most readers.
const MAX_READERS: u64 = 256;
/// The most bytes of a value.
const MAX_SIZE: u64 = Shape::MAX_WORDS as u64 * 8;
/// The longest case.
const MAX_DURATION_NS: u64 = 600_000_000_000;

/// The flags of `board`. Lists vary what they are about: each combination is a case.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct BoardFlags {
    /// How writes arrive: poisson:10k, pareto:10k, stress, replay:FILE; a list
    #[arg(
        long,
        value_name = "LOADS",
        value_delimiter = ',',
        default_value = "poisson:10k,pareto:10k,stress"
    )]
    pub mode: Vec<Mode>,
    /// Readers; a list
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4")]
    pub readers: Vec<Count>,
    /// How long each case takes
    #[arg(long, value_name = "DUR", default_value = "3s")]
    pub duration: Nanos,
    /// Bytes of a value, a multiple of 8; a list
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64")]
    pub size: Vec<Count>,
    /// Cells of the board; writes go to them in turn
    #[arg(long, value_name = "N", default_value = "1")]
    pub cells: Count,
    /// What stands between writer and readers; a list
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', value_parser = named::<Isolation>(), default_value = "process")]
    pub isolation: Vec<Isolation>,
    /// How readers wait; auto spins where each has a core of its own and yields elsewhere; a list
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = named::<Choice<Waiting>>(), default_value = "auto")]
    pub waiting: Vec<Choice<Waiting>>,
    /// Folder whose file system has the board's memory; a list
    #[arg(long, value_name = "FOLDERS", value_delimiter = ',', default_value = SHM_DIR)]
    pub on: Vec<PathBuf>,
    /// Cores: the writer has the first, readers the others [default: all]
    #[arg(long, value_name = "LIST")]
    pub cores: Option<CoreList>,
    /// Seed of the times at which writes are due
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: Count,
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
    /// What is measured: the board, or a broken one that the check must find
    #[arg(long, value_name = "WHAT", value_parser = named::<Carrier>(), default_value = "board", hide = true)]
    pub carrier: Carrier,
}

fn usage<T>(text: String) -> Result<T, UsageError> {
    Err(UsageError(text))
}

impl BoardFlags {
    /// The cases, in the order in which they are measured.
    ///
    /// # Errors
    /// The first flag that asks for what cannot be.
    pub fn cases(&self) -> Result<Vec<Case>, UsageError> {
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
        if !(1..=Shape::MAX_CELLS as u64).contains(&cells.0) {
            return usage(format!("--cells {cells}: a board has 1 to {} cells", Shape::MAX_CELLS));
        }
        if cells.0 > 1 && self.waiting.contains(&Choice::Fixed(Waiting::Park)) {
            return usage(format!(
                "--waiting park with --cells {cells}: a reader sleeps on one cell's version; use --cells 1, or yield"
            ));
        }
        for folder in &self.on {
            if !folder.is_dir() {
                return usage(format!("--on {}: no such folder", folder.display()));
            }
        }
        if self.isolation.contains(&Isolation::Container) {
            return usage(
                "--isolation container: writer and readers are bulkhead's own processes; use --isolation process, whose memory is the same"
                    .into(),
            );
        }
        let mut cases = Vec::new();
        for mode in &self.mode {
            // Found out before the first case: a file that is none, more writes than there is room for.
            mode.due(duration.0, self.seed.0)?;
            for (size, readers, waiting, isolation, on) in self.others() {
                cases.push(Case {
                    mode: mode.clone(),
                    readers: readers.0 as usize,
                    words: (size.0 / 8) as usize,
                    cells: cells.0 as usize,
                    isolation,
                    waiting: match waiting {
                        Choice::Auto => None,
                        Choice::Fixed(waiting) => Some(waiting),
                    },
                    on: on.clone(),
                    carrier: self.carrier,
                    duration_ns: duration.0,
                    seed: self.seed.0,
                });
            }
        }
        Ok(cases)
    }

    /// Every combination of all lists but the loads.
    fn others(&self) -> impl Iterator<Item = (Count, Count, Choice<Waiting>, Isolation, &PathBuf)> {
        let readers =
            self.size.iter().flat_map(|size| self.readers.iter().map(move |readers| (*size, *readers)));
        let waiting = readers.flat_map(|(s, r)| self.waiting.iter().map(move |w| (s, r, *w)));
        let isolation = waiting.flat_map(|(s, r, w)| self.isolation.iter().map(move |i| (s, r, w, *i)));
        isolation.flat_map(|(s, r, w, i)| self.on.iter().map(move |on| (s, r, w, i, on)))
    }

    /// The cores to use, the writer's first.
    ///
    /// # Errors
    /// One that this process may not use.
    pub fn cores(&self, machine: &Machine) -> Result<Vec<u32>, UsageError> {
        let allowed = &machine.cores_allowed;
        let cores = self.cores.as_ref().map_or(allowed, |CoreList(cores)| cores);
        if let Some(core) = cores.iter().find(|core| !allowed.contains(core)) {
            return usage(format!("--cores: core {core} is not allowed here (allowed: {allowed:?})"));
        }
        Ok(cores.clone())
    }

    /// From which p99 on a row is warned about.
    pub fn warnings(&self) -> BoardWarnings {
        BoardWarnings {
            writer_p99_ns: self.warn_writer.map(|limit| limit.0),
            reader_p99_ns: self.warn_reader.map(|limit| limit.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: BoardFlags,
    }

    fn cases(line: &str) -> Result<Vec<Case>, String> {
        let line = Line::try_parse_from(["board"].into_iter().chain(line.split_whitespace()));
        line.map_err(|error| error.to_string())?.flags.cases().map_err(|error| error.0)
    }

    #[test]
    fn lists_are_combined() {
        let all =
            cases("--mode stress,poisson:5k --readers 0,2 --size 8,4096 --isolation thread,sandbox").unwrap();
        assert_eq!(all.len(), 16);
        assert_eq!((all[0].readers, all[0].words, all[0].isolation), (0, 1, Isolation::Thread));
        assert_eq!((all[15].mode.clone(), all[15].words), (Mode::Poisson(5_000), 512));
        assert_eq!(cases("").unwrap().len(), 3, "three loads by default");
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (line, word) in [
            ("--size 12", "--size 12"),
            ("--size 0", "--size 0"),
            ("--readers 1000", "--readers 1000"),
            ("--cells 0", "--cells 0"),
            ("--cells 2 --waiting park", "--waiting park"),
            ("--duration 1us", "--duration 1us"),
            ("--duration 1h", "--duration"),
            ("--on /no/such/folder", "/no/such/folder"),
            ("--mode poisson:1M --duration 10m", "--mode poisson:1000000"),
            ("--mode replay:none.csv", "none.csv"),
            ("--mode often", "often"),
            ("--waiting never", "never"),
        ] {
            let error = cases(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
