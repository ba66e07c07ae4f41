//! `--isolate`: the measured cores are taken out of the scheduler's hands and away from interrupts for as long as a run lasts.
//!
//! ```text
//! a record in /run ─▶ a control group with the cores, as an isolated partition ─▶ interrupts moved ─▶ the roles enter the group
//!        ▲                                                                                                      │
//!        └── taken away once all is put back ◀── interrupts back ◀── the group is removed ◀── the roles have ended ┘
//! ```
//! The record says what was there before, and is written before anything is changed. So whoever comes later can put it back: the
//! launcher, its warden when it was killed, and `launcher clean` and every later run when both were. What somebody else has changed
//! meanwhile is left as it is.

mod interrupts;

use crate::config::UsageError;
use crate::host::{Machine, Partition, groups};
use crate::runtime::run_id::RunId;
use analysis::lists;
use anyhow::{Context, Result, ensure};
use interrupts::Moved;
use protocol::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where records are, below the root.
const RECORDS: &str = "run";
/// What the name of a record ends with, behind the run's.
const SUFFIX: &str = ".isolated";
/// A record larger than this is none.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a machine, or of one that a test made up.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// Where `proc`, `sys` and `run` are.
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

/// What was there before a run changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// Whether the run told the topmost group to hand the controller on.
    hands_on: bool,
    /// The interrupts that it moved.
    interrupts: Vec<Moved>,
}

/// The control group that a plan's roles would enter, below the mount of the second version of control groups.
///
/// # Errors
/// It cannot be had here, and what could be done about it.
pub fn group_of(plan: &Plan, machine: &Machine, tree: Tree<'_>) -> Result<String, UsageError> {
    let refused = |why: String| Err(UsageError(format!("--isolate: {why}, or leave --isolate out")));
    let Some(cores) = measured(plan) else {
        return refused(
            "the machine does not say which cores may be used, and no thread is pinned. Mount /proc".into(),
        );
    };
    if machine.cores_allowed.iter().all(|core| cores.contains(core)) {
        let all = machine.cores_allowed.len();
        return refused(format!(
            "the run takes every core, {}, and one must be left for everything else.\nUse {}",
            lists::format(&machine.cores_allowed),
            if all > 1 { "fewer of them: --cores with one or more left out" } else { "a machine with more" },
        ));
    }
    if let Some(why) = Partition::obstacle(tree.root) {
        return refused(format!("{why}.\nStart as root, with cgroup v2, on the host and not in a container"));
    }
    let partition = Partition::find(tree.root, &plan.run).map_err(UsageError)?;
    Ok(partition.group().display().to_string())
}

/// The calling process, and what it starts from now on, belongs to that group.
///
/// # Errors
/// The group is not there, or not for this user.
pub fn enter(group: &str) -> io::Result<()> {
    groups::enter(Path::new(group))
}

/// The cores that a plan's threads are pinned to; `None`: one of them is not.
fn measured(plan: &Plan) -> Option<Vec<u32>> {
    let cores: Option<BTreeSet<u32>> = plan.threads.iter().map(|thread| thread.core).collect();
    Some(cores?.into_iter().collect())
}

/// Cores that are isolated until this is dropped.
pub struct Isolated<'a> {
    tree: Tree<'a>,
    run: String,
    is_back: bool,
    /// The interrupts that could not be moved.
    unmoved: Vec<u32>,
}

impl<'a> Isolated<'a> {
    /// Isolates the cores of a plan.
    ///
    /// # Errors
    /// The kernel refuses it, or another run does it already; what was changed is put back.
    pub fn begin(plan: &Plan, machine: &Machine, tree: Tree<'a>) -> Result<Self> {
        let cores = measured(plan).context("no thread is pinned")?;
        let rest: Vec<u32> =
            machine.cores_allowed.iter().copied().filter(|core| !cores.contains(core)).collect();
        let others = records(tree);
        ensure!(
            others.is_empty(),
            "--isolate: run {} isolates cores already: wait for its end, or `launcher clean` if it is dead",
            others.iter().map(|(run, _)| run.to_string()).collect::<Vec<_>>().join(", ")
        );
        let partition =
            Partition::find(tree.root, &plan.run).map_err(|why| UsageError(format!("--isolate: {why}")))?;
        let record = Record {
            hands_on: !partition.is_handed_on(),
            interrupts: interrupts::on(tree.root, &cores, &rest),
        };
        write(tree, &plan.run, &record).context("--isolate: what was there before cannot be written down")?;
        let mut isolated = Self { tree, run: plan.run.clone(), is_back: false, unmoved: Vec::new() };
        // From here on dropping it puts everything back.
        partition.make(&cores).map_err(|error| {
            UsageError(format!(
                "--isolate: {error}.\nThe group above must be the host's topmost, and no other partition may hold these cores; or leave \
                 --isolate out"
            ))
        })?;
        isolated.unmoved = record
            .interrupts
            .iter()
            .filter(|moved| moved.away(tree.root).is_err())
            .map(|moved| moved.irq)
            .collect();
        Ok(isolated)
    }

    /// The interrupts that stay, in words; `None`: all have been moved.
    pub fn unmoved(&self) -> Option<String> {
        let stay = lists::format(&self.unmoved);
        (!self.unmoved.is_empty()).then(|| {
            format!(
                "note: interrupts {stay} stay on the isolated cores: the kernel does not let them be moved"
            )
        })
    }

    /// Puts everything back; what could not be, in words.
    pub fn end(mut self) -> Vec<String> {
        self.is_back = true;
        put_back(self.tree, &self.run)
    }
}

impl Drop for Isolated<'_> {
    fn drop(&mut self) {
        if !self.is_back {
            put_back(self.tree, &self.run);
        }
    }
}

fn place(tree: Tree<'_>, run: &str) -> PathBuf {
    tree.root.join(RECORDS).join(format!("{}{run}{SUFFIX}", Plan::PREFIX))
}

fn write(tree: Tree<'_>, run: &str, record: &Record) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place(tree, run))?;
    file.write_all(&serde_json::to_vec(record)?)
}

/// Whether that is a file of this user's own, and no link to one.
fn is_ours(path: &Path) -> bool {
    let facts = fs::symlink_metadata(path);
    facts.is_ok_and(|facts| facts.is_file() && facts.uid() == nix::unistd::geteuid().as_raw())
}

/// What a run changed and has not put back; `None`: nothing, or no file of ours.
fn read(path: &Path) -> Option<Record> {
    let mut text = Vec::new();
    File::open(path).ok().filter(|_| is_ours(path))?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    // One that is cut short was never followed by a change.
    Some(serde_json::from_slice(&text).unwrap_or_default())
}

/// The records that there are, of whichever run.
pub fn records(tree: Tree<'_>) -> Vec<(RunId, PathBuf)> {
    let entries = fs::read_dir(tree.root.join(RECORDS)).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let run = RunId::parse(name.strip_prefix(Plan::PREFIX)?.strip_suffix(SUFFIX)?)?;
        Some((run, entry.path()))
    };
    entries.filter_map(of).filter(|(_, path)| is_ours(path)).collect()
}

/// Puts back what a run changed, if it did and has not; its processes have ended, or are about to. What could not be put back, in
/// words: then the record stays.
pub fn put_back(tree: Tree<'_>, run: &str) -> Vec<String> {
    let path = place(tree, run);
    let Some(record) = read(&path) else { return Vec::new() };
    let mut failed: Vec<String> = Vec::new();
    if let Ok(partition) = Partition::find(tree.root, run)
        && let Err(error) = partition.remove(record.hands_on, tree.remove)
    {
        failed.push(format!("{}: {error}", partition.group().display()));
    }
    let backs = record.interrupts.iter().filter_map(|moved| Some((moved.irq, moved.back(tree.root).err()?)));
    failed.extend(backs.map(|(irq, error)| format!("interrupt {irq}: {error}")));
    if failed.is_empty()
        && let Err(error) = fs::remove_file(&path)
        && error.kind() != ErrorKind::NotFound
    {
        failed.push(format!("{}: {error}", path.display()));
    }
    failed
}

#[cfg(test)]
mod tests;
