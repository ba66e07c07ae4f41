//! A worker: a thread or a process that attaches an end and makes the calls of its job.

use crate::ends::{BoardReader, LONG, Receiver, SHORT, Sender, Writer, taken_outcome};
use crate::job::{Fault, Job, Role};
use crate::random::Random;
use crate::record::{ATTACHED, FINISHED, REFUSED, Record};
use crate::spec::{Operation, Outcome};
use nix::sys::signal::{Signal, raise};
use std::time::{Duration, Instant};

/// Time after which a wait is given up: a bug, or a machine without any time for this.
const PATIENCE: Duration = Duration::from_secs(30);

/// Phase in which all senders have finished, so that the receiver may pop what is left.
pub const DRAIN: u64 = 100;

/// Waits until a condition holds. Returns `false` if it does not within [`PATIENCE`].
pub fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    for looks in 0u64.. {
        if condition() {
            return true;
        }
        if looks < 200 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(20));
            if start.elapsed() > PATIENCE {
                return false;
            }
        }
    }
    false
}

struct Pace<'a> {
    record: &'a Record,
    job: &'a Job,
    random: Random,
}

impl Pace<'_> {
    /// Waits for the phase of an operation, and for a random short time.
    fn wait(&mut self, operation: usize) {
        let Job { operations, first_phase, last_phase, .. } = *self.job;
        let phase = first_phase + operation as u64 * (last_phase - first_phase + 1) / operations as u64;
        self.wait_for(phase);
        for _ in 0..self.random.below(1 << self.random.clone().below(9)) {
            std::hint::spin_loop();
        }
    }

    fn wait_for(&self, phase: u64) {
        assert!(wait_until(|| self.record.phase() >= phase), "phase {phase} does not come");
    }

    /// Makes a call and records it. Stops within it for the tracer, if the job has a trap there.
    fn call<T>(
        &self,
        operation: Operation,
        call: impl FnOnce() -> T,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> T {
        let worker = self.job.worker;
        let is_trap = self.job.trap == Some(self.record.begun(worker));
        let trapped = || {
            if is_trap {
                raise(Signal::SIGTRAP).expect("the tracer takes it");
            }
            call()
        };
        self.record.record(worker, operation, trapped, outcome)
    }

    fn attach<T>(&self, attached: Result<T, String>) -> Option<T> {
        let state = if attached.is_ok() { ATTACHED } else { REFUSED };
        if let Err(error) = &attached {
            eprintln!("worker {}: {error}", self.job.worker);
        }
        self.record.set_state(self.job.worker, state);
        attached.ok()
    }
}

/// Pushes the messages of a job. Returns `false` if no end was attached.
fn send<const W: usize>(pace: &mut Pace<'_>) -> bool {
    let Some(mut sender) = pace.attach(Sender::<W>::attach(pace.job)) else { return false };
    for operation in 0..pace.job.operations {
        pace.wait(operation);
        let value = pace.job.first_value + operation as u64;
        pace.call(Operation::Push(value), || sender.push(value), |outcome| *outcome);
    }
    true
}

/// Takes the messages of a job, and at the end all that are left. Returns `false` if no end was
/// attached.
fn receive<const W: usize>(pace: &mut Pace<'_>) -> bool {
    let Some(mut receiver) = pace.attach(Receiver::<W>::attach(pace.job)) else { return false };
    for operation in 0..pace.job.operations {
        pace.wait(operation);
        let takes = pace.job.fault == Fault::None && pace.random.is_one_in(3);
        if !takes {
            pace.call(Operation::Pop, || receiver.pop(), |outcome| *outcome);
            continue;
        }
        let taken = pace.call(Operation::Take, || receiver.take(), taken_outcome);
        // A message that is only dropped stays in the queue.
        let is_kept = pace.random.is_one_in(4);
        if let (Ok(Some(message)), false) = (taken, is_kept) {
            pace.call(Operation::Release, || message.release(), |()| Outcome::Done);
        }
    }
    pace.wait_for(DRAIN);
    while pace.call(Operation::Pop, || receiver.pop(), |outcome| *outcome) != Outcome::Nothing {}
    true
}

/// Writes the values of a job to a board. Returns `false` if no end was attached.
fn write(pace: &mut Pace<'_>) -> bool {
    let Some(mut writer) = pace.attach(Writer::attach(pace.job)) else { return false };
    for operation in 0..pace.job.operations {
        pace.wait(operation);
        let value = pace.job.first_value + operation as u64;
        pace.call(Operation::Write(value), || writer.write(value), |outcome| *outcome);
    }
    writer.leave();
    true
}

/// Reads a board. Returns `false` if no end was attached.
fn read(pace: &mut Pace<'_>) -> bool {
    let Some(mut reader) = pace.attach(BoardReader::attach(pace.job)) else { return false };
    for operation in 0..pace.job.operations {
        pace.wait(operation);
        pace.call(Operation::Read, || reader.read(), |outcome| *outcome);
    }
    true
}

/// Does a job, and records what it did.
pub fn work(record: &Record, job: &Job) {
    let mut pace = Pace { record, job, random: Random(job.seed) };
    let is_attached = match (job.role, job.words) {
        (Role::Sender, LONG) => send::<LONG>(&mut pace),
        (Role::Sender, _) => send::<SHORT>(&mut pace),
        (Role::Receiver, LONG) => receive::<LONG>(&mut pace),
        (Role::Receiver, _) => receive::<SHORT>(&mut pace),
        (Role::Writer, _) => write(&mut pace),
        (Role::Reader, _) => read(&mut pace),
    };
    if is_attached {
        record.set_state(job.worker, FINISHED);
    }
}
