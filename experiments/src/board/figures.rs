//! Computes the figures of a case from its processes' counters and histograms.

use super::case::CaseSettings;
use super::histogram::record_histogram;
use super::{over_time, skew};
use crate::benchmark::{BenchmarkRun, EndResults};
use analysis::experiment::{
    BoardCase, BoardCurve, BoardDeath, BoardReader, BoardReading, BoardUsage, BoardWriter, board,
};
use merge::figures::MeasureSeries;
use protocol::benchmark::board_results::BoardMeasure;
use protocol::index::StrategyIndex;
use protocol::labels::{ReaderCounter, WriterCounter};
use protocol::plan::{BoardWork, Plan};
use protocol::shared_histogram::Resolution;
use protocol::status::StatusField;
use record::run::{RoleRestart, RunOutcome};
use std::slice;

/// Computes the results of one case (combination of settings) of the board benchmark from its
/// processes' counters and histograms.
pub fn case(
    cell: &CaseSettings,
    shared: bool,
    work: &BoardWork,
    made: &BenchmarkRun,
    ns_per_tick: f64,
) -> BoardCase {
    let plan = &made.plan;
    let cores: Vec<Option<u32>> = plan.threads.iter().map(|thread| thread.core).collect();
    let (writer, readers) = made.ends.split_first().expect("a board has a writer");
    let ended = writer.get(StatusField::EndedTicks);
    let end = ended.saturating_sub(made.start_ticks.unwrap_or(u64::MAX));
    let measured = (end as f64 * ns_per_tick) as u64;
    // A writer that died has not recorded when it ended.
    let duration_ns = if measured == 0 { work.duration_ns } else { measured };
    let per_s = |count: u64| count as f64 / (duration_ns as f64 / 1e9);
    let board =
        made.board.as_ref().and_then(|view| shm::board::Reader::attach_as(work.shape().ok()?, view).ok());
    let version = |cell| board.as_ref().map_or(0, |board| board.version(cell));
    let writes = (0..work.cells).map(version).fold(0u64, u64::saturating_add);
    let is_timed = work.scheduled.is_some();
    let figures = |series: &MeasureSeries| series.distribution(ns_per_tick);
    let if_timed = |series: &MeasureSeries| is_timed.then(|| figures(series));
    let measure = |ends: &[EndResults], measure: BoardMeasure| {
        let mut series = MeasureSeries::default();
        for words in ends.iter().filter_map(|end| end.words.as_ref()) {
            let words = words.slice(measure.offset(), Resolution::FINE.words());
            record_histogram(&mut series, &words, Resolution::FINE, ns_per_tick);
        }
        series
    };
    // Of one reader, or of all together.
    let reading = |ends: &[EndResults]| {
        let sum = |of: &dyn Fn(&EndResults) -> u64| ends.iter().map(of).fold(0, u64::saturating_add);
        let count = |end: &EndResults, counter: ReaderCounter| end.counters.get(counter);
        let accounted = |end: &EndResults| {
            count(end, ReaderCounter::Read).saturating_add(count(end, ReaderCounter::Missed))
        };
        let measures = [BoardMeasure::First, BoardMeasure::Second, BoardMeasure::Third];
        let series = measures.map(|of| measure(ends, of));
        let reads = sum(&|end| count(end, ReaderCounter::Read));
        let missed = sum(&|end| count(end, ReaderCounter::Missed));
        let all_versions = writes as f64 * ends.len() as f64;
        let reading = BoardReading {
            reads,
            reads_per_s: per_s(reads),
            missed,
            missed_share: (all_versions > 0.0).then(|| missed as f64 / all_versions),
            unseen: sum(&|end| writes.saturating_sub(accounted(end))),
            torn: sum(&|end| count(end, ReaderCounter::Torn)),
            overtaken: sum(&|end| count(end, ReaderCounter::Overtaken)),
            propagation: figures(&series[0]),
            read: figures(&series[1]),
            read_p95_ns: series[1].quantile(0.95, ns_per_tick),
            stale: if_timed(&series[2]),
        };
        (reading, series)
    };
    let (all, sums) = reading(readers);
    let each = readers.iter().enumerate().map(|(reader, end)| BoardReader {
        name: format!("reader-{reader}"),
        core: cores[reader + 1],
        reading: reading(slice::from_ref(end)).0,
        usage: usage(end),
    });
    let writers = slice::from_ref(writer);
    let (write, from_due) = (measure(writers, BoardMeasure::First), measure(writers, BoardMeasure::Second));
    let timed = |measure, series| is_timed.then_some((measure, series));
    let curves = [
        Some(("write", &write)),
        timed("from due", &from_due),
        Some(("propagation", &sums[0])),
        Some(("read", &sums[1])),
        timed("stale", &sums[2]),
    ];
    let curve = |(measure, series): (&str, &MeasureSeries)| BoardCurve {
        measure: measure.into(),
        points: board::curve(series.histogram()),
    };
    let curves = curves.into_iter().flatten().map(curve);
    let mut case = BoardCase {
        mode: cell.mode.to_string(),
        readers: work.readers.into(),
        size_bytes: work.words as u64 * 8,
        cells: work.cells as u64,
        slots: work.shape().map_or(0, |shape| shape.slots() as u64),
        isolation: plan.isolation.kind_of(StrategyIndex(0)),
        waiting: work.waiting.name().into(),
        on: work.folder.as_ref().map_or_else(|| "memory".into(), |folder| folder.display().to_string()),
        nodes: cell.nodes.map_or_else(String::new, |nodes| nodes.to_string()),
        carrier: "board".into(),
        duration_ns,
        scheduled: work.scheduled,
        writer_core: cores[0],
        reader_cores: reader_cores(&cores),
        shared,
        clock: plan.clock.name().into(),
        ns_per_tick,
        writer: BoardWriter {
            writes,
            writes_per_s: per_s(writes),
            write: figures(&write),
            write_p95_ns: write.quantile(0.95, ns_per_tick),
            from_due: if_timed(&from_due),
            usage: usage(writer),
        },
        all,
        each: each.collect(),
        deaths: made.deaths.iter().map(|death| death_of(plan, death)).collect(),
        timeline: over_time::timeline(made, work.duration_ns, ns_per_tick),
        curves: curves.collect(),
        skew: work.decide_every_ns.map(|_| skew::skew_of(readers, ns_per_tick)),
        warnings: Vec::new(),
        problems: Vec::new(),
    };
    if let RunOutcome::Failed { process, what, .. } = &made.outcome {
        case.problems.push(format!("{process}: {what}"));
    }
    let is_interrupted = made.outcome == RunOutcome::Interrupted;
    let found = problems(&case, writer.counters.get(WriterCounter::Written), is_interrupted);
    case.problems.extend(found);
    case
}

fn reader_cores(cores: &[Option<u32>]) -> Vec<u32> {
    let mut cores: Vec<u32> = cores[1..].iter().flatten().copied().collect();
    cores.sort_unstable();
    cores.dedup();
    cores
}

fn usage(end: &EndResults) -> Option<BoardUsage> {
    end.is_done().then(|| BoardUsage {
        cpu_ns: end.get(StatusField::CpuNs),
        voluntary_switches: end.get(StatusField::VoluntarySwitches),
        involuntary_switches: end.get(StatusField::InvoluntarySwitches),
        faults: end.get(StatusField::MinorFaults).saturating_add(end.get(StatusField::MajorFaults)),
    })
}

/// Describes a death that the run survived.
fn death_of(plan: &Plan, death: &RoleRestart) -> BoardDeath {
    let process = plan.process_of(death.role).and_then(|index| plan.processes.get(index));
    BoardDeath {
        process: process.map_or_else(String::new, |process| process.name.clone()),
        how: death.cause.clone(),
        at_ns: death.detected_ns,
        succeeded: death.recovered_ns.is_some(),
    }
}

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
        let accounted = reading.reads.saturating_add(reading.missed);
        // Versions of torn values are meaningless.
        if !died(&reader.name) && !all_died && !has_no_end && reading.torn == 0 && accounted != writes {
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
