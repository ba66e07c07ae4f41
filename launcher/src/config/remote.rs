//! Strategies on other hosts: `--remote NAME@HOST:PORT` is a strategy more, the program that meets a far host there.

use super::own::{Kinds, StrategyName};
use super::program::file_of;
use super::value::Named;
use super::{Settings, UsageError};
use analysis::units::Count;
use protocol::plan::Trading;
use std::path::PathBuf;

/// The program that meets other hosts. It is built by itself: see `docs/src/remote.md`.
pub const BRIDGE: &str = "bulkhead-bridge";

/// Where it is: beside this program, or in PATH.
///
/// # Errors
/// It is nowhere, and how it is built.
pub fn bridge() -> Result<PathBuf, UsageError> {
    let beside = std::env::current_exe().ok().map(|me| me.with_file_name(BRIDGE));
    let found = beside.filter(|path| path.is_file()).or_else(|| file_of(BRIDGE));
    found.ok_or_else(|| {
        UsageError(format!(
            "there is no {BRIDGE} beside the launcher or in PATH, which carries orders between hosts.\n\
             Build it: cd bridge-aeron && cargo build --release, and copy it there (docs/src/remote.md says what the build needs)"
        ))
    })
}

impl Settings {
    /// The same with a strategy more for each of these meetings, behind those that were asked for; where none was asked for, these are all.
    ///
    /// # Errors
    /// A meeting that cannot be one word of a command, no program for it, or more strategies than there can be.
    pub fn with_remotes(self, meetings: &[String]) -> Result<Self, UsageError> {
        if meetings.is_empty() {
            return Ok(self);
        }
        let bridge = bridge()?.display().to_string();
        if bridge.contains([' ', ',']) {
            return Err(UsageError(format!(
                "{bridge} has a space or a comma in its path: put it where there is none"
            )));
        }
        let is_asked = self.strategy.is_some() || self.strategies.is_some();
        let mine = self.strategy.unwrap_or_default();
        let count = match self.strategies {
            Some(count) => usize::try_from(count.0).unwrap_or(usize::MAX).min(protocol::wire::MAX_STRATEGIES),
            None if is_asked => mine.0.len(),
            None => 0,
        };
        let mut kinds: Vec<StrategyName> = mine.0.iter().cycle().take(count).copied().collect();
        for meeting in meetings {
            let is_one = meeting.contains('@')
                && !meeting.contains(|letter: char| letter == ',' || letter.is_whitespace());
            let text = format!("{}{bridge} serve {meeting}", Trading::PROGRAM);
            let kind = StrategyName::of(&text).filter(|_| is_one);
            kinds.push(kind.ok_or_else(|| UsageError(format!("--remote {meeting}: say NAME@HOST:PORT")))?);
        }
        let strategies = Some(Count(kinds.len() as u64));
        Ok(Self { strategy: Some(Kinds(kinds)), strategies, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Value;

    fn kinds(strategy: Option<&str>, strategies: Option<u64>, meetings: &[&str]) -> Result<String, String> {
        let strategy = strategy.map(|text| Kinds::parse(text).unwrap());
        let settings = Settings { strategy, strategies: strategies.map(Count), ..Settings::default() };
        let meetings: Vec<String> = meetings.iter().map(|meeting| (*meeting).into()).collect();
        let settings = settings.with_remotes(&meetings).map_err(|error| error.0)?;
        assert_eq!(
            settings.strategies.map(|count| count.0 as usize),
            settings.strategy.as_ref().map(|kinds| kinds.0.len())
        );
        Ok(settings.strategy.map_or(String::new(), |kinds| kinds.text()))
    }

    /// Beside the tests stands no such program, unless it is in PATH: then what is made of it is looked at.
    #[test]
    fn each_remote_is_a_strategy_behind_the_others() {
        let Ok(bridge) = bridge() else {
            let error = kinds(None, None, &["a@b:1"]).unwrap_err();
            assert!(error.contains(BRIDGE) && error.contains("cargo build --release"), "{error}");
            return;
        };
        let serve = format!("exec:{} serve", bridge.display());
        assert_eq!(kinds(None, None, &["a@b:1"]), Ok(format!("{serve} a@b:1")));
        let all = format!("player,player,{serve} a@b:1,{serve} c@b:3");
        assert_eq!(kinds(None, Some(2), &["a@b:1", "c@b:3"]), Ok(all));
        assert!(kinds(None, None, &["a b@c:1"]).is_err() && kinds(None, None, &["b:1"]).is_err());
    }

    #[test]
    fn without_one_nothing_changes() {
        let settings = Settings { strategies: Some(Count(3)), ..Settings::default() };
        assert_eq!(settings.clone().with_remotes(&[]).unwrap(), settings);
    }
}
