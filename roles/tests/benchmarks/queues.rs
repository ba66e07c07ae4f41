//! The loops over real queues on the heap, in two threads: what holds with a good one, and what is
//! found with broken ones.

use crate::ThreadMemory;
use protocol::benchmark::LATENCIES;
use protocol::benchmark::queue_results::{first_half_counts, latencies, problems};
use protocol::control::RunState;
use protocol::labels::{ConsumerCounter, ProducerCounter};
use protocol::plan::{EndWaiting, Role};
use roles::queue::waiting::{Pace, WaitStrategy};
use roles::queue::{QueueEnd, consume, produce};
use shm::bell::{BELL_WORDS, Doorbell, Listener};
use shm::idle::{IdleStrategy, Park, Spin};
use shm::memory::{AtomicWords, Region};
use shm::queue::Queue;
use shm::ring::Link;
use shm::ring::array_queue::ArrayQueue;
use system::clock::ClockSource;
use techniques::conformance::faulty::{
    DropsMessage, DuplicatesMessage, FaultyRing, ReordersMessages, TearsMessage,
};

const EVENTS: u64 = 1_000;
const PRODUCERS: u16 = 2;

fn waiting(end_waiting: EndWaiting, own_bell: &AtomicWords) -> WaitStrategy {
    let parking = || IdleStrategy::Park(Park::new(Listener::new(own_bell).with_outside(own_bell)));
    let idle = if end_waiting == EndWaiting::Park { parking() } else { IdleStrategy::Spin(Spin::default()) };
    WaitStrategy::new(end_waiting, idle)
}

/// Two producers and a consumer over a queue of 64; what does not hold.
fn problems_found<L: Link>(end_waiting: EndWaiting) -> Vec<String> {
    let mut queue = Queue::<L>::on_heap(PRODUCERS.into(), 64).unwrap();
    let control = crate::control(RunState::Go);
    let view = control.control();
    let bell = || Region::heap(BELL_WORDS).words();
    let (taker, makers) = (bell(), [bell(), bell()]);
    let total = EVENTS * u64::from(PRODUCERS);
    let results = Region::heap(LATENCIES + total as usize).words();
    let threads: [ThreadMemory; 3] = std::array::from_fn(|_| ThreadMemory::new());
    let consumer = queue.consumer().unwrap();
    let producers = [queue.producer(0).unwrap(), queue.producer(1).unwrap()];
    let run = |thread: &ThreadMemory,
               index,
               own_bell: &AtomicWords,
               other_bells: &[AtomicWords],
               events,
               work: &mut dyn FnMut(QueueEnd<'_>)| {
        work(QueueEnd {
            control: &view,
            counters: thread.status().slots().next_agent(),
            clock: ClockSource::Monotonic,
            waiting: waiting(end_waiting, own_bell),
            pace: Pace::new(None, 0.0, 1.0, 1),
            bells: other_bells
                .iter()
                .filter(|_| end_waiting == EndWaiting::Park)
                .map(Doorbell::from_outside)
                .collect(),
            index,
            producers: PRODUCERS,
            events,
        });
    };
    std::thread::scope(|scope| {
        let (run, threads, taker, makers, results) = (&run, &threads, &taker, &makers, &results);
        scope.spawn(move || {
            let mut queue = Some(consumer);
            run(&threads[2], 0, taker, makers, total, &mut |end| {
                consume(queue.take().unwrap(), end, results);
            });
        });
        let pushing = (0..).zip(producers).map(|(index, queue)| {
            let producer_index = usize::from(index);
            scope.spawn(move || {
                let mut queue = Some(queue);
                run(
                    &threads[producer_index],
                    index,
                    &makers[producer_index],
                    std::slice::from_ref(taker),
                    EVENTS,
                    &mut |end| {
                        produce(vec![queue.take().unwrap()], end);
                    },
                );
            })
        });
        let pushing: Vec<_> = pushing.collect();
        pushing.into_iter().for_each(|thread| thread.join().unwrap());
        control.set_state(RunState::Stop);
    });
    let sent = [0, 1].map(|index| threads[usize::from(index)].counters(Role::Producer(index)));
    let taken = threads[2].counters(Role::Consumer(0));
    let pushed = sent.iter().map(|counters| counters.get(ProducerCounter::Sent)).sum();
    assert_eq!(pushed, total);
    let sum = sent.iter().fold(0, |sum: u64, producer_counters| {
        sum.wrapping_add(producer_counters.get(ProducerCounter::Checksum))
    });
    let problems_found = problems(&taken, pushed, sum);
    if problems_found.is_empty() {
        let (results, taken) = (results.into(), taken.get(ConsumerCounter::Taken));
        let half: u64 = first_half_counts(&results, PRODUCERS.into()).iter().sum();
        assert_eq!((half, latencies(&results, taken).count() as u64), (total / 2, total));
    }
    problems_found
}

#[test]
fn events_arrive_once_in_order_with_every_wait_strategy() {
    for end_waiting in [EndWaiting::Spin, EndWaiting::Yield, EndWaiting::Sleep(1_000), EndWaiting::Park] {
        assert_eq!(problems_found::<ArrayQueue>(end_waiting), [""; 0], "{end_waiting:?}");
    }
}

#[test]
fn broken_queue_is_detected() {
    let message = |problems_found: Vec<String>| problems_found.join("; ");
    let lost = message(problems_found::<FaultyRing<DropsMessage, ArrayQueue>>(EndWaiting::Yield));
    assert!(lost.contains("events passed over") && lost.contains("taken of 2000 pushed"), "{lost}");
    let doubled = message(problems_found::<FaultyRing<DuplicatesMessage, ArrayQueue>>(EndWaiting::Yield));
    assert!(doubled.contains("doubled or behind"), "{doubled}");
    let disordered = message(problems_found::<FaultyRing<ReordersMessages, ArrayQueue>>(EndWaiting::Yield));
    assert!(disordered.contains("behind a later one"), "{disordered}");
    let torn = message(problems_found::<FaultyRing<TearsMessage, ArrayQueue>>(EndWaiting::Yield));
    assert!(torn.contains("damaged"), "{torn}");
}

#[test]
fn only_what_gives_the_core_away_wakes() {
    let own_bell = Region::heap(BELL_WORDS).words();
    for (end_waiting, wakes) in
        [(EndWaiting::Spin, 0), (EndWaiting::Yield, 4), (EndWaiting::Sleep(1_000), 4), (EndWaiting::Park, 2)]
    {
        let mut waiting = waiting(end_waiting, &own_bell);
        (0..4).for_each(|_| waiting.wait());
        assert_eq!((waiting.polls, waiting.wakes), (4, wakes));
    }
}

#[test]
fn an_event_between_two_looks_takes_the_bell_back() {
    let mut waiting = waiting(EndWaiting::Park, &Region::heap(BELL_WORDS).words());
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
