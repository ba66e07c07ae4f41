//! One that follows the orchestrator's journal, when there is one, and what its states come to.

use crate::world::{Successor, Venue, World, damage_newest_snapshot, replica};
use journal::{JournalFollower, State};
use orchestrator::Replica;
use std::path::Path;

/// A spare that follows its predecessor, and not as fast as that goes.
pub struct Standby {
    follower: Option<JournalFollower<Replica>>,
    variant: Successor,
    turns: usize,
    /// All segments that there ever were: the journal's contents before it was cut after snapshots.
    archive: tempfile::TempDir,
    pub snapshots: usize,
}

impl Standby {
    pub fn new(variant: Successor) -> Self {
        Self { follower: None, variant, turns: 0, archive: tempfile::tempdir().unwrap(), snapshots: 0 }
    }

    /// Follows, and writes a snapshot now and then.
    pub fn turn(&mut self, world: &World, folder: &Path, venues: &[Venue]) {
        if self.variant < Successor::HasSnapshots {
            return;
        }
        self.turns += 1;
        let follower = self.follower.get_or_insert_with(|| JournalFollower::open(folder, replica()).unwrap());
        follower.poll(7).unwrap();
        let mut watermarks = world.watermarks(venues);
        if self.variant == Successor::ForgetsWhatItGave {
            watermarks.sent.iter_mut().for_each(|count| *count = u64::MAX);
            watermarks.returned.iter_mut().for_each(|count| *count = u64::MAX);
        }
        follower.state.confirm(&watermarks);
        if self.turns.is_multiple_of(3) && follower.is_snapshot_due(25) {
            save_segments(folder, self.archive.path());
            follower.snapshot().unwrap();
            self.snapshots += 1;
        }
    }

    /// Takes what a successor continues from.
    pub fn take(&mut self) -> Option<JournalFollower<Replica>> {
        let follows = matches!(self.variant, Successor::Follows | Successor::ForgetsWhatItGave);
        self.follower.take().filter(|_| follows)
    }

    /// Checks that the state at the end has the same bytes, wherever it comes from.
    pub fn check(self, world: &World, folder: &Path, venues: &[Venue]) -> Result<(), String> {
        save_segments(folder, self.archive.path());
        let watermarks = world.watermarks(venues);
        let end = |mut follower: JournalFollower<Replica>| {
            while follower.poll(100).unwrap() > 0 {}
            follower.state.confirm(&watermarks);
            follower.state.encode().unwrap()
        };
        let read = |folder: &Path| end(JournalFollower::open(folder, replica()).unwrap());
        let whole = read(self.archive.path());
        let from_snapshot = read(folder);
        damage_newest_snapshot(folder);
        let from_the_one_before = read(folder);
        let followed = self.follower.map(end);
        for (name, bytes) in [
            ("the newest snapshot", Some(from_snapshot)),
            ("the snapshot before it", Some(from_the_one_before)),
            ("a spare", followed),
        ] {
            if bytes.is_some_and(|bytes| bytes != whole) {
                return Err(format!("the state from {name} is not that from the whole log"));
            }
        }
        Ok(())
    }
}

fn save_segments(folder: &Path, archive: &Path) {
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let name = file.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("log-")) {
            // Under the same name may have been one that was prepared for nothing.
            let link = archive.join(name);
            let _ = std::fs::remove_file(&link);
            let _ = std::fs::hard_link(file.path(), link);
        }
    }
}
