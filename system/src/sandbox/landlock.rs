//! Landlock rules: restrict access to files, TCP ports and signals to outside processes.

use super::SandboxError;
use crate::sandbox::privileges;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::path::Path;

/// The newest landlock version that is used; a kernel with an older one gives a weaker sandbox.
const NEWEST: ABI = ABI::V6;

/// The files that a sandboxed process may access; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowedFiles<'a> {
    /// Existing directories in which the process may list, create, read, write, rename and remove
    /// files.
    pub folders: &'a [&'a Path],
    /// Files that the process may read.
    pub read: &'a [&'a Path],
}

/// The allowed operations in such a directory.
fn in_folder() -> BitFlags<AccessFs> {
    AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::ReadDir
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
}

/// Restricts the calling thread and its descendants by landlock to these files.
pub(super) fn restrict(files: &AllowedFiles<'_>, allow_weaker: bool) -> Result<(), SandboxError> {
    // Landlock requires it.
    privileges::set_no_new_privs().map_err(SandboxError::Privileges)?;
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
    enforced(rules.restrict_self()?.ruleset, allow_weaker)
}

fn enforced(status: RulesetStatus, allow_weaker: bool) -> Result<(), SandboxError> {
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        _ if allow_weaker => Ok(()),
        RulesetStatus::PartiallyEnforced => Err(SandboxError::Weaker("partially enforced")),
        RulesetStatus::NotEnforced => Err(SandboxError::Weaker("not enforced")),
    }
}

/// Refuses by landlock the truncation of all files that are not below these directories. For the
/// calling thread and those that it starts. Files that are already open are not affected.
pub(crate) fn refuse_truncation(exempt: &[&Path], allow_weaker: bool) -> Result<(), SandboxError> {
    privileges::set_no_new_privs().map_err(SandboxError::Privileges)?;
    let mut rules = Ruleset::default().handle_access(AccessFs::Truncate)?.create()?;
    for folder in exempt {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, AccessFs::Truncate))?;
    }
    enforced(rules.restrict_self()?.ruleset, allow_weaker)
}

/// Returns what the landlock of this kernel cannot refuse, as text.
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

/// Returns the kernel's landlock version; 0 if it has none.
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
