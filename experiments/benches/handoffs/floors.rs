//! Both floors: the round trip of one cache line between synchronized threads (the floor of a run's
//! summary), and unsynchronized (see `trip.rs`), the reference for messages that arrive at random
//! times.

use crate::Options;
use crate::pair::{Contestant, start_peer};
use crate::report::{BenchReport, FigureRow, Goal};
use crate::trip::{BouncedLine, Step};

/// Adds to the report both floors of a hand-off: the round trip of one cache line, synchronized and
/// unsynchronized.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, rounds) = options.effort(31, 500, 10_000);
    let mut parts = Vec::new();
    let (there, back) = BouncedLine::ends();
    let mut line = Contestant::new(&mut parts, there, back);
    // Before this thread is pinned: the peer is pinned to another core.
    let peer = start_peer(options.cores.1, parts);
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    let (mut in_step, mut out_of_step) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        in_step.push(peer.floor(rounds));
        out_of_step.push(line.trips(&peer, Step::Out, rounds));
    }
    report.add(
        "One line there and back, threads",
        vec![
            FigureRow::new("floor, in step", "ns", in_step, Goal::None),
            FigureRow::new("floor, out of step", "ns", out_of_step, Goal::None),
        ],
    );
}
