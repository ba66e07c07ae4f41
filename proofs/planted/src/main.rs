//! The launcher, whose built-in player has a cost at one isolation level that a variable names:
//!
//! ```text
//! PLANTED=spend-50-at-process planted bill --isolation thread,process --strategies 1
//! PLANTED=fault-at-thread planted run --isolation thread+process --strategies 2
//! ```
//!
//! A bill must find the cost at that level and nowhere else. Without the variable the player has
//! the same code and no cost: each difference that a bill then claims is wrong. `.ci/planted.sh`
//! counts both over many bills.
#![forbid(unsafe_code)]

mod cost;
mod strategy;

use cost::Cost;
use launcher::heap_techniques;
use launcher::protocol::plan::Trading;
use launcher::strategy::Context;
use std::process::ExitCode;
use std::sync::Arc;
use strategy::{Planted, Side};

/// The variable that names the cost and its level: `spend-50-at-process`. Every process of a run
/// inherits it.
const VARIABLE: &str = "PLANTED";

/// Reads a cost and the side that pays it.
fn parse(text: &str) -> Option<(Cost, Side)> {
    let (cost, side) = text.split_once("-at-")?;
    let side = match side {
        "thread" => Side::Thread,
        "process" => Side::Process,
        _ => return None,
    };
    Some((Cost::parse(cost)?, side))
}

fn main() -> ExitCode {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let planted = parse(&text);
    if planted.is_none() && !text.is_empty() {
        eprintln!(
            "error: {VARIABLE}={text}: unknown cost; give spend-NS, fault, switch or stall, then -at-thread or -at-process"
        );
        return ExitCode::from(2);
    }
    let make = move |context: &Context| {
        let is_here = |(_, side): &(Cost, Side)| *side == Side::of(context);
        Planted::new(context, planted.filter(is_here).map(|(cost, _)| cost))
    };
    let mut registry = heap_techniques::registry::<()>();
    registry.add_strategy::<(), Planted>(Trading::PLAYER, Arc::new(make));
    // The launcher then keeps this registry.
    registry.install();
    launcher::main()
}
