//! The isolation levels, and how a run assigns them to its strategies.

use crate::index::StrategyIndex;
use crate::wire::MAX_STRATEGIES;
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
        /// An address space: the strategy is a process of its own.
        Process = "process",
        /// A process in namespaces and a cgroup of its own, with a read-only root, for runtimes.
        Container = "container",
        /// A process in a sandbox: sealed memory, and only the system calls needed to trade.
        Sandbox = "sandbox",
    }
}

/// The isolation of a run's strategies: one level or several, assigned in turn. Written with a plus
/// sign between levels: `thread+process`. A number behind an asterisk makes groups: at `process*4`
/// four strategies share a process.
///
/// Strategy `i` has level `i` modulo their number. Several levels in one run compare levels under
/// the same engine, clock and second. The strategies of one place among the levels form its groups,
/// in order: at `thread+process*2` strategies 1 and 3 share a process, and so do 5 and 7.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IsolationLevels {
    levels: [Isolation; Self::MAX],
    /// Strategies of a process of each level; 1 without groups.
    group_sizes: [u16; Self::MAX],
    len: u8,
}

/// A level with the number of strategies that share one of its processes.
pub type GroupedLevel = (Isolation, u16);

/// The error that a text does not name isolation levels.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IsolationError {
    /// A level of this name does not exist.
    #[error("{0:?} is not an isolation level")]
    Unknown(String),
    /// There are too many levels.
    #[error("{0} isolation levels are too many: give 1 to {max}", max = IsolationLevels::MAX)]
    Count(usize),
    /// The size of a group is not a number that there can be.
    #[error("{0:?}: a group has 1 to {MAX_STRATEGIES} strategies, such as process*4")]
    Group(String),
    /// Threads of the engine's process form no groups.
    #[error(
        "{0:?}: threads are in the engine's process, where all strategies of the level are; groups are for other levels"
    )]
    GroupedThreads(String),
}

impl IsolationLevels {
    /// The largest number of levels.
    pub const MAX: usize = 8;

    /// Creates the isolation of a run with these levels; with none or too many it is an error.
    pub fn new(levels: &[Isolation]) -> Result<Self, IsolationError> {
        let levels: Vec<GroupedLevel> = levels.iter().map(|level| (*level, 1)).collect();
        Self::with_groups(&levels)
    }

    /// Creates the isolation of a run with these levels and sizes of groups; with none or too many
    /// levels it is an error.
    pub fn with_groups(levels: &[GroupedLevel]) -> Result<Self, IsolationError> {
        let (Some((first, size)), len @ 1..=Self::MAX) = (levels.first(), levels.len()) else {
            return Err(IsolationError::Count(levels.len()));
        };
        let mut all = Self { levels: [*first; Self::MAX], group_sizes: [*size; Self::MAX], len: len as u8 };
        for (place, (level, size)) in levels.iter().enumerate() {
            (all.levels[place], all.group_sizes[place]) = (*level, (*size).max(1));
        }
        Ok(all)
    }

    /// Creates the isolation of a run whose strategies all have the same level.
    pub const fn all(level: Isolation) -> Self {
        Self { levels: [level; Self::MAX], group_sizes: [1; Self::MAX], len: 1 }
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

    /// Returns the number of strategies that share a process with a strategy, itself included, in a
    /// run with enough of them.
    pub fn group_size_of(&self, strategy: StrategyIndex) -> u16 {
        self.group_sizes[self.place_of(strategy)]
    }

    /// Returns `true` if some strategies share a process other than the engine's.
    pub fn has_groups(&self) -> bool {
        self.group_sizes[..usize::from(self.len)].iter().any(|size| *size > 1)
    }

    /// Returns the first of the strategies that share a process with a strategy; itself at a level
    /// without groups.
    pub fn first_of_group(&self, strategy: StrategyIndex) -> StrategyIndex {
        let place = self.place_of(strategy);
        let (turn, size) = (strategy.0 / u16::from(self.len), self.group_sizes[place]);
        StrategyIndex(turn / size * size * u16::from(self.len) + place as u16)
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
        self.group_sizes[..len].rotate_left(steps % len);
        let (first, size) = (self.levels[0], self.group_sizes[0]);
        self.levels[len..].fill(first);
        self.group_sizes[len..].fill(size);
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

    /// Reads levels with a plus sign or a comma between them, each perhaps with the size of its
    /// groups.
    fn from_str(text: &str) -> Result<Self, IsolationError> {
        Self::with_groups(&text.split(['+', ',']).map(read_level).collect::<Result<Vec<_>, _>>()?)
    }
}

/// Reads a level, perhaps with the size of its groups: `process*4`.
fn read_level(text: &str) -> Result<GroupedLevel, IsolationError> {
    let text = text.trim();
    let (name, size) = text.split_once('*').map_or((text, None), |(name, size)| (name, Some(size)));
    let level = Isolation::from_name(name).ok_or_else(|| IsolationError::Unknown(name.into()))?;
    let Some(size) = size else { return Ok((level, 1)) };
    match size.parse::<u16>() {
        Ok(1) => Ok((level, 1)),
        Ok(_) if level == Isolation::Thread => Err(IsolationError::GroupedThreads(text.into())),
        Ok(size @ 2..) if usize::from(size) <= MAX_STRATEGIES => Ok((level, size)),
        _ => Err(IsolationError::Group(text.into())),
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
        let name = |(level, size): (&Isolation, &u16)| match size {
            1 => level.name().to_owned(),
            size => format!("{level}*{size}"),
        };
        let names: Vec<String> = self.as_slice().iter().zip(&self.group_sizes).map(name).collect();
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
        let same: IsolationLevels = "container+container".parse().unwrap();
        assert_eq!(same.only(), Some(Isolation::Container));
    }

    #[test]
    fn groups_take_strategies_of_their_place_in_order() {
        let firsts = |levels: &str, strategies: u16| -> Vec<u16> {
            let levels: IsolationLevels = levels.parse().unwrap();
            StrategyIndex::first(strategies).map(|strategy| levels.first_of_group(strategy).0).collect()
        };
        assert_eq!(firsts("process*4", 6), [0, 0, 0, 0, 4, 4]);
        assert_eq!(firsts("process", 3), [0, 1, 2]);
        assert_eq!(firsts("thread+process*2", 8), [0, 1, 2, 1, 4, 5, 6, 5]);
        assert_eq!(firsts("process*2+sandbox*3", 9), [0, 1, 0, 1, 4, 1, 4, 7, 8]);
        let levels: IsolationLevels = "thread+process*2".parse().unwrap();
        assert_eq!([1, 2].map(|strategy| levels.group_size_of(StrategyIndex(strategy))), [2, 1]);
        assert_eq!(levels.rotated(1).to_string(), "process*2+thread");
        assert_eq!(levels.rotated(1).rotated(1), levels);
        assert!(levels.has_groups() && !IsolationLevels::all(Isolation::Process).has_groups());
        assert_eq!("process*1".parse::<IsolationLevels>().unwrap().to_string(), "process");
        for (text, wanted) in [
            ("thread*2", IsolationError::GroupedThreads("thread*2".into())),
            ("process*0", IsolationError::Group("process*0".into())),
            ("process*257", IsolationError::Group("process*257".into())),
            ("process*", IsolationError::Group("process*".into())),
            ("process**2", IsolationError::Group("process**2".into())),
            ("cell*2", IsolationError::Unknown("cell".into())),
        ] {
            assert_eq!(text.parse::<IsolationLevels>(), Err(wanted));
        }
    }

    #[test]
    fn levels_survive_saving() {
        for text in ["process", "sandbox+thread+container", "process*4", "thread+process*2+sandbox*256"] {
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
