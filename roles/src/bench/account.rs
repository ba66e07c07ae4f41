//! An agent's account: its state and figures, in a segment that only the agent writes.

use shm::attached::Attached;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, Region, RegionError, SegmentKind};
use shm::ring::{EndRights, SegmentSpec};
use shm::sync::Ordering;

/// A field in the result segment of every benchmark agent.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
#[allow(missing_docs, reason = "the names say it")]
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
    Voluntary,
    Involuntary,
    Faults,
}

/// Start of the words that each benchmark defines.
const OWN: usize = HEADER_WORDS + 48;
const KIND: SegmentKind =
    SegmentKind::new(41, "bench-account", &[("count", Field::Count as usize), ("own", OWN)]);

/// State of a benchmark agent that is ready and waits for the start.
pub const READY: u64 = 1;
/// State of a benchmark agent whose loop has ended and whose results are all stored.
pub const DONE: u64 = 2;

/// Returns the specification of an agent's result segment. `own_words` is the size of the part that
/// is specific to the benchmark.
pub fn segment(agent: usize, own_words: usize) -> SegmentSpec {
    SegmentSpec::memory(segment_name(agent), KIND, OWN + own_words, EndRights::NONE)
}

fn segment_name(agent: usize) -> String {
    format!("account-{agent}")
}

/// A benchmark agent's writing end of its result segment.
#[derive(Clone)]
pub struct AgentAccount(AtomicWords);

impl AgentAccount {
    /// Attaches the result segment of a benchmark agent.
    pub fn attach(attached: &mut Attached<'_>, agent: usize) -> Result<Self, RegionError> {
        Ok(Self(attached.region(&segment_name(agent), KIND)?.words()))
    }

    /// Creates an agent's result segment on the heap, for tests.
    pub fn on_heap(own_words: usize) -> Self {
        Self(Region::heap(OWN + own_words).words())
    }

    /// Stores a field of the agent's results.
    #[inline(always)]
    pub fn set(&self, field: Field, value: u64) {
        // Relaxed: published by the Release store of the state.
        self.0[field as usize].store(value, Ordering::Relaxed);
    }

    /// Adds to the number of events that the agent has sent or received.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        // Relaxed: this agent is the only writer.
        let word = &self.0[Field::Count as usize];
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Stores a word of the results whose meaning each benchmark defines. Ignores an index outside
    /// of it: a broken queue may deliver more events than were sent.
    #[inline(always)]
    pub fn set_own(&self, word: usize, value: u64) {
        // Relaxed: published by the Release store of the state.
        if let Some(slot) = self.0.get(OWN + word) {
            slot.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the words of the results whose meaning each benchmark defines.
    pub fn own(&self) -> AtomicWords {
        self.0.slice(OWN, self.0.len() - OWN)
    }

    /// Publishes the agent's state together with all results stored before.
    pub fn set_state(&self, state: u64) {
        // Release: pairs with the Acquire load in `AccountView::state`.
        self.0[Field::State as usize].store(state, Ordering::Release);
    }

    /// Returns a read-only view of the results that a process of a benchmark leaves to the
    /// launcher.
    pub fn view(&self) -> AccountView {
        AccountView::new(self.0.clone())
    }
}

/// The launcher's reading end of a benchmark agent's result segment. The agent may have stored
/// anything.
pub struct AccountView(ReadOnlyWords);

impl AccountView {
    /// Creates the reading end of a result segment.
    pub fn new(words: AtomicWords) -> Self {
        Self(words.into())
    }

    /// Loads the agent's state: 0 (starting), [`READY`] or [`DONE`].
    pub fn state(&self) -> u64 {
        // Acquire: pairs with the Release store in `AgentAccount::set_state`.
        self.0.load(Field::State as usize, Ordering::Acquire)
    }

    /// Loads a field of the agent's results.
    pub fn get(&self, field: Field) -> u64 {
        self.0.load(field as usize, Ordering::Relaxed)
    }

    /// Returns the words of the results whose meaning each benchmark defines.
    pub fn own(&self) -> ReadOnlyWords {
        self.0.slice(OWN, self.0.len() - OWN)
    }
}
