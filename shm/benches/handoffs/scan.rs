//! What a consumer pays for looking and finding nothing: N rings behind a mux, beside N of crossbeam's queues.

use crate::Options;
use crate::report::{Goal, Report, Row};
use crossbeam_queue::ArrayQueue;
use shm::clock::{Clock, Monotonic};
use shm::ring::Consumer as _;
use shm::ring::spsc;
use shm::ring::spsc_mux::Mux;
use shm::wire::{MESSAGE_WORDS, Message};
use std::hint::black_box;

/// Nanoseconds a scan over many scans.
fn batch(scans: u64, mut scan: impl FnMut()) -> f64 {
    let start = Monotonic.now();
    for _ in 0..scans {
        scan();
    }
    (Monotonic.now() - start) as f64 / scans as f64
}

/// Measures N = 1, 8 and 64, the two alternating.
pub fn run(options: &Options, report: &mut Report) {
    shm::os::pin::pin_to(options.cores.0).expect("an allowed core");
    let (samples, scans) = options.effort(101, 1_000, 20_000);
    let mut rows = Vec::new();
    for rings in [1usize, 8, 64] {
        let (_producers, consumers): (Vec<_>, Vec<_>) =
            (0..rings).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(64)).unzip();
        let mut mux = Mux::new(consumers);
        let queues: Vec<ArrayQueue<Message>> = (0..rings).map(|_| ArrayQueue::new(64)).collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..samples {
            ours.push(batch(scans, || assert!(black_box(&mut mux).try_pop().is_none())));
            theirs.push(batch(scans, || {
                assert!(black_box(&queues).iter().all(|queue| queue.pop().is_none()));
            }));
        }
        let goal = if rings == 8 { Goal::AtMost(5.0) } else { Goal::None };
        rows.push(Row::new(format!("{rings} of our rings, Mux::try_pop"), "ns", ours, goal));
        rows.push(Row::new(format!("{rings} of crossbeam's ArrayQueue"), "ns", theirs, Goal::None));
    }
    report.add("Empty scan, one thread", rows);
}
