//! Append, roll, follow and reopen; the syncs of each durability.

use crate::common::{State, append, folder, payload, recovered};
use journal::{
    Durability, FailingDisk, InputLog as _, JournalError, LOCK_FILE, Options, Reader, Writer, lock_directory,
};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

pub fn options(durability: Durability) -> Options {
    Options { durability, segment_bytes: 8192, ..Options::default() }
}

pub fn open(folder: &Path) -> Writer {
    Writer::open(folder, &options(Durability::Process), |_| {}).unwrap()
}

const GROUP: Durability = Durability::GroupCommit { records: 8, within: Duration::from_micros(200) };

#[test]
fn records_survive_many_segments_and_writers() {
    for durability in [Durability::Process, GROUP, Durability::EveryRecord] {
        let folder = folder();
        for round in 0..5 {
            let mut state = State::default();
            let mut writer = Writer::open(folder.path(), &options(durability), |part| {
                if let journal::Recovered::Record { payload, .. } = part {
                    state.apply(payload);
                }
            })
            .unwrap();
            assert_eq!((writer.last(), &state), (round * 500, &State::after(round * 500)), "{durability:?}");
            append(&mut writer, 500);
            writer.close().unwrap();
            let (state, end) = recovered(folder.path()).unwrap();
            assert_eq!((state, end.stopped), (State::after(round * 500 + 500), None));
        }
    }
}

#[test]
fn reader_follows_live_and_sees_each_record_once() {
    let folder = folder();
    let mut writer = open(folder.path());
    let ready = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = Reader::open(folder.path(), None).unwrap();
            ready.wait();
            let mut received = 0;
            while received < 3000 {
                while let Some(record) = reader.next_record().unwrap() {
                    received += 1;
                    assert_eq!((record.sequence, record.payload), (received, &payload(received)[..]));
                }
            }
        });
        ready.wait();
        append(&mut writer, 3000);
    });
    let mut late = Reader::open(folder.path(), Some(2500)).unwrap();
    assert_eq!(late.next_record().unwrap().unwrap().sequence, 2500);
    let later: Vec<_> = late.records().map(Result::unwrap).collect();
    assert!(later.iter().map(|record| record.sequence).eq(2501..=3000));
    assert_eq!(later[0].payload, payload(2501));
    assert!(late.records().next().is_none());
}

#[test]
fn second_writer_and_invalid_lengths_are_refused() {
    let folder = folder();
    let mut writer = open(folder.path());
    let second = Writer::open(folder.path(), &options(Durability::Process), |_| {});
    assert!(matches!(second.err(), Some(JournalError::Locked(_))));
    let max = journal::format::max_payload(8192);
    assert!(matches!(writer.append(&[]), Err(JournalError::Length { bytes: 0, .. })));
    assert!(matches!(writer.append(&vec![1; max + 1]), Err(JournalError::Length { .. })));
    for _ in 0..3 {
        writer.append(&vec![1; max]).unwrap();
    }
    let small = Options { segment_bytes: 100, ..Options::default() };
    assert!(matches!(Writer::open(folder.path(), &small, |_| {}).err(), Some(JournalError::Options(_))));
}

#[test]
fn sync_count_follows_durability() {
    let run = |durability, wait: bool| {
        let folder = folder();
        let disk = Arc::new(FailingDisk::after(u64::MAX));
        let options = Options { disk: disk.clone(), segment_bytes: 1 << 16, ..options(durability) };
        let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
        for sequence in 1..=50 {
            writer.append(&payload(sequence)).unwrap();
            if wait {
                let watermark = writer.watermark();
                assert!(watermark.wait(sequence, Duration::from_secs(20)).unwrap());
                assert!(watermark.durable() >= sequence);
            }
        }
        let durable = writer.watermark().durable();
        drop(writer);
        (disk.attempts(), durable)
    };
    assert_eq!(run(Durability::Process, false), (0, 0));
    assert_eq!(run(Durability::EveryRecord, false), (50, 50));
    let large_group = Durability::GroupCommit { records: 1000, within: Duration::from_secs(3600) };
    let (syncs, _) = run(large_group, false);
    assert_eq!(syncs, 1, "one sync when it is closed");
    let (syncs, durable) = run(large_group, true);
    assert_eq!((syncs, durable), (50, 50), "a waiting thread syncs itself");
}

#[test]
fn first_failed_sync_is_the_last() {
    for durability in [GROUP, Durability::EveryRecord] {
        let folder = folder();
        let disk = Arc::new(FailingDisk::after(3));
        let options = Options { disk: disk.clone(), segment_bytes: 1 << 16, ..options(durability) };
        let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
        let watermark = writer.watermark();
        let mut acknowledged = 0;
        let error = loop {
            match writer.append(&payload(acknowledged + 1)).and_then(|last| {
                watermark.wait(last, Duration::from_secs(20))?;
                Ok(last)
            }) {
                Ok(last) => acknowledged = last,
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("fdatasync") && error.contains("has failed"), "{error}");
        assert!(error.contains("log-00000001"), "{error}");
        assert_eq!((acknowledged, watermark.durable()), (3, 3), "{durability:?}");
        for _ in 0..3 {
            assert!(matches!(writer.append(b"more"), Err(JournalError::Failed(_))));
            assert!(matches!(writer.sync(), Err(JournalError::Failed(_))));
            assert!(matches!(watermark.wait(99, Duration::from_secs(1)), Err(JournalError::Failed(_))));
        }
        assert!(matches!(writer.close(), Err(JournalError::Failed(_))));
        assert_eq!(disk.attempts(), 4, "no sync is retried");
    }
}

#[test]
fn append_allocates_nothing() {
    let folder = folder();
    let options = Options { segment_bytes: 1 << 20, ..options(Durability::Process) };
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    let payload = payload(5);
    let before = system::alloc::allocations();
    (0..30_000).for_each(|_| assert!(writer.append(&payload).is_ok()));
    assert_eq!(system::alloc::allocations(), before, "also in the next segments");
    drop(vec![0_u8; 100]);
    assert_eq!(system::alloc::allocations(), before + 1, "an allocation is counted");
}

/// A process that may only read the directory asks for the lock, as a hostile one would.
#[test]
fn inherited_lock_stays_taken_between_writers() {
    let folder = tempfile::tempdir().unwrap();
    let held = Arc::new(lock_directory(folder.path()).unwrap());
    let other_handle = File::open(folder.path().join(LOCK_FILE)).unwrap();
    let options = Options { inherited_lock: Some(Arc::clone(&held)), ..Options::default() };
    for writers in 1..=2 {
        let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
        assert_eq!(writer.append(b"record").unwrap(), writers);
        writer.close().unwrap();
        assert!(matches!(other_handle.try_lock(), Err(TryLockError::WouldBlock)), "after writer {writers}");
    }
    assert!(matches!(Writer::open(folder.path(), &Options::default(), |_| {}), Err(JournalError::Locked(_))));
    drop((options, held));
    other_handle.try_lock().unwrap();
}

#[test]
fn snapshot_is_due_after_its_number_of_records() {
    let folder = folder();
    let every = |snapshot_every| Options { snapshot_every, ..options(Durability::Process) };
    let mut writer = Writer::open(folder.path(), &every(3), |_| {}).unwrap();
    for _ in 0..2 {
        for due in [false, false, true] {
            append(&mut writer, 1);
            assert_eq!(writer.is_snapshot_due(), due, "after record {}", writer.last());
        }
        writer.snapshot(vec![1]).unwrap();
        assert!(!writer.is_snapshot_due());
    }
    drop(writer);
    let mut writer = Writer::open(folder.path(), &every(0), |_| {}).unwrap();
    append(&mut writer, 10);
    assert!(!writer.is_snapshot_due(), "never, if not every so many records");
}

#[test]
fn outputs_wait_only_for_undurable_records_of_groups() {
    let folder = folder();
    let mut writer = open(folder.path());
    append(&mut writer, 2);
    assert_eq!((writer.undurable(false), writer.undurable(true)), (None, None));
    drop(writer);
    let slow = Durability::GroupCommit { records: 1_000, within: Duration::from_secs(1_000) };
    let mut writer = Writer::open(folder.path(), &options(slow), |_| {}).unwrap();
    append(&mut writer, 1);
    assert_eq!((writer.undurable(false), writer.undurable(true)), (Some(3), Some(3)));
    writer.sync().unwrap();
    assert_eq!((writer.undurable(false), writer.undurable(true)), (None, Some(3)));
}

#[test]
fn progress_is_last_record_and_recovered_end() {
    let folder = folder();
    append(&mut open(folder.path()), 5);
    let mut writer = open(folder.path());
    append(&mut writer, 2);
    let (last, recovered) = writer.progress();
    assert_eq!((last, recovered.unwrap().last), (7, 5));
    assert_eq!(writer.durable(), u64::MAX, "nothing waits for a sync that nobody makes");
    let other = self::folder();
    let mut grouped = Writer::open(other.path(), &options(GROUP), |_| {}).unwrap();
    append(&mut grouped, 3);
    grouped.sync().unwrap();
    assert_eq!(grouped.durable(), 3);
}

#[test]
fn segments_of_unsupported_sizes_are_refused() {
    for segment_bytes in [0, 4088, 4100, (1 << 31) + 8] {
        let options = Options { segment_bytes, ..options(Durability::Process) };
        let refused = Writer::open(folder().path(), &options, |_| {}).map(drop).unwrap_err().to_string();
        assert!(refused.contains(&format!("segments of {segment_bytes} bytes")), "{refused}");
    }
}

#[test]
fn recovery_continues_after_a_segment_filled_to_its_mark() {
    let folder = folder();
    let small = Options { segment_bytes: 4096, ..options(Durability::Process) };
    let mut writer = Writer::open(folder.path(), &small, |_| {}).unwrap();
    // The largest record: after it, the segment has space for the mark of its end alone.
    let largest = match writer.append(&[7; 4096]) {
        Err(JournalError::Length { max, .. }) => max,
        other => panic!("{other:?}"),
    };
    for _ in 0..3 {
        writer.append(&vec![7; largest]).unwrap();
    }
    drop(writer);
    let mut lengths = Vec::new();
    journal::recover(folder.path(), |part| {
        if let journal::Recovered::Record { payload, .. } = part {
            lengths.push(payload.len());
        }
    })
    .unwrap();
    assert_eq!(lengths, [largest; 3]);
}
