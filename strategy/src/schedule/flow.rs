//! Writes a schedule's orders as a recorded flow, which [`super::replay`] reads.

use super::replay::HEADER;
use super::{Entry, RESTING, Schedule};
use protocol::index::StrategyIndex;
use protocol::wire::{Operation, OrderRequest, Side};
use std::io::{self, Write};

/// A scheduled order that a run has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentOrder {
    /// Time at which the order was sent or due, in nanoseconds from the start of the run.
    pub time_ns: u64,
    /// The strategy that sent the order.
    pub strategy: StrategyIndex,
    /// The order's index among the strategy's entries, counted over all repetitions of the
    /// schedule.
    pub position: u64,
}

/// Writes the orders of a schedule as rows of a CSV file (a recorded flow), which a later run can
/// replay.
///
/// Order ids are new: position × strategies + strategy, so that a replay with as many strategies
/// gives each order to its strategy. Ids of orders that rested before a recording began are kept,
/// and the new ones lie above them.
pub struct FlowWriter<'a> {
    schedule: &'a Schedule,
    first_position: u64,
    first_time_ns: Option<u64>,
    rows: u64,
}

impl<'a> FlowWriter<'a> {
    /// Creates the writer and writes the header line of the recorded flow. Reads every entry.
    pub fn new(schedule: &'a Schedule, out: &mut impl Write) -> io::Result<Self> {
        writeln!(out, "{HEADER},venue")?;
        let entries =
            StrategyIndex::first(schedule.strategies()).flat_map(|strategy| schedule.entries(strategy));
        let resting = entries.filter(|entry| entry.request.operation == Operation::Cancel);
        let resting = resting.filter_map(|entry| {
            (entry.request.target & RESTING != 0).then_some(entry.request.target ^ RESTING)
        });
        let first_position = resting.max().map_or(0, |id| id / u64::from(schedule.strategies()) + 1);
        Ok(Self { schedule, first_position, first_time_ns: None, rows: 0 })
    }

    /// Writes an order as a row; its time is relative to that of the first written order. An order
    /// that the schedule does not have is left out.
    pub fn write(&mut self, order: &SentOrder, out: &mut impl Write) -> io::Result<()> {
        let SentOrder { time_ns, strategy, position } = *order;
        let words = self.schedule.words(strategy);
        let index = position.checked_rem(words.len() as u64).unwrap_or(0) as usize;
        let Some(Ok(entry)) = words.get(index).map(|words| Entry::from_words(*words)) else { return Ok(()) };
        let time_ns = time_ns.saturating_sub(*self.first_time_ns.get_or_insert(time_ns));
        let (micros, nanos) = (time_ns / 1000, time_ns % 1000);
        self.rows += 1;
        write!(out, "{micros}.{nanos:03},{},", self.rows)?;
        let id = |position| self.id(strategy, position);
        let OrderRequest { venue, operation, side, quantity, price, target, .. } = entry.request;
        let side = match side {
            Side::Buy => "B",
            Side::Sell => "S",
        };
        match operation {
            Operation::New if price == 0 => {
                writeln!(out, "new,{},{side},market,ioc,,{quantity},{venue}", id(position))
            }
            Operation::New => {
                writeln!(out, "new,{},{side},limit,gtc,{price},{quantity},{venue}", id(position))
            }
            Operation::Cancel | Operation::Replace | Operation::MassCancel => {
                let target = if target & RESTING != 0 { target ^ RESTING } else { id(target) };
                writeln!(out, "cancel,{target},{side},,,,,{venue}")
            }
        }
    }

    fn id(&self, strategy: StrategyIndex, position: u64) -> u64 {
        (self.first_position + position) * u64::from(self.schedule.strategies()) + u64::from(strategy.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DelayRange, Replay, Spec, replay_from, sample};
    use super::*;
    use crate::schedule::Arrivals;

    /// Writes every order of a schedule at its due time.
    fn flow(schedule: &Schedule) -> String {
        let orders_of = |strategy| {
            let entries = schedule.entries(strategy).zip(0..);
            entries.map(move |(entry, position)| SentOrder { time_ns: entry.fire_ns, strategy, position })
        };
        let mut orders: Vec<SentOrder> =
            StrategyIndex::first(schedule.strategies()).flat_map(orders_of).collect();
        orders.sort_by_key(|order| order.time_ns);
        let mut out = Vec::new();
        let mut writer = FlowWriter::new(schedule, &mut out).unwrap();
        orders.iter().for_each(|order| writer.write(order, &mut out).unwrap());
        String::from_utf8(out).unwrap()
    }

    const DELAY: DelayRange = DelayRange { min_ns: 5, max_ns: 500 };
    const REPLAY: Replay =
        Replay { strategies: 3, venues: 2, delay: DELAY, seed: 9, speed: 1.0, orders: None };

    fn read(text: &str) -> Schedule {
        replay_from("flow.csv", text.as_bytes(), &REPLAY).unwrap()
    }

    #[test]
    fn sampled_orders_replay_unchanged() {
        let Replay { strategies, venues, delay, seed, .. } = REPLAY;
        let (orders, window_ns, arrivals) = (2_000, 10_000_000, Arrivals::Uniform);
        let sampled = sample(&Spec { strategies, venues, orders, window_ns, arrivals, delay, seed }).unwrap();
        let replayed = read(&flow(&sampled));
        let first_ns = StrategyIndex::first(3)
            .filter_map(|strategy| sampled.entries(strategy).next())
            .map(|e| e.fire_ns)
            .min();
        for strategy in StrategyIndex::first(3) {
            let shifted =
                sampled.entries(strategy).map(|e| Entry { fire_ns: e.fire_ns - first_ns.unwrap(), ..e });
            assert!(shifted.eq(replayed.entries(strategy)), "strategy {strategy}");
        }
    }

    #[test]
    fn recorded_orders_replay_with_their_cancels() {
        const FLOW: &str = include_str!("../../../data/coinbase-2016-03-12/flow.csv");
        let recorded = read(FLOW);
        let replayed = read(&flow(&recorded));
        for strategy in StrategyIndex::first(3) {
            // Delays depend on the row number, and rows of equal times may have changed places.
            let undelayed_entries = |schedule: &Schedule| {
                let undelayed = |entry: Entry| OrderRequest { delay_ns: 0, ..entry.request };
                let entries =
                    schedule.entries(strategy).map(|entry| Entry { request: undelayed(entry), ..entry });
                entries.collect::<Vec<_>>()
            };
            assert_eq!(undelayed_entries(&recorded), undelayed_entries(&replayed), "strategy {strategy}");
        }
    }
}
