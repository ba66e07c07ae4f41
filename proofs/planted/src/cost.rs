//! The costs that can be planted.

use memmap2::MmapMut;
use std::hint::black_box;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A cost of one order, paid before the order is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The CPU works for some nanoseconds.
    Spend {
        /// Nanoseconds for each order.
        ns: u64,
    },
    /// A minor page fault: a fresh page is mapped and touched.
    Fault,
    /// A voluntary context switch: the thread sleeps for [`NAP`].
    Switch,
    /// A pause of [`STALL`], of each [`STALL_EVERY`]th order only.
    Stall,
}

impl Cost {
    /// Reads the name of a cost: `spend-50`, `fault`, `switch`, `stall`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "fault" => Some(Self::Fault),
            "switch" => Some(Self::Switch),
            "stall" => Some(Self::Stall),
            _ => Some(Self::Spend { ns: text.strip_prefix("spend-")?.parse().ok()? }),
        }
    }
}

/// The time of a planted sleep: so long that the thread gives its core away first.
const NAP: Duration = Duration::from_micros(50);
/// The length of a planted stall.
const STALL: Duration = Duration::from_millis(2);
/// Orders from one planted stall to the next.
const STALL_EVERY: u64 = 50;

/// Bytes of a page that is touched.
const PAGE: usize = 4096;
/// Samples of the work, and its steps in a sample.
const SAMPLES: usize = 200;
const SAMPLE_STEPS: u64 = 10_000;

/// A chosen extra cost of each of a strategy's orders, such as a page fault or some CPU time.
pub struct Payment {
    cost: Cost,
    /// Steps of work for each order.
    steps: u64,
    orders: u64,
}

/// Works for a number of steps, each of which needs the one before.
fn work(steps: u64) {
    let mut value = 1u64;
    for step in 0..steps {
        value = black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ step);
    }
    black_box(value);
}

/// Returns the steps of work that take `ns` nanoseconds when nothing disturbs them.
fn steps_for(ns: u64) -> u64 {
    let sample = |_| {
        let begin = Instant::now();
        work(black_box(SAMPLE_STEPS));
        begin.elapsed().as_nanos().max(1)
    };
    let shortest = (0..SAMPLES).map(sample).min().unwrap_or(1);
    (u128::from(ns * SAMPLE_STEPS) / shortest).max(1) as u64
}

impl Payment {
    /// Prepares a cost: measures how fast this core works.
    pub fn new(cost: Cost) -> Self {
        let steps = if let Cost::Spend { ns } = cost { steps_for(ns) } else { 0 };
        Self { cost, steps, orders: 0 }
    }

    /// Pays the cost of one order.
    pub fn pay(&mut self) {
        self.orders += 1;
        match self.cost {
            Cost::Spend { .. } => work(self.steps),
            Cost::Fault => {
                let mut page = MmapMut::map_anon(PAGE).expect("a page can be mapped");
                page[0] = black_box(1);
            }
            Cost::Switch => sleep(NAP),
            Cost::Stall if self.orders.is_multiple_of(STALL_EVERY) => sleep(STALL),
            Cost::Stall => {}
        }
    }
}
