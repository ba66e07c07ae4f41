//! The slope of a figure over a setting: a robust line through all pairs.
//!
//! The estimate is the median of the slopes between every two points (Theil 1950); the interval is
//! that of P. K. Sen (1968), from the normal approximation of Kendall's rank correlation, with
//! Sen's variance for ties in x. It needs no assumption about the noise but that it is alike along
//! the axis.

use super::shift::Estimate;

/// Quantile of the normal distribution for a two-sided test at 5 %.
const Z: f64 = 1.959_963_985;
/// Minimum number of different x for a slope: two points are a difference.
const MIN_PLACES: usize = 3;

/// Returns the slope of `y` over `x` with its 95 % interval, in units of y for one unit of x.
/// `None` with fewer than three different x, or with too few points for an interval.
pub fn slope(points: &[(f64, f64)]) -> Option<Estimate> {
    let mut places: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    places.sort_unstable_by(f64::total_cmp);
    let ties: Vec<f64> = places.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64).collect();
    if ties.len() < MIN_PLACES {
        return None;
    }
    let between = |number: usize| {
        let (x, y) = points[number];
        points[number + 1..]
            .iter()
            .filter(move |(other, _)| *other != x)
            .map(move |(ox, oy)| (oy - y) / (ox - x))
    };
    let mut slopes: Vec<f64> = (0..points.len()).flat_map(between).collect();
    slopes.sort_unstable_by(f64::total_cmp);
    let of_size = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let variance =
        (of_size(points.len() as f64) - ties.iter().map(|tied| of_size(*tied)).sum::<f64>()) / 18.0;
    let outside = (slopes.len() as f64 - Z * variance.sqrt()) / 2.0;
    if outside < 1.0 {
        return None;
    }
    let outside = outside as usize;
    Some(Estimate {
        value: record::spread::median(&slopes)?,
        low: slopes[outside - 1],
        high: slopes[slopes.len() - outside],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_rng::SeededRng;

    /// Returns points at 1, 2, 4 and 8 with a slope and noise between -50 and 50.
    fn noisy(by: f64, each: usize, draws: &mut SeededRng) -> Vec<(f64, f64)> {
        let places = [1.0, 2.0, 4.0, 8.0].into_iter().flat_map(|x| std::iter::repeat_n(x, each));
        places.map(|x| (x, 300.0 + by * x + 100.0 * (draws.next_unit() - 0.5))).collect()
    }

    #[test]
    fn exact_line_has_its_slope() {
        let points: Vec<(f64, f64)> =
            [1.0, 2.0, 4.0].iter().flat_map(|x| [(*x, 10.0 + 3.0 * x); 3]).collect();
        assert_eq!(slope(&points), Some(Estimate { value: 3.0, low: 3.0, high: 3.0 }));
    }

    #[test]
    fn two_places_or_one_point_each_have_none() {
        let two: Vec<(f64, f64)> = [1.0, 2.0].iter().flat_map(|x| [(*x, *x); 20]).collect();
        assert_eq!(slope(&two), None);
        assert_eq!(slope(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), None, "no interval from three points");
        assert_eq!(slope(&[]), None);
    }

    #[test]
    fn interval_holds_the_slope_in_95_of_100() {
        for by in [0.0, 20.0] {
            let mut draws = SeededRng::new(7);
            let holds = |found: Estimate| found.low <= by && by <= found.high;
            let held = (0..400).filter(|_| holds(slope(&noisy(by, 12, &mut draws)).unwrap())).count();
            assert!((370..=395).contains(&held), "slope {by}: {held} of 400");
        }
    }

    #[test]
    fn steep_slope_is_told_from_none() {
        let found = slope(&noisy(20.0, 12, &mut SeededRng::new(9))).unwrap();
        assert!(found.low > 0.0 && found.high < 40.0, "{found:?}");
    }
}
