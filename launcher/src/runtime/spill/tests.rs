use super::*;
use crate::host::fake;
use crate::planner::tests::planned;
use protocol::spill::CHUNK_RECORDS;
use protocol::stamps::{Point, StampLog};
use protocol::wire::OrderId;
use shm::memory::AtomicWords;
use shm::memory::Region;
use shm::memory::header::run_hash;

/// A plan whose first thread's log has room for ten chunks, four of them in memory; and that
/// thread's segments.
fn world() -> (Plan, AtomicWords, AtomicWords) {
    let (_, mut plan, _) = planned("spill=2MiB", &fake::two_core_vm().machine()).unwrap();
    plan.threads[0].log_records = 10 * CHUNK_RECORDS;
    plan.validate().unwrap();
    let ring = topology::log_ring(&plan, 0).unwrap();
    assert_eq!((ring.chunks, ring.max_chunks), (4, 10));
    (plan, Region::heap(ring.segment_words()).words(), Region::heap(ring.spilled_words()).words())
}

/// The sequences of a file's records.
fn read(path: &Path, plan: &Plan) -> Vec<u64> {
    let mut log = analysis::logfile::LogReader::open(path, Some(&plan.run)).unwrap();
    assert_eq!(log.header().run, run_hash(&plan.run));
    let mut all = Vec::new();
    while let Some(block) = log.next_block().unwrap() {
        all.extend(block.records().map(|record| record.id.sequence()));
    }
    all
}

#[test]
fn spilled_file_is_completed_after_spiller_dies() {
    let (plan, log, spilled) = world();
    let ring = topology::log_ring(&plan, 0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (name, path) = ("a.stamps", folder.path().join("a.stamps"));
    let place = OpenDir::open(folder.path()).unwrap();
    let file = place.edit(name).unwrap();
    let mut writer = StampLog::in_ring(&log, &spilled.clone().into(), ring);
    let mut drain = ChunkSpiller::new(log.clone(), spilled.clone(), ring);
    let end = 6 * CHUNK_RECORDS + 100;
    for sequence in 0..end {
        writer.append(Point::Due, OrderId::new(0, 0, sequence), 1);
        if sequence < 4 * CHUNK_RECORDS {
            drain.spill_next(|chunk, bytes| save(&file, chunk, bytes)).unwrap();
        }
    }
    // The last one has written half of a chunk and has not published that.
    let died = drain.spill_next(|chunk, bytes| {
        save(&file, chunk, &bytes[..777])?;
        Err(invalid("killed"))
    });
    assert!(died.is_err() && writer.dropped() == 0);
    let finish = || finish(&plan, 0, &log.clone().into(), &spilled.clone().into(), &place, name);
    for _ in 0..2 {
        finish().unwrap();
        assert_eq!(read(&path, &plan), (0..end).collect::<Vec<_>>());
    }
    file.set_len(RECORDS_AT + 100).unwrap();
    assert!(finish().unwrap_err().to_string().contains("cut"), "nothing is made up");
}

#[test]
fn file_locked_by_spiller_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (name, path) = ("a.stamps", folder.path().join("a.stamps"));
    let place = OpenDir::open(folder.path()).unwrap();
    let file = place.edit(name).unwrap();
    lock::lock_shared(&file).unwrap();
    let (plan, log, spilled) = world();
    let done = std::thread::scope(|scope| {
        let finishing =
            scope.spawn(|| finish(&plan, 0, &log.clone().into(), &spilled.clone().into(), &place, name));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!finishing.is_finished() && file.metadata().unwrap().len() == 0);
        drop(file);
        finishing.join().unwrap()
    });
    done.unwrap();
    assert_eq!(read(&path, &plan), Vec::<u64>::new());
}

#[test]
fn unwritable_file_does_not_delay_others() {
    let (plan, log, spilled) = world();
    let ring = topology::log_ring(&plan, 0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let other = [Region::heap(ring.segment_words()).words(), Region::heap(ring.spilled_words()).words()];
    for (log, spilled) in [(&log, &spilled), (&other[0], &other[1])] {
        let mut writer = StampLog::in_ring(log, &spilled.clone().into(), ring);
        (0..CHUNK_RECORDS + 1).for_each(|n| writer.append(Point::Due, OrderId::new(0, 0, n), 1));
    }
    std::fs::write(folder.path().join("a"), "").unwrap();
    let closed = File::open(folder.path().join("a")).unwrap();
    let good = OpenDir::open(folder.path()).unwrap().edit("b").unwrap();
    let [first, second] = [(log, spilled.clone()), (other[0].clone(), other[1].clone())];
    let mut threads = [
        (ChunkSpiller::new(first.0, first.1, ring), closed),
        (ChunkSpiller::new(second.0, second.1, ring), good),
    ];
    assert!(move_chunks(&mut threads).is_err(), "it is open for reading only");
    assert_eq!(threads[1].1.metadata().unwrap().len(), RECORDS_AT + CHUNK_BYTES);
    assert_eq!((threads[0].0.pending_chunks(), threads[1].0.pending_chunks()), (1, 0), "it is tried again");
}
