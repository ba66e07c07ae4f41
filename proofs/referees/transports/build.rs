//! Links an empty archive for libbsd where it is not installed: the bindings ask for it, but the
//! driver needs it only for randomness on older C libraries.

use std::path::{Path, PathBuf};

/// What an archive without members is.
const EMPTY: &[u8] = b"!<arch>\n";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_AERON").is_none() || Path::new("/usr/include/bsd/stdlib.h").exists() {
        return;
    }
    let Some(folder) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    if std::fs::write(folder.join("libbsd.a"), EMPTY).is_ok() {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
}
