//! Synthetic and recorded repeats of runs, on which the tests try the comparison.

use super::seeded_rng::SeededRng;
use super::shift::Sample;

/// A noise model: computes a simulated measurement of the true value 1 from a normal, an
/// exponential and a uniform random number. The models are fitted to recorded runs.
pub type Noise = fn(normal: f64, burst: f64, chance: f64) -> f64;

/// A noise model of median latencies on a quiet machine: a few percent, slightly skewed.
pub const QUIET: Noise = |normal, burst, _| (0.02 * normal).exp() + 0.01 * burst;
/// A noise model of p99 latencies next to other load: one run in seven is disturbed, upwards only.
pub const DISTURBED: Noise =
    |normal, burst, chance| (0.05 * normal).exp() + if chance < 1.0 / 7.0 { 0.5 * burst } else { 0.0 };
/// A noise model of p99.9 latencies: a spread as large as the value, with a long upper tail.
pub const TAIL: Noise =
    |normal, burst, chance| (0.3 * normal).exp() + if chance < 0.2 { 2.0 * burst } else { 0.0 };
/// A noise model of a machine with a hidden slow state: one run in four takes 1.8 times as long.
/// The core-to-core round trip does not show the state.
pub const TWO_FACES: Noise =
    |normal, _, chance| (0.03 * normal).exp() * if chance < 0.25 { 1.8 } else { 1.0 };

fn draw(noise: Noise, draws: &mut SeededRng) -> f64 {
    noise(normal(draws), -draws.next_unit().ln(), draws.next_unit())
}

/// Draws a random number from the standard normal distribution.
pub fn normal(draws: &mut SeededRng) -> f64 {
    (-2.0 * draws.next_unit().ln()).sqrt() * (std::f64::consts::TAU * draws.next_unit()).cos()
}

/// Draws simulated values of settings A and B, in `repeats` pairs of runs; without noise A's value
/// is 1 and B's is `ratio`. Both runs of a pair share the disturbances of the whole repeat
/// (schedule, state of the machine).
pub fn pairs(noise: Noise, repeats: usize, ratio: f64, draws: &mut SeededRng) -> (Vec<Sample>, Vec<Sample>) {
    let pair = |_| {
        let shared = 1.0 + 0.1 * draws.next_unit();
        let mut run = |value: f64| Sample { value: shared * value * draw(noise, draws), placement: 0 };
        (run(1.0), run(ratio))
    };
    (0..repeats).map(pair).unzip()
}

/// A virtual machine's chances in each run, 0 to 1, to move near cores far apart, and to move far
/// cores near.
pub type CoreMoves = [f64; 2];

/// Draws latencies of settings A and B, in `repeats` pairs of runs on a machine that moves its
/// cores; B takes `difference` nanoseconds more. See [`moving_runs`].
pub fn moving_pairs(
    machine: Machine,
    repeats: usize,
    difference: f64,
    draws: &mut SeededRng,
) -> (Vec<Sample>, Vec<Sample>) {
    let [a, b] = moving_runs(machine, repeats, [0.0, difference], draws);
    (a, b)
}

/// A simulated machine: noise, chances of core moves, and spread of the factor that each repeat's
/// latencies share (standard deviation of its logarithm).
pub type Machine = (Noise, CoreMoves, f64);

/// Draws latencies of several settings, in nanoseconds, on a simulated machine whose cores move
/// near to and far from each other. 245 ns near, 645 ns far; each setting takes its own nanoseconds
/// more in both, with a resolution of 10 ns. One run in sixteen is moved and back within the run,
/// which its round trips do not show.
pub fn moving_runs<const N: usize>(
    (noise, moves, mood): Machine,
    repeats: usize,
    added_ns: [f64; N],
    draws: &mut SeededRng,
) -> [Vec<Sample>; N] {
    let mut is_far = false;
    let mut next = |_| {
        is_far ^= draws.next_unit() < moves[usize::from(is_far)];
        usize::from(is_far)
    };
    let placements: Vec<usize> = (0..N * repeats).map(&mut next).collect();
    let mut sides = [const { Vec::new() }; N];
    for repeat in 0..repeats {
        let shared = (mood * normal(draws)).exp();
        for (side, runs) in sides.iter_mut().enumerate() {
            // Settings take turns as the first of a repeat, as in a sweep.
            let placement = placements[N * repeat + (side + repeat) % N];
            let mut value =
                (if placement == 0 { 245.0 } else { 645.0 } + added_ns[side]) * draw(noise, draws) * shared;
            if draws.next_unit() < 1.0 / 16.0 {
                value += if placement == 0 { 400.0 } else { -400.0 } * draws.next_unit();
            }
            runs.push(Sample { value: 10.0 * (value / 10.0).round().max(1.0), placement });
        }
    }
    sides
}

/// Recorded median latencies (p50) of 40 runs of one setting, in nanoseconds, in run order. An
/// extreme case: consecutive runs differ up to threefold, depending on which process had the cores.
pub const P50_NS: [u32; 40] = [
    1574911, 4030463, 3008511, 8110079, 11862015, 10977279, 18038783, 15990783, 14778367, 7995391, 6934527,
    4571135, 6946815, 10207231, 7933951, 7987199, 9052159, 8101887, 7020543, 7852031, 4020223, 2992127,
    3997695, 4007935, 4034559, 4849663, 8036351, 9109503, 12124159, 12001279, 6635519, 9420799, 6410239,
    9986047, 8212479, 4714495, 10706943, 5435391, 9453567, 7913471,
];
/// Measured 99.9th percentiles (p99.9) of the runs of [`P50_NS`], in nanoseconds.
pub const P999_NS: [u32; 40] = [
    11296767, 11468799, 14032895, 28004388, 50874959, 28015515, 45981170, 43558287, 28043857, 20075452,
    20070399, 16112271, 16515071, 55934796, 36208639, 28040132, 51806207, 34504503, 54642098, 32227327,
    44105727, 19709951, 50921471, 12009312, 12058004, 24494079, 22642687, 24035327, 28000255, 30434643,
    20037631, 39497650, 25261748, 31166425, 28950527, 28557311, 24015950, 24910974, 27966732, 23855103,
];

/// Recorded core-to-core round trips, in nanoseconds, before each of 48 runs on the same machine
/// when it was quiet. The runs are of `spsc-mux` and `channel` (equal at p50) at three isolation
/// levels (also equal). The virtual machine's cores were far apart in 11 runs, and were moved
/// during one.
pub const FLOORS_NS: [u32; 48] = [
    310, 312, 319, 316, 319, 316, 46, 334, 333, 338, 340, 41, 45, 45, 45, 45, 45, 45, 278, 46, 46, 41, 47,
    47, 47, 45, 45, 45, 45, 41, 47, 43, 47, 47, 47, 47, 47, 46, 45, 45, 45, 45, 40, 45, 45, 45, 45, 48,
];
/// Recorded median (p50) of rt_venue, the round trip without the venue's time, in each run of
/// [`FLOORS_NS`], in nanoseconds.
pub const QUIET_P50_NS: [u32; 48] = [
    641, 641, 641, 650, 641, 641, 421, 651, 647, 650, 651, 260, 250, 240, 240, 240, 240, 250, 641, 240, 240,
    240, 250, 250, 240, 239, 240, 240, 240, 241, 240, 240, 240, 246, 246, 250, 240, 240, 241, 242, 250, 250,
    230, 230, 230, 250, 249, 242,
];
