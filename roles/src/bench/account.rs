//! An agent's account: its state and figures, in a segment that only the agent writes.

use shm::attached::Attached;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, Region, RegionError, SegmentKind};
use shm::ring::{EndRights, SegmentSpec};
use shm::sync::Ordering;

/// A figure of every agent's account.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Field {
    /// [`READY`] or [`DONE`].
    State = HEADER_WORDS,
    /// Number of events made or taken so far.
    Count = HEADER_WORDS + 16,
    /// Tick of the first event.
    Begin = HEADER_WORDS + 32,
    /// Tick at which the loop ended.
    End,
    /// CPU time in nanoseconds.
    Cpu,
    /// Voluntary context switches.
    Voluntary,
    /// Involuntary context switches.
    Involuntary,
    /// Page faults.
    Faults,
}

/// Start of the words that each benchmark defines.
const OWN: usize = HEADER_WORDS + 48;
const KIND: SegmentKind =
    SegmentKind::new(41, "bench-account", &[("count", Field::Count as usize), ("own", OWN)]);

/// State of an agent that is ready and waits for the start.
pub const READY: u64 = 1;
/// State of an agent whose loop has ended and whose figures are all stored.
pub const DONE: u64 = 2;

/// Returns the specification of an agent's account with `own_words` own words.
pub fn segment(agent: usize, own_words: usize) -> SegmentSpec {
    SegmentSpec::memory(segment_name(agent), KIND, OWN + own_words, EndRights::NONE)
}

fn segment_name(agent: usize) -> String {
    format!("account-{agent}")
}

/// The agent's writing end of its account.
#[derive(Clone)]
pub struct AgentAccount(AtomicWords);

impl AgentAccount {
    /// Attaches the account of a benchmark's agent.
    ///
    /// # Errors
    /// A segment is missing or not this agent's.
    pub fn attach(attached: &mut Attached<'_>, agent: usize) -> Result<Self, RegionError> {
        Ok(Self(attached.region(&segment_name(agent), KIND)?.words()))
    }

    /// Creates an agent's record of times and counts in ordinary memory, for tests.
    pub fn on_heap(own_words: usize) -> Self {
        Self(Region::heap(OWN + own_words).words())
    }

    /// Stores a figure of the agent.
    #[inline(always)]
    pub fn set(&self, field: Field, value: u64) {
        // Relaxed: published by the Release store of the state.
        self.0[field as usize].store(value, Ordering::Relaxed);
    }

    /// Adds to the number of events that this agent has sent or received.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        // Relaxed: this agent is the only writer.
        let word = &self.0[Field::Count as usize];
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Stores a word of the part of the account that is specific to the benchmark. Ignores an index
    /// outside of it: a broken queue may deliver more events than were sent.
    #[inline(always)]
    pub fn set_own(&self, word: usize, value: u64) {
        // Relaxed: published by the Release store of the state.
        if let Some(slot) = self.0.get(OWN + word) {
            slot.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the part of the account that is specific to the benchmark.
    pub fn own(&self) -> AtomicWords {
        self.0.slice(OWN, self.0.len() - OWN)
    }

    /// Publishes the state and all figures stored before.
    pub fn set_state(&self, state: u64) {
        // Release: pairs with the Acquire load in `AccountView::state`.
        self.0[Field::State as usize].store(state, Ordering::Release);
    }

    /// Returns the launcher's reading end of the account.
    pub fn view(&self) -> AccountView {
        AccountView::new(self.0.clone())
    }
}

/// The launcher's reading end of an account. The agent may have stored anything.
pub struct AccountView(ReadOnlyWords);

impl AccountView {
    /// Reads the segment of an account.
    pub fn new(words: AtomicWords) -> Self {
        Self(words.into())
    }

    /// Loads how far the benchmark's process is: 0 (starting), [`READY`] or [`DONE`].
    pub fn state(&self) -> u64 {
        // Acquire: pairs with the Release store in `AgentAccount::set_state`.
        self.0.load(Field::State as usize, Ordering::Acquire)
    }

    /// Loads a figure of the agent.
    pub fn get(&self, field: Field) -> u64 {
        self.0.load(field as usize, Ordering::Relaxed)
    }

    /// Returns the part of the account that is specific to the benchmark.
    pub fn own(&self) -> ReadOnlyWords {
        self.0.slice(OWN, self.0.len() - OWN)
    }
}
