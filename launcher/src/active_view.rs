//! Reads an active run's memory from outside: copied out of its files, which are opened read-only.
//!
//! Nothing is mapped. So a truncated segment is an error here and not a signal, and writing is
//! impossible. Segments without names (sandbox) are opened through the descriptors of the run's
//! launcher, whose process must match the plan.

use anyhow::{Context, Result, bail, ensure};
use protocol::control::{self, Control};
use protocol::plan::{Handle, Plan};
use protocol::segments::{CONTROL, read_control};
use shm::memory::header::{HEADER_WORDS, run_hash};
use shm::memory::{Header, ReadOnlyWords, Region, SegmentKind, lock, open_safely};
use shm::process::start_time;
use shm::sync::Ordering;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Maximum size of a control segment, in words: a plan is a few kilobytes.
const MOST_CONTROL_WORDS: usize = 1 << 21;

/// `O_NONBLOCK`: opening never blocks, whatever kind of file it is.
const NONBLOCK: i32 = nix::fcntl::OFlag::O_NONBLOCK.bits();

/// A shared-memory segment of an active run, opened for reading by path.
pub struct SegmentFile(File);

impl SegmentFile {
    /// Returns the size of the segment, in words of 64 bits.
    pub fn len(&self) -> io::Result<usize> {
        Ok(usize::try_from(self.0.metadata()?.len() / 8).unwrap_or(usize::MAX))
    }

    /// Copies 64-bit words of the segment into `words`, from the word index `first` on.
    pub fn read(&self, first: usize, words: &mut [u64]) -> io::Result<()> {
        let mut bytes = vec![0; words.len() * 8];
        self.0.read_exact_at(&mut bytes, first as u64 * 8)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(std::array::from_fn(|byte| bytes[byte]));
        }
        Ok(())
    }

    /// Reads the 64-bit word at word index `at` of the segment; `None` if it cannot be read.
    pub fn word(&self, at: usize) -> Option<u64> {
        let mut word = [0];
        self.read(at, &mut word).ok()?;
        Some(word[0])
    }

    /// Copies the first `words` 64-bit words of the segment into private memory.
    pub fn copy(&self, words: usize) -> io::Result<ReadOnlyWords> {
        let mut copied = vec![0; words];
        self.read(0, &mut copied)?;
        let ours = Region::heap(words).words();
        for (word, value) in ours.iter().zip(copied) {
            // Relaxed: no other thread has it.
            word.store(value, Ordering::Relaxed);
        }
        Ok(ours.into())
    }
}

/// A read-only view of an active run from another process: the run's plan and control segment.
pub struct ActiveRunView {
    pub plan: Plan,
    control: SegmentFile,
}

impl ActiveRunView {
    /// Opens the control segment of an active run by the run's id, and reads the plan from it.
    pub fn open(run: &str) -> Result<Self> {
        let name = format!("{}{run}.{CONTROL}", Plan::PREFIX);
        let control = SegmentFile(open_safely(&name, OpenOptions::new().read(true))?);
        let plan = plan(&name, &control)?;
        ensure!(plan.run == run, "{name} holds the plan of another run");
        Ok(Self { plan, control })
    }

    /// Copies the run's control segment without the plan.
    pub fn control(&self) -> io::Result<Control> {
        Ok(Control::new(self.control.copy(control::PLAN + 1)?))
    }

    /// Reads the run's plan again, since the launcher adds descriptors during setup.
    pub fn refresh(&mut self) -> Result<()> {
        self.plan = plan(CONTROL, &self.control)?;
        Ok(())
    }

    /// Returns `true` if the run's launcher or reaper is running, according to the run's lock.
    pub fn launcher_lives(&self) -> bool {
        lock::is_locked(&self.control.0).unwrap_or(false)
    }

    /// Opens a shared-memory segment of the run for reading, if it has the given kind.
    pub fn segment(&self, what: &str, kind: SegmentKind) -> Result<SegmentFile> {
        let name = self.plan.segment_name(what);
        let handed = self.plan.handles.iter().find(|handle| handle.name == what && !handle.writable);
        let file = match open_safely(&name, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match handed {
                Some(handle) => self.handed_over(handle).with_context(|| format!("cannot open {what}"))?,
                None => return Err(error).with_context(|| format!("cannot open {name}")),
            },
            file => file.with_context(|| format!("cannot open {name}"))?,
        };
        let segment = SegmentFile(file);
        let head = segment.copy(HEADER_WORDS).with_context(|| format!("cannot read {name}"))?;
        let header = Header::read(|i, ordering| head.load(i, ordering), segment.len()?, kind);
        let header = header.with_context(|| format!("segment {name}"))?;
        ensure!(header.run == run_hash(&self.plan.run), "segment {name} is not of this run");
        Ok(segment)
    }

    /// Opens an unnamed segment through the launcher's descriptor.
    fn handed_over(&self, handle: &Handle) -> Result<File> {
        let Plan { launcher_pid, launcher_start, .. } = self.plan;
        if start_time(launcher_pid) != Some(launcher_start) {
            bail!("its launcher is not there any more");
        }
        let path = format!("/proc/{launcher_pid}/fd/{}", handle.fd);
        let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
        ensure!(file.metadata()?.is_file(), "not memory");
        Ok(file)
    }
}

fn plan(name: &str, control: &SegmentFile) -> Result<Plan> {
    let words = control.len()?;
    ensure!(words <= MOST_CONTROL_WORDS, "{name} is larger than any control segment");
    let (_, plan) = read_control(name.to_owned(), control.copy(words)?)?;
    Ok(plan)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// Creates a segment with these words in a temporary file, for tests.
    pub fn segment_of(words: &[u64]) -> SegmentFile {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all(&bytes).unwrap();
        SegmentFile(file)
    }

    #[test]
    fn truncated_segment_is_error_without_signal() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&7u64.to_le_bytes()).unwrap();
        let segment = SegmentFile(file.reopen().unwrap());
        assert_eq!((segment.len().unwrap(), segment.word(0), segment.word(1)), (1, Some(7), None));
        assert_eq!(segment.copy(1).unwrap().load(0, Ordering::Relaxed), 7);
        file.as_file().set_len(3).unwrap();
        assert!(segment.copy(1).is_err());
        assert_eq!((segment.len().unwrap(), segment.word(0)), (0, None));
    }
}
