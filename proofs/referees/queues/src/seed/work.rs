//! A round: one thread writes when a write is due, the others poll the version and read each newer
//! value that they see.

use crate::figures::{Calls, Figures};
use shm::sync::{AtomicU64, Ordering};
use std::hint::{black_box, spin_loop};
use system::clock::{Clock, Monotonic};
use system::pin;

pub const WORDS: usize = 12;
/// Two quotes of the document have 96 bytes.
pub type Value = [u64; WORDS];
/// Writes a second where they are paced.
const RATE: f64 = 10_000.0;
/// First calls of each end that are not recorded: they map files and touch memory.
const WARM_UP: u64 = 64;
/// Shape of the Pareto distribution, as of `launcher board`.
const SHAPE: f64 = 1.5;

#[derive(Clone, Copy, PartialEq)]
pub enum Load {
    Poisson,
    Pareto,
    Stress,
}

impl Load {
    pub const ALL: [Self; 3] = [Self::Poisson, Self::Pareto, Self::Stress];

    pub fn name(self) -> &'static str {
        ["poisson", "pareto", "stress"][self as usize]
    }

    /// Draws the gap before the next write, in nanoseconds, from a number above 0 and at most 1.
    fn gap(self, unit: f64) -> f64 {
        let mean = 1e9 / RATE;
        match self {
            Self::Poisson => -unit.ln() * mean,
            Self::Pareto => mean * (SHAPE - 1.0) / SHAPE / unit.powf(1.0 / SHAPE),
            Self::Stress => 0.0,
        }
    }
}

pub struct Setup {
    pub load: Load,
    pub readers: usize,
    pub ns: u64,
}

impl Setup {
    /// Runs a round: `write` publishes a value, `is_newer` says whether the version has changed since
    /// it was last asked, and `read` copies the newest value.
    pub fn run<R: Send>(
        &self,
        mut write: impl FnMut(&Value) + Send,
        readers: Vec<R>,
        is_newer: impl Fn(&mut R) -> bool + Copy + Send,
        read: impl Fn(&mut R, &mut Value) + Copy + Send,
    ) -> Figures {
        let over = AtomicU64::new(0);
        let shares_cores = self.readers + 1 > pin::allowed_cores().len();
        let mut all = Figures { writes: Calls::after(0), reads: Calls::after(0), ns: self.ns };
        std::thread::scope(|scope| {
            let over = &over;
            let mut running = Vec::new();
            for (number, mut end) in (1..).zip(readers) {
                running.push(scope.spawn(move || {
                    place(number);
                    let (mut calls, mut into) = (Calls::after(WARM_UP), Value::default());
                    while over.load(Ordering::Relaxed) == 0 {
                        if is_newer(&mut end) {
                            let begin = Monotonic.now();
                            read(&mut end, black_box(&mut into));
                            calls.record(Monotonic.now() - begin);
                        } else if shares_cores {
                            std::thread::yield_now();
                        } else {
                            spin_loop();
                        }
                    }
                    calls
                }));
            }
            // A thread of its own: the caller, which starts the next round's threads, stays unpinned.
            let writing = scope.spawn(move || {
                place(0);
                let mut calls = Calls::after(WARM_UP);
                let mut random = 0x9E37_79B9_7F4A_7C15_u64;
                let (mut value, start) = (Value::default(), Monotonic.now());
                let mut due = start as f64;
                loop {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    due += self.load.gap(((random >> 11) + 1) as f64 / (1_u64 << 53) as f64);
                    while (Monotonic.now() as f64) < due && due < (start + self.ns) as f64 {
                        spin_loop();
                    }
                    let begin = Monotonic.now();
                    if begin >= start + self.ns {
                        break;
                    }
                    value = value.map(|word| word + 1);
                    value[1] = begin;
                    write(black_box(&value));
                    calls.record(Monotonic.now() - begin);
                }
                (calls, Monotonic.now() - start)
            });
            (all.writes, all.ns) = writing.join().expect("it does not panic");
            over.store(1, Ordering::Relaxed);
            running.into_iter().for_each(|reader| all.reads.add(&reader.join().expect("it does not panic")));
        });
        all
    }
}

/// Pins the writer (0) to the first core, and the readers to the others in turn.
fn place(number: usize) {
    let cores = pin::allowed_cores();
    let core = match cores.as_slice() {
        [] => None,
        [only] => Some(*only),
        [first, rest @ ..] => Some(if number == 0 { *first } else { rest[(number - 1) % rest.len()] }),
    };
    let _ = core.map(pin::pin_to);
}
