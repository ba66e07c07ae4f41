//! A technique that is slower by a known time, which `compare` must be able to detect.

use core::hint::black_box;
use core::ops::ControlFlow;
use launcher::protocol::trading::SUBMIT;
use launcher::shm::attached::Attached;
use launcher::shm::memory::RegionError;
use launcher::shm::ring::spsc_mux::{Mux, SpscMux, SpscMuxProducer};
use launcher::shm::ring::{Full, Home, Link, LinkSpec, Message, Producer, SegmentSpec, Step, TechniqueInfo};
use std::time::Instant;

/// How much longer a push of an order takes, in nanoseconds.
const DELAY_NS: f64 = 50.0;
/// Rounds of the loop that is timed, and how often.
const ROUNDS: u32 = 20_000;
const TRIALS: u32 = 50;

/// The technique (kind of queue) `slow-mux`: `spsc-mux` with a delay of 50 ns before each push of
/// an order by a strategy. Pushes of completions, from gateways to the engine, are not delayed.
pub struct SlowMux;

/// The producer of `slow-mux`: a ring of `spsc-mux`, and the number of loop rounds that delay each
/// push.
pub struct SlowSender {
    ring: SpscMuxProducer,
    rounds: u32,
}

/// A chain of dependent steps in registers: it takes the same time cold and warm.
#[inline(always)]
fn wait(rounds: u32) {
    let mut x = 1_u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(0x5851_F42D_4C95_7F2D));
    }
}

/// Rounds that take the delay. The shortest of many trials is one that nothing has interrupted.
fn rounds() -> u32 {
    let trial = |_| {
        let began = Instant::now();
        wait(ROUNDS);
        began.elapsed()
    };
    let shortest = (0..TRIALS).map(trial).min().unwrap_or_default();
    (DELAY_NS * f64::from(ROUNDS) / shortest.as_nanos().max(1) as f64) as u32
}

impl Producer for SlowSender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        wait(self.rounds);
        self.ring.try_push_with(message, at)
    }
}

impl Link for SlowMux {
    // Each producer has a ring of its own (`apart`); a push has the steps of `spsc-mux`.
    const INFO: TechniqueInfo = TechniqueInfo { name: "slow-mux", ..TechniqueInfo::new("", Home::Memory) }
        .steps(SpscMux::INFO.steps)
        .apart();

    type Producer = SlowSender;
    type Consumer = Mux;

    fn segments(spec: &LinkSpec<'_>) -> Vec<SegmentSpec> {
        SpscMux::segments(spec)
    }

    fn producer(
        spec: &LinkSpec<'_>,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<SlowSender, RegionError> {
        let rounds = if spec.name == SUBMIT { rounds() } else { 0 };
        Ok(SlowSender { ring: SpscMux::producer(spec, index, attached)?, rounds })
    }

    fn consumer(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Mux, RegionError> {
        SpscMux::consumer(spec, attached)
    }
}
