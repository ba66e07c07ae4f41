//! What a queue and a board promise, as sequential objects for stateright.

use stateright::semantics::SequentialSpec;
use std::collections::VecDeque;

/// An operation of an end, with the value that it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Pushes a value, in which its producer is encoded.
    Push(u64),
    Pop,
    /// Takes the next message and keeps its slot.
    Take,
    /// Frees the slots of the message that was taken last.
    Release,
    /// Makes a value the newest of the board.
    Write(u64),
    Read,
}

/// What an operation returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Full,
    Nothing,
    Value(u64),
    /// An error, or words that no writer wrote together.
    Broken,
}

/// Values of one producer start at a multiple of this number.
pub const PRODUCER_STEP: u64 = 1_000;

/// A queue: for each producer a first-in-first-out list of at most `capacity` messages. A pop takes
/// the oldest message of any producer, and finds nothing only if all lists are empty.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    lists: Vec<VecDeque<u64>>,
    capacity: usize,
    /// Producer of the message that is taken and not released.
    taken: Option<usize>,
}

impl QueueSpec {
    pub fn new(producers: usize, capacity: usize) -> Self {
        Self { lists: vec![VecDeque::new(); producers], capacity, taken: None }
    }

    fn list_with_front(&self, value: u64) -> Option<usize> {
        self.lists.iter().position(|list| list.front() == Some(&value))
    }

    fn step(&mut self, operation: Operation, outcome: Outcome) -> bool {
        match (operation, outcome) {
            (Operation::Push(value), Outcome::Done | Outcome::Full) => {
                let list = &mut self.lists[(value / PRODUCER_STEP) as usize];
                let is_full = list.len() >= self.capacity;
                if !is_full && outcome == Outcome::Done {
                    list.push_back(value);
                }
                is_full == (outcome == Outcome::Full)
            }
            (Operation::Pop | Operation::Take, Outcome::Nothing) => self.lists.iter().all(VecDeque::is_empty),
            (Operation::Pop, Outcome::Value(value)) => {
                let found = self.list_with_front(value);
                found.is_some_and(|index| self.lists[index].pop_front().is_some())
            }
            (Operation::Take, Outcome::Value(value)) => {
                self.taken = self.list_with_front(value);
                self.taken.is_some()
            }
            (Operation::Release, Outcome::Done) => {
                self.taken.take().is_some_and(|index| self.lists[index].pop_front().is_some())
            }
            _ => false,
        }
    }
}

/// A cell of a board: a register, with 0 for "not written yet".
#[derive(Clone, Debug, Default)]
pub struct BoardSpec {
    value: u64,
}

/// Either of both, so that one checker serves them.
#[derive(Clone, Debug)]
pub enum Spec {
    Queue(QueueSpec),
    Board(BoardSpec),
}

impl SequentialSpec for Spec {
    type Op = Operation;
    type Ret = Outcome;

    /// The checker completes every operation before it asks, so this is never called.
    fn invoke(&mut self, operation: &Operation) -> Outcome {
        unreachable!("{operation:?} was left in flight")
    }

    fn is_valid_step(&mut self, operation: &Operation, outcome: &Outcome) -> bool {
        match self {
            Self::Queue(queue) => queue.step(*operation, *outcome),
            Self::Board(board) => match (*operation, *outcome) {
                (Operation::Write(value), Outcome::Done) => {
                    board.value = value;
                    true
                }
                (Operation::Read, Outcome::Nothing) => board.value == 0,
                (Operation::Read, Outcome::Value(value)) => board.value == value && value != 0,
                _ => false,
            },
        }
    }
}
