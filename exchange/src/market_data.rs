//! Market data: what everybody may see of a book, as messages of words.
//!
//! A message is a few 64-bit words, nothing else, so that it can go through memory that others can write: who reads one checks it with
//! [`Message::parse`]. The first word says what it is, the second is the instrument's message number.
//!
//! | kind | words behind the first two |
//! |---|---|
//! | quote | bid price, bid quantity, offer price, offer quantity, bid orders, offer orders; all 0: there is none |
//! | trade | trade number, price, quantity, the taker's side (0 buys, 1 sells), 0, 0 |
//! | depth | ten times price and quantity of the bids, best first, then of the offers; 0: there is none |
//!
//! The first word: bits 0–7 the kind, 8–15 the [layout](VERSION), 16–31 the instrument, 32 whether it is in an auction.
//! Prices are above 0. Hidden quantity is in none of them, orders are not named.

use crate::command::{Command, Side};
use crate::event::{Event, Events};
use crate::exchange::Exchange;
use crate::levels::Levels;
use crate::view::Level;

/// The version of the layout.
pub const VERSION: u64 = 1;
/// Words of a quote and of a trade.
pub const SHORT: usize = 8;
/// Levels of a side in a depth message.
pub const DEPTH: usize = 10;
/// Words of a depth message.
pub const LONG: usize = 2 + 4 * DEPTH;

const QUOTE: u64 = 1;
const TRADE: u64 = 2;
const SNAPSHOT: u64 = 3;

/// Where messages go.
pub trait Feed {
    /// Takes one: [`SHORT`] words, or [`LONG`] of a depth. It must not block.
    fn publish(&mut self, words: &[u64]);
}

impl Feed for Vec<Vec<u64>> {
    fn publish(&mut self, words: &[u64]) {
        self.push(words.to_vec());
    }
}

/// A message that was read.
#[expect(clippy::large_enum_variant, reason = "it is looked at where it was read, and not kept")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The best bid or offer has changed.
    Quote {
        /// The best bid.
        bid: Option<Level>,
        /// The best offer.
        offer: Option<Level>,
    },
    /// A trade.
    Trade {
        /// Its number in this exchange.
        number: u64,
        /// Its price.
        price: i64,
        /// Its quantity.
        quantity: u64,
        /// The side of the order that came.
        taker_side: Side,
    },
    /// The best ten levels of both sides; no orders are counted.
    Depth {
        /// The bids, the best first.
        bids: [Option<(i64, u64)>; DEPTH],
        /// The offers, the best first.
        offers: [Option<(i64, u64)>; DEPTH],
    },
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The instrument.
    pub instrument: u16,
    /// Whether it is in a call auction.
    pub auction: bool,
    /// The number of the message among those of the instrument, from 1.
    pub number: u64,
}

impl Message {
    /// Reads a message; `None`: these words are not one.
    pub fn parse(words: &[u64]) -> Option<(Header, Message)> {
        let (first, number) = (*words.first()?, *words.get(1)?);
        if first >> 8 & 0xff != VERSION || first >> 33 != 0 || number == 0 {
            return None;
        }
        let header = Header { instrument: (first >> 16) as u16, auction: first >> 32 & 1 == 1, number };
        let level = |price: u64, quantity: u64| match (i64::try_from(price), quantity) {
            (Ok(0), 0) => Some(None),
            (Ok(price @ 1..), 1..) => Some(Some((price, quantity))),
            _ => None,
        };
        let message = match (first & 0xff, words.len()) {
            (QUOTE, SHORT) => {
                let side = |price: u64, quantity: u64, orders: u64| {
                    let orders = u32::try_from(orders).ok()?;
                    let found = level(price, quantity)?;
                    (found.is_some() == (orders > 0))
                        .then(|| found.map(|(price, quantity)| Level { price, quantity, orders }))
                };
                Message::Quote {
                    bid: side(words[2], words[3], words[6])?,
                    offer: side(words[4], words[5], words[7])?,
                }
            }
            (TRADE, SHORT) => {
                let (price, quantity) = level(words[3], words[4])??;
                let taker_side = match (words[5], words[6], words[7]) {
                    (0, 0, 0) => Side::Buy,
                    (1, 0, 0) => Side::Sell,
                    _ => return None,
                };
                Message::Trade { number: words[2], price, quantity, taker_side }
            }
            (SNAPSHOT, LONG) => {
                let mut levels = [None; 2 * DEPTH];
                for (place, pair) in levels.iter_mut().zip(words[2..].chunks_exact(2)) {
                    *place = level(pair[0], pair[1])?;
                }
                let [bids, offers] = [0, DEPTH].map(|from| std::array::from_fn(|n| levels[from + n]));
                Message::Depth { bids, offers }
            }
            _ => return None,
        };
        Some((header, message))
    }
}

/// What was last said of an instrument.
#[derive(Clone, Copy, Debug)]
struct Said {
    number: u64,
    quote: [u64; SHORT - 2],
    depth: [u64; LONG - 2],
}

/// Carries out commands and says what everybody may see of them.
#[derive(Debug)]
pub struct MarketData {
    said: Vec<Said>,
}

/// Passes events on and picks the trades out.
struct Tee<'a, E, F> {
    out: &'a mut E,
    feed: &'a mut F,
    said: &'a mut [Said],
    auction: bool,
}

impl<E: Events, F: Feed> Events for Tee<'_, E, F> {
    #[inline]
    fn on(&mut self, event: Event) {
        self.out.on(event);
        if let Event::Trade { number, instrument, taker_side, price, quantity, .. } = event
            && let Some(said) = self.said.get_mut(usize::from(instrument))
        {
            let side = u64::from(taker_side == Side::Sell);
            let first = first_word(TRADE, instrument, self.auction);
            said.number += 1;
            self.feed.publish(&[first, said.number, number, price as u64, quantity, side, 0, 0]);
        }
    }
}

fn first_word(kind: u64, instrument: u16, auction: bool) -> u64 {
    kind | VERSION << 8 | u64::from(instrument) << 16 | u64::from(auction) << 32
}

impl MarketData {
    /// For an exchange with so many instruments and empty books.
    pub fn new(instruments: u16) -> Self {
        let nothing = Said { number: 0, quote: [0; SHORT - 2], depth: [0; LONG - 2] };
        MarketData { said: vec![nothing; usize::from(instruments)] }
    }

    /// Carries out a command: its events go to `out`, its trades and the quotes that it changed to `feed`, a trade before the quote after it.
    #[inline]
    pub fn apply<L: Levels>(
        &mut self,
        exchange: &mut Exchange<L>,
        command: Command,
        out: &mut impl Events,
        feed: &mut impl Feed,
    ) {
        let instruments = match command {
            Command::New(order) => one(Some(order.instrument)),
            Command::Cancel { id, .. } | Command::Replace { id, .. } => one(exchange.instrument_of(id)),
            Command::MassCancel { instrument: Some(instrument), .. }
            | Command::Auction { instrument }
            | Command::Uncross { instrument } => one(Some(instrument)),
            Command::MassCancel { instrument: None, .. } | Command::Time(_) => 0..self.said.len(),
        };
        let auction = matches!(command, Command::Uncross { .. });
        exchange.apply(command, &mut Tee { out, feed, said: &mut self.said, auction });
        for instrument in instruments {
            self.quote(exchange, instrument as u16, feed);
        }
    }

    fn quote<L: Levels>(&mut self, exchange: &Exchange<L>, instrument: u16, feed: &mut impl Feed) {
        let Some(said) = self.said.get_mut(usize::from(instrument)) else { return };
        let (bid, offer) = exchange.best(instrument);
        let words = |level: Option<Level>| {
            level.map_or([0; 3], |level| [level.price as u64, level.quantity, u64::from(level.orders)])
        };
        let ([bid, bid_quantity, bids], [offer, offer_quantity, offers]) = (words(bid), words(offer));
        let quote = [bid, bid_quantity, offer, offer_quantity, bids, offers];
        if quote != said.quote {
            said.quote = quote;
            said.number += 1;
            let mut message = [0; SHORT];
            message[0] = first_word(QUOTE, instrument, exchange.in_auction(instrument));
            message[1] = said.number;
            message[2..].copy_from_slice(&quote);
            feed.publish(&message);
        }
    }

    /// Publishes the best ten levels of an instrument if they have changed since it was last asked. When to ask is the caller's affair: after every
    /// command, or when there is nothing else to do.
    pub fn depth<L: Levels>(&mut self, exchange: &Exchange<L>, instrument: u16, feed: &mut impl Feed) {
        let Some(said) = self.said.get_mut(usize::from(instrument)) else { return };
        let mut message = [0; LONG];
        for (side, from) in [(Side::Buy, 2), (Side::Sell, 2 + 2 * DEPTH)] {
            for (place, level) in exchange.depth(instrument, side, DEPTH).enumerate() {
                message[from + 2 * place] = level.price as u64;
                message[from + 2 * place + 1] = level.quantity;
            }
        }
        if message[2..] != said.depth {
            said.depth.copy_from_slice(&message[2..]);
            said.number += 1;
            message[0] = first_word(SNAPSHOT, instrument, exchange.in_auction(instrument));
            message[1] = said.number;
            feed.publish(&message);
        }
    }
}

fn one(instrument: Option<u16>) -> std::ops::Range<usize> {
    instrument.map_or(0..0, |instrument| usize::from(instrument)..usize::from(instrument) + 1)
}
