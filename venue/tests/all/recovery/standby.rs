//! A standby of an exchange under test.

use super::{ReplicaFollower, SESSIONS, Successor, SurvivingMemory, setup, time};
use shm::memory::AtomicWords;
use shm::ring::spsc;
use std::path::Path;

/// A standby replica that follows the exchange's journal.
pub(super) struct StandbyReplica {
    pub(super) follower: Option<ReplicaFollower>,
    pub(super) successor: Successor,
    pub(super) cycles: usize,
    /// All segments that ever existed, also those removed after snapshots.
    pub(super) archive: tempfile::TempDir,
    pub(super) snapshots: usize,
}

impl StandbyReplica {
    pub(super) fn new(successor: Successor) -> Self {
        Self { follower: None, successor, cycles: 0, archive: tempfile::tempdir().unwrap(), snapshots: 0 }
    }

    /// Follows the journal, slower than the exchange writes it, and writes a snapshot occasionally.
    pub(super) fn run_cycle(&mut self, memory: &SurvivingMemory, folder: &Path) {
        for file in std::fs::read_dir(folder).unwrap().flatten() {
            let name = file.file_name();
            if name.to_str().is_some_and(|name| name.starts_with("log-")) {
                // A prepared segment that was not used may have had the same name.
                let link = self.archive.path().join(name);
                let _ = std::fs::remove_file(&link);
                let _ = std::fs::hard_link(file.path(), link);
            }
        }
        if self.successor < Successor::HasSnapshots {
            return;
        }
        self.cycles += 1;
        let open = || ReplicaFollower::open(folder, venue::ExchangeReplica::new(setup(), time())).unwrap();
        let follower = self.follower.get_or_insert_with(open);
        follower.poll(7).unwrap();
        let published =
            |[_, reports]: &[AtomicWords; 2]| spsc::Producer::<7>::resume(reports).unwrap().published();
        let published: Vec<u64> = match self.successor {
            Successor::ForgetsReports => vec![u64::MAX; SESSIONS],
            _ => memory.rings.iter().map(published).collect(),
        };
        follower.state.confirm_sent(&published);
        if self.cycles.is_multiple_of(3) && follower.is_snapshot_due(5) {
            follower.snapshot().unwrap();
            self.snapshots += 1;
        }
    }

    /// Returns the follower from which a successor is promoted.
    pub(super) fn take(&mut self) -> Option<ReplicaFollower> {
        let follows = matches!(self.successor, Successor::FollowsJournal | Successor::ForgetsReports);
        self.follower.take().filter(|_| follows)
    }
}
