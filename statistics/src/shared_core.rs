//! A model of parked strategies that share a core: CPU time and latency of an order there, if the
//! strategies are threads and if they are processes.
//!
//! # The model
//!
//! An order wakes its strategy when it is due and when its report comes. A wake-up serves all that
//! has arrived by then, so wake-ups an order fall with the rate of a strategy; and a core that was
//! idle takes longer for what wakes it.
//!
//! ```text
//! wake-ups an order     s = 2 / (1 + τ · R/N)
//! CPU of a thread       C = b + s · w + i · (1 − ρ),  ρ = R · C
//!     of a process      C + s · c · (1 − 1/N)
//! p50 of a thread       e + f · ρ · √(N − 1) + ρ⁴ · (g + h · (N − 1))
//!     of a process      that · (1 + k · ρ · √(N − 1))
//! ```
//!
//! `1 − 1/N` is the share of switches that lead to another strategy. ρ is that of threads: how
//! often orders find an idle core depends on when they arrive. An order waits for strategies that
//! were woken before it, of which there are more with N and with ρ, and a process makes each of
//! them longer. The form of p50 is empirical: of twelve it had the smallest error over two grids of
//! 40 cells each on two machines. `C` is fitted by least squares of relative errors, none of its
//! parameters below 0; p50 by least absolute ones, because cells in which the host put an idle core
//! to sleep are off by a factor. Beyond [`MAX_UTILIZATION`] there is no latency: what limits
//! batches there is not in the model.

use serde::{Deserialize, Serialize};

/// The highest utilization of a shared CPU core, 0 to 1, for which the model predicts latencies.
pub const MAX_UTILIZATION: f64 = 0.95;
/// Minimum number of measured cells (combinations of strategy count and order rate) for a fit of
/// the shared-core model. The model has five parameters of CPU time, and five of latency.
pub const MIN_CELLS: usize = 5;
/// Wake-ups that an order has alone: when it is due, and when its report comes.
const WAKES: f64 = 2.0;
/// Iterations of a fit: each parameter in turn.
const ITERATIONS: usize = 1_500;
/// Values of the cost of an idle core that are tried beside 0: up to 178 µs, a third more each.
const IDLE_COSTS: usize = 28;
/// Rounds in which equations lose weight by their errors, and the error from which they do.
const ROUNDS: usize = 20;
const FULL_WEIGHT: f64 = 0.02;
/// Steps of the search between two of them.
const IDLE_STEPS: usize = 25;
/// Quantile of the normal distribution for an interval at 95 %.
const Z: f64 = 1.96;

/// The measured CPU time and latency of strategies that share a CPU core, at one order rate. Pairs
/// are of threads and of processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreCell {
    /// Number of strategies that share the core.
    pub strategies: f64,
    /// Orders a second of all strategies on the core together.
    pub rate_per_s: f64,
    /// Wake-ups per order of strategies that found nothing to do.
    pub idle_wakes: f64,
    /// Context switches per order of the strategies, as threads and as processes.
    pub switches: [f64; 2],
    /// CPU time of strategies per order, as threads and as processes, in nanoseconds.
    pub cpu_ns: [f64; 2],
    /// Median latency from the due time, as threads and as processes, in nanoseconds.
    pub p50_ns: [f64; 2],
}

/// The model's prediction for strategies that share a CPU core: CPU time, utilization and median
/// latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorePrediction {
    /// CPU time of strategies per order, in nanoseconds.
    pub cpu_ns: f64,
    /// Share of the core that the strategies use; above 1 they cannot keep up with the rate.
    pub utilization: f64,
    /// Order rate, in orders a second, at which the model predicts a fully used core. The core
    /// carries more than that: batches grow further than in the formula, which predicts no latency
    /// there.
    #[serde(alias = "ceiling_per_s")]
    pub full_per_s: f64,
    /// Median latency from the due time, in nanoseconds; null beyond [`MAX_UTILIZATION`].
    pub p50_ns: Option<f64>,
    /// The ends of the 95 % interval of the median latency, in nanoseconds.
    pub p50_interval_ns: Option<[f64; 2]>,
}

/// The parameters of the shared-core model, fitted to measurements, and its errors on measurements
/// that were left out of the fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedCoreModel {
    /// Time constant `τ` of batching, in nanoseconds: at a wake-up rate of 1/τ the wake-ups are
    /// halved.
    pub batching_ns: f64,
    /// CPU time of an order without its wake-ups: `b`, in nanoseconds.
    pub body_ns: f64,
    /// CPU time of a wake-up: `w`, in nanoseconds.
    pub wake_ns: f64,
    /// Additional CPU time of an order on a core that is otherwise idle: `i`, in nanoseconds.
    pub idle_ns: f64,
    /// CPU time that a process adds to a wake-up: `c`, in nanoseconds.
    pub switch_ns: f64,
    /// Parameters of the latency: `e`, `f`, `g`, `h` in nanoseconds, and `k`.
    pub latency: [f64; 5],
    /// Prediction error of p50: the standard deviation of the logarithm of predicted over measured,
    /// for cells that were left out of the fit. Null with too few cells.
    pub p50_error: Option<f64>,
    /// Prediction error of the latency that a process adds to p50: the standard deviation in
    /// nanoseconds, for cells that were left out of the fit.
    pub added_error_ns: Option<f64>,
    /// Number of measured cells to which the model is fitted.
    pub cells: usize,
    /// The highest order rate of a fitted cell, in orders a second.
    pub max_rate_per_s: f64,
}

/// One equation of a fit: the factors of the parameters, their sum, and the measured value to which
/// its error is relative.
type Equation<const N: usize> = ([f64; N], f64, f64);

impl SharedCoreModel {
    /// Fits the model of strategies that share a CPU core to measured costs. `None` with too few of
    /// them, or without a difference between their numbers of strategies.
    pub fn fit(cells: &[CoreCell]) -> Option<Self> {
        let mut model = Self::fit_once(cells)?;
        // Each cell predicted from all others.
        let mut errors = (Vec::new(), Vec::new());
        for (left_out, cell) in cells.iter().enumerate() {
            let others: Vec<CoreCell> =
                cells.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, cell)| *cell).collect();
            let Some(other) = Self::fit_once(&others) else { continue };
            let [thread, process] =
                [0, 1].map(|level| other.p50_at(cell.strategies, cell.rate_per_s, cell.idle_wakes, level));
            let of_level = [thread, process].into_iter().zip(cell.p50_ns);
            errors.0.extend(of_level.filter_map(|(predicted, measured)| Some((predicted? / measured).ln())));
            if let (Some(thread), Some(process)) = (thread, process) {
                errors.1.push((process - thread) - (cell.p50_ns[1] - cell.p50_ns[0]));
            }
        }
        (model.p50_error, model.added_error_ns) = (deviation(&errors.0), deviation(&errors.1));
        Some(model)
    }

    fn fit_once(cells: &[CoreCell]) -> Option<Self> {
        let is_whole = |cell: &&CoreCell| {
            let figures = [cell.switches, cell.cpu_ns, cell.p50_ns].concat();
            figures
                .into_iter()
                .chain([cell.strategies, cell.rate_per_s])
                .all(|value| value.is_finite() && value > 0.0)
        };
        let cells: Vec<&CoreCell> = cells.iter().filter(is_whole).collect();
        let is_other = |cell: &&&CoreCell| cell.strategies != cells[0].strategies;
        if cells.len() < MIN_CELLS - 1 || cells.iter().find(is_other).is_none() {
            return None;
        }
        let both = || cells.iter().flat_map(|cell| [(*cell, 0), (*cell, 1)]);
        let batching_ns = batching_ns(&cells)?;
        let with_idle_cost = |idle_ns: f64| {
            let of = |(cell, level): (&CoreCell, usize)| {
                let share = 1.0 + cell.rate_per_s * idle_ns / 1e9;
                let wakes = wakes(batching_ns, cell.strategies, cell.rate_per_s) + cell.idle_wakes;
                let factors = [1.0 / share, wakes / share, wakes * switch_share(cell.strategies, level)];
                (factors, cell.cpu_ns[level] - idle_ns / share, cell.cpu_ns[level])
            };
            let equations: Vec<Equation<3>> = both().map(of).collect();
            let found = least_squares(&equations);
            (squares(&equations, &found), idle_ns, found)
        };
        let tried: Vec<f64> = [0.0]
            .into_iter()
            .chain((0..IDLE_COSTS).map(|step| 100.0 * 4f64.powf(step as f64 / 5.0)))
            .collect();
        let first_tries = tried.iter().map(|idle_ns| with_idle_cost(*idle_ns));
        let (at, first) = first_tries.enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        // The best of the tried values, then a ternary search between its neighbors.
        let (mut low, mut high) = (tried[at.saturating_sub(1)], tried[(at + 1).min(IDLE_COSTS)]);
        for _ in 0..IDLE_STEPS {
            let third = (high - low) / 3.0;
            if with_idle_cost(low + third).0 < with_idle_cost(high - third).0 {
                high -= third;
            } else {
                low += third;
            }
        }
        let last = with_idle_cost(f64::midpoint(low, high));
        let best = if last.0 < first.0 { last } else { first };
        let (_, idle_ns, [body_ns, wake_ns, switch_ns]) = best;
        let mut model = Self {
            batching_ns,
            body_ns,
            wake_ns,
            idle_ns,
            switch_ns,
            latency: [0.0; 5],
            p50_error: None,
            added_error_ns: None,
            cells: cells.len(),
            max_rate_per_s: cells.iter().map(|cell| cell.rate_per_s).fold(0.0, f64::max),
        };
        let factors = |cell: &CoreCell| {
            model
                .latency_factors(cell.strategies, cell.rate_per_s, cell.idle_wakes)
                .map(|found| (found, *cell))
        };
        let factors: Vec<([f64; 4], CoreCell)> = cells.iter().filter_map(|cell| factors(cell)).collect();
        let of_threads = |(factors, cell): &([f64; 4], CoreCell)| (*factors, cell.p50_ns[0], cell.p50_ns[0]);
        let [e, f, g, h] = least_deviations(&factors.iter().map(of_threads).collect::<Vec<_>>());
        let of_ratio = |(factors, cell): &([f64; 4], CoreCell)| {
            let ratio = cell.p50_ns[1] / cell.p50_ns[0];
            ([factors[1]], ratio - 1.0, ratio)
        };
        let [k] = least_deviations(&factors.iter().map(of_ratio).collect::<Vec<_>>());
        model.latency = [e, f, g, h, k];
        Some(model)
    }

    /// Returns the CPU time of an order, in nanoseconds.
    fn cpu_at(&self, strategies: f64, rate_per_s: f64, idle_wakes: f64, level: usize) -> f64 {
        let wakes = wakes(self.batching_ns, strategies, rate_per_s) + idle_wakes;
        let thread_ns =
            (self.body_ns + self.idle_ns + wakes * self.wake_ns) / (1.0 + rate_per_s * self.idle_ns / 1e9);
        thread_ns + wakes * self.switch_ns * switch_share(strategies, level)
    }

    /// Returns the factors of the parameters of a thread's latency; `None` where the core is nearly
    /// full.
    fn latency_factors(&self, strategies: f64, rate_per_s: f64, idle_wakes: f64) -> Option<[f64; 4]> {
        let utilization = rate_per_s * self.cpu_at(strategies, rate_per_s, idle_wakes, 0) / 1e9;
        let others = strategies - 1.0;
        (utilization <= MAX_UTILIZATION)
            .then(|| [1.0, utilization * others.sqrt(), utilization.powi(4), utilization.powi(4) * others])
    }

    fn p50_at(&self, strategies: f64, rate_per_s: f64, idle_wakes: f64, level: usize) -> Option<f64> {
        let factors = self.latency_factors(strategies, rate_per_s, idle_wakes)?;
        let [e, f, g, h, k] = self.latency;
        let p50_ns = dot(&factors, &[e, f, g, h]) * (1.0 + level as f64 * k * factors[1]);
        (p50_ns > 0.0).then_some(p50_ns)
    }

    /// Predicts the costs of `strategies` strategies on one core at `rate_per_s` orders a second,
    /// as threads and as processes. `idle_wakes` is the number of wake-ups per order of strategies
    /// that find nothing to do.
    pub fn predict(&self, strategies: f64, rate_per_s: f64, idle_wakes: f64) -> [CorePrediction; 2] {
        [0, 1].map(|level| {
            let cpu_ns = self.cpu_at(strategies, rate_per_s, idle_wakes, level);
            let p50_ns = self.p50_at(strategies, rate_per_s, idle_wakes, level);
            let factor = self.p50_error.map(|error| (Z * error).exp());
            CorePrediction {
                cpu_ns,
                utilization: rate_per_s * cpu_ns / 1e9,
                full_per_s: self.full_per_s(strategies, level),
                p50_ns,
                p50_interval_ns: p50_ns.zip(factor).map(|(ns, factor)| [ns / factor, ns * factor]),
            }
        })
    }

    /// Returns the rate at which the formula has the core full: utilization grows with the rate, so
    /// it is bisected.
    fn full_per_s(&self, strategies: f64, level: usize) -> f64 {
        let (mut low, mut high) = (0.0, 1e9);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            let is_full = middle * self.cpu_at(strategies, middle, 0.0, level) >= 1e9;
            *(if is_full { &mut high } else { &mut low }) = middle;
        }
        low
    }
}

/// Returns the wake-ups an order with this number of strategies at a rate.
fn wakes(batching_ns: f64, strategies: f64, rate_per_s: f64) -> f64 {
    WAKES / (1.0 + batching_ns / 1e9 * rate_per_s / strategies)
}

/// Returns the share of a strategy's switches that lead to another address space.
fn switch_share(strategies: f64, level: usize) -> f64 {
    if level == 0 { 0.0 } else { 1.0 - 1.0 / strategies.max(1.0) }
}

/// Returns `τ`: the median over cells and levels of what their switches say.
fn batching_ns(cells: &[&CoreCell]) -> Option<f64> {
    let of = |cell: &&CoreCell| {
        let (strategies, rate_per_s) = (cell.strategies, cell.rate_per_s);
        cell.switches.map(|switches| (WAKES / switches - 1.0).max(0.0) * strategies / rate_per_s * 1e9)
    };
    record::spread::median(&cells.iter().flat_map(of).collect::<Vec<f64>>())
}

/// Returns the parameters, none below 0, with the least squares of relative errors: each parameter
/// in turn is set to its best value (coordinate descent).
fn least_squares<const N: usize>(equations: &[Equation<N>]) -> [f64; N] {
    // Relative: each equation divided by its value. The sums over all are those of the method.
    let (mut products, mut sums) = ([[0.0; N]; N], [0.0; N]);
    for (factors, sum, value) in equations {
        let row = factors.map(|factor| factor / value);
        for at in 0..N {
            sums[at] += row[at] * sum / value;
            (0..N).for_each(|other| products[at][other] += row[at] * row[other]);
        }
    }
    let mut found = [0.0; N];
    for step in 0..ITERATIONS * N {
        let at = step % N;
        let square = products[at][at];
        if square > 0.0 {
            found[at] = f64::max(0.0, found[at] + (sums[at] - dot(&products[at], &found)) / square);
        }
    }
    found
}

/// Returns the parameters, none below 0, with about the least relative errors, not squared: least
/// squares in which equations lose weight by their errors (iteratively reweighted).
fn least_deviations<const N: usize>(equations: &[Equation<N>]) -> [f64; N] {
    let mut weighted = equations.to_vec();
    for _ in 0..ROUNDS {
        let found = least_squares(&weighted);
        weighted = equations
            .iter()
            .map(|(factors, sum, value)| {
                let error = ((dot(factors, &found) - sum) / value).abs();
                let weight = (FULL_WEIGHT / error.max(FULL_WEIGHT)).sqrt();
                (*factors, *sum, value / weight)
            })
            .collect();
    }
    least_squares(&weighted)
}

/// Returns the sum of the squares of the relative errors.
fn squares<const N: usize>(equations: &[Equation<N>], found: &[f64; N]) -> f64 {
    equations.iter().map(|(factors, sum, value)| ((dot(factors, found) - sum) / value).powi(2)).sum()
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the standard deviation of errors around 0; `None` with fewer than four.
fn deviation(errors: &[f64]) -> Option<f64> {
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    (errors.len() >= 4).then(|| (squares / (errors.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_rng::SeededRng;

    /// About what was published of a two-core EPYC: 24 to 27 µs of CPU at 20,000 orders/s and 15 µs
    /// at 50,000, of which a process adds 2 to 7 µs.
    const PLANTED: SharedCoreModel = SharedCoreModel {
        batching_ns: 460_000.0,
        body_ns: 5_000.0,
        wake_ns: 5_400.0,
        idle_ns: 30_000.0,
        switch_ns: 4_500.0,
        latency: [28_000.0, 16_000.0, 4_000.0, 10_000.0, 0.09],
        p50_error: None,
        added_error_ns: None,
        cells: 0,
        max_rate_per_s: 0.0,
    };

    /// Returns the cell that the planted model has, with noise of up to this share.
    fn cell(strategies: f64, rate_per_s: f64, noise: f64, draws: &mut SeededRng) -> CoreCell {
        let mut noisy = |value: f64| value * (1.0 + noise * (2.0 * draws.next_unit() - 1.0));
        let idle_wakes = 200.0 * strategies / rate_per_s;
        let p50 = |level| PLANTED.p50_at(strategies, rate_per_s, idle_wakes, level).unwrap_or(5e6);
        CoreCell {
            strategies,
            rate_per_s,
            idle_wakes,
            switches: [0; 2].map(|_: i32| noisy(wakes(PLANTED.batching_ns, strategies, rate_per_s))),
            cpu_ns: [0, 1].map(|level| noisy(PLANTED.cpu_at(strategies, rate_per_s, idle_wakes, level))),
            p50_ns: [0, 1].map(|level| noisy(p50(level))),
        }
    }

    fn calibration(noise: f64, seed: u64) -> Vec<CoreCell> {
        let mut draws = SeededRng::new(seed);
        let rates = |strategies| [15_000.0, 33_000.0, 55_000.0].map(|rate| (strategies, rate));
        let places = [2.0, 4.0, 16.0].into_iter().flat_map(rates);
        places.chain([(4.0, 10_000.0)]).map(|(n, rate)| cell(n, rate, noise, &mut draws)).collect()
    }

    /// Returns the greatest relative error of p50 and of CPU time over cells of other numbers and
    /// rates.
    fn errors(model: &SharedCoreModel) -> [f64; 2] {
        let (mut p50, mut cpu) = (0.0f64, 0.0f64);
        for (strategies, rate_per_s) in [(1.0, 20_000.0), (8.0, 25_000.0), (8.0, 45_000.0), (32.0, 20_000.0)]
        {
            let both = model
                .predict(strategies, rate_per_s, 0.0)
                .into_iter()
                .zip(PLANTED.predict(strategies, rate_per_s, 0.0));
            for (found, planted) in both {
                cpu = cpu.max((found.cpu_ns / planted.cpu_ns - 1.0).abs());
                if let (Some(found), Some(planted)) = (found.p50_ns, planted.p50_ns) {
                    p50 = p50.max((found / planted - 1.0).abs());
                }
            }
        }
        [p50, cpu]
    }

    #[test]
    fn planted_parameters_are_found_without_noise() {
        let model = SharedCoreModel::fit(&calibration(0.0, 1)).unwrap();
        assert!((model.batching_ns / PLANTED.batching_ns - 1.0).abs() < 1e-6, "{model:?}");
        assert!((model.switch_ns / PLANTED.switch_ns - 1.0).abs() < 0.05, "{model:?}");
        assert!((model.wake_ns / PLANTED.wake_ns - 1.0).abs() < 0.1, "{model:?}");
        let [p50, cpu] = errors(&model);
        assert!(p50 < 0.02 && cpu < 0.02, "{p50} {cpu}");
        assert!(model.p50_error.unwrap() < 0.02, "{model:?}");
    }

    #[test]
    fn noisy_cells_predict_others_about_as_well_as_they_are_measured() {
        for seed in 0..20 {
            let model = SharedCoreModel::fit(&calibration(0.03, seed)).unwrap();
            let [p50, cpu] = errors(&model);
            assert!(p50 < 0.08 && cpu < 0.06, "seed {seed}: {p50} {cpu}");
        }
    }

    /// A cell in which the host put an idle core to sleep. The broken variant: least squares lets
    /// it spoil all others.
    #[test]
    fn cell_that_is_off_by_a_factor_spoils_no_other() {
        let equations = |slow: f64| -> Vec<Equation<2>> {
            let of = |at: usize| {
                let (x, factor) = (at as f64, if at == 0 { slow } else { 1.0 });
                let p50 = (30.0 + 5.0 * x) * factor;
                ([1.0, x], p50, p50)
            };
            (0..10).map(of).collect()
        };
        let [e, f] = least_deviations(&equations(10.0));
        assert!((e - 30.0).abs() < 1.0 && (f - 5.0).abs() < 0.3, "{e} {f}");
        let [e, f] = least_squares(&equations(10.0));
        assert!((e - 30.0).abs() > 3.0 || (f - 5.0).abs() > 0.5, "{e} {f}");
    }

    /// The broken variant: CPU time that does not fall with the rate, as 1/CPU at a low rate has
    /// it, has the core full too early.
    #[test]
    fn without_batches_the_core_is_full_too_early() {
        let model = SharedCoreModel::fit(&calibration(0.0, 1)).unwrap();
        let found = model.predict(4.0, 12_000.0, 0.0)[0];
        let planted = PLANTED.predict(4.0, 12_000.0, 0.0)[0].full_per_s;
        assert!((found.full_per_s / planted - 1.0).abs() < 0.1, "{found:?} {planted}");
        assert!(1e9 / found.cpu_ns < 0.5 * planted, "{found:?}");
        assert_eq!(model.max_rate_per_s, 55_000.0);
    }

    #[test]
    fn one_strategy_pays_for_no_switch() {
        let [thread, process] = PLANTED.predict(1.0, 20_000.0, 0.0);
        assert_eq!(thread, process);
        let [thread, process] = PLANTED.predict(16.0, 20_000.0, 0.0);
        assert!(process.cpu_ns > thread.cpu_ns && process.p50_ns > thread.p50_ns, "{thread:?} {process:?}");
        assert!(process.full_per_s < thread.full_per_s);
    }

    #[test]
    fn full_core_has_no_latency() {
        let [thread, process] = PLANTED.predict(8.0, 0.97 * PLANTED.full_per_s(8.0, 0), 0.0);
        assert_eq!((thread.p50_ns, process.p50_ns), (None, None));
        assert!(thread.utilization < 1.0 && process.utilization > thread.utilization);
        let full = PLANTED.full_per_s(8.0, 1);
        assert!((PLANTED.predict(8.0, full, 0.0)[1].utilization - 1.0).abs() < 1e-6);
    }

    #[test]
    fn too_few_cells_or_one_number_give_no_model() {
        let cells = calibration(0.0, 1);
        assert_eq!(SharedCoreModel::fit(&cells[..3]), None);
        let same: Vec<CoreCell> = cells.iter().map(|cell| CoreCell { strategies: 4.0, ..*cell }).collect();
        assert_eq!(SharedCoreModel::fit(&same), None);
        let broken: Vec<CoreCell> =
            cells.iter().map(|cell| CoreCell { cpu_ns: [f64::NAN, 0.0], ..*cell }).collect();
        assert_eq!(SharedCoreModel::fit(&broken), None);
        assert_eq!(SharedCoreModel::fit(&[]), None);
    }
}
