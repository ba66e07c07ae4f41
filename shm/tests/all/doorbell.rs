//! A listener that parks, senders that ring, and one among them that does what it can to keep the
//! others from being heard.

use shm::bell::{BELL, Doorbell, Listener, RUNG, Woken, bell_words};
use shm::futex;
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

const THREADS: usize = 5;
/// The listener's place among the threads, and the attacker's.
const LISTENER: usize = 0;
const ATTACKER: usize = 1;
/// Messages of each honest sender.
const MESSAGES: u64 = 2_000;
/// A park that a message ends is over long before.
const PATIENCE: Duration = Duration::from_millis(500);
/// Index of the shared word that ends the test.
const STOP: usize = THREADS;

fn bells() -> Vec<AtomicWords> {
    (0..THREADS).map(|_| Region::heap(bell_words(THREADS)).words()).collect()
}

/// Parks that ended because their time was over, although a message was there or on its way all the
/// time: each is a wake-up that was lost; and all parks. `attack` is what the attacker does again
/// and again, with all segments at hand.
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
        let all = (THREADS - ATTACKER - 1) as u64 * messages;
        let mut got = 0;
        let mut poll = || {
            let before = got;
            for sender in ATTACKER + 1..THREADS {
                let (there, last) = (sent[sender].load(Acquire), taken[sender].load(Relaxed));
                got += there - last;
                taken[sender].store(there, Release);
            }
            (got != before, got == all)
        };
        loop {
            let (any, done) = poll();
            if done {
                break;
            }
            if any {
                continue;
            }
            listener.arm();
            if poll().0 {
                listener.disarm();
                continue;
            }
            // A sender with messages left sends the next one as soon as the one before is
            // taken.
            parks += 1;
            lost += u64::from(listener.wait(PATIENCE) == Woken::TimedOut);
        }
        sent[STOP].store(1, Relaxed);
    });
    (lost, parks)
}

/// What a strategy can do: it writes its own segment, and nothing else of these.
fn ring_for_nothing(bells: &[AtomicWords], round: u64) {
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
    let (lost, parks) = lost_wake_ups(MESSAGES, ring_for_nothing);
    assert!(lost == 0 && parks > 0, "{lost} of {parks}");
}

/// One who wakes the listener in the place of others gets nothing of theirs: it waits where it
/// itself is waited for.
#[test]
fn second_waiter_loses_no_wake_up() {
    let wait = |bells: &[AtomicWords], _| {
        let own = &bells[ATTACKER][RUNG + LISTENER];
        futex::wait(own, own.load(Relaxed) as u32, Duration::from_micros(100));
    };
    let (lost, parks) = lost_wake_ups(MESSAGES, wait);
    assert!(lost == 0 && parks > 0, "{lost} of {parks}");
}

/// What a strategy could do before each had its own word. If the flag were open to it, the test
/// above would notice.
#[test]
fn flag_cleared_by_senders_loses_wake_ups() {
    let zero = |bells: &[AtomicWords], _| bells[LISTENER][BELL].store(0, Relaxed);
    // Whether the listener parks at all is the scheduler's matter. Few messages: each lost wake-up
    // waits for all of [`PATIENCE`].
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
    // The first ones are waited on, and the last one is not: the listener looks by itself.
    for sender in [&senders[0], &senders[futex::MAX_WORDS - 1]] {
        listener.arm();
        Doorbell::new(&own.clone().into(), sender, 0).ring();
        assert_eq!(listener.wait(Duration::from_secs(60)), Woken::Rung);
    }
    let began = Instant::now();
    listener.arm();
    Doorbell::new(&own.clone().into(), &senders[futex::MAX_WORDS], 0).ring();
    assert_eq!(listener.wait(Duration::from_secs(60)), Woken::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(30), "it comes back long before its time is over");
}
