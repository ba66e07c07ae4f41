//! What a writer or a reader leaves behind: a segment of its own with its state, its counts and its histograms. It writes, the
//! launcher reads.
//!
//! ```text
//! │ fields (64 words) │ three histograms, fine │ 60 histograms, coarse: one for each part of the time │
//! ```

use super::counts::{Counts, Grain, Tally};
use shm::memory::{View, Words};
use shm::sync::Ordering;

/// Words in front.
const FIELDS: usize = 64;
/// Histograms of the whole time.
const MEASURES: usize = 3;
/// Parts of the time.
pub const SLICES: usize = 60;
/// Words of a log.
pub const WORDS: usize = FIELDS + MEASURES * Grain::FINE.words() + SLICES * Grain::COARSE.words();

/// A word of its own in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// See [`State`].
    State,
    /// Writes made, or values read.
    Done,
    /// Versions missed.
    Missed,
    /// Values whose content is not that of their version.
    Torn,
    /// Reads given up.
    Overtaken,
    /// When it ended, in ticks.
    End,
    /// Its figures are there.
    HasUsage,
    /// Processor time, in nanoseconds.
    Cpu,
    /// Context switches that it asked for.
    Voluntary,
    /// Context switches that were forced on it.
    Involuntary,
    /// Page faults.
    Faults,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not there yet.
    Nothing,
    /// Waits for the start.
    Ready,
    /// Has ended in order.
    Done,
}

/// What is measured, by its place in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A writer's: begin to end. A reader's: propagation.
    First,
    /// A writer's: due to end. A reader's: from detection to the end of the read.
    Second,
    /// A reader's: staleness.
    Third,
}

/// The writing end.
pub struct Log {
    words: Words,
    /// By [`Place`].
    pub measures: [Counts; MEASURES],
    slices: Vec<Counts>,
}

fn measure_at(place: usize) -> usize {
    FIELDS + place * Grain::FINE.words()
}

fn slice_at(slice: usize) -> usize {
    measure_at(MEASURES) + slice * Grain::COARSE.words()
}

impl Log {
    /// Over that memory, of [`WORDS`] words; a successor goes on with what is there.
    pub fn new(words: &Words) -> Self {
        let fine = |place| Counts::new(words.window(measure_at(place), Grain::FINE.words()), Grain::FINE);
        let coarse = |slice| Counts::new(words.window(slice_at(slice), Grain::COARSE.words()), Grain::COARSE);
        Self {
            words: words.clone(),
            measures: std::array::from_fn(fine),
            slices: (0..SLICES).map(coarse).collect(),
        }
    }

    /// Counts a value in its part of the time; what comes behind the last one belongs to it.
    #[inline(always)]
    pub fn over_time(&self, slice: usize, ticks: u64) {
        self.slices[slice.min(SLICES - 1)].add(ticks);
    }

    /// Adds to a field.
    #[inline(always)]
    pub fn add(&self, field: Field, more: u64) {
        let word = &self.words[field as usize];
        // Relaxed: one writer, and the state (Release) publishes the rest.
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Sets a field.
    pub fn set(&self, field: Field, value: u64) {
        self.words[field as usize].store(value, Ordering::Relaxed);
    }

    /// Says how far it is.
    pub fn state(&self, state: State) {
        // Release: pairs with `LogView::state`; what was counted is there.
        self.words[Field::State as usize].store(state as u64, Ordering::Release);
    }
}

/// The reading end.
pub struct LogView(pub View);

impl LogView {
    /// How far it is.
    pub fn state(&self) -> State {
        // Acquire: pairs with `Log::state`.
        match self.0.load(Field::State as usize, Ordering::Acquire) {
            word if word == State::Ready as u64 => State::Ready,
            word if word == State::Done as u64 => State::Done,
            _ => State::Nothing,
        }
    }

    /// A field.
    pub fn get(&self, field: Field) -> u64 {
        self.0.load(field as usize, Ordering::Relaxed)
    }

    /// A measure over the whole time.
    pub fn measure(&self, place: Place) -> Tally {
        Tally::of(&self.0.window(measure_at(place as usize), Grain::FINE.words()), Grain::FINE)
    }

    /// The first measure over a part of the time.
    pub fn slice(&self, slice: usize) -> Tally {
        Tally::of(&self.0.window(slice_at(slice), Grain::COARSE.words()), Grain::COARSE)
    }
}
