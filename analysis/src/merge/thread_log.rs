//! One thread's log as the merge knows it, beyond its stamps.

use protocol::counters::ThreadCounters;
use protocol::stamps::Gap;
use protocol::status::{STATUS_WORDS, ThreadStatus};

/// What the merge knows about one thread's log.
#[derive(Clone, Debug)]
pub struct ThreadLog {
    /// The thread's name in the plan.
    pub name: String,
    /// Records in its log.
    pub records: u64,
    /// Its status block, as it was at the end; empty if it proves nothing.
    pub status: ThreadStatus,
    /// The counters of its agents, as they were at the end; all zero if they prove nothing.
    pub counters: ThreadCounters,
    /// Log and status block prove nothing: the strategy was quarantined, and may have written
    /// anything there.
    pub is_untrusted: bool,
    /// Stamps that lie before the stamp in front of them: the thread's clock went back.
    pub went_back: u64,
    /// When it was away from its duty cycles, at most [`MAX_GAPS`](protocol::gaps::MAX_GAPS) times;
    /// in the order of its log.
    pub gaps: Vec<Gap>,
    /// When it had given its core away by its idle strategy, at most as often as its log has room
    /// for; in the order of its log.
    pub sleeps: Vec<Gap>,
}

impl ThreadLog {
    /// A log that proves nothing.
    pub(super) fn unproven(name: String, records: u64) -> Self {
        Self {
            name,
            records,
            status: nothing(),
            counters: ThreadCounters::default(),
            is_untrusted: true,
            went_back: 0,
            gaps: Vec::new(),
            sleeps: Vec::new(),
        }
    }
}

/// A status block that says nothing.
pub(super) fn nothing() -> ThreadStatus {
    ThreadStatus::from_words([0; STATUS_WORDS])
}
