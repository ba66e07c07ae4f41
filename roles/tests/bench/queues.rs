//! The loops over real queues on the heap, in two threads: what holds with a good one, and what is
//! found with broken ones.

use roles::bench::account::{AgentAccount, Field};
use roles::bench::control::{DRAIN, GO};
use roles::bench::queues::ledger::{LabField, account_words, get, latencies, problems, shares};
use roles::bench::queues::waiting::{Pace, WaitStrategy};
use roles::bench::queues::{QueueEnd, consume, produce};
use shm::bell::{BELL_WORDS, Doorbell, Listener};
use shm::memory::{AtomicWords, Region};
use shm::queue::Queue;
use shm::ring::Link;
use shm::ring::array_queue::ArrayQueue;
use std::time::Duration;
use system::clock::ClockSource;
use techniques::conformance::faulty::{
    DropsMessage, DuplicatesMessage, FaultyRing, ReordersMessages, TearsMessage,
};

const EVENTS: u64 = 1_000;
const PRODUCERS: u16 = 2;

/// Two producers and a consumer over a queue of 64; what does not hold.
fn found<L: Link>(wait: &str) -> Vec<String> {
    let mut queue = Queue::<L>::on_heap(PRODUCERS.into(), 64).unwrap();
    let control = crate::control(GO);
    let view = control.view();
    let bell = || Region::heap(BELL_WORDS).words();
    let (taker, makers) = (bell(), [bell(), bell()]);
    let end_of = |account, index, own: &AtomicWords, bells: Vec<AtomicWords>, events| QueueEnd {
        control: &view,
        account,
        clock: ClockSource::Monotonic,
        waiting: match wait {
            "busy" => WaitStrategy::busy(),
            "yield" => WaitStrategy::yielding(),
            "poll" => WaitStrategy::polling(Duration::from_micros(1)),
            _ => WaitStrategy::parking(Listener::new(own).with_outside(own)),
        },
        pace: Pace::new(None, 0.0, 1.0, 1),
        bells: bells.iter().filter(|_| wait == "park").map(Doorbell::from_outside).collect(),
        index,
        producers: PRODUCERS,
        events,
    };
    let total = EVENTS * u64::from(PRODUCERS);
    let accounts = [0, 0, total].map(|events| AgentAccount::on_heap(account_words(events)));
    let consumer = queue.consumer().unwrap();
    let producers = [queue.producer(0).unwrap(), queue.producer(1).unwrap()];
    std::thread::scope(|scope| {
        let (last, rest) = (&accounts[2], &accounts[..2]);
        let (end_of, taker, makers, control) = (&end_of, &taker, &makers, &control);
        scope.spawn(move || consume(consumer, end_of(last, 0, taker, makers.to_vec(), total)));
        let threads: Vec<_> = producers
            .into_iter()
            .enumerate()
            .map(|(index, queue)| {
                let end =
                    move || end_of(&rest[index], index as u16, &makers[index], vec![taker.clone()], EVENTS);
                scope.spawn(move || produce(vec![queue], end()))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        control.set_phase(DRAIN);
    });
    let views = accounts.map(|account| account.view());
    let pushed = views[0].get(Field::Count) + views[1].get(Field::Count);
    assert_eq!(pushed, total);
    let sum = get(&views[0], LabField::Sum).wrapping_add(get(&views[1], LabField::Sum));
    let found = problems("consumer-0", &views[2], pushed, sum);
    if found.is_empty() {
        let half: u64 = shares(&views[2], PRODUCERS).iter().sum();
        assert_eq!((half, latencies(&views[2]).count() as u64), (total / 2, total));
    }
    found
}

#[test]
fn events_arrive_once_in_order_with_every_wait_strategy() {
    for wait in ["busy", "yield", "poll", "park"] {
        assert_eq!(found::<ArrayQueue>(wait), [""; 0], "{wait}");
    }
}

#[test]
fn broken_queue_is_detected() {
    let said = |found: Vec<String>| found.join("; ");
    let lost = said(found::<FaultyRing<DropsMessage, ArrayQueue>>("yield"));
    assert!(lost.contains("events passed over") && lost.contains("taken of 2000 pushed"), "{lost}");
    let doubled = said(found::<FaultyRing<DuplicatesMessage, ArrayQueue>>("yield"));
    assert!(doubled.contains("doubled or behind"), "{doubled}");
    let disordered = said(found::<FaultyRing<ReordersMessages, ArrayQueue>>("yield"));
    assert!(disordered.contains("behind a later one"), "{disordered}");
    let torn = said(found::<FaultyRing<TearsMessage, ArrayQueue>>("yield"));
    assert!(torn.contains("damaged"), "{torn}");
}

#[test]
fn only_what_gives_the_core_away_wakes() {
    let parking = || WaitStrategy::parking(Listener::new(&Region::heap(BELL_WORDS).words()));
    let polling = WaitStrategy::polling(Duration::from_micros(1));
    for (mut waiting, wakes) in
        [(WaitStrategy::busy(), 0), (WaitStrategy::yielding(), 4), (polling, 4), (parking(), 2)]
    {
        (0..4).for_each(|_| waiting.wait());
        assert_eq!((waiting.polls, waiting.wakes), (4, wakes));
    }
}

#[test]
fn an_event_between_two_looks_takes_the_bell_back() {
    let own = Listener::new(&Region::heap(BELL_WORDS).words());
    let mut waiting = WaitStrategy::parking(own);
    waiting.wait();
    waiting.on_progress();
    waiting.wait();
    assert_eq!(waiting.wakes, 0, "armed twice, never asleep");
}

#[test]
fn jitter_is_uniform_and_reproducible_from_seed() {
    let draws = |seed| {
        let mut pace = Pace::new(None, 0.5, 1.0, seed);
        (0..1000).map(|_| pace.draw(1_000)).collect::<Vec<_>>()
    };
    let one = draws(7);
    assert_eq!(one, draws(7));
    assert_ne!(one, draws(8));
    assert!(one.iter().all(|ns| (500..=1_500).contains(ns)));
    let mean = one.iter().sum::<u64>() / 1000;
    assert!((950..1_050).contains(&mean), "{mean}");
    assert_eq!(Pace::new(None, 0.0, 1.0, 1).draw(1_000), 1_000);
}
