//! The cost of a stamp beyond the clock read: the record in the log.

use crate::Options;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::stamps::{Point, RECORD_WORDS, StampLog};
use protocol::status::LOG_OFFSET;
use protocol::wire::OrderId;
use shm::memory::Region;
use std::hint::black_box;
use system::clock::{Clock, Monotonic, Tsc};

/// Returns the nanoseconds per call.
fn batch(count: u64, mut each: impl FnMut(u64)) -> f64 {
    let start = Monotonic.now();
    (0..count).for_each(&mut each);
    (Monotonic.now() - start) as f64 / count as f64
}

/// Number of samples that fit into a log.
const LAPS: usize = 16;

/// Makes a log of 16 MiB for samples of `count` records: written from front to back as in a run, it
/// does not fit the L2 cache. A full log is replaced, because logs are append-only.
fn fresh_log(count: u64) -> StampLog {
    let words = LOG_OFFSET + count as usize * LAPS * RECORD_WORDS;
    StampLog::new(&Region::memfd("bench-log", words).expect("16 MiB of memory").words())
}

fn measure<C: Clock>(options: &Options, clock: &C, name: &str) -> [FigureRow; 2] {
    let (samples, count) = options.effort(128, 1_000, 1 << 16);
    // More than one log is filled, even in quick mode.
    let samples = samples.max(LAPS + 1);
    let mut log = fresh_log(count);
    let (mut reads, mut stamps) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        if sample > 0 && sample % LAPS == 0 {
            log = fresh_log(count);
        }
        let read = batch(count, |_| {
            black_box(clock.now());
        });
        // As in `Cycle::stamp`.
        let stamp = batch(count, |n| log.append(Point::GatewayRecv, OrderId::new(3, 0, n), clock.now()));
        assert_eq!(log.dropped(), 0, "the log holds all laps");
        reads.push(read);
        stamps.push(stamp - read);
    }
    [
        FigureRow::new(format!("{name}: one read"), "ns", reads, Goal::None),
        FigureRow::new(format!("{name}: stamp and log, over the read"), "ns", stamps, Goal::AtMost(15.0)),
    ]
}

/// Measures both clocks.
pub fn run(options: &Options, report: &mut BenchReport) {
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let mut rows = Vec::from(measure(options, &Tsc, "Tsc"));
    rows.extend(measure(options, &Monotonic, "Monotonic"));
    report.add("One stamp, one thread", rows);
}
