//! Plays a flow of the benchmark at a given rate against an adapter, in an open loop, and prints
//! how long reports take: `open-loop ADAPTER.so FLOW.bin MESSAGES_PER_SECOND MATCHER_CORE DRAINER_CORE`.
//!
//! Messages are due at Poisson arrivals of that rate. One thread gives each to the engine when it is
//! due, or as soon as the engine has done the one before it; whenever the next one is not yet due it
//! flushes. Another thread drains the reports. A report's time is from when its message was due
//! until it was drained, so what waits for a busy engine is counted. The first tenth of the messages
//! is the warm-up. One line of comma-separated values: p50, p99, p99.9 and the greatest time in
//! nanoseconds, messages a second that were reached, reports measured.

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
use hdrhistogram::Histogram;
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

/// Drains reports until the player has ended and none is left; ticks from the due time of each.
fn drain(reports: Reports, due: &[u64], is_over: &AtomicU64) -> Histogram<u64> {
    let mut ticks = Histogram::new_with_bounds(1, 1 << 40, 3).expect("bounds");
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
                ticks.saturating_record(now.saturating_sub(due[index]).max(1));
            }
        }
        if drained == 0 {
            if was_over {
                return ticks;
            }
            std::hint::spin_loop();
        }
    }
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
    let (ticks, end) = std::thread::scope(|scope| {
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
    let at = |share| ns(ticks.value_at_quantile(share));
    let reached = flow.len() as f64 / seconds;
    println!("{},{},{},{},{reached:.0},{}", at(0.5), at(0.99), at(0.999), ns(ticks.max()), ticks.len());
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
