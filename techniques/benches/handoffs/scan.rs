//! The cost of an empty poll: every technique of the table, with 1, 8 and 64 producers.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::segments;
use shm::memory::Region;
use shm::ring::spsc_mux::Mux;
use shm::ring::{Consumer as _, Link, MESSAGE_WORDS, spsc};
use std::hint::black_box;
use system::clock::{Clock, Monotonic};
use techniques::Technique;
use techniques::with_link;

/// Polls an empty link a number of times, and returns the nanoseconds per poll.
type Scanner = Box<dyn FnMut(u64) -> f64>;

/// Makes a scanner of an empty link.
fn scanner<T: Link>(technique: Technique, producers: u16) -> Scanner {
    let run = Run::new(technique, producers, 64);
    run.create::<T>();
    let (mut consumer, ends) = run.attach::<T>(&mut segments::attach(run.plan(), None));
    Box::new(move |polls| {
        // The sending ends are kept, as in a run.
        black_box(&ends);
        let start = Monotonic.now();
        for _ in 0..polls {
            assert!(black_box(&mut consumer).try_pop().is_none());
        }
        (Monotonic.now() - start) as f64 / polls as f64
    })
}

/// Makes a scanner of the rings of `producers` producers, each in its own mapped memory as in a
/// run. Without coloring, the polled cache lines all have the same offset in their pages.
fn rings(producers: u64, coloured: bool) -> Scanner {
    const CAPACITY: usize = 64;
    let ring = |index| {
        let words = Region::memfd("bench-scan", spsc::ring_words(CAPACITY, MESSAGE_WORDS))
            .expect("some pages")
            .words();
        spsc::write_header_of::<MESSAGE_WORDS>(&words, CAPACITY, if coloured { index } else { 0 });
        spsc::Consumer::attach(&words).expect("a fresh ring has a good header")
    };
    let mut consumer = Mux::new((0..producers).map(ring).collect());
    Box::new(move |polls| {
        let start = Monotonic.now();
        for _ in 0..polls {
            assert!(black_box(&mut consumer).try_pop().is_none());
        }
        (Monotonic.now() - start) as f64 / polls as f64
    })
}

/// Compares rings with and without cache coloring, alternated, for 1 to 256 producers.
fn colours(options: &Options, report: &mut BenchReport) {
    let (samples, polls) = options.effort(51, 1_000, 5_000);
    let mut rows = Vec::new();
    for producers in [1, 8, 64, 256] {
        let (mut coloured, mut alike) = (rings(producers, true), rings(producers, false));
        let (mut ns, mut ns_alike, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..samples {
            let (with, without) = (coloured(polls), alike(polls));
            ns.push(with);
            ns_alike.push(without);
            ratios.push(with / without);
        }
        let goal = match producers {
            8 => Goal::AtMost(5.0),
            64 => Goal::AtMost(25.0),
            _ => Goal::None,
        };
        rows.push(FigureRow::new(format!("{producers} rings"), "ns", ns, goal));
        rows.push(FigureRow::new(format!("{producers} rings of one colour"), "ns", ns_alike, Goal::None));
        rows.push(FigureRow::new("", "× one colour", ratios, Goal::None));
    }
    report.add("Empty poll of mapped rings, one thread", rows);
}

/// Measures all techniques, alternated.
pub fn run(options: &Options, report: &mut BenchReport) {
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    colours(options, report);
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
