//! The isolation levels, and how a run assigns them to its strategies.

use crate::index::StrategyIndex;
use crate::wire::MAX_STRATEGIES;
use crate::workload::Speculation;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use system::named_enum;
use thiserror::Error;

named_enum! {
    /// The isolation between a strategy and the engine.
    Isolation {
        /// No isolation: the strategy is a thread of the engine's process, with the rings that
        /// processes have.
        Thread = "thread",
        /// Protection keys: the strategy is a thread of the engine's process that may write its own
        /// memory only.
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
    /// Returns `true` if a strategy with this isolation is a thread of the engine's process.
    pub const fn is_thread(self) -> bool {
        matches!(self, Self::Thread | Self::Keys)
    }
}

/// An isolation level of strategies: `process`, `process*4` for groups of four in one process, or
/// `process:closed` without indirect branch speculation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IsolationLevel {
    /// The place among all kinds, for the order of tables.
    place: u8,
    /// Strategies of a process; 1 without groups.
    group_size: u16,
    /// Whether processes of the level are closed, whatever the run's setting is.
    speculation: Speculation,
}

impl IsolationLevel {
    /// Creates an isolation level of this kind without groups of strategies.
    pub const fn alone(kind: Isolation) -> Self {
        Self { place: kind as u8, group_size: 1, speculation: Speculation::Open }
    }

    /// Creates an isolation level at which `group_size` strategies share a process; fewer than 2:
    /// none do.
    pub fn grouped(kind: Isolation, group_size: u16) -> Self {
        Self { group_size: group_size.max(1), ..Self::alone(kind) }
    }

    /// Returns the isolation between the engine and the strategies of this level.
    pub fn kind(self) -> Isolation {
        Isolation::ALL[usize::from(self.place)]
    }

    /// Returns how many strategies of this isolation level share a process.
    pub const fn group_size(self) -> u16 {
        self.group_size
    }

    /// Returns the isolation level's setting for indirect branch speculation in strategies'
    /// processes.
    pub const fn speculation(self) -> Speculation {
        self.speculation
    }

    /// Returns the isolation level of strategies with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl From<Isolation> for IsolationLevel {
    fn from(kind: Isolation) -> Self {
        Self::alone(kind)
    }
}

impl PartialEq<Isolation> for IsolationLevel {
    /// Returns `true` for the level of this kind without groups, as the run's setting has its
    /// speculation.
    fn eq(&self, kind: &Isolation) -> bool {
        *self == Self::alone(*kind)
    }
}

/// Returns what is before a mark, and what is after it if it is there.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

impl FromStr for IsolationLevel {
    type Err = IsolationError;

    /// Reads a level, perhaps with the size of its groups and its speculation.
    fn from_str(text: &str) -> Result<Self, IsolationError> {
        let text = text.trim();
        let (level, speculation) = split(text, ':');
        let (name, size) = split(level, '*');
        let kind = Isolation::from_name(name).ok_or_else(|| IsolationError::Unknown(name.into()))?;
        let speculation = match speculation {
            None => Speculation::Open,
            Some(_) if kind.is_thread() => return Err(IsolationError::ClosedThreads(text.into())),
            Some(name) if name == Speculation::Closed.name() => Speculation::Closed,
            Some(_) => return Err(IsolationError::Unknown(text.into())),
        };
        let level = match size.map(str::parse::<u16>) {
            None | Some(Ok(1)) => Self::alone(kind),
            Some(Ok(_)) if kind.is_thread() => return Err(IsolationError::GroupedThreads(text.into())),
            Some(Ok(size @ 2..)) if usize::from(size) <= MAX_STRATEGIES => Self::grouped(kind, size),
            _ => return Err(IsolationError::Group(text.into())),
        };
        Ok(Self { speculation, ..level })
    }
}

impl TryFrom<String> for IsolationLevel {
    type Error = IsolationError;

    fn try_from(text: String) -> Result<Self, IsolationError> {
        text.parse()
    }
}

impl From<IsolationLevel> for String {
    fn from(level: IsolationLevel) -> Self {
        level.to_string()
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.group_size > 1 { format!("*{}", self.group_size) } else { String::new() };
        let speculation = if self.speculation == Speculation::Closed { ":closed" } else { "" };
        f.pad(&format!("{}{size}{speculation}", self.kind()))
    }
}

impl fmt::Debug for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The isolation levels of a run's strategies: one or several, assigned to the strategies
/// round-robin. Written with a plus sign between levels: `thread+process`.
///
/// Strategy `i` has level `i` modulo their number. Several levels in one run compare levels under
/// the same engine, clock and second. The strategies of one place among the levels form its groups,
/// in order: at `thread+process*2` strategies 1 and 3 share a process, and so do 5 and 7.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IsolationLevels {
    levels: [IsolationLevel; Self::MAX],
    len: u8,
}

/// The error that a text does not describe valid isolation levels, such as an unknown name or a
/// wrong group size.
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
    /// Threads of the engine's process have its speculation.
    #[error(
        "{0:?}: the kernel separates processes, and threads are in the engine's; closed speculation is for other levels"
    )]
    ClosedThreads(String),
}

impl IsolationLevels {
    /// The largest number of isolation levels in one run.
    pub const MAX: usize = 8;

    /// Creates the isolation of a run's strategies with these levels; none or too many are an
    /// error.
    pub fn new<L: Into<IsolationLevel> + Copy>(levels: &[L]) -> Result<Self, IsolationError> {
        let (Some(first), len @ 1..=Self::MAX) = (levels.first(), levels.len()) else {
            return Err(IsolationError::Count(levels.len()));
        };
        let mut all = [(*first).into(); Self::MAX];
        all.iter_mut().zip(levels).for_each(|(place, level)| *place = (*level).into());
        Ok(Self { levels: all, len: len as u8 })
    }

    /// Creates the isolation of a run whose strategies all have this level, without groups.
    pub const fn uniform(kind: Isolation) -> Self {
        Self { levels: [IsolationLevel::alone(kind); Self::MAX], len: 1 }
    }

    /// Returns the isolation levels in the order in which strategies get them.
    pub fn as_slice(&self) -> &[IsolationLevel] {
        &self.levels[..usize::from(self.len)]
    }

    /// Returns the isolation between a strategy and the engine.
    pub fn kind_of(&self, strategy: StrategyIndex) -> Isolation {
        self.level_of(strategy).kind()
    }

    /// Returns the isolation level of a strategy.
    pub fn level_of(&self, strategy: StrategyIndex) -> IsolationLevel {
        self.levels[self.place_of(strategy)]
    }

    /// Returns the position, in the run's list of isolation levels, of the level that a strategy
    /// has.
    pub fn place_of(&self, strategy: StrategyIndex) -> usize {
        strategy.as_usize() % usize::from(self.len)
    }

    /// Returns `true` if some strategies share a process other than the engine's.
    pub fn has_groups(&self) -> bool {
        self.as_slice().iter().any(|level| level.group_size > 1)
    }

    /// Returns the first of the strategies that share a process with a strategy; the strategy
    /// itself at a level without groups.
    pub fn first_of_group(&self, strategy: StrategyIndex) -> StrategyIndex {
        let (turn, size) = (strategy.0 / u16::from(self.len), self.level_of(strategy).group_size);
        StrategyIndex(turn / size * size * u16::from(self.len) + self.place_of(strategy) as u16)
    }

    /// Iterates over the list of levels, each with the number of equal levels before it in the
    /// list.
    pub fn places(&self) -> impl Iterator<Item = (IsolationLevel, usize)> + '_ {
        let before = |place: usize, level| self.levels[..place].iter().filter(|own| **own == level).count();
        self.as_slice().iter().enumerate().map(move |(place, level)| (*level, before(place, *level)))
    }

    /// Returns `true` if the run's list of isolation levels has a level of this kind.
    pub fn has(&self, kind: Isolation) -> bool {
        self.as_slice().iter().any(|level| level.kind() == kind)
    }

    /// Returns `true` if some strategies are threads of the engine's process.
    pub fn has_threads(&self) -> bool {
        self.as_slice().iter().any(|level| level.kind().is_thread())
    }

    /// Returns `true` if all strategies are threads of the engine's process.
    pub fn has_only_threads(&self) -> bool {
        self.as_slice().iter().all(|level| level.kind().is_thread())
    }

    /// Returns `true` if at least one isolation level disables indirect branch speculation in its
    /// strategies' processes, whatever the setting for all strategies.
    pub fn has_closed_speculation(&self) -> bool {
        self.as_slice().iter().any(|level| level.speculation == Speculation::Closed)
    }

    /// Returns `true` if all strategies have an isolation level of this kind.
    pub fn is_only(&self, kind: Isolation) -> bool {
        self.as_slice().iter().all(|level| level.kind() == kind)
    }

    /// Returns the isolation level that all strategies have; `None` if they differ.
    pub fn only(&self) -> Option<IsolationLevel> {
        let first = self.levels[0];
        self.as_slice().iter().all(|level| *level == first).then_some(first)
    }

    /// Returns the different isolation levels, in the order of [`Isolation::ALL`], smaller groups
    /// first.
    pub fn distinct(&self) -> impl Iterator<Item = IsolationLevel> + use<> {
        self.as_slice().iter().copied().collect::<BTreeSet<_>>().into_iter()
    }

    /// Returns the levels rotated by `steps` strategies: strategy 0 gets the level of strategy
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
    fn from(kind: Isolation) -> Self {
        Self::uniform(kind)
    }
}

impl From<IsolationLevel> for IsolationLevels {
    fn from(level: IsolationLevel) -> Self {
        Self { levels: [level; Self::MAX], len: 1 }
    }
}

impl FromStr for IsolationLevels {
    type Err = IsolationError;

    /// Reads levels with a plus sign or a comma between them.
    fn from_str(text: &str) -> Result<Self, IsolationError> {
        Self::new(&text.split(['+', ',']).map(str::parse).collect::<Result<Vec<IsolationLevel>, _>>()?)
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
        let names: Vec<String> = self.as_slice().iter().map(IsolationLevel::to_string).collect();
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
            [0, 1, 2, 255].map(|strategy| levels.kind_of(StrategyIndex(strategy)).name()),
            ["thread", "process", "thread", "process"]
        );
        assert_eq!(levels.rotated(1), "process,thread".parse().unwrap());
        assert_eq!(levels.rotated(2), levels);
        let doubled: IsolationLevels = "thread+process+thread".parse().unwrap();
        let places: Vec<_> = doubled.places().map(|(level, before)| (level.kind().name(), before)).collect();
        assert_eq!(places, [("thread", 0), ("process", 0), ("thread", 1)]);
        assert_eq!((levels.only(), levels.has(Isolation::Sandbox)), (None, false));
        let threads: IsolationLevels = "thread+keys".parse().unwrap();
        assert_eq!((threads.has_threads(), threads.has_only_threads()), (true, true));
        assert_eq!((levels.has_threads(), levels.has_only_threads()), (true, false));
        let same: IsolationLevels = "container+container".parse().unwrap();
        assert_eq!(same.only(), Some(Isolation::Container.into()));
        let sizes: IsolationLevels = "process*2+process".parse().unwrap();
        assert_eq!(sizes.only(), None, "groups are another level");
        assert_eq!(sizes.places().map(|(_, before)| before).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(
            sizes.distinct().map(|level| level.to_string()).collect::<Vec<_>>(),
            ["process", "process*2"]
        );
        assert!(sizes.is_only(Isolation::Process) && sizes.as_slice()[1] == Isolation::Process);
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
        assert_eq!([1, 2].map(|strategy| levels.level_of(StrategyIndex(strategy)).group_size()), [2, 1]);
        assert_eq!(levels.rotated(1).to_string(), "process*2+thread");
        assert_eq!(levels.rotated(1).rotated(1), levels);
        assert!(levels.has_groups() && !IsolationLevels::uniform(Isolation::Process).has_groups());
        assert_eq!("process*1".parse::<IsolationLevels>().unwrap().to_string(), "process");
        for (text, wanted) in [
            ("thread*2", IsolationError::GroupedThreads("thread*2".into())),
            ("process*0", IsolationError::Group("process*0".into())),
            ("process*257", IsolationError::Group("process*257".into())),
            ("process*", IsolationError::Group("process*".into())),
            ("process**2", IsolationError::Group("process**2".into())),
            ("cell*2", IsolationError::Unknown("cell".into())),
            ("process*2:shut", IsolationError::Unknown("process*2:shut".into())),
            ("keys:closed", IsolationError::ClosedThreads("keys:closed".into())),
        ] {
            assert_eq!(text.parse::<IsolationLevels>(), Err(wanted));
        }
    }

    #[test]
    fn closed_level_is_another_one() {
        let levels: IsolationLevels = "process+process:closed+process*2:closed".parse().unwrap();
        assert_eq!((levels.only(), levels.is_only(Isolation::Process)), (None, true));
        assert_eq!(levels.places().map(|(_, before)| before).collect::<Vec<_>>(), [0, 0, 0]);
        let closed = levels.as_slice()[2];
        assert_eq!((closed.group_size(), closed.speculation()), (2, Speculation::Closed));
        assert!(closed != Isolation::Process && levels.has_closed_speculation());
        assert!(
            levels.as_slice()[0] == Isolation::Process
                && !IsolationLevels::uniform(Isolation::Sandbox).has_closed_speculation()
        );
    }

    #[test]
    fn levels_survive_saving() {
        for text in [
            "process",
            "sandbox+thread+container",
            "process*4",
            "thread+process*2+sandbox*256",
            "process+process:closed+sandbox*2:closed",
        ] {
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
