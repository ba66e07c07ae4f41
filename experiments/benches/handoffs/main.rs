//! `cargo bench -p benches --bench handoffs`: the costs of the hand-offs, each next to its
//! reference.
//!
//! It has its own harness, because compared candidates must alternate (A B A B …) on the same two
//! cores, and because the floor (one cache line bounced between them, `system::floor`) must be
//! measured with every sample: on a virtual machine it changes fivefold within minutes. All printed
//! figures are medians with their quartiles.
//!
//! `cargo bench -p benches --bench handoffs -- [SECTION…] [--quick] [--json] [--cores A,B]
//! [--capacity SLOTS] [--samples N] [--technique NAME]`; sections are `floors`,
//! `capacity`, `halves`, `scan`, `one-thread`, `protection`. `--quick` (and `cargo test --benches`)
//! takes a few small samples through the same code: enough to show that everything runs, too few to
//! quote.

mod capacity;
#[path = "../../../techniques/tests/all/common/mod.rs"]
mod common;
mod floors;
mod flow;
mod halves;
mod machine;
mod one_thread;
mod pair;
mod protection;
mod report;
mod rings;
mod scan;
mod trip;

use report::BenchReport;
use techniques::Technique;

/// The options of the hand-off benchmark's command line.
pub struct Options {
    /// Sections to run; empty: all.
    sections: Vec<String>,
    /// A smoke test: a few samples of everything.
    pub quick: bool,
    json: bool,
    /// The core of this process's measuring thread, and that of its peers.
    pub cores: (u32, u32),
    /// Slots of the rings.
    pub capacity: usize,
    /// Samples per figure; `None`: enough to quote.
    pub samples: Option<usize>,
    /// The only technique to measure, in sections that cover all of them.
    pub technique: Option<Technique>,
}

/// Parses the value of a flag.
fn value<T>(
    flag: &str,
    text: Option<String>,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, String> {
    let text = text.ok_or(format!("{flag} needs a value"))?;
    parse(&text).ok_or(format!("{flag} {text}: {expected}"))
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let allowed = system::pin::allowed_cores();
        let (Some(first), Some(last)) = (allowed.first(), allowed.last()) else {
            return Err("the allowed cores cannot be read".into());
        };
        let mut options = Self {
            sections: Vec::new(),
            quick: true,
            json: false,
            cores: (*first, *last),
            capacity: 1024,
            samples: None,
            technique: None,
        };
        let mut args = args;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // Cargo passes this to a bench; `cargo test --benches` does not, so it stays quick.
                "--bench" => options.quick = false,
                "--json" => options.json = true,
                "--quick" | "--test" => {}
                "--cores" => {
                    options.cores = value(&arg, args.next(), "expected two, as in 0,1", |text| {
                        let (a, b) = text.split_once(',')?;
                        Some((a.parse().ok()?, b.parse().ok()?))
                    })?;
                }
                "--capacity" => {
                    let is_fit = |slots: &usize| slots.is_power_of_two() && *slots >= 64;
                    options.capacity =
                        value(&arg, args.next(), "expected a power of two of at least 64", |text| {
                            text.parse().ok().filter(is_fit)
                        })?;
                }
                "--samples" => {
                    let samples = value(&arg, args.next(), "expected a number", |text| {
                        text.parse().ok().filter(|n| *n >= 1)
                    })?;
                    options.samples = Some(samples);
                }
                "--technique" => {
                    options.technique = Some(value(&arg, args.next(), "there is none", Technique::from_name)?)
                }
                flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}")),
                section => options.sections.push(section.to_owned()),
            }
        }
        let asked_quick = std::env::args().any(|arg| arg == "--quick" || arg == "--test");
        options.quick |= asked_quick;
        Ok(options)
    }

    /// Returns the number of samples and the number of operations of each.
    pub fn effort(&self, samples: usize, quick_size: u64, size: u64) -> (usize, u64) {
        let samples = self.samples.unwrap_or(if self.quick { 3 } else { samples });
        (samples, if self.quick { quick_size } else { size })
    }

    fn wants(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|s| s == section)
    }
}

type Section = fn(&Options, &mut BenchReport);

const SECTIONS: [(&str, Section); 6] = [
    ("floors", floors::run),
    ("capacity", capacity::run),
    ("halves", halves::run),
    ("scan", scan::run),
    ("one-thread", one_thread::run),
    ("protection", protection::run),
];

fn main() {
    let options = Options::parse(std::env::args().skip(1)).unwrap_or_else(|error| {
        eprintln!("handoffs: {error}");
        std::process::exit(2);
    });
    let mut report = BenchReport::new(machine::describe(&options));
    for (section, run) in SECTIONS {
        if options.wants(section) {
            // On a thread of its own, because a section pins its thread, and threads inherit that.
            std::thread::scope(|scope| {
                scope.spawn(|| run(&options, &mut report));
            });
        }
    }
    if options.json { report.print_json() } else { report.print() }
}
