//! Stamp by stamp traces of the slowest orders: the thread of each stamp, and the stage spans
//! sorted by time.
//!
//! Only the merge's table is stored per order: traces are rebuilt in each iteration. The time range
//! of each block of the table is kept, so that a search by time reads only the matching blocks.

use super::StageSpan;
use crate::figures::engine_ticks;
use crate::radix_select::{BitSet, select_nth_pair, select_ranks};
use crate::{MergedRun, OrderRow};
use protocol::flow::{PATH, Stage, StageLocation};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::plan::{Plan, Role};
use protocol::stamps::Point;
use protocol::wire::OrderId;
use record::run::RunRecord;
use std::cmp::Reverse;
use std::ops::Range;

/// Maximum number of stamps sorted at a time: 16 MiB, twice.
const MAX_SORT_BATCH: u64 = 1 << 19;
/// Time is divided into at most 2^16 slots of equal length; parts consist of whole slots.
const SLOT_BITS: u32 = 16;

/// The threads that stamp orders.
struct StampThreads {
    strategies: Vec<Option<usize>>,
    gateways: Vec<Option<usize>>,
    orchestrator: Option<usize>,
}

impl StampThreads {
    fn from_plan(plan: &Plan) -> Self {
        let trading = plan.trading();
        let strategies =
            (0..trading.orders.len()).map(|i| plan.thread_of(Role::Strategy(StrategyIndex(i as u16))));
        let gateways = GatewayIndex::first(trading.gateways()).map(|i| plan.thread_of(Role::Gateway(i)));
        Self {
            strategies: strategies.collect(),
            gateways: gateways.collect(),
            orchestrator: plan.thread_of(Role::Orchestrator),
        }
    }

    /// Returns the thread of each stamp of an order's path.
    fn for_order(&self, id: OrderId, row: &OrderRow) -> Option<[u16; PATH.len()]> {
        let strategy = (*self.strategies.get(id.strategy().as_usize())?)? as u16;
        let gateway = (*self.gateways.get(row.pushed()?.0)?)? as u16;
        let engine = self.orchestrator? as u16;
        Some([strategy, engine, engine, gateway, gateway, engine, engine, strategy])
    }
}

/// The stamps of one measured order, with the thread of each.
pub(super) struct OrderTrace<'a> {
    /// Index of the order among all traces, from 0.
    pub order: u32,
    pub id: OrderId,
    pub row: &'a OrderRow,
    /// Threads that took the order's stamps t1 to t8.
    pub threads: [u16; PATH.len()],
    pub engine_ticks: u64,
    /// Index of the order among the merge's measured orders, from 0.
    pub measured_index: u32,
}

/// The sort key that puts the slowest order first; of equally slow ones, that sent first.
pub(super) type SlownessRank = (Reverse<u64>, u64, u64);

impl OrderTrace<'_> {
    /// Returns the sort key of the order's trace, which puts slower orders first.
    pub fn rank(&self) -> SlownessRank {
        (Reverse(self.engine_ticks), self.row.began(), self.id.word())
    }

    /// Returns the span that ends with a stamp; for the first stamp, the wait since the due time.
    fn span(&self, stamp: usize) -> StageSpan {
        let stamps = self.row.stamps();
        let before = stamp.saturating_sub(1);
        let is_ours = stamp > 0 && Stage::ALL[before].info().location != StageLocation::Venue;
        let began = match self.row.at(Point::Due) {
            Some(due) if stamp == 0 => due,
            // The venue's time is not a wait of the engine.
            _ if is_ours => stamps[before],
            _ => stamps[stamp],
        };
        StageSpan {
            order: self.order,
            stage: is_ours.then_some(before as u8),
            from: began.min(stamps[stamp]),
            to: stamps[stamp],
            sender: self.threads[before],
            receiver: self.threads[stamp],
        }
    }
}

/// The stamps of all measured orders, in the order of the merged table. So events of one time are
/// close together.
pub(super) struct OrderTraces<'a> {
    threads: StampThreads,
    blocks: Vec<TraceBlock<'a>>,
    /// Number of traced orders.
    pub count: u64,
    /// Longest stage, round trip or wait for the sender of all traced orders, in ticks.
    pub longest: u64,
    slots: TimeSlots,
    /// Ranges of slots that are sorted at a time: all slots, consecutively.
    equal_parts: Vec<Range<u64>>,
}

/// A division of time into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeSlots {
    first: u64,
    shift: u32,
}

impl TimeSlots {
    /// Divides the time from the first stamp to the last.
    fn from_range(first: u64, last: u64) -> Self {
        let bits = u64::BITS - last.saturating_sub(first).leading_zeros();
        Self { first, shift: bits.saturating_sub(SLOT_BITS) }
    }

    /// Returns the slot of a stamp.
    fn slot_of(self, at: u64) -> u64 {
        at.saturating_sub(self.first) >> self.shift
    }

    /// Groups consecutive slots while they have at most `max` stamps together.
    fn equal_parts(counts: &[u64], max: u64) -> Vec<Range<u64>> {
        let (mut equal_parts, mut from, mut sum) = (Vec::new(), 0, 0);
        for (slot, count) in (0..).zip(counts) {
            if sum > 0 && sum + count > max {
                equal_parts.push(from..slot);
                (from, sum) = (slot, 0);
            }
            sum += count;
        }
        equal_parts.push(from..counts.len() as u64);
        equal_parts
    }
}

/// A block of consecutive rows of the table, with the indices of its first trace and measured
/// order.
struct TraceBlock<'a> {
    first: OrderId,
    rows: &'a [OrderRow],
    order: u32,
    measured_index: u32,
    /// First and last of its stamps.
    time: (u64, u64),
}

impl<'a> OrderTraces<'a> {
    /// Collects the traces (stage times) of the measured orders of a merged run.
    pub fn new(record: &RunRecord, merged: &'a MergedRun) -> Self {
        let slots = TimeSlots::from_range(0, 0);
        let threads = StampThreads::from_plan(&record.plan);
        let mut traces =
            Self { threads, blocks: Vec::new(), count: 0, longest: 0, slots, equal_parts: Vec::new() };
        let (mut order, mut index, mut longest) = (0, 0, 0);
        for (first, rows) in merged.blocks() {
            let mut block = TraceBlock { first, rows, order, measured_index: index, time: (u64::MAX, 0) };
            let mut time = block.time;
            for trace in traces.block_traces(&block) {
                let stamps = trace.row.stamps();
                time.0 = stamps.into_iter().fold(time.0, u64::min);
                time.1 = stamps.into_iter().fold(time.1, u64::max);
                let due = trace.row.at(Point::Due).unwrap_or(u64::MAX);
                longest = longest.max(trace.row.round_trip()).max(trace.row.began().saturating_sub(due));
                order = trace.order + 1;
            }
            block.time = time;
            index += rows.iter().filter(|row| row.is_measured()).count() as u32;
            traces.blocks.push(block);
        }
        (traces.count, traces.longest) = (order.into(), longest);
        traces.split_time();
        traces
    }

    /// Divides the time into parts that each fit the sort limit.
    fn split_time(&mut self) {
        let times = || self.blocks.iter().map(|block| block.time).filter(|(from, to)| from <= to);
        let first = times().map(|(from, _)| from).min().unwrap_or(0);
        self.slots = TimeSlots::from_range(first, times().map(|(_, to)| to).max().unwrap_or(0));
        let mut counts = vec![0; 1 << SLOT_BITS];
        for at in self.iter(None).flat_map(|trace| trace.row.stamps()) {
            counts[self.slots.slot_of(at) as usize] += 1;
        }
        self.equal_parts = TimeSlots::equal_parts(&counts, MAX_SORT_BATCH);
    }

    /// Iterates over the traces of a block.
    fn block_traces(&self, block: &TraceBlock<'a>) -> impl Iterator<Item = OrderTrace<'a>> {
        let TraceBlock { first, rows, order, measured_index: index, .. } = *block;
        let measured = rows.iter().enumerate().filter(|(_, row)| row.is_measured()).zip(index..);
        let whole = measured.filter(|((_, row), _)| row.has_all_stamps());
        let trace = move |((at, row), index): ((usize, &'a OrderRow), u32)| {
            let id = first.with_sequence(first.sequence() + at as u64);
            Some((id, row, self.threads.for_order(id, row)?, index))
        };
        let numbered = whole.filter_map(trace).zip(order..);
        numbered.map(|((id, row, threads, index), order)| OrderTrace {
            order,
            id,
            row,
            threads,
            engine_ticks: engine_ticks(row),
            measured_index: index,
        })
    }

    /// Iterates over the traces of all orders, or over those of one strategy.
    pub fn iter(&self, strategy: Option<StrategyIndex>) -> impl Iterator<Item = OrderTrace<'a>> {
        let own =
            move |block: &&TraceBlock<'_>| strategy.is_none_or(|strategy| block.first.strategy() == strategy);
        self.blocks.iter().filter(own).flat_map(|block| self.block_traces(block))
    }

    /// Returns the strategy of the order with this index.
    pub fn strategy_of(&self, order: u32) -> StrategyIndex {
        let after = self.blocks.partition_point(|block| block.order <= order);
        self.blocks.get(after.saturating_sub(1)).map_or(StrategyIndex(0), |block| block.first.strategy())
    }

    /// Returns the sort key of the `count`-th slowest order, of all strategies or of one. `None`
    /// for 0 or for more than exist. Exact; of traces with equal times, which may be all of them,
    /// few are kept.
    pub fn last_of_slowest(&self, strategy: Option<StrategyIndex>, count: u64) -> Option<SlownessRank> {
        const MAX_KEPT: usize = 4096;
        let all = if strategy.is_none() { self.count } else { self.iter(strategy).count() as u64 };
        let rank = all.checked_sub(count).filter(|_| count > 0)?;
        let for_each_value = |visit: &mut dyn FnMut(usize, u64)| {
            self.iter(strategy).for_each(|trace| visit(0, trace.engine_ticks))
        };
        let took = *select_ranks(&[(0, rank)], self.longest, for_each_value).first()?;
        let slower = self.iter(strategy).filter(|trace| trace.engine_ticks > took).count() as u64;
        let index = count.checked_sub(slower)?.checked_sub(1)?;
        let equal = |visit: &mut dyn FnMut([u64; 2])| {
            let equal = self.iter(strategy).filter(|trace| trace.engine_ticks == took);
            equal.for_each(|trace| visit([trace.row.began(), trace.id.word()]));
        };
        let [began, id] = select_nth_pair(index, MAX_KEPT, equal)?;
        Some((Reverse(took), began, id))
    }

    /// Sets the bits of the `count` slowest orders in `marks`, of all strategies or of one.
    pub fn mark_slowest(&self, strategy: Option<StrategyIndex>, count: u64, marks: &mut BitSet) {
        if let Some(last) = self.last_of_slowest(strategy, count) {
            let slow = self.iter(strategy).filter(|trace| trace.rank() <= last);
            slow.for_each(|trace| marks.set(trace.order as usize));
        }
    }

    /// Iterates over the engine's stages (from stamp to stamp) of all measured orders, order by
    /// order, without the times before sending and at venues.
    pub fn stage_spans(&self) -> impl Iterator<Item = StageSpan> {
        let of = |trace: OrderTrace<'a>| (1..PATH.len()).map(move |stamp| trace.span(stamp));
        self.iter(None).flat_map(of).filter(|span| span.stage.is_some())
    }

    /// Iterates over the spans of all measured orders, sorted by their ends: the engine's stages,
    /// the waits before sending, and empty spans at t5. Memory use is limited to one part of the
    /// time.
    pub fn spans(&self) -> impl Iterator<Item = StageSpan> {
        let slot = |at: u64| self.slots.slot_of(at);
        self.equal_parts.iter().flat_map(move |part| {
            let has = |block: &&TraceBlock<'_>| {
                let (first, last) = block.time;
                first <= last && slot(first) < part.end && slot(last) >= part.start
            };
            let mut spans: [Vec<StageSpan>; PATH.len()] = Default::default();
            for trace in self.blocks.iter().filter(has).flat_map(|block| self.block_traces(block)) {
                for (stamp, (spans, at)) in spans.iter_mut().zip(trace.row.stamps()).enumerate() {
                    if part.contains(&slot(at)) {
                        spans.push(trace.span(stamp));
                    }
                }
            }
            let mut spans = spans.concat();
            // Each stamp ascends with the orders: a sort that detects such runs is fast. It is
            // stable, so an order's spans that end at one time stay in path order.
            spans.sort_by_key(|span| (span.to, span.order));
            spans
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn time_parts_cover_all_slots_within_limit(
            counts in prop::collection::vec(prop_oneof![3 => 0u64..5, 1 => 0u64..200], 1..100), max in 1u64..100,
        ) {
            let equal_parts = TimeSlots::equal_parts(&counts, max);
            prop_assert_eq!(equal_parts.first().unwrap().start, 0);
            prop_assert_eq!(equal_parts.last().unwrap().end, counts.len() as u64);
            prop_assert!(equal_parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            for part in equal_parts {
                let own = &counts[part.start as usize..part.end as usize];
                let filled = own.iter().filter(|count| **count > 0).count();
                prop_assert!(own.iter().sum::<u64>() <= max || filled == 1, "{:?}", own);
            }
        }

        #[test]
        fn slots_are_monotonic_in_time(mut stamps in prop::collection::vec(any::<u64>(), 2..9)) {
            stamps.sort_unstable();
            let slots = TimeSlots::from_range(stamps[0], stamps[stamps.len() - 1]);
            let found: Vec<u64> = stamps.iter().map(|at| slots.slot_of(*at)).collect();
            prop_assert!(found.is_sorted() && found.iter().all(|slot| *slot < 1 << SLOT_BITS), "{:?}", found);
        }
    }
}
