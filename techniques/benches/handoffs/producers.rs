//! The cost of a message by the number of producers: 1 to 256 producers push in turn, on one
//! thread, for every technique.
//!
//! One thread, to isolate the cost of the number of producers: the scan of empty queues, and their
//! memory. Measuring contention would need one core per producer.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::segments;
use shm::ring::{Consumer as _, Link, MESSAGE_WORDS, Producer as _};
use std::hint::black_box;
use system::clock::{Clock, Monotonic};
use techniques::Technique;
use techniques::with_link;

/// Slots per ring, the minimum for a message of each producer: the number of rings matters.
const CAPACITY: u32 = 256;

/// Distance from one sender to the next: not adjacent, because a scan starts there. Coprime to the
/// numbers of producers.
const STRIDE: usize = 101;

/// The pattern in which messages arrive.
#[derive(Clone, Copy)]
enum Pattern {
    /// One at a time: each message is taken before the next producer sends.
    Alone,
    /// One message of each producer, then all are taken.
    Together,
}

/// Lets every producer send a number of messages, and returns the nanoseconds per message.
type Senders = Box<dyn FnMut(u64, Pattern) -> f64>;

fn senders<T: Link>(technique: Technique, producers: u16) -> Senders {
    let run = Run::new(technique, producers, CAPACITY);
    run.create::<T>();
    let (mut consumer, mut ends) = run.attach::<T>(&mut segments::attach(run.plan(), None));
    Box::new(move |rounds, pattern| {
        let start = Monotonic.now();
        for round in 0..rounds {
            for turn in 0..ends.len() {
                let next = turn * STRIDE % ends.len();
                assert!(ends[next].try_push(black_box(&[round; MESSAGE_WORDS])).is_ok(), "room for one each");
                if matches!(pattern, Pattern::Alone) {
                    assert!(black_box(consumer.try_pop()).is_some(), "lost");
                }
            }
            if matches!(pattern, Pattern::Together) {
                for _ in 0..producers {
                    assert!(black_box(consumer.try_pop()).is_some(), "lost");
                }
            }
        }
        (Monotonic.now() - start) as f64 / (rounds * u64::from(producers)) as f64
    })
}

/// Measures all techniques, alternated.
pub fn run(options: &Options, report: &mut BenchReport) {
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let (samples, messages) = options.effort(31, 512, 5_120);
    let wanted = |technique: &Technique| options.technique.is_none_or(|only| only == *technique);
    for producers in [1u16, 8, 64, 256] {
        let mut all: Vec<_> = Technique::all()
            .into_iter()
            .filter(wanted)
            .map(|technique| {
                let senders = with_link!(technique, T => senders::<T>(technique, producers));
                (technique, senders, Vec::new(), Vec::new())
            })
            .collect();
        let rounds = messages.div_ceil(producers.into());
        for _ in 0..samples {
            for (_, senders, alone, together) in &mut all {
                alone.push(senders(rounds, Pattern::Alone));
                together.push(senders(rounds, Pattern::Together));
            }
        }
        let rows = all.into_iter().flat_map(|(technique, _, alone, together)| {
            let row = |how, costs| FigureRow::new(format!("{technique}, {how}"), "ns", costs, Goal::None);
            [row("one at a time", alone), row("one of each", together)]
        });
        report.add(&format!("A message, {producers} producers in turn, one thread"), rows.collect());
    }
}
