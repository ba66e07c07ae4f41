//! The fuzz targets' bodies (`techniques/fuzz`) with random bytes: what the fuzzer tries for hours,
//! for a moment in every test run.

#[path = "../../fuzz/bodies/mod.rs"]
mod bodies;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        for (_, body) in bodies::ALL {
            body(&bytes);
        }
    }
}

/// Each target has its file, and each file its body.
#[test]
fn all_bodies_have_their_targets() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/fuzz_targets");
    let files =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned())).collect();
    files.sort();
    // Of another crate.
    files.retain(|file| file != "schedule");
    let mut names: Vec<_> = bodies::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(files, names);
}
