//! Words that no correct writer leaves: refused at attaching, or reported as an error; never a
//! panic or an endless loop.

use super::{memory, value};
use shm::board::{BoardError, BoardShape, LogPoll, ReadError, Reader, Writer};
use shm::memory::HeaderError;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering::Relaxed;

fn shape() -> BoardShape {
    BoardShape::with_slots(2, 2, 4).unwrap()
}

#[test]
fn board_header_with_wrong_geometry_is_refused() {
    // Word offsets of the dimensions: two in the segment's header, two right after it.
    let (capacity_at, slot_words_at, value_words_at, slots_at) = (5, 6, HEADER_WORDS, HEADER_WORDS + 1);
    for index in [capacity_at, slot_words_at, value_words_at, slots_at] {
        for wrong_value in [0, 1, 3, 8, 1 << 17, 1 << 20, 1 << 40, u64::MAX] {
            let memory = memory(shape());
            if memory[index].swap(wrong_value, Relaxed) == wrong_value {
                continue;
            }
            let view = memory.clone().into();
            // A smaller shape fits as well: not the creator's, but all of it is in the segment.
            let fits = |shape: BoardShape| index != slot_words_at && shape.segment_words() <= memory.len();
            assert!(
                Reader::attach(&view).map_or(true, |end| fits(end.shape())),
                "word {index} is {wrong_value:#x}"
            );
            assert!(
                Writer::attach(&memory).map_or(true, |end| fits(end.shape())),
                "word {index} is {wrong_value:#x}"
            );
        }
    }
    let cut = memory(shape()).slice(0, HEADER_WORDS);
    assert!(matches!(Reader::attach(&cut.into()), Err(BoardError::Header(HeaderError::Size { .. }))));
}

#[test]
fn constantly_changing_version_ends_a_read() {
    let memory = memory(shape());
    let (mut writer, reader) =
        (Writer::attach(&memory).unwrap(), Reader::attach(&memory.clone().into()).unwrap());
    writer.write(0, 0, &value(0, 1, 2));
    let mut into = [0; 2];
    // Each read finds another version after it has copied the value: forwards, backwards, wrapped.
    let copied = shape().words();
    for step in [3, 1 << 60, u64::MAX, u64::MAX - 7] {
        let mut change_version = |moment| {
            if moment == copied {
                memory[shape().version_at(0)].fetch_add(step, Relaxed);
            }
        };
        let read = reader.try_read_with(0, &mut into, &mut change_version);
        assert!(matches!(read, Err(ReadError::Overtaken { .. }) | Ok(None)), "{step:#x}: {read:?}");
    }
    let error = ReadError::Overtaken { tries: 1_000 }.to_string();
    assert!(error.contains("1000") && error.contains("hostile"), "{error}");
}

#[test]
fn busy_writer_does_not_hang_a_read() {
    let shape = BoardShape::with_slots(1, 1, 2).unwrap();
    let memory = memory(shape);
    let reader = Reader::attach(&memory.clone().into()).unwrap();
    let version = memory.slice(shape.version_at(0), 1);
    version[0].store(1, Relaxed);
    // Between the number of slots and the first cell: a word that no reader loads.
    let stop = memory.slice(HEADER_WORDS + 2, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while stop[0].load(Relaxed) == 0 {
                version[0].fetch_add(1, Relaxed);
            }
        });
        let mut into = [0];
        // Only that each read ends, with any result.
        for _ in 0..if cfg!(miri) { 3 } else { 1_000 } {
            let _ = reader.read(0, &mut into);
        }
        stop[0].store(1, Relaxed);
    });
}

#[test]
fn log_going_backwards_is_an_error() {
    let memory = memory(shape());
    let mut writer = Writer::attach(&memory).unwrap();
    let reader = Reader::attach(&memory.clone().into()).unwrap();
    let mut follower = reader.follow(0, 0);
    let mut into = [0; 2];
    for version in 1..=3 {
        writer.write(0, 0, &value(0, version, 2));
        assert!(matches!(follower.next(&mut into), Ok(LogPoll::Entry(_))));
    }
    let version = &memory[shape().version_at(0)];
    for version_found in [0, 1, 2] {
        version.store(version_found, Relaxed);
        assert_eq!(follower.next(&mut into), Err(ReadError::Backwards { seen: 3, found: version_found }));
    }
    version.store(u64::MAX, Relaxed);
    assert_eq!(follower.next(&mut into), Ok(LogPoll::Missed(u64::MAX - 2 - 3)));
    assert_eq!(follower.seen(), u64::MAX - 2);
    version.store(4, Relaxed);
    assert_eq!(follower.next(&mut into), Err(ReadError::Backwards { seen: u64::MAX - 2, found: 4 }));
}

#[test]
fn successor_refuses_impossible_versions() {
    let memory = memory(shape());
    memory[shape().version_at(1)].store(Writer::MAX_VERSION, Relaxed);
    let error = Writer::attach(&memory).err().unwrap();
    assert!(matches!(error, BoardError::Version { cell: 1, found: Writer::MAX_VERSION }), "{error}");
    memory[shape().version_at(1)].store(Writer::MAX_VERSION - 1, Relaxed);
    assert_eq!(Writer::attach(&memory).unwrap().write(1, 0, &[1, 2]), Writer::MAX_VERSION);
}
