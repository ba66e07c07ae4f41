//! The flags of `launcher lab`, and the cells that they select.

use crate::benchmark::{check_cores, refuse_keys};
use crate::flags::{texts, values_on};
use crate::points::combinations;
use analysis::experiment::lab::AXES;
use analysis::experiment::{Experiment, Figures, Kind, LabCell, LabPlan, Setting, Speed, Wait};
use clap::Args;
use planner::config::value::{named, one_of};
use planner::config::{CoreList, ReportLength, UsageError};
use planner::host::Machine;
use protocol::plan::{EventCost, Isolation, QueueWork, Technique};
use record::units::{Count, Nanos};
use shm::ring::LinkSpec;
use std::path::PathBuf;
use std::time::SystemTime;

/// The most events of a run: a consumer keeps 8 bytes of each.
const MAX_EVENTS: u64 = 50_000_000;
/// The largest capacity of a queue.
const MAX_CAPACITY: u64 = 1 << 20;

/// Events and runs of the seed's table where no end is slow: as many as the seed had.
const SEED_FAST: (u64, u64) = (100_000, 300);
/// Events and runs of the seed's table where an end is slow.
const SEED_SLOW: (u64, u64) = (10_000, 10);

/// The command-line flags of `launcher lab`. With lists of values each combination is a cell.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct LabFlags {
    /// What carries the events [default: array-queue,linked]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = named::<Technique>(), help_heading = "Grid")]
    pub technique: Vec<Technique>,
    /// What stands between the ends [default: process]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = named::<Isolation>(), help_heading = "Grid")]
    pub isolation: Vec<Isolation>,
    /// How an end waits that cannot go on [default: all four]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = one_of(Wait::ALL, Wait::name), help_heading = "Grid")]
    pub wait: Vec<Wait>,
    /// How fast producers are [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = one_of(Speed::ALL, Speed::name), help_heading = "Grid")]
    pub producer: Vec<Speed>,
    /// How fast consumers are [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = one_of(Speed::ALL, Speed::name), help_heading = "Grid")]
    pub consumer: Vec<Speed>,
    /// How many producers [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Grid")]
    pub producers: Vec<Count>,
    /// How many consumers, each with a queue of its own and all events, 0 too
    /// [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Grid")]
    pub consumers: Vec<Count>,
    /// Slots of a queue; rings round up to a power of two [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub capacity: Option<Count>,
    /// Events of a run, of all producers together [default: 10k]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub events: Option<Count>,
    /// Runs of each cell, in turn [default: 10]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub runs: Option<Count>,
    /// What slow is, for each event: work:DUR or sleep:DUR [default: work:5us]
    #[arg(long, value_name = "WHAT", help_heading = "Load")]
    pub slow: Option<String>,
    /// How far that varies to both sides, as a share [default: 0.1]
    #[arg(long, value_name = "SHARE", help_heading = "Load")]
    pub jitter: Option<f64>,
    /// How long --wait poll sleeps [default: 50us]
    #[arg(long, value_name = "DUR", help_heading = "Load")]
    pub poll: Option<Nanos>,
    /// How late the kernel may end a sleep (PR_SET_TIMERSLACK) [default: 1ns]
    #[arg(long, value_name = "DUR", help_heading = "Load")]
    pub slack: Option<Nanos>,
    /// What the jitter is drawn from [default: 1]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub seed: Option<u64>,
    /// The seed benchmark's table: array-queue and linked, busy and poll, at
    /// thread, sleep:1ms; 300 runs of 100k events where no end is slow, 10 of
    /// 10k where one is. A quarter of an hour: see the estimate
    #[arg(long, help_heading = "Run")]
    pub seed_table: bool,
    /// Cores for producers and consumers in turn [default: as run picks them]
    #[arg(long, value_name = "LIST", help_heading = "Run")]
    pub cores: Option<CoreList>,
    /// Where the results go [default: runs]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,
    /// Go on with a lab that was stopped
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub resume: Option<PathBuf>,
    /// Print JSON on stdout instead of tables
    #[arg(long, help_heading = "Run")]
    pub json: bool,
    /// Print the answer on one screen, or every table and note
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t, help_heading = "Run")]
    pub report: ReportLength,
    /// Continue if the kernel lacks a sandbox feature
    #[arg(long, help_heading = "Run")]
    pub allow_weaker_sandbox: bool,
}

/// Parses the cost of handling an event: `work:5us` or `sleep:1ms`.
pub(super) fn parse_slow(text: &str) -> Result<EventCost, UsageError> {
    let wrong =
        || UsageError(format!("--slow {text:?}: expected work:DUR or sleep:DUR, for example work:5us"));
    let (kind, time) = text.split_once(':').ok_or_else(wrong)?;
    let ns = time.parse::<Nanos>().map_err(|error| UsageError(format!("--slow: {error}")))?.0;
    if !(1..=10_000_000_000).contains(&ns) {
        return Err(UsageError(format!("--slow {text}: from 1ns to 10s for each event")));
    }
    match kind {
        "work" => Ok(EventCost::Work(ns)),
        "sleep" => Ok(EventCost::Sleep(ns)),
        _ => Err(wrong()),
    }
}

fn or_default<T: Clone>(asked: &[T], default: &[T]) -> Vec<T> {
    if asked.is_empty() { default.to_vec() } else { asked.to_vec() }
}

fn in_range(flag: &str, asked: Option<Count>, default: u64, min: u64, max: u64) -> Result<u64, UsageError> {
    let value = asked.map_or(default, |count| count.0);
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(UsageError(format!("--{flag} {value}: from {min} to {max}")))
}

impl LabFlags {
    /// Returns the record of the requested lab, with nothing measured and nothing saved.
    pub(super) fn plan(&self, machine: Machine) -> Result<Experiment, UsageError> {
        let table = self.seed_table;
        let events =
            in_range("events", self.events, if table { SEED_FAST.0 } else { 10_000 }, 1, MAX_EVENTS)?;
        let runs = in_range("runs", self.runs, if table { SEED_FAST.1 } else { 10 }, 1, 100_000)?;
        let capacity_asked = in_range("capacity", self.capacity, 1_000, 1, MAX_CAPACITY)?;
        let capacity = (capacity_asked as u32).next_power_of_two().max(2);
        let what = self.slow.clone().unwrap_or_else(|| if table { "sleep:1ms" } else { "work:5us" }.into());
        parse_slow(&what)?;
        let jitter = self.jitter.unwrap_or(if table { 0.0 } else { 0.1 });
        if !(0.0..=1.0).contains(&jitter) {
            return Err(UsageError(format!("--jitter {jitter}: a share from 0 to 1")));
        }
        let poll_ns = self.poll.map_or(50_000, |poll| poll.0);
        if !(1..=1_000_000_000).contains(&poll_ns) {
            return Err(UsageError(format!("--poll {}: from 1ns to 1s", Nanos(poll_ns))));
        }
        let mut cells = self.cells(events)?;
        for cell in &mut cells {
            let is_slow = [cell.producer, cell.consumer].contains(&Speed::Slow);
            if table && is_slow {
                cell.events = self.events.is_none().then_some(SEED_SLOW.0);
                cell.runs = self.runs.is_none().then_some(SEED_SLOW.1 as u32);
            }
            let asked = (capacity_asked as u32).max(2);
            let slots = if cell.technique.info().exact_capacity { asked } else { capacity };
            cell.slots = (slots != capacity).then_some(slots);
            let link = LinkSpec { name: "queue", producers: cell.producers.into(), capacity: slots };
            cell.capacity = cell.technique.capacity(&link);
        }
        let ends = cells.iter().map(|cell| usize::from(cell.producers + cell.consumers)).max().unwrap_or(2);
        let mut notes = Vec::new();
        let is_rounded = cells.iter().any(|cell| !cell.technique.info().exact_capacity);
        if is_rounded && u64::from(capacity) != capacity_asked {
            notes
                .push(format!("rings have {capacity} slots: {capacity_asked}, rounded up to a power of two"));
        }
        let asked = check_cores(self.cores.as_ref(), &machine)?;
        let cores = asked.unwrap_or_else(|| planner::pick_cores(ends, &machine));
        if !cores.is_empty() && cores.len() < ends {
            notes.push(format!(
                "up to {ends} ends share {} cores: busy waiting holds up who shares its core",
                cores.len()
            ));
        }
        let plan = LabPlan {
            events,
            runs: runs as u32,
            capacity_asked,
            capacity,
            slow: what,
            jitter,
            poll_ns,
            slack_ns: self.slack.map_or(1, |slack| slack.0),
            seed: self.seed.unwrap_or(1),
            cores,
            weaker_sandbox: self.allow_weaker_sandbox,
            clock_read_ns: 0.0,
            sleep: None,
            unfit: Vec::new(),
        };
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let mut record = Experiment {
            repeats: plan.runs,
            asked_repeats: plan.runs,
            seed: plan.seed,
            weaker_sandbox: plan.weaker_sandbox,
            notes,
            figures: Figures::from_record(&plan),
            ..Experiment::new(Kind::Lab, env!("CARGO_PKG_VERSION"), &started, &machine)
        };
        let settings: Vec<_> = cells.iter().map(|cell| (cell.setting(), plan.runs_of(cell))).collect();
        record.plan_rows_along(&AXES, &settings);
        Ok(record)
    }

    fn cells(&self, events: u64) -> Result<Vec<LabCell>, UsageError> {
        let built_in = |name: &str| Technique::from_name(name).unwrap_or_default();
        let techniques = or_default(&self.technique, &["array-queue", "linked"].map(built_in));
        refuse_keys(&self.isolation)?;
        let one = if self.seed_table { Isolation::Thread } else { Isolation::Process };
        let waits = if self.seed_table { vec![Wait::Busy, Wait::Poll] } else { Wait::ALL.to_vec() };
        let number = |flag: &str, counts: &[Count], least: u64| -> Result<Vec<u16>, UsageError> {
            let number = |count: &Count| {
                in_range(flag, Some(*count), 1, least, QueueWork::MAX_ENDS.into()).map(|n| n as u16)
            };
            or_default(counts, &[Count(1)]).iter().map(number).collect()
        };
        let (producers, consumers) =
            (number("producers", &self.producers, 1)?, number("consumers", &self.consumers, 0)?);
        if let Some(many) = producers.iter().find(|many| u64::from(**many) > events) {
            return Err(UsageError(format!("--events {events}: fewer than --producers {many}")));
        }
        let takers = or_default(&self.consumer, Speed::ALL);
        let axes = [
            texts(&techniques),
            texts(&or_default(&self.isolation, &[one])),
            texts(&producers),
            texts(&consumers),
            texts(&or_default(&self.producer, Speed::ALL)),
            texts(&takers),
            texts(&or_default(&self.wait, &waits)),
        ];
        let is_one = self.isolation.len() < 2 && self.technique.len() < 2;
        let mut cells = Vec::new();
        for values in combinations(&values_on(&AXES, axes)) {
            let settings = values.into_iter().map(|value| (value.axis.key(), value.text)).collect();
            let cell = LabCell::from_setting(&Setting { settings, ..Setting::default() });
            let cell = cell.map_err(UsageError)?;
            match planner::check_reach(cell.technique, cell.isolation) {
                Err(refused) if is_one => return Err(refused),
                Err(_) => {}
                // No end takes events, so the speed of a consumer is irrelevant.
                Ok(_) if cell.consumers == 0 && cell.consumer != takers[0] => {}
                Ok(_) => cells.push(cell),
            }
        }
        if cells.is_empty() {
            let all = techniques.iter().map(|technique| technique.name()).collect::<Vec<_>>().join(",");
            return Err(UsageError(format!(
                "--technique {all}: nothing of it runs there: use --isolation thread"
            )));
        }
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::experiment::Lab;
    use clap::Parser;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: LabFlags,
    }

    fn lab(line: &str) -> Result<Lab, String> {
        let line = TestCommandLine::try_parse_from(["lab"].into_iter().chain(line.split_whitespace()));
        let flags = line.map_err(|error| error.to_string())?.flags;
        let machine = Machine { cores_allowed: vec![0, 1], cores_online: 2, ..Machine::default() };
        let record = flags.plan(machine).map_err(|error| error.to_string())?;
        Lab::from_experiment(&record)
    }

    #[test]
    fn the_grid_is_every_combination_that_can_be() {
        assert_eq!(lab("").unwrap().cells.len(), 2 * 4 * 4);
        let heap = lab("--technique std-mpsc,linked --isolation thread,process --wait park").unwrap();
        assert_eq!(heap.cells.len(), 3 * 4, "a queue on the heap is there once, at thread");
        let readers = lab("--consumers 0,2 --wait busy --technique linked").unwrap();
        assert_eq!(readers.cells.len(), 2 + 4, "nobody takes: a consumer's speed says nothing");
        let names: Vec<_> = readers.cells.iter().map(LabCell::name).collect();
        assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
    }

    #[test]
    fn seed_table_has_shorter_slow_rows() {
        let sizes = |line: &str| {
            let lab = lab(line).unwrap();
            let size = |cell: &LabCell| (lab.plan.runs_of(cell), lab.plan.events_of(cell));
            assert!(lab.cells.iter().all(|cell| cell.isolation == Isolation::Thread));
            let is_fast = |cell: &&LabCell| (cell.producer, cell.consumer) == (Speed::Fast, Speed::Fast);
            let (fast, slow): (Vec<_>, Vec<_>) = lab.cells.iter().partition(is_fast);
            assert_eq!((fast.len(), slow.len()), (4, 12));
            assert_eq!(slow.iter().filter(|cell| lab.plan.sleeps(cell)).count(), 6, "poll, not busy");
            assert!(!fast.iter().any(|cell| lab.plan.sleeps(cell)));
            (size(fast[0]), size(slow[0]))
        };
        assert_eq!(sizes("--seed-table"), ((300, 100_000), (10, 10_000)));
        assert_eq!(sizes("--seed-table --events 70 --runs 2"), ((2, 70), (2, 70)));
        assert_eq!(lab("").unwrap().cells.iter().filter(|cell| cell.events.is_some()).count(), 0);
    }

    #[test]
    fn cell_has_the_capacity_of_its_queue() {
        let techniques = "array-queue,crossbeam-array-queue,linked,std-mpsc,pipe";
        let lab = lab(&format!(
            "--technique {techniques} --isolation thread --wait busy --producer fast --consumer fast"
        ));
        let capacities: Vec<_> = lab.unwrap().cells.iter().map(|cell| (cell.slots, cell.capacity)).collect();
        let linked = Some(16_492);
        assert_eq!(
            capacities,
            [(None, Some(1_024)), (Some(1_000), Some(1_000)), (None, linked), (None, None), (None, None)]
        );
        let exact = self::lab("--technique crossbeam-array-queue --isolation thread").unwrap();
        assert_eq!(exact.notes, [""; 0], "nothing was rounded");
    }

    #[test]
    fn a_capacity_says_what_it_was_rounded_to() {
        let lab = |line| lab(line).unwrap();
        assert_eq!((lab("").plan.capacity, lab("--capacity 1").plan.capacity), (1024, 2));
        assert!(lab("").notes[0].contains("1024 slots: 1000, rounded up"), "{:?}", lab("").notes);
        assert!(lab("--capacity 4096").notes.is_empty());
    }

    #[test]
    fn invalid_flags_are_named() {
        for (line, expected) in [
            ("--slow 5us", "work:DUR or sleep:DUR"),
            ("--slow work:5", "has no unit"),
            ("--slow rest:5us", "work:DUR or sleep:DUR"),
            ("--capacity 0", "--capacity 0: from 1 to 1048576"),
            ("--events 0", "--events 0"),
            ("--events 3 --producers 4", "fewer than --producers 4"),
            ("--runs 0", "--runs 0"),
            ("--jitter 2", "--jitter 2"),
            ("--poll 0ns", "--poll"),
            ("--producers 65", "--producers 65: from 1 to 64"),
            ("--wait spin", "busy"),
            (
                "--technique std-mpsc",
                "Use --technique linked, its twin over shared memory, or --isolation thread",
            ),
            ("--technique std-mpsc,crossbeam-channel", "--isolation thread"),
            ("--cores 7", "core 7 is not allowed here (allowed: 0,1)"),
            ("--cores x", "--cores"),
        ] {
            let error = lab(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
