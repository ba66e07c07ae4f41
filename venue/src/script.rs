//! A recorded flow in its recorded order, whoever sends it.
//!
//! Where several strategies play one recording, how their orders interleave on the way is a matter
//! of scheduling. A script says whose turn it is: orders wait until those before them have come. So
//! the trades are those of the recording, at the price that the waiting is part of the venue's
//! time.

use protocol::wire::{Instruction, MAX_STRATEGIES, Message, Order};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Whose turn it is, and who waits.
pub struct ReplaySequencer {
    /// The strategy of each order, in the recorded order.
    turns: Vec<u16>,
    next: usize,
    waiting: Vec<VecDeque<Order>>,
}

/// Where a script is: how many turns have passed, and the orders that wait, strategy by strategy,
/// as messages.
#[derive(Serialize, Deserialize)]
pub(crate) struct ScriptState {
    next: u64,
    waiting: Vec<Vec<Message>>,
}

impl ReplaySequencer {
    pub(crate) fn state(&self) -> ScriptState {
        let messages = |orders: &VecDeque<Order>| {
            orders.iter().map(|order| Instruction::Order(*order).to_message()).collect()
        };
        ScriptState { next: self.next as u64, waiting: self.waiting.iter().map(messages).collect() }
    }

    /// Whether it is one of this script.
    pub(crate) fn restore(&mut self, state: &ScriptState) -> bool {
        if state.next > self.turns.len() as u64 || state.waiting.len() != self.waiting.len() {
            return false;
        }
        self.next = state.next as usize;
        for (waiting, messages) in self.waiting.iter_mut().zip(&state.waiting) {
            waiting.clear();
            for message in messages {
                let Ok(Instruction::Order(order)) = Instruction::from_message(*message) else { return false };
                waiting.push_back(order);
            }
        }
        true
    }

    /// The script in which orders of these strategies come one after the other.
    pub fn new(turns: Vec<u16>) -> Self {
        let mut orders = vec![0; MAX_STRATEGIES];
        turns.iter().for_each(|strategy| orders[usize::from(*strategy) % MAX_STRATEGIES] += 1);
        let last = orders.iter().rposition(|orders| *orders > 0).map_or(0, |place| place + 1);
        let waiting = orders[..last].iter().map(|orders| VecDeque::with_capacity(*orders)).collect();
        Self { turns, next: 0, waiting }
    }

    /// An order has come. One of a strategy that has no turn is given back: nothing waits for it.
    pub fn put(&mut self, order: Order) -> Option<Order> {
        match self.waiting.get_mut(usize::from(order.id.strategy())) {
            Some(waiting) => {
                waiting.push_back(order);
                None
            }
            None => Some(order),
        }
    }

    /// The next order, if the one whose turn it is has come. Behind the last turn: any.
    pub fn take(&mut self) -> Option<Order> {
        let Some(strategy) = self.turns.get(self.next) else { return self.take_any() };
        let order = self.waiting.get_mut(usize::from(*strategy))?.pop_front()?;
        self.next += 1;
        Some(order)
    }

    /// Any order that waits: when no more will come.
    pub fn take_any(&mut self) -> Option<Order> {
        self.waiting.iter_mut().find_map(VecDeque::pop_front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::wire::OrderId;

    fn order(strategy: u16, sequence: u64) -> Order {
        Order::new(OrderId::new(strategy, 0, sequence), 0)
    }

    fn taken(script: &mut ReplaySequencer) -> Vec<(u16, u64)> {
        std::iter::from_fn(|| script.take()).map(|order| (order.id.strategy(), order.id.sequence())).collect()
    }

    #[test]
    fn orders_come_out_in_their_turns() {
        let mut script = ReplaySequencer::new(vec![0, 2, 2, 0]);
        assert_eq!(script.put(order(2, 0)), None);
        assert_eq!(script.put(order(2, 1)), None);
        assert_eq!(taken(&mut script), []);
        assert_eq!(script.put(order(0, 0)), None);
        assert_eq!(taken(&mut script), [(0, 0), (2, 0), (2, 1)]);
        assert_eq!(script.put(order(5, 0)), Some(order(5, 0)), "it has no turn");
        assert_eq!(script.put(order(2, 2)), None);
        assert_eq!(taken(&mut script), [], "an order too many waits for the turns before it");
        assert_eq!(script.put(order(0, 1)), None);
        assert_eq!(taken(&mut script), [(0, 1), (2, 2)]);
    }
}
