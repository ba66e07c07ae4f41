//! Cgroups: where they are mounted, and where a new group can be created.

use super::read::text;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The root of a machine's `proc` and `sys` directories, real or of a test.
#[derive(Clone, Copy, Debug)]
pub struct HostRoot<'a> {
    pub root: &'a Path,
    /// Removes a cgroup's directory; the kernel ignores the files in it.
    pub remove: fn(&Path) -> io::Result<()>,
}

impl HostRoot<'static> {
    pub fn real() -> Self {
        fn remove(group: &Path) -> io::Result<()> {
            fs::remove_dir(group)
        }
        Self { root: Path::new("/"), remove }
    }
}

/// How long the last process in a cgroup may take to exit, before its removal fails.
pub const EMPTY_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the cgroups of this process: controllers and path, for each hierarchy. The controllers
/// are empty in cgroup v2.
pub(super) fn own_cgroups(root: &Path) -> Vec<(String, String)> {
    let line = |line: &str| {
        // Number, controllers, path.
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        (!path.contains("..")).then(|| (controllers.to_owned(), path.to_owned()))
    };
    text(root, "proc/self/cgroup").lines().filter_map(line).collect()
}

/// Returns the mounts of a file-system type below a root, with their options.
pub fn mounts(root: &Path, kind: &str) -> Vec<(PathBuf, String)> {
    let mounts = text(root, "proc/self/mounts");
    let of_kind = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, at, other, options, ..] = words[..] else { return None };
        (other == kind).then(|| (root.join(at.trim_start_matches('/')), options.to_owned()))
    };
    mounts.lines().filter_map(of_kind).collect()
}

/// Returns the cgroup v2 mount below which a group can have exclusive cores.
pub fn partitions(root: &Path) -> Option<PathBuf> {
    let has_cpuset =
        |mount: &PathBuf| text(mount, "cgroup.controllers").split_whitespace().any(|name| name == "cpuset");
    mounts(root, "cgroup2").into_iter().map(|(mount, _)| mount).find(has_cpuset)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupHierarchy {
    /// cgroup v2; otherwise v1.
    pub is_v2: bool,
    /// In v2 the parent of this process's own group; in v1 this process's own group.
    pub parent: PathBuf,
    controllers: Vec<String>,
}

impl CgroupHierarchy {
    pub fn is_delegated(&self, controller: &str) -> bool {
        self.controllers.iter().any(|other| other == controller)
    }
}

/// Returns all cgroup hierarchies in which groups can be created, v2 first. A v2 group with
/// processes in it delegates no controllers, so a new group is created next to that of this
/// process, if that has a parent.
pub fn hierarchies(root: &Path) -> Vec<CgroupHierarchy> {
    let own = own_cgroups(root);
    let below = |mount: &Path, path: &str| mount.join(path.trim_start_matches('/'));
    let mut found = Vec::new();
    for (mount, _) in mounts(root, "cgroup2") {
        let Some((_, path)) = own.iter().find(|(controllers, _)| controllers.is_empty()) else { continue };
        let above = Path::new(path).parent().unwrap_or_else(|| Path::new("/"));
        let parent = below(&mount, &above.display().to_string());
        let handed_on = text(&parent, "cgroup.subtree_control");
        let controllers = handed_on.split_whitespace().map(str::to_owned).collect();
        found.push(CgroupHierarchy { is_v2: true, parent, controllers });
    }
    for (mount, options) in mounts(root, "cgroup") {
        let is_option = |name: &str| options.split(',').any(|option| option == name);
        let is_it = |(names, _): &&(String, String)| !names.is_empty() && names.split(',').all(is_option);
        let Some((names, path)) = own.iter().find(is_it) else { continue };
        let controllers = names.split(',').map(str::to_owned).collect();
        found.push(CgroupHierarchy { is_v2: false, parent: below(&mount, path), controllers });
    }
    found
}

/// Moves the calling process, and processes that it starts from now on, into a cgroup.
pub fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Removes a cgroup, waiting for its last process to exit. A group that is gone already is not an
/// error.
pub fn remove(group: &Path, remove: fn(&Path) -> io::Result<()>, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match remove(group) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}
