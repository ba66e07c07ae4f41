//! Detects segments that were truncated during a run, or lost pages because no memory was left.
//!
//! Sealed segments can be neither truncated nor grown. Those that have names in `/dev/shm` can, by
//! every process of the same user. The launcher survives that ([`shm::memory::sigbus`]) and ends
//! the run: it reads zeros where the memory was, so it trusts nothing from then on and blames no
//! strategy. The kernel does not report which process truncated it.

use crate::segments::Segments;
use protocol::segments::CONTROL;
use protocol::topology;
use record::numbers::plural;
use record::run::RunOutcome;
use shm::memory::{SHM_DIR, sigbus};
use shm::ring::SegmentPlace;
use std::fs;
use supervision::memory_failure;

/// Returns the names of the run's shared-memory segments that were truncated or lost pages, each
/// with a description.
pub fn lost_segments(segments: &Segments) -> Vec<String> {
    let plan = &segments.plan;
    let is_memory = |place| matches!(place, SegmentPlace::Memory | SegmentPlace::Reserve);
    let control = segments.control.memory();
    let named = topology::segments(plan).into_iter().chain([topology::control_segment(control.len())]);
    let named = named.filter(|segment| is_memory(segment.spec.place) && !segment.is_sealed(plan));
    let cut = |(what, bytes): (String, u64)| {
        // A removed name takes no memory from processes that have it mapped.
        let there = fs::metadata(format!("{SHM_DIR}/{}", plan.segment_name(&what))).ok()?.len();
        (there < bytes).then(|| (what, format!("truncated to {there} of {bytes} bytes")))
    };
    let mut all: Vec<(String, String)> =
        named.map(|segment| (segment.spec.name, segment.spec.words as u64 * 8)).filter_map(cut).collect();
    let kept = segments.kept.iter().map(|(segment, words)| (segment.spec.name.as_str(), words.is_lost()));
    for (what, is_lost) in kept.chain([(CONTROL, control.is_lost())]) {
        if is_lost && all.iter().all(|(other, _)| other != what) {
            all.push((what.to_owned(), "there was no memory for its pages".into()));
        }
    }
    all.into_iter().map(|(what, how)| format!("{what} ({how})")).collect()
}

/// Returns `true` if the launcher itself, during this run, has accessed a page that a shared-memory
/// segment had lost.
pub fn has_launcher_lost_memory(segments: &Segments) -> bool {
    sigbus::faults() > segments.faults_before
}

/// Returns a run's outcome as a failure that names the segments that were truncated or lost pages;
/// unchanged without such segments.
pub fn name_lost_memory(segments: &Segments, outcome: RunOutcome) -> RunOutcome {
    let lost = lost_segments(segments);
    if lost.is_empty() {
        return outcome;
    }
    let outcome = match outcome {
        RunOutcome::Failed { .. } => outcome,
        _ => memory_failure(segments.plan.launcher_pid),
    };
    let RunOutcome::Failed { process, pid, what } = outcome else { return outcome };
    let many = plural("segment", lost.len() as u64);
    let what = format!(
        "{what}: {many} {}: any process of this user can do that to a segment with a name, so nobody is blamed; --isolation sandbox \
         hands memory over sealed and without names",
        lost.join(", ")
    );
    RunOutcome::Failed { process, pid, what }
}
