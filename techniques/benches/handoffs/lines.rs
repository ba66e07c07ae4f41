//! The cost of each cache line transfer: round trips through hand-offs that are built up step by
//! step, from one cache line each way to a ring.
//!
//! Two threads on two cores, one message in flight. Each row adds one element to the previous one:
//! synchronized in floors, each with floors of its own, and unsynchronized (see `trip.rs`) compared
//! with one cache line that the same loops bounce. Samples whose floors or lines differ by more
//! than a tenth are dropped. The address of a hand-off matters too: each row has several,
//! alternated. On the heap, without checks of peers.

use crate::Options;
use crate::pair::{Contestant, Part, Peer, Pop, Push, between};
use crate::report::{BenchReport, FigureRow, Goal};
use crate::trip::{BouncedLine, Step};
use shm::memory::{AtomicWords, Region};
use shm::prefetch::prefetch;
use shm::ring::{MESSAGE_WORDS, Message, spsc};
use shm::sync::Ordering;
use std::hint::black_box;

/// Words per slot, the last of which is the sequence.
const SLOT: usize = MESSAGE_WORDS + 1;
/// Words before the slots: the head, in cache lines of its own.
const HEAD_WORDS: usize = 16;

/// Number of hand-offs per row, each in its own memory.
const PLACES: usize = 8;

/// The head is not used.
const NO_HEAD: u8 = 0;
/// The consumer stores the head at each pop; it is never read.
const STORED: u8 = 1;
/// The consumer stores the head, and the producer reads it before each push.
const READ: u8 = 2;

/// An end of one direction. `WORDS` words of each message are written and read; `SLOTS` slots are
/// used in turn; `HEAD` is one of the above; with `AHEAD` the producer prefetches its next slot
/// after a push.
struct End<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool> {
    words: AtomicWords,
    position: u64,
}

impl<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool>
    End<WORDS, SLOTS, HEAD, AHEAD>
{
    /// Makes both ends of one direction.
    fn pair() -> (Self, Self) {
        let words = Region::heap(HEAD_WORDS + SLOTS * SLOT).words();
        (Self { words: words.clone(), position: 0 }, Self { words, position: 0 })
    }

    /// Returns the offset of the next message's slot.
    #[inline(always)]
    fn start(&self) -> usize {
        HEAD_WORDS + self.position as usize % SLOTS * SLOT
    }
}

impl<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool> Push
    for End<WORDS, SLOTS, HEAD, AHEAD>
{
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        if HEAD == READ {
            // The result is ignored: only one message is in flight.
            black_box(self.words[0].load(Ordering::Acquire));
        }
        let start = self.start();
        let slot = &self.words[start..start + SLOT];
        for (word, value) in slot[..WORDS].iter().zip(message) {
            word.store(*value, Ordering::Relaxed);
        }
        self.position += 1;
        // Release: pairs with the load in `pop`.
        slot[MESSAGE_WORDS].store(self.position, Ordering::Release);
        if AHEAD {
            prefetch(&self.words[self.start()]);
        }
        true
    }
}

impl<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool> Pop
    for End<WORDS, SLOTS, HEAD, AHEAD>
{
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        let start = self.start();
        let slot = &self.words[start..start + SLOT];
        // Acquire: pairs with the store in `try_send`.
        if slot[MESSAGE_WORDS].load(Ordering::Acquire) != self.position + 1 {
            return None;
        }
        // All words of these messages are equal.
        let message: Message = core::array::from_fn(|word| slot[word % WORDS].load(Ordering::Relaxed));
        self.position += 1;
        if HEAD != NO_HEAD {
            // Release: as in a ring.
            self.words[0].store(self.position, Ordering::Release);
        }
        Some(message)
    }
}

/// Makes a number of round trips, and returns the nanoseconds of each.
type Trips = Box<dyn FnMut(&Peer, Step, u64) -> f64>;

/// The round trips of one kind of hand-off.
struct Row {
    what: &'static str,
    trips: Vec<Trips>,
    over: Vec<f64>,
    dropped: usize,
}

impl Row {
    fn new<P: Push, C: Pop>(what: &'static str, parts: &mut Vec<Part>, pair: impl Fn() -> (P, C)) -> Self {
        let trips = (0..PLACES).map(|_| -> Trips {
            let mut contestant = Contestant::new(parts, pair(), pair());
            Box::new(move |peer, step, rounds| contestant.trips(peer, step, rounds))
        });
        Self { what, trips: trips.collect(), over: Vec::new(), dropped: 0 }
    }
}

/// Measures all rows, alternated.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, rounds) = options.effort(64, 500, 10_000);
    let parts = &mut Vec::new();
    let mut rows = [
        Row::new("a line each way, one word and its sequence", parts, End::<1, 1, NO_HEAD, false>::pair),
        Row::new("seven words and their sequence", parts, End::<7, 1, NO_HEAD, false>::pair),
        Row::new("… and the head is stored", parts, End::<7, 1, STORED, false>::pair),
        Row::new("… and read at each push", parts, End::<7, 1, READ, false>::pair),
        Row::new("the head is stored, 2 slots", parts, End::<7, 2, STORED, false>::pair),
        Row::new("… 64 slots", parts, End::<7, 64, STORED, false>::pair),
        Row::new("… 1,024 slots", parts, End::<7, 1024, STORED, false>::pair),
        Row::new("… 1,024 slots, the next one asked for ahead", parts, End::<7, 1024, STORED, true>::pair),
        Row::new("the ring, 1,024 slots", parts, || spsc::heap_ring::<MESSAGE_WORDS>(1024)),
    ];
    let (there, back) = BouncedLine::ends();
    let mut line = Contestant::new(parts, there, back);
    // Before this thread is pinned: the peer is pinned to another core.
    let peer = Peer::start(options.cores.1, std::mem::take(parts));
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let mut table = |step, title, name: &str, unit| {
        let mut yardsticks = Vec::new();
        let mut yardstick = || match step {
            Step::In => peer.floor(rounds),
            Step::Out => line.trips(&peer, step, rounds),
        };
        for sample in 0..samples {
            for Row { trips, over, dropped, .. } in &mut rows {
                let trips = &mut trips[sample % PLACES];
                match between(&mut yardstick, || trips(&peer, step, rounds)) {
                    Some((yardstick, ns)) => {
                        yardsticks.push(yardstick);
                        over.push(ns / yardstick);
                    }
                    None => *dropped += 1,
                }
            }
        }
        let first = FigureRow::new(name, "ns", yardsticks, Goal::None);
        let rows = rows.iter_mut().map(|Row { what, over, dropped, .. }| {
            FigureRow::new(*what, unit, std::mem::take(over), Goal::None).dropped(std::mem::take(dropped))
        });
        report.add(title, std::iter::once(first).chain(rows).collect());
    };
    table(Step::In, "Round trip by what moves, threads", "the floor: one line there and back", "× floor");
    table(
        Step::Out,
        "Round trip by what moves, out of step, threads",
        "one line there and back",
        "× the line",
    );
}
