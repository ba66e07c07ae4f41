//! Integration tests of `system`: attempts of a sandboxed process, and the layers that refuse them.
//!
//! Changes of the process itself (limits, layers of the sandbox) are made in a child: this binary
//! started again for one of its tests.
//!
//! A single one: `cargo test -p system --test all sandbox::files::`.
#![cfg(not(miri))]

mod sandbox;
