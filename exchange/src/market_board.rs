//! Market data on a board: the exchange writes, any number of processes read the newest quote and trade of each instrument.
//!
//! A table of cells of [`SHORT`] words: cell 2 × instrument has the newest quote, the next one the newest trade. A reader that is slow misses
//! versions, never holds the exchange up, and is told how many it missed.
//!
//! ```
//! use exchange::market_board::{Heard, Market, MarketFeed};
//! use exchange::market_data::Message;
//! use exchange::{Capacity, Command, Exchange, Instrument, MarketData, NewOrder};
//! use shm::board;
//! use shm::clock::Monotonic;
//!
//! // Between processes: `board::NamedWriter`, or a segment of one's own; see `shm::board`.
//! let (writer, reader) = board::pair(MarketFeed::<Monotonic>::shape(1).unwrap());
//! let mut feed = MarketFeed::new(writer, Monotonic);
//! let mut market = Market::new(reader);
//!
//! let mut exchange: Exchange = Exchange::new(&[Instrument::default()], Capacity::orders(10)).unwrap();
//! let mut data = MarketData::new(1);
//! let bid = NewOrder { id: 1, price: 99, quantity: 5, ..NewOrder::default() };
//! data.apply(&mut exchange, Command::New(bid), &mut Vec::new(), &mut feed);
//!
//! let mut best = None;
//! market.poll(&mut |heard: &Heard| {
//!     if let Message::Quote { bid, .. } = heard.message {
//!         best = bid;
//!     }
//! });
//! assert_eq!(best.unwrap().price, 99);
//! ```

use crate::market_data::{Feed, Header, Message, SHORT};
use shm::board::{BoardError, Reader, Shape, Writer};
use shm::clock::Clock;

/// Cells of an instrument.
const CELLS: usize = 2;

/// The writing end: publishes quotes and trades as they come, each with the time of the write. Depth messages are too long for its
/// cells and are left out.
pub struct MarketFeed<C> {
    writer: Writer,
    clock: C,
}

impl<C: Clock> MarketFeed<C> {
    /// The shape of a board for so many instruments.
    ///
    /// # Errors
    /// No instrument, or more than boards have cells for.
    pub fn shape(instruments: u16) -> Result<Shape, BoardError> {
        Shape::of_cells(CELLS * usize::from(instruments), SHORT)
    }

    /// Over a board of [`MarketFeed::shape`], with the run's clock.
    pub const fn new(writer: Writer, clock: C) -> Self {
        Self { writer, clock }
    }
}

impl<C: Clock> Feed for MarketFeed<C> {
    #[inline]
    fn publish(&mut self, words: &[u64]) {
        let Some((header, message)) = Message::parse(words) else { return };
        let Some(cell) = cell(header, &message).filter(|cell| *cell < self.writer.shape().cells()) else {
            return;
        };
        self.writer.write(cell, self.clock.now(), words);
    }
}

/// Where a message goes; `None`: nowhere.
fn cell(header: Header, message: &Message) -> Option<usize> {
    let first = CELLS * usize::from(header.instrument);
    match message {
        Message::Quote { .. } => Some(first),
        Message::Trade { .. } => Some(first + 1),
        Message::Depth { .. } => None,
    }
}

/// A message, as a reader has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Of which instrument, and its number.
    pub header: Header,
    /// What it says.
    pub message: Message,
    /// The version of its cell: what an order that it triggers says ([`protocol::wire::Order::trigger`]).
    pub version: u64,
    /// When it was written, in ticks of the writer's clock.
    pub written: u64,
    /// Versions of this cell that were written over before they were read.
    pub missed: u64,
}

/// A reading end. It cannot write what it reads, and nobody knows of it.
pub struct Market {
    reader: Reader,
    seen: Vec<u64>,
    bad: u64,
}

impl Market {
    /// Over a board of [`MarketFeed::shape`]; the first poll gives what is newest then. A board of another shape gives nothing
    /// that could be understood, and counts as [`Market::bad`].
    pub fn new(reader: Reader) -> Self {
        let seen = vec![0; reader.shape().cells()];
        Self { reader, seen, bad: 0 }
    }

    /// Hears everything that is newer than at the last poll, quote before trade, instrument after instrument; gives how much that
    /// was. One look at each cell; no system call, no allocation.
    #[inline]
    pub fn poll(&mut self, heard: &mut impl FnMut(&Heard)) -> usize {
        if self.reader.shape().words() != SHORT {
            self.bad += 1;
            return 0;
        }
        let mut found = 0;
        for cell in 0..self.seen.len() {
            if self.reader.version(cell) != self.seen[cell] {
                found += usize::from(self.take(cell, heard));
            }
        }
        found
    }

    fn take(&mut self, place: usize, heard: &mut impl FnMut(&Heard)) -> bool {
        let mut words = [0; SHORT];
        // Overtaken a thousand times: the next poll tries again.
        let Ok(Some(stamp)) = self.reader.read(place, &mut words) else { return false };
        let missed = stamp.version.saturating_sub(self.seen[place].saturating_add(1));
        self.seen[place] = stamp.version;
        match Message::parse(&words) {
            // Also that it is where such a message belongs: who writes the board is not trusted.
            Some((header, message)) if cell(header, &message) == Some(place) => {
                let (version, written) = (stamp.version, stamp.ticks);
                heard(&Heard { header, message, version, written, missed });
                true
            }
            _ => {
                self.bad += 1;
                false
            }
        }
    }

    /// Values that were no message, or not where they belong: no honest exchange writes them.
    pub const fn bad(&self) -> u64 {
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, Command, Exchange, Instrument, MarketData, NewOrder, Side};
    use shm::board;
    use shm::clock::Virtual;

    fn order(id: u64, side: Side, price: i64) -> Command {
        Command::New(NewOrder { id, side, price, quantity: 5, ..NewOrder::default() })
    }

    fn polled(market: &mut Market) -> Vec<Heard> {
        let mut all = Vec::new();
        market.poll(&mut |heard: &Heard| all.push(*heard));
        all
    }

    #[test]
    fn the_newest_quote_and_trade_are_heard_once_and_what_was_missed_is_known() {
        let (writer, reader) = board::pair(MarketFeed::<Virtual>::shape(2).unwrap());
        let clock = Virtual::default();
        let mut feed = MarketFeed::new(writer, clock.clone());
        let (mut market, mut late) = (Market::new(reader.clone()), Market::new(reader));
        let mut exchange: Exchange =
            Exchange::new(&[Instrument::default(), Instrument::default()], Capacity::orders(10)).unwrap();
        let mut data = MarketData::new(2);
        let mut events = Vec::new();
        let mut apply = |command| data.apply(&mut exchange, command, &mut events, &mut feed);

        assert_eq!(polled(&mut market), []);
        clock.set(500);
        apply(order(1, Side::Buy, 99));
        let heard = polled(&mut market);
        assert_eq!((heard.len(), heard[0].version, heard[0].written, heard[0].missed), (1, 1, 500, 0));
        assert!(
            matches!(heard[0].message, Message::Quote { bid: Some(bid), offer: None } if bid.price == 99)
        );
        assert_eq!(polled(&mut market), [], "once");

        apply(order(2, Side::Sell, 101));
        apply(order(3, Side::Buy, 101));
        let heard = polled(&mut market);
        assert_eq!(heard.len(), 2, "{heard:?}");
        assert!(matches!(heard[1].message, Message::Trade { price: 101, quantity: 5, .. }));
        // Three quotes were written; each of the two readers missed what came between its polls.
        assert_eq!((heard[0].version, heard[0].missed), (3, 1));
        assert_eq!(polled(&mut late).iter().map(|heard| heard.missed).collect::<Vec<_>>(), [2, 0]);
        assert_eq!((market.bad(), late.bad()), (0, 0));
    }

    #[test]
    fn words_that_are_no_message_are_counted_and_not_heard() {
        let (mut writer, reader) = board::pair(MarketFeed::<Virtual>::shape(2).unwrap());
        let mut market = Market::new(reader);
        writer.write(0, 0, &[u64::MAX; SHORT]);
        // A quote of instrument 0 where the trades of instrument 1 belong.
        let quote = [1 | 1 << 8, 1, 99, 5, 0, 0, 1, 0];
        assert!(Message::parse(&quote).is_some());
        writer.write(3, 0, &quote);
        assert_eq!((polled(&mut market), market.bad()), (vec![], 2));
        writer.write(0, 0, &quote);
        assert_eq!(polled(&mut market).len(), 1, "the next good one is heard");

        let (mut writer, reader) = board::pair(Shape::of_cells(1, 3).unwrap());
        writer.write(0, 0, &[1; 3]);
        let mut other = Market::new(reader);
        assert_eq!((polled(&mut other), other.bad()), (vec![], 1), "a board of another shape");
    }
}
