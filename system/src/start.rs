//! What happens to a new process between fork and exec: it enters its cgroups, gets resource
//! limits, closes its speculation, and becomes another user.

use crate::speculation;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid, write};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The cgroups, resource limits, user account and speculation setting with which a process is
/// started. By default they are its parent's.
#[derive(Debug, Default)]
pub struct StartConditions {
    /// The `cgroup.procs` files of the cgroups that the process enters, open for writing.
    pub groups: Vec<File>,
    /// Resource limits of the process, soft and hard; one that the parent may not set is lowered to
    /// the parent's hard limit.
    pub limits: Vec<(Resource, u64)>,
    /// User and group ids that the process takes, without any further group; `None`: those of its
    /// parent. Only root can ask for it.
    pub user: Option<(u32, u32)>,
    /// Whether the process disables indirect branch speculation (Spectre v2) for itself.
    pub closes_speculation: bool,
}

impl StartConditions {
    /// Applies the start conditions to a process that `command` starts, before `exec`. A failure is
    /// an error of the start: the program does not run.
    pub fn apply(self, command: &mut Command) {
        let Self { groups, limits, user, closes_speculation } = self;
        if groups.is_empty() && limits.is_empty() && user.is_none() && !closes_speculation {
            return;
        }
        let before_exec = move || -> io::Result<()> {
            for group in &groups {
                // 0 is the writing process.
                write(group, b"0")?;
            }
            for (resource, limit) in &limits {
                if setrlimit(*resource, *limit, *limit).is_err() {
                    let (_, hard) = getrlimit(*resource)?;
                    setrlimit(*resource, hard.min(*limit), hard.min(*limit))?;
                }
            }
            if closes_speculation {
                speculation::close()?;
            }
            if let Some((user, group)) = user {
                // The user last: an ordinary one may not change its groups.
                let group = Gid::from_raw(group);
                setgroups(&[group])?;
                setgid(group)?;
                setuid(Uid::from_raw(user))?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls and nothing else: it
        // allocates nothing, takes no lock, and reads only its own copies of descriptors and
        // numbers, which live as long as the command.
        unsafe { command.pre_exec(before_exec) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(conditions: StartConditions, script: &str) -> String {
        let mut command = Command::new("sh");
        conditions.apply(command.args(["-c", script]));
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn started_process_has_limits() {
        let _guard = crate::only_one_has_children();
        let limited = StartConditions { limits: vec![(Resource::RLIMIT_NOFILE, 23)], ..Default::default() };
        assert_eq!(printed(limited, "ulimit -n"), "23");
        assert_ne!(printed(StartConditions::default(), "ulimit -n"), "23");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn started_process_enters_groups_as_itself() {
        let _guard = crate::only_one_has_children();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cgroup.procs");
        let groups = vec![File::create(&file).unwrap()];
        printed(StartConditions { groups, ..Default::default() }, "true");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "0");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn started_process_is_another_user_without_groups() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED: only root can become another user");
            return;
        }
        let _guard = crate::only_one_has_children();
        let other = StartConditions { user: Some((54_321, 54_322)), ..Default::default() };
        assert_eq!(printed(other, "id -u; id -g; id -G").replace('\n', " "), "54321 54322 54322");
    }
}
