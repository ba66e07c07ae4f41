//! One book of up to 100,000 orders, too large for the naive engine: a ledger checks its events.

use crate::drawn::{Drawer, Seeded, Setting};
use crate::ledger::Ledger;
use crate::pair::Engine;
use exchange::{Exchange, Side};

/// The totals of a run.
pub struct DeepRun {
    pub trades: u64,
    /// Maximum number of open orders.
    pub max_open: usize,
}

/// Applies commands, whose events a ledger checks; checks the exchange every `check` of them.
pub fn run(operations: u64, seed: u64, check: u64) -> Result<DeepRun, String> {
    let setting = Setting::large();
    let (mut numbers, mut drawer) = (Seeded(seed), Drawer::new(&setting));
    let (mut engine, mut ledger) = (Exchange::start(&setting), Ledger::default());
    let (mut events, mut max_open) = (Vec::new(), 0);
    for at in 0..operations {
        let command = drawer.command(&mut numbers);
        events.clear();
        engine.apply(command, &mut events);
        let describe = |what: String| format!("seed {seed}, deep book, command {at}: {command:?}\n{what}");
        ledger.take(command, &events).map_err(describe)?;
        max_open = max_open.max(engine.open_orders());
        if at % check == 0 || at + 1 == operations {
            engine.check().map_err(|found| describe(format!("check(): {found:?}")))?;
            let open = ledger.open().map_err(describe)?;
            if open != engine.open_orders() {
                return Err(describe(format!(
                    "{} orders are open, by the events {open}",
                    engine.open_orders()
                )));
            }
            for order in [Side::Buy, Side::Sell].into_iter().flat_map(|side| engine.orders(0, side)) {
                if ledger.leaves(order.id) != Some(order.leaves) {
                    return Err(describe(format!("{order:?}, by the events {:?}", ledger.leaves(order.id))));
                }
            }
        }
    }
    Ok(DeepRun { trades: ledger.trades(), max_open })
}
