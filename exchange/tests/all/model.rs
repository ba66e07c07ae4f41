//! The naive engine alone: its events add up, and its book is never left crossed.

use crate::drawn::{Drawer, Seeded, Setting};
use crate::ledger::Ledger;
use crate::naive::Naive;
use exchange::{Event, Side};
use std::collections::BTreeMap;

#[test]
fn naive_engine_adds_up_and_covers_all_events() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (seed, setting) in [(1, Setting::crowded()), (2, Setting::few_levels())] {
        let (mut numbers, mut drawer) = (Seeded(seed), Drawer::new(&setting));
        let (mut naive, mut ledger) = (Naive::new(&setting.instruments, setting.capacity), Ledger::default());
        for _ in 0..30_000 {
            let command = drawer.command(&mut numbers);
            let events = naive.apply(command);
            ledger.take(command, &events).unwrap();
            assert_eq!(ledger.open().unwrap(), naive.open_orders());
            for side in [Side::Buy, Side::Sell] {
                for open in (0..3).flat_map(|instrument| naive.orders(instrument, side)) {
                    assert_eq!(ledger.leaves(open.order.id), Some(open.leaves));
                    assert!(open.shown > 0 && open.shown <= open.leaves, "{open:?}");
                }
            }
            for event in events {
                let name = match event {
                    Event::Rejected { reason, .. } => format!("rejected {reason:?}"),
                    Event::Cancelled { reason, .. } => format!("cancelled {reason:?}"),
                    Event::Uncrossed { volume, .. } => format!("uncrossed {}", volume > 0),
                    other => format!("{other:?}").split(' ').next().unwrap().to_owned(),
                };
                *seen.entry(name).or_default() += 1;
            }
        }
    }
    let fewest = seen.values().min().unwrap();
    assert!(seen.len() == 26 && *fewest >= 20, "what happened how often: {seen:#?}");
}
