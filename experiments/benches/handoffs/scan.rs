//! The cost of an empty poll: every technique of the table, with 1, 8 and 64 producers.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal, Subject, alternate, ns_each};
use protocol::segments;
use shm::memory::Region;
use shm::ring::spsc_mux::Mux;
use shm::ring::{Consumer, Link, MESSAGE_WORDS, spsc};
use std::any::Any;
use std::hint::black_box;
use techniques::Technique;
use techniques::with_link;

const SAMPLES: usize = 51;
/// Polls of a sample: with `--quick`, and otherwise.
const QUICK_POLLS: u64 = 1_000;
const POLLS: u64 = 5_000;

/// Polls an empty link. The sending ends are kept, as in a run.
fn scanner(mut consumer: impl Consumer + 'static, ends: impl Any) -> Subject {
    Box::new(move |polls| {
        black_box(&ends);
        ns_each(polls, || (0..polls).for_each(|_| assert!(black_box(&mut consumer).try_pop().is_none())))
    })
}

fn link<T: Link>(technique: Technique, producers: u16) -> Subject {
    let run = Run::new(technique, producers, 64);
    run.create::<T>();
    let (consumer, ends) = run.attach::<T>(&mut segments::attach(run.plan(), None));
    scanner(consumer, ends)
}

/// Makes a scanner of the rings of `producers` producers, each in its own mapped memory as in a
/// run. Without coloring, the polled cache lines all have the same offset in their pages.
fn rings(producers: u64, has_coloring: bool) -> Subject {
    const CAPACITY: usize = 64;
    let ring = |index| {
        let region = Region::memfd("bench-scan", spsc::ring_words(CAPACITY, MESSAGE_WORDS));
        let words = region.expect("some pages").words();
        spsc::write_header_of::<MESSAGE_WORDS>(&words, CAPACITY, if has_coloring { index } else { 0 });
        spsc::Consumer::attach(&words).expect("a fresh ring has a good header")
    };
    scanner(Mux::new((0..producers).map(ring).collect()), ())
}

/// Compares rings with and without cache coloring, alternated, for 1 to 256 producers.
fn compare_coloring(options: &Options, report: &mut BenchReport) {
    let (samples, polls) = options.effort(SAMPLES, QUICK_POLLS, POLLS);
    let mut rows = Vec::new();
    for producers in [1, 8, 64, 256] {
        let (mut colored, mut alike) = (rings(producers, true), rings(producers, false));
        let (mut ns, mut ns_alike, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..samples {
            let (with, without) = (colored(polls), alike(polls));
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
        rows.push(FigureRow::new(format!("{producers} rings of one color"), "ns", ns_alike, Goal::None));
        rows.push(FigureRow::new("", "× one color", ratios, Goal::None));
    }
    report.add("Empty poll of mapped rings, one thread", rows);
}

/// Adds to the report the cost of an empty poll, with 1, 8 and 64 producers.
pub fn run(options: &Options, report: &mut BenchReport) {
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    compare_coloring(options, report);
    for producers in [1u16, 8, 64] {
        let costs = alternate(
            Technique::all().into_iter(),
            |technique| with_link!(technique, T => link::<T>(technique, producers)),
            options.effort(SAMPLES, QUICK_POLLS, POLLS),
        );
        let rows = costs.into_iter().map(|(technique, costs)| {
            let has_goal = technique == Technique::default() && producers == 8;
            let goal = if has_goal { Goal::AtMost(5.0) } else { Goal::None };
            FigureRow::new(technique.name(), "ns", costs, goal)
        });
        report.add(&format!("Empty poll, {producers} producers, one thread"), rows.collect());
    }
}
