//! A ledger of open quantities, from events alone: no quantity is lost or created.

use exchange::{Command, Event};
use std::collections::HashMap;

/// Every order's open quantity, according to the events so far.
#[derive(Default)]
pub struct Ledger {
    open: HashMap<u64, u64>,
    trades: u64,
    /// Quantities: accepted or added, traded (on both sides), and removed without a trade.
    pub accepted: u128,
    pub traded: u128,
    pub removed: u128,
}

impl Ledger {
    /// Applies a command's events. Returns an error if they contradict the quantities so far.
    pub fn apply(&mut self, command: Command, events: &[Event]) -> Result<(), String> {
        for event in events {
            self.apply_event(command, *event)
                .map_err(|problem| format!("{problem}: {event:?} of {command:?}"))?;
        }
        Ok(())
    }

    fn apply_event(&mut self, command: Command, event: Event) -> Result<(), String> {
        match event {
            Event::Accepted { id, .. } => {
                let Command::New(order) = command else { return Err("accepted without a new order".into()) };
                if id != order.id || self.open.insert(id, order.quantity).is_some() {
                    return Err("another order is accepted".into());
                }
                self.accepted += u128::from(order.quantity);
            }
            Event::Replaced { id, leaves, .. } => {
                let open = self.open.get_mut(&id).ok_or("replaced, but not open")?;
                if leaves > *open {
                    self.accepted += u128::from(leaves - *open);
                } else {
                    self.removed += u128::from(*open - leaves);
                }
                *open = leaves;
            }
            Event::Trade { number, maker, taker, quantity, maker_leaves, taker_leaves, .. } => {
                if number != self.trades || quantity == 0 || maker == taker {
                    return Err("number, quantity or parties of a trade".into());
                }
                self.trades += 1;
                for (id, leaves) in [(maker, maker_leaves), (taker, taker_leaves)] {
                    let open = self.open.get_mut(&id).ok_or("traded, but not open")?;
                    if open.checked_sub(quantity) != Some(leaves) {
                        return Err(format!("order {id} had {open} open"));
                    }
                    *open = leaves;
                    self.traded += u128::from(quantity);
                    if leaves == 0 {
                        self.open.remove(&id);
                    }
                }
            }
            Event::Cancelled { id, leaves, .. } | Event::Expired { id, leaves, .. } => {
                if self.open.remove(&id) != Some(leaves) {
                    return Err("another quantity was open".into());
                }
                self.removed += u128::from(leaves);
            }
            Event::Reduced { id, leaves } => {
                let open = self.open.get_mut(&id).ok_or("reduced, but not open")?;
                if leaves == 0 || leaves >= *open {
                    return Err(format!("the order had {open} open"));
                }
                self.removed += u128::from(*open - leaves);
                *open = leaves;
            }
            Event::Triggered { id } if !self.open.contains_key(&id) => {
                return Err("triggered, but not open".into());
            }
            Event::Triggered { .. } | Event::Rejected { .. } | Event::Uncrossed { .. } => {}
        }
        Ok(())
    }

    /// Returns the number of open orders, or an error if quantity was lost.
    pub fn open(&self) -> Result<usize, String> {
        let open: u128 = self.open.values().map(|quantity| u128::from(*quantity)).sum();
        if open + self.traded + self.removed != self.accepted {
            return Err(format!(
                "accepted {}, but open {open}, traded {}, removed {}",
                self.accepted, self.traded, self.removed
            ));
        }
        Ok(self.open.len())
    }

    /// Returns an order's open quantity.
    pub fn leaves(&self, id: u64) -> Option<u64> {
        self.open.get(&id).copied()
    }

    pub fn trades(&self) -> u64 {
        self.trades
    }
}
