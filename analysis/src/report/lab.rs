//! A lab as tables and in words: what each queue and each way of waiting cost, and what it bought.

use crate::experiment::{Lab, LabCell, LabRun, Speed, Wait, percentile};
use crate::report::grid::{Grid, GridRow};
use crate::report::units::{count, duration, duration_or_dash, plain};
use crate::stats::Spread;
use protocol::plan::Isolation;

/// The figures of a cell over its sound runs.
#[derive(Clone, Debug)]
pub struct CellFigures {
    /// The run time, in nanoseconds.
    pub run: Spread,
    /// Events a second through the queue.
    pub rate: f64,
    /// The latency of all runs' events, in nanoseconds: p50, p99, p99.9, and the greatest.
    pub p50: Option<u64>,
    /// See `p50`.
    pub p99: Option<u64>,
    /// See `p50`.
    pub p999: Option<u64>,
    /// See `p50`.
    pub max: Option<u64>,
    /// CPU time of the producers for each event, in nanoseconds, median over the runs.
    pub producer_cpu: f64,
    /// The same of the consumers.
    pub consumer_cpu: f64,
    /// Context switches for a thousand events, of both sides.
    pub switches: f64,
    /// Returns from a yield or a sleep for each event, of both sides.
    pub wakes: f64,
}

impl CellFigures {
    /// Of a cell; nothing without a sound run.
    pub fn of(cell: &LabCell, events: u64) -> Option<Self> {
        let median = |of: &dyn Fn(&LabRun) -> f64| Spread::of(cell.sound().map(of));
        let each = events as f64;
        let run = median(&|run| run.run_ns as f64)?;
        let latencies = cell.latencies().ok()?;
        let middle = |of: &dyn Fn(&LabRun) -> f64| median(of).map_or(0.0, |spread| spread.median);
        let both = |run: &LabRun| run.producer.and(run.consumer);
        Some(Self {
            run,
            rate: if run.median > 0.0 { each * 1e9 / run.median } else { 0.0 },
            p50: percentile(&latencies, 0.5),
            p99: percentile(&latencies, 0.99),
            p999: percentile(&latencies, 0.999),
            max: (!latencies.is_empty()).then(|| latencies.max()),
            producer_cpu: middle(&|run| run.producer.cpu_ns as f64 / each),
            consumer_cpu: middle(&|run| run.consumer.cpu_ns as f64 / each),
            switches: middle(&|run| (both(run).voluntary + both(run).involuntary) as f64 * 1e3 / each),
            wakes: middle(&|run| both(run).wakes as f64 / each),
        })
    }

    /// CPU time of both sides for each event, in nanoseconds.
    pub fn cpu(&self) -> f64 {
        self.producer_cpu + self.consumer_cpu
    }
}

/// Two peaks in the run times of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPeaks {
    /// Mean run time of the faster group in nanoseconds, and its runs.
    pub fast: (f64, usize),
    /// Of the slower group.
    pub slow: (f64, usize),
}

/// How much of the variance two groups must explain. Of a normal distribution cut in the middle they explain 64 %, of an even one 75 %.
const EXPLAINED: f64 = 0.85;
/// Fewer runs than this have no distribution.
const LEAST_RUNS: usize = 8;

/// Whether run times fall into two groups: cut where that explains most of their variance.
pub fn two_peaks(times: impl Iterator<Item = f64>) -> Option<TwoPeaks> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let least = (times.len() / 6).max(2);
    if times.len() < LEAST_RUNS {
        return None;
    }
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        (mean, part.iter().map(|time| (time - mean).powi(2)).sum::<f64>())
    };
    let all = squares(&times).1;
    let cut = |at: usize| {
        let ((fast, within_fast), (slow, within_slow)) = (squares(&times[..at]), squares(&times[at..]));
        let peaks = TwoPeaks { fast: (fast, at), slow: (slow, times.len() - at) };
        (1.0 - (within_fast + within_slow) / all, peaks)
    };
    let (explained, peaks) = (least..=times.len() - least).map(cut).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (explained >= EXPLAINED && peaks.slow.0 > peaks.fast.0 * 1.05).then_some(peaks)
}

/// The heading of a lab's document.
pub fn heading(lab: &Lab) -> String {
    format!("lab, {} on {}", lab.started, lab.machine.cpu_model)
}

/// What to know of it.
pub fn notes(lab: &Lab) -> Vec<String> {
    let slack = duration(lab.slack_ns);
    let mut notes = vec![format!(
        "measured {}: {} events a run, {} runs of each cell in turn, {} slots, slow is {} ± {}%, poll sleeps {}, timer slack {slack}, \
         seed {}, clock read {}",
        lab.started,
        count(lab.events),
        lab.runs,
        lab.capacity,
        lab.slow,
        plain(lab.jitter * 100.0),
        duration(lab.poll_ns),
        lab.seed,
        duration(lab.clock_read_ns as u64)
    )];
    notes.extend(lab.notes.iter().cloned());
    if let Some(sleep) = lab.sleep {
        notes.push(format!(
            "a sleep of 1 ms takes {} here with the usual timer slack of 50 µs, {} with one of 1 ns; in the seed benchmark 1.09 ms. \
             What is above 1 ms is the timer's and no queue's",
            duration(sleep.default_ns),
            duration(sleep.precise_ns)
        ));
    }
    let (done, all) = lab.progress();
    if done < all {
        notes.push(format!("{done} of {all} runs are done and sound"));
    }
    notes.extend(peaks(lab));
    if lab.cells.iter().any(|cell| cell.isolation == Isolation::Sandbox && cell.technique.is_kernel()) {
        notes.push(
            "what the kernel carries: at sandbox the producers are in the sandbox, the consumers are not"
                .into(),
        );
    }
    notes
}

/// The cells with two peaks, and what the two groups of runs have apart from their time.
fn peaks(lab: &Lab) -> Vec<String> {
    let found: Vec<String> = lab.cells.iter().filter_map(peaks_of).collect();
    let all = found.len();
    let mut shown: Vec<String> = found.into_iter().take(4).collect();
    if all > shown.len() {
        shown.push(format!("{} more cells have two peaks: see report.html", all - shown.len()));
    }
    shown
}

fn peaks_of(cell: &LabCell) -> Option<String> {
    let found = two_peaks(cell.sound().map(|run| run.run_ns as f64))?;
    let border = f64::midpoint(found.fast.0, found.slow.0);
    let mean = |slow: bool, of: fn(&LabRun) -> u64| {
        let group: Vec<f64> = cell
            .sound()
            .filter(|run| (run.run_ns as f64 > border) == slow)
            .map(|run| of(run) as f64)
            .collect();
        group.iter().sum::<f64>() / group.len().max(1) as f64
    };
    let figures: [(&str, fn(&LabRun) -> u64); 5] = [
        ("forced context switches", |run| run.producer.and(run.consumer).involuntary),
        ("chosen context switches", |run| run.producer.and(run.consumer).voluntary),
        ("looks of the producer at a full queue", |run| run.producer.looks),
        ("looks of the consumer at an empty queue", |run| run.consumer.looks),
        ("CPU nanoseconds", |run| run.producer.and(run.consumer).cpu_ns),
    ];
    let differ = figures.map(|(what, of)| (what, mean(false, of), mean(true, of)));
    let apart = |(_, fast, slow): &(&str, f64, f64)| ((slow + 1.0) / (fast + 1.0)).ln().abs();
    let (what, fast, slow) = differ.into_iter().max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    Some(format!(
        "two peaks: {}: {} ({} runs) and {} ({} runs); what differs most between them: {what}, {} against {}",
        cell.name(),
        duration(found.fast.0 as u64),
        found.fast.1,
        duration(found.slow.0 as u64),
        found.slow.1,
        plain(fast),
        plain(slow)
    ))
}

/// The four pairs of speeds, in the seed benchmark's order.
pub const PAIRS: [(Speed, Speed); 4] = [
    (Speed::Fast, Speed::Fast),
    (Speed::Fast, Speed::Slow),
    (Speed::Slow, Speed::Fast),
    (Speed::Slow, Speed::Slow),
];

/// The tables for the terminal.
pub fn narrow(lab: &Lab) -> Vec<Grid> {
    let mut grids: Vec<Grid> = against_busy(lab).into_iter().collect();
    grids.extend(lab.carriers().iter().filter_map(|carrier| carried(lab, carrier)));
    grids.extend(seed_table(lab));
    grids.extend(fairness(lab));
    grids
}

/// The tables for the files.
pub fn wide(lab: &Lab) -> Vec<Grid> {
    let mut grids: Vec<Grid> = against_busy(lab).into_iter().collect();
    grids.push(everything(lab));
    grids.extend(seed_table(lab));
    grids.extend(fairness(lab));
    grids
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The headline: CPU and latency of each way of waiting as a multiple of busy's, the median over the carriers.
pub fn against_busy(lab: &Lab) -> Option<Grid> {
    let waits: Vec<Wait> =
        Wait::ALL.iter().copied().filter(|wait| lab.cells.iter().any(|cell| cell.wait == *wait)).collect();
    if waits.len() < 2 || !waits.contains(&Wait::Busy) {
        return None;
    }
    let others = || waits.iter().filter(|wait| **wait != Wait::Busy);
    let mut head = strings(&["speeds"]);
    head.extend(
        others().flat_map(|wait| [format!("{wait} CPU"), format!("{wait} p50"), format!("{wait} p99")]),
    );
    let row = |(producer, consumer): (Speed, Speed)| {
        let cells = || lab.cells.iter().filter(|cell| (cell.producer, cell.consumer) == (producer, consumer));
        let ratio = |wait: Wait, of: &dyn Fn(&CellFigures) -> Option<f64>| {
            let ratios = cells().filter(|cell| cell.wait == wait).filter_map(|cell| {
                let busy =
                    cells().find(|busy| busy.wait == Wait::Busy && busy.carrier() == cell.carrier())?;
                let (this, busy) = (CellFigures::of(cell, lab.events)?, CellFigures::of(busy, lab.events)?);
                Some(of(&this)? / of(&busy)?).filter(|ratio| ratio.is_finite())
            });
            Spread::of(ratios).map_or_else(|| "–".into(), |spread| format!("{}×", plain(spread.median)))
        };
        let of = |wait: &Wait| {
            [
                ratio(*wait, &|figures| Some(figures.cpu())),
                ratio(*wait, &|figures| figures.p50.map(|ns| ns as f64)),
                ratio(*wait, &|figures| figures.p99.map(|ns| ns as f64)),
            ]
        };
        let cells = cells().next().map(|_| others().flat_map(of).collect::<Vec<_>>())?;
        Some(GridRow::plain([vec![format!("{producer}→{consumer}")], cells].concat()))
    };
    Some(Grid {
        name: "waiting".into(),
        title: "What a way of waiting costs in CPU and in latency, as a multiple of busy".into(),
        head,
        keys: 1,
        rows: PAIRS.into_iter().filter_map(row).collect(),
        notes: strings(&[
            "below 1× is better; the median over the queues; CPU is that of both sides, the work of a slow side included",
        ]),
    })
}

/// A carrier's cells: a row for each pair of speeds and way of waiting.
fn carried(lab: &Lab, carrier: &str) -> Option<Grid> {
    let mut rows = Vec::new();
    for (producer, consumer) in PAIRS {
        let group: Vec<(&LabCell, CellFigures)> = lab
            .cells
            .iter()
            .filter(|cell| {
                cell.carrier() == carrier && (cell.producer, cell.consumer) == (producer, consumer)
            })
            .filter_map(|cell| Some((cell, CellFigures::of(cell, lab.events)?)))
            .collect();
        let least = |of: &dyn Fn(&CellFigures) -> f64| {
            group.iter().map(|(_, figures)| of(figures)).fold(f64::INFINITY, f64::min)
        };
        let p50 = |figures: &CellFigures| figures.p50.map_or(f64::INFINITY, |ns| ns as f64);
        let (quickest, cheapest) = (least(&p50), least(&CellFigures::cpu));
        for (cell, figures) in &group {
            let marks = [
                (3, p50(figures) <= quickest),
                (5, figures.cpu() <= cheapest),
                (6, figures.cpu() <= cheapest),
            ];
            let best = marks
                .into_iter()
                .filter(|(_, is)| *is && group.len() > 1)
                .map(|(column, _)| column)
                .collect();
            let cells = vec![
                cell.speeds(),
                cell.wait.to_string(),
                duration(figures.run.median as u64),
                duration_or_dash(figures.p50),
                duration_or_dash(figures.p99),
                duration(figures.producer_cpu as u64),
                duration(figures.consumer_cpu as u64),
                plain(figures.switches),
                plain(figures.wakes),
            ];
            rows.push(GridRow { cells, best });
        }
    }
    let head = ["speeds", "wait", "run", "p50", "p99", "CPU prod", "CPU cons", "switches", "wakes"];
    (!rows.is_empty()).then(|| Grid {
        name: "carrier".into(),
        title: format!(
            "{carrier}: run time, latency, CPU an event, switches a thousand events, wakes an event"
        ),
        head: strings(&head),
        keys: 2,
        rows,
        notes: Vec::new(),
    })
}

/// Every figure of every cell.
fn everything(lab: &Lab) -> Grid {
    let head = [
        "technique",
        "isolation",
        "producers",
        "consumers",
        "speeds",
        "wait",
        "runs",
        "run",
        "run least",
        "run greatest",
        "events/s",
        "p50",
        "p99",
        "p99.9",
        "max",
        "CPU prod",
        "CPU cons",
        "switches/1000",
        "wakes",
    ];
    let row = |cell: &LabCell| {
        let keys = [
            cell.technique.to_string(),
            cell.isolation.to_string(),
            cell.producers.to_string(),
            cell.consumers.to_string(),
            cell.speeds(),
            cell.wait.to_string(),
            cell.sound().count().to_string(),
        ];
        let figures = CellFigures::of(cell, lab.events).map_or_else(
            || vec!["–".into(); 12],
            |figures| {
                vec![
                    duration(figures.run.median as u64),
                    duration(figures.run.low as u64),
                    duration(figures.run.high as u64),
                    count(figures.rate as u64),
                    duration_or_dash(figures.p50),
                    duration_or_dash(figures.p99),
                    duration_or_dash(figures.p999),
                    duration_or_dash(figures.max),
                    duration(figures.producer_cpu as u64),
                    duration(figures.consumer_cpu as u64),
                    plain(figures.switches),
                    plain(figures.wakes),
                ]
            },
        );
        GridRow::plain([keys.to_vec(), figures].concat())
    };
    Grid {
        name: "cells".into(),
        title: "Every cell: medians over the runs, latencies of all runs together, CPU for each event".into(),
        head: strings(&head),
        keys: 6,
        rows: lab.cells.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

/// The seed benchmark's table: run times of the four pairs, busy or not, array or linked, and what is to be compared with it.
pub fn seed_table(lab: &Lab) -> Option<Grid> {
    let of = |technique: &str, wait: Wait, (producer, consumer): (Speed, Speed)| {
        let is_it = |cell: &&LabCell| {
            cell.technique.name() == technique
                && (cell.producers, cell.consumers, cell.wait) == (1, 1, wait)
                && (cell.producer, cell.consumer) == (producer, consumer)
        };
        Some(CellFigures::of(lab.cells.iter().find(is_it)?, lab.events)?.run.median)
    };
    let not_busy = [Wait::Poll, Wait::Park, Wait::Yield]
        .into_iter()
        .find(|wait| lab.cells.iter().any(|cell| cell.wait == *wait))?;
    let row = |pair: (Speed, Speed)| {
        let times = [
            of("array-queue", Wait::Busy, pair),
            of("linked", Wait::Busy, pair),
            of("array-queue", not_busy, pair),
            of("linked", not_busy, pair),
        ];
        times.iter().any(Option::is_some).then_some(())?;
        let time = |ns: Option<f64>| ns.map_or_else(|| "–".into(), |ns| format!("{} ms", plain(ns / 1e6)));
        let ratio =
            |a: Option<f64>, b: Option<f64>| a.zip(b).map_or_else(|| "–".into(), |(a, b)| plain(a / b));
        let [array_busy, linked_busy, array, linked] = times;
        let mut cells = vec![format!("{}/{}", pair.0, pair.1)];
        cells.extend(times.map(time));
        cells.extend([
            ratio(array_busy, linked_busy),
            ratio(array, linked),
            ratio(array_busy, array),
            ratio(linked_busy, linked),
        ]);
        Some(GridRow::plain(cells))
    };
    let rows: Vec<GridRow> = PAIRS.into_iter().filter_map(row).collect();
    let isolation = lab.cells.first()?.isolation;
    let head = [
        "prod/cons".to_owned(),
        "array busy".into(),
        "linked busy".into(),
        format!("array {not_busy}"),
        format!("linked {not_busy}"),
        "a/l busy".into(),
        format!("a/l {not_busy}"),
        format!("b/{not_busy} array"),
        format!("b/{not_busy} linked"),
    ];
    let mut notes = vec![
        "a/l: array to linked; b/…: busy to the other way. The seed's own figures are not in this repository: lay them beside \
         these ratios, not beside the times"
            .to_owned(),
    ];
    notes.extend(shares_of_a_slow_run(lab));
    (!rows.is_empty()).then(|| Grid {
        name: "seed".into(),
        title: format!("The seed benchmark's table, at {isolation}: median time of a run, and ratios"),
        head: head.to_vec(),
        keys: 1,
        rows,
        notes,
    })
}

/// What of a run with a slow end is the slowness that was asked for, what the timer's lateness, and what is left for the queue.
fn shares_of_a_slow_run(lab: &Lab) -> Option<String> {
    let (kind, time) = lab.slow.split_once(':')?;
    let asked = time.parse::<crate::units::Nanos>().ok()?.0 as f64;
    let cell = lab.cells.iter().find(|cell| {
        (cell.producer, cell.consumer, cell.producers) == (Speed::Slow, Speed::Fast, 1) && cell.consumers == 1
    })?;
    let each = CellFigures::of(cell, lab.events)?.run.median / lab.events as f64;
    if kind == "work" {
        return Some(format!(
            "{}: {} an event, of which {} are the work that was asked for",
            cell.name(),
            duration(each as u64),
            duration(asked as u64)
        ));
    }
    let sleep = lab.sleep?;
    let took = if lab.slack_ns >= 50_000 { sleep.default_ns } else { sleep.precise_ns } as f64;
    let late = (took - 1e6).max(0.0);
    let rest = each - asked - late;
    Some(format!(
        "{}: {} an event: {} asked for, {} the timer's lateness (of a sleep of 1 ms here), {} all else: the queue, the stamps, the \
         switches",
        cell.name(),
        duration(each as u64),
        duration(asked as u64),
        duration(late as u64),
        if rest >= 0.0 { duration(rest as u64) } else { format!("-{}", duration(-rest as u64)) }
    ))
}

/// How evenly several producers get their events through.
fn fairness(lab: &Lab) -> Option<Grid> {
    let row = |cell: &LabCell| {
        let shares = |pick: fn(f64, f64) -> f64, from: f64| {
            let of = |run: &LabRun| run.shares.iter().copied().fold(from, pick) * run.shares.len() as f64;
            Spread::of(cell.sound().filter(|run| !run.shares.is_empty()).map(of))
        };
        let longest = cell.sound().flat_map(|run| run.longest_wait_ns.iter().copied()).max()?;
        let text = |spread: Option<Spread>| {
            spread.map_or_else(|| "–".into(), |spread| format!("{}×", plain(spread.median)))
        };
        Some(GridRow::plain(vec![
            format!("{}, {}", cell.carrier(), cell.speeds()),
            cell.wait.to_string(),
            text(shares(f64::min, f64::INFINITY)),
            text(shares(f64::max, 0.0)),
            duration(longest),
        ]))
    };
    let rows: Vec<GridRow> = lab.cells.iter().filter(|cell| cell.producers > 1).filter_map(row).collect();
    (!rows.is_empty()).then(|| Grid {
        name: "fairness".into(),
        title: "Fairness: producers' shares of the first half of the events, 1× is an even share".into(),
        head: strings(&["queue", "wait", "least", "greatest", "longest wait"]),
        keys: 2,
        rows,
        notes: strings(&["medians over the runs; the longest wait for room is the longest of all"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_peaks_are_two_groups_and_not_a_wide_one() {
        let around = |middle: f64, runs: usize| (0..runs).map(move |run| middle + run as f64 * 0.1);
        let found = two_peaks(around(10.0, 6).chain(around(20.0, 4))).unwrap();
        assert_eq!((found.fast.1, found.slow.1), (6, 4));
        assert!((found.fast.0 - 10.25).abs() < 1e-9 && (found.slow.0 - 20.15).abs() < 1e-9);
        assert_eq!(two_peaks((0..100).map(f64::from)), None, "evenly spread");
        assert_eq!(two_peaks(around(10.0, 20)), None);
        assert_eq!(two_peaks([1.0, 1.0, 1.0, 9.0, 9.0, 9.0].into_iter()), None, "too few runs to say");
        assert_eq!(two_peaks(std::iter::repeat_n(5.0, 20)), None, "no spread at all");
    }
}
