//! Files of a faulty spiller: whatever it does with a chunk, the merge detects that the run is
//! incomplete.

use crate::common::scribbled;
use crate::fixture::{Fixture, Shape};
use analysis::merge::MergeError;
use protocol::plan::Role;
use protocol::status::LOG_OFFSET;

/// Bytes of a chunk: 16 records.
const CHUNK: usize = 256;
/// Index of the faulty chunk.
const WRONG: usize = 5;

/// Returns the fault of a run whose log was spilled this way; `None` if there is none. A damaged
/// strategy's log is a note, and excludes the strategy from the figures.
fn found(role: Role, spill: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
    let fixture = Fixture::new(Shape { orders: 100, ..Shape::PLAIN });
    let thread = fixture.record.plan.thread_of(role).unwrap();
    let name = fixture.record.plan.threads[thread].name.clone();
    let merged = scribbled(&fixture, &name, |bytes| {
        let mut records = bytes.split_off(LOG_OFFSET * 8);
        assert!(records.len() > (WRONG + 4) * CHUNK, "{name} has enough chunks");
        spill(&mut records);
        bytes.append(&mut records);
    });
    match merged {
        Ok(merged) => {
            let violation = merged.violations.first().map(|violation| format!("{violation:?}"));
            violation.or_else(|| merged.notes.first().cloned())
        }
        Err(MergeError::Log(error)) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn copy(records: &mut [u8], from: usize, to: usize) {
    records.copy_within(from * CHUNK..(from + 1) * CHUNK, to * CHUNK);
}

#[test]
fn missing_duplicate_or_late_spill_chunk_is_detected() {
    type Spill = fn(&mut Vec<u8>);
    let spills: [(&str, Spill); 5] = [
        ("leaves one out, at its place", |r| r[WRONG * CHUNK..(WRONG + 1) * CHUNK].fill(0)),
        ("leaves one out, by appending", |r| drop(r.drain(WRONG * CHUNK..(WRONG + 1) * CHUNK))),
        ("writes one over the next", |r| copy(r, WRONG - 1, WRONG)),
        ("appends one twice", |r| {
            let again = r[WRONG * CHUNK..(WRONG + 1) * CHUNK].to_vec();
            r.splice(WRONG * CHUNK..WRONG * CHUNK, again);
        }),
        // After its slot in the ring was overwritten.
        ("writes one late", |r| copy(r, WRONG + 3, WRONG)),
    ];
    for role in [Role::Orchestrator, Role::Gateway(0), Role::Strategy(0)] {
        assert_eq!(found(role, |_| {}), None, "{role}: a sound spiller");
        for (name, spill) in spills {
            let found = found(role, spill);
            assert!(found.is_some(), "{role}: a spiller that {name}");
        }
    }
}
