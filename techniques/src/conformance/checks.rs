//! The checks of the conformance suite, one function each.

use super::ledger::{MessageLedger, message};
use super::{CheckMemory, Violation, queue};
use core::ops::ControlFlow;
use core::time::Duration;
use shm::queue::Queue;
use shm::random::SplitMix64;
use shm::ring::{Consumer, Link, Producer, Step};
use std::time::Instant;

/// More messages than any bounded technique holds, including pipes and sockets of the kernel's
/// maximum size.
const MORE_THAN_FITS: u64 = 200_000;
/// Timeout of a single step: it is stuck if it takes longer, even on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of messages of all threads together.
const MESSAGES: u64 = 40_000;
/// Number of empty polls after which the consumer assumes that no message follows.
const EMPTY_POLLS: u32 = 100;

/// A retry loop that yields each time, and fails after a timeout.
struct RetryLoop(Option<Instant>);

impl RetryLoop {
    fn retry(&mut self, description: impl FnOnce() -> String) -> Result<(), Violation> {
        let since = *self.0.get_or_insert_with(Instant::now);
        if since.elapsed() > STEP_TIMEOUT {
            return Err(Violation::Stuck { what: description() });
        }
        std::thread::yield_now();
        Ok(())
    }
}

/// Checks that 1,000 pushes together reach exactly the steps (points where a fault can interrupt a
/// push) that the technique declares. Some steps are rare.
pub fn steps<T: Link>(memory: CheckMemory) -> Result<(), Violation> {
    let mut queue = queue::<T>(memory, 1, 64)?;
    let (mut consumer, mut producer) = (queue.consumer()?, queue.producer(0)?);
    let mut called = Vec::new();
    let mut ledger = MessageLedger::new(1);
    for n in 0..1000 {
        let pushed = producer.try_push_with(&message(0, n), &mut |step| {
            if !called.contains(&step) {
                called.push(step);
            }
            ControlFlow::Continue(())
        });
        if pushed.is_err() {
            return Err(Violation::FullTooEarly { held: 0, capacity: 64 });
        }
        ledger.receive_all(&mut consumer)?;
    }
    ledger.settle(&[1000])?;
    let is_equal =
        called.len() == T::INFO.steps.len() && T::INFO.steps.iter().all(|step| called.contains(step));
    if is_equal { Ok(()) } else { Err(Violation::Steps { record: T::INFO.steps.to_vec(), pushes: called }) }
}

/// Pushes until the queue is full. Returns the number of messages that fitted.
fn fill(producer: &mut impl Producer, index: usize, from: u64) -> u64 {
    (from..from + MORE_THAN_FITS).take_while(|n| producer.try_push(&message(index, *n)).is_ok()).count()
        as u64
}

/// Fills and drains the technique's queue three times: only accepted messages may arrive.
pub fn fill_and_drain<T: Link>(memory: CheckMemory) -> Result<(), Violation> {
    const CAPACITY: u64 = 64;
    let mut queue = queue::<T>(memory, 2, CAPACITY as u32)?;
    let mut consumer = queue.consumer()?;
    let mut producers = [queue.producer(0)?, queue.producer(1)?];
    let (mut ledger, mut sent) = (MessageLedger::new(2), [0; 2]);
    for _ in 0..3 {
        for index in [0, 1] {
            let fits = fill(&mut producers[index], index, sent[index]);
            sent[index] += fits;
            if T::INFO.bounded == (fits == MORE_THAN_FITS) {
                return Err(Violation::Bound { bounded: T::INFO.bounded, taken: fits });
            }
        }
        let taken = ledger.receive_all(&mut consumer)?;
        ledger.settle(&sent)?;
        if taken < CAPACITY {
            return Err(Violation::FullTooEarly { held: taken, capacity: CAPACITY });
        }
    }
    Ok(())
}

/// Compares a queue with a model under random operations of two producers and the consumer, on one
/// thread. The model has one queue per producer.
pub fn against_a_model<T: Link>(memory: CheckMemory, seed: u64) -> Result<(), Violation> {
    const CAPACITY: u64 = 16;
    let mut queue = queue::<T>(memory, 2, CAPACITY as u32)?;
    let mut consumer = queue.consumer()?;
    let mut producers = [queue.producer(0)?, queue.producer(1)?];
    let (mut ledger, mut sent, mut taken) = (MessageLedger::new(2), [0; 2], 0);
    let mut random = SplitMix64(seed);
    for _ in 0..60 {
        let drawn = random.draw();
        let (actor, times) = ((drawn % 3) as usize, 1 + (drawn >> 32) % 40);
        for _ in 0..times {
            let held = sent[0] + sent[1] - taken;
            if actor < 2 {
                if producers[actor].try_push(&message(actor, sent[actor])).is_ok() {
                    sent[actor] += 1;
                } else if held < CAPACITY {
                    return Err(Violation::FullTooEarly { held, capacity: CAPACITY });
                }
            } else if ledger.try_receive(&mut consumer)? {
                taken += 1;
                if held == 0 {
                    // More messages arrived than were sent.
                    ledger.settle(&sent)?;
                }
            } else if held > 0 {
                // The message is lost or late; both are violations for a polling consumer.
                ledger.receive_all(&mut consumer)?;
                ledger.settle(&sent)?;
                return Err(Violation::Hidden { waiting: held });
            }
        }
    }
    ledger.receive_all(&mut consumer)?;
    ledger.settle(&sent)
}

/// Checks that a message arrives at the first poll, whichever of many producers sends it. However
/// few messages were sent before.
pub fn one_of_many<T: Link>(memory: CheckMemory) -> Result<(), Violation> {
    const PRODUCERS: usize = 200;
    // Coprime to the number of producers, so the next producer is not adjacent to the last one,
    // where a scan starts.
    const STRIDE: usize = 77;
    let mut queue = queue::<T>(memory, PRODUCERS, 256)?;
    let mut consumer = queue.consumer()?;
    let mut producers = (0..PRODUCERS).map(|index| queue.producer(index)).collect::<Result<Vec<_>, _>>()?;
    let mut ledger = MessageLedger::new(PRODUCERS);
    for n in 0..2 {
        for turn in 1..=PRODUCERS {
            let index = turn * STRIDE % PRODUCERS;
            if producers[index].try_push(&message(index, n)).is_err() {
                return Err(Violation::FullTooEarly { held: 0, capacity: 256 });
            }
            if !ledger.try_receive(&mut consumer)? {
                return Err(Violation::Hidden { waiting: 1 });
            }
        }
    }
    ledger.settle(&[2; PRODUCERS])
}

fn push_all(mut producer: impl Producer, index: usize, count: u64) -> Result<(), Violation> {
    for n in 0..count {
        let mut waiting = RetryLoop(None);
        while producer.try_push(&message(index, n)).is_err() {
            waiting.retry(|| format!("producer {index} finds the ring full forever at message {n}"))?;
        }
    }
    Ok(())
}

/// Checks that no message is lost, repeated or reordered while several threads push as fast as
/// possible into a small queue.
pub fn threads<T: Link>(memory: CheckMemory, producers: usize) -> Result<(), Violation> {
    let each = MESSAGES / producers as u64;
    let mut queue = queue::<T>(memory, producers, 8)?;
    let mut consumer = queue.consumer()?;
    let ends: Vec<_> = (0..producers).map(|index| queue.producer(index)).collect::<Result<_, _>>()?;
    let mut ledger = MessageLedger::new(producers);
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .into_iter()
            .enumerate()
            .map(|(index, end)| scope.spawn(move || push_all(end, index, each)))
            .collect();
        let (mut empty, mut result) = (0, Ok(()));
        while empty < EMPTY_POLLS {
            let done = threads.iter().all(|thread| thread.is_finished());
            match ledger.try_receive(&mut consumer) {
                Ok(true) => empty = 0,
                Ok(false) => {
                    empty += u32::from(done);
                    std::thread::yield_now();
                }
                // Continue, so that the threads can end.
                Err(violation) => {
                    if result.is_ok() {
                        result = Err(violation);
                    }
                    empty += u32::from(done);
                }
            }
        }
        for thread in threads {
            let ended =
                thread.join().unwrap_or_else(|_| Err(Violation::Stuck { what: "a push panicked".into() }));
            result = result.and(ended);
        }
        result
    })?;
    ledger.settle(&vec![each; producers])
}

/// Checks that a producer's crash at `step` of a push loses at most the message of that push. It is
/// lost only if it was not published, and no message of the other producer.
pub fn death<T: Link>(memory: CheckMemory, step: Step) -> Result<(), Violation> {
    const BEFORE: u64 = 3;
    let mut queue = queue::<T>(memory, 2, 64)?;
    let mut consumer = queue.consumer()?;
    let (mut dying, mut running) = (queue.producer(0)?, queue.producer(1)?);
    let mut sent = [0, 0];
    // Some steps occur only in some pushes: the producer dies in the first push that has the step.
    let mut ledger = MessageLedger::new(2);
    let mut last = None;
    while last != Some(step) {
        if sent[0] == 1000 {
            return Err(Violation::Stuck { what: format!("no push of 1,000 reaches the step {step}") });
        }
        ledger.receive_all(&mut consumer)?;
        let pushed = dying.try_push_with(&message(0, sent[0]), &mut |at| {
            last = Some(at);
            if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        sent[0] += u64::from(pushed.is_ok() || last == Some(Step::Published));
    }
    drop(dying);
    let mut push = |sent: &mut [u64; 2]| {
        let pushed = running.try_push(&message(1, sent[1]));
        sent[1] += u64::from(pushed.is_ok());
        pushed.is_ok()
    };
    for _ in 0..BEFORE {
        if !push(&mut sent) {
            return Err(Violation::FullTooEarly { held: sent[1], capacity: 64 });
        }
    }
    let mut waiting = RetryLoop(None);
    loop {
        ledger.receive_all(&mut consumer)?;
        if consumer.retire(0) {
            break;
        }
        waiting.retry(|| "the retirement of the dead producer does not end".into())?;
    }
    // From here on the queue no longer waits for the dead producer.
    ledger.receive_all(&mut consumer)?;
    ledger.settle(&sent)?;
    // The queue works for the surviving producer for more than a lap.
    for _ in 0..200 {
        let mut waiting = RetryLoop(None);
        while !push(&mut sent) {
            ledger.receive_all(&mut consumer)?;
            waiting.retry(|| "the running producer finds the ring full forever".into())?;
        }
    }
    ledger.receive_all(&mut consumer)?;
    ledger.settle(&sent)
}

/// Checks that a technique retires a dead producer only once all messages in that producer's own
/// memory are taken. A message that is taken later counts as an unknown sender's.
pub fn retirement<T: Link>(memory: CheckMemory) -> Result<(), Violation> {
    const WAITING: u64 = 3;
    let mut queue = queue::<T>(memory, 2, 64)?;
    let mut consumer = queue.consumer()?;
    let mut dying = queue.producer(0)?;
    for number in 0..WAITING {
        let full = |_| Violation::FullTooEarly { held: number, capacity: 64 };
        dying.try_push(&message(0, number)).map_err(full)?;
    }
    drop(dying);
    let (mut ledger, mut waiting) = (MessageLedger::new(2), RetryLoop(None));
    while !consumer.retire(0) {
        ledger.try_receive(&mut consumer)?;
        waiting.retry(|| "the retirement of the dead producer does not end".into())?;
    }
    ledger.settle(&[WAITING, 0])
}

/// Checks that a producer that crashes at `step` of a push, with messages in the queue, can be
/// replaced. Published messages must arrive once, a successor must not be accused of its
/// predecessor's state, and the other producer must lose nothing.
pub fn successor<T: Link>(memory: CheckMemory, step: Step) -> Result<(), Violation> {
    let mut queue = queue::<T>(memory, 2, 64)?;
    let mut consumer = queue.consumer()?;
    let (mut dying, mut running) = (queue.producer(0)?, queue.producer(1)?);
    let (mut ledger, mut sent) = (MessageLedger::new(2), [0; 2]);
    for _ in 0..3 {
        crash_with_messages_pending(&mut dying, step, &mut sent[0], &mut || {
            ledger.receive_all(&mut consumer)
        })?;
        drop(dying);
        sent[1] += u64::from(running.try_push(&message(1, sent[1])).is_ok());
        // The first call occurs while messages of the dead producer are pending.
        let mut waiting = RetryLoop(None);
        while !queue.renew(0, &mut consumer)? {
            ledger.try_receive(&mut consumer)?;
            waiting.retry(|| "the dead producer's place is never free".into())?;
        }
        // Stale messages would arrive now, before the successor overwrites them.
        ledger.try_receive(&mut consumer)?;
        dying = attach_successor(&mut queue, &mut || ledger.try_receive(&mut consumer))?;
        // More than a lap.
        for _ in 0..200 {
            for (index, producer) in [&mut dying, &mut running].into_iter().enumerate() {
                let mut waiting = RetryLoop(None);
                while producer.try_push(&message(index, sent[index])).is_err() {
                    ledger.try_receive(&mut consumer)?;
                    waiting.retry(|| {
                        format!("producer {index} finds the ring full forever after a succession")
                    })?;
                }
                sent[index] += 1;
            }
        }
        ledger.receive_all(&mut consumer)?;
        ledger.settle(&sent)?;
    }
    Ok(())
}

/// Attaches a producer while the consumer polls; by name, as from another process, if the queue has
/// one.
fn attach_successor<T: Link>(
    queue: &mut Queue<T>,
    take: &mut impl FnMut() -> Result<bool, Violation>,
) -> Result<T::Producer, Violation> {
    let Some(name) = queue.name().map(str::to_owned) else { return Ok(queue.producer(0)?) };
    let attaching = std::thread::spawn(move || Queue::<T>::open(&name)?.producer(0));
    while !attaching.is_finished() {
        take()?;
        std::thread::yield_now();
    }
    let attached = attaching.join().map_err(|_| Violation::Stuck { what: "an end panicked".into() })?;
    Ok(attached?)
}

/// Pushes until a push reaches the step while messages are pending, and aborts that push there.
fn crash_with_messages_pending(
    dying: &mut impl Producer,
    step: Step,
    sent: &mut u64,
    take_all: &mut impl FnMut() -> Result<u64, Violation>,
) -> Result<(), Violation> {
    const WAITING: u64 = 3;
    const MAX_WAITING: u64 = 40;
    let mut waiting = 0;
    for _ in 0..10_000 {
        if waiting == MAX_WAITING {
            take_all()?;
            waiting = 0;
        }
        let mut is_dead = false;
        let pushed = dying.try_push_with(&message(0, *sent), &mut |at| {
            is_dead |= at == step && waiting >= WAITING;
            if is_dead { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let is_published = pushed.is_ok() || (is_dead && step == Step::Published);
        *sent += u64::from(is_published);
        waiting += u64::from(is_published);
        if is_dead {
            return Ok(());
        }
    }
    Err(Violation::Stuck { what: format!("no push of 10,000 reaches the step {step} with messages waiting") })
}
