//! `flow.csv`: the orders that a run sent, as `launcher run --schedule` reads them.
//!
//! The stamps show which orders were sent and when they were due. The rest of each is in the
//! schedule, which is made again from the run's settings and must have the hash in the run's
//! record. So a run writes nothing more while it is measured. Strategies that decide on orders
//! themselves leave no such trace: their runs are refused.

use anyhow::{Context, Result, bail};
use merge::MergedRun;
use planner::config::{CONFIG_FILE, Settings, UsageError};
use planner::{Input, Resolved};
use protocol::index::StrategyIndex;
use protocol::plan::{Pacing, Trading};
use protocol::stamps::Point;
use record::run::RunRecord;
use runtime::prepare::make_schedule;
use std::io::Write;
use std::path::Path;
use strategy::schedule::{FlowWriter, Schedule, SentOrder};
use system::clock::Timebase;
use verdict::summary::to_ns;

/// Generates the order schedule of a saved run again, from the run's record.
pub fn schedule_of(folder: &Path, record: &RunRecord) -> Result<Schedule> {
    let trading = record.plan.trading();
    let decides = StrategyIndex::first(trading.strategies)
        .find(|index| trading.strategy_kind(*index) != Trading::PLAYER);
    if let Some(index) = decides {
        let kind = trading.strategy_kind(index);
        return Err(UsageError(format!(
            "--flow: strategy-{index} is a {kind}, which decides on its orders itself, and stamps hold no prices.\n\
             Record a run of players (--strategy {}), or repeat this run: --config {}",
            Trading::PLAYER,
            folder.join(CONFIG_FILE).display()
        ))
        .into());
    }
    let resolved = Resolved::new(Settings::read(&folder.join(CONFIG_FILE))?, Vec::new());
    if let Input::Recorded { path, .. } = &resolved.input
        && !path.is_file()
    {
        bail!("--flow: the run replayed {}, which is not a file here: bring it back", path.display());
    }
    let schedule = make_schedule(&resolved)?;
    if format!("{:016x}", schedule.hash()) != record.input.hash {
        bail!(
            "--flow: the settings no longer give the orders of this run: its files or the recording changed"
        );
    }
    Ok(schedule)
}

/// Writes the orders that the run sent as CSV, sorted by due time. Without due times (stress),
/// sorted by the time at which they were sent.
pub fn write(record: &RunRecord, schedule: &Schedule, merged: &MergedRun, mut out: impl Write) -> Result<()> {
    let mut orders = sent_orders(record, schedule, merged);
    orders.sort_by_key(|(recorded, order)| (order.time_ns, *recorded));
    let mut writer = FlowWriter::new(schedule, &mut out)?;
    orders.iter().try_for_each(|(_, order)| writer.write(order, &mut out)).context("the flow")
}

/// Returns the orders that were sent, each with its place in a recorded flow (0 in a drawn one).
fn sent_orders(record: &RunRecord, schedule: &Schedule, merged: &MergedRun) -> Vec<(u32, SentOrder)> {
    let mut places = vec![Vec::new(); schedule.strategies().into()];
    for (place, step) in (0..).zip(schedule.replay_order()) {
        places[step.strategy.as_usize()].push(place);
    }
    let mut orders = Vec::new();
    for (strategy, places) in StrategyIndex::first(u16::MAX).zip(&places) {
        let mut finder = EntryFinder::new(record, schedule, strategy);
        for (_, row) in merged.orders_of(strategy) {
            if !row.has(Point::StrategySend) && !row.has(Point::OrchRecvSubmit) {
                continue;
            }
            let Some((position, due_ns)) = finder.find(row.at(Point::Due)) else { break };
            let sent = row.at(Point::StrategySend).or(row.at(Point::OrchRecvSubmit)).unwrap_or(0);
            let sent_ns = to_ns(sent.saturating_sub(record.clock.start_ticks), record.clock.ns_per_tick);
            let time_ns = match schedule.pacing() {
                Pacing::Scheduled => due_ns,
                Pacing::Closed => sent_ns,
            };
            let place = places.get(position as usize).copied().unwrap_or(0);
            orders.push((place, SentOrder { time_ns, strategy, position }));
        }
    }
    orders
}

/// Finds the entries of a strategy that orders belong to, in the order in which they were sent. A
/// restarted strategy has skipped some: the due time shows which.
struct EntryFinder {
    time: Timebase,
    due_times_ns: Vec<u64>,
    /// The next entry.
    position: usize,
}

impl EntryFinder {
    fn new(record: &RunRecord, schedule: &Schedule, strategy: StrategyIndex) -> Self {
        let (start_ticks, ns_per_tick) = (record.clock.start_ticks, record.plan.ns_per_tick);
        Self {
            time: Timebase { start_ticks, ns_per_tick },
            due_times_ns: schedule.entries(strategy).map(|entry| entry.fire_ns).collect(),
            position: 0,
        }
    }

    /// Returns position and due time of the next entry that is due at a tick, or of the next one if
    /// that is unknown.
    fn find(&mut self, due_ticks: Option<u64>) -> Option<(u64, u64)> {
        loop {
            let (position, due_ns) = (self.position, *self.due_times_ns.get(self.position)?);
            self.position += 1;
            // The calibration was rounded when it was saved: to within a tick.
            if due_ticks.is_none_or(|due| self.time.at(due_ns).saturating_add(1) >= due) {
                return Some((position as u64, due_ns));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_time_identifies_skipped_entries() {
        let finder = || EntryFinder {
            time: Timebase { start_ticks: 1_000, ns_per_tick: 0.5 },
            due_times_ns: vec![0, 10, 10, 20, 30],
            position: 0,
        };
        let mut found = finder();
        let due = |ns: u64| Some(1_000 + 2 * ns);
        let positions: Vec<u64> =
            [0, 10, 10, 30].map(|ns| found.find(due(ns)).unwrap().0).into_iter().collect();
        assert_eq!(positions, [0, 1, 2, 4]);
        assert_eq!(found.find(due(500)), None, "no entry is due then");
        assert_eq!(finder().find(None), Some((0, 0)));
        // A finder that did not look at the due time would take the next entry.
        assert_eq!(finder().find(due(20)), Some((3, 20)));
    }
}
