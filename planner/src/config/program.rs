//! Strategies that are user programs: checks that they can be started, and finds the bridge program
//! for `--remote NAME@HOST:PORT`.

use super::{KindList, Settings, UsageError};
use protocol::plan::Trading;
use record::units::Count;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Checks that the first word of a user's command names a program that can be started. It is a file
/// with a slash in its name, or one found in PATH.
pub fn check_executable(command: &str) -> Result<(), String> {
    let program = command.split_whitespace().next().unwrap_or_default();
    if program.contains('/') {
        return check_file(Path::new(program)).map_err(|why| format!("{program} {why}"));
    }
    if file_of(program).is_some() {
        return Ok(());
    }
    Err(format!(
        "there is no program {program} in PATH.\nOne in this folder is called ./{program}: --strategy {}./{command}",
        Trading::PROGRAM
    ))
}

fn file_of(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| check_file(path).is_ok())
}

fn check_file(path: &Path) -> Result<(), String> {
    let facts = std::fs::metadata(path).map_err(|error| format!("cannot be started: {error}"))?;
    if !facts.is_file() {
        return Err("is not a file: name the program in it".into());
    }
    if facts.permissions().mode() & 0o111 == 0 {
        return Err("is not executable: chmod +x makes it so, or name the program that runs it".into());
    }
    Ok(())
}

/// The file name of the bridge, the program that connects a run to other hosts. It is built by
/// itself: see `docs/src/remote.md`.
pub const BRIDGE: &str = "bulkhead-bridge";

/// Finds the path of a program by its file name, in this program's folder or in PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|me| me.with_file_name(name));
    beside.filter(|path| path.is_file()).or_else(|| file_of(name))
}

/// Finds the program that carries orders from strategies on another host, `bulkhead-bridge`, in
/// this program's folder or in PATH.
pub fn find_bridge() -> Result<PathBuf, UsageError> {
    find_program(BRIDGE).ok_or_else(|| {
        UsageError(format!(
            "there is no {BRIDGE} beside the launcher or in PATH, which carries orders between hosts.\n\
             Build it: cd contrib/bridge-aeron && cargo build --release, and copy it there (docs/src/remote.md says what the build needs)"
        ))
    })
}

impl Settings {
    /// Returns the settings with one more strategy for each address `NAME@HOST:PORT`: a bridge
    /// program that carries the orders of a remote strategy. They come after those that were
    /// requested; without any requested, these are all.
    pub fn with_remotes(self, remotes: &[String]) -> Result<Self, UsageError> {
        if remotes.is_empty() {
            return Ok(self);
        }
        let bridge = find_bridge()?.display().to_string();
        if bridge.contains([' ', ',']) {
            return Err(UsageError(format!(
                "{bridge} has a space or a comma in its path: put it where there is none"
            )));
        }
        let is_asked = self.strategy.is_some() || self.strategies.is_some();
        let local_kinds = self.strategy.unwrap_or_default();
        let count = match self.strategies {
            Some(count) => usize::try_from(count.0).unwrap_or(usize::MAX).min(protocol::wire::MAX_STRATEGIES),
            None if is_asked => local_kinds.0.len(),
            None => 0,
        };
        let mut kinds: Vec<String> = local_kinds.0.iter().cycle().take(count).cloned().collect();
        for remote in remotes {
            let is_break = |letter: char| letter == ',' || letter.is_whitespace();
            if !remote.contains('@') || remote.contains(is_break) {
                return Err(UsageError(format!("--remote {remote}: say NAME@HOST:PORT")));
            }
            kinds.push(format!("{}{bridge} serve {remote}", Trading::PROGRAM));
        }
        let strategies = Some(Count(kinds.len() as u64));
        Ok(Self { strategy: Some(KindList::new(kinds)), strategies, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::SettingValue;

    fn kinds(strategy: Option<&str>, strategies: Option<u64>, remotes: &[&str]) -> Result<String, String> {
        let strategy = strategy.map(|text| KindList::parse(text).unwrap());
        let settings = Settings { strategy, strategies: strategies.map(Count), ..Settings::default() };
        let remotes: Vec<String> = remotes.iter().map(|remote| (*remote).into()).collect();
        let settings = settings.with_remotes(&remotes).map_err(|error| error.0)?;
        assert_eq!(
            settings.strategies.map(|count| count.0 as usize),
            settings.strategy.as_ref().map(|kinds| kinds.0.len())
        );
        Ok(settings.strategy.map_or(String::new(), |kinds| kinds.text()))
    }

    /// The tests' folder has no such program, unless it is in PATH: then the resulting kinds are
    /// checked.
    #[test]
    fn each_remote_is_appended_as_a_strategy() {
        let Ok(bridge) = find_bridge() else {
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
}
