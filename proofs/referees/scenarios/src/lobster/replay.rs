//! The replay of a message file through the exchange: each trade must be the one that NASDAQ made.
//!
//! A submission enters an order, a partial cancel is a `Replace` with a lower quantity, a deletion
//! a `Cancel`. Executions of displayed orders at one time are one immediate-or-cancel order of the
//! other side. After each message the exchange's book must equal a naive one, see [`Book`].
//!
//! **Priority follows the order's number.** LOBSTER assigns it in the order of the flow. NASDAQ
//! publishes orders that waited for the opening after orders with higher numbers. Such a late order
//! is entered before them: they are cancelled and entered again.

use super::book::{Book, Resting};
use super::{Kind, Message};
use crate::market::same;
use exchange::{CancelReason, Capacity, Command, Event, Exchange, Instrument, NewOrder, Side, TimeInForce};
use std::collections::HashSet;

/// Id and owner of the orders that take liquidity. They never rest.
const TAKER: (u64, u32) = (u64::MAX, 2);
const OWNER: u32 = 1;

/// A defect of the exchange, which the replay must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// An order that is cancelled in part goes to the end of its level.
    PartialCancelLosesPriority,
    /// A new order is the first of its level.
    NewestFirst,
}

impl Defect {
    pub const ALL: [Defect; 2] = [Defect::PartialCancelLosesPriority, Defect::NewestFirst];
}

/// Counts of a replayed file. Each message that went as expected counts in one of the first five.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub submissions: u64,
    pub partial_cancels: u64,
    pub deletions: u64,
    pub executions: u64,
    pub hidden_executions: u64,
    /// Orders that were sent to make the executions.
    pub takers: u64,
    /// Submissions with a lower number than an earlier one.
    pub late: u64,
    /// Orders that were entered again, behind late ones.
    pub moved: u64,
    /// Left out: messages about orders that the file does not submit.
    pub unknown_deletions: u64,
    pub unknown_executions: u64,
    pub unknown_partial_cancels: u64,
    /// Left out: executions of an order that had no priority over its side in the file.
    pub passed_over: u64,
    /// Left out: crosses and halts.
    pub crosses_and_halts: u64,
    pub differing: u64,
}

/// What a replay found.
#[derive(Debug, Default)]
pub struct Replay {
    pub counts: Counts,
    /// Executions that are left out because another displayed order had priority.
    pub passed_over: Vec<String>,
    /// The first differences.
    pub differences: Vec<String>,
}

struct Market {
    exchange: Exchange,
    book: Book,
    events: Vec<Event>,
    submitted: HashSet<u64>,
    highest_id: u64,
    defect: Option<Defect>,
    replay: Replay,
}

fn order(message: &Message, id: u64, quantity: u64) -> NewOrder {
    NewOrder { id, owner: OWNER, side: message.side, price: message.price, quantity, ..NewOrder::default() }
}

fn accepted(message: &Message, id: u64) -> Event {
    Event::Accepted { id, side: message.side, price: message.price }
}

fn cancelled(message: &Message, id: u64, leaves: u64) -> Event {
    Event::Cancelled { id, side: message.side, price: message.price, leaves, reason: CancelReason::Requested }
}

fn opposite(side: Side) -> Side {
    if side == Side::Buy { Side::Sell } else { Side::Buy }
}

impl Market {
    /// Applies a command. Its events must be the expected ones, numbers of trades aside.
    fn expect(&mut self, command: Command, expected: &[Event]) -> Result<(), String> {
        self.events.clear();
        self.exchange.apply(command, &mut self.events);
        for event in &mut self.events {
            if let Event::Trade { number, .. } = event {
                *number = 0;
            }
        }
        same(&self.events.as_slice(), &expected)
    }

    fn submit(&mut self, message: &Message) -> Result<(), String> {
        if !self.submitted.insert(message.id) {
            return Err("an order with this number was already submitted".into());
        }
        self.replay.counts.late += u64::from(message.id < self.highest_id);
        self.highest_id = self.highest_id.max(message.id);
        let is_behind = |other: &&Resting| other.id > message.id || self.defect == Some(Defect::NewestFirst);
        let queue = self.book.queue(message.side, message.price).iter();
        let behind: Vec<Resting> = queue.filter(is_behind).copied().collect();
        self.book.enter(message.side, message.price, Resting { id: message.id, leaves: message.quantity });
        self.expect(
            Command::New(order(message, message.id, message.quantity)),
            &[accepted(message, message.id)],
        )?;
        for Resting { id, leaves } in behind {
            self.replay.counts.moved += 1;
            self.expect(Command::Cancel { id, owner: OWNER }, &[cancelled(message, id, leaves)])?;
            self.expect(Command::New(order(message, id, leaves)), &[accepted(message, id)])?;
        }
        Ok(())
    }

    /// Takes a quantity from a resting order without a trade.
    fn reduce(&mut self, message: &Message, open: u64) -> Result<(), String> {
        let Message { id, side, price, quantity, .. } = *message;
        let leaves = open.checked_sub(quantity).ok_or_else(|| format!("only {open} is open"))?;
        self.book.reduce(side, price, id, quantity);
        if leaves == 0 {
            return self.expect(Command::Cancel { id, owner: OWNER }, &[cancelled(message, id, open)]);
        }
        if self.defect == Some(Defect::PartialCancelLosesPriority) {
            self.exchange.apply(Command::Cancel { id, owner: OWNER }, &mut self.events);
            self.exchange.apply(Command::New(order(message, id, leaves)), &mut self.events);
            return Ok(());
        }
        let command = Command::Replace { id, owner: OWNER, price, quantity: leaves };
        self.expect(command, &[Event::Replaced { id, side, price, leaves }])
    }

    fn delete(&mut self, message: &Message, open: u64) -> Result<(), String> {
        let Message { id, side, price, quantity, .. } = *message;
        self.book.reduce(side, price, id, open);
        // The exchange reports what was open; the file states what was deleted.
        self.expect(Command::Cancel { id, owner: OWNER }, &[cancelled(message, id, quantity)])
    }

    /// Returns the trade of an execution, if its order has priority over its side.
    fn trade(&mut self, message: &Message) -> Option<Event> {
        let Message { id, side, price, quantity, .. } = *message;
        let open = self.book.leaves(side, price, id)?;
        let maker_leaves = open.checked_sub(quantity)?;
        if self.book.first(side) != Some((price, id)) {
            return None;
        }
        self.book.reduce(side, price, id, quantity);
        let (taker, taker_side) = (TAKER.0, opposite(side));
        let (number, instrument, maker) = (0, 0, id);
        Some(Event::Trade {
            number,
            instrument,
            maker,
            taker,
            taker_side,
            price,
            quantity,
            maker_leaves,
            taker_leaves: 0,
        })
    }

    /// Sends one order for the executions at the time of the first. Returns their number, 0 if the
    /// first has no priority.
    fn take(&mut self, messages: &[Message]) -> (usize, Result<(), String>) {
        let first = &messages[0];
        let is_joined = |message: &&Message| {
            (message.kind, message.time, message.side) == (first.kind, first.time, first.side)
        };
        let mut trades = Vec::new();
        for message in messages.iter().take_while(is_joined) {
            // An order that is not known ends what this order takes.
            let Some(trade) = self.trade(message) else { break };
            trades.push(trade);
        }
        let Some(last) = trades.len().checked_sub(1).map(|last| &messages[last]) else { return (0, Ok(())) };
        let taken = &messages[..trades.len()];
        let total: u64 = taken.iter().map(|message| message.quantity).sum();
        let mut left = total;
        for (trade, message) in trades.iter_mut().zip(taken) {
            left -= message.quantity;
            if let Event::Trade { taker_leaves, .. } = trade {
                *taker_leaves = left;
            }
        }
        let side = opposite(first.side);
        let taker = NewOrder {
            owner: TAKER.1,
            side,
            time_in_force: TimeInForce::ImmediateOrCancel,
            ..order(last, TAKER.0, total)
        };
        let mut expected = vec![Event::Accepted { id: TAKER.0, side, price: last.price }];
        expected.append(&mut trades);
        self.replay.counts.takers += 1;
        let result = self.expect(Command::New(taker), &expected);
        (taken.len(), result)
    }

    /// Carries out the next message, or executions at one time. Returns the number of messages.
    fn step(&mut self, messages: &[Message]) -> (usize, Result<(), String>) {
        let message = &messages[0];
        let is_known = self.submitted.contains(&message.id);
        let open = self.book.leaves(message.side, message.price, message.id);
        let (counts, contradiction) = (&mut self.replay.counts, "no such order is open in the file");
        let result = match (message.kind, open) {
            (Kind::Submission, _) => {
                let result = self.submit(message);
                self.replay.counts.submissions += u64::from(result.is_ok());
                result
            }
            (Kind::CrossOrHalt, _) => {
                counts.crosses_and_halts += 1;
                Ok(())
            }
            (Kind::HiddenExecution, _) => {
                // A displayed order has priority over a hidden one at its price.
                let first = self.exchange.depth(0, message.side, 1).next().map(|level| level.price);
                let sign = if message.side == Side::Buy { 1 } else { -1 };
                if first.is_none_or(|first| first * sign < message.price * sign) {
                    counts.hidden_executions += 1;
                    Ok(())
                } else {
                    Err(format!("a hidden order traded, but a displayed one is at {first:?}"))
                }
            }
            (kind, None) if !is_known => {
                match kind {
                    Kind::Deletion => counts.unknown_deletions += 1,
                    Kind::Execution => counts.unknown_executions += 1,
                    _ => counts.unknown_partial_cancels += 1,
                }
                Ok(())
            }
            (_, None) => Err(contradiction.into()),
            (Kind::PartialCancel, Some(open)) => {
                let result = if message.quantity < open {
                    self.reduce(message, open)
                } else {
                    Err(format!("a partial cancel of all that is open, {open}"))
                };
                self.replay.counts.partial_cancels += u64::from(result.is_ok());
                result
            }
            (Kind::Deletion, Some(open)) => {
                let result = self.delete(message, open);
                self.replay.counts.deletions += u64::from(result.is_ok());
                result
            }
            (Kind::Execution, Some(open)) => {
                let (count, result) = self.take(messages);
                if count > 0 {
                    self.replay.counts.executions += if result.is_ok() { count as u64 } else { 0 };
                    return (count, result);
                }
                self.pass_over(message, open)
            }
        };
        (1, result)
    }

    /// Leaves out an execution of an order without priority: takes its quantity from the order.
    fn pass_over(&mut self, message: &Message, open: u64) -> Result<(), String> {
        let Message { line, id, quantity, .. } = *message;
        let (price, first) = self.book.first(message.side).ok_or("an empty book")?;
        if (price, first) != (message.price, id) {
            self.replay.counts.passed_over += 1;
            self.replay.passed_over.push(format!(
                "line {line}: {quantity} of order {id} at {} traded, order {first} at {price} had priority",
                message.price
            ));
        }
        self.reduce(message, open)
    }

    /// Compares levels and orders with those of the naive book.
    fn check_book(&self) -> Result<(), String> {
        for side in [Side::Buy, Side::Sell] {
            let expected = self.book.queues(side).flat_map(|(price, queue)| {
                queue.iter().map(move |order| (price, order.id, order.leaves, order.leaves))
            });
            let found = self.exchange.orders(0, side);
            if !found.map(|order| (order.price, order.id, order.leaves, order.shown)).eq(expected) {
                return Err(format!("the order of {side:?} orders differs from the naive book"));
            }
            let expected = self.book.queues(side).map(|(price, queue)| {
                (price, queue.iter().map(|order| order.leaves).sum(), queue.len() as u32)
            });
            let found = self.exchange.depth(0, side, usize::MAX);
            if !found.map(|level| (level.price, level.quantity, level.orders)).eq(expected) {
                return Err(format!("the depth of {side:?} orders differs from the naive book"));
            }
        }
        Ok(())
    }
}

/// Replays messages through the exchange, or through one with a defect.
pub fn replay(messages: &[Message], defect: Option<Defect>) -> Replay {
    let exchange = Exchange::new(&[Instrument::default()], Capacity::for_orders(messages.len() + 1));
    let mut market = Market {
        exchange: exchange.expect("good numbers"),
        book: Book::default(),
        events: Vec::new(),
        submitted: HashSet::new(),
        highest_id: 0,
        defect,
        replay: Replay::default(),
    };
    let mut is_book_equal = true;
    let mut rest = messages;
    while let [message, ..] = rest {
        let (count, mut result) = market.step(rest);
        if result.is_ok() && is_book_equal {
            result = market.check_book();
            is_book_equal = result.is_ok();
        }
        if let Err(why) = result {
            market.replay.counts.differing += 1;
            let Message { line, kind, id, quantity, price, .. } = *message;
            let what = format!("line {line}, {kind:?} of {quantity} of order {id} at {price}");
            market.replay.differences.push(format!("{what}: {why}"));
        }
        rest = &rest[count..];
    }
    market.replay
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
