//! Loom runs these in every order of steps, and with every value, that the orderings allow:
//! `.ci/loom.sh board::`. Two slots and two words are enough to reach every race of a board.

use core::ops::ControlFlow;
use loom::thread;
use shm::board::{BoardShape, LogPoll, Reader, Writer, heap};
use shm::memory::AtomicWords;

fn memory(slots: usize) -> AtomicWords {
    heap(BoardShape::with_slots(1, 2, slots).unwrap())
}

fn ends(slots: usize) -> (Writer, Reader) {
    let words = memory(slots);
    (Writer::attach(&words).unwrap(), Reader::attach(&words.into()).unwrap())
}

/// Versions up to `last`, each in every word and the time.
fn write_to(writer: &mut Writer, last: u64) {
    for n in writer.version(0) + 1..=last {
        assert_eq!(writer.write(0, n, &[n, n]), n);
    }
}

/// Reads once: the version, 0 for none; `None` if the writer overtook it.
fn read(reader: &Reader) -> Option<u64> {
    let mut into = [0; 2];
    let stamp = reader.try_read(0, &mut into).ok()?;
    Some(stamp.map_or(0, |stamp| {
        assert_eq!((stamp.ticks, into), (stamp.version, [stamp.version; 2]), "torn");
        stamp.version
    }))
}

#[test]
fn reads_are_whole_and_never_go_back() {
    loom::model(|| {
        let (mut writer, reader) = ends(2);
        let other = thread::spawn(move || write_to(&mut writer, 3));
        let first = read(&reader).unwrap_or(0);
        let second = read(&reader);
        assert!(second.is_none_or(|second| second >= first), "{second:?} after {first}");
        other.join().unwrap();
        assert_eq!(read(&reader), Some(3), "at rest the newest is there");
    });
}

#[test]
fn write_in_progress_disturbs_no_reader() {
    loom::model(|| {
        let (mut writer, reader) = ends(2);
        write_to(&mut writer, 1);
        let other = thread::spawn(move || {
            // It dies before its version is stored: whatever it has written, version 1 can be read
            // at once.
            writer.write_with(0, 2, &[2, 2], &mut |store| {
                if store == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        assert_eq!(read(&reader), Some(1));
        assert_eq!(other.join().unwrap(), None);
    });
}

#[test]
fn successor_continues_after_crash_at_each_store() {
    for dies_at in 0..=4 {
        loom::model(move || {
            let words = memory(2);
            let reader = Reader::attach(&words.clone().into()).unwrap();
            let other = thread::spawn(move || {
                let mut writer = Writer::attach(&words).unwrap();
                write_to(&mut writer, 1);
                let written = writer.write_with(0, 2, &[2, 2], &mut |store| {
                    if store == dies_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                let newest = 1 + u64::from(written.is_some());
                let mut successor = Writer::attach(&words).unwrap();
                assert_eq!(successor.version(0), newest);
                write_to(&mut successor, newest + 1);
                newest + 1
            });
            let first = read(&reader).unwrap_or(0);
            let newest = other.join().unwrap();
            assert!(first <= newest);
            assert_eq!(read(&reader), Some(newest));
        });
    }
}

#[test]
fn log_reader_gets_every_entry_or_missed_count() {
    loom::model(|| {
        let (mut writer, reader) = ends(2);
        let mut follower = reader.follow(0, 0);
        let other = thread::spawn(move || write_to(&mut writer, 3));
        let mut come_to = 0;
        let mut into = [0; 2];
        let mut next = |come_to: &mut u64| match follower.next(&mut into).expect("an honest writer") {
            LogPoll::Empty => false,
            LogPoll::Entry(stamp) => {
                *come_to += 1;
                assert_eq!((stamp.version, stamp.ticks, into), (*come_to, *come_to, [*come_to; 2]));
                true
            }
            LogPoll::Missed(missed) => {
                *come_to += missed;
                true
            }
        };
        next(&mut come_to);
        next(&mut come_to);
        other.join().unwrap();
        while next(&mut come_to) {}
        assert_eq!(come_to, 3, "read and missed are all");
    });
}

/// A reader that sees a version sees everything the writer did before.
#[test]
fn version_load_acquires_earlier_writes() {
    loom::model(|| {
        let words = memory(2);
        let shape = BoardShape::with_slots(1, 2, 2).unwrap();
        let (other_word, beside) = (words.slice(18, 1), words.slice(18, 1));
        let reader = Reader::attach(&words.clone().into()).unwrap();
        assert_eq!(shape.segment_words(), words.len());
        let other = thread::spawn(move || {
            let mut writer = Writer::attach(&words).unwrap();
            other_word[0].store(7, shm::sync::Ordering::Relaxed);
            write_to(&mut writer, 1);
        });
        if reader.version(0) == 1 {
            assert_eq!(beside[0].load(shm::sync::Ordering::Relaxed), 7);
        }
        other.join().unwrap();
    });
}
