//! Memory of a living run that somebody has taken away: segments that were truncated, and pages
//! that no memory was left for.
//!
//! Sealed segments can be neither truncated nor grown. Those that have names in `/dev/shm` can, by
//! every process of the same user. The launcher survives that ([`shm::memory::sigbus`]) and ends
//! the run: it reads zeros where the memory was, so it believes nothing from there on, and blames
//! nobody. The kernel does not tell whose hand it was.

use super::process::Process;
use super::setup::Segments;
use analysis::record::RunOutcome;
use protocol::segments::CONTROL;
use protocol::topology;
use shm::memory::{SHM_DIR, sigbus};
use shm::ring::SegmentPlace;
use std::fs;
use std::os::unix::process::ExitStatusExt;

/// The same number on all Linux architectures that bulkhead is for.
const SIGBUS: i32 = 7;
/// What a run fails with whose memory the launcher found to be gone.
const GONE: &str = "memory of the run was taken away";

/// The segments that lost memory, with what is known of each; empty: none.
pub fn found(segments: &Segments) -> Vec<String> {
    let plan = &segments.plan;
    let is_memory = |place| matches!(place, SegmentPlace::Memory | SegmentPlace::Reserve);
    let control = segments.control.memory();
    let named = topology::segments(plan).into_iter().chain([topology::control(control.len())]);
    let named = named.filter(|segment| is_memory(segment.spec.place) && !segment.is_sealed(plan));
    let cut = |(what, bytes): (String, u64)| {
        // A name that is gone takes no memory from anybody who has it mapped.
        let there = fs::metadata(format!("{SHM_DIR}/{}", plan.segment_name(&what))).ok()?.len();
        (there < bytes).then(|| (what, format!("truncated to {there} of {bytes} bytes")))
    };
    let mut all: Vec<(String, String)> =
        named.map(|segment| (segment.spec.name, segment.spec.words as u64 * 8)).filter_map(cut).collect();
    let mapped =
        segments.mapped.iter().map(|(what, view)| (what.as_str(), view)).chain([(CONTROL, &control)]);
    for (what, _) in mapped.filter(|(_, view)| view.is_lost()) {
        if all.iter().all(|(other, _)| other != what) {
            all.push((what.to_owned(), "there was no memory for its pages".into()));
        }
    }
    all.into_iter().map(|(what, how)| format!("{what} ({how})")).collect()
}

/// Returns `true` if the launcher itself has met memory that was gone, since this run's segments
/// were made.
pub fn is_met(segments: &Segments) -> bool {
    sigbus::faults() > segments.faults_before
}

/// Returns `true` if the process has ended by the signal that ends one whose memory is gone.
pub fn is_victim(process: &Process) -> bool {
    process.status.is_some_and(|status| status.signal() == Some(SIGBUS))
}

/// How a run fails whose memory is gone, where nothing else is known to have failed.
pub fn failure(launcher: u32) -> RunOutcome {
    RunOutcome::Failed { process: "launcher".into(), pid: launcher, what: GONE.into() }
}

/// How a run has ended, with the segments that lost memory named; as it was if none has.
pub fn judge(segments: &Segments, outcome: RunOutcome) -> RunOutcome {
    let lost = found(segments);
    if lost.is_empty() {
        return outcome;
    }
    let outcome = match outcome {
        RunOutcome::Failed { .. } => outcome,
        _ => failure(segments.plan.launcher_pid),
    };
    let RunOutcome::Failed { process, pid, what } = outcome else { return outcome };
    let many = if lost.len() == 1 { "segment" } else { "segments" };
    let what = format!(
        "{what}: {many} {}: any process of this user can do that to a segment with a name, so nobody is blamed; --isolation sandbox \
         hands memory over sealed and without names",
        lost.join(", ")
    );
    RunOutcome::Failed { process, pid, what }
}
