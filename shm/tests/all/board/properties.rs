//! The library's board behaves as the model under any interleaving.

use super::model::{acts, check, shapes};
use proptest::prelude::*;
use shm::board::{BoardError, BoardShape, LogReader, Reader, Writer};
use std::ops::ControlFlow;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_are_whole_and_logs_report_missed_entries(shape in shapes(), acts in acts()) {
        check::<Writer, Reader, LogReader>(shape, &acts).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn board_words_do_not_overlap(shape in shapes()) {
        let mut indices = Vec::new();
        for cell in 0..shape.cells() {
            indices.push(shape.version_at(cell));
            for version in 0..shape.slots() as u64 {
                let slot = shape.slot_at(cell, version);
                indices.extend(slot..=slot + shape.words());
                prop_assert_eq!(slot, shape.slot_at(cell, version + shape.slots() as u64));
            }
        }
        let count = indices.len();
        indices.sort_unstable();
        indices.dedup();
        prop_assert_eq!(indices.len(), count);
        prop_assert!(indices[0] >= 18 && indices[count - 1] < shape.segment_words());
    }
}

#[test]
fn invalid_board_shapes_are_refused() {
    for (cells, words, slots) in
        [(0, 1, 2), (1, 0, 2), (1, 1, 0), (1, 1, 1), (1, 1, 3), (1 << 21, 1, 2), (1, 1 << 18, 2)]
    {
        let refused = BoardShape::with_slots(cells, words, slots);
        assert!(matches!(refused, Err(BoardError::Shape { .. })), "{cells} {words} {slots}");
    }
    assert!(BoardShape::with_slots(BoardShape::MAX_CELLS, BoardShape::MAX_WORDS, 2).is_ok());
}

/// The sizes that the documentation names, from 16 B to 64 KiB.
#[test]
fn values_of_all_sizes_are_read_whole() {
    // Miri takes minutes for the large ones, and looks for other things than values.
    let sizes: &[usize] = if cfg!(miri) { &[2, 7, 64] } else { &[2, 3, 7, 64, 512, 513, 8192] };
    for &words in sizes {
        let shape = BoardShape::with_cells(2, words).unwrap();
        let (mut writer, reader) = shm::board::pair(shape);
        let mut into = vec![0; words];
        for version in 1..=10 {
            let value = super::value(1, version, words);
            assert_eq!(writer.write(1, super::ticks(1, version), &value), version);
            let stamp = reader.read(1, &mut into).unwrap().unwrap();
            assert_eq!((stamp.version, stamp.ticks), (version, super::ticks(1, version)));
            assert_eq!(into, value);
        }
        assert_eq!(reader.read(0, &mut into), Ok(None), "another cell");
    }
}

#[test]
fn last_is_the_newest_whole_value() {
    let shape = BoardShape::with_cells(2, 3).unwrap();
    let memory = super::memory(shape);
    let mut writer = Writer::attach(&memory).unwrap();
    let mut into = [0; 3];
    assert_eq!(writer.last(1, &mut into), None);
    for version in 1..=6 {
        let value = super::value(1, version, 3);
        writer.write(1, super::ticks(1, version), &value);
        assert_eq!(writer.last(1, &mut into), Some(super::ticks(1, version)));
        assert_eq!(into[..], value);
    }
    let die = &mut |store| if store == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    assert_eq!(writer.write_with(1, 9, &[9; 3], die), None);
    let successor = Writer::attach(&memory).unwrap();
    assert_eq!(successor.last(1, &mut into), Some(super::ticks(1, 6)));
    assert_eq!(into[..], super::value(1, 6, 3));
    assert_eq!(successor.last(0, &mut into), None, "another cell");
}
