//! Current p50 and p99 of each stage, from the newest stamps.
//!
//! An order's stamps are in several logs, and each poll sees only the newest records of each: a
//! stage is sampled where both of its ends were seen. The merge after the run is the measurement.

use protocol::flow::{PATH, Stage, StageScope};
use protocol::record::{Point, Record};
use protocol::wire::{OrderId, Report};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};

/// Orders whose stamps are kept while the other end may still come.
const ORDERS: usize = 1 << 16;
/// Samples of a stage from which its percentiles are computed.
const SAMPLES: usize = 4_096;
/// Measured in addition to the stages: the round trip without the venue's own time.
const RT_VENUE: &str = "rt_venue";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageRow {
    pub stage: &'static str,
    /// Median of the samples, in nanoseconds; `None` without samples.
    pub p50_ns: Option<u64>,
    /// The 99th percentile; `None` with fewer than 100 samples.
    pub p99_ns: Option<u64>,
    /// Number of samples.
    pub samples: u64,
}

/// Collects stage latencies from the stamps of recent orders.
pub struct StageSampler {
    ns_per_tick: f64,
    /// The times of the eight points, 0 where not seen.
    orders: HashMap<OrderId, [u64; PATH.len()]>,
    /// Orders from oldest to newest.
    age: VecDeque<OrderId>,
    samples: [VecDeque<u64>; Stage::ALL.len() + 1],
}

impl StageSampler {
    pub fn new(ns_per_tick: f64) -> Self {
        let samples = std::array::from_fn(|_| VecDeque::with_capacity(SAMPLES));
        Self { ns_per_tick, orders: HashMap::new(), age: VecDeque::new(), samples }
    }

    /// Processes a record of any thread's stamp log. Only the first report of an order counts.
    pub fn observe(&mut self, record: &Record) {
        let Some(place) = PATH.iter().position(|point| *point == record.point) else { return };
        let is_of_report = Stage::ALL.iter().any(|stage| {
            let stage = stage.info();
            stage.scope == StageScope::Report && (stage.from == record.point || stage.to == record.point)
        });
        if is_of_report && Report::parse_detail(record.detail).0 != 0 {
            return;
        }
        let id = record.id;
        if !self.orders.contains_key(&id) {
            if self.age.len() >= ORDERS
                && let Some(oldest) = self.age.pop_front()
            {
                self.orders.remove(&oldest);
            }
            self.age.push_back(id);
        }
        let times = self.orders.entry(id).or_insert([0; PATH.len()]);
        if times[place] != 0 {
            return;
        }
        times[place] = record.value;
        let times = *times;
        // A stage is sampled when its second end is seen, whichever that is.
        for (index, pair) in times.windows(2).enumerate() {
            if (index == place || index + 1 == place) && pair[0] != 0 && pair[1] != 0 {
                self.add_sample(index, pair[1].checked_sub(pair[0]));
            }
        }
        let at = |point: Point| PATH.iter().position(|other| *other == point).map_or(0, |place| times[place]);
        let (t1, t4, t5, t8) = (
            at(Point::StrategySend),
            at(Point::GatewayRecv),
            at(Point::GatewayDone),
            at(Point::StrategyRecv),
        );
        let is_end = matches!(
            record.point,
            Point::StrategySend | Point::GatewayRecv | Point::GatewayDone | Point::StrategyRecv
        );
        if is_end && [t1, t4, t5, t8].iter().all(|time| *time != 0) {
            let venue = t5.checked_sub(t4);
            let round = t8.checked_sub(t1);
            self.add_sample(Stage::ALL.len(), venue.and_then(|venue| round?.checked_sub(venue)));
        }
    }

    /// Adds a sample in ticks; contradicting stamps (`None`) are ignored.
    fn add_sample(&mut self, stage: usize, ticks: Option<u64>) {
        let Some(ticks) = ticks else { return };
        let samples = &mut self.samples[stage];
        if samples.len() >= SAMPLES {
            samples.pop_front();
        }
        // `as` saturates.
        samples.push_back((ticks as f64 * self.ns_per_tick) as u64);
    }

    /// Returns p50 and p99 of each stage, in the order of an order's path.
    pub fn rows(&self) -> Vec<StageRow> {
        let names = Stage::ALL.iter().map(|stage| stage.name()).chain([RT_VENUE]);
        let line = |(stage, samples): (&'static str, &VecDeque<u64>)| {
            let mut sorted: Vec<u64> = samples.iter().copied().collect();
            sorted.sort_unstable();
            let at = |percent: usize| {
                sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
            };
            StageRow {
                stage,
                p50_ns: at(50).copied(),
                p99_ns: at(99).copied().filter(|_| sorted.len() >= 100),
                samples: sorted.len() as u64,
            }
        };
        names.zip(&self.samples).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(point: Point, sequence: u64, value: u64) -> Record {
        Record { point, id: OrderId::new(1, 0, sequence), detail: 0, value }
    }

    #[test]
    fn both_ends_make_a_sample_in_any_order() {
        let mut stages = StageSampler::new(2.0);
        for order in 0..200 {
            for place in [7, 6, 5, 4, 0, 1, 2, 3] {
                stages.observe(&stamp(PATH[place], order, 1_000 + place as u64 * 10));
            }
        }
        let lines = stages.rows();
        assert_eq!(lines.len(), 8);
        assert!(
            lines[..7].iter().all(|line| (line.p50_ns, line.p99_ns) == (Some(20), Some(20))),
            "{lines:?}"
        );
        let rt_venue = StageRow { stage: RT_VENUE, p50_ns: Some(120), p99_ns: Some(120), samples: 200 };
        assert_eq!(lines[7], rt_venue);
    }

    #[test]
    fn nothing_is_made_of_stamps_that_contradict_each_other() {
        let mut stages = StageSampler::new(1.0);
        stages.observe(&stamp(PATH[0], 0, 50));
        stages.observe(&stamp(PATH[1], 0, 40));
        stages.observe(&stamp(PATH[1], 0, 60));
        assert!(stages.rows().iter().all(|line| line.samples == 0));
    }

    #[test]
    fn sampler_memory_is_bounded() {
        let mut stages = StageSampler::new(1.0);
        for order in 0..3 * ORDERS as u64 {
            stages.observe(&stamp(PATH[0], order, 1));
            stages.observe(&stamp(PATH[1], order, u64::MAX));
        }
        assert_eq!((stages.orders.len(), stages.age.len()), (ORDERS, ORDERS));
        assert_eq!(stages.rows()[0].samples, SAMPLES as u64);
    }
}
