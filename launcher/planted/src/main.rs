//! The launcher with strategies that have a known cost at one isolation level:
//!
//! ```text
//! planted bill --strategy spend-50-at-process --isolation thread,process --strategies 1
//! planted run --strategy fault-at-thread --isolation thread+process --strategies 2
//! ```
//!
//! A bill must find the cost at that level and nowhere else. `nothing` is the same strategy without
//! a cost: what a bill claims there is wrong. `.ci/planted.sh` counts both over many bills.
#![forbid(unsafe_code)]

mod cost;
mod strategy;

use cost::Cost::{self, Fault, Spend, Stall, Switch};
use launcher::strategy::Context;
use std::process::ExitCode;
use strategy::{Planted, Side};

/// Returns the function that creates strategies with a cost at one side.
fn plant(cost: Cost, side: Side) -> impl Fn(&Context) -> Planted {
    move |context| Planted::new(context, (side == Side::of(context)).then_some(cost))
}

fn main() -> ExitCode {
    use Side::{Process, Thread};
    launcher::Harness::new()
        .strategy("nothing", |context| Planted::new(context, None))
        .strategy("spend-20-at-process", plant(Spend { ns: 20 }, Process))
        .strategy("spend-50-at-process", plant(Spend { ns: 50 }, Process))
        .strategy("spend-200-at-process", plant(Spend { ns: 200 }, Process))
        .strategy("spend-20000-at-process", plant(Spend { ns: 20_000 }, Process))
        .strategy("spend-20000-at-thread", plant(Spend { ns: 20_000 }, Thread))
        .strategy("fault-at-process", plant(Fault, Process))
        .strategy("fault-at-thread", plant(Fault, Thread))
        .strategy("switch-at-process", plant(Switch, Process))
        .strategy("switch-at-thread", plant(Switch, Thread))
        .strategy("stall-at-process", plant(Stall, Process))
        .strategy("stall-at-thread", plant(Stall, Thread))
        .main()
}
