//! A push and a pop of every technique on one thread: the cost of the instructions and the cache
//! lines that they touch.
//!
//! For instructions instead of time: run this section for one technique (`--technique NAME`) under
//! `valgrind --tool=callgrind`, twice with different `--samples`, and divide the
//! difference by the difference in messages. `.ci/instructions.sh` does that for all of them.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal, Subject, alternate, ns_each};
use protocol::segments;
use shm::ring::MESSAGE_WORDS;
use shm::ring::{Consumer, Link, Producer};
use std::hint::black_box;
use techniques::Technique;
use techniques::with_link;

#[inline(never)]
fn push_and_pop<P: Producer, C: Consumer>(producer: &mut P, consumer: &mut C, count: u64) {
    for n in 0..count {
        assert!(producer.try_push(black_box(&[n; MESSAGE_WORDS])).is_ok(), "room for one");
        assert!(black_box(consumer.try_pop()).is_some(), "lost");
    }
}

fn trader<T: Link>(technique: Technique, capacity: u32) -> Subject {
    let run = Run::new(technique, 1, capacity);
    run.create::<T>();
    let (mut consumer, mut producers) = run.attach::<T>(&mut segments::attach(run.plan(), None));
    Box::new(move |count| ns_each(count, || push_and_pop(&mut producers[0], &mut consumer, count)))
}

/// Adds to the report the time of a push and a pop on one thread, for every technique.
pub fn run(options: &Options, report: &mut BenchReport) {
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let wanted = |technique: &Technique| options.technique.is_none_or(|only| only == *technique);
    let costs = alternate(
        Technique::all().into_iter().filter(wanted),
        |technique| with_link!(technique, T => trader::<T>(technique, options.capacity as u32)),
        options.effort(101, 960, 9_600),
    );
    let rows = costs.into_iter().map(|(t, costs)| FigureRow::new(t.name(), "ns", costs, Goal::None));
    report.add("Push and pop of a message, one thread", rows.collect());
}
