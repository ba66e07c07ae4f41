//! A standby of an exchange under test.

use super::{ReplicaFollower, Successor, World, setup, time};
use shm::ring::spsc;
use std::path::Path;

/// A standby replica that follows the exchange's journal.
pub(super) struct StandbyReplica {
    pub(super) follower: Option<ReplicaFollower>,
    pub(super) how: Successor,
    pub(super) turns: usize,
    /// All segments that there ever were: the journal's contents before it was cut after snapshots.
    pub(super) archive: tempfile::TempDir,
    pub(super) snapshots: usize,
}

impl StandbyReplica {
    pub(super) fn new(how: Successor) -> Self {
        Self { follower: None, how, turns: 0, archive: tempfile::tempdir().unwrap(), snapshots: 0 }
    }

    /// A turn: it follows, not as fast as the exchange goes, and writes a snapshot now and then.
    pub(super) fn turn(&mut self, world: &World, folder: &Path) {
        for file in std::fs::read_dir(folder).unwrap().flatten() {
            let name = file.file_name();
            if name.to_str().is_some_and(|name| name.starts_with("log-")) {
                // Under the same name may have been one that was prepared for nothing.
                let link = self.archive.path().join(name);
                let _ = std::fs::remove_file(&link);
                let _ = std::fs::hard_link(file.path(), link);
            }
        }
        if self.how < Successor::HasSnapshots {
            return;
        }
        self.turns += 1;
        let begin = || ReplicaFollower::open(folder, venue::ExchangeReplica::new(setup(), time())).unwrap();
        let follower = self.follower.get_or_insert_with(begin);
        follower.poll(7).unwrap();
        let published = spsc::Producer::<7>::resume(&world.rings[1]).unwrap().published();
        let forgets = self.how == Successor::ForgetsReports;
        follower.state.confirm_sent(if forgets { u64::MAX } else { published });
        if self.turns.is_multiple_of(3) && follower.is_snapshot_due(5) {
            follower.snapshot().unwrap();
            self.snapshots += 1;
        }
    }

    /// Returns the follower from which a successor is promoted.
    pub(super) fn take(&mut self) -> Option<ReplicaFollower> {
        let follows = matches!(self.how, Successor::Follows | Successor::ForgetsReports);
        self.follower.take().filter(|_| follows)
    }
}
