//! The latency percentiles and rates of a run: one histogram for each measure, with the exact
//! minimum, maximum and mean.
//!
//! Durations are differences of ticks and are converted to nanoseconds one by one, with the
//! calibration of the whole run. Instants are never converted, so that the rounding of a large
//! number never reaches a small one.

use crate::radix_select::BitSet;
use crate::{ExchangeStamps, MergedRun, OrderRow, Trigger};
use hdrhistogram::Histogram;
use protocol::flow::{ExchangeStage, Stage, StageLocation};
use protocol::plan::{IsolationLevel, IsolationLevels};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest duration that a histogram resolves, in nanoseconds: 24 hours. Longer ones count as
/// this.
const MAX_NS: u64 = 24 * 3_600 * 1_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A duration that is measured for every returned order, such as a stage or the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A stage of an order's path.
    Stage(Stage),
    /// The whole round trip t8 − t1.
    RoundTrip,
    /// Round trip without venue service: the time that the engine adds. Excludes
    /// [`Measure::GatewayLateness`], which lies between t4 and t5.
    RtVenue,
    /// rt_venue from the due time on: a late sender cannot hide a stall.
    RtVenueFromDue,
    /// The time t1 − due by which an order was sent late.
    SendLag,
    /// The time t5 − release, from when the venue's answer was due until the gateway took it. Part
    /// of venue service.
    GatewayLateness,
    /// A stage of the time at a venue that is an exchange.
    Exchange(ExchangeStage),
    /// Tick-to-trade: from the exchange's write of the triggering touch to t1.
    TickToTrade,
    /// Time from the write of the triggering touch until the exchange received the order.
    TickToExchange,
    /// rt_venue of the orders that no stall of the machine affected: see [`crate::tail`].
    StallFree,
    /// rt_venue from the due time on, of the orders that no steal of the hypervisor affected.
    WithoutSteal,
}

const STAGES: usize = Stage::ALL.len();

impl Measure {
    /// All kinds of durations that a run's report can have, in its order: the stages of an order's
    /// path, then round trips and delays.
    pub const ALL: [Measure; STAGES + 5] = {
        let mut all = [Measure::RoundTrip; STAGES + 5];
        let mut index = 0;
        while index < STAGES {
            all[index] = Measure::Stage(Stage::ALL[index]);
            index += 1;
        }
        all[STAGES + 1] = Measure::RtVenue;
        all[STAGES + 2] = Measure::RtVenueFromDue;
        all[STAGES + 3] = Measure::SendLag;
        all[STAGES + 4] = Measure::GatewayLateness;
        all
    };

    /// The stages of an order within an exchange (session out, match, session back), measured only
    /// in runs with an exchange.
    pub const EXCHANGE: [Measure; ExchangeStage::ALL.len()] = [
        Measure::Exchange(ExchangeStage::SessionOut),
        Measure::Exchange(ExchangeStage::Match),
        Measure::Exchange(ExchangeStage::SessionBack),
    ];

    /// The durations from an exchange's market data to the order that it triggered, measured only
    /// in runs with such orders.
    pub const MARKET: [Measure; 2] = [Measure::TickToTrade, Measure::TickToExchange];

    /// Iterates over all measured durations: first those of every run ([`Measure::ALL`]), then
    /// those that only some runs have, such as runs with an exchange.
    pub fn every() -> impl Iterator<Item = Measure> {
        Self::ALL
            .into_iter()
            .chain(Self::EXCHANGE)
            .chain(Self::MARKET)
            .chain([Measure::StallFree, Measure::WithoutSteal])
    }

    /// Iterates over the stages (intervals between two stamps) of an order's path.
    pub fn stages() -> impl Iterator<Item = Measure> {
        Stage::ALL.into_iter().map(Measure::Stage)
    }

    /// Returns the index of the measured duration in [`Measure::every`].
    pub const fn index(self) -> usize {
        match self {
            Measure::Stage(stage) => stage as usize,
            Measure::RoundTrip => STAGES,
            Measure::RtVenue => STAGES + 1,
            Measure::RtVenueFromDue => STAGES + 2,
            Measure::SendLag => STAGES + 3,
            Measure::GatewayLateness => STAGES + 4,
            Measure::Exchange(part) => STAGES + 5 + part as usize,
            Measure::TickToTrade => STAGES + 5 + ExchangeStage::ALL.len(),
            Measure::TickToExchange => STAGES + 6 + ExchangeStage::ALL.len(),
            Measure::StallFree => STAGES + 7 + ExchangeStage::ALL.len(),
            Measure::WithoutSteal => STAGES + 8 + ExchangeStage::ALL.len(),
        }
    }

    /// Returns the measured duration's name in summaries, histogram logs and tables, such as
    /// `rt_venue`.
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Stage(stage) => stage.name(),
            Measure::RoundTrip => "round_trip",
            Measure::RtVenue => "rt_venue",
            Measure::RtVenueFromDue => "rt_venue_from_due",
            Measure::SendLag => "slip",
            Measure::GatewayLateness => "gateway_lateness",
            Measure::Exchange(part) => part.name(),
            Measure::TickToTrade => "tick_to_trade",
            Measure::TickToExchange => "tick_to_exchange",
            Measure::StallFree => "rt_venue_stall_free",
            Measure::WithoutSteal => "rt_venue_from_due_without_steal",
        }
    }
}

/// The samples of one measured duration: a histogram, with exact minimum, maximum and sum.
#[derive(Clone, Debug)]
pub struct MeasureSeries {
    histogram: Histogram<u64>,
    min_ticks: u64,
    max_ticks: u64,
    sum_ticks: u128,
}

impl Default for MeasureSeries {
    #[expect(clippy::expect_used, reason = "constants that the crate accepts")]
    fn default() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, MAX_NS, SIGNIFICANT_DIGITS).expect("bounds are in range");
        Self { histogram, min_ticks: u64::MAX, max_ticks: 0, sum_ticks: 0 }
    }
}

impl MeasureSeries {
    /// Adds one sample, a duration in ticks, to the series.
    #[inline]
    pub fn record(&mut self, ticks: u64, ns_per_tick: f64) {
        self.histogram.saturating_record(to_ns(ticks, ns_per_tick));
        self.min_ticks = self.min_ticks.min(ticks);
        self.max_ticks = self.max_ticks.max(ticks);
        self.sum_ticks += u128::from(ticks);
    }

    /// Adds samples that were counted elsewhere: durations in ticks with their counts, and their
    /// exact minimum, maximum and sum. Any values are accepted.
    pub fn record_counts(
        &mut self,
        counts: impl Iterator<Item = (u64, u64)>,
        (min, max, sum): (u64, u64, u64),
        ns_per_tick: f64,
    ) {
        for (ticks, count) in counts.filter(|(_, count)| *count > 0) {
            // A counted value may lie beyond the one sample that it stands for.
            self.histogram.saturating_record_n(to_ns(ticks.min(max).max(min.min(max)), ns_per_tick), count);
            (self.min_ticks, self.max_ticks) = (self.min_ticks.min(min.min(max)), self.max_ticks.max(max));
        }
        self.sum_ticks += u128::from(sum);
    }

    /// Returns the histogram of the duration's samples, in nanoseconds.
    pub const fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Returns the value at a quantile of the duration's samples, in nanoseconds; `None` with fewer
    /// than ten samples beyond it.
    pub fn quantile(&self, quantile: f64, ns_per_tick: f64) -> Option<u64> {
        let MeasureSeries { histogram, min_ticks, max_ticks, .. } = self;
        let needed = (SAMPLES_BEYOND / (1.0 - quantile)).round() as u64;
        let (min, max) = (to_ns(*min_ticks, ns_per_tick), to_ns(*max_ticks, ns_per_tick));
        (histogram.len() >= needed.max(1)).then(|| histogram.value_at_quantile(quantile).clamp(min, max))
    }

    /// Returns count, extremes, mean and percentiles of the duration's samples, in nanoseconds.
    pub fn distribution(&self, ns_per_tick: f64) -> Distribution {
        let MeasureSeries { histogram, min_ticks, max_ticks, sum_ticks } = self;
        let (min, max) = (to_ns(*min_ticks, ns_per_tick), to_ns(*max_ticks, ns_per_tick));
        // A bucket's edge may exceed the one sample in it; no percentile exceeds the extremes.
        let at = |quantile| histogram.value_at_quantile(quantile).clamp(min, max);
        Distribution::new(histogram.len(), [min, max], *sum_ticks as f64 * ns_per_tick, at)
    }
}

/// The samples of the orders of strategies at one level.
#[derive(Clone, Debug)]
struct LevelSeries {
    level: IsolationLevel,
    again: usize,
    series: [MeasureSeries; Self::MEASURES.len()],
}

impl LevelSeries {
    /// The durations that are measured for each level.
    const MEASURES: [Measure; 5] = [
        Measure::RtVenue,
        Measure::RtVenueFromDue,
        Measure::SendLag,
        Measure::StallFree,
        Measure::WithoutSteal,
    ];

    /// Takes the samples of every measured order, for each level; none if all strategies have the
    /// same level.
    fn measure(merged: &MergedRun, isolation: IsolationLevels, ns_per_tick: f64) -> Vec<Self> {
        if isolation.only().is_some() {
            return Vec::new();
        }
        let new = |(level, again)| Self { level, again, series: Default::default() };
        let mut levels: Vec<Self> = isolation.places().map(new).collect();
        for (id, row) in merged.measured().filter(|(id, row)| merged.is_counted(*id, row)) {
            let own = &mut levels[isolation.place_of(id.strategy())];
            own.record(Measure::RtVenue, engine_ticks(row), ns_per_tick);
            if let (Some(due), Some(from_due)) = (row.at(Point::Due), from_due(row)) {
                own.record(Measure::RtVenueFromDue, from_due, ns_per_tick);
                own.record(Measure::SendLag, row.began().saturating_sub(due), ns_per_tick);
            }
        }
        levels
    }

    /// Adds a sample of one of [`Self::MEASURES`]; others are ignored.
    fn record(&mut self, measure: Measure, ticks: u64, ns_per_tick: f64) {
        if let Some(at) = Self::MEASURES.iter().position(|own| *own == measure) {
            self.series[at].record(ticks, ns_per_tick);
        }
    }

    fn distributions(&self, ns_per_tick: f64) -> BTreeMap<String, Distribution> {
        let measured = Self::MEASURES.iter().zip(&self.series);
        let distribution = |(measure, series): (&Measure, &MeasureSeries)| {
            (measure.name().to_owned(), series.distribution(ns_per_tick))
        };
        measured.map(distribution).collect()
    }
}

/// The samples of all durations measured in a run, also by isolation level.
#[derive(Clone, Debug)]
pub struct Figures {
    series: Vec<MeasureSeries>,
    levels: Vec<LevelSeries>,
    isolation: IsolationLevels,
    ns_per_tick: f64,
    has_stall_free: bool,
    knows_steal: bool,
    /// `rt_venue_from_due` of all measured orders, also of the warm-up.
    with_warm_up: MeasureSeries,
}

impl Figures {
    /// Collects the samples of every complete order of a merged run that was due after the warm-up.
    /// The run's strategies had these levels.
    pub fn measure(merged: &MergedRun, isolation: IsolationLevels, ns_per_tick: f64) -> Self {
        let mut figures = Self {
            series: Vec::new(),
            levels: LevelSeries::measure(merged, isolation, ns_per_tick),
            isolation,
            ns_per_tick,
            has_stall_free: false,
            knows_steal: false,
            with_warm_up: MeasureSeries::default(),
        };
        figures.series.resize_with(Measure::every().count(), MeasureSeries::default);
        for (id, row) in merged.measured().filter(|(id, _)| !merged.is_disturbing(id.strategy())) {
            from_due(row).into_iter().for_each(|ticks| figures.with_warm_up.record(ticks, ns_per_tick));
            if !merged.is_counted(id, row) {
                continue;
            }
            figures.record_order(row);
            if merged.has_exchange {
                figures.record_exchange(row, &merged.at_exchange(id), merged.trigger(id));
            }
        }
        figures
    }

    /// Adds the samples of the measure [`Measure::StallFree`]: orders that no stall of the machine
    /// affected. `untouched` has a bit for each measured order of the merge.
    pub fn record_stall_free(&mut self, merged: &MergedRun, untouched: &BitSet) {
        self.has_stall_free = true;
        self.record_untouched(merged, untouched, Measure::StallFree, |row| Some(engine_ticks(row)));
    }

    /// Adds the samples of the measure [`Measure::WithoutSteal`]: orders that no steal
    /// (hypervisor's use of a core) affected. `untouched` has a bit for each measured order of the
    /// merge.
    pub fn record_without_steal(&mut self, merged: &MergedRun, untouched: &BitSet) {
        self.knows_steal = true;
        self.record_untouched(merged, untouched, Measure::WithoutSteal, from_due);
    }

    fn record_untouched(
        &mut self,
        merged: &MergedRun,
        untouched: &BitSet,
        measure: Measure,
        ticks: impl Fn(&OrderRow) -> Option<u64>,
    ) {
        let orders = merged.measured().enumerate();
        let free = orders.filter(|(index, (id, row))| untouched.get(*index) && merged.is_counted(*id, row));
        for (_, (id, row)) in free {
            let Some(ticks) = ticks(row) else { continue };
            self.record(measure, ticks);
            if let Some(level) = self.levels.get_mut(self.isolation.place_of(id.strategy())) {
                level.record(measure, ticks, self.ns_per_tick);
            }
        }
    }

    /// Adds one order, whose stamps the merge found to be ascending.
    #[inline]
    fn record_order(&mut self, row: &OrderRow) {
        let mut sum = 0;
        for (series, stage) in self.series.iter_mut().zip(Stage::ALL) {
            // With `--stamps ends` the inner stamps are absent.
            let Some(ticks) = row.stage(stage) else { continue };
            sum += ticks;
            series.record(ticks, self.ns_per_tick);
        }
        let round_trip = row.round_trip();
        debug_assert!(sum == round_trip || !row.has_all_stamps(), "stages sum to the round trip");
        let engine_ticks = engine_ticks(row);
        self.record(Measure::RoundTrip, round_trip);
        self.record(Measure::RtVenue, engine_ticks);
        if let Some(due) = row.at(Point::Due) {
            let slip = row.began().saturating_sub(due);
            self.record(Measure::RtVenueFromDue, engine_ticks.saturating_add(slip));
            self.record(Measure::SendLag, slip);
        }
        if let (Some(release), Some(done)) = (row.at(Point::Release), row.at(Point::GatewayDone)) {
            self.record(Measure::GatewayLateness, done.saturating_sub(release));
        }
    }

    /// Adds the exchange stages of an order, and the times since the triggering touch was written,
    /// if it has them.
    fn record_exchange(&mut self, row: &OrderRow, at: &ExchangeStamps, trigger: Option<Trigger>) {
        if let Some(parts) = at.stage_ticks(row) {
            debug_assert_eq!(Some(parts.iter().sum()), row.stage(Stage::VenueService));
            for (measure, ticks) in Measure::EXCHANGE.into_iter().zip(parts) {
                self.record(measure, ticks);
            }
        }
        let Some(written) = trigger.and_then(|trigger| trigger.written) else { return };
        self.record(Measure::TickToTrade, row.began().saturating_sub(written));
        if let Some(received) = at.received() {
            self.record(Measure::TickToExchange, received.saturating_sub(written));
        }
    }

    #[inline]
    fn record(&mut self, measure: Measure, ticks: u64) {
        let ns_per_tick = self.ns_per_tick;
        self.series[measure.index()].record(ticks, ns_per_tick);
    }

    /// Returns `true` if [`Figures::record_stall_free`] has added the samples of orders that no
    /// stall affected.
    pub const fn has_stall_free(&self) -> bool {
        self.has_stall_free
    }

    /// Returns `true` if [`Figures::record_without_steal`] has added the samples of orders that no
    /// steal affected.
    pub const fn has_without_steal(&self) -> bool {
        self.knows_steal
    }

    /// Iterates over the isolation levels of a run with several, with the distributions of each
    /// level's measured durations. Each entry's number counts the earlier groups of strategies at
    /// the same level.
    pub fn levels(&self) -> impl Iterator<Item = (IsolationLevel, usize, BTreeMap<String, Distribution>)> {
        self.levels.iter().map(|own| (own.level, own.again, own.distributions(self.ns_per_tick)))
    }

    /// Returns the distribution of `rt_venue_from_due` (latency from the due time), including the
    /// orders of the warm-up.
    pub fn with_warm_up(&self) -> Distribution {
        self.with_warm_up.distribution(self.ns_per_tick)
    }

    /// Returns the samples of one measured duration in the run.
    pub fn series(&self, measure: Measure) -> &MeasureSeries {
        &self.series[measure.index()]
    }

    /// Returns the distribution of one measured duration.
    pub fn distribution(&self, measure: Measure) -> Distribution {
        self.series(measure).distribution(self.ns_per_tick)
    }
}

/// Returns the engine's part of an order's round trip (rt_venue: without the venue's time), in
/// ticks.
#[inline]
pub fn engine_ticks(row: &OrderRow) -> u64 {
    let venue = |stage: &Stage| stage.info().location == StageLocation::Venue;
    let at_venue: u64 = Stage::ALL.into_iter().filter(venue).filter_map(|stage| row.stage(stage)).sum();
    let round_trip = row.round_trip();
    round_trip - at_venue.min(round_trip)
}

/// Returns an order's `rt_venue` plus its delay from due time to sending, in ticks; `None` without
/// a due time.
pub fn from_due(row: &OrderRow) -> Option<u64> {
    let slip = row.began().saturating_sub(row.at(Point::Due)?);
    Some(engine_ticks(row).saturating_add(slip))
}

/// Returns the exact quantile (0 to 1) of unsorted values; `None` with fewer than `needed` values.
/// Reorders the slice.
pub fn quantile(values: &mut [u64], quantile: f64, needed: usize) -> Option<u64> {
    if values.len() < needed {
        return None;
    }
    // The smallest value that at least this share of the values does not exceed.
    let rank = ((values.len() as f64 * quantile).ceil() as usize).clamp(1, values.len());
    Some(*values.select_nth_unstable(rank - 1).1)
}

/// Samples that a percentile needs beyond it.
const SAMPLES_BEYOND: f64 = 10.0;
/// Minimum number of samples for a median: ten beyond it, as for every percentile.
pub const SAMPLES_FOR_P50: u64 = 20;
/// Minimum number of samples for a 99th percentile: ten beyond it.
pub const SAMPLES_FOR_P99: u64 = 1_000;
/// Minimum number of samples for a 99.9th percentile: ten beyond it.
pub const SAMPLES_FOR_P999: u64 = 10_000;

/// Count, mean, extremes and percentiles of a measured duration, in nanoseconds. Minimum, maximum
/// and mean are exact; a percentile is null with fewer than ten samples beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples.
    pub count: u64,
    /// Minimum of the samples, in nanoseconds.
    pub min_ns: Option<u64>,
    /// Median in nanoseconds; from 20 samples on.
    pub p50_ns: Option<u64>,
    /// 90th percentile in nanoseconds; from 100 samples on.
    pub p90_ns: Option<u64>,
    /// 99th percentile in nanoseconds; from 1,000 samples on.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile in nanoseconds; from 10,000 samples on.
    pub p999_ns: Option<u64>,
    /// 99.99th percentile in nanoseconds; from 100,000 samples on.
    pub p9999_ns: Option<u64>,
    /// Maximum of the samples, in nanoseconds.
    pub max_ns: Option<u64>,
    /// Mean of the samples, in nanoseconds.
    pub mean_ns: Option<f64>,
}

impl Distribution {
    /// Creates the distribution of `count` samples from their extremes and their sum, in
    /// nanoseconds. `at` returns the value at a quantile.
    pub fn new(count: u64, [min, max]: [u64; 2], sum: f64, mut at: impl FnMut(f64) -> u64) -> Self {
        if count == 0 {
            return Self::default();
        }
        let mut percentile = |quantile, needed| (count >= needed).then(|| at(quantile));
        Self {
            count,
            min_ns: Some(min),
            p50_ns: percentile(0.5, SAMPLES_FOR_P50),
            p90_ns: percentile(0.9, 100),
            p99_ns: percentile(0.99, SAMPLES_FOR_P99),
            p999_ns: percentile(0.999, SAMPLES_FOR_P999),
            p9999_ns: percentile(0.9999, 100_000),
            max_ns: Some(max),
            mean_ns: Some(sum / count as f64),
        }
    }
}

/// Converts ticks to nanoseconds, rounded to the nearest nanosecond.
#[inline]
pub fn to_ns(ticks: u64, ns_per_tick: f64) -> u64 {
    // Saturates; never NaN, since the calibration is finite and positive.
    (ticks as f64 * ns_per_tick + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radix_select::{nearest_rank, select_ranks};
    use proptest::prelude::*;

    #[test]
    fn quantile_needs_ten_samples_beyond_it() {
        let mut series = MeasureSeries::default();
        (1..=199).for_each(|ticks| series.record(ticks, 2.0));
        assert_eq!(series.quantile(0.95, 2.0), None);
        series.record(200, 2.0);
        assert_eq!(series.quantile(0.95, 2.0), Some(380));
        assert_eq!(MeasureSeries::default().quantile(0.95, 2.0), None);
    }

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
            let max = columns.iter().flatten().copied().max().unwrap();
            let ranks_wanted: Vec<(usize, u64)> =
                columns.iter().enumerate().map(|(at, column)| (at, nearest_rank(column.len() as u64, share))).collect();
            let found = select_ranks(&ranks_wanted, max, |visit| {
                for (at, column) in columns.iter().enumerate() {
                    column.iter().for_each(|value| visit(at, *value));
                }
            });
            for (mut column, found) in columns.into_iter().zip(found) {
                prop_assert_eq!(quantile(&mut column, share, 1), Some(found));
            }
        }
    }
}
