//! Whether a container is what it should be: looked at from inside, by its first process, before
//! anything else is started there.
//!
//! Nothing here knows how a container is made. What it finds is in words; a container of which it
//! finds anything is not used.

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};
use shm::memory::SHM_DIR;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// What the check is told by who made the container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// What is to be in `/dev/shm`, and whether it may be written.
    pub memory: Vec<(String, bool)>,
    /// The namespaces of the host, by their names in `/proc/self/ns`: none is to be the
    /// container's.
    pub host: Vec<(String, String)>,
}

/// The namespaces that a container has of its own.
const NAMESPACES: [&str; 6] = ["user", "mnt", "pid", "net", "ipc", "uts"];

/// The calling process's namespaces: the host's, for who makes a container.
pub fn namespaces() -> Vec<(String, String)> {
    let of = |name: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
        Some((name.to_owned(), link.display().to_string()))
    };
    NAMESPACES.into_iter().filter_map(of).collect()
}

/// What is not as it should be, in words; nothing: all is well.
///
/// # Errors
/// What cannot be looked at.
pub fn violations(expected: &Expected) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let own = namespaces();
    for (name, host) in &expected.host {
        if own.iter().all(|(other, link)| other != name || link == host) {
            found.push(format!("its {name} namespace is the host's"));
        }
    }
    if std::process::id() != 1 {
        found.push(format!("its first process has the id {}", std::process::id()));
    }
    let others = names("/proc")?.into_iter().filter(|name| name.parse::<u32>().is_ok_and(|pid| pid != 1));
    if let Some(other) = others.min() {
        found.push(format!("it sees process {other}"));
    }
    let writable = |name: &String| expected.memory.iter().any(|(other, write)| other == name && *write);
    for path in writable_mounts(&fs::read_to_string("/proc/self/mounts")?) {
        let name = Path::new(&path).strip_prefix(SHM_DIR).ok().map(|name| name.display().to_string());
        let is_device =
            super::DEVICES.iter().any(|device| Path::new("/dev").join(device) == Path::new(&path));
        let is_its_own = path == super::TMP || is_device;
        if !is_its_own && !name.as_ref().is_some_and(writable) {
            found.push(format!("{path} may be written"));
        }
    }
    let handed: BTreeSet<String> = expected.memory.iter().map(|(name, _)| name.clone()).collect();
    let there = names(SHM_DIR)?;
    found.extend(there.difference(&handed).map(|name| format!("{SHM_DIR}/{name} was not handed over")));
    found.extend(handed.difference(&there).map(|name| format!("{SHM_DIR}/{name} is not there")));
    for (name, _) in expected.memory.iter().filter(|(_, write)| !*write) {
        if File::options().write(true).open(Path::new(SHM_DIR).join(name)).is_ok() {
            found.push(format!("{SHM_DIR}/{name} may be written"));
        }
    }
    let is_known = |name: &&String| {
        let name = name.as_str();
        super::DEVICES.contains(&name) || ["shm", "fd", "stdin", "stdout", "stderr"].contains(&name)
    };
    let devices = names("/dev")?;
    found.extend(
        devices
            .iter()
            .filter(|name| !is_known(name))
            .take(1)
            .map(|name| format!("/dev/{name} was not handed over")),
    );
    // The filter refuses it with another code than a kernel that does not know such sockets.
    let family = AddressFamily::Vsock;
    match socket(family, SockType::Stream, SockFlag::empty(), None) {
        Err(Errno::EPERM) => {}
        _ => found.push(format!("it may make sockets of the kind {family:?}, which no namespace separates")),
    }
    // Its standard input is a pipe: the kernel itself would refuse that with another code.
    if fallocate(io::stdin(), FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, 1) != Err(Errno::EOPNOTSUPP) {
        found.push("it may punch holes into memory that it was handed".into());
    }
    // Below a heading. Some kernels give each namespace tunnels of its own, which lead nowhere.
    if fs::read_to_string("/proc/self/net/route")?.lines().count() > 1 {
        found.push("it has a way to a network".into());
    }
    let status = fs::read_to_string("/proc/self/status")?;
    for (name, wanted) in
        [("CapEff", "0000000000000000"), ("CapPrm", "0000000000000000"), ("NoNewPrivs", "1")]
    {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if value.map(str::trim) != Some(wanted) {
            found.push(format!("{name} is {}", value.unwrap_or("not told").trim()));
        }
    }
    Ok(found)
}

fn names(folder: &str) -> io::Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// The mount points in `/proc/self/mounts` that may be written, but for those that another one
/// covers.
fn writable_mounts(mounts: &str) -> Vec<String> {
    let mut writable: Vec<String> = Vec::new();
    for line in mounts.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, at, _, options, ..] = words[..] else { continue };
        // What is mounted later stands further down, and covers what is at and below its place.
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
    fn what_is_covered_cannot_be_written() {
        let mounts = "/dev/sda / ext4 ro,relatime 0 0\ntmpfs /dev tmpfs rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n\
                      tmpfs /dev tmpfs ro,nosuid 0 0\ntmpfs /tmp tmpfs rw,nosuid 0 0\ntmpfs /dev/shm/a tmpfs rw 0 0\n";
        assert_eq!(writable_mounts(mounts), ["/tmp", "/dev/shm/a"]);
        assert_eq!(writable_mounts("/dev/sda / ext4 rw,relatime 0 0\nnonsense\n"), ["/"]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no /proc")]
    fn an_ordinary_process_is_found_to_be_in_none() {
        let expected = Expected { memory: vec![("nothing".into(), false)], host: namespaces() };
        let found = violations(&expected).unwrap().join("; ");
        for words in [
            "its pid namespace",
            "its net namespace",
            "its first process",
            "it sees process",
            "may be written",
            "nothing is not there",
        ] {
            assert!(found.contains(words), "{words}: {found}");
        }
    }
}
