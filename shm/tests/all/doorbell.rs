//! A listener that parks, senders that ring, and an attacker among them that tries to suppress the
//! others' wake-ups.

use shm::bell::{BELL, Doorbell, Listener, RUNG, Woken, bell_words};
use shm::futex;
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

const THREADS: usize = 5;
/// The listener's index among the threads, and the attacker's.
const LISTENER: usize = 0;
const ATTACKER: usize = 1;
/// Messages of each honest sender.
const MESSAGES: u64 = 2_000;
/// A park that ends by a message takes far less; a longer one has lost its wake-up.
const LOST_AFTER: Duration = Duration::from_millis(500);
/// Index of the shared word that ends the test.
const STOP: usize = THREADS;

fn bells() -> Vec<AtomicWords> {
    (0..THREADS).map(|_| Region::heap(bell_words(THREADS)).words()).collect()
}

/// Returns the number of lost wake-ups and of all parks. A wake-up is lost if a park times out
/// although a message is available or about to be sent. The attacker repeats `attack`, with access
/// to all segments.
fn lost_wake_ups(messages: u64, attack: impl Fn(&[AtomicWords], u64) + Sync) -> (u64, u64) {
    let (bells, sent, taken) = (bells(), Region::heap(STOP + 1).words(), Region::heap(THREADS).words());
    let mut listener = Listener::new(&bells[LISTENER]);
    (1..THREADS).for_each(|sender| listener.add_sender(&bells[sender].clone().into(), LISTENER));
    let (mut lost, mut parks) = (0, 0);
    std::thread::scope(|scope| {
        let (bells, sent, taken, attack) = (&bells, &sent, &taken, &attack);
        scope.spawn(move || {
            (0..).take_while(|_| sent[STOP].load(Relaxed) == 0).for_each(|round| attack(bells, round));
        });
        for sender in ATTACKER + 1..THREADS {
            scope.spawn(move || {
                let bell = Doorbell::new(&bells[LISTENER].clone().into(), &bells[sender], LISTENER);
                for message in 1..=messages {
                    sent[sender].store(message, Release);
                    bell.ring();
                    while taken[sender].load(Acquire) < message {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let total = (THREADS - ATTACKER - 1) as u64 * messages;
        let mut got = 0;
        let mut poll = || {
            let before = got;
            for sender in ATTACKER + 1..THREADS {
                let (newest, last) = (sent[sender].load(Acquire), taken[sender].load(Relaxed));
                got += newest - last;
                taken[sender].store(newest, Release);
            }
            (got != before, got == total)
        };
        loop {
            let (has_message, done) = poll();
            if done {
                break;
            }
            if has_message {
                continue;
            }
            listener.arm();
            if poll().0 {
                listener.disarm();
                continue;
            }
            // A sender with messages left sends the next one as soon as the previous one is
            // taken.
            parks += 1;
            lost += u64::from(listener.wait(LOST_AFTER) == Woken::TimedOut);
        }
        sent[STOP].store(1, Relaxed);
    });
    (lost, parks)
}

/// An attack within a strategy's rights: it writes only its own segment.
fn ring_spuriously(bells: &[AtomicWords], round: u64) {
    let (flag, own) = (bells[LISTENER][BELL].load(Relaxed), &bells[ATTACKER][RUNG + LISTENER]);
    let word = match round % 4 {
        0 => flag,
        1 => 0,
        2 => flag.wrapping_add(2),
        _ => own.load(Relaxed).wrapping_add(1),
    };
    own.store(word, Relaxed);
    futex::wake_all(own);
}

#[test]
fn spurious_rings_lose_no_wake_up() {
    let (lost, parks) = lost_wake_ups(MESSAGES, ring_spuriously);
    assert!(lost == 0 && parks > 0, "{lost} of {parks}");
}

/// An attacker that waits on its own word, on which the listener waits too, takes no wake-up away.
#[test]
fn second_waiter_loses_no_wake_up() {
    let wait = |bells: &[AtomicWords], _| {
        let own = &bells[ATTACKER][RUNG + LISTENER];
        futex::wait(own, own.load(Relaxed) as u32, Duration::from_micros(100));
    };
    let (lost, parks) = lost_wake_ups(MESSAGES, wait);
    assert!(lost == 0 && parks > 0, "{lost} of {parks}");
}

/// The broken variant: with write access to the listener's flag an attacker suppresses wake-ups.
#[test]
fn flag_cleared_by_senders_loses_wake_ups() {
    let zero = |bells: &[AtomicWords], _| bells[LISTENER][BELL].store(0, Relaxed);
    // The scheduler decides whether the listener parks at all. Few messages: each lost wake-up
    // waits for all of [`LOST_AFTER`].
    assert!((0..2_000).any(|_| lost_wake_ups(5, zero).0 > 0));
}

#[test]
fn successor_is_rung_for_its_own_park() {
    let (own, sender) = (Region::heap(bell_words(1)).words(), Region::heap(bell_words(1)).words());
    let listener = || {
        let mut listener = Listener::new(&own);
        listener.add_sender(&sender.clone().into(), 0);
        listener
    };
    let bell = Doorbell::new(&own.clone().into(), &sender, 0);
    for scribbled in [None, Some(0), Some(u64::MAX), Some(u64::MAX - 1)] {
        let mut dead = listener();
        dead.arm();
        bell.ring();
        if let Some(word) = scribbled {
            own[BELL].store(word, Relaxed);
        }
        let mut successor = listener();
        successor.arm();
        bell.ring();
        assert_eq!(successor.wait(Duration::from_secs(60)), Woken::Rung, "{scribbled:?}");
    }
}

#[test]
fn senders_beyond_the_wait_limit_are_polled() {
    let own = Region::heap(bell_words(1)).words();
    let mut listener = Listener::new(&own);
    let senders: Vec<_> = (0..=futex::MAX_WORDS).map(|_| Region::heap(bell_words(1)).words()).collect();
    senders.iter().for_each(|sender| listener.add_sender(&sender.clone().into(), 0));
    // The listener waits on the first ones; it polls the last one after a timeout.
    for sender in [&senders[0], &senders[futex::MAX_WORDS - 1]] {
        listener.arm();
        Doorbell::new(&own.clone().into(), sender, 0).ring();
        assert_eq!(listener.wait(Duration::from_secs(60)), Woken::Rung);
    }
    let started = Instant::now();
    listener.arm();
    Doorbell::new(&own.clone().into(), &senders[futex::MAX_WORDS], 0).ring();
    assert_eq!(listener.wait(Duration::from_secs(60)), Woken::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(30), "the wait ends long before its timeout");
}
