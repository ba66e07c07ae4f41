//! The facts about a thread's log besides its stamps: incarnation, dropped records, counters.

use protocol::counters::ThreadCounters;
use protocol::stamps::Gap;
use protocol::status::{STATUS_WORDS, ThreadStatus};

/// The facts about a thread's stamp log besides its stamps, such as counters, gaps and trust.
#[derive(Clone, Debug)]
pub struct ThreadLog {
    /// Name of the thread in the plan.
    pub name: String,
    /// Number of records in the log.
    pub records: u64,
    /// Final status block of the thread; empty for an untrusted log.
    pub status: ThreadStatus,
    /// Final counters of the thread's agents; all zero for an untrusted log.
    pub counters: ThreadCounters,
    /// Whether log and status block are untrusted: the strategy was quarantined and may have
    /// overwritten them.
    pub is_untrusted: bool,
    /// Number of stamps that precede their predecessor: the thread's clock went back.
    pub went_back: u64,
    /// Gaps in the thread's duty cycles, at most [`MAX_GAPS`](protocol::gaps::MAX_GAPS), in log
    /// order.
    pub gaps: Vec<Gap>,
    /// Sleeps of the thread by its own idle strategy, up to the capacity of its log, in log order.
    pub sleeps: Vec<Gap>,
}

impl ThreadLog {
    /// Creates the facts about an untrusted log, of which only the number of records is used.
    pub(super) fn unproven(name: String, records: u64) -> Self {
        Self {
            name,
            records,
            status: ThreadStatus::from_words([0; STATUS_WORDS]),
            counters: ThreadCounters::default(),
            is_untrusted: true,
            went_back: 0,
            gaps: Vec::new(),
            sleeps: Vec::new(),
        }
    }
}
