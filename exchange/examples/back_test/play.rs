//! Plays a recording through an exchange and a strategy, at full speed. Only the recording's times
//! count, so every pass is the same.

use super::account::Account;
use super::flow::Row;
use exchange::{Capacity, Command, ConfigError, Event, Exchange, Instrument, Level, NewOrder, Side};
use std::collections::{BTreeMap, VecDeque};

/// The owner of the strategy's orders.
const STRATEGY: u32 = 2;
/// The strategy's order ids begin here; those of a recording are below 2^63.
const FIRST_ID: u64 = 1 << 63;
/// Orders of the strategy that have room in the book, besides those of the recording.
const OWN_ORDERS: usize = 4_096;

/// A strategy: called for each change of the book and for each of its fills.
pub trait Strategy {
    /// Handles the best prices after a row of the recording.
    fn on_market_data(&mut self, market: &Market, orders: &mut Orders);

    /// Handles a fill of one of its orders.
    fn on_fill(&mut self, side: Side, price: i64, quantity: u64, orders: &mut Orders) {
        let _ = (side, price, quantity, orders);
    }
}

/// What a strategy sees of an instrument.
#[derive(Clone, Copy, Debug)]
pub struct Market {
    /// Time of the recording, in microseconds.
    #[allow(dead_code, reason = "the strategy of the example goes by prices alone")]
    pub time_us: u64,
    /// Best bid.
    pub bid: Option<Level>,
    /// Best offer.
    pub offer: Option<Level>,
}

/// An order that the strategy has sent and that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnOrder {
    pub side: Side,
    pub price: i64,
}

/// The strategy's orders: how it sends and cancels them, and which are open.
#[derive(Debug, Default)]
pub struct Orders {
    sent: u64,
    position: i64,
    open: BTreeMap<u64, OwnOrder>,
    outbox: Vec<Command>,
}

impl Orders {
    /// Sends a limit order that must not take liquidity. Returns its id.
    pub fn quote(&mut self, side: Side, price: i64, quantity: u64) -> u64 {
        self.send(NewOrder { side, price, quantity, post_only: true, ..NewOrder::default() })
    }

    /// Sends an order with an id of the strategy's. Returns the id.
    pub fn send(&mut self, order: NewOrder) -> u64 {
        let id = FIRST_ID + self.sent;
        self.sent += 1;
        self.open.insert(id, OwnOrder { side: order.side, price: order.price });
        self.outbox.push(Command::New(NewOrder { id, owner: STRATEGY, ..order }));
        id
    }

    /// Cancels an order.
    pub fn cancel(&mut self, id: u64) {
        self.outbox.push(Command::Cancel { id, owner: STRATEGY });
    }

    /// Iterates over the orders that have not ended, with their ids, the oldest first.
    pub fn open(&self) -> impl Iterator<Item = (u64, OwnOrder)> {
        self.open.iter().map(|(id, order)| (*id, *order))
    }

    /// Returns the quantity bought less the quantity sold.
    pub fn position(&self) -> i64 {
        self.position
    }
}

/// The result of one pass. Equal on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Rows of the recording: each is a tick.
    pub ticks: u64,
    /// Trades, those of the strategy included.
    pub trades: u64,
    /// Orders that the strategy has sent.
    pub orders: u64,
    /// Recorded cancels whose order had traded with the strategy instead.
    pub late_cancels: u64,
    /// The strategy's position and money.
    pub account: Account,
    /// The sum of best bid and offer at the end; twice the last price if a side is empty.
    pub bid_and_offer: i64,
    /// A hash of all trades in their order, the final book and the account.
    pub digest: u64,
}

/// A pass through a recording.
struct BackTest<'a, S> {
    exchange: Exchange,
    strategy: &'a mut S,
    orders: Orders,
    /// The strategy's commands that are on their way, each with its time of arrival.
    on_the_way: VecDeque<(u64, Command)>,
    delay_us: u64,
    events: Vec<Event>,
    played: Played,
}

/// Plays a recording once, over the orders of an opening book. The strategy's orders arrive
/// `delay_us` after the row that it answered, before the next row of that time or later.
///
/// # Errors
/// [`ConfigError`]: more orders than an exchange holds.
pub fn play<S: Strategy>(
    opening: &[NewOrder],
    rows: &[Row],
    delay_us: u64,
    strategy: &mut S,
) -> Result<(Played, std::time::Duration), ConfigError> {
    let capacity = Capacity::for_orders(opening.len() + rows.len() + OWN_ORDERS);
    let mut back_test = BackTest {
        exchange: Exchange::new(&[Instrument::default()], capacity)?,
        strategy,
        orders: Orders::default(),
        on_the_way: VecDeque::new(),
        delay_us,
        events: Vec::new(),
        played: Played { digest: 0xcbf2_9ce4_8422_2325, ..Played::default() },
    };
    for order in opening {
        back_test.apply(Command::New(*order));
    }
    let began = std::time::Instant::now();
    rows.iter().for_each(|row| back_test.tick(row));
    let time = began.elapsed();
    Ok((back_test.finish(), time))
}

impl<S: Strategy> BackTest<'_, S> {
    fn tick(&mut self, row: &Row) {
        self.deliver(row.time_us);
        self.apply(row.command);
        self.played.ticks += 1;
        let (bid, offer) = self.exchange.best(0);
        self.strategy.on_market_data(&Market { time_us: row.time_us, bid, offer }, &mut self.orders);
        self.post(row.time_us);
        self.deliver(row.time_us);
    }

    /// Puts what the strategy has sent at a time on its way.
    fn post(&mut self, now_us: u64) {
        let due = now_us.saturating_add(self.delay_us);
        self.on_the_way.extend(self.orders.outbox.drain(..).map(|command| (due, command)));
    }

    /// Applies the strategy's commands that have arrived by a time.
    fn deliver(&mut self, now_us: u64) {
        while let Some((due, command)) = self.on_the_way.front().copied()
            && due <= now_us
        {
            self.on_the_way.pop_front();
            self.apply(command);
            self.post(due);
        }
    }

    fn apply(&mut self, command: Command) {
        self.events.clear();
        self.exchange.apply(command, &mut self.events);
        for index in 0..self.events.len() {
            match self.events[index] {
                Event::Trade {
                    maker,
                    taker,
                    taker_side,
                    price,
                    quantity,
                    maker_leaves,
                    taker_leaves,
                    ..
                } => {
                    self.played.trades += 1;
                    [maker, taker, price as u64, quantity].into_iter().for_each(|word| self.mix(word));
                    let maker_side = if taker_side == Side::Buy { Side::Sell } else { Side::Buy };
                    self.trade(maker, maker_side, price, quantity, maker_leaves);
                    self.trade(taker, taker_side, price, quantity, taker_leaves);
                }
                Event::Rejected { id, .. } if id < FIRST_ID => {
                    self.played.late_cancels += u64::from(matches!(command, Command::Cancel { .. }));
                }
                Event::Rejected { id, .. } | Event::Cancelled { id, .. } => {
                    self.orders.open.remove(&id);
                }
                _ => {}
            }
        }
    }

    /// Books a side of a trade if it is the strategy's.
    fn trade(&mut self, id: u64, side: Side, price: i64, quantity: u64, leaves: u64) {
        if id < FIRST_ID {
            return;
        }
        if leaves == 0 {
            self.orders.open.remove(&id);
        }
        self.played.account.fill(side, price, quantity);
        self.orders.position = self.played.account.position;
        self.strategy.on_fill(side, price, quantity, &mut self.orders);
    }

    /// Mixes a word into the digest (FNV-1a, a word at a time).
    fn mix(&mut self, word: u64) {
        self.played.digest = (self.played.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn finish(mut self) -> Played {
        let (bid, offer) = self.exchange.best(0);
        let both = bid.zip(offer).map(|(bid, offer)| bid.price + offer.price);
        self.played.bid_and_offer = both.unwrap_or_else(|| 2 * self.exchange.last_price(0).unwrap_or(0));
        self.played.orders = self.orders.sent;
        let account = self.played.account;
        let words = [self.exchange.digest(), account.position as u64, account.cash as u64, self.orders.sent];
        words.into_iter().for_each(|word| self.mix(word));
        self.played
    }
}
