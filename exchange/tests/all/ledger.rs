//! A ledger of open quantities, from events alone: no quantity is lost or created.

use exchange::{Command, Event};
use std::collections::HashMap;

/// Every order's open quantity, by the events so far.
#[derive(Default)]
pub struct Ledger {
    open: HashMap<u64, u64>,
    trades: u64,
    /// Quantities: accepted or added, traded (on both sides), and gone without a trade.
    pub accepted: u128,
    pub traded: u128,
    pub gone: u128,
}

impl Ledger {
    /// Takes a command's events. Says what contradicts the quantities so far.
    pub fn take(&mut self, command: Command, events: &[Event]) -> Result<(), String> {
        for event in events {
            self.one(command, *event).map_err(|what| format!("{what}: {event:?} of {command:?}"))?;
        }
        Ok(())
    }

    fn one(&mut self, command: Command, event: Event) -> Result<(), String> {
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
                    self.gone += u128::from(*open - leaves);
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
                        return Err(format!("{open} were open of {id}"));
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
                self.gone += u128::from(leaves);
            }
            Event::Reduced { id, leaves } => {
                let open = self.open.get_mut(&id).ok_or("reduced, but not open")?;
                if leaves == 0 || leaves >= *open {
                    return Err(format!("{open} were open"));
                }
                self.gone += u128::from(*open - leaves);
                *open = leaves;
            }
            Event::Triggered { id } if !self.open.contains_key(&id) => {
                return Err("triggered, but not open".into());
            }
            Event::Triggered { .. } | Event::Rejected { .. } | Event::Uncrossed { .. } => {}
        }
        Ok(())
    }

    /// How many orders are open, and that nothing is lost.
    pub fn open(&self) -> Result<usize, String> {
        let open: u128 = self.open.values().map(|quantity| u128::from(*quantity)).sum();
        if open + self.traded + self.gone != self.accepted {
            return Err(format!(
                "accepted {}, but open {open}, traded {}, gone {}",
                self.accepted, self.traded, self.gone
            ));
        }
        Ok(self.open.len())
    }

    /// What is open of an order.
    pub fn leaves(&self, id: u64) -> Option<u64> {
        self.open.get(&id).copied()
    }

    pub fn trades(&self) -> u64 {
        self.trades
    }
}
