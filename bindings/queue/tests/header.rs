//! The checked-in C header equals the one generated from the code.
//! `BULKHEAD_GOLDEN=1` writes it.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

fn generated_header() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    let sources = ["codes", "handles", "abi"].map(|module| folder.join(format!("src/{module}.rs")));
    let builder = sources
        .iter()
        .fold(cbindgen::Builder::new().with_config(config), |builder, source| builder.with_src(source));
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    String::from_utf8(text).expect("C is ASCII, and comments UTF-8")
}

fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/bulkhead_queue.h")
}

#[test]
fn header_is_current() {
    if std::env::var("BULKHEAD_GOLDEN").is_ok_and(|value| value == "1") {
        std::fs::write(header(), generated_header()).expect("the header can be written");
    }
    let checked_in = std::fs::read_to_string(header()).expect("the header is there");
    assert!(
        checked_in == generated_header(),
        "the header is old: BULKHEAD_GOLDEN=1 cargo test -p bulkhead-queue --test header"
    );
}
