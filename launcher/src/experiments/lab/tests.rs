//! The loops over real queues on the heap, in two threads: what holds with a good one, and what is found with broken ones.

use super::ledger::{LabField, account_words, get, latencies, problems, shares};
use super::loops::{QueueEnd, consume, produce};
use super::waiting::{Pace, Waiting};
use crate::bench::account::{AgentAccount, Field};
use crate::bench::control::{ControlSegment, DRAIN, GO};
use analysis::experiment::Wait;
use shm::bell::{BELL_WORDS, Bell, Listener};
use shm::memory::{Region, Words};
use shm::queue::Queue;
use shm::ring::Link;
use shm::ring::array_queue::ArrayQueue;
use std::time::Duration;
use system::clock::ClockSource;
use techniques::conformance::broken::{Broken, Doubles, Drops, Reorders, Tears};

const EVENTS: u64 = 1_000;
const PRODUCERS: u16 = 2;

/// Two producers and a consumer over a queue of 64; what does not hold.
fn found<L: Link>(wait: Wait) -> Vec<String> {
    let mut queue = Queue::<L>::on_heap(PRODUCERS.into(), 64).unwrap();
    let control = ControlSegment::on_heap(GO);
    let view = control.view();
    let bell = || Region::heap(BELL_WORDS).words();
    let (taker, makers) = (bell(), [bell(), bell()]);
    let end_of = |account, index, own: &Words, bells: Vec<Words>, events| QueueEnd {
        control: &view,
        account,
        clock: ClockSource::Monotonic,
        waiting: match wait {
            Wait::Busy => Waiting::busy(),
            Wait::Yield => Waiting::yielding(),
            Wait::Poll => Waiting::polling(Duration::from_micros(1)),
            Wait::Park => Waiting::parking(Listener::new(own).and_outside(own)),
        },
        pace: Pace::new(None, 0.0, 1.0, 1),
        bells: bells.iter().filter(|_| wait == Wait::Park).map(Bell::from_outside).collect(),
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
fn every_event_comes_once_whole_and_in_order_however_it_is_waited_for() {
    for wait in Wait::ALL {
        assert_eq!(found::<ArrayQueue>(*wait), [""; 0], "{wait}");
    }
}

#[test]
fn what_a_broken_queue_does_is_found() {
    let said = |found: Vec<String>| found.join("; ");
    let lost = said(found::<Broken<Drops, ArrayQueue>>(Wait::Yield));
    assert!(lost.contains("events passed over") && lost.contains("taken of 2000 pushed"), "{lost}");
    let doubled = said(found::<Broken<Doubles, ArrayQueue>>(Wait::Yield));
    assert!(doubled.contains("doubled or behind"), "{doubled}");
    let disordered = said(found::<Broken<Reorders, ArrayQueue>>(Wait::Yield));
    assert!(disordered.contains("behind a later one"), "{disordered}");
    let torn = said(found::<Broken<Tears, ArrayQueue>>(Wait::Yield));
    assert!(torn.contains("damaged"), "{torn}");
}
