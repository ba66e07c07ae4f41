//! What a case is, and what its processes are told: one value, in memory that they inherit.

use super::mode::Mode;
use crate::config::value::named_values;
use anyhow::{Context, Result, anyhow, ensure};
use protocol::plan::{ClockSource, Isolation};
use serde::{Deserialize, Serialize};
use shm::memory::sealed::{self, Handle, Shared};
use shm::memory::{Region, RegionError, View, Words};
use shm::sync::Ordering;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use system::names;

names! {
    /// What is measured.
    Carrier {
        /// The board.
        Board = "board",
        /// A broken one: readers do not look at the version again. For the tests of the check.
        Careless = "careless",
    }
}

names! {
    /// How readers wait for something newer.
    Waiting {
        /// Looks again at once.
        Spin = "spin",
        /// Gives the core to whoever else wants it.
        Yield = "yield",
        /// Sleeps until the writer wakes it, for a millisecond at most.
        Park = "park",
    }
}

named_values!(Carrier, Waiting);

/// One case, as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The load.
    pub mode: Mode,
    /// How many readers.
    pub readers: usize,
    /// Words of a value.
    pub words: usize,
    /// How many cells.
    pub cells: usize,
    /// What stands between writer and readers.
    pub isolation: Isolation,
    /// How readers wait; `None`: as suits the cores.
    pub waiting: Option<Waiting>,
    /// The folder whose file system has the board.
    pub on: PathBuf,
    /// What is measured.
    pub carrier: Carrier,
    /// How long.
    pub duration_ns: u64,
    /// Where random numbers start.
    pub seed: u64,
}

/// What each process of a case is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardPlan {
    /// The launcher's process id: who starts the others.
    pub launcher_pid: u32,
    /// Where ticks come from.
    pub clock: ClockSource,
    /// Nanoseconds a tick.
    pub ns_per_tick: f64,
    /// What stands between writer and readers.
    pub isolation: Isolation,
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    pub weaker_sandbox: bool,
    /// What is measured.
    pub carrier: Carrier,
    /// How readers wait.
    pub waiting: Waiting,
    /// How many cells.
    pub cells: usize,
    /// Words of a value.
    pub words: usize,
    /// Writes that are due; `None`: nothing is due.
    pub scheduled: Option<u64>,
    /// How long.
    pub duration_ns: u64,
    /// The writer's core, then each reader's.
    pub cores: Vec<Option<u32>>,
    /// The segments, as descriptors: each for writing and read-only.
    pub handles: Vec<Handle>,
}

/// The segment of the state of the case, which the launcher writes.
pub const CONTROL: &str = "control";
/// The segment of due times.
pub const DUE: &str = "due";
/// The board.
pub const BOARD: &str = "board";

/// The segment of an agent's log: 0 for the writer, then the readers.
pub fn log_name(agent: usize) -> String {
    format!("log-{agent}")
}

/// The word of the control segment that says how far the case is.
pub const STATE: usize = 0;
/// The word with the tick at which it starts.
pub const START: usize = 1;
/// Of [`STATE`]: not everybody is there.
pub const WAIT: u64 = 0;
/// Of [`STATE`]: it goes on.
pub const GO: u64 = 1;
/// Of [`STATE`]: the writer makes no further write.
pub const LAST: u64 = 2;
/// Of [`STATE`]: the writer has ended; who has read the newest values ends.
pub const STOP: u64 = 3;

impl BoardPlan {
    /// Into words: their number of bytes, then the text.
    ///
    /// # Errors
    /// None: it has no values that JSON cannot hold.
    pub fn to_words(&self) -> serde_json::Result<Vec<u64>> {
        let text = serde_json::to_vec(self)?;
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        Ok(std::iter::once(text.len() as u64).chain(text.chunks(8).map(word)).collect())
    }

    /// The plan behind an inherited descriptor.
    ///
    /// # Errors
    /// There is none.
    pub fn inherit(fd: i32) -> Result<Self> {
        let view = inherit_view(&Handle { what: "plan".into(), fd, writable: false })?;
        let bytes = usize::try_from(view.load(0, Ordering::Relaxed)).unwrap_or(usize::MAX);
        ensure!(bytes <= (view.len() - 1) * 8, "the plan is damaged");
        let words = (0..bytes.div_ceil(8)).map(|word| view.load(1 + word, Ordering::Relaxed).to_le_bytes());
        let text: Vec<u8> = words.flatten().take(bytes).collect();
        serde_json::from_slice(&text).context("the plan is not one of this build")
    }

    fn handle(&self, what: &str, writable: bool) -> Result<&Handle> {
        let found = self.handles.iter().find(|handle| handle.what == what && handle.writable == writable);
        found.ok_or_else(|| anyhow!("no segment {what} was handed over"))
    }

    /// A segment to read: once a process.
    ///
    /// # Errors
    /// It was not handed over.
    pub fn view(&self, what: &str) -> Result<View> {
        inherit_view(self.handle(what, false)?)
    }

    /// A segment to write: once a process.
    ///
    /// # Errors
    /// It was not handed over.
    pub fn segment(&self, what: &str) -> Result<Words> {
        let handle = self.handle(what, true)?;
        Ok(Region::map(&handle.what, &sealed::take(handle)?, true)?.words())
    }
}

fn inherit_view(handle: &Handle) -> Result<View> {
    let file = sealed::take(handle).with_context(|| format!("cannot take segment {}", handle.what))?;
    Ok(Region::map_read_only(&handle.what, &file)?)
}

/// A segment in the launcher: memory without a name, or of a file that has no name any more.
pub struct Segment {
    what: String,
    write: File,
    read: File,
    /// Its words.
    pub words: Words,
}

impl Segment {
    /// Memory of that many words.
    ///
    /// # Errors
    /// Too little of it.
    pub fn memory(what: &str, words: usize) -> Result<Self, RegionError> {
        let (shared, mapped) = Shared::create(what, format!("bulkhead.board.{what}"), words, true)?;
        let file = |access| shared.file(access).try_clone();
        let os = |source| RegionError::Os { name: what.into(), what: "keep its descriptor", source };
        Ok(Self {
            what: what.into(),
            write: file(sealed::Access::Write).map_err(os)?,
            read: file(sealed::Access::Read).map_err(os)?,
            words: mapped,
        })
    }

    /// The same on the file system of a folder. The file has no name, so that nothing can be left of it.
    ///
    /// # Errors
    /// The folder cannot be written, or has too little room.
    pub fn on(folder: &Path, what: &str, words: usize) -> Result<Self> {
        let cannot = || format!("--on {}: no board can be put there", folder.display());
        let write = nameless(folder).with_context(cannot)?;
        nix::fcntl::posix_fallocate(write.as_fd(), 0, words as i64 * 8)
            .map_err(io::Error::from)
            .with_context(|| format!("--on {}: no room for {} bytes", folder.display(), words * 8))?;
        Self::of(what, write).with_context(cannot)
    }

    fn of(what: &str, write: File) -> Result<Self> {
        // Opened anew, not duplicated: a duplicate would keep the right to write.
        let read = File::open(format!("/proc/self/fd/{}", write.as_raw_fd()))?;
        let words = Region::map(what, &write, true)?.words();
        Ok(Self { what: what.into(), write, read, words })
    }

    /// The descriptor with or without the right to write.
    pub const fn file(&self, writable: bool) -> &File {
        if writable { &self.write } else { &self.read }
    }

    /// Both as the plan lists them.
    pub fn handles(&self) -> [Handle; 2] {
        [true, false].map(|writable| Handle {
            what: self.what.clone(),
            fd: self.file(writable).as_raw_fd(),
            writable,
        })
    }
}

/// A file without a name; on file systems that have none, one whose name is removed at once.
fn nameless(folder: &Path) -> io::Result<File> {
    let options = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    };
    match options().custom_flags(nix::libc::O_TMPFILE).open(folder) {
        Err(error) if error.raw_os_error() == Some(nix::libc::EOPNOTSUPP) => {
            let path = folder.join(format!(".bulkhead-board-{}", std::process::id()));
            let file = options().create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use std::os::fd::IntoRawFd;

    #[test]
    fn a_reader_s_descriptor_cannot_be_mapped_for_writing() {
        let folder = tempfile::tempdir().unwrap();
        for segment in
            [Segment::memory("board", 512).unwrap(), Segment::on(folder.path(), "board", 512).unwrap()]
        {
            segment.words[3].store(7, Ordering::Relaxed);
            let view = Region::map_read_only("board", segment.file(false)).unwrap();
            assert_eq!(view.load(3, Ordering::Relaxed), 7);
            assert!(Region::map("board", segment.file(false), true).is_err());
            assert!(segment.file(false).set_len(0).is_err());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing has a name");
        let error = Segment::on(&folder.path().join("none"), "board", 8).err().unwrap();
        assert!(format!("{error:#}").contains("--on"), "{error:#}");
        assert!(Segment::on(folder.path(), "board", 1 << 45).is_err(), "no room");
    }

    #[test]
    fn a_plan_is_inherited_as_it_was() {
        let plan = BoardPlan {
            launcher_pid: 7,
            clock: ClockSource::Tsc,
            ns_per_tick: 0.4,
            isolation: Isolation::Process,
            weaker_sandbox: false,
            carrier: Carrier::Board,
            waiting: Waiting::Park,
            cells: 3,
            words: 8,
            scheduled: Some(100),
            duration_ns: 5,
            cores: vec![Some(0), None],
            handles: vec![Handle { what: BOARD.into(), fd: 9, writable: true }],
        };
        let words = plan.to_words().unwrap();
        let segment = Segment::memory("plan", words.len()).unwrap();
        for (place, word) in segment.words.iter().zip(&words) {
            place.store(*word, Ordering::Relaxed);
        }
        let file = segment.file(false).try_clone().unwrap();
        // As a child inherits it: not closed on exec.
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let fd = file.into_raw_fd();
        assert_eq!(BoardPlan::inherit(fd).unwrap(), plan);
        assert!(BoardPlan::inherit(1 << 20).is_err());
    }
}
