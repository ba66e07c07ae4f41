//! Copies of this executable for strategies that run from a file of their own (`--binary own`).
//!
//! Each copy is another inode, so its text shares no page with the others. It has no name once it
//! is open, so nothing of it outlives the processes that use it, however they and the launcher end.

use anyhow::{Context, Result};
use protocol::plan::{Binary, Plan, ProcessPlan, Role};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The copies of this executable that strategies' processes run from with `--binary own`: one for
/// each process, so that they share no program text.
#[derive(Debug, Default)]
pub struct OwnBinaries(Vec<Option<File>>);

/// Returns `true` if a process runs from its own copy of the executable: one whose roles are
/// strategies.
pub fn has_own_binary(plan: &Plan, process: &ProcessPlan) -> bool {
    plan.trading().memory.binary == Binary::Own
        && plan.program_of(process).is_none()
        && plan.roles_of(process).all(|role| matches!(role, Role::Strategy(_)))
}

impl OwnBinaries {
    /// Copies this executable once for each process of the plan that runs from its own copy.
    pub fn create(plan: &Plan) -> Result<Self> {
        let folder = Path::new(&plan.folder);
        let copy_for = |process: &ProcessPlan| {
            has_own_binary(plan, process).then(|| copy(&folder.join(&process.name))).transpose()
        };
        plan.processes.iter().map(copy_for).collect::<Result<_>>().map(Self)
    }

    /// Returns the path of the executable copy that a process (index in the plan) runs from; `None`
    /// if it has no copy.
    pub fn path(&self, process: usize) -> Option<PathBuf> {
        let file = self.0.get(process)?.as_ref()?;
        Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }
}

/// Copies this executable to `path`, opens the copy and removes its name.
fn copy(path: &Path) -> Result<File> {
    let copied = fs::copy("/proc/self/exe", path).and_then(|_| File::open(path));
    let removed = fs::remove_file(path);
    let file = copied.with_context(|| {
        format!(
            "--binary own: cannot copy the executable to {}: make room, or choose another --out",
            path.display()
        )
    })?;
    removed.with_context(|| format!("--binary own: cannot remove {}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::fixtures::planned;
    use planner::host::fake;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_processes_of_strategies_have_copies() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mut plan, _) = planned("strategies=2 binary=own", &fake::two_core_vm().machine()).unwrap();
        plan.folder = folder.path().display().to_string();
        let binaries = OwnBinaries::create(&plan).unwrap();
        let inode = |process| fs::metadata(binaries.path(process)?).ok().map(|facts| facts.ino());
        let own = fs::metadata("/proc/self/exe").unwrap().ino();
        let (first, second) = (inode(0).unwrap(), inode(1).unwrap());
        assert!(first != second && first != own && second != own);
        assert_eq!(binaries.path(2), None, "the engine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no copy has a name");
        plan.folder = "/nowhere".into();
        let error = format!("{:#}", OwnBinaries::create(&plan).unwrap_err());
        assert!(error.contains("choose another --out"), "{error}");
        plan.trading_mut().memory.binary = Binary::Shared;
        assert_eq!(OwnBinaries::create(&plan).unwrap().path(0), None);
    }
}
