//! The engine's side of a bridge: orders in, reports out.
//!
//! A session in which an order was taken has the strategy's lifetime: when it ends early, the
//! strategy process exits with an error after saving the history. The engine fences it and cancels
//! its open orders, and the next incarnation opens the next session.

use crate::bridge_dir::BridgeDir;
use crate::flag::Flag;
use crate::pump::{BridgeSide, TurnResult, hand_over};
use bridge::frame::Echo;
use bridge::link::{CloseReason, Event, Link};
use crossbeam_queue::ArrayQueue;
use launcher::protocol::wire::{Message, Order, Report};
use std::collections::VecDeque;

/// Capacity of the queues between bridge and strategy, in messages.
const QUEUE_CAPACITY: usize = 4096;

/// An event from the bridge's thread that the strategy thread at the engine's host must handle,
/// such as an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    Up,
    /// An order of the far host, with its clock readings.
    Order(Order, Echo),
    /// The session ended early, after orders were taken in it.
    Gone(CloseReason),
    /// The link is over: both sides have all messages.
    Over,
}

/// The queues and flags between the bridge's network thread and the thread that sends the far
/// host's orders to the engine. Both are threads of one process at the engine's host.
#[derive(Debug)]
pub struct EngineQueues {
    pub events: ArrayQueue<BridgeEvent>,
    pub reports: ArrayQueue<(Report, Option<Echo>)>,
    pub strategy_side_ends: Flag,
    pub is_ending: Flag,
}

impl Default for EngineQueues {
    fn default() -> Self {
        let (events, reports) = (ArrayQueue::new(QUEUE_CAPACITY), ArrayQueue::new(QUEUE_CAPACITY));
        Self { events, reports, strategy_side_ends: Flag::default(), is_ending: Flag::default() }
    }
}

/// The bridge's logic at the engine's host: passes orders on and returns reports.
#[derive(Debug)]
pub struct EngineSide<'a> {
    queues: &'a EngineQueues,
    dir: &'a BridgeDir,
    /// Events that found their queue full.
    waiting: VecDeque<BridgeEvent>,
    taken: u64,
    is_gone: bool,
}

impl<'a> EngineSide<'a> {
    pub fn new(queues: &'a EngineQueues, dir: &'a BridgeDir) -> Self {
        Self { queues, dir, waiting: VecDeque::with_capacity(QUEUE_CAPACITY), taken: 0, is_gone: false }
    }
}

impl BridgeSide for EngineSide<'_> {
    fn event(&mut self, event: Event, link: &mut Link) {
        match event {
            Event::Up { .. } => self.waiting.push_back(BridgeEvent::Up),
            Event::Message(message, delivery) => {
                if let Ok(order) = Order::from_message(message) {
                    self.taken += 1;
                    self.waiting.push_back(BridgeEvent::Order(
                        order,
                        Echo { sent: delivery.sent, received: delivery.received },
                    ));
                }
            }
            Event::Down { why, .. } if self.taken > 0 => {
                if let Err(error) = self.dir.save_history(link.history().to_words()) {
                    eprintln!("bulkhead-bridge serve: what was taken cannot be written down: {error}");
                }
                // Earlier events are still handled: their orders count as taken.
                self.waiting.push_back(BridgeEvent::Gone(why));
                self.is_gone = true;
            }
            Event::Down { .. } | Event::Outcome { .. } => {}
            Event::Over => self.waiting.push_back(BridgeEvent::Over),
        }
    }

    fn turn(&mut self, link: &mut Link, _: u64) -> TurnResult {
        let mut work = hand_over(&mut self.waiting, &self.queues.events);
        if self.is_gone {
            return if self.waiting.is_empty() { TurnResult::Over } else { TurnResult::Busy };
        }
        while link.is_up() && !link.is_full() {
            let Some((report, about)) = self.queues.reports.pop() else { break };
            let message: Message = report.to_message();
            work += usize::from(link.try_send(message, about));
        }
        self.queues.strategy_side_ends.set(link.has_received_end());
        if self.queues.is_ending.is_up() && self.queues.reports.is_empty() {
            link.end();
        }
        match (link.is_over() && self.waiting.is_empty(), work) {
            (true, _) => TurnResult::Over,
            (false, 0) => TurnResult::Idle,
            (false, _) => TurnResult::Busy,
        }
    }
}
