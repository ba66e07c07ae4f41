//! Removes the segments of runs whose launcher is gone: at every start, and by `launcher clean`.

use crate::runtime::warden;
use protocol::plan::Plan;
use shm::memory::region::{SHM_DIR, list_segments, unlink};
use shm::memory::{Header, header::HEADER_WORDS};
use shm::os::process;
use std::fs::{File, symlink_metadata};
use std::io::Read;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Segments that were removed.
    pub removed: Vec<String>,
    /// Segments of runs that still run, or whose warden is clearing up.
    pub kept: usize,
    /// Segments that could not be removed, and why.
    pub failed: Vec<String>,
}

/// Removes each segment whose creator no longer runs, unless the run's warden is about to. A segment that has no header
/// yet, a FIFO and a socket belong to the launcher whose pid ends the run's id.
///
/// # Errors
/// If `/dev/shm` cannot be listed.
pub fn clean() -> std::io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    for name in list_segments()? {
        if in_use(&name) {
            cleaned.kept += 1;
        } else if let Err(error) = unlink(&name) {
            cleaned.failed.push(format!("{name}: {error}"));
        } else {
            cleaned.removed.push(name);
        }
    }
    Ok(cleaned)
}

fn in_use(name: &str) -> bool {
    let launcher_runs = match creator(name) {
        Some((pid, start)) => process::is_running(pid, start),
        None => pid_in_name(name).is_some_and(|pid| process::start_time(pid).is_some()),
    };
    // A launcher that was killed just now has a warden that saves its logs from the segments, and then removes them.
    launcher_runs || run_in_name(name).is_some_and(warden::is_watching)
}

/// The creator from the header, whatever kind of segment it is; `None` for one that is not memory.
fn creator(name: &str) -> Option<(u32, u64)> {
    let path = format!("{SHM_DIR}/{name}");
    // FIFOs and sockets have none, and to open a FIFO is to wait for its other end.
    let is_memory = symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
    let mut bytes = [0; HEADER_WORDS * 8];
    is_memory.then(|| File::open(path))?.ok()?.read_exact(&mut bytes).ok()?;
    let mut words = [0; HEADER_WORDS];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().ok()?);
    }
    Header::creator(&words)
}

/// Run ids end with the launcher's pid: `bulkhead.<time>-<pid>.<what>`.
fn pid_in_name(name: &str) -> Option<u32> {
    run_in_name(name)?.rsplit('-').next()?.parse().ok()
}

fn run_in_name(name: &str) -> Option<&str> {
    name.strip_prefix(Plan::PREFIX)?.split('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::memory::Region;
    use shm::memory::header::run_hash;

    #[test]
    fn what_dead_launchers_left_is_removed_and_the_living_keep_theirs() {
        let me = std::process::id();
        let start = process::start_time(me).unwrap();
        let segment = |what: &str, creator_start| {
            let name = format!("bulkhead.unit-clean-{me}.{what}");
            let words = Region::create(&name, 64).unwrap().words();
            let header = Header {
                kind: shm::bell::KIND,
                bytes: 512,
                capacity: 1,
                slot_words: 1,
                creator_pid: me,
                creator_start,
                run: run_hash("unit-clean"),
                index: 0,
            };
            header.write(&words);
            name
        };
        // While the warden of a dead run saves its logs, it has this locked.
        let control = segment("control", start + 1);
        let lock = File::open(format!("{SHM_DIR}/{control}")).unwrap();
        lock.lock().unwrap();
        assert!(!clean().unwrap().removed.contains(&control));
        drop(lock);
        assert!(clean().unwrap().removed.contains(&control));

        let living = segment("living", start);
        let dead = segment("dead", start + 1);
        // Without a header: judged by the pid in the name.
        let young = format!("bulkhead.unit-clean-{me}.young");
        drop(Region::create(&young, 64).unwrap());
        let orphan = "bulkhead.unit-clean-999999999.orphan".to_owned();
        drop(Region::create(&orphan, 64).unwrap());

        let fifos = [me, 999_999_999].map(|pid| format!("bulkhead.unit-clean-{pid}.fifo"));
        fifos.iter().for_each(|name| shm::os::fifo::create(name).unwrap());
        let socket = "bulkhead.unit-clean-999999999.socket".to_owned();
        drop(shm::os::seqpacket::listen(&socket).unwrap());

        let cleaned = clean().unwrap();
        assert!(cleaned.removed.contains(&fifos[1]) && cleaned.removed.contains(&socket), "{cleaned:?}");
        assert!(cleaned.removed.contains(&dead) && cleaned.removed.contains(&orphan), "{cleaned:?}");
        let left = list_segments().unwrap();
        assert!(left.contains(&living) && left.contains(&young) && left.contains(&fifos[0]));
        unlink(&fifos[0]).unwrap();
        unlink(&living).unwrap();
        unlink(&young).unwrap();
    }
}
