//! Simulated clocks with a known offset, which must always lie within the computed bounds.

use super::offset::Interval;
use super::*;
use proptest::prelude::*;

/// Two clocks and a network. Times in nanoseconds of this host's clock.
#[derive(Clone, Copy, Debug)]
struct ClockPair {
    /// Lead of the other clock at `START`, in nanoseconds.
    offset_at_start: i64,
    drift_ppm: f64,
    /// Amplitude of the rate's oscillation, and its cycles per run.
    wander_ppm: f64,
    waves: f64,
    /// Minimum transit time of a frame, outbound and inbound.
    min_transit: (u64, u64),
    /// Maximum additional delay of one frame in ten; the others get a hundredth.
    max_extra: u64,
    span: u64,
    frames: u64,
    seed: u64,
}

const START: u64 = 1_000_000_000_000;
const ASSUMED: ClockAssumptions = ClockAssumptions { drift_ppm: 100.0, wander_ppm: 2.0 };

impl ClockPair {
    fn offset_at(&self, at: f64) -> f64 {
        let since = at - START as f64;
        let turn = core::f64::consts::TAU * self.waves / self.span as f64;
        // Its derivative is the wander.
        let wandered = self.wander_ppm * 1e-6 / turn * (turn * since).sin();
        self.offset_at_start as f64 + self.drift_ppm * 1e-6 * since + wandered
    }

    fn peer_time(&self, at: u64) -> u64 {
        (at as f64 + self.offset_at(at as f64)).floor() as u64
    }

    fn random(&self) -> impl FnMut() -> u64 + use<> {
        let mut state = self.seed | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
        }
    }

    fn exchanges(&self) -> Vec<RoundTrip> {
        let (mut random, clocks) = (self.random(), *self);
        let mut transit = move |min_transit: u64| {
            let max_extra = if random() % 10 == 0 { clocks.max_extra } else { clocks.max_extra / 100 };
            min_transit + random() % (max_extra + 1)
        };
        let every = self.span / self.frames;
        let exchange = |frame: u64| {
            let sent = START + frame * every;
            let arrived = sent + transit(self.min_transit.0);
            let answered = arrived + transit(1_000);
            let returned = answered + transit(self.min_transit.1);
            RoundTrip { sent, arrived: self.peer_time(arrived), answered: self.peer_time(answered), returned }
        };
        (0..self.frames).map(exchange).collect()
    }

    fn samples(&self) -> Samples {
        let mut samples = Samples::new();
        for RoundTrip { sent, arrived, answered, returned } in self.exchanges() {
            samples.record_inbound(answered, returned);
            samples.record_outbound(sent, arrived);
        }
        samples
    }

    fn times(&self) -> impl Iterator<Item = u64> {
        let span = self.span;
        (0..60).map(move |part| START - span / 4 + span / 40 * part)
    }

    /// Returns `true` if the bounds contain the truth at all times.
    fn is_bounded_by(&self, bounds: impl Fn(u64) -> Interval<i128>) -> bool {
        self.times().all(|at| {
            let (truth, Interval { low, high }) = (self.offset_at(at as f64), bounds(at));
            low as f64 <= truth && truth <= high as f64
        })
    }
}

fn clock_pairs() -> impl Strategy<Value = ClockPair> {
    let clocks = (-1_000_000_000_i64..1_000_000_000, -97.0..97.0, 0.0..2.0, 0.1..5.0);
    let network = (0_u64..200_000, 0_u64..200_000, 0_u64..5_000_000);
    (clocks, network, 1_000_000_u64..100_000_000_000, 2_u64..3_000, any::<u64>()).prop_map(
        |((offset, drift_ppm, wander_ppm, waves), (outbound, inbound, max_extra), span, frames, seed)| {
            ClockPair {
                offset_at_start: offset,
                drift_ppm,
                wander_ppm,
                waves,
                min_transit: (outbound, inbound),
                max_extra,
                span,
                frames,
                seed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases()))]
    #[test]
    fn true_offset_is_within_bounds(clocks in clock_pairs()) {
        let offset = clocks.samples().solve(&ASSUMED);
        prop_assert!(offset.is_ok(), "{offset:?}");
        prop_assert!(clocks.is_bounded_by(|at| offset.as_ref().unwrap().at(at)));
        let Interval { low, high } = offset.unwrap().drift_ppm();
        prop_assert!(low <= clocks.drift_ppm && clocks.drift_ppm <= high, "{low} {high}");
    }

    #[test]
    fn true_stages_are_within_errors_and_add_up(clocks in clock_pairs()) {
        let offset = clocks.samples().solve(&ASSUMED).unwrap();
        let (mut all, mut truths) = (Vec::new(), Vec::new());
        for readings in clocks.exchanges() {
            let stages = offset.stages(&readings).unwrap();
            prop_assert_eq!(i128::from(stages.out.ns) + i128::from(stages.there) + i128::from(stages.home.ns), i128::from(stages.whole));
            // Arrival time by this host's clock, solved by iteration.
            let mut arrived = readings.arrived as f64 - clocks.offset_at_start as f64;
            for _ in 0..20 {
                arrived = readings.arrived as f64 - clocks.offset_at(arrived);
            }
            let truth = arrived - readings.sent as f64;
            let (low, high) = stages.out.bounds();
            prop_assert!(low as f64 <= truth + 1.0 && truth <= high as f64 + 1.0, "{truth} {stages:?}");
            all.push(stages.out);
            truths.push(truth);
        }
        truths.sort_by(f64::total_cmp);
        for share in [0.0, 0.5, 0.99, 1.0] {
            let (low, high) = quantile(&all, share).unwrap().bounds();
            let rank = ((truths.len() as f64 * share).ceil() as usize).max(1) - 1;
            prop_assert!(low as f64 <= truths[rank] + 1.0 && truths[rank] <= high as f64 + 1.0);
        }
    }

    #[test]
    fn arbitrary_readings_are_handled_safely(readings in proptest::collection::vec(any::<(bool, u64, u64)>(), 0..50), at: u64) {
        let mut samples = Samples::new();
        for (is_outbound, sent, received) in readings {
            if is_outbound { samples.record_outbound(sent, received) } else { samples.record_inbound(sent, received) }
        }
        if let Ok(offset) = samples.solve(&ASSUMED) {
            let Interval { low, high } = offset.at(at);
            prop_assert!(low <= high);
            offset.stages(&RoundTrip { sent: at, arrived: at, answered: at, returned: at });
        }
    }
}

/// Realistic clocks and network: round trips of a third of a millisecond, two crystals, ten
/// seconds.
fn realistic_pair(seed: u64) -> ClockPair {
    let drift_ppm = (seed % 160) as f64 - 80.0;
    ClockPair {
        offset_at_start: 123_456_789,
        drift_ppm,
        wander_ppm: 1.9,
        waves: 1.0,
        min_transit: (50_000 + seed % 7 * 20_000, 50_000),
        max_extra: 300_000,
        span: 10_000_000_000,
        frames: 1_000,
        seed: seed + 1,
    }
}

#[test]
fn broken_estimators_are_detected() {
    type Estimator = fn(&ClockPair, &Offset, u64) -> Interval<i128>;
    let broken: [(&str, Estimator); 5] = [
        ("clocks do not drift", |_, offset, at| {
            Offset { rate: Interval { low: 0.0, high: 0.0 }, ..offset.clone() }.at(at)
        }),
        ("the rate follows from the first and last exchange alone", |clocks, offset, at| {
            let exchanges = clocks.exchanges();
            let (first, last) = (exchanges[0], exchanges[exchanges.len() - 1]);
            let ahead = |of: RoundTrip| {
                of.arrived.midpoint(of.answered) as f64 - of.sent.midpoint(of.returned) as f64
            };
            let rate = (ahead(last) - ahead(first)) / (last.sent - first.sent) as f64;
            Offset { rate: Interval { low: rate, high: rate }, ..offset.clone() }.at(at)
        }),
        ("both directions take nearly equal time", |_, offset, at| {
            let Interval { low, high } = offset.at(at);
            Interval { low: low + (high - low) / 3, high: high - (high - low) / 3 }
        }),
        ("the offset is constant", |clocks, offset, _| offset.at(START + clocks.span / 2)),
        ("the mean of all exchanges", |clocks, offset, at| {
            let ahead = |of: &RoundTrip| {
                i128::from(of.arrived) - i128::from(of.sent) + i128::from(of.answered)
                    - i128::from(of.returned)
            };
            let exchanges = clocks.exchanges();
            let mean = exchanges.iter().map(ahead).sum::<i128>() / (2 * exchanges.len() as i128);
            let Interval { low, high } = offset.at(at);
            Interval { low: mean - (high - low) / 2, high: mean + (high - low) / 2 }
        }),
    ];
    let solved: Vec<_> = (0..60)
        .map(|seed| (realistic_pair(seed), realistic_pair(seed).samples().solve(&ASSUMED).unwrap()))
        .collect();
    for (name, estimator) in broken {
        let is_found = |(clocks, offset): &(ClockPair, Offset)| {
            !clocks.is_bounded_by(|at| estimator(clocks, offset, at))
        };
        assert!(solved.iter().any(is_found), "{name}");
    }
    assert!(solved.iter().all(|(clocks, offset)| clocks.is_bounded_by(|at| offset.at(at))));
}

#[test]
fn bounds_are_close_to_quickest_round_trip() {
    for seed in 0..20 {
        let clocks = realistic_pair(seed);
        let offset = clocks.samples().solve(&ASSUMED).unwrap();
        let Interval { low, high } = offset.at(START + clocks.span / 2);
        let quickest = i128::from(clocks.min_transit.0 + clocks.min_transit.1);
        assert!(high - low < quickest + quickest / 4, "{} of {quickest}", high - low);
        let Interval { low, high } = offset.drift_ppm();
        assert!(high - low < 60.0, "{low} {high}");
    }
}

#[test]
fn clock_step_is_a_contradiction() {
    let clocks = realistic_pair(3);
    let mut samples = Samples::new();
    for (number, readings) in clocks.exchanges().iter().enumerate() {
        let set = if number < 500 { 0 } else { 2_000_000 };
        samples.record_inbound(readings.answered + set, readings.returned);
        samples.record_outbound(readings.sent, readings.arrived + set);
    }
    assert_eq!(samples.solve(&ASSUMED).err(), Some(OffsetError::Contradiction));
}

#[test]
fn one_way_frames_give_no_bounds() {
    let mut samples = Samples::new();
    assert_eq!(samples.solve(&ASSUMED).err(), Some(OffsetError::OneWay));
    samples.record_outbound(START, START);
    assert_eq!(samples.solve(&ASSUMED).err(), Some(OffsetError::OneWay));
}

#[test]
fn value_below_its_error_is_hidden() {
    let figure = |ns, error_ns| UncertainNs { ns, error_ns }.to_string();
    assert_eq!(figure(1_500, 20), "1500 ns ± 20 ns");
    assert_eq!(figure(-1_500, 20), "-1500 ns ± 20 ns");
    assert_eq!(figure(15, 20), "less than its error, 20 ns");
    assert_eq!(figure(20, 20), "less than its error, 20 ns");
}
