//! The compared books, each with its own type of command, created before the measurement.

use crate::btree_book::{BTreeBook, Trade};
use crate::load::Op;
use exchange::{Capacity, Event, Events, Exchange, Instrument, NewOrder, Side};
use pricelevel::{OrderUpdate, Price, TimeInForce};
use std::collections::HashMap;
use std::sync::Arc;

/// The capacity that a load needs of an order book.
#[derive(Clone, Copy)]
pub struct BookSize {
    /// Maximum open orders and prices.
    pub capacity: Capacity,
    /// Highest price.
    pub highest: u64,
}

/// A matching engine under comparison.
pub trait Peer {
    const NAME: &'static str;
    type Command;
    fn fresh(size: BookSize) -> Self;
    /// Translates an operation into this engine's command; operations come in order.
    fn translate(&mut self, op: Op) -> Self::Command;
    /// Runs a command on the order book. Returns its number of trades.
    fn run(&mut self, command: &Self::Command) -> u64;
    /// Runs several commands on the order book, in their order. Returns the number of trades.
    fn run_all(&mut self, commands: &[Self::Command]) -> u64 {
        commands.iter().map(|command| std::hint::black_box(self.run(command))).sum()
    }
    /// Returns price and quantity of every level, the best first.
    fn depth(&self, buy: bool) -> Vec<(u64, u64)>;
}

/// This project's exchange, with a sink that counts trades.
pub struct Ours(Exchange);

#[derive(Default)]
struct TradeCount(u64);

impl Events for TradeCount {
    #[inline]
    fn on(&mut self, event: Event) {
        self.0 += u64::from(matches!(std::hint::black_box(event), Event::Trade { .. }));
    }
}

impl Ours {
    pub fn events(&mut self, command: &exchange::Command, events: &mut Vec<Event>) {
        self.0.apply(*command, events);
    }
}

fn side(buy: bool) -> Side {
    if buy { Side::Buy } else { Side::Sell }
}

impl Peer for Ours {
    const NAME: &'static str = "exchange";
    type Command = exchange::Command;

    fn fresh(size: BookSize) -> Self {
        let instrument = Instrument { price_high: size.highest as i64, ..Instrument::default() };
        Ours(Exchange::new(&[instrument], size.capacity).expect("a valid size"))
    }

    fn translate(&mut self, op: Op) -> exchange::Command {
        use exchange::{Command, OrderType, TimeInForce};
        let new = |id, buy, price, quantity| NewOrder {
            id,
            owner: 1,
            side: side(buy),
            price: price as i64,
            quantity,
            ..NewOrder::default()
        };
        match op {
            Op::Add { id, buy, price, quantity } => Command::New(new(id, buy, price, quantity)),
            Op::Take { id, buy, price, quantity } => Command::New(NewOrder {
                time_in_force: TimeInForce::ImmediateOrCancel,
                ..new(id, buy, price, quantity)
            }),
            Op::Market { id, buy, quantity } => {
                Command::New(NewOrder { order_type: OrderType::Market, ..new(id, buy, 0, quantity) })
            }
            Op::Cancel { id } => Command::Cancel { id, owner: 1 },
            Op::Move { id, price, quantity } => {
                Command::Replace { id, owner: 1, price: price as i64, quantity }
            }
        }
    }

    #[inline]
    fn run(&mut self, command: &exchange::Command) -> u64 {
        let mut count = TradeCount(0);
        self.0.apply(*command, &mut count);
        count.0
    }

    fn depth(&self, buy: bool) -> Vec<(u64, u64)> {
        self.0.depth(0, side(buy), usize::MAX).map(|level| (level.price as u64, level.quantity)).collect()
    }
}

/// This project's exchange, which applies sixteen commands at a time.
pub struct BatchedExchange(Ours);

impl Peer for BatchedExchange {
    const NAME: &'static str = "exchange, 16 at a time";
    type Command = exchange::Command;

    fn fresh(size: BookSize) -> Self {
        BatchedExchange(Ours::fresh(size))
    }

    fn translate(&mut self, op: Op) -> exchange::Command {
        self.0.translate(op)
    }

    fn run(&mut self, command: &exchange::Command) -> u64 {
        self.0.run(command)
    }

    fn run_all(&mut self, commands: &[exchange::Command]) -> u64 {
        let mut count = TradeCount(0);
        commands.chunks(16).for_each(|some| self.0.0.apply_all(some, &mut count));
        count.0
    }

    fn depth(&self, buy: bool) -> Vec<(u64, u64)> {
        self.0.depth(buy)
    }
}

impl Peer for BTreeBook {
    const NAME: &'static str = "BTreeMap";
    type Command = Op;

    fn fresh(_: BookSize) -> Self {
        BTreeBook::new()
    }

    fn translate(&mut self, op: Op) -> Op {
        op
    }

    #[inline]
    fn run(&mut self, command: &Op) -> u64 {
        std::hint::black_box(self.apply(*command)).len() as u64
    }

    fn depth(&self, buy: bool) -> Vec<(u64, u64)> {
        BTreeBook::depth(self, buy)
    }
}

/// The crate matchcore: an order's id is the sequence number of its command.
pub struct Matchcore {
    book: matchcore::OrderBook,
    sequence: u64,
    ids: HashMap<u64, u64>,
}

impl Matchcore {
    /// Runs an operation in matchcore and returns its trades.
    pub fn trades(&mut self, op: Op) -> Vec<Trade> {
        use matchcore::{CommandOutcome, CommandReport};
        let command = self.translate(op);
        let CommandOutcome::Applied(CommandReport::Submit(effects) | CommandReport::Amend(effects)) =
            self.book.execute(&command)
        else {
            return Vec::new();
        };
        let (Op::Add { id: taker, .. }
        | Op::Take { id: taker, .. }
        | Op::Market { id: taker, .. }
        | Op::Cancel { id: taker }
        | Op::Move { id: taker, .. }) = op;
        let maker = |maker_sequence: u64| {
            self.ids.iter().find(|(_, sequence)| **sequence == maker_sequence).map_or(0, |(id, _)| *id)
        };
        let one = |trade: &matchcore::Trade| Trade {
            maker: maker(trade.maker_order_id().0),
            taker,
            price: trade.price().0,
            quantity: trade.quantity().0,
        };
        effects
            .target_order()
            .match_result()
            .map_or(Vec::new(), |result| result.trades().iter().map(one).collect())
    }
}

impl Peer for Matchcore {
    const NAME: &'static str = "matchcore";
    type Command = matchcore::Command;

    fn fresh(_: BookSize) -> Self {
        Matchcore { book: matchcore::OrderBook::new("BOOK"), sequence: 0, ids: HashMap::new() }
    }

    fn translate(&mut self, op: Op) -> matchcore::Command {
        use matchcore::*;
        let sequence = self.sequence;
        self.sequence += 1;
        let side = |buy| if buy { Side::Buy } else { Side::Sell };
        let limit = |buy, price, quantity, time_in_force| {
            let quantity = QuantityPolicy::Standard { quantity: Quantity(quantity) };
            let flags = OrderFlags::new(side(buy), false, time_in_force);
            CommandKind::Submit(SubmitCmd {
                order: NewOrder::Limit(LimitOrder::new(Price(price), quantity, flags)),
            })
        };
        let order_id = |id: u64| OrderId(self.ids.get(&id).copied().unwrap_or(u64::MAX));
        let kind = match op {
            Op::Add { id, buy, price, quantity } => {
                self.ids.insert(id, sequence);
                limit(buy, price, quantity, TimeInForce::Gtc)
            }
            Op::Take { buy, price, quantity, .. } => limit(buy, price, quantity, TimeInForce::Ioc),
            Op::Market { buy, quantity, .. } => CommandKind::Submit(SubmitCmd {
                order: NewOrder::Market(MarketOrder::new(Quantity(quantity), side(buy), false)),
            }),
            Op::Cancel { id } => {
                CommandKind::Cancel(CancelCmd { order_id: order_id(id), order_kind: OrderKind::Limit })
            }
            Op::Move { id, price, .. } => CommandKind::Amend(AmendCmd {
                order_id: order_id(id),
                patch: AmendPatch::Limit(LimitOrderPatch::new().with_price(Price(price))),
            }),
        };
        Command {
            meta: CommandMeta { sequence_number: SequenceNumber(sequence), timestamp: Timestamp(sequence) },
            kind,
        }
    }

    #[inline]
    fn run(&mut self, command: &matchcore::Command) -> u64 {
        use matchcore::{CommandOutcome, CommandReport};
        match std::hint::black_box(self.book.execute(command)) {
            CommandOutcome::Applied(CommandReport::Submit(effects) | CommandReport::Amend(effects)) => {
                effects.target_order().match_result().map_or(0, |result| result.trades().len() as u64)
            }
            _ => 0,
        }
    }

    fn depth(&self, buy: bool) -> Vec<(u64, u64)> {
        let limit = self.book.limit();
        let level =
            |(price, id): (&matchcore::Price, &usize)| (price.0, limit.levels()[*id].visible_quantity().0);
        if buy {
            limit.bids().iter().rev().map(level).collect()
        } else {
            limit.asks().iter().map(level).collect()
        }
    }
}

/// The crate orderbook-rs, with the clock of its own tests, which reads nothing, and no listeners.
pub struct OrderbookRs(pub orderbook_rs::DefaultOrderBook);

/// A command to the crate orderbook-rs.
pub enum Call {
    Limit { id: pricelevel::Id, price: u128, quantity: u64, side: pricelevel::Side, time: TimeInForce },
    Market { id: pricelevel::Id, quantity: u64, side: pricelevel::Side },
    Cancel(pricelevel::Id),
    Update(OrderUpdate),
}

impl OrderbookRs {
    /// Runs a command in orderbook-rs and returns its trades.
    pub fn trades(&mut self, call: &Call) -> Vec<Trade> {
        let number = |id: pricelevel::Id| if let pricelevel::Id::Sequential(id) = id { id } else { 0 };
        let result = match call {
            Call::Limit { id, price, quantity, side, time } => {
                let result = self.0.add_limit_order_with_result(*id, *price, *quantity, *side, *time, None);
                result.ok().and_then(|(_, trades)| trades).map(|trades| trades.match_result)
            }
            Call::Market { id, quantity, side } => self.0.submit_market_order(*id, *quantity, *side).ok(),
            Call::Cancel(_) | Call::Update(_) => {
                self.run(call);
                None
            }
        };
        let one = |trade: &pricelevel::Trade| Trade {
            maker: number(trade.maker_order_id()),
            taker: number(trade.taker_order_id()),
            price: trade.price().as_u128() as u64,
            quantity: trade.quantity().as_u64(),
        };
        result.map_or(Vec::new(), |result| result.trades().as_vec().iter().map(one).collect())
    }
}

impl Peer for OrderbookRs {
    const NAME: &'static str = "orderbook-rs";
    type Command = Call;

    fn fresh(_: BookSize) -> Self {
        let clock = Arc::new(orderbook_rs::prelude::StubClock::with_step(1, 0));
        OrderbookRs(orderbook_rs::DefaultOrderBook::with_clock("BOOK", clock))
    }

    fn translate(&mut self, op: Op) -> Call {
        let id = pricelevel::Id::sequential;
        let side = |buy| if buy { pricelevel::Side::Buy } else { pricelevel::Side::Sell };
        let limit = |order, buy, price, quantity, time| Call::Limit {
            id: id(order),
            price: u128::from(price),
            quantity,
            side: side(buy),
            time,
        };
        match op {
            Op::Add { id, buy, price, quantity } => limit(id, buy, price, quantity, TimeInForce::Gtc),
            Op::Take { id, buy, price, quantity } => limit(id, buy, price, quantity, TimeInForce::Ioc),
            Op::Market { id: order, buy, quantity } => {
                Call::Market { id: id(order), quantity, side: side(buy) }
            }
            Op::Cancel { id: order } => Call::Cancel(id(order)),
            Op::Move { id: order, price, .. } => Call::Update(OrderUpdate::UpdatePrice {
                order_id: id(order),
                new_price: Price::new(u128::from(price)),
            }),
        }
    }

    #[inline]
    fn run(&mut self, call: &Call) -> u64 {
        match call {
            Call::Limit { id, price, quantity, side, time } => {
                let result = self.0.add_limit_order_with_result(*id, *price, *quantity, *side, *time, None);
                match std::hint::black_box(result) {
                    Ok((_, Some(trades))) => trades.match_result.trades().len() as u64,
                    _ => 0,
                }
            }
            Call::Market { id, quantity, side } => {
                let result = std::hint::black_box(self.0.submit_market_order(*id, *quantity, *side));
                result.map_or(0, |result| result.trades().len() as u64)
            }
            Call::Cancel(id) => {
                let _ = std::hint::black_box(self.0.cancel_order(*id));
                0
            }
            Call::Update(update) => {
                let _ = std::hint::black_box(self.0.update_order(*update));
                0
            }
        }
    }

    fn depth(&self, buy: bool) -> Vec<(u64, u64)> {
        let snapshot = self.0.create_snapshot(usize::MAX).expect("a snapshot");
        let levels = if buy { &snapshot.bids } else { &snapshot.asks };
        levels
            .iter()
            .map(|level| (level.price().as_u128() as u64, level.visible_quantity().as_u64()))
            .collect()
    }
}
