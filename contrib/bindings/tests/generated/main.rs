//! The files that are generated from the C interface are current: the page of the docs, the data
//! types of the Python package, the views of the Java library. `BULKHEAD_GOLDEN=1` writes it.
#![forbid(unsafe_code)]

mod java;
mod page;
mod python;
mod source;

use source::Interface;
use std::path::{Path, PathBuf};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns each generated file with its expected content.
fn files(interface: &Interface) -> [(PathBuf, String); 3] {
    [
        (folder().join("../../docs/src/layout.md"), page::render(interface)),
        (folder().join("python/python/bulkhead/layout.py"), python::render(interface)),
        (folder().join("java/src/bulkhead/Layout.java"), java::render(interface)),
    ]
}

#[test]
fn generated_files_are_current() {
    for (path, expected) in files(&Interface::read()) {
        if std::env::var("BULKHEAD_GOLDEN").is_ok_and(|value| value == "1") {
            std::fs::write(&path, &expected).expect("the file can be written");
        }
        let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
        let path = path.display();
        assert!(
            checked_in == expected,
            "{path} is old: BULKHEAD_GOLDEN=1 cargo test -p bindings --test generated"
        );
    }
}

#[test]
fn parsed_layout_matches_compiler() {
    use bulkhead::layout;
    let interface = Interface::read();
    let sizes: Vec<(&str, usize)> =
        interface.structures.iter().map(|found| (found.name.as_str(), found.size())).collect();
    let expected = [
        ("Order", size_of::<layout::Order>()),
        ("Report", size_of::<layout::Report>()),
        ("Tick", size_of::<layout::Tick>()),
        ("Context", size_of::<layout::Context>()),
    ];
    assert_eq!(sizes, expected);
    // Some fields of each width: their offsets according to the compiler.
    let offset = |structure: &str, field: &str| {
        let found = interface.structures.iter().find(|found| found.name == structure).expect("it is there");
        found.fields.iter().find(|found| found.name == field).expect("it is there").offset
    };
    assert_eq!(offset("Order", "venue"), core::mem::offset_of!(layout::Order, venue));
    assert_eq!(offset("Order", "condition"), core::mem::offset_of!(layout::Order, condition));
    assert_eq!(offset("Report", "is_last"), core::mem::offset_of!(layout::Report, is_last));
    assert_eq!(offset("Tick", "last_quantity"), core::mem::offset_of!(layout::Tick, last_quantity));
    assert_eq!(offset("Context", "epoch"), core::mem::offset_of!(layout::Context, epoch));
    // No field has gone missing, and no constant.
    assert_eq!(interface.constants.len(), interface.count_of("pub const BH_"));
    assert_eq!(interface.functions.len(), interface.count_of("#[unsafe(no_mangle)]"));
}

#[test]
fn misplaced_field_is_detected() {
    let text = "/// One.\npub struct Order {\n    /// A.\n    pub a: u8,\n    /// B.\n    pub b: u64,\n}\n";
    let found = std::panic::catch_unwind(|| source::structures(text));
    assert!(found.is_err(), "there is padding between the two");
}
