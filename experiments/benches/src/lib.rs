//! The benches of all crates.
//!
//! What they share is how subjects alternate, and the quantiles of their samples.
#![forbid(unsafe_code)]

/// Samples each subject of a benchmark once per round, in the order A B A B …, so that machine
/// noise affects all equally. Returns the samples of each.
pub fn alternate<S, T>(
    rounds: usize,
    subjects: &mut [S],
    mut sample: impl FnMut(&mut S) -> T,
) -> Vec<Vec<T>> {
    let mut samples: Vec<Vec<T>> = subjects.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for _ in 0..rounds {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            samples.push(sample(subject));
        }
    }
    samples
}

/// Sorts samples and returns their quantile at `share` (0 to 1), for example the median at 0.5.
/// Returns NaN without any.
pub fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = (samples.len().saturating_sub(1) as f64 * share) as usize;
    samples.get(rank).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns() {
        let (mut subjects, mut order) = (["a", "b"], Vec::new());
        let samples = alternate(2, &mut subjects, |name| {
            order.push(*name);
            order.len()
        });
        assert_eq!((order, samples), (vec!["a", "b", "a", "b"], vec![vec![1, 3], vec![2, 4]]));
    }

    #[test]
    fn quantiles_are_samples() {
        let quantiles = [0.0, 0.25, 0.5, 1.0].map(|share| quantile(&mut [5.0, 1.0, 4.0, 2.0, 3.0], share));
        assert_eq!(quantiles, [1.0, 2.0, 3.0, 5.0]);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
