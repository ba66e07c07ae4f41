//! Clocks whose difference is known, because it is made up: it must lie within the bounds, always.

use super::offset::Interval;
use super::*;
use proptest::prelude::*;

/// Two clocks and a network. Times in nanoseconds of this host's clock.
#[derive(Clone, Copy, Debug)]
struct World {
    /// Lead of the other clock at `START`, in nanoseconds.
    apart: i64,
    drift_ppm: f64,
    /// Amplitude of the rate's oscillation, and its cycles per run.
    wander_ppm: f64,
    waves: f64,
    /// The least that a frame takes, out and home.
    least: (u64, u64),
    /// Maximum additional delay of one frame in ten; the others get a hundredth.
    more: u64,
    span: u64,
    frames: u64,
    seed: u64,
}

const START: u64 = 1_000_000_000_000;
const ASSUMED: ClockAssumptions = ClockAssumptions { drift_ppm: 100.0, wander_ppm: 2.0 };

impl World {
    fn apart(&self, at: f64) -> f64 {
        let since = at - START as f64;
        let turn = core::f64::consts::TAU * self.waves / self.span as f64;
        // Its derivative is the wander.
        let wandered = self.wander_ppm * 1e-6 / turn * (turn * since).sin();
        self.apart as f64 + self.drift_ppm * 1e-6 * since + wandered
    }

    fn there(&self, at: u64) -> u64 {
        (at as f64 + self.apart(at as f64)).floor() as u64
    }

    fn dice(&self) -> impl FnMut() -> u64 + use<> {
        let mut state = self.seed | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
        }
    }

    fn exchanges(&self) -> Vec<RoundTrip> {
        let (mut dice, world) = (self.dice(), *self);
        let mut takes = move |least: u64| {
            let more = if dice() % 10 == 0 { world.more } else { world.more / 100 };
            least + dice() % (more + 1)
        };
        let every = self.span / self.frames;
        let one = |frame: u64| {
            let sent = START + frame * every;
            let arrived = sent + takes(self.least.0);
            let left = arrived + takes(1_000);
            let back = left + takes(self.least.1);
            RoundTrip { sent, arrived: self.there(arrived), left: self.there(left), back }
        };
        (0..self.frames).map(one).collect()
    }

    fn samples(&self) -> Samples {
        let mut samples = Samples::new();
        for RoundTrip { sent, arrived, left, back } in self.exchanges() {
            samples.record_inbound(left, back);
            samples.record_outbound(sent, arrived);
        }
        samples
    }

    fn times(&self) -> impl Iterator<Item = u64> {
        let span = self.span;
        (0..60).map(move |part| START - span / 4 + span / 40 * part)
    }

    /// Returns `true` if the bounds contain the truth at all times.
    fn is_held_by(&self, bounds: impl Fn(u64) -> Interval<i128>) -> bool {
        self.times().all(|at| {
            let (truth, Interval { low, high }) = (self.apart(at as f64), bounds(at));
            low as f64 <= truth && truth <= high as f64
        })
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let clocks = (-1_000_000_000_i64..1_000_000_000, -97.0..97.0, 0.0..2.0, 0.1..5.0);
    let network = (0_u64..200_000, 0_u64..200_000, 0_u64..5_000_000);
    (clocks, network, 1_000_000_u64..100_000_000_000, 2_u64..3_000, any::<u64>()).prop_map(
        |((apart, drift_ppm, wander_ppm, waves), (out, home, more), span, frames, seed)| World {
            apart,
            drift_ppm,
            wander_ppm,
            waves,
            least: (out, home),
            more,
            span,
            frames,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases()))]
    #[test]
    fn the_true_offset_is_always_within_the_bounds(world in worlds()) {
        let offset = world.samples().solve(&ASSUMED);
        prop_assert!(offset.is_ok(), "{offset:?}");
        prop_assert!(world.is_held_by(|at| offset.as_ref().unwrap().at(at)));
        let Interval { low, high } = offset.unwrap().drift_ppm();
        prop_assert!(low <= world.drift_ppm && world.drift_ppm <= high, "{low} {high}");
    }

    #[test]
    fn true_stages_are_within_errors_and_add_up(world in worlds()) {
        let offset = world.samples().solve(&ASSUMED).unwrap();
        let (mut all, mut truths) = (Vec::new(), Vec::new());
        for readings in world.exchanges() {
            let legs = offset.stages(&readings).unwrap();
            prop_assert_eq!(i128::from(legs.out.ns) + i128::from(legs.there) + i128::from(legs.home.ns), i128::from(legs.whole));
            // When it arrived, by this host's clock: solved for in a few steps.
            let mut arrived = readings.arrived as f64 - world.apart as f64;
            for _ in 0..20 {
                arrived = readings.arrived as f64 - world.apart(arrived);
            }
            let truth = arrived - readings.sent as f64;
            let (low, high) = legs.out.bounds();
            prop_assert!(low as f64 <= truth + 1.0 && truth <= high as f64 + 1.0, "{truth} {legs:?}");
            all.push(legs.out);
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
        for (goes, one, other) in readings {
            if goes { samples.record_outbound(one, other) } else { samples.record_inbound(one, other) }
        }
        if let Ok(offset) = samples.solve(&ASSUMED) {
            let Interval { low, high } = offset.at(at);
            prop_assert!(low <= high);
            offset.stages(&RoundTrip { sent: at, arrived: at, left: at, back: at });
        }
    }
}

/// A world as they are: a third of a millisecond, two crystals, ten seconds.
fn plain(seed: u64) -> World {
    let drift_ppm = (seed % 160) as f64 - 80.0;
    World {
        apart: 123_456_789,
        drift_ppm,
        wander_ppm: 1.9,
        waves: 1.0,
        least: (50_000 + seed % 7 * 20_000, 50_000),
        more: 300_000,
        span: 10_000_000_000,
        frames: 1_000,
        seed: seed + 1,
    }
}

#[test]
fn broken_estimators_are_found() {
    type Estimator = fn(&World, &Offset, u64) -> Interval<i128>;
    let broken: [(&str, Estimator); 5] = [
        ("clocks do not drift", |_, offset, at| {
            Offset { rate: Interval { low: 0.0, high: 0.0 }, ..offset.clone() }.at(at)
        }),
        ("the rate is that between the first exchange and the last", |world, offset, at| {
            let exchanges = world.exchanges();
            let (first, last) = (exchanges[0], exchanges[exchanges.len() - 1]);
            let ahead =
                |of: RoundTrip| of.arrived.midpoint(of.left) as f64 - of.sent.midpoint(of.back) as f64;
            let rate = (ahead(last) - ahead(first)) / (last.sent - first.sent) as f64;
            Offset { rate: Interval { low: rate, high: rate }, ..offset.clone() }.at(at)
        }),
        ("both ways take the same, nearly", |_, offset, at| {
            let Interval { low, high } = offset.at(at);
            Interval { low: low + (high - low) / 3, high: high - (high - low) / 3 }
        }),
        ("before and after is as in the middle", |world, offset, _| offset.at(START + world.span / 2)),
        ("the mean of all exchanges", |world, offset, at| {
            let ahead = |of: &RoundTrip| {
                i128::from(of.arrived) - i128::from(of.sent) + i128::from(of.left) - i128::from(of.back)
            };
            let exchanges = world.exchanges();
            let mean = exchanges.iter().map(ahead).sum::<i128>() / (2 * exchanges.len() as i128);
            let Interval { low, high } = offset.at(at);
            Interval { low: mean - (high - low) / 2, high: mean + (high - low) / 2 }
        }),
    ];
    let solved: Vec<_> =
        (0..60).map(|seed| (plain(seed), plain(seed).samples().solve(&ASSUMED).unwrap())).collect();
    for (name, estimator) in broken {
        let is_found =
            |(world, offset): &(World, Offset)| !world.is_held_by(|at| estimator(world, offset, at));
        assert!(solved.iter().any(is_found), "{name}");
    }
    assert!(solved.iter().all(|(world, offset)| world.is_held_by(|at| offset.at(at))));
}

#[test]
fn bounds_are_close_to_quickest_round_trip() {
    for seed in 0..20 {
        let world = plain(seed);
        let offset = world.samples().solve(&ASSUMED).unwrap();
        let Interval { low, high } = offset.at(START + world.span / 2);
        let quickest = i128::from(world.least.0 + world.least.1);
        assert!(high - low < quickest + quickest / 4, "{} of {quickest}", high - low);
        let Interval { low, high } = offset.drift_ppm();
        assert!(high - low < 60.0, "{low} {high}");
    }
}

#[test]
fn a_clock_that_is_set_is_a_contradiction() {
    let world = plain(3);
    let mut samples = Samples::new();
    for (place, readings) in world.exchanges().iter().enumerate() {
        let set = if place < 500 { 0 } else { 2_000_000 };
        samples.record_inbound(readings.left + set, readings.back);
        samples.record_outbound(readings.sent, readings.arrived + set);
    }
    assert_eq!(samples.solve(&ASSUMED).err(), Some(OffsetError::Contradiction));
}

#[test]
fn frames_of_one_direction_say_nothing() {
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
