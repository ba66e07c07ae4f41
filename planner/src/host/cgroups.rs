//! Cgroups: where they are mounted, and where a new group can be created.

use super::files::text;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long [`remove`] waits for the last process in a cgroup to exit, before it fails.
pub const EMPTY_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns controllers and path of this process's cgroups. The former are empty in cgroup v2.
pub(super) fn own_cgroups(root: &Path) -> Vec<(String, String)> {
    let line = |line: &str| {
        // Number, controllers, path.
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        (!path.contains("..")).then(|| (controllers.to_owned(), path.to_owned()))
    };
    text(root, "proc/self/cgroup").lines().filter_map(line).collect()
}

/// Returns the directory of the cgroup that counts a process's CPU time: with cgroup v1 the
/// process's `cpu` cgroup, with v2 its only one. `None` if it is not seen from here.
pub fn cpu_cgroup(root: &Path, pid: u32) -> Option<PathBuf> {
    let own = text(root, &format!("proc/{pid}/cgroup"));
    let of = |is_it: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            (is_it(controllers) && !path.contains("..")).then(|| path.trim_start_matches('/'))
        })
    };
    let has_cpu = |names: &str| names.split(',').any(|name| name == "cpu");
    let v1 = of(&has_cpu).and_then(|path| {
        let mounts = mounts(root, "cgroup").into_iter();
        Some(mounts.filter(|(_, options)| has_cpu(options)).map(|(mount, _)| mount).next()?.join(path))
    });
    let v2 = || Some(mounts(root, "cgroup2").into_iter().next()?.0.join(of(&str::is_empty)?));
    v1.or_else(v2).filter(|group| group.is_dir())
}

/// Returns the mount points of a file-system type below a root directory, each with its mount
/// options.
pub fn mounts(root: &Path, kind: &str) -> Vec<(PathBuf, String)> {
    let mounts = text(root, "proc/self/mounts");
    let of_kind = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, at, other, options, ..] = fields[..] else { return None };
        (other == kind).then(|| (root.join(at.trim_start_matches('/')), options.to_owned()))
    };
    mounts.lines().filter_map(of_kind).collect()
}

/// Returns the cgroup v2 mount below which a cgroup can have exclusive CPU cores; `None` if no
/// mount has the `cpuset` controller.
pub fn partitions(root: &Path) -> Option<PathBuf> {
    let has_cpuset =
        |mount: &PathBuf| text(mount, "cgroup.controllers").split_whitespace().any(|name| name == "cpuset");
    mounts(root, "cgroup2").into_iter().map(|(mount, _)| mount).find(has_cpuset)
}

/// A cgroup hierarchy in which groups can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupHierarchy {
    /// Whether the hierarchy is cgroup v2; otherwise v1.
    pub is_v2: bool,
    /// Directory in which groups can be created: in v2 the parent of this process's own group, in
    /// v1 this process's own group.
    pub parent: PathBuf,
    /// Controllers available to groups that are created below `parent`.
    pub controllers: Vec<String>,
}

/// Returns all cgroup hierarchies of a machine in which groups can be created, v2 first. A v2 group
/// with processes in it delegates no controllers, so a new group is created next to that of this
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

/// Removes a cgroup once its last process has exited, and waits at most `patience` for that. A
/// group that is gone is not an error.
pub fn remove(group: &Path, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}
