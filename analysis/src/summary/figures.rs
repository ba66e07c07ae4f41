//! The figures of a run: one histogram for each measure, and the exact least, greatest and mean beside it.
//!
//! Durations are differences of ticks and are converted to nanoseconds one by one, with the one calibration of
//! the whole run; instants are never converted, so the rounding of a large number never reaches a small one.

use crate::merge::{Merged, Row};
use hdrhistogram::Histogram;
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};

/// The longest duration that a histogram tells apart, in nanoseconds: 24 hours. Longer ones count as this.
const LONGEST_NS: u64 = 24 * 3_600 * 1_000_000_000;
/// Significant figures of a percentile.
const FIGURES: u8 = 3;

/// Something that is measured for every order that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Measure {
    /// t2 − t1: through the submit hand-off.
    Submit,
    /// t3 − t2: risk checks and work.
    OrchPreDispatch,
    /// t4 − t3: through the gateway's inbox.
    Dispatch,
    /// t5 − t4: at the venue.
    VenueService,
    /// t6 − t5: through the completion hand-off.
    Completion,
    /// t7 − t6: positions.
    OrchPostProcess,
    /// t8 − t7: through the return ring.
    Return,
    /// t8 − t1.
    RoundTrip,
    /// Round trip less venue service: what the engine itself adds.
    RtVenue,
    /// The same from when the order was due: a late sender cannot hide a stall.
    RtVenueFromDue,
    /// t1 − due: how late the sender was.
    Slip,
    /// t5 − release: how late the gateway was.
    GatewayLateness,
}

impl Measure {
    /// Every measure, in the order of the reports.
    pub const ALL: [Measure; 12] = [
        Measure::Submit,
        Measure::OrchPreDispatch,
        Measure::Dispatch,
        Measure::VenueService,
        Measure::Completion,
        Measure::OrchPostProcess,
        Measure::Return,
        Measure::RoundTrip,
        Measure::RtVenue,
        Measure::RtVenueFromDue,
        Measure::Slip,
        Measure::GatewayLateness,
    ];

    /// The name in summaries, histogram logs and tables.
    pub const fn name(self) -> &'static str {
        [
            "submit",
            "orch_pre_dispatch",
            "dispatch",
            "venue_service",
            "completion",
            "orch_post_process",
            "return",
            "round_trip",
            "rt_venue",
            "rt_venue_from_due",
            "slip",
            "gateway_lateness",
        ][self as usize]
    }
}

/// The samples of one measure.
#[derive(Clone, Debug)]
pub struct Series {
    histogram: Histogram<u64>,
    least_ticks: u64,
    greatest_ticks: u64,
    sum_ticks: u128,
}

impl Series {
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
        let Series { histogram, least_ticks, greatest_ticks, sum_ticks } = self;
        let count = histogram.len();
        if count == 0 {
            return Distribution::default();
        }
        let (min, max) = (to_ns(*least_ticks, ns_per_tick), to_ns(*greatest_ticks, ns_per_tick));
        // A bucket's edge may lie beyond the one sample in it; no percentile lies beyond the extremes.
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
    series: Vec<Series>,
    ns_per_tick: f64,
}

impl Figures {
    /// Measures every order of the merge that came back whole.
    pub fn measure(merged: &Merged, ns_per_tick: f64) -> Self {
        let mut figures = Self { series: vec![Series::new(); Measure::ALL.len()], ns_per_tick };
        for (_, row) in merged.measured() {
            figures.take(row);
        }
        figures
    }

    /// Takes one order, whose stamps the merge found to rise.
    #[inline]
    fn take(&mut self, row: &Row) {
        let t = row.stamps();
        let round_trip = t[7].saturating_sub(t[0]);
        if row.has_all_stamps() {
            let mut sum = 0;
            for (series, pair) in self.series.iter_mut().zip(t.windows(2)) {
                let stage = pair[1].saturating_sub(pair[0]);
                sum += stage;
                series.take(stage, self.ns_per_tick);
            }
            debug_assert_eq!(sum, round_trip, "stages sum to the round trip");
        } else {
            self.add(Measure::VenueService, t[4].saturating_sub(t[3]));
        }
        let rt_venue = rt_venue(row);
        self.add(Measure::RoundTrip, round_trip);
        self.add(Measure::RtVenue, rt_venue);
        if let Some(due) = row.at(Point::Due) {
            let slip = t[0].saturating_sub(due);
            self.add(Measure::RtVenueFromDue, rt_venue.saturating_add(slip));
            self.add(Measure::Slip, slip);
        }
        if let Some(release) = row.at(Point::Release) {
            self.add(Measure::GatewayLateness, t[4].saturating_sub(release));
        }
    }

    #[inline]
    fn add(&mut self, measure: Measure, ticks: u64) {
        let ns_per_tick = self.ns_per_tick;
        self.series[measure as usize].take(ticks, ns_per_tick);
    }

    /// The samples of a measure.
    pub fn series(&self, measure: Measure) -> &Series {
        &self.series[measure as usize]
    }

    /// The distribution of a measure.
    pub fn distribution(&self, measure: Measure) -> Distribution {
        self.series(measure).distribution(self.ns_per_tick)
    }
}

/// What the engine added to an order that came back whole, in ticks.
#[inline]
pub(crate) fn rt_venue(row: &Row) -> u64 {
    let t = row.stamps();
    let round_trip = t[7].saturating_sub(t[0]);
    round_trip - t[4].saturating_sub(t[3]).min(round_trip)
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

/// A measure in figures, in nanoseconds. Least, greatest and mean are exact; a percentile is null where there are
/// fewer than ten samples beyond it.
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

    #[test]
    fn quantiles_are_ranks() {
        let mut values: Vec<u64> = (1..=1_000).rev().collect();
        assert_eq!(quantile(&mut values, 0.5, 20), Some(500));
        assert_eq!(quantile(&mut values, 0.99, 1_000), Some(990));
        assert_eq!(quantile(&mut values, 0.99, 1_001), None);
    }
}
