//! Checks a container from inside, by its first process, before any other process is started in it.
//!
//! The check is independent of how the container is made. It returns violations as text; a
//! container with any violation is not used.

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};
use shm::memory::SHM_DIR;
use shm::sync::AtomicU64;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The container that its creator intended, to be compared with the real one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedContainer {
    /// The files of `/dev/shm` in the container, and whether each is writable.
    pub memory: Vec<(String, bool)>,
    /// The namespaces of the host, by their names in `/proc/self/ns`: the container must not share
    /// any.
    pub host: Vec<(String, String)>,
    /// The directories whose files the container must not have.
    pub hidden: Vec<PathBuf>,
}

/// The namespaces that a container does not share with the host.
const NAMESPACES: [&str; 6] = ["user", "mnt", "pid", "net", "ipc", "uts"];

/// Returns type and id of the calling process's namespaces.
pub fn namespaces() -> Vec<(String, String)> {
    let link = |name: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
        Some((name.to_owned(), link.display().to_string()))
    };
    NAMESPACES.into_iter().filter_map(link).collect()
}

/// Returns how the container differs from the expected one; nothing if it is correct.
pub fn violations(expected: &ExpectedContainer) -> io::Result<Vec<String>> {
    let mut problems = Vec::new();
    let own = namespaces();
    for (name, host) in &expected.host {
        if own.iter().all(|(other, link)| other != name || link == host) {
            problems.push(format!("its {name} namespace is the host's"));
        }
    }
    if std::process::id() != 1 {
        problems.push(format!("its first process has the id {}", std::process::id()));
    }
    let other_pids =
        entry_names("/proc")?.into_iter().filter(|name| name.parse::<u32>().is_ok_and(|pid| pid != 1));
    if let Some(pid) = other_pids.min() {
        problems.push(format!("it sees process {pid}"));
    }
    let writable = |name: &String| expected.memory.iter().any(|(other, write)| other == name && *write);
    for path in writable_mounts(&fs::read_to_string("/proc/self/mounts")?) {
        let name = Path::new(&path).strip_prefix(SHM_DIR).ok().map(|name| name.display().to_string());
        let is_device =
            super::DEVICES.iter().any(|device| Path::new("/dev").join(device) == Path::new(&path));
        let is_own = path == super::TMP || is_device;
        if !is_own && !name.as_ref().is_some_and(writable) {
            problems.push(format!("{path} may be written"));
        }
    }
    let handed: BTreeSet<String> = expected.memory.iter().map(|(name, _)| name.clone()).collect();
    let existing = entry_names(SHM_DIR)?;
    problems.extend(existing.difference(&handed).map(|name| format!("{SHM_DIR}/{name} was not handed over")));
    problems.extend(handed.difference(&existing).map(|name| format!("{SHM_DIR}/{name} is not there")));
    for (name, _) in expected.memory.iter().filter(|(_, write)| !*write) {
        if File::options().write(true).open(Path::new(SHM_DIR).join(name)).is_ok() {
            problems.push(format!("{SHM_DIR}/{name} may be written"));
        }
    }
    let is_known = |name: &String| {
        let name = name.as_str();
        super::DEVICES.contains(&name) || ["shm", "fd", "stdin", "stdout", "stderr"].contains(&name)
    };
    let unknown = entry_names("/dev")?.into_iter().find(|name| !is_known(name));
    problems.extend(unknown.map(|name| format!("/dev/{name} was not handed over")));
    // The filter refuses it with another code than a kernel without such sockets.
    let address_family = AddressFamily::Vsock;
    match socket(address_family, SockType::Stream, SockFlag::empty(), None) {
        Err(Errno::EPERM) => {}
        _ => problems.push(format!(
            "it may make sockets of the kind {address_family:?}, which no namespace separates"
        )),
    }
    // Standard input is a pipe: without the filter the kernel would fail with another code.
    if fallocate(io::stdin(), FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, 1) != Err(Errno::EOPNOTSUPP) {
        problems.push("it may punch holes into memory that it was handed".into());
    }
    // Without the filter a kernel fails with another code, or does not fail.
    if cfg!(target_arch = "x86_64") && !is_x32_refused() {
        problems.push("it may make calls of the x32 interface, which no other filter sees".into());
    }
    // It would move no waiter: no thread waits on these words.
    if let Ok(()) = crate::fault::move_waiters(core::ptr::from_ref(&problems) as usize, &AtomicU64::new(0)) {
        problems.push("it may move threads that wait on memory of other processes".into());
    }
    for folder in expected.hidden.iter().filter(|folder| folder.is_dir()) {
        if fs::read_dir(folder)?.next().is_some() {
            problems.push(format!("{} is not empty", folder.display()));
        }
    }
    // The first line is a heading. Some kernels give each namespace its own tunnels, which have no
    // peer.
    if fs::read_to_string("/proc/self/net/route")?.lines().count() > 1 {
        problems.push("it has a way to a network".into());
    }
    let status = fs::read_to_string("/proc/self/status")?;
    for (name, expected_value) in
        [("CapEff", "0000000000000000"), ("CapPrm", "0000000000000000"), ("NoNewPrivs", "1")]
    {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if value.map(str::trim) != Some(expected_value) {
            problems.push(format!("{name} is {}", value.unwrap_or("not told").trim()));
        }
    }
    Ok(problems)
}

/// Returns `true` if a filter refuses the calls of the x32 interface.
fn is_x32_refused() -> bool {
    const X32: libc::c_long = 0x4000_0000;
    // SAFETY: the call has no arguments and touches no memory, also where the kernel has no x32.
    let result = unsafe { libc::syscall(X32 | libc::SYS_getpid) };
    result < 0 && Errno::last() == Errno::EPERM
}

fn entry_names(folder: &str) -> io::Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns the writable mount points, without those that another mount covers.
fn writable_mounts(mounts: &str) -> Vec<String> {
    let mut writable: Vec<String> = Vec::new();
    for line in mounts.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, at, _, options, ..] = words[..] else { continue };
        // Later mounts are listed later, and cover the mounts at and below their path.
        writable.retain(|other| !Path::new(other).starts_with(at));
        if options.split(',').any(|option| option == "rw") {
            writable.push(at.to_owned());
        }
    }
    writable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_mounts_are_not_writable() {
        let mounts = "/dev/sda / ext4 ro,relatime 0 0\ntmpfs /dev tmpfs rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n\
                      tmpfs /dev tmpfs ro,nosuid 0 0\ntmpfs /tmp tmpfs rw,nosuid 0 0\ntmpfs /dev/shm/a tmpfs rw 0 0\n";
        assert_eq!(writable_mounts(mounts), ["/tmp", "/dev/shm/a"]);
        assert_eq!(writable_mounts("/dev/sda / ext4 rw,relatime 0 0\nnonsense\n"), ["/"]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no /proc")]
    fn ordinary_process_violates_the_container_check() {
        let hidden = vec![std::env::current_dir().unwrap()];
        let expected =
            ExpectedContainer { memory: vec![("nothing".into(), false)], host: namespaces(), hidden };
        let problems = violations(&expected).unwrap().join("; ");
        for words in [
            "its pid namespace",
            "its net namespace",
            "its first process",
            "it sees process",
            "may be written",
            "nothing is not there",
            "it may move threads",
            "x32 interface",
            "is not empty",
        ] {
            assert!(problems.contains(words), "{words}: {problems}");
        }
    }
}
