//! What a consumer pays for looking and finding nothing: every technique of the table, with 1, 8 and 64 producers.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::segments;
use shm::clock::{Clock, Monotonic};
use shm::ring::Technique;
use shm::ring::{Consumer as _, Link};
use shm::with_link;
use std::hint::black_box;

/// Polls an empty link that many times; nanoseconds a poll.
type Scanner = Box<dyn FnMut(u64) -> f64>;

/// Both ends of a link of its own, with nothing in it.
fn scanner<T: Link>(technique: Technique, producers: u16) -> Scanner {
    let run = Run::new(technique, producers, 64);
    run.create::<T>();
    let (mut consumer, ends) = run.attach::<T>(&mut segments::attach(run.plan(), None));
    Box::new(move |polls| {
        // The sending ends stay, as in a run.
        black_box(&ends);
        let start = Monotonic.now();
        for _ in 0..polls {
            assert!(black_box(&mut consumer).try_pop().is_none());
        }
        (Monotonic.now() - start) as f64 / polls as f64
    })
}

/// Measures all of them in turn.
pub fn run(options: &Options, report: &mut BenchReport) {
    shm::os::pin::pin_to(options.cores.0).expect("an allowed core");
    let (samples, polls) = options.effort(51, 1_000, 5_000);
    for producers in [1u16, 8, 64] {
        let mut scanners: Vec<(Technique, Scanner, Vec<f64>)> = Technique::all()
            .into_iter()
            .map(|technique| {
                let scanner = with_link!(technique, T => scanner::<T>(technique, producers));
                (technique, scanner, Vec::new())
            })
            .collect();
        for _ in 0..samples {
            for (_, scanner, costs) in &mut scanners {
                costs.push(scanner(polls));
            }
        }
        let rows = scanners.into_iter().map(|(technique, _, costs)| {
            let goal = if technique == Technique::default() && producers == 8 {
                Goal::AtMost(5.0)
            } else {
                Goal::None
            };
            FigureRow::new(technique.name(), "ns", costs, goal)
        });
        report.add(&format!("Empty poll, {producers} producers, one thread"), rows.collect());
    }
}
