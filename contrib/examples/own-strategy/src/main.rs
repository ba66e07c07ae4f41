//! The launcher with the strategy, the techniques and the venues of this crate:
//!
//! ```text
//! own-strategy run --strategy quoter --venue shallow --technique drain-mux --orders 2000
//! own-strategy bill --strategy quoter --technique spsc-mux,drain-mux
//! own-strategy simulate --technique drain-mux
//! own-strategy contain --strategy quoter --fault kill --technique drain-mux
//! ```
#![forbid(unsafe_code)]

// ANCHOR: page
use launcher::gateway::DelayVenue;
use own_strategy::{DrainMux, HeapRing, InParts, Quoter, Shallow, SlowMux};
use std::process::ExitCode;

fn main() -> ExitCode {
    launcher::Harness::new()
        .strategy("quoter", Quoter::new)
        // ANCHOR: venues
        .venue("shallow", |context| DelayVenue::new(Shallow, context))
        .venue("in-parts", InParts::new)
        // ANCHOR_END: venues
        .technique::<DrainMux>()
        .technique::<HeapRing>()
        .technique::<SlowMux>()
        .main()
}
// ANCHOR_END: page
