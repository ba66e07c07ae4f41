//! Named segments whose creator holds a lock, so that a leftover of a crashed creator is
//! recognized. A segment appears under its name complete and locked, and is a leftover once no
//! process holds the lock.
//!
//! The lock is released when its process ends, however that ends, and is visible in every PID
//! namespace ([`lock`]). A process id has neither property: it may belong to another process by
//! now. Only the holder of the lock removes the name, so a leftover that two processes find at once
//! is removed once, and what one of them has created under the name since is not touched.

use super::mapped::{give_name, nameless, open_named, unlink};
use super::{AtomicWords, Region, RegionError, SHM_DIR, lock};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// A named shared-memory segment whose file this process has locked, as the segment's owner.
/// Dropping it releases the lock and leaves the name.
pub struct OwnedSegment {
    name: String,
    file: File,
}

impl OwnedSegment {
    /// Creates a named segment of zeroed words, mode 0600, maps it and holds its lock. Other
    /// processes see it only once `fill` has written to it and it is locked.
    ///
    /// # Errors
    /// As [`Region::create`]. Nothing is left over then.
    pub fn create(
        name: &str,
        words: usize,
        prefault: bool,
        fill: impl FnOnce(&AtomicWords),
    ) -> Result<(Self, Arc<Region>), RegionError> {
        let file = nameless(name, words)?;
        lock::try_lock(&file).map_err(RegionError::os(name, "lock it"))?;
        fill(&Region::map(name, &file, false)?.words());
        give_name(name, &file)?;
        let owned = Self { name: name.into(), file };
        // Mapped by its name, which `/proc/PID/maps` shows then.
        match if prefault { Region::open(name) } else { Region::open_reserve(name) } {
            Ok(region) => Ok((owned, region)),
            Err(error) => {
                let _ = owned.unlink();
                Err(error)
            }
        }
    }

    /// Takes over a named segment whose owner's process has ended, by locking the segment's file.
    /// `None` if another process holds the lock or has just removed the name.
    ///
    /// # Errors
    /// No segment has that name; the file is not memory of this user.
    pub fn resume(name: &str) -> Result<Option<Self>, RegionError> {
        let file = open_named(name, true)?;
        let is_ours = lock::try_lock(&file).map_err(RegionError::os(name, "lock it"))?;
        let owned = Self { name: name.into(), file };
        Ok((is_ours && owned.is_named()).then_some(owned))
    }

    /// Returns the segment's open file, readable and writable.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Returns `true` if the file with the segment's name is still this segment's file, and not a
    /// later one of the same name. Somebody may have removed the name and created it again.
    pub fn is_named(&self) -> bool {
        let identity = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
        let named = std::fs::symlink_metadata(format!("{SHM_DIR}/{}", self.name)).map(identity);
        matches!((named, self.file.metadata().map(identity)), (Ok(named), Ok(ours)) if named == ours)
    }

    /// Removes the segment's name if it still refers to this segment.
    ///
    /// # Errors
    /// What the system refused.
    pub fn unlink(self) -> io::Result<()> {
        if self.is_named() { unlink(&self.name) } else { Ok(()) }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    fn name(what: &str) -> String {
        format!("bulkhead-unit-{}-owned-{what}", std::process::id())
    }

    fn create(name: &str, value: u64) -> Result<(OwnedSegment, Arc<Region>), RegionError> {
        OwnedSegment::create(name, 8, true, |words| words[0].store(value, Ordering::Relaxed))
    }

    #[test]
    fn segment_of_living_owner_cannot_be_taken_over() {
        let name = name("living");
        let (owned, region) = create(&name, 7).unwrap();
        assert_eq!(region.words()[0].load(Ordering::Relaxed), 7);
        assert!(create(&name, 8).is_err(), "the name is taken");
        assert!(OwnedSegment::resume(&name).unwrap().is_none());
        drop(owned);
        let successor = OwnedSegment::resume(&name).unwrap().expect("its owner is gone");
        assert!(OwnedSegment::resume(&name).unwrap().is_none(), "one at a time");
        successor.unlink().unwrap();
        assert!(OwnedSegment::resume(&name).is_err());
    }

    /// Two cleaners at once, and a creator between them.
    #[test]
    fn stale_owner_leaves_the_next_segment_of_its_name() {
        let name = name("stale");
        let (stale, _) = create(&name, 1).unwrap();
        unlink(&name).unwrap();
        let (owned, _) = create(&name, 2).unwrap();
        assert!(!stale.is_named() && owned.is_named());
        stale.unlink().unwrap();
        assert!(owned.is_named());
        owned.unlink().unwrap();
    }

    #[test]
    fn failed_creation_leaves_nothing() {
        let name = name("huge");
        assert!(matches!(
            OwnedSegment::create(&name, 1 << 50, true, |_| ()),
            Err(RegionError::NoRoom { .. })
        ));
        assert!(Region::open(&name).is_err());
    }
}
