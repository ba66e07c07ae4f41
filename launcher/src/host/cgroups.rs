//! Control groups: where they are mounted, and where a group of one's own can be made.

use super::read::text;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The files of a machine, or of one that a test made up.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// Where `proc` and `sys` are.
    pub root: &'a Path,
    /// Removes a control group: the kernel lets go of a folder with its files in it.
    pub remove: fn(&Path) -> io::Result<()>,
}

impl Tree<'static> {
    /// This machine's.
    pub fn real() -> Self {
        fn remove(group: &Path) -> io::Result<()> {
            fs::remove_dir(group)
        }
        Self { root: Path::new("/"), remove }
    }
}

/// How long the last process in a group may take to be gone.
pub const EMPTY: Duration = Duration::from_secs(5);

/// The groups of this process, one of each hierarchy: the names of its controllers, none in cgroup
/// v2, and its path.
pub(super) fn own(root: &Path) -> Vec<(String, String)> {
    let line = |line: &str| {
        // Number, controllers, path.
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        (!path.contains("..")).then(|| (controllers.to_owned(), path.to_owned()))
    };
    text(root, "proc/self/cgroup").lines().filter_map(line).collect()
}

/// The mounts of a kind of file system below a root, with their options.
pub fn mounts(root: &Path, kind: &str) -> Vec<(PathBuf, String)> {
    let mounts = text(root, "proc/self/mounts");
    let of_kind = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, at, other, options, ..] = words[..] else { return None };
        (other == kind).then(|| (root.join(at.trim_start_matches('/')), options.to_owned()))
    };
    mounts.lines().filter_map(of_kind).collect()
}

/// The mount of cgroup v2 below which a group can have cores to itself (`cpuset.cpus.partition`).
pub fn partitions(root: &Path) -> Option<PathBuf> {
    let has_cpuset =
        |mount: &PathBuf| text(mount, "cgroup.controllers").split_whitespace().any(|name| name == "cpuset");
    mounts(root, "cgroup2").into_iter().map(|(mount, _)| mount).find(has_cpuset)
}

/// A place where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Whether it is of the second version.
    pub is_second: bool,
    /// Of the second version the folder that holds this process's own group; of the first this
    /// process's own group.
    pub parent: PathBuf,
    /// What of the machine groups below it share out.
    controllers: Vec<String>,
}

impl Hierarchy {
    /// Whether a group in it can limit that.
    pub fn hands_on(&self, controller: &str) -> bool {
        self.controllers.iter().any(|other| other == controller)
    }
}

/// All that there are, those of the second version first. A group of that version with processes in
/// it hands nothing on, so a new one stands beside that of this process, where there is anything
/// above it.
pub fn hierarchies(root: &Path) -> Vec<Hierarchy> {
    let own = own(root);
    let below = |mount: &Path, path: &str| mount.join(path.trim_start_matches('/'));
    let mut found = Vec::new();
    for (mount, _) in mounts(root, "cgroup2") {
        let Some((_, path)) = own.iter().find(|(controllers, _)| controllers.is_empty()) else { continue };
        let above = Path::new(path).parent().unwrap_or_else(|| Path::new("/"));
        let parent = below(&mount, &above.display().to_string());
        let handed_on = text(&parent, "cgroup.subtree_control");
        let controllers = handed_on.split_whitespace().map(str::to_owned).collect();
        found.push(Hierarchy { is_second: true, parent, controllers });
    }
    for (mount, options) in mounts(root, "cgroup") {
        let is_option = |name: &str| options.split(',').any(|option| option == name);
        let is_it = |(names, _): &&(String, String)| !names.is_empty() && names.split(',').all(is_option);
        let Some((names, path)) = own.iter().find(is_it) else { continue };
        let controllers = names.split(',').map(str::to_owned).collect();
        found.push(Hierarchy { is_second: false, parent: below(&mount, path), controllers });
    }
    found
}

/// The calling process, and what it starts from now on, belongs to that group.
///
/// # Errors
/// The group is not there, or not for this user.
pub fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// Removes a group, waiting so long for the last process in it to be gone. One that is gone already
/// is no error.
///
/// # Errors
/// Somebody is in it for longer than that.
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
