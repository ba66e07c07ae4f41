//! The loops over real queues on the heap, in two threads: what holds with a good one, and what is found with broken ones.

use super::account::{Account, Field, problems};
use super::ends::{Job, consume, produce};
use super::plan::{DRAIN, GO, STATE};
use super::waiting::{Pace, Waiting};
use analysis::experiment::Wait;
use shm::bell::{BELL_WORDS, Bell, Listener};
use shm::memory::{Region, View, Words};
use shm::queue::Queue;
use shm::ring::Link;
use shm::ring::array_queue::ArrayQueue;
use shm::sync::Ordering;
use system::clock::ClockSource;
use techniques::conformance::broken::{Broken, Doubles, Drops, Reorders, Tears};

const EVENTS: u64 = 1_000;
const PRODUCERS: u16 = 2;

/// Two producers and a consumer over a queue of 64; what does not hold.
fn found<L: Link>(wait: Wait) -> Vec<String> {
    let mut queue = Queue::<L>::on_heap(PRODUCERS.into(), 64).unwrap();
    let control: Words = Region::heap(STATE + 16).words();
    control[STATE].store(GO, Ordering::Release);
    let view: View = control.clone().into();
    let bell = || Region::heap(BELL_WORDS).words();
    let (taker, makers) = (bell(), [bell(), bell()]);
    let job = |account, index, own: &Words, bells: Vec<Words>, events| Job {
        control: &view,
        account,
        clock: ClockSource::Monotonic,
        waiting: Waiting::new(wait, 1_000, Some(Listener::new(own).and_outside(own))),
        pace: Pace::new(None, 0.0, 1.0, 1),
        bells: bells.iter().filter(|_| wait == Wait::Park).map(Bell::from_outside).collect(),
        index,
        producers: PRODUCERS,
        events,
    };
    let total = EVENTS * u64::from(PRODUCERS);
    let accounts = [Account::on_heap(0), Account::on_heap(0), Account::on_heap(total as usize)];
    let consumer = queue.consumer().unwrap();
    let producers = [queue.producer(0).unwrap(), queue.producer(1).unwrap()];
    std::thread::scope(|scope| {
        let (last, rest) = (&accounts[2], &accounts[..2]);
        let (job, taker, makers, control) = (&job, &taker, &makers, &control);
        scope.spawn(move || consume(consumer, job(last, 0, taker, makers.to_vec(), total)));
        let threads: Vec<_> = producers
            .into_iter()
            .enumerate()
            .map(|(index, end)| {
                let job =
                    move || job(&rest[index], index as u16, &makers[index], vec![taker.clone()], EVENTS);
                scope.spawn(move || produce(vec![end], job()))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        control[STATE].store(DRAIN, Ordering::Release);
    });
    let said = accounts.map(|account| account.said());
    let pushed = said[0].get(Field::Count) + said[1].get(Field::Count);
    assert_eq!(pushed, total);
    let half: u64 = said[2].shares(PRODUCERS).iter().sum();
    let found = problems(
        "consumer-0",
        &said[2],
        pushed,
        said[0].get(Field::Sum).wrapping_add(said[1].get(Field::Sum)),
    );
    if found.is_empty() {
        assert_eq!((half, said[2].latencies().count() as u64), (total / 2, total));
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
