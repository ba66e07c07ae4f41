//! The top of book of each instrument, on a seqlock-based board that its exchange writes and every
//! strategy reads.
//!
//! Each venue has a board of its own (`shm::board`), with a cell for each instrument. Readers
//! cannot write it, and the exchange never waits for them. A value has seven words, which with the
//! time of the write fill one cache line:
//!
//! | word | what |
//! |---|---|
//! | 0, 1 | best bid: price in cents, quantity in 1e-8 units; both 0: there is none |
//! | 2, 3 | best offer, likewise |
//! | 4, 5 | the last trade's price and quantity, likewise |
//! | 6 | bits 0–62 trades so far, 63 whether the instrument is in a call auction |
//!
//! The version of a cell identifies one top of book. An order that it triggers carries that version
//! ([`OrderRequest::trigger`](crate::wire::OrderRequest::trigger)). The exchange logs each version
//! that it writes, so the trigger of an order can be checked.

use crate::index::VenueIndex;
use shm::board::{BoardError, BoardShape, Reader};
use shm::memory::ReadOnlyWords;

/// Number of 64-bit words of an instrument's top of book on a market-data board.
pub const TOP_OF_BOOK_WORDS: usize = 7;

const AUCTION: u64 = 1 << 63;

/// Returns the name of the segment with a venue's market-data board, within the run.
pub fn market_segment(venue: VenueIndex) -> String {
    format!("market-{venue}")
}

/// Returns the dimensions of a market-data board: a cell for each instrument, of
/// [`TOP_OF_BOOK_WORDS`] words.
pub fn shape(instruments: usize) -> Result<BoardShape, BoardError> {
    BoardShape::with_cells(instruments, TOP_OF_BOOK_WORDS)
}

/// A price, in cents, and the quantity at that price, in 1e-8 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The price in cents, above 0.
    pub price: i64,
    /// The quantity in 1e-8 units, above 0.
    pub quantity: u64,
}

/// The best bid, the best offer and the last trade of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopOfBook {
    /// The best bid, with the total quantity shown at its price.
    pub bid: Option<Quote>,
    /// The best offer, with the total quantity shown at its price.
    pub offer: Option<Quote>,
    /// Price and quantity of the last trade.
    pub last: Option<Quote>,
    /// Number of trades so far, below 2^63.
    pub trades: u64,
    /// `true` if the instrument is in a call auction.
    pub auction: bool,
}

impl TopOfBook {
    /// Encodes the top of book as the [`TOP_OF_BOOK_WORDS`] words of its cell on a market-data
    /// board.
    #[inline]
    pub fn words(&self) -> [u64; TOP_OF_BOOK_WORDS] {
        let pair = |quote: Option<Quote>| {
            quote.map_or([0; 2], |quote| [quote.price.cast_unsigned(), quote.quantity])
        };
        let ([bid, bids], [offer, offers], [last, lasts]) =
            (pair(self.bid), pair(self.offer), pair(self.last));
        let auction = if self.auction { AUCTION } else { 0 };
        [bid, bids, offer, offers, last, lasts, self.trades & !AUCTION | auction]
    }

    /// Decodes a top of book from words that other processes can write; `None` if they are invalid.
    #[inline]
    pub fn parse(words: &[u64; TOP_OF_BOOK_WORDS]) -> Option<Self> {
        let quote = |price: u64, quantity: u64| match (price.cast_signed(), quantity) {
            (0, 0) => Some(None),
            (price @ 1.., quantity @ 1..) => Some(Some(Quote { price, quantity })),
            _ => None,
        };
        let [bid, bids, offer, offers, last, lasts, trades] = *words;
        Some(Self {
            bid: quote(bid, bids)?,
            offer: quote(offer, offers)?,
            last: quote(last, lasts)?,
            trades: trades & !AUCTION,
            auction: trades & AUCTION != 0,
        })
    }
}

/// A top-of-book update from an exchange, as a strategy receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketTick {
    /// The index of the venue whose exchange published the update.
    pub venue: u16,
    /// The instrument's index.
    pub instrument: u16,
    /// The version of the top of book, which an order triggered by this update carries.
    pub version: u64,
    /// Time at which the exchange wrote the top of book, in ticks of the run's clock.
    pub written: u64,
    /// Number of versions that were overwritten before this strategy read them.
    pub missed: u64,
    /// The new top of book.
    pub top: TopOfBook,
}

/// Maximum number of cells polled per duty cycle; the next one continues there.
const MAX_POLLS: usize = 16;

struct BoardCell {
    board: usize,
    venue: VenueIndex,
    instrument: u16,
    seen: u64,
}

/// A strategy's reading end of the market-data boards of the exchanges that it follows; reading
/// writes no shared memory.
#[derive(Default)]
pub struct Market {
    boards: Vec<Reader>,
    cells: Vec<BoardCell>,
    next: usize,
    /// Number of cells that this duty cycle has still to poll.
    left: usize,
    received: u64,
    missed: u64,
    invalid: u64,
}

impl Market {
    /// Adds the market-data board of a venue to those that a strategy reads.
    pub fn follow(
        &mut self,
        venue: VenueIndex,
        view: &ReadOnlyWords,
        instruments: usize,
    ) -> Result<(), BoardError> {
        let reader = Reader::attach_as(shape(instruments)?, view)?;
        let board = self.boards.len();
        let cell = |instrument| BoardCell { board, venue, instrument: instrument as u16, seen: 0 };
        self.cells.extend((0..instruments).map(cell));
        self.boards.push(reader);
        self.restart_cycle();
        Ok(())
    }

    /// Returns the strategy's next top-of-book update; `None` once this duty cycle has polled its
    /// maximum number of instruments.
    #[inline]
    pub fn next_tick(&mut self) -> Option<MarketTick> {
        while self.left > 0 {
            self.left -= 1;
            let cell_index = self.next;
            self.next = if cell_index + 1 == self.cells.len() { 0 } else { cell_index + 1 };
            let cell = &self.cells[cell_index];
            if self.boards[cell.board].version(usize::from(cell.instrument)) != cell.seen
                && let Some(tick) = self.read_cell(cell_index)
            {
                return Some(tick);
            }
        }
        self.restart_cycle();
        None
    }

    fn restart_cycle(&mut self) {
        self.left = self.cells.len().min(MAX_POLLS);
    }

    #[inline(never)]
    fn read_cell(&mut self, cell_index: usize) -> Option<MarketTick> {
        let BoardCell { board, venue, instrument, ref mut seen } = self.cells[cell_index];
        let mut words = [0; TOP_OF_BOOK_WORDS];
        // The writer overtook a thousand attempts: the next poll tries again.
        let stamp = self.boards[board].read(instrument.into(), &mut words).ok()??;
        let missed = stamp.version.saturating_sub(seen.saturating_add(1));
        *seen = stamp.version;
        self.missed = self.missed.saturating_add(missed);
        let Some(touch) = TopOfBook::parse(&words) else {
            self.invalid += 1;
            return None;
        };
        self.received += 1;
        Some(MarketTick {
            venue: venue.0,
            instrument,
            version: stamp.version,
            written: stamp.ticks,
            missed,
            top: touch,
        })
    }

    /// Returns the number of top-of-book updates that the strategy has received.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of top-of-book versions that were overwritten before the strategy read
    /// them.
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the number of invalid tops of book that the strategy received and ignored.
    pub const fn invalid(&self) -> u64 {
        self.invalid
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm::board;
    use shm::memory::Region;

    fn quote(price: i64) -> Option<Quote> {
        Some(Quote { price, quantity: 7 })
    }

    fn market(boards: &[(u16, usize)]) -> (Vec<board::Writer>, Market) {
        let mut market = Market::default();
        let by_board = boards.iter().map(|(venue, instruments)| {
            let shape = shape(*instruments).unwrap();
            let words = board::heap(shape);
            market.follow(VenueIndex(*venue), &words.clone().into(), *instruments).unwrap();
            board::Writer::attach(&words).unwrap()
        });
        (by_board.collect(), market)
    }

    fn cycle(market: &mut Market) -> Vec<MarketTick> {
        core::iter::from_fn(|| market.next_tick()).collect()
    }

    #[test]
    fn newest_update_is_received_once_and_missed_are_counted() {
        let (mut writers, mut market) = market(&[(0, 1), (3, 2)]);
        assert_eq!(cycle(&mut market), []);
        let touch = |price| TopOfBook { bid: quote(price), trades: 2, auction: true, ..TopOfBook::default() };
        for price in 1..=3 {
            writers[1].write(1, 500, &touch(price).words());
        }
        let [tick] = cycle(&mut market)[..] else { panic!("one tick") };
        let expected =
            MarketTick { venue: 3, instrument: 1, version: 3, written: 500, missed: 2, top: touch(3) };
        assert_eq!(tick, expected);
        assert_eq!(cycle(&mut market), [], "once");
        writers[0].write(0, 0, &[u64::MAX; TOP_OF_BOOK_WORDS]);
        assert_eq!(cycle(&mut market), [], "no exchange says that");
        assert_eq!((market.received(), market.missed(), market.invalid()), (1, 2, 1));
    }

    #[test]
    fn next_cycle_continues_where_polling_stopped() {
        let (mut writers, mut market) = market(&[(0, 40)]);
        (0..40).for_each(|cell| _ = writers[0].write(cell, 0, &TopOfBook::default().words()));
        let received_per_cycle: Vec<usize> = (0..4).map(|_| cycle(&mut market).len()).collect();
        assert_eq!(received_per_cycle, [16, 16, 8, 0]);
        // A writer that always writes occupies a reader for one cycle only.
        let mut looks = 0;
        while market.next_tick().is_some() || looks == 0 {
            writers[0].write(looks, 0, &TopOfBook::default().words());
            looks += 1;
        }
        assert!(looks <= 17);
    }

    #[test]
    fn segment_of_wrong_shape_is_refused() {
        let (_, reader) = board::pair(BoardShape::with_cells(1, 3).unwrap());
        drop(reader);
        let mut market = Market::default();
        let words = Region::heap(100).words();
        assert!(market.follow(VenueIndex(0), &words.into(), 1).is_err());
        assert_eq!(market.next_tick(), None);
    }

    proptest! {
        #[test]
        fn invalid_top_of_book_words_are_refused(words in proptest::array::uniform7(0u64..5), sign: bool) {
            let mut words = words;
            words[6] |= if sign { AUCTION } else { 0 };
            if let Some(touch) = TopOfBook::parse(&words) {
                prop_assert_eq!(touch.words(), words);
            } else {
                prop_assert!(words[..6].chunks(2).any(|pair| (pair[0] == 0) != (pair[1] == 0)));
            }
            let _ = TopOfBook::parse(&words.map(|word| word.wrapping_mul(u64::MAX / 3)));
        }
    }
}
