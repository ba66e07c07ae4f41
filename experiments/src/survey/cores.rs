//! The core-to-core matrix of a survey.

use super::{FoundPart, SurveyRun};
use analysis::experiment::{CoreMatrix, CorePair, SurveyPart};
use anyhow::{Result, bail};
use planner::host::signals;
use std::time::{Duration, Instant};
use system::floor::{DEFAULT_ROUNDS, UNSYNCHRONIZED_ROUNDS, round_trip_ns, unsynchronized_ns};

/// The time that a pair takes, about.
const PAIR_TIME: Duration = Duration::from_millis(20);

impl SurveyRun<'_> {
    /// Measures the round trip of a cache line between all pairs of cores. If the time is too short
    /// for all, between evenly chosen ones.
    pub(super) fn make_cores(&mut self) -> Result<FoundPart> {
        let (until, stop) = (self.until, signals::is_end_requested);
        let allowed = &self.machine.cores_allowed;
        if allowed.len() < 2 {
            bail!("two cores are needed, and this process may use {}", allowed.len());
        }
        let pairs_max = until.saturating_duration_since(Instant::now()).as_nanos() / PAIR_TIME.as_nanos();
        let cores = choose(allowed, pairs_max as usize);
        let mut matrix = CoreMatrix { cores: cores.clone(), pairs: Vec::new() };
        let pairs = cores.iter().enumerate().flat_map(|(at, a)| cores[at + 1..].iter().map(|b| (*a, *b)));
        let planned = cores.len() * (cores.len() - 1) / 2;
        for (a, b) in pairs {
            if matrix.pairs.len() > 1 && Instant::now() > until || signals::is_end_requested() {
                break;
            }
            self.bar.set_message(format!("{a} and {b}"));
            matrix.pairs.push(CorePair {
                a,
                b,
                synchronized_ns: round_trip_ns(a, b, DEFAULT_ROUNDS, stop)?,
                unsynchronized_ns: unsynchronized_ns(a, b, UNSYNCHRONIZED_ROUNDS, stop)?,
            });
        }
        let (made, all) = (matrix.pairs.len(), allowed.len());
        let shortfall = if made < planned {
            Some(format!("time for {made} of {planned} pairs"))
        } else if cores.len() < all {
            Some(format!("time for {} of {all} CPUs", cores.len()))
        } else {
            None
        };
        Ok(FoundPart::new(SurveyPart::Cores, &matrix, shortfall))
    }
}

/// Chooses as many cores as have at most that many pairs, two at least, evenly over all.
fn choose(allowed: &[u32], pairs_max: usize) -> Vec<u32> {
    let count = (2..=allowed.len()).rev().find(|count| count * (count - 1) / 2 <= pairs_max).unwrap_or(2);
    (0..count).map(|index| allowed[index * (allowed.len() - 1) / (count - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_cores_reach_from_first_to_last() {
        let allowed: Vec<u32> = (0..64).collect();
        assert_eq!(choose(&allowed, 10_000), allowed);
        let few = choose(&allowed, 10);
        assert_eq!((few.len(), few[0], few[4]), (5, 0, 63), "five cores have ten pairs");
        assert_eq!(choose(&[3, 7], 0), [3, 7]);
    }
}
