//! Plays a flow of the benchmark at a given rate against an adapter, in an open loop, and prints
//! how long reports take: `open-loop ADAPTER.so FLOW.bin MESSAGES_PER_SECOND MATCHER_CORE DRAINER_CORE`.
//!
//! Messages are due at Poisson arrivals of that rate. One thread gives each to the engine when it is
//! due, or as soon as the engine has done the one before it; whenever the next one is not yet due it
//! flushes. Another thread drains the reports. A report's time is from when its message was due
//! until it was drained, so what waits for a busy engine is counted. The first tenth of the messages
//! is the warm-up.
//!
//! A host that stops a virtual core decides every high quantile of a whole run. So the quantiles
//! are also taken of each [`WINDOW`] messages, and the window in the middle counts. A stop spoils
//! the windows that it lasts, and those in which the engine catches up. The one in the middle is
//! free of it unless that is half of all windows.
//!
//! One line of comma-separated values, times in nanoseconds: p50, p99, p99.9 and the greatest time
//! of the whole run, messages a second that were reached, reports measured, the medians over the
//! windows of their p50, p99 and p99.9, and the windows whose p99 is above ten times its median.

#[path = "../abi.rs"]
mod abi;
mod engine;
mod flow;
#[path = "../report_words.rs"]
mod report_words;
#[path = "../ring.rs"]
mod ring;

use abi::Report;
use engine::{Engine, Reports};
use flow::Message;
use shm::sync::{AtomicU64, Ordering};
use std::path::Path;
use system::clock::{Clock, ClockPair, Tsc};
use system::pin;

/// Reports that may be on their way, as in the benchmark's harness.
const CAPACITY: u32 = 1 << 20;
/// Reports drained at once, at most.
const DRAINED: usize = 256;
/// The seed of the arrivals: the same for all engines.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
/// Messages of a window: ten of its reports at least are above its p99.9.
const WINDOW: usize = 10_000;
/// Nanoseconds until the first message is due.
const LEAD_NS: f64 = 5e6;

/// Returns when each of `count` messages is due, in ticks: exponential gaps at `rate` a second.
fn due_times(count: usize, rate: f64, ns_per_tick: f64) -> Vec<u64> {
    let (mut state, mut ns) = (SEED, LEAD_NS);
    let start = Tsc.now();
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = ((state >> 11) + 1) as f64 / (1u64 << 53) as f64;
        ns -= unit.ln() * 1e9 / rate;
        start + (ns / ns_per_tick) as u64
    };
    (0..count).map(|_| next()).collect()
}

/// Gives each message to the engine at its time. Returns the tick after the last one.
fn play(engine: &Engine, flow: &[Message], due: &[u64]) -> u64 {
    for (message, due) in flow.iter().zip(due) {
        if Tsc.now() < *due {
            engine.flush();
            while Tsc.now() < *due {
                std::hint::spin_loop();
            }
        }
        engine.apply(message);
    }
    engine.flush();
    Tsc.now()
}

/// Drains reports until the player has ended and none is left. Returns of each the index of its
/// message and the ticks since that was due.
fn drain(reports: Reports, due: &[u64], is_over: &AtomicU64) -> Vec<(u32, u64)> {
    // Touched before, so that no page is faulted in while it measures.
    let mut times = vec![(u32::MAX, u64::MAX); due.len() * 4];
    times.clear();
    let mut out: Vec<Report> = (0..DRAINED).map(|_| Report::default()).collect();
    let warm_up = due.len() / 10;
    loop {
        // Acquire: all that was flushed before the end is drained below.
        let was_over = is_over.load(Ordering::Acquire) == 1;
        let drained = reports.drain(&mut out);
        let now = Tsc.now();
        for report in &out[..drained] {
            let index = report.sequence_number as usize;
            if index >= warm_up && index < due.len() {
                times.push((index as u32, now.saturating_sub(due[index]).max(1)));
            }
        }
        if drained == 0 {
            if was_over {
                return times;
            }
            std::hint::spin_loop();
        }
    }
}

/// Returns p50, p99 and p99.9 of times; sorts them.
fn quantiles(times: &mut [u64]) -> [u64; 3] {
    times.sort_unstable();
    [0.5, 0.99, 0.999].map(|share| match times {
        [] => 0,
        _ => times[((times.len() - 1) as f64 * share) as usize],
    })
}

/// Returns the medians over the windows of their quantiles, and the number of windows whose p99 is
/// above ten times its median.
fn windows(times: &[(u32, u64)]) -> ([u64; 3], usize) {
    let mut of_windows =
        vec![Vec::new(); times.iter().map(|(index, _)| *index as usize / WINDOW + 1).max().unwrap_or(0)];
    times.iter().for_each(|(index, ticks)| of_windows[*index as usize / WINDOW].push(*ticks));
    let of_windows: Vec<_> =
        of_windows.iter_mut().filter(|window| !window.is_empty()).map(|window| quantiles(window)).collect();
    let medians = [0, 1, 2]
        .map(|place| quantiles(&mut of_windows.iter().map(|window| window[place]).collect::<Vec<_>>())[0]);
    (medians, of_windows.iter().filter(|window| window[1] > 10 * medians[1]).count())
}

fn run(words: &[String]) -> Result<(), String> {
    let [adapter, path, rate, matcher, drainer] = words else {
        return Err("open-loop ADAPTER.so FLOW.bin MESSAGES_PER_SECOND MATCHER_CORE DRAINER_CORE".into());
    };
    let core = |word: &String| word.parse::<u32>().map_err(|_| format!("{word:?} is not a core"));
    let (matcher, drainer) = (core(matcher)?, core(drainer)?);
    let rate: f64 = rate.parse().ok().filter(|rate| *rate >= 1.0).ok_or(format!("{rate:?} is not a rate"))?;
    let flow = flow::read(Path::new(path))?;
    pin::pin_to(matcher).map_err(|error| error.to_string())?;
    let engine = Engine::load(adapter.as_ref(), CAPACITY).map_err(|error| format!("{adapter}: {error}"))?;
    let pair = ClockPair::read(&Tsc);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let ns_per_tick = ClockPair::read(&Tsc).ns_per_tick_since(&pair);

    let due = due_times(flow.len(), rate, ns_per_tick);
    let (reports, is_over) = (engine.reports(), AtomicU64::new(0));
    let (times, end) = std::thread::scope(|scope| {
        let (due, is_over) = (&due, &is_over);
        let drained = scope.spawn(move || {
            // The player's thread, from which this one inherits its cores, has one.
            pin::pin_beyond_mask(drainer).unwrap_or_else(|error| fail(&error.to_string()));
            drain(reports, due, is_over)
        });
        let end = play(&engine, &flow, due);
        is_over.store(1, Ordering::Release);
        (drained.join().expect("it drains"), end)
    });
    let ns = |ticks: u64| (ticks as f64 * ns_per_tick) as u64;
    let seconds = ns(end.saturating_sub(due[0])).max(1) as f64 / 1e9;
    let reached = flow.len() as f64 / seconds;
    let (middle, disturbed) = windows(&times);
    let mut all: Vec<u64> = times.iter().map(|(_, ticks)| *ticks).collect();
    let [p50, p99, p999] = quantiles(&mut all).map(ns);
    let max = ns(all.last().copied().unwrap_or(0));
    let [middle_p50, middle_p99, middle_p999] = middle.map(ns);
    println!(
        "{p50},{p99},{p999},{max},{reached:.0},{},{middle_p50},{middle_p99},{middle_p999},{disturbed}",
        all.len()
    );
    Ok(())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&words) {
        fail(&error);
    }
}

fn fail(error: &str) -> ! {
    eprintln!("open-loop: {error}");
    std::process::exit(2);
}
