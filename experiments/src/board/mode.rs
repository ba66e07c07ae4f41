//! The write load of the board benchmark: when each write is due.

use planner::config::UsageError;
use protocol::index::StrategyIndex;
use record::units::Count;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use strategy::schedule::{Arrivals, DelayRange, Replay, Schedule, Spec, replay, sample};

/// Writes a second where none are given.
const DEFAULT_RATE: u64 = 10_000;
/// The most writes of a case, of which each due time takes eight bytes.
const MAX_WRITES: u64 = 50_000_000;

/// The arrival process of a board benchmark's writes, which decides when each is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteLoad {
    /// Writes with exponentially distributed gaps, at this mean rate a second.
    Poisson(u64),
    /// Writes in bursts: gaps from a Pareto distribution of shape 1.5, at this mean rate a second.
    Pareto(u64),
    /// Writes without a pause between them.
    Stress,
    /// Writes at the times of a recorded flow, read from this file.
    Replay(PathBuf),
}

impl FromStr for WriteLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let rate = || match rest.map(|rest| rest.parse::<Count>().map(|rate| rate.0)).transpose() {
            Ok(Some(0)) => Err(format!("{text}: no writes a second: give 1 or more, or use stress")),
            Ok(rate) => Ok(rate.unwrap_or(DEFAULT_RATE)),
            Err(error) => Err(format!("{text}: {error}")),
        };
        match (name, rest) {
            ("poisson", _) => Ok(Self::Poisson(rate()?)),
            ("pareto", _) => Ok(Self::Pareto(rate()?)),
            ("stress", None) => Ok(Self::Stress),
            ("replay", Some(file)) if !file.is_empty() => Ok(Self::Replay(file.into())),
            _ => Err(format!("{text:?} is no load: poisson:10k, pareto:10k, stress or replay:FILE")),
        }
    }
}

impl fmt::Display for WriteLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson(rate) => write!(f, "poisson:{rate}"),
            Self::Pareto(rate) => write!(f, "pareto:{rate}"),
            Self::Stress => write!(f, "stress"),
            Self::Replay(path) => write!(f, "replay:{}", path.display()),
        }
    }
}

impl WriteLoad {
    /// Returns the schedule of a board's writes over `duration_ns` nanoseconds; `None` for a load
    /// without due times.
    pub fn schedule(&self, duration_ns: u64, seed: u64) -> Result<Option<Schedule>, UsageError> {
        Ok(Some(match self {
            Self::Stress => return Ok(None),
            Self::Poisson(rate) => draw_times(self, Arrivals::Poisson, *rate, duration_ns, seed)?,
            Self::Pareto(rate) => draw_times(self, Arrivals::Pareto, *rate, duration_ns, seed)?,
            Self::Replay(path) => read_recorded(path)?,
        }))
    }
}

/// Returns the due time of each write of a board's schedule, in nanoseconds from the start.
/// Ascending, all before the end.
pub fn due_times(schedule: &Schedule, duration_ns: u64) -> impl Iterator<Item = u64> + '_ {
    let due = schedule.entries(StrategyIndex(0)).map(|entry| entry.fire_ns);
    due.take_while(move |due| *due < duration_ns).take(MAX_WRITES as usize)
}

const NO_DELAY: DelayRange = DelayRange { min_ns: 1, max_ns: 1 };

fn draw_times(
    mode: &WriteLoad,
    arrivals: Arrivals,
    rate: u64,
    duration_ns: u64,
    seed: u64,
) -> Result<Schedule, UsageError> {
    let orders = (u128::from(rate) * u128::from(duration_ns)).div_ceil(1_000_000_000).max(1);
    if orders > MAX_WRITES.into() {
        return Err(UsageError(format!(
            "--mode {mode} for that --duration makes {orders} writes, and {MAX_WRITES} is the most: lower one of them, or use stress"
        )));
    }
    let spec = Spec {
        strategies: 1,
        venues: 1,
        orders: orders as u64,
        window_ns: duration_ns,
        arrivals,
        delay: NO_DELAY,
        seed,
    };
    sample(&spec).map_err(|error| UsageError(format!("--mode {mode}: {error}")))
}

fn read_recorded(path: &Path) -> Result<Schedule, UsageError> {
    let how =
        Replay { strategies: 1, venues: 1, delay: NO_DELAY, seed: 1, speed: 1.0, orders: Some(MAX_WRITES) };
    replay(path, &how).map_err(|error| UsageError(format!("--mode replay: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read_and_written_back() {
        for (text, written) in [
            ("poisson", "poisson:10000"),
            ("poisson:2k", "poisson:2000"),
            ("pareto:7", "pareto:7"),
            ("stress", "stress"),
            ("replay:a:b.csv", "replay:a:b.csv"),
        ] {
            assert_eq!(text.parse::<WriteLoad>().unwrap().to_string(), written);
        }
        for text in ["poisson:0", "poisson:fast", "stress:3", "replay", "replay:", "uniform", ""] {
            let error = text.parse::<WriteLoad>().unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn due_times_are_within_the_run_and_reproducible() {
        for mode in [WriteLoad::Poisson(10_000), WriteLoad::Pareto(10_000)] {
            let due = |seed| {
                let schedule = mode.schedule(100_000_000, seed).unwrap().unwrap();
                due_times(&schedule, 100_000_000).collect::<Vec<_>>()
            };
            let times = due(1);
            assert!((800..=1_001).contains(&times.len()), "{}", times.len());
            assert!(times.is_sorted() && times.iter().all(|time| *time < 100_000_000));
            assert_eq!((due(1) == times, due(2) == times), (true, false));
        }
        assert!(WriteLoad::Stress.schedule(1, 1).unwrap().is_none());
        let error = WriteLoad::Poisson(1 << 40).schedule(1_000_000_000, 1).err().unwrap();
        assert!(error.0.contains("--duration"), "{error}");
        let missing = WriteLoad::Replay("no-such-file".into()).schedule(1, 1).err().unwrap();
        assert!(missing.0.contains("no-such-file"), "{missing}");
    }
}
