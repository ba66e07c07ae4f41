//! Computes the figures of a case from its processes' counters and histograms.

use super::mode::WriteLoad;
use super::work::{BOARD, BoardWork};
use crate::experiments::bench::{BenchOutcome, BenchPlan};
use analysis::experiment::{
    BoardCase, BoardCurve, BoardReader, BoardReading, BoardUsage, BoardWriter, board,
};
use analysis::summary::figures::MeasureSeries;
use roles::bench::account::{AccountView, DONE, Field};
use roles::bench::boards::counts::{
    BUCKET_COUNT, BUCKETS, BoardField, BoardMeasure, HISTOGRAM_WORDS, MAX_WORD, MIN_WORD, SUM, bucket_value,
    measure_at,
};
use shm::memory::ReadOnlyWords;
use shm::sync::Ordering;
use std::slice;

/// Adds a histogram of an agent to a measure. The memory may hold anything: a misbehaving process
/// gets wrong figures, and nothing worse.
fn record_histogram(series: &mut MeasureSeries, words: &ReadOnlyWords, ns_per_tick: f64) {
    let load = |place| words.load(place, Ordering::Relaxed);
    let counts = (0..BUCKET_COUNT).map(|bucket| (bucket_value(bucket), load(BUCKETS + bucket)));
    let bounds = (load(MIN_WORD).wrapping_sub(1), load(MAX_WORD), load(SUM));
    series.record_counts(counts, bounds, ns_per_tick);
}

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
    let end = writer.get(Field::End).saturating_sub(outcome.start_ticks.unwrap_or(u64::MAX));
    let measured = (end as f64 * ns_per_tick) as u64;
    // A writer that died has not recorded when it ended.
    let duration_ns = if measured == 0 { work.duration_ns } else { measured };
    let per_s = |count: u64| count as f64 / (duration_ns as f64 / 1e9);
    let board = outcome.segments.view(BOARD).and_then(|view| shm::board::Reader::attach(&view).ok());
    let version = |cell| board.as_ref().map_or(0, |board| board.version(cell));
    let writes = (0..work.cells).map(version).fold(0u64, u64::saturating_add);
    let is_timed = work.scheduled.is_some();
    let figures = |series: &MeasureSeries| series.distribution(ns_per_tick);
    let if_timed = |series: &MeasureSeries| is_timed.then(|| figures(series));
    let measure = |accounts: &[AccountView], measure: BoardMeasure| {
        let mut series = MeasureSeries::default();
        for account in accounts {
            let words = account.own().slice(measure_at(measure as usize), HISTOGRAM_WORDS);
            record_histogram(&mut series, &words, ns_per_tick);
        }
        series
    };
    // Of one reader, or of all together.
    let reading = |accounts: &[AccountView]| {
        let sum = |of: &dyn Fn(&AccountView) -> u64| accounts.iter().map(of).fold(0, u64::saturating_add);
        let count =
            |account: &AccountView, field: BoardField| account.own().load(field as usize, Ordering::Relaxed);
        let seen = |account: &AccountView| {
            account.get(Field::Count).saturating_add(count(account, BoardField::Missed))
        };
        let measures = [BoardMeasure::First, BoardMeasure::Second, BoardMeasure::Third];
        let series = measures.map(|of| measure(accounts, of));
        let reads = sum(&|account| account.get(Field::Count));
        let reading = BoardReading {
            reads,
            reads_per_s: per_s(reads),
            missed: sum(&|account| count(account, BoardField::Missed)),
            unseen: sum(&|account| writes.saturating_sub(seen(account))),
            torn: sum(&|account| count(account, BoardField::Torn)),
            overtaken: sum(&|account| count(account, BoardField::Overtaken)),
            propagation: figures(&series[0]),
            read: figures(&series[1]),
            stale: if_timed(&series[2]),
        };
        (reading, series)
    };
    let (all, sums) = reading(readers);
    let each = readers.iter().enumerate().map(|(reader, account)| BoardReader {
        name: format!("reader-{reader}"),
        core: plan.cores[reader + 1],
        reading: reading(slice::from_ref(account)).0,
        usage: usage(account),
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
        each: each.collect(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::summary::Distribution;
    use proptest::prelude::*;
    use roles::bench::boards::counts::{SharedHistogram, bucket};
    use shm::memory::Region;

    fn figures(parts: &[&[u64]], ns_per_tick: f64) -> Distribution {
        let mut series = MeasureSeries::default();
        for values in parts {
            let words = Region::heap(HISTOGRAM_WORDS).words();
            let counts = SharedHistogram::new(words.clone());
            values.iter().for_each(|value| counts.add(*value));
            record_histogram(&mut series, &words.into(), ns_per_tick);
        }
        series.distribution(ns_per_tick)
    }

    #[test]
    fn every_bucket_has_its_values_and_they_rise() {
        let mut last = None;
        for place in 0..BUCKET_COUNT {
            let value = bucket_value(place);
            assert_eq!(bucket(value), place);
            assert!(last < Some(value), "{place}");
            last = Some(value);
        }
        assert_eq!(bucket(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn overwritten_counts_do_not_panic() {
        let words = Region::heap(HISTOGRAM_WORDS).words();
        words.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        let mut series = MeasureSeries::default();
        record_histogram(&mut series, &words.into(), 1.0);
        assert!(series.distribution(1.0).max_ns.is_some());
    }

    proptest! {
        #[test]
        fn shared_counts_have_the_percentiles_of_their_values(a in values(), b in values()) {
            let (found, mut all) = (figures(&[&a, &b], 1.0), [a, b].concat());
            all.sort_unstable();
            prop_assert_eq!((found.min_ns, found.max_ns), (all.first().copied(), all.last().copied()));
            let wanted = (all.len() >= 100).then(|| all[(all.len() * 9).div_ceil(10) - 1]);
            prop_assert_eq!(found.p90_ns.is_some(), wanted.is_some());
            if let (Some(found), Some(wanted)) = (found.p90_ns, wanted) {
                prop_assert!(found.abs_diff(wanted) <= wanted / 1_000 + 1, "{} {}", found, wanted);
            }
        }
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..39, any::<u64>()).prop_map(|(bits, value)| value % (2 << bits));
        proptest::collection::vec(value, 0..300)
    }
}
