//! The launcher, with a strategy, techniques and a venue of this crate's own:
//!
//! ```text
//! own-strategy run --strategy quoter --venue shallow --technique drain-mux --orders 2000
//! own-strategy bill --strategy quoter --technique spsc-mux,drain-mux
//! own-strategy simulate --technique drain-mux
//! own-strategy contain --strategy quoter --fault kill --technique drain-mux
//! ```
#![forbid(unsafe_code)]

use own_strategy::{DrainMux, Quoter, Shallow, SlowMux};
use std::process::ExitCode;

fn main() -> ExitCode {
    launcher::Harness::new()
        .strategy("quoter", Quoter::new)
        .venue("shallow", |_| Shallow)
        .technique::<DrainMux>()
        .technique::<SlowMux>()
        .main()
}
