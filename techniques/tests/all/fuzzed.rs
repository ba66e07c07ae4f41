//! Runs the bodies of the fuzz targets (`proofs/fuzz/techniques`) with random bytes, briefly in
//! every test run.

#[path = "../../../proofs/fuzz/techniques/bodies/mod.rs"]
mod bodies;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        for (_, body) in bodies::ALL {
            body(&bytes);
        }
    }
}

/// Each body has a target file, and each file a body.
#[test]
fn all_bodies_have_their_targets() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../proofs/fuzz/techniques/fuzz_targets");
    let files =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned())).collect();
    files.sort();
    // The target of another crate.
    files.retain(|file| file != "schedule");
    let mut names: Vec<_> = bodies::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(files, names);
}
