//! The report of the crash tests: counts for each technique, printed, and written to
//! `target/crash-report.txt`.

use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;
use system::pin;
use techniques::Technique;

/// Returns `true` in slow mode, with ten times as many trials: `BULKHEAD_SLOW=1`.
pub fn is_slow() -> bool {
    std::env::var_os("BULKHEAD_SLOW").is_some_and(|slow| slow == "1")
}

/// Violations by kind.
#[derive(Default)]
pub struct Problems(Vec<(&'static str, String)>);

impl Problems {
    /// Adds a violation; only the first two of a kind are kept.
    pub fn add(&mut self, kind: &'static str, description: Arguments<'_>) {
        if self.0.iter().filter(|(other, _)| *other == kind).count() < 2 {
            self.0.push((kind, description.to_string()));
        }
    }

    pub fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|(other, _)| *other == kind)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Default)]
pub struct TrialCounts {
    counts: BTreeMap<&'static str, u64>,
    problems: Vec<String>,
}

impl TrialCounts {
    pub fn add(&mut self, column: &'static str, count: u64) {
        *self.counts.entry(column).or_default() += count;
    }

    pub fn problems(&mut self, location: &str, problems: &Problems) {
        self.add("violations", u64::from(!problems.is_empty()));
        self.problems.extend(
            problems.0.iter().map(|(kind, description)| format!("{location}: {kind}: {description}")),
        );
    }

    pub fn problem(&mut self, location: &str, description: String) {
        self.add("violations", 1);
        self.problems.push(format!("{location}: {description}"));
    }

    pub fn count(&self, column: &str) -> u64 {
        self.counts.get(column).copied().unwrap_or(0)
    }

    fn merge(&mut self, other: TrialCounts) {
        other.counts.into_iter().for_each(|(column, count)| self.add(column, count));
        self.problems.extend(other.problems);
    }
}

pub struct CrashReport {
    title: &'static str,
    columns: &'static [&'static str],
    rows: Mutex<BTreeMap<usize, TrialCounts>>,
    started: Instant,
}

impl CrashReport {
    pub fn new(title: &'static str, columns: &'static [&'static str]) -> Self {
        Self { title, columns, rows: Mutex::default(), started: Instant::now() }
    }

    pub fn add(&self, technique: Technique, tally: TrialCounts) {
        let row = Technique::all().iter().position(|other| *other == technique).expect("one of all");
        self.rows.lock().expect("no job panics here").entry(row).or_default().merge(tally);
    }

    pub fn print(&self) -> u64 {
        let rows = self.rows.lock().expect("no job panics here");
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(std::iter::once("technique").chain(self.columns.iter().copied()));
        for (row, tally) in rows.iter() {
            let counts = self.columns.iter().map(|column| tally.count(column).to_string());
            table.add_row(std::iter::once(Technique::all()[*row].to_string()).chain(counts));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = format!("{}, in {} s\n{table}\n", self.title, self.started.elapsed().as_secs());
        for problem in rows.values().flat_map(|tally| tally.problems.iter().take(20)) {
            text += &format!("VIOLATION {problem}\n");
        }
        println!("\n{text}");
        write(&text);
        rows.values().map(|tally| tally.count("violations")).sum()
    }

    pub fn all_have(&self, column: &str) -> bool {
        self.rows.lock().expect("no job panics here").values().all(|tally| tally.count(column) > 0)
    }

    pub fn sum(&self, column: &str) -> u64 {
        self.rows.lock().expect("no job panics here").values().map(|tally| tally.count(column)).sum()
    }
}

/// Appends to the report's file; the first call creates it.
fn write(text: &str) {
    static IS_CREATED: Mutex<bool> = Mutex::new(false);
    let mut started = IS_CREATED.lock().expect("writing does not panic");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/crash-report.txt");
    let file =
        std::fs::OpenOptions::new().create(true).write(true).append(*started).truncate(!*started).open(path);
    *started = true;
    match file.and_then(|mut file| writeln!(file, "{text}")) {
        Ok(()) => {}
        Err(error) => println!("the report is not saved: {error}"),
    }
}

/// Runs all jobs, one at a time on each core. A victim runs on its tracer's core: a step costs two
/// context switches.
pub fn on_all_cores<J: Send>(jobs: Vec<J>, work: impl Fn(J) + Sync) {
    let jobs = Mutex::new(jobs.into_iter());
    std::thread::scope(|scope| {
        for core in pin::allowed_cores() {
            let (jobs, work) = (&jobs, &work);
            scope.spawn(move || {
                if let Err(error) = pin::pin_to(core) {
                    println!("not pinned, and slower: {error}");
                }
                loop {
                    let job = jobs.lock().expect("taking a job does not panic").next();
                    let Some(job) = job else { break };
                    work(job);
                }
            });
        }
    });
}
