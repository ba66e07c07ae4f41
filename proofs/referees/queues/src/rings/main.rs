//! Compares bulkhead's ring with other crates: round trips of a message, and a stream of messages,
//! between two threads on two cores.
//!
//! `cargo run --release --bin rings [SAMPLES [CORE CORE]]` in this folder. Every queue has 64,
//! 1,024 and 8,192 places, and those that take any type have the message both packed and in a line
//! of its own. They take turns, sample by sample (A B C D, A B C D, …); a floor, one line that the
//! two cores bounce, is measured before and after every sample, and one whose floors differ by more
//! than a tenth is left out. Printed are medians over the samples, of ratios within a turn: to the
//! floor, and to bulkhead's ring of that capacity.

mod crates;
mod pair;

use pair::{Line, Sample, Words};

struct Contestant {
    name: &'static str,
    payload: &'static str,
    sample: Box<dyn FnMut(u64) -> Option<Sample>>,
    /// Of each turn.
    samples: Vec<Option<Sample>>,
}

impl Contestant {
    /// A queue with its name, its payload and the core of its other thread; see [`pair::sampler`].
    fn new<S: Send + 'static, R: Send + 'static>(
        (name, payload, core): (&'static str, &'static str, u32),
        ends: impl Fn() -> (S, R) + 'static,
        push: impl Fn(&mut S, Words) -> bool + Copy + Send + 'static,
        pop: impl Fn(&mut R) -> Option<Words> + Copy + Send + 'static,
    ) -> Self {
        let sample = Box::new(pair::sampler(core, ends, push, pop));
        Self { name, payload, sample, samples: Vec::new() }
    }
}

const TRIPS: u64 = 20_000;

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    if values.is_empty() {
        return [f64::NAN; 3];
    }
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn contestants(capacity: usize, core: u32) -> Vec<Contestant> {
    let mut all = vec![crates::bulkhead(capacity, core)];
    all.extend(crates::of_any::<Words>(capacity, core));
    all.extend(crates::of_any::<Line>(capacity, core));
    all.push(crates::ringfire(capacity, core));
    #[cfg(feature = "tachyon")]
    all.push(crates::tachyon(capacity, core));
    all
}

fn compare(capacity: usize, mut all: Vec<Contestant>, samples: usize) {
    for contestant in &mut all {
        let _ = (contestant.sample)(TRIPS / 10);
    }
    for _ in 0..samples {
        for contestant in &mut all {
            contestant.samples.push((contestant.sample)(TRIPS));
        }
    }
    let floors = all
        .iter()
        .flat_map(|contestant| contestant.samples.iter().flatten().map(|sample| sample.floor_ns))
        .collect();
    let [low, floor, high] = quartiles(floors);
    println!("\n{capacity} places; the floor {floor:.0} ns ({low:.0}–{high:.0}); ratios: median (quartiles)");
    println!(
        "{:<24}{:<10}{:>9}{:>20}{:>11}{:>20}",
        "", "payload", "trip, ns", "trip ÷ floor", "stream, ns", "stream ÷ bulkhead"
    );
    let ours = all[0].samples.clone();
    for contestant in &all {
        let of =
            |value: fn(&Sample) -> f64| quartiles(contestant.samples.iter().flatten().map(value).collect());
        let spread = |[low, middle, high]: [f64; 3]| format!("{middle:.2} ({low:.2}–{high:.2})");
        let streams = contestant
            .samples
            .iter()
            .zip(&ours)
            .filter_map(|(sample, ours)| Some(sample.as_ref()?.stream_ns / ours.as_ref()?.stream_ns));
        println!(
            "{:<24}{:<10}{:>9.0}{:>20}{:>11.1}{:>20}",
            contestant.name,
            contestant.payload,
            of(|sample| sample.trip_ns)[1],
            spread(of(|sample| sample.trip_ns / sample.floor_ns)),
            of(|sample| sample.stream_ns)[1],
            spread(quartiles(streams.collect())),
        );
    }
}

fn main() {
    let arguments: Result<Vec<u32>, _> = std::env::args().skip(1).map(|number| number.parse()).collect();
    let Some(arguments) = arguments.ok().filter(|numbers| matches!(numbers.len(), 0 | 1 | 3)) else {
        eprintln!("usage: rings [SAMPLES [CORE CORE]], numbers");
        std::process::exit(2);
    };
    let samples = arguments.first().map_or(21, |samples| (*samples).max(1)) as usize;
    let cores = arguments.get(1..3).map_or([0, 1], |cores| [cores[0], cores[1]]);
    // All threads before this one is pinned: they would have its core alone.
    let all = [64, 1024, 8192].map(|capacity| (capacity, contestants(capacity, cores[1])));
    system::pin::pin_to(cores[0]).expect("an allowed core");
    for (capacity, contestants) in all {
        compare(capacity, contestants, samples);
    }
}
