//! Strategies in containers: how they are started, watched and limited. What a container is made of is in [`shm::container`].
//!
//! ```text
//! launcher ─ starts ─▶ outside (role … --contain) ─┬─▶ init: process 1 in there; checks what it sees
//!    ▲                    in the control group     └─▶ the strategy: process 2 in there
//!    └── ids of both ─────────────┘
//! ```
//! The one outside does nothing but wait. It ends as the strategy has ended, after init and with it everything else in there: so its end is
//! the end of all of them.

pub mod groups;
mod outside;

pub use outside::role;

use crate::runtime::isolate::Tree;
use anyhow::{Context, Result, bail};
use shm::os::process;
use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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

/// Why no container can be had here, and the way out; `None`: it can. Makes one, checks it and ends it.
pub fn missing(weaker_is_fine: bool) -> Option<String> {
    if let Some(why) = groups::obstacle(Tree::real()) {
        return Some(why);
    }
    let why = probe(if weaker_is_fine { WEAKER } else { "" })?;
    let hint = hint(|name| fs::read_to_string(format!("/proc/sys/{name}")).ok());
    Some(format!("no container here: {why}.\n{hint}"))
}

/// Makes a container without some of its parts, as a list; what is wrong with it. For [`missing`], and for tests of the check.
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
    /// The strategy's process id, as seen from here.
    pub pid: u32,
    /// The strategy.
    pub main: OwnedFd,
    /// The first process: with it everything in there ends, and its end is seen after all others'.
    pub init: OwnedFd,
}

impl Inside {
    /// Waits until the process that makes a container has done so. `None`: the strategy has ended already, or is about to; the end of
    /// the one outside is then all that is to be seen.
    ///
    /// # Errors
    /// It could not be made: what it says stands on its stderr.
    pub fn of(outside: &mut Child) -> Result<Option<Self>> {
        let mut said = outside.stdout.take().context("it has no stdout")?;
        let deadline = Instant::now() + MADE_WITHIN;
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut some = [0; MOST];
            if left.is_zero() || line.len() > MOST {
                bail!("it says nothing");
            }
            if !process::wait_readable(&[said.as_fd()], left)?[0] {
                continue;
            }
            match said.read(&mut some)? {
                0 => bail!("it was not made"),
                read => line.extend(&some[..read]),
            }
        }
        let line = String::from_utf8_lossy(&line);
        let ids: Option<Vec<u32>> = line.split_whitespace().map(|id| id.parse().ok()).collect();
        let Some([init, pid]) = ids.as_deref() else { bail!("it says {line:?}") };
        // Neither can be another's: the one outside waits for them only once its stdin is closed.
        let found = process::pidfd_open(*init).and_then(|init| Ok((init, process::pidfd_open(*pid)?)));
        drop(outside.stdin.take());
        Ok(found.ok().map(|(init, main)| Self { pid: *pid, main, init }))
    }
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
