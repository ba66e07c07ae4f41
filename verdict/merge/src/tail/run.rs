//! Attributes the slow orders of a run to causes: the slowest fractions together, and the worst
//! orders individually.

use super::attribute::add_ticks;
use super::gap_class::{self, StealAccount};
use super::noise::{MachineNoise, dropped_notes};
use super::pauses::GapSplitter;
use super::strategies::{StrategyTail, StrategyTails};
use super::traces::{OrderTrace, OrderTraces};
use super::{AttributionParams, NanosByCause, Pause, TicksByCause, attribute};
use crate::figures::{SAMPLES_FOR_P50, SAMPLES_FOR_P99, SAMPLES_FOR_P999, to_ns};
use crate::radix_select::{BitSet, nearest_rank, select_ranks};
use crate::{MergedRun, ThreadLog};
use protocol::flow::{Stage, StageLocation};
use protocol::stamps::Gap;
use protocol::wire::MAX_STRATEGIES;
use record::document::Document;
use record::kernel::KernelAccount;
use record::run::RunRecord;
use record::run::ns_per_tick;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Maximum service time: gaps are recorded from this length on.
const MAX_SERVICE_NS: f64 = 3_000.0;
/// Analyzed tail fractions: one order of this many, with the name of the fraction.
const TAIL_FRACTIONS: [(u64, &str); 3] = [(100, "1 %"), (1_000, "0.1 %"), (10_000, "0.01 %")];

/// The causes of a run's slowest orders (the slowest 1 %, 0.1 % and 0.01 %): how much of their
/// latency rt_venue each cause explains. Times are nanoseconds of rt_venue: an order's path without
/// its venue's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Run id.
    pub run: String,
    /// Number of explained orders: measured, with every stamp.
    pub orders: u64,
    /// Number of orders that a gap or the backlog after one affected.
    #[serde(rename = "touched")]
    pub stall_affected: u64,
    /// Percentiles of rt_venue over all explained orders.
    pub all: TailPercentiles,
    /// Percentiles of rt_venue over the orders that no stall affected.
    pub stall_free: TailPercentiles,
    /// The slowest orders by fraction, without empty fractions.
    pub slowest: Vec<TailShare>,
    /// The worst orders, the slowest first.
    pub worst: Vec<ExplainedOrder>,
    /// The slowest orders of each strategy; empty if all are of one built-in kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategyTail>,
    /// Gaps of the threads over time.
    pub noise: MachineNoise,
    /// Kernel statistics of the cores; null if not collected.
    #[serde(default)]
    pub kernel: Option<KernelAccount>,
    /// Steal by elimination and by the kernel's ticks; null if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<StealAccount>,
    /// Notes on the attribution, one line each.
    pub notes: Vec<String>,
    /// For each measured order of the merge: whether it was explained and no stall affected it. Not
    /// saved.
    #[serde(skip)]
    pub unaffected: BitSet,
    /// For each measured order of the merge: whether it was explained and no steal affected it. Not
    /// saved.
    #[serde(skip)]
    pub unaffected_by_steal: BitSet,
}

/// Percentiles of the latency rt_venue in nanoseconds; `None` with too few orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailPercentiles {
    /// Median in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile in nanoseconds.
    pub p999_ns: Option<u64>,
}

impl TailPercentiles {
    /// Shares of the percentiles, and the orders that each needs.
    const SHARES: [(f64, u64); 3] =
        [(0.5, SAMPLES_FOR_P50), (0.99, SAMPLES_FOR_P99), (0.999, SAMPLES_FOR_P999)];

    /// Creates the percentiles from the values at those shares of `count` orders.
    fn from_values(values: &[u64], count: u64, ns_per_tick: f64) -> Self {
        let at = |index: usize| (count >= Self::SHARES[index].1).then(|| to_ns(values[index], ns_per_tick));
        Self { p50_ns: at(0), p99_ns: at(1), p999_ns: at(2) }
    }
}

/// The slowest fraction of a run's orders, such as 0.1 %, with the sum of these orders' times in
/// nanoseconds, split by cause of delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailShare {
    /// The slowest fraction of the orders, for example `0.1 %`.
    #[serde(rename = "of")]
    pub fraction: String,
    /// Number of orders in the fraction.
    pub orders: u64,
    /// Time of the fraction's orders in nanoseconds by cause, in the order of
    /// [`super::Cause::ALL`].
    pub causes_ns: NanosByCause,
    /// Time of the fraction's orders in nanoseconds by cause, for each stage of the engine.
    pub stages: Vec<(String, NanosByCause)>,
}

/// One of a run's slowest orders, with its time in each stage split by cause of delay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedOrder {
    /// Id of the order as `STRATEGY/SEQUENCE`, with the epoch if it is not 0.
    pub order: String,
    /// Time at which the order was sent, in nanoseconds from the start of the schedule.
    pub at_ns: u64,
    /// rt_venue in nanoseconds: the sum of all causes.
    pub rt_venue_ns: u64,
    /// Whether a gap or the backlog after one affected the order.
    #[serde(rename = "touched")]
    pub stall_affected: bool,
    /// Stages of the order's path, each with the thread that it ended on.
    pub stages: Vec<(String, String, NanosByCause)>,
}

impl Document for Tail {
    const FILE: &'static str = "tail.json";
    const NAME: &'static str = "bulkhead.tail";
    const VERSION: u32 = 1;
    const PRETTY: bool = false;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }

    /// Checks that every list is short enough to be drawn.
    fn check(&self) -> Result<(), String> {
        let noise = &self.noise;
        let fits = self.slowest.len() <= TAIL_FRACTIONS.len()
            && self.slowest.iter().all(|share| share.stages.len() <= Stage::ALL.len())
            && self.strategies.len() <= MAX_STRATEGIES
            && noise.slices <= 10_000
            && noise.threads.iter().all(|thread| thread.slices.len() as u64 <= noise.slices);
        if fits { Ok(()) } else { Err("its lists do not fit each other".into()) }
    }
}

impl Tail {
    /// Attributes the slow orders of a merged run to causes, and lists the `worst` slowest ones.
    /// Iterates over the merge's table several times, with a few extra bits per order.
    pub fn from_run(record: &RunRecord, merged: &MergedRun, worst: usize) -> Self {
        let traces = OrderTraces::new(record, merged);
        let mut classes = gap_class::classify(record, &merged.threads);
        let gaps: Vec<&[Gap]> = merged.threads.iter().map(|log| log.gaps.as_slice()).collect();
        let stolen = gap_class::confirm_steal(&gaps, &mut classes, ns_per_tick(record), |stamp| {
            traces.spans().for_each(|span| stamp(usize::from(span.receiver), span.to));
        });
        let (mut tail, touched) = explain(&traces, &merged.threads, record, worst);
        let touched_by_steal = affected_by_steal(&traces, &merged.threads, &stolen, ns_per_tick(record));
        // Explained and unaffected by gaps.
        let untouched_by = |touched: &BitSet| {
            let mut untouched = BitSet::new(merged.measured().count());
            for trace in traces.iter(None).filter(|trace| !touched.get(trace.order as usize)) {
                untouched.set(trace.measured_index as usize);
            }
            untouched
        };
        (tail.unaffected, tail.unaffected_by_steal) =
            (untouched_by(&touched), untouched_by(&touched_by_steal));
        tail.noise = MachineNoise::from_run(record, merged, &classes);
        tail.notes = dropped_notes(record, merged);
        tail.steal = StealAccount::new(record, &stolen);
        let unknown = || "steal: not known: the run has no record of the kernel's".to_owned();
        tail.notes.extend(tail.steal.map_or_else(|| Some(unknown()), |steal| steal.contradiction()));
        tail
    }
}

/// Computes everything but noise and notes. Also returns the set of affected traces.
fn explain(traces: &OrderTraces<'_>, logs: &[ThreadLog], record: &RunRecord, worst: usize) -> (Tail, BitSet) {
    let ns_per_tick = ns_per_tick(record);
    let count = traces.count as usize;
    let rules = attribution_params(traces, ns_per_tick);
    let gaps: Vec<&[Gap]> = logs.iter().map(|log| log.gaps.as_slice()).collect();
    let absent = thread_pauses(traces, logs, &gaps, rules.max_service);
    let shared = |one_of: u64| traces.count / one_of;
    // The slowest fractions: the first as bits, the smaller ones individually.
    let worst = worst.min(count);
    let listed = shared(TAIL_FRACTIONS[1].0).max(worst as u64);
    let mut is_slow = BitSet::new(count);
    traces.mark_slowest(None, shared(TAIL_FRACTIONS[0].0), &mut is_slow);
    let mut slow = Vec::new();
    if let Some(last) = traces.last_of_slowest(None, listed) {
        slow.extend(traces.iter(None).filter(|trace| trace.rank() <= last));
        slow.sort_unstable_by_key(OrderTrace::rank);
    }
    let ranks: HashMap<u32, usize> = slow.iter().map(|trace| trace.order).zip(0..).collect();
    let mut sums = [[TicksByCause::default(); Stage::ALL.len()]; TAIL_FRACTIONS.len()];
    let mut causes_of_worst = vec![[TicksByCause::default(); Stage::ALL.len()]; worst];
    let mut tails = StrategyTails::new(traces, &record.plan);
    let touched = attribute(traces.spans(), count, absent, &rules, |span, causes, _| {
        let Some(stage) = span.stage.map(usize::from) else { return };
        tails.record(span.order, traces, causes);
        if is_slow.get(span.order as usize) {
            add_ticks(&mut sums[0][stage], causes);
        }
        let Some(rank) = ranks.get(&span.order) else { return };
        for (sum, (one_of, _)) in sums.iter_mut().zip(TAIL_FRACTIONS).skip(1) {
            if (*rank as u64) < shared(one_of) {
                add_ticks(&mut sum[stage], causes);
            }
        }
        if let Some(causes_by_stage) = causes_of_worst.get_mut(*rank) {
            causes_by_stage[stage] = *causes;
        }
    });
    let ns = |causes: &TicksByCause| NanosByCause(causes.map(|ticks| to_ns(ticks, ns_per_tick)));
    let free = traces.count - touched.count();
    let of = |count: u64, column: usize| {
        TailPercentiles::SHARES.map(|(share, _)| (column, nearest_rank(count, share)))
    };
    let values = select_ranks(&[of(traces.count, 0), of(free, 1)].concat(), traces.longest, |visit| {
        for trace in traces.iter(None) {
            visit(0, trace.engine_ticks);
            if !touched.get(trace.order as usize) {
                visit(1, trace.engine_ticks);
            }
        }
    });
    let (all_values, free_values) = values.split_at(TailPercentiles::SHARES.len());
    let shares = TAIL_FRACTIONS.into_iter().zip(&sums).filter(|((one_of, _), _)| traces.count >= *one_of);
    let share = |((one_of, of), stages): ((u64, &'static str), &[TicksByCause; Stage::ALL.len()])| {
        let orders = shared(one_of);
        let mut sum = TicksByCause::default();
        stages.iter().for_each(|causes| add_ticks(&mut sum, causes));
        let stages =
            engine_stages().map(|(index, stage)| (stage.name().to_owned(), ns(&stages[index]))).collect();
        TailShare { fraction: of.into(), orders, causes_ns: ns(&sum), stages }
    };
    let describe_order = |(causes_by_stage, trace): (&[TicksByCause; Stage::ALL.len()], &OrderTrace<'_>)| {
        let thread = |index: usize| {
            record.plan.threads.get(usize::from(trace.threads[index + 1])).map_or("", |thread| &thread.name)
        };
        let stages: Vec<_> = engine_stages()
            .map(|(index, stage)| {
                (stage.name().to_owned(), thread(index).to_owned(), ns(&causes_by_stage[index]))
            })
            .collect();
        ExplainedOrder {
            order: trace.id.to_string(),
            at_ns: to_ns(trace.row.began().saturating_sub(record.clock.start_ticks), ns_per_tick),
            rt_venue_ns: stages.iter().map(|(.., causes)| causes.total()).sum(),
            stall_affected: touched.get(trace.order as usize),
            stages,
        }
    };
    let tail = Tail {
        run: record.plan.run.clone(),
        orders: traces.count,
        stall_affected: touched.count(),
        all: TailPercentiles::from_values(all_values, traces.count, ns_per_tick),
        stall_free: TailPercentiles::from_values(free_values, free, ns_per_tick),
        slowest: shares.map(share).collect(),
        worst: causes_of_worst.iter().zip(&slow).map(describe_order).collect(),
        strategies: tails.finish(traces, &touched, ns),
        noise: MachineNoise::default(),
        kernel: record.kernel.clone(),
        steal: None,
        notes: Vec::new(),
        unaffected: BitSet::default(),
        unaffected_by_steal: BitSet::default(),
    };
    (tail, touched)
}

/// Returns the stages of the engine with their indices.
fn engine_stages() -> impl Iterator<Item = (usize, Stage)> {
    Stage::ALL.into_iter().enumerate().filter(|(_, stage)| stage.info().location != StageLocation::Venue)
}

fn medians(traces: &OrderTraces<'_>) -> Vec<u64> {
    if traces.count == 0 {
        return vec![0; Stage::ALL.len()];
    }
    let ranks: Vec<(usize, u64)> =
        (0..Stage::ALL.len()).map(|stage| (stage, nearest_rank(traces.count, 0.5))).collect();
    select_ranks(&ranks, traces.longest, |visit| {
        for trace in traces.iter(None) {
            for (index, stage) in Stage::ALL.into_iter().enumerate() {
                // A trace has every stamp.
                visit(index, trace.row.stage(stage).unwrap_or(0));
            }
        }
    })
}

fn attribution_params(traces: &OrderTraces<'_>, ns_per_tick: f64) -> AttributionParams {
    let max_service = ((MAX_SERVICE_NS / ns_per_tick) as u64).max(1);
    let horizon = traces.stage_spans().map(|span| span.to - span.from).max().unwrap_or(0);
    AttributionParams { usual: medians(traces), max_service, horizon }
}

/// Returns the traces that a stolen time, or the backlog after one, affected: by the rule for all
/// gaps, as if a run had no others.
fn affected_by_steal(
    traces: &OrderTraces<'_>,
    logs: &[ThreadLog],
    stolen: &[Vec<Gap>],
    ns_per_tick: f64,
) -> BitSet {
    let count = traces.count as usize;
    if stolen.iter().all(Vec::is_empty) {
        return BitSet::new(count);
    }
    let rules = attribution_params(traces, ns_per_tick);
    let gaps: Vec<&[Gap]> = stolen.iter().map(Vec::as_slice).collect();
    let absent = thread_pauses(traces, logs, &gaps, rules.max_service);
    attribute(traces.spans(), count, absent, &rules, |_, _, _| {})
}

/// Returns the pauses of each thread in its given gaps and in its sleeps.
fn thread_pauses(
    traces: &OrderTraces<'_>,
    logs: &[ThreadLog],
    gaps: &[&[Gap]],
    min_ticks: u64,
) -> Vec<Vec<Pause>> {
    let mut splitters: Vec<GapSplitter> =
        logs.iter().zip(gaps).map(|(log, gaps)| GapSplitter::new(gaps, &log.sleeps, min_ticks)).collect();
    if logs.iter().zip(gaps).any(|(log, gaps)| !gaps.is_empty() || !log.sleeps.is_empty()) {
        for span in traces.spans() {
            if let Some(splitter) = splitters.get_mut(usize::from(span.receiver)) {
                splitter.stamp(span.to);
            }
        }
    }
    splitters.into_iter().map(GapSplitter::finish).collect()
}
