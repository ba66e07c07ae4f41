//! The isolation levels, and how a run assigns them to its strategies.

use crate::index::StrategyIndex;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use system::named_enum;
use thiserror::Error;

named_enum! {
    /// The isolation between a strategy and the engine.
    Isolation {
        /// None: the strategy is a thread of the engine's process, with the same rings.
        Thread = "thread",
        /// Protection keys: the strategy is a thread of the engine's process that may write no
        /// memory but its own.
        Keys = "keys",
        /// An address space: the strategy is a process of its own.
        Process = "process",
        /// A process in namespaces and a cgroup of its own, with a read-only root, for runtimes.
        Container = "container",
        /// A process in a sandbox: sealed memory, and only the system calls needed to trade.
        Sandbox = "sandbox",
    }
}

impl Isolation {
    /// Returns `true` if a strategy of this level is a thread of the engine's process.
    pub const fn is_thread(self) -> bool {
        matches!(self, Self::Thread | Self::Keys)
    }
}

/// The isolation of a run's strategies: one level or several, assigned in turn. Written with a plus
/// sign between levels: `thread+process`.
///
/// Strategy `i` has level `i` modulo their number. Several levels in one run compare levels under
/// the same engine, clock and second.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IsolationLevels {
    levels: [Isolation; Self::MAX],
    len: u8,
}

/// The error that a text does not name isolation levels.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IsolationError {
    /// A level of this name does not exist.
    #[error("{0:?} is not an isolation level")]
    Unknown(String),
    /// There are too many levels.
    #[error("{0} isolation levels are too many: give 1 to {max}", max = IsolationLevels::MAX)]
    Count(usize),
}

impl IsolationLevels {
    /// The largest number of levels.
    pub const MAX: usize = 8;

    /// Creates the isolation of a run with these levels; with none or too many it is an error.
    pub fn new(levels: &[Isolation]) -> Result<Self, IsolationError> {
        let (Some(first), len @ 1..=Self::MAX) = (levels.first(), levels.len()) else {
            return Err(IsolationError::Count(levels.len()));
        };
        let mut all = [*first; Self::MAX];
        all[..len].copy_from_slice(levels);
        Ok(Self { levels: all, len: len as u8 })
    }

    /// Creates the isolation of a run whose strategies all have the same level.
    pub const fn all(level: Isolation) -> Self {
        Self { levels: [level; Self::MAX], len: 1 }
    }

    /// Returns the levels in the order of their assignment.
    pub fn as_slice(&self) -> &[Isolation] {
        &self.levels[..usize::from(self.len)]
    }

    /// Returns the level of a strategy.
    pub fn of(&self, strategy: StrategyIndex) -> Isolation {
        self.levels[self.place_of(strategy)]
    }

    /// Returns the place of a strategy's level among the levels.
    pub fn place_of(&self, strategy: StrategyIndex) -> usize {
        strategy.as_usize() % usize::from(self.len)
    }

    /// Iterates over the levels in the order of their assignment, each with the number of places
    /// before it that have the same level.
    pub fn places(&self) -> impl Iterator<Item = (Isolation, usize)> + '_ {
        let before = |place: usize, level| self.levels[..place].iter().filter(|own| **own == level).count();
        self.as_slice().iter().enumerate().map(move |(place, level)| (*level, before(place, *level)))
    }

    /// Returns `true` if some strategies have this level, in a run with enough strategies.
    pub fn has(&self, level: Isolation) -> bool {
        self.as_slice().contains(&level)
    }

    /// Returns `true` if some strategies are threads of the engine's process.
    pub fn has_threads(&self) -> bool {
        self.as_slice().iter().any(|level| level.is_thread())
    }

    /// Returns `true` if all strategies are threads of the engine's process.
    pub fn has_only_threads(&self) -> bool {
        self.as_slice().iter().all(|level| level.is_thread())
    }

    /// Returns `true` if all strategies have this level.
    pub fn is_only(&self, level: Isolation) -> bool {
        self.as_slice().iter().all(|other| *other == level)
    }

    /// Returns the level that all strategies have; `None` if they differ.
    pub fn only(&self) -> Option<Isolation> {
        self.is_only(self.levels[0]).then_some(self.levels[0])
    }

    /// Returns the different levels, in the order of [`Isolation::ALL`].
    pub fn distinct(&self) -> impl Iterator<Item = Isolation> + '_ {
        Isolation::ALL.iter().copied().filter(|level| self.has(*level))
    }

    /// Returns the same levels, `steps` strategies later: strategy 0 gets the level of strategy
    /// `steps`.
    #[must_use]
    pub fn rotated(mut self, steps: usize) -> Self {
        let len = usize::from(self.len);
        self.levels[..len].rotate_left(steps % len);
        let first = self.levels[0];
        self.levels[len..].fill(first);
        self
    }
}

impl From<Isolation> for IsolationLevels {
    fn from(level: Isolation) -> Self {
        Self::all(level)
    }
}

impl FromStr for IsolationLevels {
    type Err = IsolationError;

    /// Reads levels with a plus sign or a comma between them.
    fn from_str(text: &str) -> Result<Self, IsolationError> {
        let level = |name: &str| {
            let name = name.trim();
            Isolation::from_name(name).ok_or_else(|| IsolationError::Unknown(name.into()))
        };
        Self::new(&text.split(['+', ',']).map(level).collect::<Result<Vec<_>, _>>()?)
    }
}

impl TryFrom<String> for IsolationLevels {
    type Error = IsolationError;

    fn try_from(text: String) -> Result<Self, IsolationError> {
        text.parse()
    }
}

impl From<IsolationLevels> for String {
    fn from(levels: IsolationLevels) -> Self {
        levels.to_string()
    }
}

impl fmt::Display for IsolationLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.as_slice().iter().map(|level| level.name()).collect();
        f.pad(&names.join("+"))
    }
}

impl fmt::Debug for IsolationLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_assigned_in_turn() {
        let levels: IsolationLevels = "thread+process".parse().unwrap();
        assert_eq!(
            [0, 1, 2, 255].map(|strategy| levels.of(StrategyIndex(strategy)).name()),
            ["thread", "process", "thread", "process"]
        );
        assert_eq!(levels.rotated(1), "process,thread".parse().unwrap());
        assert_eq!(levels.rotated(2), levels);
        let doubled: IsolationLevels = "thread+process+thread".parse().unwrap();
        let places: Vec<_> = doubled.places().map(|(level, before)| (level.name(), before)).collect();
        assert_eq!(places, [("thread", 0), ("process", 0), ("thread", 1)]);
        assert_eq!((levels.only(), levels.has(Isolation::Sandbox)), (None, false));
        let threads: IsolationLevels = "thread+keys".parse().unwrap();
        assert_eq!((threads.has_threads(), threads.has_only_threads()), (true, true));
        assert_eq!((levels.has_threads(), levels.has_only_threads()), (true, false));
        let same: IsolationLevels = "container+container".parse().unwrap();
        assert_eq!(same.only(), Some(Isolation::Container));
    }

    #[test]
    fn levels_survive_saving() {
        for text in ["process", "sandbox+thread+container"] {
            let saved = serde_json::to_string(&text.parse::<IsolationLevels>().unwrap()).unwrap();
            assert_eq!(saved, format!("{text:?}"), "one level is saved as before");
            let read: IsolationLevels = serde_json::from_str(&saved).unwrap();
            assert_eq!(read.to_string(), text);
        }
        for text in ["", "thread+", "jail", "thread+jail"] {
            assert!(matches!(text.parse::<IsolationLevels>(), Err(IsolationError::Unknown(_))), "{text:?}");
        }
        let many = ["thread"; 9].join("+");
        assert_eq!(many.parse::<IsolationLevels>(), Err(IsolationError::Count(9)));
    }
}
