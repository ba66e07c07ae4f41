//! What a ring's capacity costs: round trips and streams at capacities from 2 to 65,536, of the ring and of a sketch whose footprint follows
//! its occupancy, in turns.
//!
//! Two threads on two cores. A round trip is in floors: each sample is divided by the mean of the two floors around it, and
//! dropped if those differ by more than a tenth. Streams are beside those of the crate rtrb with the same payload, one by one and in chunks of 64.

use crate::Options;
use crate::pair::{Contestant, Peer, Pop, Push};
use crate::report::{BenchReport, FigureRow, Goal};
use crate::stream::BATCH;
use crate::window;
use shm::ring::element::LineMessage;
use shm::ring::{Message, spsc};

const CAPACITIES: [usize; 6] = [2, 8, 64, 1024, 8192, 65_536];

impl Push for spsc::Producer {
    #[inline(always)]
    fn push(&mut self, message: &Message) -> bool {
        self.try_push(message).is_ok()
    }

    #[inline(always)]
    fn push_many(&mut self, messages: &[Message]) -> usize {
        self.try_push_many(messages)
    }
}

impl Pop for spsc::Consumer {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        self.try_pop().expect("an honest peer")
    }

    #[inline(always)]
    fn drain(&mut self, each: impl FnMut(Message)) -> usize {
        spsc::Consumer::drain(self, BATCH as usize, each).expect("an honest peer")
    }
}

impl Push for window::Producer {
    #[inline(always)]
    fn push(&mut self, message: &Message) -> bool {
        self.try_push(message)
    }
}

impl Pop for window::Consumer {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        self.try_pop()
    }
}

impl Push for rtrb::Producer<LineMessage> {
    #[inline(always)]
    fn push(&mut self, message: &Message) -> bool {
        rtrb::Producer::push(self, LineMessage(*message)).is_ok()
    }

    #[inline(always)]
    fn push_many(&mut self, messages: &[Message]) -> usize {
        let room = messages.len().min(self.slots());
        let Ok(chunk) = self.write_chunk_uninit(room) else { return 0 };
        chunk.fill_from_iter(messages.iter().map(|message| LineMessage(*message)))
    }
}

impl Pop for rtrb::Consumer<LineMessage> {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        rtrb::Consumer::pop(self).ok().map(|line| line.0)
    }

    #[inline(always)]
    fn drain(&mut self, mut each: impl FnMut(Message)) -> usize {
        let there = self.slots();
        let Ok(chunk) = self.read_chunk(there) else { return 0 };
        chunk.into_iter().for_each(|line| each(line.0));
        there
    }
}

/// The contestants of one capacity, and the thread at their other ends.
struct Match {
    capacity: usize,
    ring: Contestant<spsc::Producer, spsc::Consumer>,
    sketch: Contestant<window::Producer, window::Consumer>,
    rtrb: Contestant<rtrb::Producer<LineMessage>, rtrb::Consumer<LineMessage>>,
    peer: Peer,
    over_floor: [Vec<f64>; 2],
    over_ring: Vec<f64>,
    floors: Vec<f64>,
    dropped: usize,
    /// The ring, the sketch, the ring in batches, rtrb in chunks, rtrb.
    rates: [Vec<f64>; 5],
}

impl Match {
    fn new(capacity: usize, core: u32) -> Self {
        let mut parts = Vec::new();
        let ours = || spsc::heap_ring::<7>(capacity);
        let crates = || rtrb::RingBuffer::<LineMessage>::new(capacity);
        let ring = Contestant::new(&mut parts, ours(), ours());
        let sketch = Contestant::new(&mut parts, window::ring(capacity), window::ring(capacity));
        let rtrb = Contestant::new(&mut parts, crates(), crates());
        Self {
            capacity,
            ring,
            sketch,
            rtrb,
            peer: Peer::start(core, parts),
            over_floor: Default::default(),
            over_ring: Vec::new(),
            floors: Vec::new(),
            dropped: 0,
            rates: Default::default(),
        }
    }

    fn round_trip(&mut self, rounds: u64) {
        let Self { ring, sketch, peer, .. } = self;
        let measured = peer.between_floors(rounds, || (ring.trips(peer, rounds), sketch.trips(peer, rounds)));
        let Some((floor, (ring, sketch))) = measured else {
            self.dropped += 1;
            return;
        };
        self.floors.push(floor);
        self.over_floor[0].push(ring / floor);
        self.over_floor[1].push(sketch / floor);
        self.over_ring.push(sketch / ring);
    }

    fn streams(&mut self, count: u64) {
        let Self { ring, sketch, rtrb, peer, rates, .. } = self;
        let measured = [
            ring.stream::<false>(peer, count),
            sketch.stream::<false>(peer, count),
            ring.stream::<true>(peer, count),
            rtrb.stream::<true>(peer, count),
            rtrb.stream::<false>(peer, count),
        ];
        rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
    }

    fn trip_rows(&mut self) -> [FigureRow; 4] {
        let name = |what: &str| format!("{}: {what}", self.capacity);
        let [ring, sketch] = std::mem::take(&mut self.over_floor);
        let [floors, over] = [&mut self.floors, &mut self.over_ring].map(std::mem::take);
        [
            FigureRow::new(name("floor"), "ns", floors, Goal::None).dropped(self.dropped),
            FigureRow::new(name("the ring"), "× floor", ring, Goal::AtMost(1.40)),
            FigureRow::new(name("a window in front"), "× floor", sketch, Goal::None),
            FigureRow::new("", "× the ring", over, Goal::None),
        ]
    }

    fn stream_rows(&mut self) -> [FigureRow; 7] {
        let name = |what: &str| format!("{}: {what}", self.capacity);
        let [one, sketch, many, chunks, rtrb] = std::mem::take(&mut self.rates);
        let ratio = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<f64>>();
        let (over_ring, over_chunks, over_rtrb) =
            (ratio(&sketch, &one), ratio(&many, &chunks), ratio(&many, &rtrb));
        [
            FigureRow::new(name("rtrb, push and pop"), "M/s", rtrb, Goal::None),
            FigureRow::new(name("rtrb, chunks of 64"), "M/s", chunks, Goal::None),
            FigureRow::new(name("the ring, one by one"), "M/s", one, Goal::None),
            FigureRow::new(name("a window in front"), "× the ring", over_ring, Goal::None),
            FigureRow::new(name("the ring, batches of 64"), "M/s", many, Goal::None),
            FigureRow::new("", "× rtrb's chunks", over_chunks, Goal::AtLeast(1.0)),
            FigureRow::new("", "× rtrb's push and pop", over_rtrb, Goal::AtLeast(4.0)),
        ]
    }
}

/// Measures all of them in turn.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, rounds) = options.effort(31, 500, 10_000);
    let (_, count) = options.effort(31, 5_000, 1 << 18);
    // Before this thread is pinned: theirs go elsewhere.
    let mut matches: Vec<Match> =
        CAPACITIES.into_iter().map(|capacity| Match::new(capacity, options.cores.1)).collect();
    shm::os::pin::pin_to(options.cores.0).expect("an allowed core");
    for _ in 0..samples {
        for at_one in &mut matches {
            at_one.round_trip(rounds);
            at_one.streams(count);
        }
    }
    let trips = matches.iter_mut().flat_map(Match::trip_rows).collect();
    report.add("Round trip by capacity, threads", trips);
    report.add("Stream by capacity, threads", matches.iter_mut().flat_map(Match::stream_rows).collect());
}
