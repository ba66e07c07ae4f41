//! What a message costs where many could send it: pushes by 1 to 256 producers in turn, on one
//! thread, by every technique.
//!
//! One thread, so that it says what the number of producers costs by itself: the scan past those
//! that have nothing, and the memory that they take. How producers contend with each other needs as
//! many cores as there are producers.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::segments;
use shm::ring::{Consumer as _, Link, MESSAGE_WORDS, Producer as _};
use std::hint::black_box;
use system::clock::{Clock, Monotonic};
use techniques::Technique;
use techniques::with_link;

/// Slots of a ring, as few as hold a message of each producer: what counts is how many rings there
/// are.
const CAPACITY: u32 = 256;

/// From one sender to the next: not the one beside it, which is where a scan looks first. Prime to
/// the numbers of producers.
const STRIDE: usize = 101;

/// How messages come.
#[derive(Clone, Copy)]
enum Pattern {
    /// One at a time: each is taken before the next producer sends.
    Alone,
    /// One of each producer, then all are taken.
    Together,
}

/// Lets every producer send so many times; nanoseconds a message.
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

/// Measures all of them in turn.
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
