//! The shared memory of a history: a counter for times, and what each worker did.
//!
//! ```text
//! word 0: counter · 1: phase · worker w: 64 + w · 256: calls · state · call: code, value, began, outcome, at
//! ```

use crate::history::{Call, End};
use crate::spec::{Operation, Outcome};
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering;

/// Maximum number of workers of a history, successors included.
pub const WORKERS: usize = 12;
/// Maximum number of calls of a worker.
pub const CALLS: usize = 48;
const WORKER_WORDS: usize = 256;
const CALL_WORDS: usize = 5;
const FIRST_WORKER: usize = 64;
const COUNTER: usize = 0;
const PHASE: usize = 1;

/// State of a worker process that has attached to the structure under test.
pub const ATTACHED: u64 = 1;
/// State of a worker process that could not attach.
pub const REFUSED: u64 = 2;
/// State of a worker process that has made all of its calls.
pub const FINISHED: u64 = 3;

/// The record of one history. Every access is sequentially consistent: a ticket that is drawn after
/// a call has returned comes after the stores of that call, for all processes.
#[derive(Clone)]
pub struct Record(AtomicWords);

const fn code(operation: Operation) -> (u64, u64) {
    match operation {
        Operation::Push(value) => (1, value),
        Operation::Pop => (2, 0),
        Operation::Take => (3, 0),
        Operation::Release => (4, 0),
        Operation::Write(value) => (5, value),
        Operation::Read => (6, 0),
    }
}

const fn operation(code: u64, value: u64) -> Operation {
    match code {
        1 => Operation::Push(value),
        2 => Operation::Pop,
        3 => Operation::Take,
        4 => Operation::Release,
        5 => Operation::Write(value),
        _ => Operation::Read,
    }
}

/// A value is above the other outcomes.
const FIRST_VALUE: u64 = 10;

impl Record {
    const WORDS: usize = FIRST_WORKER + WORKERS * WORKER_WORDS;

    pub fn on_heap() -> Self {
        Self(Region::heap(Self::WORDS).words())
    }

    pub fn create(name: &str) -> Self {
        Self(Region::create(name, Self::WORDS).expect("space in /dev/shm").words())
    }

    pub fn open(name: &str) -> Self {
        Self(Region::open(name).expect("its creator runs").words())
    }

    pub fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::SeqCst));
    }

    /// Returns the next ticket, from 1 on.
    pub fn draw_ticket(&self) -> u64 {
        self.0[COUNTER].fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn phase(&self) -> u64 {
        self.0[PHASE].load(Ordering::SeqCst)
    }

    pub fn set_phase(&self, phase: u64) {
        self.0[PHASE].store(phase, Ordering::SeqCst);
    }

    const fn start(worker: usize) -> usize {
        FIRST_WORKER + worker * WORKER_WORDS
    }

    pub fn state(&self, worker: usize) -> u64 {
        self.0[Self::start(worker) + 1].load(Ordering::SeqCst)
    }

    pub fn set_state(&self, worker: usize, state: u64) {
        self.0[Self::start(worker) + 1].store(state, Ordering::SeqCst);
    }

    /// Returns the number of calls that a worker has begun.
    pub fn begun(&self, worker: usize) -> usize {
        self.0[Self::start(worker)].load(Ordering::SeqCst) as usize
    }

    /// Records that a worker makes a call, makes it, and records its outcome.
    pub fn record<T>(
        &self,
        worker: usize,
        called: Operation,
        call: impl FnOnce() -> T,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> T {
        let number = self.begun(worker);
        assert!(number < CALLS, "space for a call");
        let at = Self::start(worker) + 2 + number * CALL_WORDS;
        let store = |word: usize, value| self.0[at + word].store(value, Ordering::SeqCst);
        let (code, value) = code(called);
        store(0, code);
        store(1, value);
        store(2, self.draw_ticket());
        self.0[Self::start(worker)].store(number as u64 + 1, Ordering::SeqCst);
        let result = call();
        let returned = self.draw_ticket();
        store(
            3,
            match outcome(&result) {
                Outcome::Done => 1,
                Outcome::Full => 2,
                Outcome::Nothing => 3,
                Outcome::Broken => 4,
                Outcome::Value(value) => FIRST_VALUE + value,
            },
        );
        store(4, returned);
        result
    }

    /// Returns `true` if the last call that a worker has begun did not return.
    pub fn is_in_call(&self, worker: usize) -> bool {
        let begun = self.begun(worker);
        let last = Self::start(worker) + 2 + begun.saturating_sub(1) * CALL_WORDS;
        begun > 0 && self.0[last + 4].load(Ordering::SeqCst) == 0
    }

    /// Returns the calls of a worker, which was killed at `killed` or has finished.
    pub fn calls(&self, worker: usize, killed: Option<u64>) -> impl Iterator<Item = Call> + '_ {
        (0..self.begun(worker)).map(move |number| {
            let at = Self::start(worker) + 2 + number * CALL_WORDS;
            let [code, value, began, outcome, returned] =
                std::array::from_fn(|word| self.0[at + word].load(Ordering::SeqCst));
            let outcome = match outcome {
                1 => Outcome::Done,
                2 => Outcome::Full,
                3 => Outcome::Nothing,
                value if value >= FIRST_VALUE => Outcome::Value(value - FIRST_VALUE),
                _ => Outcome::Broken,
            };
            let end = if returned > 0 {
                End::Returned { at: returned, outcome }
            } else {
                End::Killed { at: killed.expect("only a killed worker leaves a call") }
            };
            Call { worker, operation: operation(code, value), began, end }
        })
    }
}
