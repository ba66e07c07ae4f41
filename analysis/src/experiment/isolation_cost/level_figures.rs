//! The certain figures of each level in a bill: CPU time and counts of what interrupts a strategy,
//! each with its interval and its difference to the first threads.
//!
//! A repeat is one sample, whatever its strategies and orders are: so intervals are Student's over
//! repeats, and differences are of pairs of runs of one repeat, or of two levels of one run. A bill
//! with one repeat has intervals over its strategies. Ratios of levels that took turns are pooled
//! likewise; with fewer than [`MIN_REPEATS`] repeats, by the intervals over their blocks.

use crate::stats::{
    Confidence, Estimate, LevelUsage, RunOutline, StrategyUsage, Verdict, mean_difference, mean_interval,
};
use merge::crossover::Ratio;
use serde::{Deserialize, Serialize};
use verdict::summary::{LevelDifference, Measure};

/// The fewest repeats whose spread decides on the interval of a pooled ratio.
pub(super) const MIN_REPEATS: usize = 3;

/// A run of a level, with the number of its repeat.
pub(in crate::experiment) type Repeat<'a> = (u32, &'a RunOutline);

/// A figure of one strategy, or of several together.
type OfStrategy<'a> = &'a dyn Fn(&StrategyUsage) -> Option<f64>;

/// The resource figures of an isolation level's strategies, such as CPU time, context switches and
/// page faults, over all repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelFigures {
    /// Number of repeats.
    pub repeats: usize,
    /// Number of strategies of the level in a run.
    pub strategies: usize,
    /// Ratios of the level to threads, where levels took turns in the same runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnRatios>,
    /// CPU seconds of the level's strategies for a million of their orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_million: Option<LevelFigure>,
    /// Involuntary context switches of a strategy, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_per_s: Option<LevelFigure>,
    /// Voluntary context switches of a strategy, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slept_per_s: Option<LevelFigure>,
    /// Page faults of a strategy that were served from memory, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_faults_per_s: Option<LevelFigure>,
    /// Page faults of a strategy that read from a device, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults_per_s: Option<LevelFigure>,
    /// Interrupts of the strategies' cores, per second; null where levels share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_per_s: Option<LevelFigure>,
    /// Share of the orders that figures *without steal* omit, 0 to 1; null where steal is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<StolenShare>,
}

/// The share (0 to 1) of an isolation level's orders that hypervisor steal affected, and the
/// verdict on whether it is within 0.005 of threads'. It is a covariate, which must be equal
/// between levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StolenShare {
    /// The affected share, 0 to 1, and its difference to threads.
    pub share: LevelFigure,
    /// Verdict on whether the share equals that of the threads; null for those threads, and with
    /// one repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equality: Option<Verdict>,
}

/// The largest difference of two stolen shares that counts as none: of the orders beyond p99, which
/// are one in a hundred, half.
pub(super) const STOLEN_MARGIN: f64 = 0.005;

/// One resource figure of an isolation level: its mean over the repeats, 95 % interval, and
/// difference to that of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelFigure {
    /// Mean of the figure over the repeats.
    pub value: f64,
    /// Ends of the figure's 95 % interval; null with one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Difference of the figure to that of threads; null for those threads, and with one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<Estimate>,
}

/// The ratios of an isolation level's latencies to those of threads, pooled over the repeats whose
/// runs alternated between the two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRatios {
    /// Number of repeats that were pooled.
    pub repeats: usize,
    /// Ratio of the medians of `rt_venue` from due.
    pub p50: Option<Estimate>,
    /// Ratio of the 99th percentiles of `rt_venue` from due.
    pub p99: Option<Estimate>,
    /// Ratio of the shares of orders above the threads' 99th percentile.
    pub beyond_p99: Option<Estimate>,
}

impl LevelFigures {
    /// Computes the figures of a level; `None` for runs of launchers that did not save its usage.
    /// `threads` are the runs of the first threads.
    pub(in crate::experiment) fn from_runs(
        own: &[Repeat<'_>],
        threads: Option<&[Repeat<'_>]>,
    ) -> Option<Self> {
        let stolen = StolenShare::from_runs(own, threads);
        let (own, threads) = (known(own), threads.map(known));
        let first = own.first()?.1;
        let figure = |of: OfStrategy<'_>| {
            let all = |usage: &LevelUsage| of(&usage.total());
            LevelFigure::new(&own, threads.as_deref(), &all, Some(of))
        };
        let interrupts = |usage: &LevelUsage| {
            let (total, strategies) = (usage.total(), usage.strategies.len().max(1) as f64);
            total.per_second(usage.interrupts?).map(|each| each * strategies)
        };
        Some(Self {
            repeats: own.len(),
            strategies: first.strategies.len(),
            turns: TurnRatios::pool(own.iter().filter_map(|(_, usage)| usage.turns.as_ref())),
            cpu_s_per_million: figure(&StrategyUsage::cpu_s_per_million),
            preempted_per_s: figure(&|usage| usage.per_second(usage.preempted)),
            slept_per_s: figure(&|usage| usage.per_second(usage.slept)),
            minor_faults_per_s: figure(&|usage| usage.per_second(usage.minor_faults)),
            major_faults_per_s: figure(&|usage| usage.per_second(usage.major_faults)),
            interrupts_per_s: LevelFigure::new(&own, threads.as_deref(), &interrupts, None),
            stolen,
        })
    }
}

/// Returns the usage of the only level of each run that has one.
fn known<'a>(runs: &[Repeat<'a>]) -> Vec<(u32, &'a LevelUsage)> {
    let only = |(repeat, run): &Repeat<'a>| match run.usage.as_slice() {
        [usage] if !usage.strategies.is_empty() => Some((*repeat, usage)),
        _ => None,
    };
    runs.iter().filter_map(only).collect()
}

impl StolenShare {
    /// Computes the share of the orders that steal touched, and whether it equals that of threads:
    /// two one-sided tests at 5 % within [`STOLEN_MARGIN`], else whether their difference is shown.
    fn from_runs(own: &[Repeat<'_>], threads: Option<&[Repeat<'_>]>) -> Option<Self> {
        let shares = |runs: &[Repeat<'_>]| -> Vec<(u32, f64)> {
            runs.iter().filter_map(|(repeat, run)| Some((*repeat, stolen_share(run)?))).collect()
        };
        let (own, threads) = (shares(own), threads.map(shares));
        let alone: Vec<f64> = own.iter().map(|(_, share)| *share).collect();
        let pairs = threads.map_or_else(Vec::new, |threads| differences(&own, &threads));
        let added = mean_interval(&pairs, Confidence::Usual);
        let narrow = mean_interval(&pairs, Confidence::Equivalence);
        let equality = added.zip(narrow).map(|(added, narrow)| {
            if -STOLEN_MARGIN <= narrow.low && narrow.high <= STOLEN_MARGIN {
                Verdict::Equivalent
            } else if added.low > 0.0 {
                Verdict::Slower
            } else if added.high < 0.0 {
                Verdict::Faster
            } else {
                Verdict::CannotTell
            }
        });
        let value = alone.iter().sum::<f64>() / alone.len() as f64;
        let interval = mean_interval(&alone, Confidence::Usual).map(|found| [found.low, found.high]);
        let share = LevelFigure { value, interval, added };
        value.is_finite().then_some(Self { share, equality })
    }
}

/// Returns the share of a run's orders that steal touched; `None` where it is not known.
fn stolen_share(run: &RunOutline) -> Option<f64> {
    let [all, free] =
        [Measure::RtVenueFromDue, Measure::WithoutSteal].map(|measure| run.measure(measure).count);
    (all > 0 && free > 0).then(|| 1.0 - free.min(all) as f64 / all as f64)
}

/// Returns how much higher a level's values are than those of threads in the same repeats.
fn differences(own: &[(u32, f64)], threads: &[(u32, f64)]) -> Vec<f64> {
    let pair = |(repeat, value): &(u32, f64)| {
        let (_, other) = threads.iter().find(|(other, _)| other == repeat)?;
        Some(value - other)
    };
    own.iter().filter_map(pair).collect()
}

impl LevelFigure {
    /// Computes a figure of the runs of a level, `of` a run as a whole and `each` of a strategy.
    fn new(
        own: &[(u32, &LevelUsage)],
        threads: Option<&[(u32, &LevelUsage)]>,
        of: &dyn Fn(&LevelUsage) -> Option<f64>,
        each: Option<OfStrategy<'_>>,
    ) -> Option<Self> {
        let values = |runs: &[(u32, &LevelUsage)]| -> Vec<(u32, f64)> {
            runs.iter().filter_map(|(repeat, usage)| Some((*repeat, of(usage)?))).collect()
        };
        let own_values = values(own);
        let alone: Vec<f64> = own_values.iter().map(|(_, value)| *value).collect();
        let strategies = |runs: &[(u32, &LevelUsage)]| -> Vec<f64> {
            let all = runs.iter().flat_map(|(_, usage)| &usage.strategies);
            each.map_or_else(Vec::new, |each| all.filter_map(each).collect())
        };
        let value = alone.iter().sum::<f64>() / alone.len() as f64;
        let samples = if alone.len() > 1 { alone } else { strategies(own) };
        let interval = mean_interval(&samples, Confidence::Usual);
        let added = threads.and_then(|threads| {
            let pairs = differences(&own_values, &values(threads));
            match pairs.len() {
                0 => None,
                1 => mean_difference(&strategies(threads), &strategies(own)),
                _ => mean_interval(&pairs, Confidence::Usual),
            }
        });
        let interval =
            interval.map(|found| [value - (found.value - found.low), value + found.high - found.value]);
        value.is_finite().then_some(Self { value, interval, added })
    }
}

impl TurnRatios {
    /// Pools the comparisons of several repeats; `None` without any.
    fn pool<'a>(repeats: impl Iterator<Item = &'a LevelDifference>) -> Option<Self> {
        let repeats: Vec<&LevelDifference> = repeats.collect();
        let pooled = |of: fn(&LevelDifference) -> Option<Ratio>| {
            pool_ratios(&repeats.iter().filter_map(|repeat| of(repeat)).collect::<Vec<_>>())
        };
        (!repeats.is_empty()).then(|| Self {
            repeats: repeats.len(),
            p50: pooled(|repeat| repeat.p50),
            p99: pooled(|repeat| repeat.p99),
            beyond_p99: pooled(|repeat| repeat.beyond_p99),
        })
    }
}

/// Returns the geometric mean of ratios with its interval: Student's over the repeats, or, of fewer
/// than [`MIN_REPEATS`], by the widths of their own intervals, which are over blocks. `None` if a
/// ratio is not above 0: to leave that repeat out would select.
fn pool_ratios(ratios: &[Ratio]) -> Option<Estimate> {
    if ratios.iter().any(|ratio| !(ratio.value > 0.0 && ratio.value.is_finite())) {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.value.ln()).collect();
    if logs.len() >= MIN_REPEATS {
        return Some(mean_interval(&logs, Confidence::Usual)?.map(f64::exp));
    }
    let count = logs.len() as f64;
    let value = logs.iter().sum::<f64>() / count;
    let reach = |end: fn(&Ratio) -> f64| {
        let squares = ratios.iter().map(|ratio| (end(ratio) / ratio.value).ln().powi(2));
        squares.sum::<f64>().sqrt() / count
    };
    let (below, above) = (reach(|ratio| ratio.low), reach(|ratio| ratio.high));
    let found = Estimate { value, low: value - below, high: value + above };
    (!logs.is_empty()).then(|| found.map(f64::exp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixtures;
    use protocol::plan::Isolation;
    use statistics::seeded_rng::SeededRng;

    fn usage(level: Isolation, cpu_us_per_order: &[u64]) -> LevelUsage {
        let strategy = |each: &u64| StrategyUsage {
            returned: 1_000,
            cpu_ns: each * 1_000_000,
            running_ns: 2_000_000_000,
            preempted: *each,
            minor_faults: 6,
            ..StrategyUsage::default()
        };
        let strategies = cpu_us_per_order.iter().map(strategy).collect();
        LevelUsage { level: level.into(), again: 0, strategies, interrupts: None, turns: None }
    }

    fn run(usage: LevelUsage) -> RunOutline {
        RunOutline { usage: vec![usage], ..fixtures::run(0, 300.0) }
    }

    fn figures(own: &[RunOutline], threads: Option<&[RunOutline]>) -> Option<LevelFigures> {
        let numbered =
            |runs: &'_ [RunOutline]| -> Vec<(u32, RunOutline)> { (0..).zip(runs.to_vec()).collect() };
        let (own, threads) = (numbered(own), threads.map(numbered));
        let refer = |runs: &[(u32, RunOutline)]| -> Vec<(u32, RunOutline)> { runs.to_vec() };
        let (own, threads) = (refer(&own), threads.as_deref().map(refer));
        let own: Vec<Repeat<'_>> = own.iter().map(|(repeat, run)| (*repeat, run)).collect();
        let threads: Option<Vec<Repeat<'_>>> =
            threads.as_ref().map(|runs| runs.iter().map(|(repeat, run)| (*repeat, run)).collect());
        LevelFigures::from_runs(&own, threads.as_deref())
    }

    #[test]
    fn planted_cpu_cost_is_found_over_pairs_of_repeats() {
        // Repeats differ by far more than the levels do.
        let bases = [15, 40, 22, 31];
        let of = |level, more: u64| bases.map(|base| run(usage(level, &[base + more, base + more])));
        let (threads, processes) = (of(Isolation::Thread, 0), of(Isolation::Process, 3));
        let found = figures(&processes, Some(&threads)).unwrap();
        let cpu = found.cpu_s_per_million.unwrap();
        assert_eq!((found.repeats, found.strategies, cpu.value), (4, 2, 30.0));
        let added = cpu.added.unwrap();
        assert!((added.value - 3.0).abs() < 1e-9 && added.low > 2.99 && added.high < 3.01, "{added:?}");
        let [low, high] = cpu.interval.unwrap();
        assert!(low < 20.0 && high > 40.0, "repeats differ: {low} to {high}");
        assert_eq!(found.minor_faults_per_s.unwrap().value, 3.0, "of a strategy");
        assert_eq!(found.interrupts_per_s, None);
        // The broken variant: repeats out of step are other pairs.
        let mut shifted = processes.to_vec();
        shifted.rotate_left(1);
        let broken = figures(&shifted, Some(&threads)).unwrap().cpu_s_per_million.unwrap().added.unwrap();
        assert!(broken.low < 0.0 && broken.high > 6.0, "{broken:?}");
    }

    #[test]
    fn equal_levels_differ_at_the_nominal_rate() {
        let mut draws = SeededRng::new(5);
        let mut wrong = 0;
        for _ in 0..400 {
            let mut side = |level, bases: &[u64]| -> Vec<RunOutline> {
                let mut each = |base: &u64| 1_000 + base + draws.next_below(60) as u64;
                bases.iter().map(|base| run(usage(level, &[each(base), each(base)]))).collect()
            };
            let bases = [0, 400, 100, 900, 250, 700];
            let (a, b) = (side(Isolation::Thread, &bases), side(Isolation::Process, &bases));
            let added = figures(&b, Some(&a)).unwrap().cpu_s_per_million.unwrap().added.unwrap();
            wrong += u32::from(added.low > 0.0 || added.high < 0.0);
        }
        assert!((8..=32).contains(&wrong), "{wrong} of 400");
    }

    #[test]
    fn one_repeat_has_intervals_over_its_strategies() {
        let [a, b] = [(Isolation::Thread, 10), (Isolation::Process, 13)]
            .map(|(level, base)| [run(usage(level, &[base, base + 1, base + 2, base + 1]))]);
        let cpu = figures(&b, Some(&a)).unwrap().cpu_s_per_million.unwrap();
        let added = cpu.added.unwrap();
        assert!((added.value - 3.0).abs() < 1e-9 && added.low > 1.0 && added.high < 5.0, "{added:?}");
        assert!(cpu.interval.is_some());
        let alone = figures(&[run(usage(Isolation::Thread, &[10]))], None).unwrap();
        assert_eq!(alone.cpu_s_per_million, Some(LevelFigure { value: 10.0, interval: None, added: None }));
        assert_eq!(figures(&[fixtures::run(0, 300.0)], None), None, "older launchers did not save it");
    }

    /// Runs of which the host touched this share of the orders, in per mille.
    fn stolen(per_mille: &[u64]) -> Vec<RunOutline> {
        let of = |share: &u64| {
            let mut run = run(usage(Isolation::Process, &[10]));
            let due = run.measure(Measure::RtVenueFromDue);
            let free = verdict::summary::Distribution { count: due.count - due.count * share / 1_000, ..due };
            run.measures.insert(Measure::WithoutSteal.name().into(), free);
            run
        };
        per_mille.iter().map(of).collect()
    }

    #[test]
    fn stolen_shares_are_tested_to_be_equal() {
        let threads = stolen(&[20, 60, 31, 44, 25, 52]);
        let equality = |own: &[u64]| {
            let found = figures(&stolen(own), Some(&threads)).unwrap().stolen.unwrap();
            found.equality.unwrap()
        };
        assert_eq!(equality(&[21, 58, 32, 45, 24, 53]), Verdict::Equivalent);
        assert_eq!(equality(&[60, 101, 72, 83, 66, 91]), Verdict::Slower, "touched more often by 4 points");
        assert_eq!(equality(&[1, 90, 2, 80, 61, 20]), Verdict::CannotTell);
        let alone = figures(&stolen(&[20]), None).unwrap().stolen.unwrap();
        assert!((alone.share.value - 0.02).abs() < 1e-9 && alone.equality.is_none());
        let unknown = figures(&[run(usage(Isolation::Process, &[10]))], None).unwrap();
        assert_eq!(unknown.stolen, None, "no record of the kernel's");
    }

    #[test]
    fn ratios_of_turns_are_pooled_over_repeats() {
        let ratio = |value: f64| Ratio { value, low: value / 1.1, high: value * 1.1 };
        let one = pool_ratios(&[ratio(1.5)]).unwrap();
        assert!((one.low - 1.5 / 1.1).abs() < 1e-9 && (one.high - 1.65).abs() < 1e-9, "its blocks decide");
        let four = pool_ratios(&[2.0, 2.0, 0.5, 0.5].map(ratio)).unwrap();
        assert!((four.value - 1.0).abs() < 1e-9, "{four:?}");
        // Repeats that disagree widen the interval far beyond that of their blocks.
        assert!(four.low < 0.4 && four.high > 2.5, "{four:?}");
        let alike = pool_ratios(&[ratio(1.5); 5]).unwrap();
        assert!(alike.low > 1.49 && alike.high < 1.51);
        assert_eq!(pool_ratios(&[]), None);
        // One repeat has no order beyond: without it the others would show too high a ratio.
        let none = Ratio { value: 0.0, low: 0.0, high: 0.4 };
        assert_eq!(pool_ratios(&[ratio(1.5), none, ratio(1.5), ratio(1.5)]), None);
        let open = pool_ratios(&[Ratio { value: 0.5, low: 0.0, high: 1.5 }]).unwrap();
        assert_eq!((open.low, open.value), (0.0, 0.5));
    }
}
