//! The check that a checked-in C header equals the one that cbindgen makes of the code.

use std::path::Path;

fn generated(package: &Path, modules: &[&str]) -> String {
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).expect("a configuration");
    let sources = modules.iter().map(|module| package.join(format!("src/{module}.rs")));
    let builder = sources
        .fold(cbindgen::Builder::new().with_config(config), |builder, source| builder.with_src(source));
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    String::from_utf8(text).expect("C is ASCII, and comments UTF-8")
}

/// Compares `include/NAME` of a package with the header of its modules. `BULKHEAD_GOLDEN=1` writes
/// it.
///
/// # Panics
/// If they differ.
pub fn assert_header_is_current(package: &str, modules: &[&str], name: &str) {
    let package = Path::new(package);
    let (header, generated) = (package.join("include").join(name), generated(package, modules));
    if std::env::var("BULKHEAD_GOLDEN").is_ok_and(|value| value == "1") {
        std::fs::write(&header, &generated).expect("the header can be written");
    }
    let checked_in = std::fs::read_to_string(&header).expect("the header is there");
    assert!(checked_in == generated, "{name} is old: run this test with BULKHEAD_GOLDEN=1");
}
