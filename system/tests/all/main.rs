//! system's integration tests: what a process in the sandbox tries, and which layer refuses it.
//!
//! Whatever changes the process itself (limits, layers of the sandbox) happens in a child: this
//! binary started again for one of its tests, see [`common::itself`].
//!
//! One of them alone: `cargo test -p system --test all sandbox::files::`.
#![cfg(not(miri))]

mod common;
mod sandbox;
