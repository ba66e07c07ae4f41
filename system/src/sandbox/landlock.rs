//! Landlock: no file is opened but those that are left, no TCP port used, nobody outside signalled.

use super::SandboxError;
use crate::sandbox::privileges;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::path::Path;

/// The newest features that are asked for; a kernel with fewer is a weaker sandbox.
const NEWEST: ABI = ABI::V6;

/// The files that are left to a process; none unless told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// In these folders, which must be there, it lists, makes, reads, writes, renames and removes
    /// files.
    pub folders: &'a [&'a Path],
    /// These files it reads.
    pub read: &'a [&'a Path],
}

/// What is left in such a folder.
fn in_folder() -> BitFlags<AccessFs> {
    AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::ReadDir
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
}

/// Refuses everything that landlock knows but these files, for the calling thread and those that it
/// starts.
pub(super) fn restrict(files: &Files<'_>, weaker_is_fine: bool) -> Result<(), SandboxError> {
    // Landlock asks for it.
    privileges::gain_none().map_err(SandboxError::Privileges)?;
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for folder in files.folders {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, in_folder()))?;
    }
    for file in files.read {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(file)?, AccessFs::ReadFile))?;
    }
    enforced(rules.restrict_self()?.ruleset, weaker_is_fine)
}

fn enforced(status: RulesetStatus, weaker_is_fine: bool) -> Result<(), SandboxError> {
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        _ if weaker_is_fine => Ok(()),
        RulesetStatus::PartiallyEnforced => Err(SandboxError::Weaker("partially enforced")),
        RulesetStatus::NotEnforced => Err(SandboxError::Weaker("not enforced")),
    }
}

/// Refuses to cut off any file but those below these folders, for the calling thread and those that
/// it starts: also of files that may be written. Files that are open already stay as they are.
pub(crate) fn keep_lengths(but: &[&Path], weaker_is_fine: bool) -> Result<(), SandboxError> {
    privileges::gain_none().map_err(SandboxError::Privileges)?;
    let mut rules = Ruleset::default().handle_access(AccessFs::Truncate)?.create()?;
    for folder in but {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, AccessFs::Truncate))?;
    }
    enforced(rules.restrict_self()?.ruleset, weaker_is_fine)
}

/// What this kernel's landlock cannot refuse, in words.
pub(super) fn missing() -> Option<String> {
    match version() {
        0 => Some(
            "landlock is not there (kernel 5.13 or newer, CONFIG_SECURITY_LANDLOCK, lsm=landlock)".into(),
        ),
        version if version < NEWEST as i64 => Some(format!(
            "landlock is version {version} of {}: {} cannot be refused by it",
            NEWEST as i32,
            if version < 4 { "TCP ports and signals" } else { "signals" }
        )),
        _ => None,
    }
}

/// The kernel's landlock version; 0 if it has none.
fn version() -> i64 {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no memory and returns a number; the null attribute and
    // its size of zero are what the flag asks for.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            core::ptr::null::<u8>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}
