//! Boards: against a naive model with interleaved writes, with broken variants that the same checks
//! detect; hostile words; and between processes.

// Values, not memory: minutes under Miri.
#[cfg(not(miri))]
mod broken;
mod hostile;
mod model;
#[cfg(not(miri))]
mod processes;
mod properties;

use shm::board::{BoardShape, ReadError, Stamp, heap as memory};

/// Returns the value of a cell's version. Each word depends on cell, version and index, so that a
/// torn value is detected.
fn value(cell: usize, version: u64, words: usize) -> Vec<u64> {
    let name = (cell as u64) << 48 | version;
    (0..words as u64).map(|index| (name ^ index << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

fn ticks(cell: usize, version: u64) -> u64 {
    version * 1_000 + cell as u64
}

/// Readers that are told a version use the same one, however far the board has advanced, until it
/// is overwritten.
#[test]
fn named_version_is_read_until_it_is_overwritten() {
    for words in [1, 4, 1_000] {
        let (mut writer, reader) = shm::board::pair(BoardShape::with_cells(1, words).unwrap());
        let slots = reader.shape().slots() as u64;
        let mut into = vec![0; words];
        assert_eq!(reader.read_version(0, 1, &mut into), Ok(None), "not written yet");
        for newest in 1..=2 * slots {
            writer.write(0, ticks(0, newest), &value(0, newest, words));
            for version in 1..=newest {
                let found = reader.read_version(0, version, &mut into);
                // The slot of the oldest version may be written next.
                if newest - version < slots - 1 {
                    assert_eq!(found, Ok(Some(Stamp { version, ticks: ticks(0, version) })));
                    assert_eq!(into, value(0, version, words));
                } else {
                    assert_eq!(found, Err(ReadError::Overwritten { version, newest }));
                }
            }
            assert_eq!(reader.read_version(0, newest + 1, &mut into), Ok(None));
        }
        assert_eq!(reader.read_version(0, 0, &mut into), Ok(None));
    }
}
