//! The fuzz target with random bytes, and the roundtrip of arbitrary records as a property.

use crate::basics::open;
use crate::common::{folder, is_slow};
use journal::Reader;
use proptest::prelude::*;
use shm::random::SplitMix64;

#[path = "../../../proofs/fuzz/journal/bodies/reader.rs"]
mod reader;

#[test]
fn arbitrary_bytes_are_read_without_harm() {
    let mut random = SplitMix64(11);
    for _ in 0..if is_slow() { 200_000 } else { 3000 } {
        let length = random.below(400);
        // Small numbers more often, as lengths and sequences are.
        let byte =
            |random: &mut SplitMix64| if random.below(3) > 0 { random.below(4) } else { random.below(256) } as u8;
        let bytes: Vec<u8> = (0..length).map(|_| byte(&mut random)).collect();
        reader::read(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn arbitrary_records_roundtrip(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..2000), 1..60),
        reopen_at in 0_usize..60,
        from in 1_u64..60,
    ) {
        let folder = folder();
        let open = || open(folder.path());
        let mut writer = open();
        for (index, record) in records.iter().enumerate() {
            if index == reopen_at {
                drop(writer);
                writer = open();
            }
            prop_assert_eq!(writer.append(record).unwrap(), index as u64 + 1);
        }
        let from = from.min(records.len() as u64);
        let mut reader = Reader::open(folder.path(), Some(from)).unwrap();
        for (index, record) in records.iter().enumerate().skip(from as usize - 1) {
            let actual = reader.next_record().unwrap().unwrap();
            prop_assert_eq!((actual.sequence, actual.payload), (index as u64 + 1, &record[..]));
        }
        prop_assert!(reader.next_record().unwrap().is_none());
    }
}
