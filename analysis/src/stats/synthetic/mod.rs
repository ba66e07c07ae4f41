//! Synthetic and recorded repeats of runs, on which the tests try the comparison.

pub(crate) mod recorded;

use super::seeded_rng::SeededRng;
use super::shift::Sample;

/// A model of the noise of repeated measurements, fitted to recorded runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Noise {
    /// A median on a quiet machine: a few percent, slightly skewed.
    Quiet,
    /// A p99 next to other load: one run in seven is disturbed, upwards only.
    Disturbed,
    /// A p99.9: a spread as large as the value, with a long upper tail.
    Tail,
    /// A machine in one of two states that the core-to-core round trip does not show: one run in
    /// four is 1.8 times as slow.
    TwoFaces,
}

impl Noise {
    pub(crate) const ALL: [Noise; 4] = [Noise::Quiet, Noise::Disturbed, Noise::Tail, Noise::TwoFaces];

    /// Draws the measured value of one run whose true value is 1.
    pub(crate) fn draw(self, draws: &mut SeededRng) -> f64 {
        let (normal, burst, chance) = (normal(draws), -draws.next_unit().ln(), draws.next_unit());
        match self {
            Noise::Quiet => (0.02 * normal).exp() + 0.01 * burst,
            Noise::Disturbed => (0.05 * normal).exp() + if chance < 1.0 / 7.0 { 0.5 * burst } else { 0.0 },
            Noise::Tail => (0.3 * normal).exp() + if chance < 0.2 { 2.0 * burst } else { 0.0 },
            Noise::TwoFaces => (0.03 * normal).exp() * if chance < 0.25 { 1.8 } else { 1.0 },
        }
    }

    /// Draws the measured values of `repeats` pairs of runs whose true values are 1 and `ratio`.
    /// Both runs of a pair share the disturbances of the whole repeat (schedule, state of the
    /// machine).
    pub(crate) fn pairs(self, repeats: usize, ratio: f64, draws: &mut SeededRng) -> (Vec<f64>, Vec<f64>) {
        let pair = |_| {
            let shared = 1.0 + 0.1 * draws.next_unit();
            (shared * self.draw(draws), shared * ratio * self.draw(draws))
        };
        (0..repeats).map(pair).unzip()
    }
}

fn normal(draws: &mut SeededRng) -> f64 {
    (-2.0 * draws.next_unit().ln()).sqrt() * (std::f64::consts::TAU * draws.next_unit()).cos()
}

/// A model of how often a virtual machine moves its cores.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CoreMoves {
    /// The cores never move.
    Never,
    /// The cores are far from each other in one run in two.
    Half,
    /// The placement lasts for about seven runs.
    Slowly,
    /// The cores are far from each other in one run in eight.
    Rarely,
}

impl CoreMoves {
    pub(crate) const ALL: [CoreMoves; 4] =
        [CoreMoves::Never, CoreMoves::Half, CoreMoves::Slowly, CoreMoves::Rarely];

    /// Draws the placements of `runs` runs: 0 near, 1 far.
    fn placements(self, runs: usize, draws: &mut SeededRng) -> Vec<usize> {
        let mut far = draws.next_unit() < 0.5;
        let mut next = |_| match self {
            CoreMoves::Never => 0,
            CoreMoves::Half => usize::from(draws.next_unit() < 0.5),
            CoreMoves::Rarely => usize::from(draws.next_unit() < 0.125),
            CoreMoves::Slowly => {
                far ^= draws.next_unit() < 1.0 / 7.0;
                usize::from(far)
            }
        };
        (0..runs).map(&mut next).collect()
    }
}

/// Draws pairs of runs on a simulated machine that moves its cores. 245 ns near, 645 ns far, B
/// takes `difference` nanoseconds more in both, with a resolution of 10 ns. One run in sixteen is
/// moved and back within the run, which its round trips do not show. `mood` is the spread between
/// pairs (standard deviation of the logarithm).
pub(crate) fn moving_pairs(
    (noise, moves, mood): (Noise, CoreMoves, f64),
    repeats: usize,
    difference: f64,
    draws: &mut SeededRng,
) -> (Vec<Sample>, Vec<Sample>) {
    let placements = moves.placements(2 * repeats, draws);
    let pair = |repeat: usize| {
        let shared = (mood * normal(draws)).exp();
        let mut run = |index: usize, difference: f64| {
            let placement = placements[index];
            let mut value =
                (if placement == 0 { 245.0 } else { 645.0 } + difference) * noise.draw(draws) * shared;
            if draws.next_unit() < 1.0 / 16.0 {
                value += if placement == 0 { 400.0 } else { -400.0 } * draws.next_unit();
            }
            Sample { value: 10.0 * (value / 10.0).round().max(1.0), placement }
        };
        // A and B alternate as the first of a pair, as in a sweep.
        let first = repeat % 2;
        (run(2 * repeat + first, 0.0), run(2 * repeat + 1 - first, difference))
    };
    (0..repeats).map(pair).unzip()
}
