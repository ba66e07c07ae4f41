//! The figures of a run: one histogram for each measure, and the exact least, greatest and mean
//! beside it.
//!
//! Durations are differences of ticks and are converted to nanoseconds one by one, with the one
//! calibration of the whole run; instants are never converted, so the rounding of a large number
//! never reaches a small one.

use crate::merge::{AtExchange, Merged, OrderRow};
use crate::select::Bits;
use hdrhistogram::Histogram;
use protocol::flow::{ExchangeStage, Stage, StagePlace};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};

/// The longest duration that a histogram tells apart, in nanoseconds: 24 hours. Longer ones count
/// as this.
const LONGEST_NS: u64 = 24 * 3_600 * 1_000_000_000;
/// Significant figures of a percentile.
const FIGURES: u8 = 3;

/// Something that is measured for every order that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// One stage of the flow.
    Stage(Stage),
    /// The whole way, t8 − t1.
    RoundTrip,
    /// Round trip less venue service: what the engine itself adds.
    RtVenue,
    /// The same from when the order was due: a late sender cannot hide a stall.
    RtVenueFromDue,
    /// t1 − due: how late the sender was.
    Slip,
    /// t5 − release: how late the gateway was.
    GatewayLateness,
    /// A part of the time at a venue that is an exchange.
    Exchange(ExchangeStage),
    /// t1 − the exchange's write of the touch that triggered the order: how fast the strategy is.
    TickToTrade,
    /// From that write until the exchange has the order.
    TickToExchange,
    /// What the engine adds to the orders that no stall of the machine touched: see
    /// [`crate::tail`].
    StallFree,
}

/// How many stages there are.
const STAGES: usize = Stage::ALL.len();

impl Measure {
    /// Every measure that each run has, in the order of the reports: the stages of the flow, then
    /// what is made of them.
    pub const ALL: [Measure; STAGES + 5] = {
        let mut all = [Measure::RoundTrip; STAGES + 5];
        let mut place = 0;
        while place < STAGES {
            all[place] = Measure::Stage(Stage::ALL[place]);
            place += 1;
        }
        all[STAGES + 1] = Measure::RtVenue;
        all[STAGES + 2] = Measure::RtVenueFromDue;
        all[STAGES + 3] = Measure::Slip;
        all[STAGES + 4] = Measure::GatewayLateness;
        all
    };

    /// The parts of the time at a venue: only of a run with an exchange.
    pub const EXCHANGE: [Measure; ExchangeStage::ALL.len()] = [
        Measure::Exchange(ExchangeStage::SessionOut),
        Measure::Exchange(ExchangeStage::Match),
        Measure::Exchange(ExchangeStage::SessionBack),
    ];

    /// From the market to an order: only of a run with orders that a touch triggered.
    pub const MARKET: [Measure; 2] = [Measure::TickToTrade, Measure::TickToExchange];

    /// Every measure that there is; those that only some runs have last.
    pub fn every() -> impl Iterator<Item = Measure> {
        Self::ALL.into_iter().chain(Self::EXCHANGE).chain(Self::MARKET).chain([Measure::StallFree])
    }

    /// The stages of the flow.
    pub fn stages() -> impl Iterator<Item = Measure> {
        Stage::ALL.into_iter().map(Measure::Stage)
    }

    /// Its place in [`Measure::every`].
    pub const fn place(self) -> usize {
        match self {
            Measure::Stage(stage) => stage as usize,
            Measure::RoundTrip => STAGES,
            Measure::RtVenue => STAGES + 1,
            Measure::RtVenueFromDue => STAGES + 2,
            Measure::Slip => STAGES + 3,
            Measure::GatewayLateness => STAGES + 4,
            Measure::Exchange(part) => STAGES + 5 + part as usize,
            Measure::TickToTrade => STAGES + 5 + ExchangeStage::ALL.len(),
            Measure::TickToExchange => STAGES + 6 + ExchangeStage::ALL.len(),
            Measure::StallFree => STAGES + 7 + ExchangeStage::ALL.len(),
        }
    }

    /// The name in summaries, histogram logs and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Stage(stage) => stage.name(),
            Measure::RoundTrip => "round_trip",
            Measure::RtVenue => "rt_venue",
            Measure::RtVenueFromDue => "rt_venue_from_due",
            Measure::Slip => "slip",
            Measure::GatewayLateness => "gateway_lateness",
            Measure::Exchange(part) => part.name(),
            Measure::TickToTrade => "tick_to_trade",
            Measure::TickToExchange => "tick_to_exchange",
            Measure::StallFree => "rt_venue_stall_free",
        }
    }
}

/// The samples of one measure.
#[derive(Clone, Debug)]
pub struct MeasureSeries {
    histogram: Histogram<u64>,
    least_ticks: u64,
    greatest_ticks: u64,
    sum_ticks: u128,
}

impl MeasureSeries {
    #[expect(clippy::expect_used, reason = "constants that the crate accepts")]
    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, FIGURES).expect("bounds are in range");
        Self { histogram, least_ticks: u64::MAX, greatest_ticks: 0, sum_ticks: 0 }
    }

    /// Takes one sample.
    #[inline]
    pub(super) fn take(&mut self, ticks: u64, ns_per_tick: f64) {
        self.histogram.saturating_record(to_ns(ticks, ns_per_tick));
        self.least_ticks = self.least_ticks.min(ticks);
        self.greatest_ticks = self.greatest_ticks.max(ticks);
        self.sum_ticks += u128::from(ticks);
    }

    /// The histogram, in nanoseconds.
    pub const fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The samples in figures.
    pub(super) fn distribution(&self, ns_per_tick: f64) -> Distribution {
        let MeasureSeries { histogram, least_ticks, greatest_ticks, sum_ticks } = self;
        let count = histogram.len();
        if count == 0 {
            return Distribution::default();
        }
        let (min, max) = (to_ns(*least_ticks, ns_per_tick), to_ns(*greatest_ticks, ns_per_tick));
        // A bucket's edge may lie beyond the one sample in it; no percentile lies beyond the
        // extremes.
        let at = |quantile| histogram.value_at_quantile(quantile).clamp(min, max);
        let percentile = |quantile, needed| (count >= needed).then(|| at(quantile));
        Distribution {
            count,
            min_ns: Some(min),
            p50_ns: percentile(0.5, SAMPLES_FOR_P50),
            p90_ns: percentile(0.9, 100),
            p99_ns: percentile(0.99, SAMPLES_FOR_P99),
            p999_ns: percentile(0.999, SAMPLES_FOR_P999),
            p9999_ns: percentile(0.9999, 100_000),
            max_ns: Some(max),
            mean_ns: Some(*sum_ticks as f64 * ns_per_tick / count as f64),
        }
    }
}

/// All measures of a run.
#[derive(Clone, Debug)]
pub struct Figures {
    series: Vec<MeasureSeries>,
    ns_per_tick: f64,
    knows_stalls: bool,
}

impl Figures {
    /// Measures every order of the merge that came back whole.
    pub fn measure(merged: &Merged, ns_per_tick: f64) -> Self {
        let mut figures = Self { series: Vec::new(), ns_per_tick, knows_stalls: false };
        figures.series.resize_with(Measure::every().count(), MeasureSeries::new);
        for (id, row) in merged.measured() {
            figures.take(row);
            if merged.has_exchange {
                let at = merged.at_exchange(id);
                figures.take_exchange(row, &at);
                if let Some(written) = merged.trigger(id).and_then(|trigger| trigger.written) {
                    figures.take_trigger(row, &at, written);
                }
            }
        }
        figures
    }

    /// Takes the orders that no stall of the machine touched: `untouched` says it of each measured
    /// order of the merge.
    pub fn take_stall_free(&mut self, merged: &Merged, untouched: &Bits) {
        self.knows_stalls = true;
        let free = merged.measured().enumerate().filter(|(place, _)| untouched.get(*place));
        free.for_each(|(_, (_, row))| self.add(Measure::StallFree, rt_venue(row)));
    }

    /// Takes one order, whose stamps the merge found to rise.
    #[inline]
    fn take(&mut self, row: &OrderRow) {
        let mut sum = 0;
        for (series, stage) in self.series.iter_mut().zip(Stage::ALL) {
            // A run may stamp only the ends of the engine's way.
            let Some(ticks) = row.stage(stage) else { continue };
            sum += ticks;
            series.take(ticks, self.ns_per_tick);
        }
        let round_trip = row.round_trip();
        debug_assert!(sum == round_trip || !row.has_all_stamps(), "stages sum to the round trip");
        let rt_venue = rt_venue(row);
        self.add(Measure::RoundTrip, round_trip);
        self.add(Measure::RtVenue, rt_venue);
        if let Some(due) = row.at(Point::Due) {
            let slip = row.began().saturating_sub(due);
            self.add(Measure::RtVenueFromDue, rt_venue.saturating_add(slip));
            self.add(Measure::Slip, slip);
        }
        if let (Some(release), Some(done)) = (row.at(Point::Release), row.at(Point::GatewayDone)) {
            self.add(Measure::GatewayLateness, done.saturating_sub(release));
        }
    }

    /// Takes what an exchange stamped of that order; nothing where its venue is none.
    fn take_exchange(&mut self, row: &OrderRow, at: &AtExchange) {
        let Some(parts) = at.parts(row) else { return };
        debug_assert_eq!(Some(parts.iter().sum()), row.stage(Stage::VenueService));
        for (measure, ticks) in Measure::EXCHANGE.into_iter().zip(parts) {
            self.add(measure, ticks);
        }
    }

    /// Takes the time since the touch that triggered that order was written.
    fn take_trigger(&mut self, row: &OrderRow, at: &AtExchange, written: u64) {
        self.add(Measure::TickToTrade, row.began().saturating_sub(written));
        if let Some(received) = at.received() {
            self.add(Measure::TickToExchange, received.saturating_sub(written));
        }
    }

    #[inline]
    fn add(&mut self, measure: Measure, ticks: u64) {
        let ns_per_tick = self.ns_per_tick;
        self.series[measure.place()].take(ticks, ns_per_tick);
    }

    /// Whether somebody looked for stalls of the machine: [`Figures::take_stall_free`].
    pub const fn knows_stalls(&self) -> bool {
        self.knows_stalls
    }

    /// The samples of a measure.
    pub fn series(&self, measure: Measure) -> &MeasureSeries {
        &self.series[measure.place()]
    }

    /// The distribution of a measure.
    pub fn distribution(&self, measure: Measure) -> Distribution {
        self.series(measure).distribution(self.ns_per_tick)
    }
}

/// What the engine added to an order that came back whole, in ticks.
#[inline]
pub(crate) fn rt_venue(row: &OrderRow) -> u64 {
    let venue = |stage: &Stage| stage.record().place == StagePlace::Venue;
    let at_venue: u64 = Stage::ALL.into_iter().filter(venue).filter_map(|stage| row.stage(stage)).sum();
    let round_trip = row.round_trip();
    round_trip - at_venue.min(round_trip)
}

/// The exact quantile, or nothing where there are fewer than `needed` values. Reorders the values.
pub(crate) fn quantile(values: &mut [u64], quantile: f64, needed: usize) -> Option<u64> {
    if values.len() < needed {
        return None;
    }
    // The least value that this share of the values does not exceed.
    let rank = ((values.len() as f64 * quantile).ceil() as usize).clamp(1, values.len());
    Some(*values.select_nth_unstable(rank - 1).1)
}

/// Samples that a median needs: ten beyond it, as for every percentile.
pub(crate) const SAMPLES_FOR_P50: u64 = 20;
/// Samples that a 99th percentile needs.
pub(crate) const SAMPLES_FOR_P99: u64 = 1_000;
/// Samples that a 99.9th percentile needs.
pub const SAMPLES_FOR_P999: u64 = 10_000;

/// A measure in figures, in nanoseconds. Least, greatest and mean are exact; a percentile is null
/// where there are fewer than ten samples beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// The least.
    pub min_ns: Option<u64>,
    /// The median; from 20 samples on.
    pub p50_ns: Option<u64>,
    /// From 100 samples on.
    pub p90_ns: Option<u64>,
    /// From 1,000 samples on.
    pub p99_ns: Option<u64>,
    /// From 10,000 samples on.
    pub p999_ns: Option<u64>,
    /// From 100,000 samples on.
    pub p9999_ns: Option<u64>,
    /// The greatest.
    pub max_ns: Option<u64>,
    /// The mean.
    pub mean_ns: Option<f64>,
}

/// A duration in nanoseconds, rounded to the nearest.
#[inline]
pub fn to_ns(ticks: u64, ns_per_tick: f64) -> u64 {
    // Saturates, and has no NaN to fear: the calibration is finite and positive.
    (ticks as f64 * ns_per_tick + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{rank, select};
    use proptest::prelude::*;

    #[test]
    fn quantile_is_value_at_rank() {
        let mut values: Vec<u64> = (1..=1_000).rev().collect();
        assert_eq!(quantile(&mut values, 0.5, 20), Some(500));
        assert_eq!(quantile(&mut values, 0.99, 1_000), Some(990));
        assert_eq!(quantile(&mut values, 0.99, 1_001), None);
    }
    proptest! {
        #[test]
        fn selected_ranks_match_sorted_values(
            columns in prop::collection::vec(prop::collection::vec(prop_oneof![0u64..50, any::<u64>(), 1u64 << 33..1 << 34], 1..80), 1..4),
            share in 0.0f64..1.0,
        ) {
            let most = columns.iter().flatten().copied().max().unwrap();
            let wanted: Vec<(usize, u64)> =
                columns.iter().enumerate().map(|(at, column)| (at, rank(column.len() as u64, share))).collect();
            let found = select(&wanted, most, |hear| {
                for (at, column) in columns.iter().enumerate() {
                    column.iter().for_each(|value| hear(at, *value));
                }
            });
            for (mut column, found) in columns.into_iter().zip(found) {
                prop_assert_eq!(quantile(&mut column, share, 1), Some(found));
            }
        }
    }
}
