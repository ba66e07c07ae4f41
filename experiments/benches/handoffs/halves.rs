//! The cost of one narrow field: a stream through a ring whose pop has an error with a 32-bit
//! field, compared with the actual ring.
//!
//! `Result<Option<Message>, E>` is a union of a message and an error. If a field of the error is
//! half a word, the compiler moves the overlapping word of the message in two halves. A load of the
//! whole word then waits until both halves, and all earlier stores, have left the CPU's store
//! buffer (Intel's and AMD's optimization manuals: a load of several stores is not forwarded).
//! `.ci/halves.sh` checks the instructions of these loops for that.

use crate::Options;
use crate::pair::{Contestant, Pop, start_peer};
use crate::report::{BenchReport, FigureRow, Goal};
use shm::ring::{MESSAGE_WORDS, Message, PeerFault, spsc};

/// An error like the former `PeerFault`, with a field of half a word.
#[derive(Debug)]
#[expect(dead_code, reason = "read by `Debug` alone")]
enum Halved {
    Sequence { found: u64, position: u64 },
    Stranger { pid: u32 },
}

/// An error like the current `PeerFault`, with fields of whole words.
#[derive(Debug)]
#[expect(dead_code, reason = "read by `Debug` alone")]
enum Whole {
    Sequence { found: u64, position: u64 },
    Stranger { pid: u64 },
}

macro_rules! receiver {
    ($receiver:ident, $error:ident) => {
        struct $receiver(spsc::Consumer);

        impl $receiver {
            /// Not inlined, so that the compiler cannot see which error it is.
            #[cold]
            #[inline(never)]
            fn error(fault: PeerFault) -> $error {
                match fault {
                    PeerFault::InvalidSequence { found, position } => $error::Sequence { found, position },
                    _ => $error::Stranger { pid: std::process::id().into() },
                }
            }

            #[inline(always)]
            fn try_pop(&mut self) -> Result<Option<Message>, $error> {
                // Written like the ring's own `try_pop`.
                let mut fault = None;
                let message = self.0.try_pop().unwrap_or_else(|found| {
                    fault = Some(Self::error(found));
                    None
                });
                fault.map_or(Ok(message), Err)
            }
        }

        impl Pop for $receiver {
            #[inline(always)]
            fn pop(&mut self) -> Option<Message> {
                self.try_pop().expect("an honest peer")
            }
        }
    };
}

receiver!(WholeReceiver, Whole);
receiver!(HalvedReceiver, Halved);

/// Adds to the report the cost of a narrow error field in a ring's pop.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, count) = options.effort(31, 5_000, 1 << 18);
    let mut parts = Vec::new();
    let ring = || spsc::heap_ring::<MESSAGE_WORDS>(options.capacity);
    fn received<C: Pop>(
        (producer, consumer): (spsc::Producer, spsc::Consumer),
        by: fn(spsc::Consumer) -> C,
    ) -> (spsc::Producer, C) {
        (producer, by(consumer))
    }
    let mut whole =
        Contestant::new(&mut parts, received(ring(), WholeReceiver), received(ring(), WholeReceiver));
    let mut halved =
        Contestant::new(&mut parts, received(ring(), HalvedReceiver), received(ring(), HalvedReceiver));
    let peer = start_peer(options.cores.1, parts);
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..samples {
        rates[0].push(whole.stream::<false>(&peer, count));
        rates[1].push(halved.stream::<false>(&peer, count));
    }
    let [whole, halved] = rates;
    let ratio = whole.iter().zip(&halved).map(|(whole, halved)| halved / whole).collect();
    report.add(
        &format!("Stream one by one, {} slots, by the errors of a pop", options.capacity),
        vec![
            FigureRow::new("errors of words", "M/s", whole, Goal::None),
            FigureRow::new("one of them has half a word", "M/s", halved, Goal::None),
            FigureRow::new("", "× errors of words", ratio, Goal::None),
        ],
    );
}
