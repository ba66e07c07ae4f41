//! Both floors: one line there and back, between threads that wait for nothing but each other (what
//! a run's summary calls the floor), and out of step (see `trip.rs`), which is what a message is to
//! be measured by that comes when it likes.

use crate::Options;
use crate::pair::{Contestant, Peer};
use crate::report::{BenchReport, FigureRow, Goal};
use crate::trip::{Line, Step};

/// Measures them in turn.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, rounds) = options.effort(31, 500, 10_000);
    let mut parts = Vec::new();
    let (there, back) = Line::ends();
    let mut line = Contestant::new(&mut parts, there, back);
    // Before this thread is pinned: that one goes elsewhere.
    let peer = Peer::start(options.cores.1, parts);
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
