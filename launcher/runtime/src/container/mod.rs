//! Contained strategies: how they are started, watched and limited. [`system::container`] builds
//! the container itself.
//!
//! ```text
//! launcher ─ starts ─▶ shim (role … --contain) ────┬─▶ init: process 1 inside; checks what it sees
//!    ▲                    in the cgroup            └─▶ the strategy: process 2 inside
//!    └── ids of both ─────────────┘
//! ```
//! The shim sends the id of init first and starts the strategy once the launcher has answered.
//!
//! The shim only waits. It exits as the strategy has exited, after init and with it everything else
//! inside: so its exit is the end of all of them.

pub mod cgroups;
mod shim;

pub use shim::role;

use anyhow::{Context, Result, anyhow, bail};
use planner::host;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use system::process;

/// The flag of `launcher role` that starts a container around the strategy instead of the strategy
/// itself.
pub const FLAG: &str = "--contain";
const INIT: &str = "init";
/// Role name of a process that only probes whether a container can be created.
const PROBE: &str = "probe";
/// The probe's argument that accepts a kernel without landlock.
const WEAKER: &str = "weaker";

const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_LINE: usize = 64;

/// Tries to create a container, and returns the reason and the remedy if this machine cannot;
/// `None` if it can.
pub fn missing(weaker_is_fine: bool) -> Option<String> {
    if let Some(why) = cgroups::obstacle(host::root()) {
        return Some(why);
    }
    let why = probe(if weaker_is_fine { WEAKER } else { "" })?;
    let hint = hint(|name| fs::read_to_string(format!("/proc/sys/{name}")).ok());
    Some(format!("containers unavailable: {why}.\n{hint}"))
}

/// Creates a container without the listed parts. Returns what is wrong with it.
fn probe(what: &str) -> Option<String> {
    let mut command = role_command(PROBE);
    match command.args([FLAG, PROBE, what]).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            let first = message.lines().next().unwrap_or("it ended without a word");
            Some(first.trim_start_matches("error: ").to_owned())
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the command that runs `launcher role` of this executable, for a process that `ps` shows
/// under the given name. /proc/self/exe is this executable even if its file was replaced since:
/// every process has one layout.
pub fn role_command(name: &str) -> Command {
    role_command_of(name, None)
}

/// Returns the command that runs `launcher role` from `executable` (a copy of this one), or from
/// this executable.
pub fn role_command_of(name: &str, executable: Option<&Path>) -> Command {
    let mut command = Command::new(executable.unwrap_or(Path::new("/proc/self/exe")));
    command.arg0(format!("bulkhead {name}")).arg("role");
    command
}

/// Returns the likeliest system setting that forbids containers, and the remedy.
fn hint(sysctl: impl Fn(&str) -> Option<String>) -> String {
    let is = |name: &str, value: &str| sysctl(name).is_some_and(|text| text.trim() == value);
    let way_out = if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor keeps user namespaces from ordinary users: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "User namespaces are kept from ordinary users: `sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("user/max_user_namespaces", "0") {
        "User namespaces are switched off: `sysctl user.max_user_namespaces=1000`"
    } else {
        "It takes user namespaces and Linux 5.14; within Docker, --security-opt seccomp=unconfined and systempaths=unconfined"
    };
    format!("{way_out}; or use --isolation process")
}

/// A started container: its processes and its cgroups, with the handles that end them.
pub struct ContainerHandle {
    /// The strategy's process id as seen outside of the container; `None` if it may not have
    /// started.
    pub pid: Option<u32>,
    /// Pidfd of the strategy, unless it exited immediately.
    main: Option<OwnedFd>,
    /// Pidfd of the first process: with it everything inside ends, and its exit is seen after all
    /// others'.
    init: OwnedFd,
}

impl ContainerHandle {
    /// Waits until the shim, the process around a container, has created the container. The shim
    /// sends the id of the first process before it starts the strategy, and waits for an answer: so
    /// in every case no process runs inside whose exit cannot be seen. Returns the part that
    /// exists, also with an error, whose reason the shim has written to its stderr.
    pub fn from_shim(outside: &mut Child) -> (Option<Self>, Result<()>) {
        let Some((mut message, mut told)) = outside.stdout.take().zip(outside.stdin.take()) else {
            return (None, Err(anyhow!("it has no pipes")));
        };
        let deadline = Instant::now() + STARTUP_TIMEOUT;
        // Neither id can be reused: the shim reaps them only once its stdin is closed.
        let init = match read_id(&mut message, deadline).and_then(|init| Ok(process::pidfd_open(init)?)) {
            Ok(init) => init,
            Err(why) => return (None, Err(why)),
        };
        let mut inside = Self { pid: None, main: None, init };
        let started = told.write_all(b"\n").map_err(anyhow::Error::from);
        let made = started.and_then(|()| read_id(&mut message, deadline)).map(|pid| {
            (inside.pid, inside.main) = (Some(pid), process::pidfd_open(pid).ok());
        });
        (Some(inside), made)
    }

    /// Returns the pidfd of the container's strategy, or the pidfd of the container's init process
    /// without a pidfd of the strategy.
    pub fn main(&self) -> &OwnedFd {
        self.main.as_ref().unwrap_or(&self.init)
    }

    /// Returns the pidfd of the container's first process (init), whose exit ends all others in it.
    /// If the shim is gone, the processes it would have reaped are reaped now: a PID namespace ends
    /// with its last process once that is reaped.
    pub fn init(&self) -> &OwnedFd {
        self.main.iter().chain([&self.init]).for_each(|process| process::reap(process.as_fd()));
        &self.init
    }
}

fn read_id(message: &mut ChildStdout, deadline: Instant) -> Result<u32> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || line.len() > MAX_LINE {
            bail!("the shim did not answer in time");
        }
        if !process::wait_readable(&[message.as_fd()], left)?[0] {
            continue;
        }
        // One byte: what follows the line is for the next call.
        let mut byte = [0];
        match message.read(&mut byte)? {
            0 => bail!("the shim ended before the container was made"),
            _ => line.push(byte[0]),
        }
    }
    let line = String::from_utf8_lossy(&line);
    line.trim().parse().with_context(|| format!("it says {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_setting_that_forbids_it() {
        let with = |name: &'static str, value: &'static str| {
            hint(move |asked| (asked == name).then(|| format!("{value}\n")))
        };
        for (name, value, expected) in [
            ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_restrict_unprivileged_userns=0"),
            ("kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
            ("user/max_user_namespaces", "0", "max_user_namespaces=1000"),
            ("user/max_user_namespaces", "9000", "Linux 5.14"),
        ] {
            let hint = with(name, value);
            assert!(hint.contains(expected) && hint.contains("--isolation process"), "{hint}");
        }
    }
}
