//! Finds the holders of a file lock (`flock`) in `/proc/locks`.

use nix::sys::stat::{major, minor};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// Names the process that holds a lock on a file, such as `process 123 (strategy-1)`; `None` if it
/// is not visible from this process.
pub fn holder(file: &File) -> Option<String> {
    let facts = file.metadata().ok()?;
    let listed = fs::read_to_string("/proc/locks").ok()?;
    let pid = holder_in(&listed, (major(facts.dev()), minor(facts.dev()), facts.ino()))?;
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    // A process gives itself any name.
    let plain = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
    let name: String = name.trim_ascii().iter().map(plain).collect();
    Some(if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({name})") })
}

/// The text for a lock holder that is in another PID namespace, or has just released the lock.
pub const UNSEEN: &str = "a process that is not seen from here";

/// Names the process that holds a lock on a file, as [`holder`] does, with a fallback text if it is
/// not visible.
pub fn describe_holder(file: &File) -> String {
    holder(file).unwrap_or_else(|| UNSEEN.to_owned())
}

fn holder_in(listed: &str, (major, minor, inode): (u64, u64, u64)) -> Option<u32> {
    let device_and_inode = format!("{major:02x}:{minor:02x}:{inode}");
    // `1: FLOCK ADVISORY WRITE 708 00:1b:22 0 EOF`; a waiter is listed below, after an arrow.
    let pid_of_holder = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, "FLOCK", _, _, pid, at, ..] if at == device_and_inode => pid.parse().ok().filter(|pid| *pid > 0),
        _ => None,
    };
    listed.lines().find_map(pid_of_holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_holder_is_found_among_other_locks() {
        let listed = "1: POSIX  ADVISORY  WRITE 5 00:1b:22 0 EOF\n2: FLOCK  ADVISORY  WRITE 6 00:1b:23 0 EOF\n\
                      3: FLOCK  ADVISORY  WRITE 708 00:1b:22 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 9 00:1b:22 0 EOF\n";
        assert_eq!(holder_in(listed, (0, 0x1b, 22)), Some(708));
        assert_eq!(holder_in(listed, (0, 0x1b, 24)), None);
        assert_eq!(
            holder_in("3: FLOCK  ADVISORY  WRITE 0 00:1b:22 0 EOF\n", (0, 0x1b, 22)),
            None,
            "of elsewhere"
        );
        assert_eq!(holder_in("nonsense\n\n4: FLOCK", (0, 0x1b, 22)), None);
    }
}
