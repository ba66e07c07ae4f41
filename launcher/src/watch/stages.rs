//! Current p50 and p99 of each stage, from the newest stamps.
//!
//! Stamps of an order stand in several logs, and each look sees only the newest records of each: an
//! order is counted where both ends happened to be seen. So this is a sample, and the merge after
//! the run is the measurement.

use protocol::flow::{PATH, Stage, StageScope};
use protocol::record::{Point, Record};
use protocol::wire::{OrderId, Report};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};

/// Orders whose stamps are kept while the other end may still come.
const ORDERS: usize = 1 << 16;
/// The samples of a stage that its percentiles are of.
const SAMPLES: usize = 4_096;
/// What is measured beside the stages: the round trip without the venue's own time.
const RT_VENUE: &str = "rt_venue";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageLine {
    pub stage: &'static str,
    /// The median of the samples, in nanoseconds; `None`: there is none.
    pub p50_ns: Option<u64>,
    /// The 99th percentile; `None` with fewer than 100 samples.
    pub p99_ns: Option<u64>,
    /// Samples that the figures are of.
    pub samples: u64,
}

/// Stamps by order, and what was measured of them.
pub struct Stages {
    ns_per_tick: f64,
    /// The times of the eight points, 0 where not seen.
    orders: HashMap<OrderId, [u64; PATH.len()]>,
    /// In which order they came.
    age: VecDeque<OrderId>,
    samples: [VecDeque<u64>; Stage::ALL.len() + 1],
}

impl Stages {
    pub fn new(ns_per_tick: f64) -> Self {
        let samples = std::array::from_fn(|_| VecDeque::with_capacity(SAMPLES));
        Self { ns_per_tick, orders: HashMap::new(), age: VecDeque::new(), samples }
    }

    /// Takes a record of any log. Of an order's reports the first one counts.
    pub fn see(&mut self, record: &Record) {
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
        // A stage is measured when the second of its ends is seen, whichever that is.
        for (index, pair) in times.windows(2).enumerate() {
            if (index == place || index + 1 == place) && pair[0] != 0 && pair[1] != 0 {
                self.measured(index, pair[1].checked_sub(pair[0]));
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
            self.measured(Stage::ALL.len(), venue.and_then(|venue| round?.checked_sub(venue)));
        }
    }

    /// A duration in ticks; `None`: the stamps contradict each other, and nothing is made of them.
    fn measured(&mut self, stage: usize, ticks: Option<u64>) {
        let Some(ticks) = ticks else { return };
        let samples = &mut self.samples[stage];
        if samples.len() >= SAMPLES {
            samples.pop_front();
        }
        // `as` saturates.
        samples.push_back((ticks as f64 * self.ns_per_tick) as u64);
    }

    /// The figures, in the order of an order's way.
    pub fn lines(&self) -> Vec<StageLine> {
        let names = Stage::ALL.iter().map(|stage| stage.name()).chain([RT_VENUE]);
        let line = |(stage, samples): (&'static str, &VecDeque<u64>)| {
            let mut sorted: Vec<u64> = samples.iter().copied().collect();
            sorted.sort_unstable();
            let at = |percent: usize| {
                sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
            };
            StageLine {
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
        let mut stages = Stages::new(2.0);
        for order in 0..200 {
            for place in [7, 6, 5, 4, 0, 1, 2, 3] {
                stages.see(&stamp(PATH[place], order, 1_000 + place as u64 * 10));
            }
        }
        let lines = stages.lines();
        assert_eq!(lines.len(), 8);
        assert!(
            lines[..7].iter().all(|line| (line.p50_ns, line.p99_ns) == (Some(20), Some(20))),
            "{lines:?}"
        );
        let rt_venue = StageLine { stage: RT_VENUE, p50_ns: Some(120), p99_ns: Some(120), samples: 200 };
        assert_eq!(lines[7], rt_venue);
    }

    #[test]
    fn nothing_is_made_of_stamps_that_contradict_each_other() {
        let mut stages = Stages::new(1.0);
        stages.see(&stamp(PATH[0], 0, 50));
        stages.see(&stamp(PATH[1], 0, 40));
        stages.see(&stamp(PATH[1], 0, 60));
        assert!(stages.lines().iter().all(|line| line.samples == 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut stages = Stages::new(1.0);
        for order in 0..3 * ORDERS as u64 {
            stages.see(&stamp(PATH[0], order, 1));
            stages.see(&stamp(PATH[1], order, u64::MAX));
        }
        assert_eq!((stages.orders.len(), stages.age.len()), (ORDERS, ORDERS));
        assert_eq!(stages.lines()[0].samples, SAMPLES as u64);
    }
}
