//! Reads whether shared memory can have huge pages, and whether processes may lock all their
//! memory.

use super::files::{field, text};
use std::path::Path;

const IPC_LOCK: u32 = 14;

/// The kernel's settings of huge pages for shared memory, and the right to lock memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFacts {
    /// The mount option `huge` of the file system at `/dev/shm`; `None` without one.
    pub shm_huge: Option<String>,
    /// The mode of huge pages for memory without a name (`shmem_enabled`); `None` if the kernel has
    /// no huge pages for shared memory.
    pub shmem_enabled: Option<String>,
    /// Whether this process has `CAP_IPC_LOCK`, which allows locking any amount of memory.
    pub may_lock_all: bool,
}

impl MemoryFacts {
    /// Reads the huge-page settings of this machine and the memory-locking right of this process.
    pub fn read() -> Self {
        Self::read_at(Path::new("/"))
    }

    fn read_at(root: &Path) -> Self {
        let mounts = text(root, "proc/self/mounts");
        let options = |line: &str| {
            let mut fields = line.split(' ').skip(1);
            (fields.next()? == "/dev/shm").then(|| fields.nth(1).unwrap_or_default().to_owned())
        };
        // The last mount hides the others.
        let shm = mounts.lines().rev().find_map(options).unwrap_or_default();
        let modes = text(root, "sys/kernel/mm/transparent_hugepage/shmem_enabled");
        let chosen = modes.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let capabilities = field(&text(root, "proc/self/status"), "CapEff").unwrap_or_default();
        let capabilities = u64::from_str_radix(&capabilities, 16).unwrap_or(0);
        Self {
            shm_huge: shm.split(',').find_map(|option| option.strip_prefix("huge=")).map(str::to_owned),
            shmem_enabled: chosen.map(|(mode, _)| mode.to_owned()),
            may_lock_all: capabilities & (1 << IPC_LOCK) != 0,
        }
    }

    /// Returns `true` if shared-memory segments with names (files in `/dev/shm`) can have huge
    /// pages.
    pub fn has_named_huge_pages(&self) -> bool {
        match self.shmem_enabled.as_deref() {
            None | Some("deny") => false,
            Some("force") => true,
            Some(_) => self.shm_huge.as_ref().is_some_and(|huge| huge != "never"),
        }
    }

    /// Returns `true` if shared-memory segments without names (memfd) can have huge pages.
    pub fn has_nameless_huge_pages(&self) -> bool {
        self.shmem_enabled.as_ref().is_some_and(|mode| mode != "never" && mode != "deny")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;

    #[test]
    fn huge_pages_follow_mount_and_kernel() {
        for (mount, mode, named, nameless) in [
            ("rw,relatime,size=1k,huge=within_size", "always advise [never] deny force", true, false),
            ("rw,relatime,huge=advise", "always [advise] never deny force", true, true),
            ("rw,relatime", "[always] advise never deny force", false, true),
            ("rw,huge=never", "always advise [never] deny force", false, false),
            ("rw,huge=always", "always advise never [deny] force", false, false),
            ("rw", "always advise never deny [force]", true, true),
            ("rw,huge=always", "", false, false),
        ] {
            let host = fake::plain(2);
            host.put(
                "proc/self/mounts",
                &format!("tmpfs /dev/shm tmpfs rw 0 0\ntmpfs /dev/shm tmpfs {mount} 0 0\n"),
            );
            host.put("sys/kernel/mm/transparent_hugepage/shmem_enabled", mode);
            let facts = MemoryFacts::read_at(host.root());
            let found = (facts.has_named_huge_pages(), facts.has_nameless_huge_pages());
            assert_eq!(found, (named, nameless), "{mount} {mode}");
        }
        let host = fake::plain(2);
        assert_eq!(MemoryFacts::read_at(host.root()), MemoryFacts::default());
        host.put("proc/self/status", "CapEff:\t0000000000004000\n");
        assert!(MemoryFacts::read_at(host.root()).may_lock_all);
    }
}
