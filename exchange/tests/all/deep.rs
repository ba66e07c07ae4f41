//! One book of many orders: too large for the naive engine, so that its events must add up by
//! themselves.

use crate::drawn::{Drawer, Seeded, Setting};
use crate::ledger::Ledger;
use crate::pair::Engine;
use exchange::{Exchange, Side};

/// What happened.
pub struct Deep {
    pub trades: u64,
    /// The most orders that were open at once.
    pub most: usize,
}

/// So many commands. After each its events must add up; once in so many everything is looked at.
pub fn run(operations: u64, seed: u64, check: u64) -> Result<Deep, String> {
    let setting = Setting::large();
    let (mut numbers, mut drawer) = (Seeded(seed), Drawer::new(&setting));
    let (mut engine, mut ledger) = (Exchange::start(&setting), Ledger::default());
    let (mut events, mut most) = (Vec::new(), 0);
    for at in 0..operations {
        let command = drawer.command(&mut numbers);
        events.clear();
        engine.apply(command, &mut events);
        let told = |what: String| format!("seed {seed}, deep book, command {at}: {command:?}\n{what}");
        ledger.take(command, &events).map_err(told)?;
        most = most.max(engine.open_orders());
        if at % check == 0 || at + 1 == operations {
            engine.check().map_err(|broken| told(format!("check(): {broken:?}")))?;
            let open = ledger.open().map_err(told)?;
            if open != engine.open_orders() {
                return Err(told(format!("{} orders are open, by the events {open}", engine.open_orders())));
            }
            for order in [Side::Buy, Side::Sell].into_iter().flat_map(|side| engine.orders(0, side)) {
                if ledger.leaves(order.id) != Some(order.leaves) {
                    return Err(told(format!("{order:?}, by the events {:?}", ledger.leaves(order.id))));
                }
            }
        }
    }
    Ok(Deep { trades: ledger.trades(), most })
}
