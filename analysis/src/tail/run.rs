//! A whole run explained: its passages from the merge, the shares of the slowest, the worst one by
//! one.

use super::away::Cutter;
use super::noise::{Noise, lost};
use super::strategies::Tails;
use super::ways::{Way, Ways};
use super::{Away, Causes, Parts, Rules, attribute};
use crate::document::Document;
use crate::kernel::KernelAccount;
use crate::merge::{Merged, ThreadLog};
use crate::record::RunRecord;
use crate::select::{Bits, rank, select};
use crate::summary::StrategyTail;
use crate::summary::figures::{SAMPLES_FOR_P50, SAMPLES_FOR_P99, SAMPLES_FOR_P999, to_ns};
use crate::summary::ns_per_tick;
use protocol::flow::{Stage, StageLocation};
use protocol::wire::MAX_STRATEGIES;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Longer than this between two stamps is no order's service: from here on gaps are recorded.
const LONGEST_NS: f64 = 3_000.0;
/// The slowest of so many are one share each.
const ONE_OF: [(u64, &str); 3] = [(100, "1 %"), (1_000, "0.1 %"), (10_000, "0.01 %")];

/// Why the slow orders of a run were slow. Nanoseconds; of rt_venue: an order's way without its
/// venue's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// The run's id.
    pub run: String,
    /// Orders explained: measured, with every stamp.
    pub orders: u64,
    /// Of them, those that a gap or the backlog behind one touched.
    pub touched: u64,
    /// Percentiles of all of them.
    pub all: StallFree,
    /// Percentiles of the others.
    pub stall_free: StallFree,
    /// The slowest, by share; without those shares that have no order.
    pub slowest: Vec<Share>,
    /// The worst, the slowest first.
    pub worst: Vec<Explained>,
    /// The slowest of each strategy; empty where all are of one kind and none is a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategyTail>,
    /// The gaps of the threads over time.
    pub noise: Noise,
    /// What the kernel says of the same cores; null: nobody asked it.
    #[serde(default)]
    pub kernel: Option<KernelAccount>,
    /// What to know about it.
    pub notes: Vec<String>,
    /// Of each of the merge's measured orders, whether it was explained and no gap and no backlog
    /// behind one touched it. Not saved.
    #[serde(skip)]
    pub untouched: Bits,
}

/// Percentiles of rt_venue; `None`: too few orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallFree {
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th.
    pub p999_ns: Option<u64>,
}

impl StallFree {
    /// What is compared: the share of the orders, and how many it needs.
    const SHARES: [(f64, u64); 3] =
        [(0.5, SAMPLES_FOR_P50), (0.99, SAMPLES_FOR_P99), (0.999, SAMPLES_FOR_P999)];

    /// From the values at those shares of so many.
    fn of(values: &[u64], count: u64, ns_per_tick: f64) -> Self {
        let mut at = Self::SHARES
            .iter()
            .zip(values)
            .map(|((_, needed), ticks)| (count >= *needed).then(|| to_ns(*ticks, ns_per_tick)));
        let mut next = || at.next().flatten();
        Self { p50_ns: next(), p99_ns: next(), p999_ns: next() }
    }
}

/// The time of several orders by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// `0.1 %`.
    pub of: String,
    /// How many orders that is.
    pub orders: u64,
    /// Their time, in nanoseconds, by cause in the order of [`super::Cause::ALL`].
    pub causes_ns: Causes,
    /// The same for each stage of the engine.
    pub stages: Vec<(String, Causes)>,
}

/// One order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// `STRATEGY/SEQUENCE`, with an epoch where there was one.
    pub order: String,
    /// When it was sent, in nanoseconds from the start of the schedule.
    pub at_ns: u64,
    /// How long it took: the sum of all parts.
    pub rt_venue_ns: u64,
    /// Whether a gap or the backlog behind one touched it.
    pub touched: bool,
    /// Its stages in their order, with the thread that each ended on.
    pub stages: Vec<(String, String, Causes)>,
}

impl Document for Tail {
    const FILE: &'static str = "tail.json";
    const NAME: &'static str = "bulkhead.tail";
    const VERSION: u32 = 1;
    const ABSENT: &'static str = "not the folder of a run, or its logs were never merged";
    const REMEDY: &'static str = "launcher report FOLDER makes it again from the logs";
    const PRETTY: bool = false;

    /// No more of anything than a page can draw.
    fn check(&self) -> Result<(), String> {
        let noise = &self.noise;
        let fits = self.slowest.len() <= ONE_OF.len()
            && self.slowest.iter().all(|share| share.stages.len() <= Stage::ALL.len())
            && self.strategies.len() <= MAX_STRATEGIES
            && noise.slices <= 10_000
            && noise.threads.iter().all(|thread| thread.slices.len() as u64 <= noise.slices);
        if fits { Ok(()) } else { Err("its lists do not fit each other".into()) }
    }
}

impl Tail {
    /// Explains a merged run and lists so many of its worst orders. Goes through the merge's table
    /// again and again, and keeps a few bits an order beside it.
    pub fn of(record: &RunRecord, merged: &Merged, worst: usize) -> Self {
        let ways = Ways::of(record, merged);
        let (mut tail, touched) = explain(&ways, &merged.threads, record, worst);
        // Explained, and by no gap touched.
        let mut untouched = Bits::new(merged.measured().count());
        for way in ways.iter(None).filter(|way| !touched.get(way.order as usize)) {
            untouched.set(way.place as usize);
        }
        tail.untouched = untouched;
        tail.noise = Noise::of(record, merged);
        tail.notes = lost(record, merged);
        tail
    }
}

/// All but the noise and the notes; beside it, which ways are touched.
fn explain(ways: &Ways<'_>, logs: &[ThreadLog], record: &RunRecord, worst: usize) -> (Tail, Bits) {
    let ns_per_tick = ns_per_tick(record);
    let count = ways.count as usize;
    let longest = ((LONGEST_NS / ns_per_tick) as u64).max(1);
    let horizon = ways.stages().map(|passage| passage.to - passage.from).max().unwrap_or(0);
    let rules = Rules { usual: medians(ways), longest, horizon, ..Rules::default() };
    let absent = times_away(ways, logs, longest);
    let shared = |one_of: u64| ways.count / one_of;
    // The slowest: those of the first share as bits, the fewer of the others one by one.
    let worst = worst.min(count);
    let few = shared(ONE_OF[1].0).max(worst as u64);
    let mut is_slow = Bits::new(count);
    ways.mark_slowest(None, shared(ONE_OF[0].0), &mut is_slow);
    let mut slow = Vec::new();
    if let Some(last) = ways.last_of_slowest(None, few) {
        slow.extend(ways.iter(None).filter(|way| way.rank() <= last));
        slow.sort_unstable_by_key(Way::rank);
    }
    let ranks: HashMap<usize, usize> = slow.iter().map(|way| way.order as usize).zip(0..).collect();
    let mut sums = [[Parts::default(); Stage::ALL.len()]; ONE_OF.len()];
    let mut cut = vec![[Parts::default(); Stage::ALL.len()]; worst];
    let mut tails = Tails::of(ways, &record.plan);
    let touched = attribute(ways.passages(), count, absent, &rules, |passage, parts, _| {
        let Some(stage) = passage.stage else { return };
        tails.take(passage.order, ways, parts);
        if is_slow.get(passage.order) {
            sums[0][stage].add(parts);
        }
        let Some(rank) = ranks.get(&passage.order) else { return };
        for (sum, (one_of, _)) in sums.iter_mut().zip(ONE_OF).skip(1) {
            if (*rank as u64) < shared(one_of) {
                sum[stage].add(parts);
            }
        }
        if let Some(cut) = cut.get_mut(*rank) {
            cut[stage] = *parts;
        }
    });
    let ns = |parts: &Parts| Causes(parts.0.map(|ticks| to_ns(ticks, ns_per_tick)));
    let free = ways.count - touched.count();
    let of = |count: u64, column: usize| StallFree::SHARES.map(|(share, _)| (column, rank(count, share)));
    let values = select(&[of(ways.count, 0), of(free, 1)].concat(), ways.longest, |hear| {
        for way in ways.iter(None) {
            hear(0, way.rt_venue);
            if !touched.get(way.order as usize) {
                hear(1, way.rt_venue);
            }
        }
    });
    let (all_values, free_values) = values.split_at(StallFree::SHARES.len());
    let shares = ONE_OF.into_iter().zip(&sums).filter(|((one_of, _), _)| ways.count >= *one_of);
    let share = |((one_of, of), stages): ((u64, &'static str), &[Parts; Stage::ALL.len()])| {
        let orders = shared(one_of);
        let mut sum = Parts::default();
        stages.iter().for_each(|parts| sum.add(parts));
        let stages = ours().map(|(place, stage)| (stage.name().to_owned(), ns(&stages[place]))).collect();
        Share { of: of.into(), orders, causes_ns: ns(&sum), stages }
    };
    let one = |(cut, way): (&[Parts; Stage::ALL.len()], &Way<'_>)| {
        let thread = |place: usize| {
            record.plan.threads.get(usize::from(way.threads[place + 1])).map_or("", |thread| &thread.name)
        };
        let stages: Vec<_> = ours()
            .map(|(place, stage)| (stage.name().to_owned(), thread(place).to_owned(), ns(&cut[place])))
            .collect();
        Explained {
            order: way.id.to_string(),
            at_ns: to_ns(way.row.began().saturating_sub(record.clock.start_ticks), ns_per_tick),
            rt_venue_ns: stages.iter().map(|(.., causes)| causes.total()).sum(),
            touched: touched.get(way.order as usize),
            stages,
        }
    };
    let tail = Tail {
        run: record.plan.run.clone(),
        orders: ways.count,
        touched: touched.count(),
        all: StallFree::of(all_values, ways.count, ns_per_tick),
        stall_free: StallFree::of(free_values, free, ns_per_tick),
        slowest: shares.map(share).collect(),
        worst: cut.iter().zip(&slow).map(one).collect(),
        strategies: tails.told(ways, &touched, ns),
        noise: Noise::default(),
        kernel: record.kernel.clone(),
        notes: Vec::new(),
        untouched: Bits::default(),
    };
    (tail, touched)
}

/// The stages that are the engine's, with their places.
fn ours() -> impl Iterator<Item = (usize, Stage)> {
    Stage::ALL.into_iter().enumerate().filter(|(_, stage)| stage.info().location != StageLocation::Venue)
}

fn medians(ways: &Ways<'_>) -> Vec<u64> {
    if ways.count == 0 {
        return vec![0; Stage::ALL.len()];
    }
    let wanted: Vec<(usize, u64)> =
        (0..Stage::ALL.len()).map(|stage| (stage, rank(ways.count, 0.5))).collect();
    select(&wanted, ways.longest, |hear| {
        for way in ways.iter(None) {
            for (place, stage) in Stage::ALL.into_iter().enumerate() {
                // A way has every stamp.
                hear(place, way.row.stage(stage).unwrap_or(0));
            }
        }
    })
}

/// When each thread was away: its gaps and sleeps without the stamps in them.
fn times_away(ways: &Ways<'_>, logs: &[ThreadLog], least: u64) -> Vec<Vec<Away>> {
    let mut cutters: Vec<Cutter> =
        logs.iter().map(|log| Cutter::new(&log.gaps, &log.sleeps, least)).collect();
    if logs.iter().any(|log| !log.gaps.is_empty() || !log.sleeps.is_empty()) {
        for passage in ways.passages() {
            if let Some(cutter) = cutters.get_mut(passage.receiver) {
                cutter.stamp(passage.to);
            }
        }
    }
    cutters.into_iter().map(Cutter::end).collect()
}
