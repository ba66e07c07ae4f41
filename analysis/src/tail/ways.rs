//! The ways of a run's orders: which thread made each of their stamps, and their passages in the order of time.

use super::Passage;
use crate::merge::{Merged, OrderRow};
use crate::record::RunRecord;
use crate::summary::figures::rt_venue;
use protocol::flow::{PATH, Stage, StagePlace};
use protocol::plan::{Plan, Role};
use protocol::stamps::Point;
use protocol::wire::OrderId;

/// So many stamps are sorted at a time: 16 MiB.
const AT_A_TIME: usize = 1 << 20;

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
    fn along(&self, id: OrderId, row: &OrderRow) -> Option<[u16; PATH.len()]> {
        let strategy = (*self.strategies.get(usize::from(id.strategy()))?)? as u16;
        let gateway = (*self.gateways.get(row.pushed()?.0)?)? as u16;
        let engine = self.orchestrator? as u16;
        Some([strategy, engine, engine, gateway, gateway, engine, engine, strategy])
    }
}

/// An order with every stamp.
pub(super) struct Way<'a> {
    pub id: OrderId,
    pub row: &'a OrderRow,
    /// The threads of its stamps.
    pub threads: [u16; PATH.len()],
    pub rt_venue: u64,
    /// Which of the merge's measured orders it is, from 0.
    pub place: u32,
}

impl Way<'_> {
    /// What ends with that stamp of the way; with the first, the wait since it was due.
    fn passage(&self, order: usize, stamp: usize) -> Passage {
        let stamps = self.row.stamps();
        let before = stamp.saturating_sub(1);
        let is_ours = stamp > 0 && Stage::ALL[before].record().place != StagePlace::Venue;
        let began = match self.row.at(Point::Due) {
            Some(due) if stamp == 0 => due,
            // The venue's time is nobody's wait.
            _ if is_ours => stamps[before],
            _ => stamps[stamp],
        };
        Passage {
            order,
            stage: is_ours.then_some(before),
            from: began.min(stamps[stamp]),
            to: stamps[stamp],
            sender: self.threads[before].into(),
            receiver: self.threads[stamp].into(),
        }
    }
}

/// The measured orders with every stamp, in the order of the merge's table: what happened at one time lies close together.
pub(super) fn ways<'a>(record: &RunRecord, merged: &'a Merged) -> Vec<Way<'a>> {
    let threads = Threads::of(&record.plan);
    let whole = merged.measured().enumerate().filter(|(_, (_, row))| row.has_all_stamps());
    let way = |(place, (id, row)): (usize, (OrderId, &'a OrderRow))| {
        let threads = threads.along(id, row)?;
        Some(Way { id, row, threads, rt_venue: rt_venue(row), place: place as u32 })
    };
    whole.filter_map(way).collect()
}

/// Of so many ways which are the slowest, the slowest first; of equals the one that was sent first.
pub(super) fn slowest(ways: &[Way<'_>], many: usize) -> Vec<u32> {
    let key = |order: &u32| {
        let way = &ways[*order as usize];
        (std::cmp::Reverse(way.rt_venue), way.row.began(), way.id.word())
    };
    let mut orders: Vec<u32> = (0..ways.len() as u32).collect();
    if many > 0 && many < orders.len() {
        orders.select_nth_unstable_by_key(many - 1, key);
    }
    orders.truncate(many);
    orders.sort_unstable_by_key(key);
    orders
}

/// Every passage, order after order.
pub(super) fn every_passage(ways: &[Way<'_>]) -> impl Iterator<Item = Passage> {
    let of = |(order, way)| (0..PATH.len()).map(move |stamp| Way::passage(way, order, stamp));
    ways.iter().enumerate().flat_map(of)
}

/// Every passage in the order of their ends. Looks through all ways once for every million stamps, and needs no room for more.
pub(super) fn passages(ways: &[Way<'_>]) -> impl Iterator<Item = Passage> {
    let stamps = || ways.iter().flat_map(|way| way.row.stamps());
    let first = stamps().min().unwrap_or(0);
    let span = stamps().max().unwrap_or(0) - first;
    let parts = (ways.len() * PATH.len()).div_ceil(AT_A_TIME).max(1) as u64;
    let width = (span / parts).saturating_add(1);
    (0..parts).flat_map(move |part| {
        let from = first.wrapping_add(part.wrapping_mul(width));
        // Stamp by stamp they rise as the orders do: a sort that finds such runs has little to do.
        let mut ends: [Vec<(u64, u32, u8)>; PATH.len()] = Default::default();
        for (order, way) in ways.iter().enumerate() {
            for (stamp, (ends, at)) in ends.iter_mut().zip(way.row.stamps()).enumerate() {
                if at.wrapping_sub(from) < width {
                    ends.push((at, order as u32, stamp as u8));
                }
            }
        }
        let mut ends = ends.concat();
        ends.sort();
        let passage = move |(_, order, stamp): (u64, u32, u8)| {
            ways[order as usize].passage(order as usize, stamp.into())
        };
        ends.into_iter().map(passage)
    })
}
