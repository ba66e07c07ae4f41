//! Market data on a board: the exchange publishes the top of book of each instrument after each
//! command that changed it, in the layout of [`protocol::market`]. A slow reader misses versions,
//! never delays the exchange, and can read how many it missed.

use exchange::Exchange;
use exchange::Level;
use exchange::command::Command;
use protocol::market::{Quote, TOP_OF_BOOK_WORDS, TopOfBook};
use protocol::stamps::TopOfBookWritten;
use shm::board::Writer;

/// Publishes an exchange's market data on a board in shared memory.
pub struct MarketBoard {
    venue: u16,
    writer: Writer,
    /// The published value of each cell.
    published: Vec<TopOfBook>,
    /// The next value of each cell, with trades applied.
    touches: Vec<TopOfBook>,
    changed: ChangedInstruments,
}

/// The instruments whose top of book may differ from the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangedInstruments {
    None,
    One(u16),
    All,
}

impl MarketBoard {
    /// Creates the publisher of a venue's tops of book to a board in shared memory. Its first write
    /// publishes those that differ from the board's present values.
    pub fn new(venue: u16, writer: Writer) -> Self {
        assert_eq!(writer.shape().words(), TOP_OF_BOOK_WORDS, "a board of touches");
        let touches = vec![TopOfBook::default(); writer.shape().cells()];
        let mut words = [0; TOP_OF_BOOK_WORDS];
        let last =
            |cell| writer.last(cell, &mut words).and_then(|_| TopOfBook::parse(&words)).unwrap_or_default();
        let published = (0..touches.len()).map(last).collect();
        Self { venue, writer, published, touches, changed: ChangedInstruments::All }
    }

    /// Iterates over the instruments, with the version number and time of each one's last published
    /// top of book; 0 if there was none.
    pub fn last_written(&self) -> impl Iterator<Item = TopOfBookWritten> + '_ {
        (0..self.published.len()).map(|cell| {
            let ticks = self.writer.last(cell, &mut [0; TOP_OF_BOOK_WORDS]).unwrap_or(0);
            let (venue, version) = (self.venue, self.writer.version(cell));
            TopOfBookWritten { venue, instrument: cell as u16, version, ticks }
        })
    }

    /// Marks the instruments whose top of book a command may change, for the next
    /// [`MarketBoard::write`]. Called before the command is applied.
    #[inline]
    pub fn before_command(&mut self, command: &Command, exchange: &Exchange) {
        let affected = match *command {
            Command::New(order) => Some(order.instrument),
            Command::Cancel { id, .. } | Command::Replace { id, .. } => {
                match exchange.order(id).map(|order| order.instrument) {
                    Some(instrument) => Some(instrument),
                    // The command will be refused.
                    None => return,
                }
            }
            Command::MassCancel { instrument, .. } => instrument,
            Command::Auction { instrument } | Command::Uncross { instrument } => Some(instrument),
            Command::Time(_) => None,
        };
        self.changed = match (self.changed, affected) {
            (ChangedInstruments::None, Some(instrument)) => ChangedInstruments::One(instrument),
            (ChangedInstruments::One(instrument), Some(other)) if instrument == other => self.changed,
            _ => ChangedInstruments::All,
        };
    }

    /// Returns `true` if an instrument's top of book may have changed since the last write.
    #[inline]
    pub fn can_have_changed(&self) -> bool {
        self.changed != ChangedInstruments::None
    }

    /// Records an instrument's last trade, for its next top of book.
    #[inline]
    pub fn record_trade(&mut self, instrument: u16, price: i64, quantity: u64) {
        if let Some(touch) = self.touches.get_mut(usize::from(instrument)) {
            touch.last = Some(Quote { price, quantity });
            touch.trades += 1;
        }
    }

    /// Restores an instrument's last trade and number of trades after a recovery.
    pub fn restore_trades(&mut self, instrument: u16, last: Option<Quote>, trades: u64) {
        if let Some(touch) = self.touches.get_mut(usize::from(instrument)) {
            (touch.last, touch.trades) = (last, trades);
        }
    }

    /// Publishes the tops of book that have changed, passes each to `written`, and returns their
    /// number.
    #[inline]
    pub fn write(
        &mut self,
        exchange: &Exchange,
        now: impl Fn() -> u64,
        mut written: impl FnMut(TopOfBookWritten),
    ) -> u64 {
        let count = self.touches.len();
        let instruments = match self.changed {
            ChangedInstruments::None => return 0,
            ChangedInstruments::One(instrument) => usize::from(instrument)..usize::from(instrument) + 1,
            ChangedInstruments::All => 0..count,
        };
        self.changed = ChangedInstruments::None;
        let mut writes = 0;
        for instrument in instruments.start..instruments.end.min(count) {
            if self.try_refresh(exchange, instrument) {
                let ticks = now();
                let version = self.writer.write(instrument, ticks, &self.touches[instrument].words());
                written(TopOfBookWritten {
                    venue: self.venue,
                    instrument: instrument as u16,
                    version,
                    ticks,
                });
                writes += 1;
            }
        }
        writes
    }

    /// Refreshes an instrument's value. Returns `true` if it differs from the published one.
    #[inline]
    fn try_refresh(&mut self, exchange: &Exchange, instrument: usize) -> bool {
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
        let published = &mut self.published[instrument];
        let is_new = new != *published;
        *published = new;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exchange::{Capacity, Event, Instrument, NewOrder, Side};
    use protocol::market::shape;
    use shm::board::{self, Reader};

    struct BoardBench {
        exchange: Exchange,
        market: MarketBoard,
        reader: Reader,
        written: Vec<TopOfBookWritten>,
    }

    impl BoardBench {
        fn new() -> Self {
            let instruments = [Instrument::default(), Instrument::default()];
            let (writer, reader) = board::pair(shape(2).unwrap());
            let exchange = Exchange::new(&instruments, Capacity::for_orders(10)).unwrap();
            Self { exchange, market: MarketBoard::new(0, writer), reader, written: Vec::new() }
        }

        /// Applies a command, and returns the instruments whose top of book was written then.
        fn apply(&mut self, command: Command) -> Vec<u16> {
            let mut events: Vec<Event> = Vec::new();
            self.market.before_command(&command, &self.exchange);
            self.exchange.apply(command, &mut events);
            for event in events {
                if let Event::Trade { instrument, price, quantity, .. } = event {
                    self.market.record_trade(instrument, price, quantity);
                }
            }
            let before = self.written.len();
            let written = &mut self.written;
            self.market.write(&self.exchange, || 7, |update| written.push(update));
            self.written[before..].iter().map(|update| update.instrument).collect()
        }

        fn touch(&self, instrument: usize) -> TopOfBook {
            let mut words = [0; TOP_OF_BOOK_WORDS];
            self.reader.read(instrument, &mut words).unwrap();
            TopOfBook::parse(&words).unwrap()
        }
    }

    fn order(id: u64, side: Side, price: i64) -> Command {
        Command::New(NewOrder { id, side, price, quantity: 5, instrument: 1, ..NewOrder::default() })
    }

    #[test]
    fn quote_is_written_once_per_change() {
        let mut bench = BoardBench::new();
        let quote = |price, quantity| Some(Quote { price, quantity });
        assert_eq!(bench.apply(order(1, Side::Buy, 99)), [1]);
        assert_eq!(bench.touch(1), TopOfBook { bid: quote(99, 5), ..TopOfBook::default() });
        assert_eq!(bench.apply(order(2, Side::Buy, 98)), [0u16; 0], "worse than the best bid");
        assert_eq!(bench.apply(order(3, Side::Sell, 101)), [1]);
        assert_eq!(bench.apply(Command::Cancel { id: 77, owner: 0 }), [0u16; 0], "unknown order");
        assert_eq!(bench.apply(Command::Time(1)), [0u16; 0], "nothing expires");
        // Trades with all of the best bid and a part of the next.
        let seller = NewOrder {
            id: 4,
            side: Side::Sell,
            price: 98,
            quantity: 7,
            instrument: 1,
            ..NewOrder::default()
        };
        assert_eq!(bench.apply(Command::New(seller)), [1], "two trades, one version");
        let expected = TopOfBook {
            bid: quote(98, 3),
            offer: quote(101, 5),
            last: quote(98, 2),
            trades: 2,
            auction: false,
        };
        assert_eq!(bench.touch(1), expected);
        assert_eq!(bench.apply(Command::MassCancel { owner: 0, instrument: None }), [1]);
        assert_eq!(bench.touch(1), TopOfBook { last: quote(98, 2), trades: 2, ..TopOfBook::default() });
        let versions: Vec<u64> = bench.written.iter().map(|update| update.version).collect();
        assert_eq!(versions, [1, 2, 3, 4]);
        assert!(bench.written.iter().all(|update| update.ticks == 7));
    }

    #[test]
    fn successor_writes_only_changes() {
        let mut words = [0; TOP_OF_BOOK_WORDS];
        let (mut writer, _) = board::pair(shape(2).unwrap());
        let exchange = Exchange::new(&[Instrument::default(); 2], Capacity::for_orders(10)).unwrap();
        assert_eq!(writer.last(1, &mut words), None);
        writer.write(1, 5, &TopOfBook::default().words());
        assert_eq!(writer.last(1, &mut words), Some(5));
        let mut successor = MarketBoard::new(0, writer);
        let versions: Vec<(u64, u64)> =
            successor.last_written().map(|update| (update.version, update.ticks)).collect();
        assert_eq!(versions, [(0, 0), (1, 5)]);
        assert_eq!(successor.write(&exchange, || 9, |_| {}), 0, "the books are empty, as on the board");
        successor.record_trade(1, 100, 3);
        successor.changed = ChangedInstruments::All;
        successor.write(&exchange, || 9, |update| assert_eq!((update.instrument, update.version), (1, 2)));
    }

    #[test]
    fn trade_at_unchanged_quote_is_a_new_version() {
        let mut bench = BoardBench::new();
        bench.apply(order(1, Side::Buy, 99));
        bench.apply(Command::Auction { instrument: 1 });
        assert!(bench.touch(1).auction);
        assert_eq!(bench.apply(Command::Uncross { instrument: 1 }), [1]);
        assert!(!bench.touch(1).auction);
    }
}
