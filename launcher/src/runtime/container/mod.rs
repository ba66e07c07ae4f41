//! Strategies in containers: how they are started, watched and limited. What a container is made of
//! is in [`system::container`].
//!
//! ```text
//! launcher ─ starts ─▶ outside (role … --contain) ─┬─▶ init: process 1 in there; checks what it sees
//!    ▲                    in the control group     └─▶ the strategy: process 2 in there
//!    └── ids of both ─────────────┘
//! ```
//! The id of the first one comes first, and the strategy is started when the launcher has answered.
//!
//! The one outside does nothing but wait. It ends as the strategy has ended, after init and with it
//! everything else in there: so its end is the end of all of them.

pub mod cgroups;
mod shim;

pub use shim::role;

use crate::host::cgroups::Tree;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use system::process;

/// The flag of `role` by which a process makes a container instead of being the role itself.
pub const FLAG: &str = "--contain";
/// The name of a container's first process among the roles.
const INIT: &str = "init";
/// The name of who only tries whether there can be a container.
const PROBE: &str = "probe";
/// What a probe is told where a kernel that lacks landlock is good enough.
const WEAKER: &str = "weaker";

/// How long making a container may take.
const MADE_WITHIN: Duration = Duration::from_secs(20);
/// The longest line that the one outside says.
const MOST: usize = 64;

/// Why no container can be had here, and the way out; `None`: it can. Makes one, checks it and ends
/// it.
pub fn missing(weaker_is_fine: bool) -> Option<String> {
    if let Some(why) = cgroups::obstacle(Tree::real()) {
        return Some(why);
    }
    let why = probe(if weaker_is_fine { WEAKER } else { "" })?;
    let hint = hint(|name| fs::read_to_string(format!("/proc/sys/{name}")).ok());
    Some(format!("containers unavailable: {why}.\n{hint}"))
}

/// Makes a container without some of its parts, as a list; what is wrong with it. For [`missing`],
/// and for tests of the check.
fn probe(what: &str) -> Option<String> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["role", FLAG, PROBE, what]).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().next().unwrap_or("it ended without a word");
            Some(first.trim_start_matches("error: ").to_owned())
        }
        Err(error) => Some(error.to_string()),
    }
}

/// What of the system's settings is the likeliest reason, and what to do.
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

/// What the launcher knows of a container's inside.
pub struct Inside {
    /// The strategy's process id, as seen from here; `None`: it was never started, as far as is
    /// known.
    pub pid: Option<u32>,
    /// The strategy, unless it was gone at once.
    main: Option<OwnedFd>,
    /// The first process: with it everything in there ends, and its end is seen after all others'.
    init: OwnedFd,
}

/// A container that was not made.
pub struct Unmade {
    /// The reason; what the process outside says stands on its stderr.
    pub why: anyhow::Error,
    /// What there is of it. A strategy may run in there until the end of its first process is seen.
    pub inside: Option<Inside>,
}

impl Inside {
    /// Waits until the process that makes a container has done so. It says who is the first process
    /// before it starts the strategy, and waits for an answer: so whatever happens to it, nobody
    /// runs in there whose end cannot be seen.
    pub fn of(outside: &mut Child) -> Result<Self, Box<Unmade>> {
        let unmade = |why| Box::new(Unmade { why, inside: None });
        let pipes = outside.stdout.take().zip(outside.stdin.take());
        let (mut said, mut told) = pipes.context("it has no pipes").map_err(unmade)?;
        let deadline = Instant::now() + MADE_WITHIN;
        // Neither id can be another's: the one outside waits for them only once its stdin is
        // closed.
        let init = read_id(&mut said, deadline).and_then(|init| Ok(process::pidfd_open(init)?));
        let mut inside = Self { pid: None, main: None, init: init.map_err(unmade)? };
        let started = told.write_all(b"\n").map_err(anyhow::Error::from);
        match started.and_then(|()| read_id(&mut said, deadline)) {
            Ok(pid) => {
                (inside.pid, inside.main) = (Some(pid), process::pidfd_open(pid).ok());
                Ok(inside)
            }
            Err(why) => Err(Box::new(Unmade { why, inside: Some(inside) })),
        }
    }

    /// The strategy, or what is in its place.
    pub fn main(&self) -> &OwnedFd {
        self.main.as_ref().unwrap_or(&self.init)
    }

    /// The first process, whose end is that of everything in there. What the one outside would have
    /// reaped is reaped now if that one is gone: a namespace of process ids ends with the last
    /// process in it that somebody reaps.
    pub fn init(&self) -> &OwnedFd {
        self.main.iter().chain([&self.init]).for_each(|process| process::reap(process.as_fd()));
        &self.init
    }
}

/// The next line that the one outside says: a process id.
fn read_id(said: &mut ChildStdout, deadline: Instant) -> Result<u32> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || line.len() > MOST {
            bail!("it says nothing");
        }
        if !process::wait_readable(&[said.as_fd()], left)?[0] {
            continue;
        }
        // One byte: what follows the line is for the next call.
        let mut byte = [0];
        match said.read(&mut byte)? {
            0 => bail!("it was not made"),
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
        for (name, value, words) in [
            ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_restrict_unprivileged_userns=0"),
            ("kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
            ("user/max_user_namespaces", "0", "max_user_namespaces=1000"),
            ("user/max_user_namespaces", "9000", "Linux 5.14"),
        ] {
            let hint = with(name, value);
            assert!(hint.contains(words) && hint.contains("--isolation process"), "{hint}");
        }
    }
}
