//! `cargo bench -p gateway --bench timer_wheel [-- --quick]`: what an order costs a venue that
//! holds it until its time, in the timing wheel (`gateway::TimerWheel`) and in the heap that it
//! replaced, alternating on the same core.
//!
//! The hold model: a number of orders are held; the earliest is taken when its time comes and
//! another one is put in its place, so that the number stays. One step is one pop and one push.
//! Nanoseconds a step: median and quartiles of the samples; the ratio is taken sample by sample.
//! With `count NAME HELD STEPS` it only does the steps, for callgrind.
#![forbid(unsafe_code)]

mod heap;

use gateway::TimerWheel;
use heap::Heap;
use protocol::wire::{MESSAGE_WORDS, Message};
use std::hint::black_box;
use std::time::Instant;

/// Ticks in a microsecond: a counter of 3 GHz.
const US: u64 = 3_000;

/// Delays in ticks.
#[derive(Clone, Copy)]
struct Delays {
    name: &'static str,
    least: u64,
    max: u64,
}

const DELAYS: [Delays; 3] = [
    Delays { name: "5-500 ms", least: 5_000 * US, max: 500_000 * US },
    Delays { name: "1-50 us", least: US, max: 50 * US },
    Delays { name: "5 ms each", least: 5_000 * US, max: 5_000 * US },
];

const HELD: [usize; 4] = [10, 1_000, 100_000, 1_000_000];

trait Holds {
    fn with_capacity(capacity: usize) -> Self;
    fn push(&mut self, release: u64, order: Message);
    fn pop_due(&mut self, now: u64) -> Option<Message>;
    fn next_release(&self) -> u64;
}

macro_rules! holds {
    ($($held:ident),+) => {$(
        impl Holds for $held<Message> {
            fn with_capacity(capacity: usize) -> Self {
                $held::with_capacity(capacity)
            }
            #[inline]
            fn push(&mut self, release: u64, order: Message) {
                $held::push(self, release, order);
            }
            #[inline]
            fn pop_due(&mut self, now: u64) -> Option<Message> {
                $held::pop_due(self, now)
            }
            #[inline]
            fn next_release(&self) -> u64 {
                $held::next_release(self)
            }
        }
    )+};
}

holds!(TimerWheel, Heap);

/// One of them in the hold model.
struct Model<H> {
    held: H,
    now: u64,
    random: u64,
    delays: Delays,
    sum: u64,
}

impl<H: Holds> Model<H> {
    fn new(held: usize, delays: Delays) -> Self {
        // As many as in use: a plan's capacity is larger, and its entries are used from the first
        // one on.
        let mut model =
            Self { held: H::with_capacity(held + held / 2), now: 1 << 40, random: 1, delays, sum: 0 };
        for n in 0..held as u64 {
            // As if they had come one after the other.
            let release = model.now + model.delay() * (n + 1) / held as u64 + delays.least / 2;
            model.held.push(release, [n; MESSAGE_WORDS]);
        }
        model.steps(2 * held as u64);
        model
    }

    fn delay(&mut self) -> u64 {
        // xorshift64*.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let random = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D);
        let span = self.delays.max - self.delays.least + 1;
        self.delays.least + ((u128::from(random) * u128::from(span)) >> 64) as u64
    }

    fn steps(&mut self, steps: u64) {
        for _ in 0..steps {
            let order = loop {
                match self.held.pop_due(self.now) {
                    Some(order) => break order,
                    None => self.now = self.now.max(self.held.next_release()),
                }
            };
            self.sum = self.sum.wrapping_add(order[0] ^ order[MESSAGE_WORDS - 1]);
            let release = self.now + self.delay();
            self.held.push(release, order);
        }
    }

    /// Nanoseconds a step.
    fn sample(&mut self, steps: u64) -> f64 {
        let start = Instant::now();
        self.steps(steps);
        black_box(self.sum);
        start.elapsed().as_nanos() as f64 / steps as f64
    }
}

fn quartiles(mut samples: Vec<f64>) -> String {
    samples.sort_by(f64::total_cmp);
    let at = |share: usize| samples[(samples.len() - 1) * share / 4];
    format!("{:.1} ({:.1}-{:.1})", at(2), at(1), at(3))
}

fn compare(held: usize, delays: Delays, samples: usize, steps: u64) {
    let (mut wheel, mut heap) =
        (Model::<TimerWheel<_>>::new(held, delays), Model::<Heap<_>>::new(held, delays));
    let pairs: Vec<(f64, f64)> = (0..samples).map(|_| (wheel.sample(steps), heap.sample(steps))).collect();
    println!(
        "{held:>9} {:>10}   {:>22} {:>22} {:>22}",
        delays.name,
        quartiles(pairs.iter().map(|pair| pair.0).collect()),
        quartiles(pairs.iter().map(|pair| pair.1).collect()),
        quartiles(pairs.iter().map(|pair| pair.1 / pair.0).collect()),
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--b")).collect();
    if let [count, name, held, steps] = &args[..]
        && count == "count"
    {
        let (held, steps) = (held.parse().expect("a number"), steps.parse().expect("a number"));
        match name.as_str() {
            "wheel" => Model::<TimerWheel<_>>::new(held, DELAYS[0]).steps(steps),
            _ => Model::<Heap<_>>::new(held, DELAYS[0]).steps(steps),
        }
        return;
    }
    let is_quick = !std::env::args().any(|arg| arg == "--bench") || args.iter().any(|arg| arg == "--quick");
    println!(
        "{:>9} {:>10}   {:>22} {:>22} {:>22}",
        "held", "delays", "wheel, ns", "heap, ns", "heap / wheel"
    );
    for held in HELD {
        for delays in DELAYS {
            let (samples, steps) = if is_quick { (3, 1_000) } else { (21, 200_000) };
            if !is_quick || held < 1_000_000 {
                compare(held, delays, samples, steps);
            }
        }
    }
}
