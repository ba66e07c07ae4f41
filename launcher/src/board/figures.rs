//! Computes the figures of a case from its processes' counters and histograms.

use super::histogram::{BoardCounts, HistogramSnapshot};
use super::mode::WriteLoad;
use super::work::{BOARD, BoardWork};
use crate::bench::{BenchOutcome, BenchPlan};
use analysis::experiment::{BoardCase, BoardCurve, BoardReader, BoardReading, BoardUsage, BoardWriter};
use roles::bench::account::{AccountView, DONE, Field};
use roles::bench::boards::counts::{BoardField, BoardMeasure};

/// Computes the results of one combination of settings from its processes' counters and histograms.
pub fn case(
    mode: &WriteLoad,
    shared: bool,
    plan: &BenchPlan<BoardWork>,
    outcome: &BenchOutcome,
    ns_per_tick: f64,
) -> BoardCase {
    let work = &plan.work;
    let (writer, readers) =
        outcome.segments.accounts().split_first().expect("a case has its writer's account");
    let logs: Vec<BoardCounts> = readers.iter().map(BoardCounts::new).collect();
    let end = writer.get(Field::End).saturating_sub(outcome.start_ticks.unwrap_or(u64::MAX));
    let measured = (end as f64 * ns_per_tick) as u64;
    // A writer that died has not recorded when it ended.
    let duration_ns = if measured == 0 { work.duration_ns } else { measured };
    let per_s = |count: u64| count as f64 / (duration_ns as f64 / 1e9);
    let board = outcome.segments.view(BOARD).and_then(|view| shm::board::Reader::attach(&view).ok());
    let version = |cell| board.as_ref().map_or(0, |board| board.version(cell));
    let writes = (0..work.cells).map(version).fold(0u64, u64::saturating_add);
    let is_timed = work.scheduled.is_some();
    let figures = |tally: &HistogramSnapshot| tally.distribution(ns_per_tick);
    let if_timed = |tally: &HistogramSnapshot| is_timed.then(|| figures(tally));

    let mut sums = [HistogramSnapshot::new(), HistogramSnapshot::new(), HistogramSnapshot::new()];
    let mut all = BoardReading::default();
    let mut each = Vec::new();
    for (reader, (account, log)) in readers.iter().zip(&logs).enumerate() {
        let tallies = [BoardMeasure::First, BoardMeasure::Second, BoardMeasure::Third];
        let tallies = tallies.map(|measure| log.measure(measure));
        sums.iter_mut().zip(&tallies).for_each(|(sum, tally)| sum.add(tally));
        let (reads, missed) = (account.get(Field::Count), log.get(BoardField::Missed));
        let reading = BoardReading {
            reads,
            reads_per_s: per_s(reads),
            missed,
            unseen: writes.saturating_sub(reads.saturating_add(missed)),
            torn: log.get(BoardField::Torn),
            overtaken: log.get(BoardField::Overtaken),
            propagation: figures(&tallies[0]),
            read: figures(&tallies[1]),
            stale: if_timed(&tallies[2]),
        };
        all.reads = all.reads.saturating_add(reading.reads);
        all.reads_per_s += reading.reads_per_s;
        all.missed = all.missed.saturating_add(reading.missed);
        all.unseen = all.unseen.saturating_add(reading.unseen);
        all.torn = all.torn.saturating_add(reading.torn);
        all.overtaken = all.overtaken.saturating_add(reading.overtaken);
        let (name, core) = (format!("reader-{reader}"), plan.cores[reader + 1]);
        each.push(BoardReader { name, core, reading, usage: usage(account) });
    }
    (all.propagation, all.read) = (figures(&sums[0]), figures(&sums[1]));
    all.stale = if_timed(&sums[2]);
    let written = BoardCounts::new(writer);
    let (write, from_due) = (written.measure(BoardMeasure::First), written.measure(BoardMeasure::Second));
    let timed = |measure, tally| is_timed.then_some((measure, tally));
    let curves = [
        Some(("write", &write)),
        timed("from due", &from_due),
        Some(("propagation", &sums[0])),
        Some(("read", &sums[1])),
        timed("stale", &sums[2]),
    ];
    let curves = curves
        .into_iter()
        .flatten()
        .map(|(measure, tally)| BoardCurve { measure: measure.into(), points: tally.curve(ns_per_tick) });
    let mut case = BoardCase {
        mode: mode.to_string(),
        readers: work.readers as u64,
        size_bytes: work.words as u64 * 8,
        cells: work.cells as u64,
        slots: work.shape().map_or(0, |shape| shape.slots() as u64),
        isolation: plan.isolation,
        waiting: work.waiting.name().into(),
        on: "memory".into(),
        carrier: "board".into(),
        duration_ns,
        scheduled: work.scheduled,
        writer_core: plan.cores[0],
        reader_cores: reader_cores(&plan.cores),
        shared,
        clock: plan.clock.name().into(),
        ns_per_tick,
        writer: BoardWriter {
            writes,
            writes_per_s: per_s(writes),
            write: figures(&write),
            from_due: if_timed(&from_due),
            usage: usage(writer),
        },
        all,
        each,
        deaths: outcome.deaths.clone(),
        timeline: [],
        curves: curves.collect(),
        problems: outcome.problem.iter().cloned().collect(),
    };
    let found = problems(&case, writer.get(Field::Count), outcome.interrupted);
    case.problems.extend(found);
    case
}

fn reader_cores(cores: &[Option<u32>]) -> Vec<u32> {
    let mut cores: Vec<u32> = cores[1..].iter().flatten().copied().collect();
    cores.sort_unstable();
    cores.dedup();
    cores
}

fn usage(account: &AccountView) -> Option<BoardUsage> {
    (account.state() == DONE).then(|| BoardUsage {
        cpu_ns: account.get(Field::Cpu),
        voluntary_switches: account.get(Field::Voluntary),
        involuntary_switches: account.get(Field::Involuntary),
        faults: account.get(Field::Faults),
    })
}

/// Returns the problems of a case.
fn problems(case: &BoardCase, counted: u64, interrupted: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if case.all.torn > 0 {
        problems.push(format!(
            "{} of {} values read were torn: their content is not that of their version",
            case.all.torn, case.all.reads
        ));
    }
    for death in &case.deaths {
        let then = if death.succeeded { ", and a successor went on" } else { "" };
        problems.push(format!("{} died: {}{then}", death.process, death.how));
    }
    let died = |name: &str| case.deaths.iter().any(|death| death.process.ends_with(name));
    let has_no_end = !case.problems.is_empty();
    let all_died = case.deaths.iter().any(|death| death.process == "board-all");
    let writes = case.writer.writes;
    for reader in &case.each {
        let reading = &reader.reading;
        let seen = reading.reads.saturating_add(reading.missed);
        // Versions of torn values are meaningless.
        if !died(&reader.name) && !all_died && !has_no_end && reading.torn == 0 && seen != writes {
            problems.push(format!(
                "{}: {} read and {} missed are not the {writes} written",
                reader.name, reading.reads, reading.missed
            ));
        }
    }
    // The last write before a writer's death may not have been counted.
    if writes.saturating_sub(counted) > case.deaths.len() as u64 || counted > writes {
        problems.push(format!("the writer counted {counted} writes, and the board has {writes}"));
    }
    if let Some(scheduled) = case.scheduled.filter(|scheduled| writes < *scheduled && !interrupted) {
        problems
            .push(format!("the writer fell behind: {writes} of {scheduled} writes that were due were made"));
    }
    problems
}
