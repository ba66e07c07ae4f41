//! Measures by how much a sleep exceeds the requested time, which is the timer's share of a slow
//! end.

use analysis::experiment::SleepSample;
use std::time::{Duration, Instant};
use system::process;

/// Sleeps of each kind.
const SAMPLES: u32 = 40;
/// The requested duration.
const SLEEP: Duration = Duration::from_millis(1);
/// The default timer slack of Linux.
const DEFAULT_SLACK_NS: u64 = 50_000;

/// The median time of a sleep of a millisecond with that timer slack, on a thread of its own.
fn median(slack_ns: u64) -> Option<u64> {
    let sample = move || {
        process::set_timer_slack(slack_ns);
        let mut times: Vec<u64> = (0..SAMPLES)
            .map(|_| {
                let begin = Instant::now();
                std::thread::sleep(SLEEP);
                begin.elapsed().as_nanos() as u64
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    std::thread::spawn(sample).join().ok()
}

/// Measures how long short sleeps take with and without timer slack, in a little more than 80 ms.
pub(super) fn sample() -> Option<SleepSample> {
    let (default_ns, precise_ns) = (median(DEFAULT_SLACK_NS)?, median(1)?);
    Some(SleepSample { default_ns, precise_ns, samples: SAMPLES })
}
