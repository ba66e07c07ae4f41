//! An agent's account: its state and its figures, in a segment that the agent alone writes.

use shm::attached::Attached;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, Region, RegionError, SegmentKind};
use shm::ring::{EndRights, SegmentPlace, SegmentSpec};
use shm::sync::Ordering;

/// A figure that every agent has.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Field {
    /// [`READY`] or [`DONE`].
    State = HEADER_WORDS,
    /// Events made or taken so far.
    Count = HEADER_WORDS + 16,
    /// The tick of its first event.
    Begin = HEADER_WORDS + 32,
    /// The tick at which its loop ended.
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

/// Where the part that a kind of work defines begins.
const OWN: usize = HEADER_WORDS + 48;
const KIND: SegmentKind =
    SegmentKind::new(41, "bench-account", &[("count", Field::Count as usize), ("own", OWN)]);

/// The agent waits for the start.
pub const READY: u64 = 1;
/// Its loop has ended, and all its figures are stored.
pub const DONE: u64 = 2;

/// A segment of memory.
pub fn memory(what: String, words: usize, kind: SegmentKind) -> SegmentSpec {
    SegmentSpec {
        name: what,
        place: SegmentPlace::Memory,
        words,
        kind,
        capacity: 1,
        slot_words: 1,
        index: 0,
        ends: EndRights::NONE,
    }
}

/// The segment of an agent's account, with that many words of its own.
pub fn segment(agent: usize, own_words: usize) -> SegmentSpec {
    memory(segment_name(agent), OWN + own_words, KIND)
}

fn segment_name(agent: usize) -> String {
    format!("account-{agent}")
}

/// The agent's end.
#[derive(Clone)]
pub struct AgentAccount(AtomicWords);

impl AgentAccount {
    /// Attaches the account of an agent.
    ///
    /// # Errors
    /// A segment that is missing or not this agent's.
    pub fn attach(attached: &mut Attached<'_>, agent: usize) -> Result<Self, RegionError> {
        Ok(Self(attached.region(&segment_name(agent), KIND)?.words()))
    }

    /// An account on the heap.
    pub fn on_heap(own_words: usize) -> Self {
        Self(Region::heap(OWN + own_words).words())
    }

    /// Stores a figure.
    #[inline(always)]
    pub fn set(&self, field: Field, value: u64) {
        // Relaxed: published by the Release store of the state.
        self.0[field as usize].store(value, Ordering::Relaxed);
    }

    /// Adds to the count.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        // Relaxed: this agent is the only writer.
        let word = &self.0[Field::Count as usize];
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Stores a word of its own part. Ignores a word outside of it: a broken queue may deliver more
    /// events than were sent.
    #[inline(always)]
    pub fn set_own(&self, word: usize, value: u64) {
        // Relaxed: published by the Release store of the state.
        if let Some(place) = self.0.get(OWN + word) {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// Its own part.
    pub fn own(&self) -> AtomicWords {
        self.0.slice(OWN, self.0.len() - OWN)
    }

    /// Publishes its state and all figures before it.
    pub fn set_state(&self, state: u64) {
        // Release: pairs with the Acquire load in `AccountView::state`.
        self.0[Field::State as usize].store(state, Ordering::Release);
    }

    /// The launcher's end.
    pub fn view(&self) -> AccountView {
        AccountView::new(self.0.clone())
    }
}

/// The launcher's end. The agent may have stored anything.
pub struct AccountView(ReadOnlyWords);

impl AccountView {
    /// Over the segment.
    pub fn new(words: AtomicWords) -> Self {
        Self(words.into())
    }

    /// 0, [`READY`] or [`DONE`].
    pub fn state(&self) -> u64 {
        // Acquire: pairs with the Release store in `AgentAccount::set_state`.
        self.0.load(Field::State as usize, Ordering::Acquire)
    }

    /// A figure.
    pub fn get(&self, field: Field) -> u64 {
        self.0.load(field as usize, Ordering::Relaxed)
    }

    /// The agent's own part.
    pub fn own(&self) -> ReadOnlyWords {
        self.0.slice(OWN, self.0.len() - OWN)
    }
}
