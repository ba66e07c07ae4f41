//! Names the shared library by the major version of its interface, so that a program of another one
//! does not load it.

/// As in `BHQ_VERSION`: see tests/install.rs.
const MAJOR: u32 = 1;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbulkhead_queue.so.{MAJOR}");
}
