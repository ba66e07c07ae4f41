//! The cost of a ring's capacity: alternated round trips and streams at capacities from 2 to
//! 65,536.
//!
//! Two threads on two cores. A synchronized round trip is given in floors: each sample is divided
//! by the mean of the two floors around it, and dropped if those differ by more than a tenth. An
//! unsynchronized one (see `trip.rs`) is compared with one cache line that the same loops bounce.
//! Streams are compared with the crate rtrb with the same payload, one by one and in chunks of 64,
//! or of half the ring.

use crate::Options;
use crate::pair::{Contestant, Peer, start_peer};
use crate::report::{BenchReport, FigureRow, Goal};
use crate::trip::{self, BouncedLine, Step};
use shm::ring::spsc;
use system::pair::between_yardsticks;
use techniques::heap::LineMessage;

const CAPACITIES: [usize; 7] = [2, 8, 64, 256, 1024, 8192, 65_536];

#[derive(Default)]
struct Trips {
    /// Nanoseconds of the cache line.
    lines: Vec<f64>,
    /// The ring's time divided by the line's.
    over_line: Vec<f64>,
    dropped: usize,
}

impl Trips {
    /// Adds a sample: nanoseconds of the line and of the ring; `None` if it is dropped.
    fn add(&mut self, measured: Option<(f64, f64)>) {
        let Some((line, trip)) = measured else {
            self.dropped += 1;
            return;
        };
        self.lines.push(line);
        self.over_line.push(trip / line);
    }

    fn rows(&mut self, capacity: usize, line: &str, unit: &'static str, goal: Goal) -> [FigureRow; 2] {
        let Self { lines, over_line, dropped } = std::mem::take(self);
        let name = |what: &str| format!("{capacity}: {what}");
        [
            FigureRow::new(name(line), "ns", lines, Goal::None).dropped(dropped),
            FigureRow::new(name("the ring"), unit, over_line, goal),
        ]
    }
}

struct Match {
    capacity: usize,
    ring: Contestant<spsc::Producer, spsc::Consumer>,
    rtrb: Contestant<rtrb::Producer<LineMessage>, rtrb::Consumer<LineMessage>>,
    line: Contestant<BouncedLine, BouncedLine>,
    peer: Peer,
    in_step: Trips,
    out_of_step: Trips,
    /// The ring, the ring in batches, rtrb in chunks, rtrb.
    rates: [Vec<f64>; 4],
}

impl Match {
    fn new(capacity: usize, core: u32) -> Self {
        let mut parts = Vec::new();
        let ours = || spsc::heap_ring::<7>(capacity);
        let crates = || rtrb::RingBuffer::<LineMessage>::new(capacity);
        let ring = Contestant::new(&mut parts, ours(), ours());
        let rtrb = Contestant::new(&mut parts, crates(), crates());
        let (there, back) = BouncedLine::ends();
        let line = Contestant::new(&mut parts, there, back);
        Self {
            capacity,
            ring,
            rtrb,
            line,
            peer: start_peer(core, parts),
            in_step: Trips::default(),
            out_of_step: Trips::default(),
            rates: Default::default(),
        }
    }

    fn round_trip(&mut self, rounds: u64) {
        let Self { ring, line, peer, .. } = self;
        self.in_step.add(peer.between_floors(rounds, || ring.trips(peer, Step::In, rounds)));
        let mut line = || line.trips(peer, Step::Out, rounds);
        self.out_of_step.add(between_yardsticks(&mut line, || ring.trips(peer, Step::Out, rounds)));
    }

    fn streams(&mut self, count: u64) {
        let Self { ring, rtrb, peer, rates, .. } = self;
        let measured = [
            ring.stream::<false>(peer, count),
            ring.stream::<true>(peer, count),
            rtrb.stream::<true>(peer, count),
            rtrb.stream::<false>(peer, count),
        ];
        rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
    }

    fn stream_rows(&mut self) -> [FigureRow; 6] {
        let name = |what: &str| format!("{}: {what}", self.capacity);
        let [one, many, chunks, rtrb] = std::mem::take(&mut self.rates);
        let ratio = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<f64>>();
        let (over_chunks, over_rtrb) = (ratio(&many, &chunks), ratio(&many, &rtrb));
        [
            FigureRow::new(name("rtrb, push and pop"), "M/s", rtrb, Goal::None),
            FigureRow::new(name("rtrb, chunks of 64"), "M/s", chunks, Goal::None),
            FigureRow::new(name("the ring, one by one"), "M/s", one, Goal::None),
            FigureRow::new(name("the ring, batches of 64"), "M/s", many, Goal::None),
            FigureRow::new("", "× rtrb's chunks", over_chunks, Goal::AtLeast(1.0)),
            FigureRow::new("", "× rtrb's push and pop", over_rtrb, Goal::AtLeast(4.0)),
        ]
    }
}

/// Adds to the report the cost of a ring's capacity, from 2 to 65,536 slots.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, rounds) = options.effort(31, 500, 10_000);
    let (_, count) = options.effort(31, 5_000, 1 << 18);
    // Before this thread is pinned: the peers are pinned to another core.
    let mut matches: Vec<Match> =
        CAPACITIES.into_iter().map(|capacity| Match::new(capacity, options.cores.1)).collect();
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let mut hints = Vec::new();
    for _ in 0..samples {
        hints.push(trip::hint_ns(rounds));
        for at_one in &mut matches {
            at_one.round_trip(rounds);
            at_one.streams(count);
        }
    }
    report.add(
        "The pause hint, of which a trip in step has a whole number",
        vec![FigureRow::new("one of them", "ns", hints, Goal::None)],
    );
    let rows =
        |at_one: &mut Match| at_one.in_step.rows(at_one.capacity, "floor", "× floor", Goal::AtMost(1.40));
    let in_step = matches.iter_mut().flat_map(rows).collect();
    report.add("Round trip by capacity, threads", in_step);
    let rows = |at_one: &mut Match| {
        at_one.out_of_step.rows(at_one.capacity, "one line", "× the line", Goal::AtMost(1.40))
    };
    let out_of_step = matches.iter_mut().flat_map(rows).collect();
    report.add("Round trip by capacity, out of step, threads", out_of_step);
    report.add("Stream by capacity, threads", matches.iter_mut().flat_map(Match::stream_rows).collect());
}
