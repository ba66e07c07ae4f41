//! Market data on a board: the exchange writes the touch of each instrument, any number of
//! processes read the newest one.
//!
//! A cell for each instrument, as [`protocol::market`] lays it out. It is written after a command
//! that changed it, and not more often. A reader that is slow misses versions, never holds the
//! exchange up, and is told how many it missed.
//!
//! ```
//! use venue::MarketBoard;
//! use exchange::{Capacity, Command, Exchange, Instrument, NewOrder};
//! use protocol::market::{TopOfBook, shape};
//! use shm::board;
//!
//! // Between processes: `board::NamedWriter`, or a segment of one's own; see `shm::board`.
//! let (writer, reader) = board::pair(shape(1).unwrap());
//! let mut market = MarketBoard::new(writer);
//!
//! let mut exchange = Exchange::new(&[Instrument::default()], Capacity::for_orders(10)).unwrap();
//! let bid = Command::New(NewOrder { id: 1, price: 99, quantity: 5, ..NewOrder::default() });
//! market.expect(&bid, &exchange);
//! exchange.apply(bid, &mut Vec::new());
//! market.write(&exchange, || 500, |written| assert_eq!((written.instrument, written.version), (0, 1)));
//!
//! let mut words = [0; 7];
//! assert_eq!(reader.read(0, &mut words).unwrap().unwrap().ticks, 500);
//! assert_eq!(TopOfBook::parse(&words).unwrap().bid.unwrap().price, 99);
//! ```

use exchange::Exchange;
use exchange::Level;
use exchange::command::Command;
use protocol::market::{Quote, TOUCH_WORDS, TopOfBook};
use shm::board::Writer;

/// The writing end.
pub struct MarketBoard {
    writer: Writer,
    /// What each cell says.
    said: Vec<TopOfBook>,
    /// What it is to say next, as far as trades tell.
    touches: Vec<TopOfBook>,
    changed: Changed,
}

/// The instruments whose touch may be another than their cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    None,
    One(u16),
    All,
}

/// A version that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The instrument.
    pub instrument: u16,
    /// The version of its cell.
    pub version: u64,
    /// The time of the write, in ticks.
    pub ticks: u64,
}

impl MarketBoard {
    /// Over a board of [`protocol::market::shape`]; the first write says what is in the books then,
    /// as far as a dead predecessor has not said it.
    ///
    /// # Panics
    /// If the board's values are of another size.
    pub fn new(writer: Writer) -> Self {
        assert_eq!(writer.shape().words(), TOUCH_WORDS, "a board of touches");
        let touches = vec![TopOfBook::default(); writer.shape().cells()];
        let mut words = [0; TOUCH_WORDS];
        let said =
            |cell| writer.last(cell, &mut words).and_then(|_| TopOfBook::parse(&words)).unwrap_or_default();
        let said = (0..touches.len()).map(said).collect();
        Self { writer, said, touches, changed: Changed::All }
    }

    /// What each cell says, with its version: 0 where nothing was ever written.
    pub fn last_written(&self) -> impl Iterator<Item = Written> + '_ {
        (0..self.said.len()).map(|cell| {
            let ticks = self.writer.last(cell, &mut [0; TOUCH_WORDS]).unwrap_or(0);
            Written { instrument: cell as u16, version: self.writer.version(cell), ticks }
        })
    }

    /// Tells it of a command before that is carried out: the touches that it may change.
    #[inline]
    pub fn expect(&mut self, command: &Command, exchange: &Exchange) {
        let by = match *command {
            Command::New(order) => Some(order.instrument),
            Command::Cancel { id, .. } | Command::Replace { id, .. } => {
                match exchange.order(id).map(|order| order.instrument) {
                    Some(instrument) => Some(instrument),
                    // It will be refused.
                    None => return,
                }
            }
            Command::MassCancel { instrument, .. } => instrument,
            Command::Auction { instrument } | Command::Uncross { instrument } => Some(instrument),
            Command::Time(_) => None,
        };
        self.changed = match (self.changed, by) {
            (Changed::None, Some(one)) => Changed::One(one),
            (Changed::One(one), Some(other)) if one == other => self.changed,
            _ => Changed::All,
        };
    }

    /// Whether a command was expected since the last write.
    #[inline]
    pub fn may_have_changed(&self) -> bool {
        self.changed != Changed::None
    }

    /// Tells it of a trade.
    #[inline]
    pub fn traded(&mut self, instrument: u16, price: i64, quantity: u64) {
        if let Some(touch) = self.touches.get_mut(usize::from(instrument)) {
            touch.last = Some(Quote { price, quantity });
            touch.trades += 1;
        }
    }

    /// What was traded before, as far as it is in the touch: the last trade, and how many there
    /// were.
    pub fn recall(&mut self, instrument: u16, last: Option<Quote>, trades: u64) {
        if let Some(touch) = self.touches.get_mut(usize::from(instrument)) {
            (touch.last, touch.trades) = (last, trades);
        }
    }

    /// Writes the touches that have changed, and gives each of them to `written`; how many that
    /// were.
    #[inline]
    pub fn write(
        &mut self,
        exchange: &Exchange,
        now: impl Fn() -> u64,
        mut written: impl FnMut(Written),
    ) -> u64 {
        let count = self.touches.len();
        let instruments = match self.changed {
            Changed::None => return 0,
            Changed::One(instrument) => usize::from(instrument)..usize::from(instrument) + 1,
            Changed::All => 0..count,
        };
        self.changed = Changed::None;
        let mut writes = 0;
        for instrument in instruments.start..instruments.end.min(count) {
            if self.update(exchange, instrument) {
                let ticks = now();
                let version = self.writer.write(instrument, ticks, &self.touches[instrument].words());
                written(Written { instrument: instrument as u16, version, ticks });
                writes += 1;
            }
        }
        writes
    }

    /// Looks at an instrument's book; whether its cell says something else.
    #[inline]
    fn update(&mut self, exchange: &Exchange, instrument: usize) -> bool {
        let quote =
            |level: Option<Level>| level.map(|level| Quote { price: level.price, quantity: level.quantity });
        let (bid, offer) = exchange.best(instrument as u16);
        let touch = &mut self.touches[instrument];
        let new = TopOfBook {
            bid: quote(bid),
            offer: quote(offer),
            auction: exchange.is_in_auction(instrument as u16),
            ..*touch
        };
        *touch = new;
        let said = &mut self.said[instrument];
        let is_new = new != *said;
        *said = new;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::{Capacity, Event, Instrument, NewOrder, Side};
    use protocol::market::shape;
    use shm::board::{self, Reader};

    struct Bed {
        exchange: Exchange,
        market: MarketBoard,
        reader: Reader,
        written: Vec<Written>,
    }

    impl Bed {
        fn new() -> Self {
            let instruments = [Instrument::default(), Instrument::default()];
            let (writer, reader) = board::pair(shape(2).unwrap());
            let exchange = Exchange::new(&instruments, Capacity::for_orders(10)).unwrap();
            Self { exchange, market: MarketBoard::new(writer), reader, written: Vec::new() }
        }

        /// Carries out a command; the instruments whose touch was written then.
        fn apply(&mut self, command: Command) -> Vec<u16> {
            let mut events: Vec<Event> = Vec::new();
            self.market.expect(&command, &self.exchange);
            self.exchange.apply(command, &mut events);
            for event in events {
                if let Event::Trade { instrument, price, quantity, .. } = event {
                    self.market.traded(instrument, price, quantity);
                }
            }
            let before = self.written.len();
            let written = &mut self.written;
            self.market.write(&self.exchange, || 7, |one| written.push(one));
            self.written[before..].iter().map(|one| one.instrument).collect()
        }

        fn touch(&self, instrument: usize) -> TopOfBook {
            let mut words = [0; TOUCH_WORDS];
            self.reader.read(instrument, &mut words).unwrap();
            TopOfBook::parse(&words).unwrap()
        }
    }

    fn order(id: u64, side: Side, price: i64) -> Command {
        Command::New(NewOrder { id, side, price, quantity: 5, instrument: 1, ..NewOrder::default() })
    }

    #[test]
    fn a_touch_is_written_when_it_has_changed_and_not_more_often() {
        let mut bed = Bed::new();
        let quote = |price, quantity| Some(Quote { price, quantity });
        assert_eq!(bed.apply(order(1, Side::Buy, 99)), [1]);
        assert_eq!(bed.touch(1), TopOfBook { bid: quote(99, 5), ..TopOfBook::default() });
        assert_eq!(bed.apply(order(2, Side::Buy, 98)), [0u16; 0], "behind the best bid");
        assert_eq!(bed.apply(order(3, Side::Sell, 101)), [1]);
        assert_eq!(bed.apply(Command::Cancel { id: 77, owner: 0 }), [0u16; 0], "there is no such order");
        assert_eq!(bed.apply(Command::Time(1)), [0u16; 0], "nothing expires");
        // It takes all of the bid, and a part of the next.
        let seller = NewOrder {
            id: 4,
            side: Side::Sell,
            price: 98,
            quantity: 7,
            instrument: 1,
            ..NewOrder::default()
        };
        assert_eq!(bed.apply(Command::New(seller)), [1], "two trades, one version");
        let wanted = TopOfBook {
            bid: quote(98, 3),
            offer: quote(101, 5),
            last: quote(98, 2),
            trades: 2,
            auction: false,
        };
        assert_eq!(bed.touch(1), wanted);
        assert_eq!(bed.apply(Command::MassCancel { owner: 0, instrument: None }), [1]);
        assert_eq!(bed.touch(1), TopOfBook { last: quote(98, 2), trades: 2, ..TopOfBook::default() });
        let versions: Vec<u64> = bed.written.iter().map(|one| one.version).collect();
        assert_eq!(versions, [1, 2, 3, 4]);
        assert!(bed.written.iter().all(|one| one.ticks == 7));
    }

    #[test]
    fn a_successor_says_only_what_is_new() {
        let mut words = [0; TOUCH_WORDS];
        let (mut writer, _) = board::pair(shape(2).unwrap());
        let exchange = Exchange::new(&[Instrument::default(); 2], Capacity::for_orders(10)).unwrap();
        assert_eq!(writer.last(1, &mut words), None);
        writer.write(1, 5, &TopOfBook::default().words());
        assert_eq!(writer.last(1, &mut words), Some(5));
        let mut successor = MarketBoard::new(writer);
        let versions: Vec<(u64, u64)> =
            successor.last_written().map(|one| (one.version, one.ticks)).collect();
        assert_eq!(versions, [(0, 0), (1, 5)]);
        assert_eq!(successor.write(&exchange, || 9, |_| {}), 0, "the books are empty, and the board says so");
        successor.traded(1, 100, 3);
        successor.changed = Changed::All;
        successor.write(&exchange, || 9, |one| assert_eq!((one.instrument, one.version), (1, 2)));
    }

    #[test]
    fn a_trade_at_an_unchanged_touch_is_a_version_too() {
        let mut bed = Bed::new();
        bed.apply(order(1, Side::Buy, 99));
        bed.apply(Command::Auction { instrument: 1 });
        assert!(bed.touch(1).auction);
        assert_eq!(bed.apply(Command::Uncross { instrument: 1 }), [1]);
        assert!(!bed.touch(1).auction);
    }
}
