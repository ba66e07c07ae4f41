//! Ends of a queue and a board, and the broken variants of them that the check must find.

use crate::job::{Fault, Job};
use crate::random::Random;
use crate::spec::Outcome;
use shm::board::{NamedWriter, Reader};
use shm::queue::{self, ProducerFault, TakenMessage};

/// Words of a value on a board, and of a message that fits into a slot. Large enough for a board of
/// four slots.
pub const SHORT: usize = 3;
/// Words of a message of which nine do not fit into its slot.
pub const LONG: usize = 16;

/// Words that belong together: each depends on the value and on its place.
fn words<const W: usize>(value: u64) -> [u64; W] {
    std::array::from_fn(|place| value.wrapping_mul(2 * place as u64 + 1))
}

fn outcome<const W: usize>(found: &[u64; W]) -> Outcome {
    if *found == words(found[0]) { Outcome::Value(found[0]) } else { Outcome::Broken }
}

/// A sending end. `held` is a message that a broken variant has promised and not yet pushed.
pub struct Sender<const W: usize> {
    end: queue::Sender<[u64; W]>,
    fault: Fault,
    held: Option<u64>,
    /// The value that the predecessor was pushing when it was killed.
    inherited: Option<u64>,
}

impl<const W: usize> Sender<W> {
    pub fn attach(job: &Job) -> Result<Self, String> {
        let mut queue = queue::open::<[u64; W]>(&job.name).map_err(|error| error.to_string())?;
        let end = if job.is_successor { queue.resume_sender(job.producer) } else { queue.sender() };
        let end = end.map_err(|error| error.to_string())?;
        Ok(Self { end, fault: job.fault, held: None, inherited: job.inherited })
    }

    pub fn push(&mut self, value: u64) -> Outcome {
        let pushed = match self.fault {
            Fault::AnswersEarly => match self.held.replace(value) {
                Some(held) => self.end.push(&words(held)),
                None => Ok(()),
            },
            _ => self.end.push(&words(value)),
        };
        if let (Fault::Resurrects, Some(killed)) = (self.fault, self.inherited.take()) {
            let _ = self.end.push(&words(killed));
        }
        if pushed.is_ok() { Outcome::Done } else { Outcome::Full }
    }
}

/// A receiving end. `held` is a message that a broken variant returns later.
pub struct Receiver<const W: usize> {
    end: queue::Receiver<[u64; W]>,
    fault: Fault,
    held: Option<Outcome>,
    random: Random,
}

impl<const W: usize> Receiver<W> {
    pub fn attach(job: &Job) -> Result<Self, String> {
        let mut queue = queue::open::<[u64; W]>(&job.name).map_err(|error| error.to_string())?;
        let end = if job.is_successor { queue.resume_receiver() } else { queue.receiver() };
        let end = end.map_err(|error| error.to_string())?;
        Ok(Self { end, fault: job.fault, held: None, random: Random(!job.seed) })
    }

    fn pop_once(&mut self) -> Outcome {
        match self.end.pop() {
            Ok(Some(found)) => outcome(&found),
            Ok(None) => Outcome::Nothing,
            Err(_) => Outcome::Broken,
        }
    }

    pub fn pop(&mut self) -> Outcome {
        if let Some(held) = self.held.take() {
            return held;
        }
        let found = self.pop_once();
        let is_broken = matches!(found, Outcome::Value(_)) && self.random.is_one_in(3);
        match self.fault {
            Fault::Doubles if is_broken => {
                self.held = Some(found);
                found
            }
            Fault::Loses if is_broken => self.pop_once(),
            Fault::Reorders if is_broken => match self.pop_once() {
                second @ Outcome::Value(_) => {
                    self.held = Some(found);
                    second
                }
                _ => found,
            },
            _ => found,
        }
    }

    /// Takes the next message and keeps its slot.
    pub fn take(&mut self) -> Result<Option<TakenMessage<'_, [u64; W]>>, ProducerFault> {
        self.end.take()
    }
}

/// Returns what a take returned, for the record.
pub fn taken_outcome<const W: usize>(
    taken: &Result<Option<TakenMessage<'_, [u64; W]>>, ProducerFault>,
) -> Outcome {
    match taken {
        Ok(Some(message)) => outcome(message),
        Ok(None) => Outcome::Nothing,
        Err(_) => Outcome::Broken,
    }
}

/// The writing end of a board.
pub struct Writer(NamedWriter);

impl Writer {
    pub fn attach(job: &Job) -> Result<Self, String> {
        NamedWriter::resume(&job.name).map(Self).map_err(|error| error.to_string())
    }

    pub fn write(&mut self, value: u64) -> Outcome {
        self.0.write(0, 0, &words::<SHORT>(value));
        Outcome::Done
    }

    /// Ends without removing the board.
    pub fn leave(self) {
        self.0.leave();
    }
}

/// A reading end of a board.
pub struct BoardReader {
    end: Reader,
    fault: Fault,
    previous: Outcome,
    random: Random,
}

impl BoardReader {
    pub fn attach(job: &Job) -> Result<Self, String> {
        let end = Reader::open(&job.name).map_err(|error| error.to_string())?;
        Ok(Self { end, fault: job.fault, previous: Outcome::Nothing, random: Random(!job.seed) })
    }

    pub fn read(&mut self) -> Outcome {
        let mut found = [0; SHORT];
        let newest = match self.end.read(0, &mut found) {
            Ok(Some(_)) => outcome(&found),
            Ok(None) => Outcome::Nothing,
            Err(_) => Outcome::Broken,
        };
        let previous = std::mem::replace(&mut self.previous, newest);
        if self.fault == Fault::GoesBack && self.random.is_one_in(3) { previous } else { newest }
    }
}
