//! Draws the due times of orders.
//!
//! Logarithm and cube root are those of `libm`, not of the system: due times must be the same
//! everywhere.

use super::draws::{DrawStream, Draws};
use super::{Arrivals, Spec, SpecError};

/// Draws the due times of a schedule's orders, ascending, in nanoseconds.
pub(super) fn due_times(spec: &Spec) -> Result<Vec<u64>, SpecError> {
    let orders = spec.orders as usize;
    let mut times = Vec::new();
    times.try_reserve_exact(orders).map_err(|_| SpecError::Memory(spec.orders))?;
    let mut draws = Draws::new(spec.seed, DrawStream::DueTime);
    let mean = spec.window_ns as f64 / spec.orders as f64;
    match spec.arrivals {
        Arrivals::Uniform => {
            times.extend((0..orders).map(|_| draws.below(spec.window_ns)));
            times.sort_unstable();
        }
        Arrivals::Poisson => {
            let mut now = 0.0;
            times.extend((0..orders).map(|_| {
                now -= mean * libm::log(draws.unit());
                now as u64
            }));
        }
        Arrivals::Pareto => {
            // The gaps are drawn twice: first for their sum, then for the times.
            let mut sum = 0.0;
            (0..orders).for_each(|_| sum += pareto(&mut draws));
            let mut draws = Draws::new(spec.seed, DrawStream::DueTime);
            let mut now = 0.0;
            times.extend((0..orders).map(|_| {
                now += pareto(&mut draws);
                // The last quotient is exactly 1: the same additions in the same order.
                (spec.window_ns as f64 * (now / sum)) as u64
            }));
        }
        Arrivals::Stress => times.resize(orders, 0),
    }
    Ok(times)
}

/// Draws a Pareto number of shape 1.5 and scale 1, by inversion: u^(−1/1.5), from 1 to 2^35.3.
fn pareto(draws: &mut Draws) -> f64 {
    let unit = draws.unit();
    1.0 / libm::cbrt(unit * unit)
}

#[cfg(test)]
mod tests {
    use super::super::spec::tests::small;
    use super::*;
    use proptest::prelude::*;

    fn times(arrivals: Arrivals) -> Vec<u64> {
        due_times(&Spec { arrivals, ..small() }).unwrap()
    }

    fn gaps(arrivals: Arrivals) -> Vec<u64> {
        let mut gaps: Vec<u64> = times(arrivals).windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        gaps
    }

    #[test]
    fn uniform_arrivals_fill_window_evenly() {
        let times = times(Arrivals::Uniform);
        let mut tenths = [0; 10];
        times.iter().for_each(|time| tenths[(time / 100_000_000) as usize] += 1);
        // 1000 each, standard deviation 30.
        assert!(tenths.iter().all(|count| (800..1200).contains(count)), "{tenths:?}");
    }

    #[test]
    fn poisson_gaps_are_exponential_and_sum_to_window() {
        let last = *times(Arrivals::Poisson).last().unwrap();
        assert!((900_000_000..1_100_000_000).contains(&last), "{last}");
        // The median of an exponential is ln 2 of its mean (100 µs); 1 in e^5 = 148 is above five
        // means.
        let gaps = gaps(Arrivals::Poisson);
        assert!((64_000..75_000).contains(&gaps[gaps.len() / 2]));
        let long = gaps.iter().filter(|gap| **gap > 500_000).count();
        assert!((30..120).contains(&long), "{long}");
    }

    #[test]
    fn pareto_arrivals_are_bursty_and_end_with_window() {
        assert_eq!(times(Arrivals::Pareto).last(), Some(&1_000_000_000));
        let gaps = gaps(Arrivals::Pareto);
        // The median is 2^(2/3) of the scale, which is about a third of the mean: far below an
        // exponential's.
        assert!(gaps[gaps.len() / 2] < 64_000);
        // An exponential would have its longest of 10,000 gaps near 9 means.
        assert!(gaps[gaps.len() - 1] > 2_000_000);
    }

    proptest! {
        #[test]
        fn times_ascend_and_stay_in_bounds(
            kind in 0usize..4, orders in 1u64..500, seed: u64,
            window_ns in prop_oneof![1u64..1000, 1..=super::super::MAX_WINDOW_NS],
        ) {
            let arrivals = Arrivals::ALL[kind];
            let times = due_times(&Spec { arrivals, orders, window_ns, seed, ..small() }).unwrap();
            prop_assert_eq!(times.len() as u64, orders);
            prop_assert!(times.is_sorted());
            let last = *times.last().unwrap();
            match arrivals {
                Arrivals::Uniform => prop_assert!(last < window_ns),
                // One gap is at most 53 ln 2 = 36.7 means.
                Arrivals::Poisson => prop_assert!(last <= window_ns.saturating_mul(37)),
                Arrivals::Pareto => prop_assert_eq!(last, window_ns),
                Arrivals::Stress => prop_assert_eq!(last, 0),
            }
        }
    }
}
