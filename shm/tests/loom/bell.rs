//! Loom models of the doorbell. See `.ci/loom.sh`.

use core::time::Duration;
use loom::thread;
use shm::bell::{BELL, Doorbell, Listener, RUNG, bell_words};
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc::{Consumer, Producer, ring_words, write_header};
use shm::sync::Ordering;

fn heap(words: usize) -> AtomicWords {
    Region::heap(words).words()
}

/// Parks until `is_done`: poll, arm, poll again, sleep.
fn park_until(listener: &mut Listener, mut is_done: impl FnMut() -> bool) {
    loop {
        listener.arm();
        if is_done() {
            break;
        }
        listener.wait(Duration::MAX);
    }
}

/// The parked receiver of `idle::Park`. Loom's futex has no time-out, so a wake-up that is lost
/// hangs the model, which loom reports.
#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let words = heap(ring_words(2, 1));
        write_header::<1>(&words, 2);
        let mut producer = Producer::<1>::attach(&words).unwrap();
        let mut consumer = Consumer::<1>::attach(&words).unwrap();
        let (own, theirs) = (heap(bell_words(1)), heap(bell_words(1)));
        let mut listener = Listener::new(&own);
        listener.add_sender(&theirs.clone().into(), 0);
        let rings = Doorbell::new(&own.into(), &theirs, 0);
        let sender = thread::spawn(move || {
            producer.try_push(&[7]).unwrap();
            rings.ring();
        });
        let mut taken = || consumer.try_pop().unwrap();
        park_until(&mut listener, || taken().is_some_and(|message| message == [7]));
        sender.join().unwrap();
    });
}

/// Two senders with words of their own, one listener: neither wake-up is lost.
#[test]
fn two_senders_wake_one_sleeper() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let own = heap(bell_words(1));
        let mut listener = Listener::new(&own);
        let flags = heap(2);
        let senders: Vec<_> = (0..2)
            .map(|i| {
                let theirs = heap(bell_words(1));
                listener.add_sender(&theirs.clone().into(), 0);
                let (bell, flags) = (Doorbell::new(&own.clone().into(), &theirs, 0), flags.clone());
                thread::spawn(move || {
                    flags[i].store(1, Ordering::Release);
                    bell.ring();
                })
            })
            .collect();
        park_until(&mut listener, || (0..2).all(|i| flags[i].load(Ordering::Acquire) == 1));
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// A sender that writes arbitrary values into its own word causes spurious wake-ups, and suppresses
/// no wake-up of others.
#[test]
fn no_wake_up_is_lost_despite_spurious_rings() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let own = heap(bell_words(1));
        let mut listener = Listener::new(&own);
        let flag = heap(1);
        let words = [heap(bell_words(1)), heap(bell_words(1))];
        words.iter().for_each(|sender| listener.add_sender(&sender.clone().into(), 0));
        let [honest, hostile] = words;
        let (bell, sent) = (Doorbell::new(&own.clone().into(), &honest, 0), flag.clone());
        let honest = thread::spawn(move || {
            sent[0].store(1, Ordering::Release);
            bell.ring();
        });
        let hostile = thread::spawn(move || {
            for step in [0, 2] {
                let word = own[BELL].load(Ordering::Relaxed).wrapping_add(step);
                hostile[RUNG].store(word, Ordering::Relaxed);
            }
        });
        park_until(&mut listener, || flag[0].load(Ordering::Acquire) == 1);
        honest.join().unwrap();
        hostile.join().unwrap();
    });
}
