//! The launcher that called this program: its executable, which makes the runs, its build, and what
//! it has registered.

use clap::Args;
use nix::unistd::close;
use planner::config::UsageError;
use planner::config::components::OwnComponents;
use record::screen::program;
use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// What the launcher tells of itself.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Descriptor of the launcher's executable
    #[arg(long, hide = true)]
    pub launcher: Option<i32>,
    /// The launcher's commit
    #[arg(long, hide = true, default_value = "")]
    pub build: String,
    /// What the launcher has registered, as JSON
    #[arg(long, hide = true, default_value = "")]
    pub components: String,
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
            "the launcher is of {} and its experiments are of {}: build both: cargo build{} -p launcher -p experiments",
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
