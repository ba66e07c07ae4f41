//! Which line moves when: round trips through hand-offs that are put together piece by piece, from
//! one line each way to a ring.
//!
//! Two threads on two cores, one message on its way. Each row has one thing more than the one
//! before: in step in floors, each beside floors of its own, and out of step (see `trip.rs`) beside
//! one line that the same loops bounce; samples whose floors or lines differ by more than a tenth
//! are dropped. Where in memory a hand-off lies makes a difference too: each row has several, in
//! turn. Honest peers only, on the heap, nothing proved.

use crate::Options;
use crate::pair::{Contestant, Part, Peer, Pop, Push, between};
use crate::report::{BenchReport, FigureRow, Goal};
use crate::trip::{Line, Step};
use shm::memory::{AtomicWords, Region};
use shm::prefetch::prefetch;
use shm::ring::{MESSAGE_WORDS, Message, spsc};
use shm::sync::Ordering;
use std::hint::black_box;

/// Words of a slot, and where its sequence is.
const SLOT: usize = MESSAGE_WORDS + 1;
/// Words before the slots: the head, in lines of its own.
const HEAD_WORDS: usize = 16;

/// Hand-offs of each row, each in memory of its own.
const PLACES: usize = 8;

/// What becomes of the head's line.
const NO_HEAD: u8 = 0;
/// The consumer stores it at each pop; nobody reads it.
const STORED: u8 = 1;
/// And the producer reads it before each push.
const READ: u8 = 2;

/// An end of one way. Of each message `WORDS` are written and read; `SLOTS` are used in turn;
/// `HEAD` is one of the above; `AHEAD`: the producer asks for its next slot when it has pushed.
struct End<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool> {
    words: AtomicWords,
    position: u64,
}

impl<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool>
    End<WORDS, SLOTS, HEAD, AHEAD>
{
    /// Both ends of a way.
    fn pair() -> (Self, Self) {
        let words = Region::heap(HEAD_WORDS + SLOTS * SLOT).words();
        (Self { words: words.clone(), position: 0 }, Self { words, position: 0 })
    }

    /// Where the next message's slot begins.
    #[inline(always)]
    fn start(&self) -> usize {
        HEAD_WORDS + self.position as usize % SLOTS * SLOT
    }
}

impl<const WORDS: usize, const SLOTS: usize, const HEAD: u8, const AHEAD: bool> Push
    for End<WORDS, SLOTS, HEAD, AHEAD>
{
    #[inline(always)]
    fn push(&mut self, message: &Message) -> bool {
        if HEAD == READ {
            // There is room: one message is on its way.
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
        // Acquire: pairs with the store in `push`.
        if slot[MESSAGE_WORDS].load(Ordering::Acquire) != self.position + 1 {
            return None;
        }
        // All words of these messages are the same.
        let message: Message = core::array::from_fn(|word| slot[word % WORDS].load(Ordering::Relaxed));
        self.position += 1;
        if HEAD != NO_HEAD {
            // Release: as a ring's.
            self.words[0].store(self.position, Ordering::Release);
        }
        Some(message)
    }
}

/// Makes so many round trips; nanoseconds each.
type Trips = Box<dyn FnMut(&Peer, Step, u64) -> f64>;

/// A row: round trips of one kind.
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

/// Measures all of them in turn.
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
    let (there, back) = Line::ends();
    let mut line = Contestant::new(parts, there, back);
    // Before this thread is pinned: that one goes elsewhere.
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
