//! A partition of the machine's cores: a control group of the second version (`cpuset.cpus.partition`, Linux 5.15 and later) whose
//! cores the scheduler balances nothing onto, and nobody else may use.

use super::groups;
use analysis::lists;
use nix::unistd::{AccessFlags, access};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A run's control group, whether it is there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    mount: PathBuf,
    group: PathBuf,
}

impl Partition {
    /// Where it would be; or why it cannot be.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn find(root: &Path, run: &str) -> Result<Self, String> {
        let of_kind = |kind: &str| -> Vec<PathBuf> {
            groups::mounts(root, kind).into_iter().map(|(mount, _)| mount).collect()
        };
        let second = of_kind("cgroup2");
        let has_cpuset = |mount: &&PathBuf| {
            let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
            controllers.split_whitespace().any(|name| name == "cpuset")
        };
        if let Some(mount) = second.iter().find(has_cpuset) {
            let group = mount.join(format!("bulkhead.{run}"));
            return Ok(Self { mount: mount.clone(), group });
        }
        Err(match (second.is_empty(), of_kind("cgroup").is_empty()) {
            (_, false) => {
                "the cpuset controller is in the hands of cgroup v1, and only v2 has partitions".into()
            }
            (true, true) => "no control groups are mounted".into(),
            (false, true) => "cgroup v2 has no cpuset controller here".into(),
        })
    }

    /// Its folder.
    pub fn group(&self) -> &Path {
        &self.group
    }

    /// Why this user may not make one, and move interrupts; `None`: nothing speaks against it.
    pub fn obstacle(root: &Path) -> Option<String> {
        let partition = match Self::find(root, "none") {
            Ok(partition) => partition,
            Err(why) => return Some(why),
        };
        let places = [partition.controllers(), root.join("proc/irq/default_smp_affinity"), root.join("run")];
        places.iter().find_map(|path| {
            let error = access(path, AccessFlags::W_OK).err()?;
            Some(format!("{} may not be written: {}", path.display(), error.desc()))
        })
    }

    /// The file that says which controllers the topmost group hands on.
    fn controllers(&self) -> PathBuf {
        self.mount.join("cgroup.subtree_control")
    }

    /// Whether the cpuset controller is among them.
    pub fn is_handed_on(&self) -> bool {
        let handed_on = fs::read_to_string(self.controllers()).unwrap_or_default();
        handed_on.split_whitespace().any(|name| name.trim_start_matches('+') == "cpuset")
    }

    /// Makes it, with these cores.
    ///
    /// # Errors
    /// What the kernel says to it.
    pub fn make(&self, cores: &[u32]) -> Result<(), String> {
        let write = |path: PathBuf, text: &str| {
            fs::write(&path, text).map_err(|error| format!("{text:?} into {}: {error}", path.display()))
        };
        if !self.is_handed_on() {
            write(self.controllers(), "+cpuset")?;
        }
        fs::create_dir(&self.group).map_err(|error| format!("{}: {error}", self.group.display()))?;
        write(self.group.join("cpuset.cpus"), &lists::format(cores))?;
        let state = self.group.join("cpuset.cpus.partition");
        write(state.clone(), "isolated")?;
        // It takes any word, and says afterwards whether it could be done.
        match fs::read_to_string(&state).unwrap_or_default().trim() {
            "isolated" => Ok(()),
            other => Err(format!("the kernel makes no partition of cores {}: {other}", lists::format(cores))),
        }
    }

    /// Removes it, waiting for the last process in it to be gone. `hands_on`: the topmost group did not hand the controller on before.
    ///
    /// # Errors
    /// Somebody is in it for longer than that.
    pub fn remove(&self, hands_on: bool, remove: fn(&Path) -> io::Result<()>) -> io::Result<()> {
        groups::remove(&self.group, remove, groups::EMPTY)?;
        if hands_on {
            // Refused where somebody else has begun to use it meanwhile: then it stays.
            let _ = fs::write(self.controllers(), "-cpuset");
        }
        Ok(())
    }
}
