//! Measures the cost of a ring's crash protection, compared with the ring without it, on one
//! thread.
//!
//! The protection of the rings that several write is the announcement before the claim
//! ([`shm::ring::intent`]). `spsc-mux` needs none: no other end waits for an unfinished push of a
//! producer.

use analysis::experiment::ProtectionCost;
use planner::host::signals::is_end_requested;
use protocol::wire::MESSAGE_WORDS;
use shm::memory::Region;
use shm::ring::array_queue::{self, Consumer, Producer};
use shm::ring::{SharedQueue, intent};
use std::hint::black_box;
use system::clock::{Clock, Monotonic};

/// Slots of the ring: as many as a run's by default.
const CAPACITY: usize = 8192;
/// Samples of each, and messages in a sample.
const SAMPLES: usize = 101;
const COUNT: u64 = 20_000;

/// One sample on a fresh ring: nanoseconds a message.
fn sample<const PROTECTED: bool>() -> f64 {
    let ring = Region::heap(array_queue::ring_words(CAPACITY, MESSAGE_WORDS)).words();
    array_queue::write_header::<MESSAGE_WORDS>(&ring, CAPACITY);
    let announced = Region::heap(intent::INTENT_WORDS).words();
    intent::write_header(&announced, 0);
    let producer = Producer::<MESSAGE_WORDS, PROTECTED>::attach(&ring, &announced);
    let mut producer = producer.expect("a fresh ring has good headers");
    let mut consumer: Consumer =
        Consumer::attach(&ring, vec![announced]).expect("a fresh ring has good headers");
    let start = Monotonic.now();
    for n in 0..COUNT {
        let pushed = producer.try_push(&black_box([n; MESSAGE_WORDS]));
        let taken = consumer.try_pop();
        assert!(pushed.is_ok() && matches!(black_box(taken), Ok(Some(_))), "room for one");
    }
    (Monotonic.now() - start) as f64 / COUNT as f64
}

/// Measures the time in nanoseconds per message of an `array-queue` ring with and without crash
/// protection, alternated A B A B. Returns `None` if a termination signal came.
pub fn measure() -> Option<ProtectionCost> {
    let (mut bare, mut protected, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        if is_end_requested() {
            return None;
        }
        let (without, with) = (sample::<false>(), sample::<true>());
        bare.push(without);
        protected.push(with);
        ratios.push(with / without);
    }
    let median = |values: &[f64]| analysis::stats::median(values).unwrap_or(f64::NAN);
    let ratio = median(&ratios);
    ratios.sort_by(f64::total_cmp);
    let ratio_middle = Some((ratios[SAMPLES / 4], ratios[SAMPLES - 1 - SAMPLES / 4]));
    Some(ProtectionCost { bare_ns: median(&bare), protected_ns: median(&protected), ratio, ratio_middle })
}
