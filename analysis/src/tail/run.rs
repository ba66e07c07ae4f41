//! A whole run explained: its passages from the merge, the shares of the slowest, the worst one by one.

use super::{Away, Cause, Parts, Passage, Rules, attribute, away};
use crate::merge::{Merged, OrderRow};
use crate::record::RunRecord;
use crate::summary::figures::{
    SAMPLES_FOR_P50, SAMPLES_FOR_P99, SAMPLES_FOR_P999, quantile, rt_venue, to_ns,
};
use crate::summary::ns_per_tick;
use protocol::flow::{PATH, Stage, StagePlace};
use protocol::plan::{Plan, Role};
use protocol::stamps::{Gap, MAX_GAPS};
use protocol::wire::OrderId;
use serde::Serialize;

/// Longer than this between two stamps is no order's service: from here on gaps are recorded.
const LONGEST_NS: f64 = 3_000.0;
/// The slowest of so many are one share each.
const ONE_OF: [(u64, &str); 3] = [(100, "1 %"), (1_000, "0.1 %"), (10_000, "0.01 %")];

/// Why the slow orders of a run were slow. Nanoseconds; of rt_venue: an order's way without its venue's time.
#[derive(Clone, Debug, Serialize)]
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
    /// What to know about it.
    pub notes: Vec<String>,
}

/// Percentiles of rt_venue; `None`: too few orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// `0.1 %`.
    pub of: &'static str,
    /// How many orders that is.
    pub orders: u64,
    /// Their time, in nanoseconds, by cause in the order of [`Cause::ALL`].
    pub causes_ns: [u64; Cause::ALL.len()],
    /// The same for each stage of the engine.
    pub stages: Vec<(&'static str, [u64; Cause::ALL.len()])>,
}

/// One order.
#[derive(Clone, Debug, Serialize)]
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
    pub stages: Vec<(&'static str, String, [u64; Cause::ALL.len()])>,
}

/// The threads of an order's stamps.
struct Threads {
    strategies: Vec<Option<usize>>,
    gateways: Vec<Option<usize>>,
    orchestrator: Option<usize>,
}

impl Threads {
    fn of(plan: &Plan) -> Self {
        let trading = plan.trading();
        let strategies = (0..trading.orders.len()).map(|i| plan.thread_of(Role::Strategy(i as u16)));
        let gateways = (0..trading.gateways()).map(|i| plan.thread_of(Role::Gateway(i)));
        Self {
            strategies: strategies.collect(),
            gateways: gateways.collect(),
            orchestrator: plan.thread_of(Role::Orchestrator),
        }
    }

    /// The thread of each stamp of the way.
    fn along(&self, id: OrderId, row: &OrderRow) -> Option<[usize; PATH.len()]> {
        let strategy = (*self.strategies.get(usize::from(id.strategy()))?)?;
        let gateway = (*self.gateways.get(row.pushed()?.0)?)?;
        let engine = self.orchestrator?;
        Some([strategy, engine, engine, gateway, gateway, engine, engine, strategy])
    }
}

struct Way<'a> {
    id: OrderId,
    row: &'a OrderRow,
    threads: [usize; PATH.len()],
    rt_venue: u64,
}

impl Way<'_> {
    /// What ends with that stamp of the way.
    fn passage(&self, order: usize, stamp: usize) -> Passage {
        let stamps = self.row.stamps();
        let before = stamp.saturating_sub(1);
        let is_ours = stamp > 0 && Stage::ALL[before].record().place != StagePlace::Venue;
        Passage {
            order,
            stage: is_ours.then_some(before),
            from: stamps[before].min(stamps[stamp]),
            to: stamps[stamp],
            sender: self.threads[before],
            receiver: self.threads[stamp],
        }
    }
}

impl Tail {
    /// Explains a merged run and lists so many of its worst orders. Takes about 200 bytes an order beside the merge's table.
    pub fn of(record: &RunRecord, merged: &Merged, worst: usize) -> Self {
        let threads = Threads::of(&record.plan);
        let measured = merged.measured();
        let mut ways: Vec<Way<'_>> = measured
            .filter(|(_, row)| row.has_all_stamps())
            .filter_map(|(id, row)| {
                Some(Way { id, row, threads: threads.along(id, row)?, rt_venue: rt_venue(row) })
            })
            .collect();
        // The slowest first; of equals the one that was sent first.
        ways.sort_unstable_by_key(|way| (std::cmp::Reverse(way.rt_venue), way.row.began(), way.id.word()));
        let gaps: Vec<&[Gap]> = merged.threads.iter().map(|thread| thread.gaps.as_slice()).collect();
        explain(&ways, &gaps, record, worst)
    }
}

fn explain(ways: &[Way<'_>], gaps: &[&[Gap]], record: &RunRecord, worst: usize) -> Tail {
    let ns_per_tick = ns_per_tick(record);
    let longest = ((LONGEST_NS / ns_per_tick) as u64).max(1);
    let mut ends: Vec<(u64, u32, u8)> = Vec::with_capacity(ways.len() * PATH.len());
    for (order, way) in ways.iter().enumerate() {
        let stamps = way.row.stamps();
        ends.extend((0..PATH.len()).map(|stamp| (stamps[stamp], order as u32, stamp as u8)));
    }
    ends.sort_unstable();
    let passages = || {
        ends.iter()
            .map(|(_, order, stamp)| ways[*order as usize].passage(*order as usize, usize::from(*stamp)))
    };
    let rules = Rules { usual: medians(ways), longest, ..Rules::default() };
    let absent = times_away(passages(), gaps, longest);
    let slow = ways.len().div_ceil(ONE_OF[0].0 as usize).max(worst.min(ways.len()));
    let mut cut = vec![[Parts::default(); Stage::ALL.len()]; slow];
    let mut touched = vec![false; ways.len()];
    attribute(passages(), ways.len(), absent, &rules, |passage, parts, is_touched| {
        touched[passage.order] = is_touched;
        if let (Some(stage), Some(cut)) = (passage.stage, cut.get_mut(passage.order)) {
            cut[stage] = *parts;
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
        let stages = ours().map(|(place, stage)| (stage.name(), ns(&stages[place]))).collect();
        Share { of, orders, causes_ns: ns(&sum), stages }
    };
    let one = |(order, way): (usize, &Way<'_>)| {
        let thread =
            |place: usize| record.plan.threads.get(way.threads[place + 1]).map_or("", |thread| &thread.name);
        let stages: Vec<_> = ours()
            .map(|(place, stage)| (stage.name(), thread(place).to_owned(), ns(&cut[order][place])))
            .collect();
        Explained {
            order: way.id.to_string(),
            at_ns: to_ns(way.row.began().saturating_sub(record.clock.start_ticks), ns_per_tick),
            rt_venue_ns: stages.iter().flat_map(|(.., causes)| causes).sum(),
            touched: touched[order],
            stages,
        }
    };
    let full = gaps.iter().filter(|gaps| gaps.len() as u64 >= MAX_GAPS).count();
    let mut notes = Vec::new();
    if full > 0 {
        notes.push(format!(
            "{full} threads have used up their room for gaps ({MAX_GAPS}): later ones are not known, and what they cost is unexplained"
        ));
    }
    Tail {
        run: record.plan.run.clone(),
        orders: ways.len() as u64,
        touched: touched.iter().filter(|touched| **touched).count() as u64,
        all: StallFree::of(&mut all, ns_per_tick),
        stall_free: StallFree::of(&mut free, ns_per_tick),
        slowest: shares.map(share).collect(),
        worst: ways.iter().take(worst).enumerate().map(one).collect(),
        notes,
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
    sorted.iter().zip(&stamps).map(|(gaps, stamps)| away(gaps, stamps, least)).collect()
}
