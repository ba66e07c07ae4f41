//! Market data of a run: the touch of each instrument, on a board that its exchange writes and
//! every strategy reads.
//!
//! A venue has a board of its own (`shm::board`), with a cell for each instrument: who reads cannot
//! write it, and the exchange waits for nobody. A value is seven words, which with the time of the
//! write fill one cache line:
//!
//! | word | what |
//! |---|---|
//! | 0, 1 | best bid: price in cents, quantity in 1e-8 units; both 0: there is none |
//! | 2, 3 | best offer, likewise |
//! | 4, 5 | the last trade's price and quantity, likewise |
//! | 6 | bits 0–62 trades so far, 63 whether the instrument is in a call auction |
//!
//! The version of a cell names one touch: an order that it triggers carries that version
//! ([`Order::trigger`](crate::wire::Order::trigger)), of the instrument and the venue that it goes
//! to. The exchange logs each version that it writes, so what an order claims can be checked.

use shm::board::{BoardError, BoardShape, Reader};
use shm::memory::ReadOnlyWords;

/// Words of a value.
pub const TOUCH_WORDS: usize = 7;

const AUCTION: u64 = 1 << 63;

/// The name within the run of a venue's board.
pub fn market_segment(venue: u16) -> String {
    format!("market-{venue}")
}

/// The shape of a board for so many instruments.
///
/// # Errors
/// No instrument.
pub fn shape(instruments: usize) -> Result<BoardShape, BoardError> {
    BoardShape::with_cells(instruments, TOUCH_WORDS)
}

/// A price and how much there is of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// In cents, above 0.
    pub price: i64,
    /// In 1e-8 units, above 0.
    pub quantity: u64,
}

/// What everybody may see of an instrument: the best of both sides, and the last trade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopOfBook {
    /// The best bid, with all that is shown at its price.
    pub bid: Option<Quote>,
    /// The best offer.
    pub offer: Option<Quote>,
    /// The last trade.
    pub last: Option<Quote>,
    /// Trades so far, below 2^63.
    pub trades: u64,
    /// Whether it is in a call auction.
    pub auction: bool,
}

impl TopOfBook {
    /// Its words.
    #[inline]
    pub fn words(&self) -> [u64; TOUCH_WORDS] {
        let pair = |quote: Option<Quote>| {
            quote.map_or([0; 2], |quote| [quote.price.cast_unsigned(), quote.quantity])
        };
        let ([bid, bids], [offer, offers], [last, lasts]) =
            (pair(self.bid), pair(self.offer), pair(self.last));
        let auction = if self.auction { AUCTION } else { 0 };
        [bid, bids, offer, offers, last, lasts, self.trades & !AUCTION | auction]
    }

    /// Reads words that others can write; `None`: no exchange says that.
    #[inline]
    pub fn parse(words: &[u64; TOUCH_WORDS]) -> Option<Self> {
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

/// A touch, as a strategy hears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The venue's index.
    pub venue: u16,
    /// The instrument's index.
    pub instrument: u16,
    /// The version of its cell: what an order that it triggers says.
    pub version: u64,
    /// When the exchange wrote it, in ticks of the run's clock.
    pub written: u64,
    /// Versions that were written over before this strategy looked.
    pub missed: u64,
    /// What there is to see.
    pub touch: TopOfBook,
}

/// Cells that one duty cycle looks at; with more instruments the next cycle goes on where this one
/// stopped.
const LOOKS: usize = 16;

/// A cell that is followed.
struct Cell {
    board: usize,
    venue: u16,
    instrument: u16,
    seen: u64,
}

/// The boards of a run's exchanges, as one strategy reads them. Nobody knows of it, and it can
/// write nothing.
#[derive(Default)]
pub struct Market {
    boards: Vec<Reader>,
    cells: Vec<Cell>,
    /// The next cell to look at.
    next: usize,
    /// Cells that this duty cycle has still to look at.
    left: usize,
    heard: u64,
    missed: u64,
    bad: u64,
}

impl Market {
    /// Follows the board of a venue too.
    ///
    /// # Errors
    /// Memory that does not have the size of a board for so many instruments.
    pub fn follow(&mut self, venue: u16, view: &ReadOnlyWords, instruments: usize) -> Result<(), BoardError> {
        let reader = Reader::attach_as(shape(instruments)?, view)?;
        let board = self.boards.len();
        let cell = |instrument| Cell { board, venue, instrument: instrument as u16, seen: 0 };
        self.cells.extend((0..instruments).map(cell));
        self.boards.push(reader);
        self.begin();
        Ok(())
    }

    /// The next touch that is newer than what was heard of its instrument; `None`: this duty cycle
    /// has looked at all that it looks at, and the next call begins anew. One load for a cell that
    /// has nothing new; no system call, no allocation.
    #[inline]
    pub fn next_tick(&mut self) -> Option<Tick> {
        while self.left > 0 {
            self.left -= 1;
            let place = self.next;
            self.next = if place + 1 == self.cells.len() { 0 } else { place + 1 };
            let cell = &self.cells[place];
            if self.boards[cell.board].version(usize::from(cell.instrument)) != cell.seen
                && let Some(tick) = self.take(place)
            {
                return Some(tick);
            }
        }
        self.begin();
        None
    }

    fn begin(&mut self) {
        self.left = self.cells.len().min(LOOKS);
    }

    #[inline(never)]
    fn take(&mut self, place: usize) -> Option<Tick> {
        let Cell { board, venue, instrument, ref mut seen } = self.cells[place];
        let mut words = [0; TOUCH_WORDS];
        // Overtaken a thousand times: the next look tries again.
        let stamp = self.boards[board].read(instrument.into(), &mut words).ok()??;
        let missed = stamp.version.saturating_sub(seen.saturating_add(1));
        *seen = stamp.version;
        self.missed = self.missed.saturating_add(missed);
        let Some(touch) = TopOfBook::parse(&words) else {
            self.bad += 1;
            return None;
        };
        self.heard += 1;
        Some(Tick { venue, instrument, version: stamp.version, written: stamp.ticks, missed, touch })
    }

    /// Touches heard.
    pub const fn heard(&self) -> u64 {
        self.heard
    }

    /// Versions that were written over before they were read.
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Values that no honest exchange writes; none of them was heard.
    pub const fn bad(&self) -> u64 {
        self.bad
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm::board;
    use shm::memory::Region;
    use shm::memory::header::Header;

    fn quote(price: i64) -> Option<Quote> {
        Some(Quote { price, quantity: 7 })
    }

    fn market(boards: &[(u16, usize)]) -> (Vec<board::Writer>, Market) {
        let mut market = Market::default();
        let made = boards.iter().map(|(venue, instruments)| {
            let shape = shape(*instruments).unwrap();
            let words = Region::heap(shape.segment_words()).words();
            let header = Header {
                kind: board::KIND,
                bytes: 0,
                capacity: 0,
                slot_words: 0,
                creator_pid: 1,
                creator_start: 1,
                run: 0,
                index: 0,
            };
            shape.write_header(&words, header);
            market.follow(*venue, &words.clone().into(), *instruments).unwrap();
            board::Writer::attach(&words).unwrap()
        });
        (made.collect(), market)
    }

    fn cycle(market: &mut Market) -> Vec<Tick> {
        core::iter::from_fn(|| market.next_tick()).collect()
    }

    #[test]
    fn the_newest_touch_is_heard_once_and_what_was_missed_is_counted() {
        let (mut writers, mut market) = market(&[(0, 1), (3, 2)]);
        assert_eq!(cycle(&mut market), []);
        let touch = |price| TopOfBook { bid: quote(price), trades: 2, auction: true, ..TopOfBook::default() };
        for price in 1..=3 {
            writers[1].write(1, 500, &touch(price).words());
        }
        let [tick] = cycle(&mut market)[..] else { panic!("one tick") };
        let wanted = Tick { venue: 3, instrument: 1, version: 3, written: 500, missed: 2, touch: touch(3) };
        assert_eq!(tick, wanted);
        assert_eq!(cycle(&mut market), [], "once");
        writers[0].write(0, 0, &[u64::MAX; TOUCH_WORDS]);
        assert_eq!(cycle(&mut market), [], "no exchange says that");
        assert_eq!((market.heard(), market.missed(), market.bad()), (1, 2, 1));
    }

    #[test]
    fn a_cycle_looks_at_some_cells_and_the_next_one_goes_on() {
        let (mut writers, mut market) = market(&[(0, 40)]);
        (0..40).for_each(|cell| _ = writers[0].write(cell, 0, &TopOfBook::default().words()));
        let heard: Vec<usize> = (0..4).map(|_| cycle(&mut market).len()).collect();
        assert_eq!(heard, [16, 16, 8, 0]);
        // One that always writes holds nobody for longer than a cycle.
        let mut looks = 0;
        while market.next_tick().is_some() || looks == 0 {
            writers[0].write(looks, 0, &TopOfBook::default().words());
            looks += 1;
        }
        assert!(looks <= 17);
    }

    #[test]
    fn memory_of_another_shape_is_refused() {
        let (_, reader) = board::pair(BoardShape::with_cells(1, 3).unwrap());
        drop(reader);
        let mut market = Market::default();
        let words = Region::heap(100).words();
        assert!(market.follow(0, &words.into(), 1).is_err());
        assert_eq!(market.next_tick(), None);
    }

    proptest! {
        #[test]
        fn words_are_a_touch_or_refused(words in proptest::array::uniform7(0u64..5), sign: bool) {
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
