//! The launcher that called this program: its executable, which makes the runs, its build, and what
//! it has registered.

use nix::unistd::close;
use planner::config::UsageError;
use planner::config::components::OwnComponents;
use record::screen::program;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The `launcher` that started this program: its executable, commit and registered strategies,
/// techniques and venues, read from the first arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Descriptor of the launcher's executable.
    launcher: Option<i32>,
    /// The launcher's commit.
    build: String,
    /// What the launcher has registered, as JSON.
    components: String,
}

impl Caller {
    /// Removes the leading arguments that describe the calling launcher (`--launcher`, `--build`,
    /// `--components`) from a command line. Returns the launcher and the other arguments.
    pub fn take(arguments: impl IntoIterator<Item = OsString>) -> (Self, Vec<OsString>) {
        let (mut caller, mut rest) = (Self::default(), Vec::new());
        let mut arguments = arguments.into_iter();
        rest.extend(arguments.next());
        for word in &mut arguments {
            match word.to_str().and_then(|word| word.split_once('=')) {
                Some(("--launcher", number)) => caller.launcher = number.parse().ok(),
                Some(("--build", commit)) => caller.build = commit.into(),
                Some(("--components", json)) => caller.components = json.into(),
                _ => {
                    rest.push(word);
                    break;
                }
            }
        }
        rest.extend(arguments);
        (caller, rest)
    }
}

/// The launcher's executable, through a descriptor: the same one even if its file was replaced
/// since.
static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();

/// Remembers the launcher that called and registers its components.
///
/// # Errors
/// No launcher called, or one of another commit.
pub(crate) fn remember(caller: &Caller) -> Result<(), UsageError> {
    let refused = |why: String| Err(UsageError(why));
    let Some(passed) = caller.launcher else {
        return refused("experiments are begun by the launcher: launcher compare, launcher bill".into());
    };
    if caller.build != build_info::COMMIT {
        let of =
            |commit: &str| if commit.is_empty() { "no commit".into() } else { format!("commit {commit}") };
        return refused(format!(
            "the launcher is of {} and its experiments are of {}: build both: cargo build{} -p launcher -p experiments; \
             or install both: cargo install --locked --path launcher, and --path experiments",
            of(&caller.build),
            of(build_info::COMMIT),
            if build_info::PROFILE == "release" { " --release" } else { "" }
        ));
    }
    let broken = |error: &dyn std::fmt::Display| UsageError(format!("--launcher {passed}: {error}"));
    let executable = File::open(format!("/proc/self/fd/{passed}")).map_err(|error| broken(&error))?;
    // The one that was passed would stay open in the processes of a run.
    close(passed).map_err(|error| broken(&error))?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), executable.as_raw_fd());
    let _ = LAUNCHER.set(path.into());
    // Open as long as this process.
    let _ = executable.into_raw_fd();
    if caller.components.is_empty() {
        return Ok(());
    }
    let components: OwnComponents = serde_json::from_str(&caller.components)
        .map_err(|error| UsageError(format!("--components: {error}")))?;
    components.register().map_err(|error| UsageError(error.to_string()))
}

/// Returns the command of the launcher that makes the runs.
pub(crate) fn launcher() -> Command {
    let mut command = Command::new(LAUNCHER.get().map_or("/proc/self/exe".as_ref(), PathBuf::as_path));
    command.arg0(program());
    command
}

/// Returns the path of the launcher that makes the runs.
pub(crate) fn executable() -> std::io::Result<PathBuf> {
    LAUNCHER.get().map_or_else(std::env::current_exe, std::fs::read_link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_the_launcher_come_first() {
        let line = ["launcher", "--launcher=7", "--build=1234abcd", "compare", "--build=x"];
        let (caller, rest) = Caller::take(line.map(Into::into));
        assert_eq!(caller, Caller { launcher: Some(7), build: "1234abcd".into(), ..Caller::default() });
        assert_eq!(rest, ["launcher", "compare", "--build=x"]);
        let (caller, rest) = Caller::take(["launcher", "compare"].map(Into::into));
        assert_eq!((caller, rest.len()), (Caller::default(), 2));
    }

    #[test]
    fn only_launcher_of_same_commit_is_served() {
        let refused = |caller: &Caller| remember(caller).unwrap_err().to_string();
        assert!(refused(&Caller::default()).contains("begun by the launcher"));
        let other = Caller { launcher: Some(-1), build: "0000beef".into(), ..Caller::default() };
        let why = refused(&other);
        assert!(why.contains("of commit 0000beef") && why.contains("-p launcher -p experiments"), "{why}");
        assert!(why.contains(build_info::COMMIT), "{why}");
        let same = Caller { build: build_info::COMMIT.into(), ..other };
        assert!(refused(&same).starts_with("--launcher -1"), "its descriptor is looked at next");
    }
}
