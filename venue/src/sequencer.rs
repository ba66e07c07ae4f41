//! Sequences the orders of a recorded flow, across strategies: holds each order until its
//! predecessors have come, as part of the venue's time, so the trades are those of the recording.

use protocol::wire::{Instruction, MAX_STRATEGIES, Message, Order};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A queue that returns the orders of a replayed flow in their recorded order: it holds each order
/// until its turn.
pub struct ReplaySequencer {
    order: Vec<u16>,
    next: usize,
    waiting: Vec<VecDeque<Order>>,
}

/// The saved state of a sequencer: its position, and the waiting orders of each strategy.
#[derive(Serialize, Deserialize)]
pub(crate) struct SequencerState {
    next: u64,
    waiting: Vec<Vec<Message>>,
}

impl ReplaySequencer {
    pub(crate) fn state(&self) -> SequencerState {
        let messages = |orders: &VecDeque<Order>| {
            orders.iter().map(|order| Instruction::Order(*order).to_message()).collect()
        };
        SequencerState { next: self.next as u64, waiting: self.waiting.iter().map(messages).collect() }
    }

    /// Restores a saved state. Returns `false` if it does not fit this recording.
    pub(crate) fn try_restore(&mut self, state: &SequencerState) -> bool {
        if state.next > self.order.len() as u64 || state.waiting.len() != self.waiting.len() {
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

    /// Creates a sequencer for a recording; `turns` has, in recorded order, the index of the
    /// strategy that sends each order.
    pub fn new(turns: Vec<u16>) -> Self {
        let mut orders = vec![0; MAX_STRATEGIES];
        turns.iter().for_each(|strategy| orders[usize::from(*strategy) % MAX_STRATEGIES] += 1);
        let last = orders.iter().rposition(|orders| *orders > 0).map_or(0, |index| index + 1);
        let waiting = orders[..last].iter().map(|orders| VecDeque::with_capacity(*orders)).collect();
        Self { order: turns, next: 0, waiting }
    }

    /// Holds an order until its turn in the recorded flow. Returns it if its strategy is not in the
    /// recording.
    pub fn enqueue(&mut self, order: Order) -> Option<Order> {
        match self.waiting.get_mut(order.id.strategy().as_usize()) {
            Some(waiting) => {
                waiting.push_back(order);
                None
            }
            None => Some(order),
        }
    }

    /// Removes and returns the order whose turn it is, if it has arrived; after the recording any
    /// order.
    pub fn pop(&mut self) -> Option<Order> {
        let Some(strategy) = self.order.get(self.next) else { return self.pop_any() };
        let order = self.waiting.get_mut(usize::from(*strategy))?.pop_front()?;
        self.next += 1;
        Some(order)
    }

    /// Removes and returns any order that waits for its turn, once no more orders arrive.
    pub fn pop_any(&mut self) -> Option<Order> {
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

    fn popped(sequencer: &mut ReplaySequencer) -> Vec<(u16, u64)> {
        std::iter::from_fn(|| sequencer.pop())
            .map(|order| (order.id.strategy().0, order.id.sequence()))
            .collect()
    }

    #[test]
    fn orders_are_popped_in_recorded_sequence() {
        let mut sequencer = ReplaySequencer::new(vec![0, 2, 2, 0]);
        assert_eq!(sequencer.enqueue(order(2, 0)), None);
        assert_eq!(sequencer.enqueue(order(2, 1)), None);
        assert_eq!(popped(&mut sequencer), []);
        assert_eq!(sequencer.enqueue(order(0, 0)), None);
        assert_eq!(popped(&mut sequencer), [(0, 0), (2, 0), (2, 1)]);
        assert_eq!(sequencer.enqueue(order(5, 0)), Some(order(5, 0)), "its strategy is not in the sequence");
        assert_eq!(sequencer.enqueue(order(2, 2)), None);
        assert_eq!(popped(&mut sequencer), [], "an early order waits for those before it in the sequence");
        assert_eq!(sequencer.enqueue(order(0, 1)), None);
        assert_eq!(popped(&mut sequencer), [(0, 1), (2, 2)]);
    }
}
