//! Removes the segments and cgroups of runs whose launcher is gone: at every start, and by
//! `launcher clean`.
//!
//! `launcher clean` also removes the files of queues without a run whose creators are dead
//! ([`shm::queue`]). A start leaves them alone: their programs may still read them.
//!
//! Only files that certainly belong to bulkhead are removed: the name must parse as a segment of a
//! run, the owner must be this user, and the file must be memory, a FIFO, a socket, or the folder
//! of a foreign transport with the files next to it. Nothing blocks, whatever kind of file has such
//! a name.

use crate::container::cgroups;
use catalog::active::RunLife;
use catalog::run_id::RunId;
use planner::host;
use protocol::segments::thread_segment;
use run_memory::segments::BRIDGE;
use shm::memory::header::MAGIC;
use shm::memory::{SHM_DIR, directory, list_segments, open_safely, unlink};
use shm::queue::{self, QueueError};
use simulation::JOURNALS;
use std::collections::HashMap;
use std::fs::{self, Metadata, OpenOptions, symlink_metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The extent of a cleanup after runs whose launcher has ended: which of their leftover files it
/// removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanScope {
    /// All files but stamp logs that could not be saved: at every start of the launcher.
    KeepLogs,
    /// All files of dead runs.
    Everything,
    /// No files: lists those that `Everything` would remove, for `launcher clean --dry-run`.
    Nothing,
}

/// The result of a cleaning after dead runs: the files that it removed, kept, and could not remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Names of the removed files.
    pub removed: Vec<String>,
    /// Paths of removed cgroups; one in each hierarchy of cgroup v1.
    pub cgroups: Vec<String>,
    /// Number of segment files that belong to another user.
    pub others: usize,
    /// Number of segments kept: those of active runs and of runs whose reaper is still cleaning up,
    /// and unsaved logs.
    pub kept: usize,
    /// Segments and cgroups that could not be removed, with the error.
    pub failed: Vec<String>,
}

/// Removes shared-memory segments and cgroups of runs whose launcher has ended.
pub fn clean(scope: CleanScope) -> std::io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    let mut lives = HashMap::new();
    for name in list_segments()? {
        let Some((run, what)) = RunId::from_segment_name(&name) else { continue };
        let Ok(facts) = symlink_metadata(directory::path(&name)) else { continue };
        if facts.uid() != nix::unistd::geteuid().as_raw() {
            cleaned.others += 1;
            continue;
        }
        if !is_segment(&name, what, &facts) {
            continue;
        }
        let life = *lives.entry(run).or_insert_with(|| RunLife::for_run(run));
        if is_needed(life, what, scope) {
            cleaned.kept += 1;
        } else if scope == CleanScope::Nothing {
            cleaned.removed.push(name);
        } else if let Err(error) = unlink(&name) {
            cleaned.failed.push(format!("{name}: {error}"));
        } else {
            cleaned.removed.push(name);
        }
    }
    if scope != CleanScope::KeepLogs {
        clean_queues(scope, &mut cleaned)?;
    }
    clean_cgroups(host::root(), scope, &mut cleaned);
    Ok(cleaned)
}

/// Removes the cgroups of dead runs. Every start runs this and must not wait for the processes of
/// another run.
fn clean_cgroups(root: &Path, scope: CleanScope, cleaned: &mut Cleaned) {
    for (_, group) in
        cgroups::list(root).into_iter().filter(|(run, _)| RunLife::for_run(*run) != RunLife::Active)
    {
        let removed = cgroups::claim(&group).and_then(|claimed| {
            // Locked: by a launcher in another PID namespace with its own `/dev/shm`.
            let Some(_claimed) = claimed else { return Ok(false) };
            if scope != CleanScope::Nothing {
                fs::remove_dir(&group)?;
            }
            Ok(true)
        });
        match removed {
            Ok(true) => cleaned.cgroups.push(group.display().to_string()),
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => cleaned.failed.push(format!("{}: {error}", group.display())),
        }
    }
}

fn clean_queues(scope: CleanScope, cleaned: &mut Cleaned) -> std::io::Result<()> {
    for name in queue::dead()? {
        let found = if scope == CleanScope::Nothing { queue::leftovers(&name) } else { queue::remove(&name) };
        match found {
            Ok(files) => cleaned.removed.extend(files),
            // Its own program has just removed or reopened it.
            Err(QueueError::Living(_)) => {}
            Err(error) => cleaned.failed.push(format!(
                "cannot clean the queue {name}: {error}; delete {SHM_DIR}/{}{name}.* by hand if nobody needs it",
                queue::PREFIX
            )),
        }
    }
    Ok(())
}

/// Returns `true` if a segment must be kept. The control segment is removed last, so a run without
/// one has only unsaved logs left.
fn is_needed(life: RunLife, what: &str, scope: CleanScope) -> bool {
    let is_log = what.starts_with(&thread_segment(""));
    life == RunLife::Active || (life == RunLife::NoControl && is_log && scope == CleanScope::KeepLogs)
}

/// Returns `true` if a file with the name of a segment is one.
fn is_segment(name: &str, what: &str, facts: &Metadata) -> bool {
    let kind = facts.file_type();
    match kind.is_file() {
        true => {
            has_magic(name)
                || (has_known_stem(what) && (facts.mode() & 0o777 == 0o600 || is_in_transport_folder(name)))
        }
        false => kind.is_fifo() || kind.is_socket() || (kind.is_dir() && has_known_stem(what)),
    }
}

/// First components of segment names, up to the first `-` or `.`.
const STEMS: [&str; 21] = [
    "control",
    "submit",
    "completion",
    "inbox",
    "return",
    "session",
    "schedule",
    "thread",
    "bell",
    "repairs",
    "tape",
    "market",
    "turns",
    "desk",
    "answers",
    "queue",
    "board",
    "due",
    "results",
    BRIDGE,
    JOURNALS,
];

/// Needed where a process has overwritten the segment, so that its header is useless.
fn has_known_stem(what: &str) -> bool {
    what.split(['-', '.']).next().is_some_and(|stem| STEMS.contains(&stem))
}

/// Returns `true` if a foreign transport created the file next to its folder: the name starts with
/// the name of an existing folder.
fn is_in_transport_folder(name: &str) -> bool {
    let is_folder = |(at, _): (usize, &str)| {
        directory::path(&name[..at]).symlink_metadata().is_ok_and(|facts| facts.is_dir())
    };
    name.match_indices('.').any(is_folder)
}

/// Returns `true` if the file starts with the segment magic, or with 0, as during creation.
fn has_magic(name: &str) -> bool {
    let Ok(mut file) = open_safely(name, OpenOptions::new().read(true)) else { return false };
    let mut magic = [0; 8];
    match file.read_exact(&mut magic) {
        Ok(()) => [0, MAGIC].contains(&u64::from_le_bytes(magic)),
        Err(error) => error.kind() == ErrorKind::UnexpectedEof,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::memory::Region;
    use shm::memory::fifo;
    use shm::process::start_time;
    use shm::queue::Queue;
    use shm::ring::spsc_mux::SpscMux;
    use std::path::PathBuf;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::UNIX_EPOCH;
    use techniques::named::seqpacket;

    /// A pid that no process has.
    const NOBODY: u32 = 0x7fff_fff0;

    /// Each test here removes whatever is dead: two at once would remove each other's.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(pid: u32, start: u64, millis: u64) -> RunId {
        RunId::new(UNIX_EPOCH + std::time::Duration::from_millis(millis), pid, start)
    }

    fn segment(run: RunId, what: &str) -> String {
        let name = format!("bulkhead.{run}.{what}");
        drop(Region::create(&name, 64).unwrap());
        name
    }

    /// The files that a queue leaves whose creator is killed: how many.
    fn dead_queue(name: &str) -> usize {
        let queue = Queue::<SpscMux>::create(name, 1, 8).unwrap();
        let prefix = format!("{}{name}.", queue::PREFIX);
        let entries = std::fs::read_dir(SHM_DIR).unwrap().map(|entry| entry.unwrap().path());
        let is_its = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&prefix);
        let files: Vec<PathBuf> = entries.filter(is_its).collect();
        let kept = |path: &PathBuf| PathBuf::from(format!("{}.kept", path.display()));
        files.iter().for_each(|path| std::fs::hard_link(path, kept(path)).unwrap());
        drop(queue);
        files.iter().for_each(|path| std::fs::rename(kept(path), path).unwrap());
        files.len()
    }

    fn is_there(name: &str) -> bool {
        symlink_metadata(format!("{SHM_DIR}/{name}")).is_ok()
    }

    #[test]
    fn locked_control_segment_means_active_run() {
        let _alone = alone();
        // As a launcher in another PID namespace appears from here.
        let run = id(NOBODY, 5, 1);
        let control = format!("bulkhead.{run}.control");
        let held = Region::create_control(&control, 512).unwrap();
        let submit = segment(run, "submit");
        clean(CleanScope::Everything).unwrap();
        assert!(is_there(&control) && is_there(&submit));
        drop(held);
        let named = clean(CleanScope::Nothing).unwrap();
        assert!(named.removed.contains(&control) && named.removed.contains(&submit), "{named:?}");
        assert!(is_there(&control) && is_there(&submit), "only named");
        clean(CleanScope::KeepLogs).unwrap();
        assert!(!is_there(&control) && !is_there(&submit));
    }

    #[test]
    fn dead_run_is_removed_despite_reused_pid() {
        let _alone = alone();
        let me = std::process::id();
        let start = start_time(me).unwrap();
        // Without a lock, the process in the name does not count; with no control segment, it does.
        let dead = [
            segment(id(me, start, 2), "control"),
            segment(id(me, start, 2), "submit"),
            segment(id(me, start + 1, 3), "submit"),
        ];
        let living = segment(id(me, start, 4), "submit");
        clean(CleanScope::KeepLogs).unwrap();
        assert!(!dead.iter().any(|name| is_there(name)) && is_there(&living), "{dead:?}");
        unlink(&living).unwrap();
    }

    #[test]
    fn segments_of_dead_run_go_and_foreign_files_stay() {
        let _alone = alone();
        let run = id(NOBODY, 5, 7);
        let path = |what: &str| directory::path(&format!("bulkhead.{run}.{what}"));
        fifo::create(&format!("bulkhead.{run}.control")).unwrap();
        drop(seqpacket::listen(&format!("bulkhead.{run}.socket")).unwrap());
        for folder in ["submit", "bridge-venue-0", "journals-0", "database-0"] {
            std::fs::create_dir(path(folder)).unwrap();
        }
        for file in ["submit/node", "journals-0/segment", "submit.1.data", "database", "mydb"] {
            std::fs::write(path(file), "whatever").unwrap();
        }
        for what in ["thread-strategy-0", "return-0.head"] {
            segment(run, what);
            std::fs::write(path(what), [0xFF; 512]).unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", path("inbox-0")).unwrap();
        clean(CleanScope::Everything).unwrap();
        let names = list_segments().unwrap().into_iter().filter_map(|name| {
            RunId::from_segment_name(&name)
                .filter(|(other, _)| *other == run)
                .map(|(_, what)| what.to_owned())
        });
        let mut left: Vec<String> = names.collect();
        left.sort();
        for what in &left {
            unlink(&format!("bulkhead.{run}.{what}")).unwrap();
        }
        assert_eq!(left, ["database", "database-0", "inbox-0", "mydb"]);
    }

    #[test]
    fn every_segment_has_a_known_stem() {
        let machine = planner::host::Machine { cores_allowed: (0..40).collect(), ..Default::default() };
        for settings in
            ["strategies=2 venue=book exchange=process", "technique=linked", "technique=unix-seqpacket"]
        {
            let (_, plan, _) = planner::fixtures::planned(settings, &machine).unwrap();
            let all = protocol::topology::segments(&plan);
            let unknown: Vec<_> = all.iter().filter(|segment| !has_known_stem(&segment.spec.name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }

    /// A group in cgroup v1 of a run whose launcher no process id and no segment shows.
    #[test]
    fn only_unlocked_empty_cgroups_are_removed() {
        let tree = planner::host::fake::plain(2);
        tree.put("proc/self/mounts", "none /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
        tree.put("proc/self/cgroup", "2:pids:/\n");
        let group = |what: &str| {
            let path = tree.root().join(format!("sys/fs/cgroup/pids/bulkhead.{}.{what}", id(NOBODY, 5, 9)));
            fs::create_dir_all(&path).unwrap();
            path
        };
        let [dead, busy, owned] = ["strategy-0", "strategy-1", "strategy-2"].map(group);
        fs::write(busy.join("process"), "").unwrap();
        let lock = fs::File::open(&owned).unwrap();
        lock.lock_shared().unwrap();
        let clean = |scope| {
            let mut cleaned = Cleaned::default();
            clean_cgroups(tree.root(), scope, &mut cleaned);
            cleaned
        };
        assert_eq!(clean(CleanScope::Nothing).cgroups.len(), 2, "the owned one is not named");
        let cleaned = clean(CleanScope::KeepLogs);
        assert_eq!(cleaned.cgroups, [dead.display().to_string()]);
        assert!(cleaned.failed.len() == 1 && cleaned.failed[0].contains("strategy-1"), "{cleaned:?}");
        assert!(!dead.exists() && busy.exists() && owned.exists());
        drop(lock);
        assert_eq!(clean(CleanScope::KeepLogs).cgroups, [owned.display().to_string()]);
    }

    #[test]
    fn clean_removes_dead_queues_and_keeps_live_ones() {
        let _alone = alone();
        let name = |what: &str| format!("unit-clean-{}-{what}", std::process::id());
        let dead = dead_queue(&name("dead"));
        let living = Queue::<SpscMux>::create(&name("living"), 1, 8).unwrap();
        let file = |what: &str| format!("{}{}.about", queue::PREFIX, name(what));
        clean(CleanScope::KeepLogs).unwrap();
        let named = clean(CleanScope::Nothing).unwrap();
        assert!(
            named.removed.contains(&file("dead")) && !named.removed.contains(&file("living")),
            "{named:?}"
        );
        assert!(is_there(&file("dead")), "only named");
        let cleaned = clean(CleanScope::Everything).unwrap();
        assert!(cleaned.removed.len() >= dead && !is_there(&file("dead")), "{cleaned:?}");
        assert!(is_there(&file("living")));
        drop(living);
    }
}
