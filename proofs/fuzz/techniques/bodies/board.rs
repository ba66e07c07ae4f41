//! The ends of a board on words that may change between any two loads.

use arbitrary::{Arbitrary, Unstructured};
use shm::board::{self, BoardShape, LogReader, Reader, Writer};
use shm::memory::AtomicWords;
use shm::sync::Ordering::Relaxed;

#[derive(Arbitrary, Debug)]
enum Action {
    Write {
        cell: u8,
        value: u64,
    },
    Read {
        cell: u8,
    },
    /// A read with a word changed before one of its loads.
    Interrupted {
        cell: u8,
        at: u8,
        index: u8,
        value: Value,
    },
    LogPoll,
    Follow {
        cell: u8,
        seen: u64,
    },
    Scribble {
        index: u16,
        value: Value,
    },
    /// Attaches new ends to the current memory.
    Attach,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Any(u64),
    Small(u8),
    /// Counted from the top.
    Large(u8),
    Beside(i8),
}

fn overwrite(words: &AtomicWords, index: usize, value: Value) {
    let word = &words[index % words.len()];
    let value = match value {
        Value::Any(value) => value,
        Value::Small(value) => value.into(),
        Value::Large(value) => u64::MAX - u64::from(value),
        Value::Beside(difference) => word.load(Relaxed).wrapping_add_signed(difference.into()),
    };
    word.store(value, Relaxed);
}

/// Checks that no call panics or hangs, and that an accepted shape fits the memory.
pub fn board(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Ok((cells, size, slots)) = <(u8, u8, u8)>::arbitrary(&mut input) else { return };
    let shape = BoardShape::with_slots(1 + cells as usize % 3, 1 + size as usize % 9, 2 << (slots % 3))
        .expect("boards have these");
    let words = board::heap(shape);
    let mut writer = Writer::attach(&words).expect("fresh");
    let mut reader = Reader::attach(&words.clone().into()).expect("fresh");
    let mut follower: LogReader = reader.follow(0, 0);
    while let Ok(act) = Action::arbitrary(&mut input) {
        if input.is_empty() {
            break;
        }
        let mut into = vec![0; reader.shape().words()];
        let cells = reader.shape().cells();
        match act {
            Action::Write { cell, value } => {
                let (cell, count) = (cell as usize % writer.shape().cells(), writer.shape().words());
                writer.write(cell, value, &vec![value; count]);
            }
            Action::Read { cell } => {
                let _ = reader.read(cell as usize % cells, &mut into);
            }
            Action::Interrupted { cell, at, index, value } => {
                let mut interrupt = |load| {
                    if load == at as usize {
                        overwrite(&words, reader.shape().version_at(0) + index as usize, value);
                    }
                };
                let _ = reader.try_read_with(cell as usize % cells, &mut into, &mut interrupt);
            }
            Action::LogPoll => {
                let mut into = vec![0; follower.words()];
                let before = follower.seen();
                let next = follower.next(&mut into);
                // The position moves with an entry and with missed ones, and stays with an error.
                let has_stayed = follower.seen() == before;
                assert_eq!(has_stayed, next.is_err() || next == Ok(board::LogPoll::Empty));
            }
            Action::Follow { cell, seen } => follower = reader.follow(cell as usize % cells, seen),
            Action::Scribble { index, value } => overwrite(&words, index.into(), value),
            Action::Attach => {
                if let Ok(attached) = Reader::attach(&words.clone().into()) {
                    assert!(attached.shape().segment_words() <= words.len());
                    reader = attached;
                }
                if let Ok(attached) = Writer::attach(&words) {
                    writer = attached;
                }
            }
        }
    }
}
