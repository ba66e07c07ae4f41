//! A whole run explained: its passages from the merge, the shares of the slowest, the worst one by one.

use super::noise::{Noise, lost};
use super::strategies::Tails;
use super::ways::{Way, every_passage, passages, slowest, ways};
use super::{Away, Cause, Parts, Passage, Rules, attribute, away};
use crate::document::Document;
use crate::kernel::KernelAccount;
use crate::merge::Merged;
use crate::record::RunRecord;
use crate::summary::StrategyTail;
use crate::summary::figures::{SAMPLES_FOR_P50, SAMPLES_FOR_P99, SAMPLES_FOR_P999, quantile, to_ns};
use crate::summary::ns_per_tick;
use protocol::flow::{Stage, StagePlace};
use protocol::stamps::Gap;
use protocol::wire::MAX_STRATEGIES;
use serde::{Deserialize, Serialize};

/// Longer than this between two stamps is no order's service: from here on gaps are recorded.
const LONGEST_NS: f64 = 3_000.0;
/// The slowest of so many are one share each.
const ONE_OF: [(u64, &str); 3] = [(100, "1 %"), (1_000, "0.1 %"), (10_000, "0.01 %")];

/// Why the slow orders of a run were slow. Nanoseconds; of rt_venue: an order's way without its venue's time.
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
    /// Of each of the merge's measured orders, whether it was explained and no gap and no backlog behind one touched it. Not saved.
    #[serde(skip)]
    pub untouched: Vec<bool>,
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
    fn of(values: &mut [u64], ns_per_tick: f64) -> Self {
        let mut at =
            |share, needed| quantile(values, share, needed as usize).map(|ticks| to_ns(ticks, ns_per_tick));
        Self {
            p50_ns: at(0.5, SAMPLES_FOR_P50),
            p99_ns: at(0.99, SAMPLES_FOR_P99),
            p999_ns: at(0.999, SAMPLES_FOR_P999),
        }
    }
}

/// The time of several orders by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// `0.1 %`.
    pub of: String,
    /// How many orders that is.
    pub orders: u64,
    /// Their time, in nanoseconds, by cause in the order of [`Cause::ALL`].
    pub causes_ns: [u64; Cause::ALL.len()],
    /// The same for each stage of the engine.
    pub stages: Vec<(String, [u64; Cause::ALL.len()])>,
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
    pub stages: Vec<(String, String, [u64; Cause::ALL.len()])>,
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
    /// Explains a merged run and lists so many of its worst orders. Takes about 80 bytes an order beside the merge's table.
    pub fn of(record: &RunRecord, merged: &Merged, worst: usize) -> Self {
        let ways = ways(record, merged);
        let gaps: Vec<&[Gap]> = merged.threads.iter().map(|thread| thread.gaps.as_slice()).collect();
        let mut tail = explain(&ways, &gaps, record, worst);
        // Explained, and by no gap touched.
        let mut untouched = vec![false; merged.measured().count()];
        for (way, touched) in ways.iter().zip(&tail.untouched) {
            untouched[way.place as usize] = !touched;
        }
        tail.untouched = untouched;
        tail.noise = Noise::of(record, merged);
        tail.notes = lost(record, merged);
        tail
    }
}

/// All but the noise and the notes; `untouched` holds for each way whether it is touched.
fn explain(ways: &[Way<'_>], gaps: &[&[Gap]], record: &RunRecord, worst: usize) -> Tail {
    let ns_per_tick = ns_per_tick(record);
    let longest = ((LONGEST_NS / ns_per_tick) as u64).max(1);
    let horizon = every_passage(ways).filter(|passage| passage.stage.is_some());
    let horizon = horizon.map(|passage| passage.to - passage.from).max().unwrap_or(0);
    let rules = Rules { usual: medians(ways), longest, horizon, ..Rules::default() };
    let absent = times_away(every_passage(ways), gaps, longest);
    let slow = slowest(ways, ways.len().div_ceil(ONE_OF[0].0 as usize).max(worst.min(ways.len())));
    let mut rank = vec![u32::MAX; ways.len()];
    slow.iter().zip(0..).for_each(|(order, place)| rank[*order as usize] = place);
    let mut cut = vec![[Parts::default(); Stage::ALL.len()]; slow.len()];
    let mut touched = vec![false; ways.len()];
    let mut tails = Tails::of(ways, &record.plan);
    attribute(passages(ways), ways.len(), absent, &rules, |passage, parts, is_touched| {
        touched[passage.order] = is_touched;
        if let (Some(stage), Some(cut)) = (passage.stage, cut.get_mut(rank[passage.order] as usize)) {
            cut[stage] = *parts;
        }
        if passage.stage.is_some() {
            tails.take(passage.order, &ways[passage.order], parts);
        }
    });
    let ns = |parts: &Parts| parts.0.map(|ticks| to_ns(ticks, ns_per_tick));
    let mut all: Vec<u64> = ways.iter().map(|way| way.rt_venue).collect();
    let free = ways.iter().zip(&touched).filter(|(_, touched)| !**touched);
    let mut free: Vec<u64> = free.map(|(way, _)| way.rt_venue).collect();
    let shares = ONE_OF.into_iter().filter(|(one_of, _)| ways.len() as u64 >= *one_of);
    let share = |(one_of, of): (u64, &'static str)| {
        let orders = ways.len() as u64 / one_of;
        let mut stages = [Parts::default(); Stage::ALL.len()];
        for order in &cut[..orders as usize] {
            stages.iter_mut().zip(order).for_each(|(sum, parts)| sum.add(parts));
        }
        let mut sum = Parts::default();
        stages.iter().for_each(|parts| sum.add(parts));
        let stages = ours().map(|(place, stage)| (stage.name().to_owned(), ns(&stages[place]))).collect();
        Share { of: of.into(), orders, causes_ns: ns(&sum), stages }
    };
    let one = |(cut, order): (&[Parts; Stage::ALL.len()], &u32)| {
        let (order, way) = (*order as usize, &ways[*order as usize]);
        let thread = |place: usize| {
            record.plan.threads.get(usize::from(way.threads[place + 1])).map_or("", |thread| &thread.name)
        };
        let stages: Vec<_> = ours()
            .map(|(place, stage)| (stage.name().to_owned(), thread(place).to_owned(), ns(&cut[place])))
            .collect();
        Explained {
            order: way.id.to_string(),
            at_ns: to_ns(way.row.began().saturating_sub(record.clock.start_ticks), ns_per_tick),
            rt_venue_ns: stages.iter().flat_map(|(.., causes)| causes).sum(),
            touched: touched[order],
            stages,
        }
    };
    Tail {
        run: record.plan.run.clone(),
        orders: ways.len() as u64,
        touched: touched.iter().filter(|touched| **touched).count() as u64,
        all: StallFree::of(&mut all, ns_per_tick),
        stall_free: StallFree::of(&mut free, ns_per_tick),
        slowest: shares.map(share).collect(),
        worst: cut.iter().zip(&slow).take(worst).map(one).collect(),
        strategies: tails.told(ways, &touched, ns),
        noise: Noise::default(),
        kernel: record.kernel.clone(),
        notes: Vec::new(),
        untouched: touched,
    }
}

/// The stages that are the engine's, with their places.
fn ours() -> impl Iterator<Item = (usize, Stage)> {
    Stage::ALL.into_iter().enumerate().filter(|(_, stage)| stage.record().place != StagePlace::Venue)
}

fn medians(ways: &[Way<'_>]) -> Vec<u64> {
    let median = |stage: Stage| {
        let mut all: Vec<u64> = ways.iter().filter_map(|way| way.row.stage(stage)).collect();
        quantile(&mut all, 0.5, 1).unwrap_or(0)
    };
    Stage::ALL.into_iter().map(median).collect()
}

/// When each thread was away: its gaps without the stamps in them.
fn times_away(passages: impl Iterator<Item = Passage>, gaps: &[&[Gap]], least: u64) -> Vec<Vec<Away>> {
    let mut sorted: Vec<Vec<Gap>> = gaps.iter().map(|gaps| gaps.to_vec()).collect();
    sorted.iter_mut().for_each(|gaps| gaps.sort_by_key(|gap| gap.ended));
    let mut stamps: Vec<Vec<u64>> = vec![Vec::new(); gaps.len()];
    for Passage { to, receiver, .. } in passages {
        let Some(gaps) = sorted.get(receiver) else { continue };
        let place = gaps.partition_point(|gap| gap.ended < to);
        if gaps.get(place).is_some_and(|gap| gap.ended.saturating_sub(gap.ticks) <= to) {
            stamps[receiver].push(to);
        }
    }
    stamps.iter_mut().for_each(|stamps| stamps.sort_unstable());
    sorted.iter().zip(&stamps).map(|(gaps, stamps)| away(gaps, stamps, least)).collect()
}
