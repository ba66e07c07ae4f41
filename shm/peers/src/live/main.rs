//! The board beside crates that publish to many, under the same load: one thread writes when a write is due, others poll. Every value
//! says which write it is of and when that began, so lateness, propagation, misses and tears are measured the same way for all.
//!
//! `cargo run --release --bin live [READERS] [MILLISECONDS] [NAMES …]` in this folder. The writer has the first core, readers the others.

mod peers;

use hdrhistogram::Histogram;
use peers::{Board, Disruptor, LeftRight, MmapSync, Peer, Sequence, Shaq, Value, WORDS};
use shm::clock::{Clock, Monotonic};
use shm::os::pin;
use shm::sync::{AtomicU64, Ordering};
use std::path::Path;
use std::sync::Barrier;

/// Writes a second where they are paced.
const RATE: f64 = 10_000.0;
/// Words differ by this.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Rounds: each begins with another one.
const ROUNDS: usize = 3;

/// What one of them did.
struct Figures {
    write: Histogram<u64>,
    from_due: Histogram<u64>,
    propagation: Histogram<u64>,
    writes: u64,
    reads: u64,
    missed: u64,
    torn: u64,
    seconds: f64,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1 << 40, 3).expect("bounds")
}

impl Figures {
    fn new() -> Self {
        let [write, from_due, propagation] = std::array::from_fn(|_| histogram());
        Self { write, from_due, propagation, writes: 0, reads: 0, missed: 0, torn: 0, seconds: 0.0 }
    }

    fn add(&mut self, other: &Self) {
        for (mine, other) in [
            (&mut self.write, &other.write),
            (&mut self.from_due, &other.from_due),
            (&mut self.propagation, &other.propagation),
        ] {
            mine.add(other).expect("the same bounds");
        }
        self.writes += other.writes;
        self.reads += other.reads;
        self.missed += other.missed;
        self.torn += other.torn;
        self.seconds += other.seconds;
    }

    fn print(&self, name: &str) {
        let at = |histogram: &Histogram<u64>| {
            let at = |share| histogram.value_at_quantile(share);
            format!("{:>6} {:>8} {:>9} {:>10}", at(0.5), at(0.99), at(0.999), histogram.max())
        };
        println!(
            "{name:<11} {} | {:>6} {:>8} {:>9} | {:>9.0} {:>5.1} {:>5}",
            at(&self.write),
            self.propagation.value_at_quantile(0.5),
            self.propagation.value_at_quantile(0.99),
            self.propagation.value_at_quantile(0.999),
            self.writes as f64 / self.seconds,
            100.0 * self.missed as f64 / (self.missed + self.reads).max(1) as f64,
            self.torn,
        );
    }
}

/// When each write is due, in nanoseconds; the same for all. Empty: nothing is due.
fn due(paced: bool, ns: u64) -> Vec<u64> {
    let (mut state, mut now, mut times) = (STEP, 0.0, Vec::new());
    while paced && now < ns as f64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = ((state >> 11) + 1) as f64 / (1u64 << 53) as f64;
        now -= unit.ln() * 1e9 / RATE;
        times.push(now as u64);
    }
    times
}

fn value(number: u64, ns: u64) -> Value {
    let mut value = [number; WORDS];
    value[1] = ns;
    for (place, word) in value.iter_mut().enumerate().skip(2) {
        *word = (number ^ ns).wrapping_mul(STEP).wrapping_add(place as u64);
    }
    value
}

fn run<P: Peer>(readers: usize, ns: u64, due: &[u64], folder: &Path) -> Figures {
    let (mut writer, ends) = P::make(readers, folder);
    let (barrier, over, cores) = (Barrier::new(readers + 1), AtomicU64::new(0), pin::allowed_cores());
    let core = |place: usize| match cores.as_slice() {
        [] => None,
        [only] => Some(*only),
        [first, rest @ ..] => Some(if place == 0 { *first } else { rest[(place - 1) % rest.len()] }),
    };
    let shared = readers + 1 > cores.len();
    let mut all = Figures::new();
    std::thread::scope(|scope| {
        let reading: Vec<_> = ends
            .into_iter()
            .enumerate()
            .map(|(place, mut end)| {
                let (barrier, over, core) = (&barrier, &over, core(place + 1));
                scope.spawn(move || {
                    let _ = core.map(pin::pin_to);
                    let (mut mine, mut into, mut last) = (Figures::new(), [0; WORDS], 0);
                    barrier.wait();
                    loop {
                        let was_over = over.load(Ordering::Acquire) != 0;
                        let found = P::read(&mut end, &mut into);
                        let got = Monotonic.now();
                        if found && into[0] != last && into[0] != 0 {
                            mine.reads += 1;
                            mine.torn += u64::from(into != value(into[0], into[1]) || into[0] < last);
                            mine.missed += into[0].saturating_sub(last + 1);
                            last = into[0];
                            mine.propagation.saturating_record(got.saturating_sub(into[1]).max(1));
                        } else if was_over {
                            break mine;
                        } else if shared {
                            std::thread::yield_now();
                        } else {
                            std::hint::spin_loop();
                        }
                    }
                })
            })
            .collect();
        let writing = scope.spawn(|| {
            let _ = core(0).map(pin::pin_to);
            let mut mine = Figures::new();
            barrier.wait();
            let start = Monotonic.now();
            loop {
                let wanted = match due.get(mine.writes as usize) {
                    Some(due) => start + due,
                    None if due.is_empty() => start,
                    None => break,
                };
                while Monotonic.now() < wanted {
                    std::hint::spin_loop();
                }
                let begin = Monotonic.now();
                if begin > start + 2 * ns || (due.is_empty() && begin > start + ns) {
                    break;
                }
                mine.writes += 1;
                P::write(&mut writer, &value(mine.writes, begin));
                let done = Monotonic.now();
                mine.write.saturating_record((done - begin).max(1));
                mine.from_due.saturating_record((done - wanted).max(1));
            }
            mine.seconds = (Monotonic.now() - start) as f64 / 1e9;
            over.store(1, Ordering::Release);
            mine
        });
        all.add(&writing.join().expect("it does not panic"));
        reading.into_iter().for_each(|reader| all.add(&reader.join().expect("it does not panic")));
    });
    all
}

type Run = fn(usize, u64, &[u64], &Path) -> Figures;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: u64| words.next().map_or(usual, |text| text.parse().expect("a number"));
    let readers = number(1).clamp(1, 64) as usize;
    let ns = number(500) * 1_000_000;
    let wanted: Vec<String> = words.collect();
    let folder = std::path::PathBuf::from(format!("/dev/shm/bulkhead-peers-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of its own");
    let contenders: Vec<(&str, Run)> = [
        (Board::NAME, run::<Board> as Run),
        (Sequence::NAME, run::<Sequence>),
        (LeftRight::NAME, run::<LeftRight>),
        (MmapSync::NAME, run::<MmapSync>),
        (Disruptor::NAME, run::<Disruptor>),
        (Shaq::NAME, run::<Shaq>),
    ]
    .into_iter()
    .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))
    .collect();
    println!(
        "{readers} readers, values of {} bytes, {ROUNDS} rounds of {} ms each; threads of one process; nanoseconds.",
        WORDS * 8,
        ns / 1_000_000
    );
    for (name, paced) in [("Poisson, 10,000 writes/s", true), ("stress: as fast as it goes", false)] {
        let due = due(paced, ns);
        let mut all: Vec<Figures> = contenders.iter().map(|_| Figures::new()).collect();
        for round in 0..ROUNDS {
            for place in 0..contenders.len() {
                let place = (place + round) % contenders.len();
                all[place].add(&contenders[place].1(readers, ns, &due, &folder));
            }
        }
        println!("\n{name}");
        println!(
            "            write p50      p99     p99.9        max | propag.     p99     p99.9 |  writes/s  miss%  torn"
        );
        for ((name, _), figures) in contenders.iter().zip(&all) {
            figures.print(name);
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
