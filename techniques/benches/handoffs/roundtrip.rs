//! The round trip of a 56-byte message between two cores, in multiples of the floor.
//!
//! Floor, ring, floor, ring, floor …: each sample of the ring is divided by the mean of the two
//! floors around it. If those differ by more than a tenth, the machine changed in between and the
//! sample is dropped and counted.

use crate::Options;
use crate::answers::{receive, receive_rtrb, swap};
use crate::peer::{Job, Peer, Peers};
use crate::report::{BenchReport, FigureRow, Goal};
use shm::sync::Ordering;
use system::clock::{Clock, Monotonic};
use system::floor::{self, FloorSample, wait};
use techniques::element::LineMessage;

/// Number of batches of round trips, as for the floor: a preemption affects one of them.
const BATCHES: u64 = 50;

/// Returns the nanoseconds per call: the median of the batches.
fn batches(count: u64, mut each: impl FnMut(u64)) -> f64 {
    let batch = (count / BATCHES).max(1);
    let mut samples = Vec::new();
    let mut n = 0;
    while n < count {
        let start = Monotonic.now();
        let (first, end) = (n, count.min(n + batch));
        while n < end {
            each(n);
            n += 1;
        }
        samples.push((Monotonic.now() - start) as f64 / (end - first) as f64);
    }
    FloorSample::from_batches(samples).median_ns
}

/// Sends messages, each after the echo of the previous one.
fn trips<const N: usize>(count: u64, mut trip: impl FnMut([u64; N]) -> [u64; N]) -> f64 {
    batches(count, |n| {
        let message = [n; N];
        assert_eq!(trip(message), message, "what comes back is what was sent");
    })
}

fn floor_by_swapping(peer: &mut Peer, rounds: u64) -> f64 {
    peer.job(Job::Swap, rounds, |peer| {
        let ns = batches(rounds, |_| swap(&peer.line[0], 0, 1));
        // The peer makes the last store.
        wait::<true>(|| peer.line[0].load(Ordering::Acquire) == 0);
        ns
    })
}

fn ring<const PAUSE: bool>(peer: &mut Peer, count: u64) -> f64 {
    let job = if PAUSE { Job::Echo } else { Job::EchoBare };
    peer.job(job, count, |peer| {
        trips(count, |message| {
            wait::<PAUSE>(|| peer.producer.try_push(&message).is_ok());
            receive::<PAUSE>(&mut peer.consumer)
        })
    })
}

fn floor<const PAUSE: bool>(peer: &mut Peer, rounds: u64) -> f64 {
    let job = if PAUSE { Job::Floor } else { Job::FloorBare };
    peer.job(job, 0, |peer| {
        let sample = floor::measure::<PAUSE>(&peer.line[0], rounds as u32);
        floor::stop_answering(&peer.line[0]);
        sample.median_ns
    })
}

/// The samples of one contestant.
#[derive(Default)]
struct Samples {
    ns: Vec<f64>,
    floors: Vec<f64>,
    ratios: Vec<f64>,
    dropped: usize,
}

impl Samples {
    /// Adds a sample unless its floors differ too much. Returns `true` if it was added.
    fn try_add(&mut self, before: f64, ns: f64, after: f64) -> bool {
        if (before - after).abs() > 0.1 * before.min(after) {
            self.dropped += 1;
            return false;
        }
        let floor = (before + after) / 2.0;
        self.ns.push(ns);
        self.floors.push(floor);
        self.ratios.push(ns / floor);
        true
    }

    fn rows(self, what: &str, goal: Goal) -> [FigureRow; 2] {
        [
            FigureRow::new(what, "ns", self.ns, Goal::None).dropped(self.dropped),
            FigureRow::new("", "× floor", self.ratios, goal).dropped(self.dropped),
        ]
    }
}

/// Measures all contestants, alternated.
pub fn run(options: &Options, peers: &mut Peers, report: &mut BenchReport) {
    let (samples, rounds) = options.effort(150, 500, 10_000);
    let [mut process, mut bare, mut thread, mut rtrb] = [(); 4].map(|()| Samples::default());
    let (mut swaps, mut over_swaps) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        // The floor is measured with the peer of the next sample: a cache line between processes,
        // or within one.
        let Peers { process: across, thread: within, rtrb: other } = &mut *peers;
        let mut before = floor::<true>(across, rounds);
        let swapped = floor_by_swapping(across, rounds);
        let ns = ring::<true>(across, rounds);
        let mut after = floor::<true>(across, rounds);
        if process.try_add(before, ns, after) {
            swaps.push(swapped);
            over_swaps.push(ns / swapped);
        }

        before = floor::<false>(across, rounds);
        let ns = ring::<false>(across, rounds);
        after = floor::<false>(across, rounds);
        bare.try_add(before, ns, after);

        before = floor::<true>(within, rounds);
        let ns = ring::<true>(within, rounds);
        after = floor::<true>(within, rounds);
        thread.try_add(before, ns, after);

        before = after;
        let ns = other.job(Job::Echo, rounds, |rtrb| {
            trips(rounds, |message| {
                wait::<true>(|| rtrb.producer.push(LineMessage(message)).is_ok());
                receive_rtrb(&mut rtrb.consumer).0
            })
        });
        after = floor::<true>(within, rounds);
        rtrb.try_add(before, ns, after);
    }

    let floors = [
        ("floor, processes", process.floors.clone()),
        ("floor, processes, bare", bare.floors.clone()),
        ("floor, threads", thread.floors.clone()),
        ("floor by swapping, bare", swaps),
    ];
    let mut rows: Vec<FigureRow> =
        floors.into_iter().map(|(what, floors)| FigureRow::new(what, "ns", floors, Goal::None)).collect();
    rows.extend(process.rows("our ring, processes", Goal::AtMost(1.05)));
    rows.push(FigureRow::new("", "× swapped", over_swaps, Goal::None));
    rows.extend(bare.rows("our ring, processes, bare", Goal::None));
    rows.extend(thread.rows("our ring, threads", Goal::AtMost(1.05)));
    rows.extend(rtrb.rows("rtrb, threads", Goal::None));
    report.add("Round trip of a 56-byte message (dropped: the floor changed by more than a tenth)", rows);
}
