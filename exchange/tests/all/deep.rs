//! One book of up to 100,000 orders, too large for the naive engine: a ledger checks its events.

use crate::drawn::{CommandSource, Setting};
use crate::ledger::Ledger;
use crate::pair::Engine;
use exchange::{Exchange, Side};
use shm::random::SplitMix64;

/// The totals of a run.
pub struct DeepRun {
    pub trades: u64,
    /// Maximum number of open orders.
    pub max_open: usize,
}

/// Applies commands. A ledger checks their events; every `check_interval` commands the exchange
/// checks itself.
pub fn run(operations: u64, seed: u64, check_interval: u64) -> Result<DeepRun, String> {
    let setting = Setting::large();
    let (mut numbers, mut source) = (SplitMix64(seed), CommandSource::new(&setting));
    let (mut engine, mut ledger) = (Exchange::start(&setting), Ledger::default());
    let (mut events, mut max_open) = (Vec::new(), 0);
    for index in 0..operations {
        let command = source.command(&mut numbers);
        events.clear();
        engine.apply(command, &mut events);
        let describe =
            |problem: String| format!("seed {seed}, deep book, command {index}: {command:?}\n{problem}");
        ledger.apply(command, &events).map_err(describe)?;
        max_open = max_open.max(engine.open_orders());
        if index % check_interval == 0 || index + 1 == operations {
            engine.check().map_err(|violation| describe(format!("check(): {violation:?}")))?;
            let open = ledger.open().map_err(describe)?;
            if open != engine.open_orders() {
                return Err(describe(format!(
                    "{} orders are open, {open} according to the events",
                    engine.open_orders()
                )));
            }
            for order in [Side::Buy, Side::Sell].into_iter().flat_map(|side| engine.orders(0, side)) {
                if ledger.leaves(order.id) != Some(order.leaves) {
                    return Err(describe(format!(
                        "{order:?}, open according to the events: {:?}",
                        ledger.leaves(order.id)
                    )));
                }
            }
        }
    }
    Ok(DeepRun { trades: ledger.trades(), max_open })
}
