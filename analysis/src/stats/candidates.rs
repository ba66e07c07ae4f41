//! The methods that were tried before one was chosen, and the made-up repeats that they were tried on.
//!
//! `BULKHEAD_SLOW=1 cargo test -p launcher --lib candidates -- --nocapture` prints the table that [`super::interval`]
//! quotes: how often each method calls two equal settings different, and how often it sees a real difference.

use super::draws::Draws;
use super::sample::median;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// How the figure of one run scatters around its setting's true value; like the percentiles of recorded runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Noise {
    /// A median on a quiet machine: a few percent, a little skewed.
    Quiet,
    /// A p99 beside other load: one run in seven is disturbed, upwards only.
    Disturbed,
    /// A p99.9: as wide as the value, with a long tail upwards.
    Tail,
    /// A machine with two faces: one run in four lies 1.8 times as high.
    TwoFaces,
}

impl Noise {
    pub(crate) const ALL: [Noise; 4] = [Noise::Quiet, Noise::Disturbed, Noise::Tail, Noise::TwoFaces];

    /// One run's figure where the true value is 1.
    pub(crate) fn draw(self, draws: &mut Draws) -> f64 {
        let normal = (-2.0 * draws.unit().ln()).sqrt() * (std::f64::consts::TAU * draws.unit()).cos();
        let burst = -draws.unit().ln();
        let chance = draws.unit();
        match self {
            Noise::Quiet => (0.02 * normal).exp() + 0.01 * burst,
            Noise::Disturbed => (0.05 * normal).exp() + if chance < 1.0 / 7.0 { 0.5 * burst } else { 0.0 },
            Noise::Tail => (0.3 * normal).exp() + if chance < 0.2 { 2.0 * burst } else { 0.0 },
            Noise::TwoFaces => (0.03 * normal).exp() * if chance < 0.25 { 1.8 } else { 1.0 },
        }
    }

    /// `repeats` of two settings whose true values are 1 and `ratio`, alternated: what disturbs a repeat as a whole
    /// (its schedule, the machine's mood) both share.
    pub(crate) fn pairs(self, repeats: usize, ratio: f64, draws: &mut Draws) -> (Vec<f64>, Vec<f64>) {
        let pair = |_| {
            let shared = 1.0 + 0.1 * draws.unit();
            (shared * self.draw(draws), shared * ratio * self.draw(draws))
        };
        (0..repeats).map(pair).unzip()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn standard_error(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (values.len() - 1) as f64 / values.len() as f64).sqrt()
}

fn logs(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect()
}

fn ratio_of_medians(a: &[f64], b: &[f64], picked: &[usize]) -> f64 {
    let of = |values: &[f64]| median(&picked.iter().map(|i| values[*i]).collect::<Vec<_>>()).unwrap();
    (of(b) / of(a)).ln()
}

fn resampled(n: usize, draws: &mut Draws) -> Vec<usize> {
    (0..n).map(|_| draws.below(n)).collect()
}

const RESAMPLES: usize = 400;

fn percentile(a: &[f64], b: &[f64], draws: &mut Draws) -> (f64, f64) {
    let mut found: Vec<f64> =
        (0..RESAMPLES).map(|_| ratio_of_medians(a, b, &resampled(a.len(), draws))).collect();
    found.sort_by(f64::total_cmp);
    (found[RESAMPLES / 40], found[RESAMPLES - 1 - RESAMPLES / 40])
}

fn bca(a: &[f64], b: &[f64], draws: &mut Draws) -> (f64, f64) {
    let n = a.len();
    let all: Vec<usize> = (0..n).collect();
    let estimate = ratio_of_medians(a, b, &all);
    let mut found: Vec<f64> = (0..RESAMPLES).map(|_| ratio_of_medians(a, b, &resampled(n, draws))).collect();
    found.sort_by(f64::total_cmp);
    let normal = Normal::standard();
    let below = found.iter().filter(|v| **v < estimate).count() as f64
        + 0.5 * found.iter().filter(|v| **v == estimate).count() as f64;
    let z0 = normal.inverse_cdf((below / RESAMPLES as f64).clamp(1e-3, 1.0 - 1e-3));
    let without: Vec<f64> = (0..n)
        .map(|i| ratio_of_medians(a, b, &all.iter().copied().filter(|j| *j != i).collect::<Vec<_>>()))
        .collect();
    let middle = mean(&without);
    let (cubes, squares) = without.iter().fold((0.0, 0.0), |(c, s), v| {
        let d = middle - v;
        (c + d * d * d, s + d * d)
    });
    let acceleration = if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 };
    let at = |z: f64| {
        let level = normal.cdf(z0 + (z0 + z) / (1.0 - acceleration * (z0 + z)));
        found[((level * RESAMPLES as f64) as usize).min(RESAMPLES - 1)]
    };
    (at(-1.96), at(1.96))
}

fn t_interval(a: &[f64], b: &[f64]) -> (f64, f64) {
    let logs = logs(a, b);
    let t = StudentsT::new(0.0, 1.0, (logs.len() - 1) as f64).unwrap().inverse_cdf(0.975);
    let reach = t * standard_error(&logs);
    (mean(&logs) - reach, mean(&logs) + reach)
}

fn bootstrap_t(a: &[f64], b: &[f64], draws: &mut Draws) -> (f64, f64) {
    let logs = logs(a, b);
    let middle = mean(&logs);
    let mut found: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let again: Vec<f64> = resampled(logs.len(), draws).into_iter().map(|i| logs[i]).collect();
            let error = standard_error(&again);
            (error > 0.0).then(|| (mean(&again) - middle) / error)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let error = standard_error(&logs);
    let edge = found.len() / 40;
    (middle - found[found.len() - 1 - edge] * error, middle - found[edge] * error)
}

/// The Hodges–Lehmann interval: Walsh averages, cut by the exact distribution of Wilcoxon's signed-rank sum.
fn signed_rank(a: &[f64], b: &[f64]) -> (f64, f64) {
    let logs = logs(a, b);
    let pairs = logs.iter().enumerate();
    let mut walsh: Vec<f64> =
        pairs.flat_map(|(i, x)| logs[i..].iter().map(move |y| f64::midpoint(*x, *y))).collect();
    walsh.sort_by(f64::total_cmp);
    let mut shares = vec![0.0f64; walsh.len() + 1];
    shares[0] = 1.0;
    for rank in 1..=logs.len() {
        for sum in (0..shares.len()).rev() {
            shares[sum] = f64::midpoint(shares[sum], if sum >= rank { shares[sum - rank] } else { 0.0 });
        }
    }
    let mut tail = 0.0;
    let held = shares.iter().take_while(|share| {
        tail += **share;
        2.0 * tail <= 0.05
    });
    let cut = held.count().saturating_sub(1);
    (walsh[cut], walsh[walsh.len() - 1 - cut])
}

#[test]
fn how_often_each_method_sees_a_difference() {
    if std::env::var_os("BULKHEAD_SLOW").is_none() {
        eprintln!("SKIPPED: set BULKHEAD_SLOW=1 to print the table in the documentation; nothing to assert");
        return;
    }
    type Method = (&'static str, fn(&[f64], &[f64], &mut Draws) -> (f64, f64));
    let methods: [Method; 5] = [
        ("percentile bootstrap", percentile),
        ("BCa bootstrap", bca),
        ("bootstrap-t", bootstrap_t),
        ("t interval", |a, b, _| t_interval(a, b)),
        ("signed ranks", |a, b, _| signed_rank(a, b)),
    ];
    const ROUNDS: usize = 1000;
    println!("share of 1,000 comparisons that exclude a ratio of 1: equal settings | B 10 % slower");
    for repeats in [5, 6, 8, 10, 20] {
        for (name, method) in methods {
            print!("{repeats:>3} {name:<22}");
            for noise in Noise::ALL {
                let mut seen = [0; 2];
                for (seen, ratio) in seen.iter_mut().zip([1.0, 1.1]) {
                    let mut draws = Draws::new(repeats as u64);
                    for _ in 0..ROUNDS {
                        let (a, b) = noise.pairs(repeats, ratio, &mut draws);
                        let (low, high) = method(&a, &b, &mut draws);
                        *seen += usize::from(low > 0.0 || high < 0.0);
                    }
                }
                let share = |seen: usize| 100.0 * seen as f64 / ROUNDS as f64;
                print!(" {noise:?} {:>4.1}|{:>5.1}", share(seen[0]), share(seen[1]));
            }
            println!();
        }
    }
}
