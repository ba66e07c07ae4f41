//! `histograms.hlog`: a valid file is read, an invalid one is refused with an explanation, and no
//! damage makes the reader panic.

use crate::common::evaluated;
use crate::fixture::{Fixture, Shape};
use merge::hlog::{self, HLOG_FILE};
use std::fs;

#[test]
fn damaged_histograms_are_read_or_refused() {
    let (folder, _) = evaluated(&Fixture::new(Shape { orders: 200, ..Shape::PLAIN }));
    let file = folder.path().join(HLOG_FILE);
    let whole = fs::read(&file).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let error = hlog::read(folder.path()).err()?;
        assert!(error.contains(HLOG_FILE), "{error}");
        Some(error)
    };
    assert_eq!(read(&whole), None);
    for (bytes, words) in [
        (&b"Tag=submit,0.0,1.0,1.0,*\n"[..], "entry 1"),
        (b"Tag=submit,0.0,1.0,1.0,AAAA\n", "entry 1"),
        (b"", "no histogram"),
        (b"\xFF\xFE\xFD", "launcher report"),
    ] {
        assert!(read(bytes).unwrap().contains(words), "{words}");
    }
    // A truncated file may be valid as far as it goes.
    let mut refused = 0;
    for cut in (0..whole.len()).step_by(whole.len() / 150 + 1) {
        let mut scribbled = whole.clone();
        scribbled[cut] ^= 0xA5;
        refused += [&whole[..cut], &scribbled].into_iter().filter_map(read).count();
    }
    assert!(refused > 0);
    fs::remove_file(&file).unwrap();
    assert!(hlog::read(folder.path()).unwrap_err().contains(HLOG_FILE));
}
