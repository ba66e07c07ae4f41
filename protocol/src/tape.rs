//! The tape (time and sales) of an exchange: all its trades, and its final order books.
//!
//! ```text
//! word 0        16       17        18       19 …     20                             T
//!      │ header  │ trades │ dropped │ closed │ levels │ (instrument, side, rank) × 3 │ trades × 6
//! ```
//!
//! Written by the exchange, read by the launcher after the run. A level has price, quantity shown
//! and number of orders; zeros if there is none. Only the books of the first [`TAPED_INSTRUMENTS`]
//! instruments are kept.

use crate::index::VenueIndex;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;

/// Maximum number of price levels, from the best one, that an exchange's tape keeps for each side
/// of an order book.
pub const TAPED_LEVELS: usize = 64;
/// Maximum number of instruments, from the first one, whose final order books an exchange's tape
/// keeps.
pub const TAPED_INSTRUMENTS: usize = 64;

const TRADES: usize = HEADER_WORDS;
const DROPPED: usize = HEADER_WORDS + 1;
const CLOSED: usize = HEADER_WORDS + 2;
const BOOKS: usize = HEADER_WORDS + 3;
const LEVEL_WORDS: usize = 3;
/// Number of 64-bit words of a trade on an exchange's tape (its list of trades).
pub const TRADE_WORDS: usize = 6;
const TRADES_AT: usize = BOOKS + TAPED_INSTRUMENTS * 2 * TAPED_LEVELS * LEVEL_WORDS;

/// The segment kind (code, name and layout) of an exchange's tape (its list of trades), which the
/// exchange writes.
pub const KIND: SegmentKind =
    SegmentKind::new(20, "tape", &[("books", BOOKS), ("trades", TRADES_AT), ("trade-words", TRADE_WORDS)])
        .of_slots(TRADES_AT, TRADE_WORDS);

/// Returns the name of the segment with a venue's tape, within the run.
pub fn tape_segment(venue: VenueIndex) -> String {
    format!("tape-{venue}")
}

/// A trade on an exchange's tape (its list of trades), with time, instrument, both order ids, price
/// and quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapedTrade {
    /// The time of the trade, in ticks.
    pub ticks: u64,
    /// The index of the traded instrument.
    pub instrument: u16,
    /// The resting order's id; bit 63 is set for one of the opening book.
    pub maker: u64,
    /// The incoming order's id.
    pub taker: u64,
    /// The price in cents.
    pub price: i64,
    /// The traded quantity, in 1e-8 units.
    pub quantity: u64,
}

/// A price level of an exchange's final order book: price, shown quantity and number of orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapedLevel {
    /// The price in cents.
    pub price: i64,
    /// The quantity shown, in 1e-8 units.
    pub quantity: u64,
    /// Number of orders at the price level.
    pub orders: u64,
}

/// The writing end of an exchange's tape (its list of trades).
pub struct TapeWriter {
    words: AtomicWords,
    trades: usize,
    dropped: u64,
}

impl TapeWriter {
    /// Creates an empty tape in an exchange's segment.
    pub fn new(segment: &AtomicWords) -> Self {
        assert!(segment.len() >= TRADES_AT, "checked against the header");
        Self { words: segment.clone(), trades: 0, dropped: 0 }
    }

    /// Opens the tape (list of trades) of a crashed exchange, to append after its trades.
    pub fn resume(segment: &AtomicWords) -> Self {
        let tape = Self::new(segment);
        // Relaxed: the writer's death is certain, so all its stores are visible.
        let [trades, dropped] = [TRADES, DROPPED].map(|word| tape.words[word].load(Ordering::Relaxed));
        Self { trades: trades as usize, dropped, ..tape }
    }

    /// Returns the number of the exchange's trades so far, including those that did not fit on the
    /// tape.
    pub const fn total_trades(&self) -> u64 {
        self.trades as u64 + self.dropped
    }

    /// Appends a trade to the exchange's tape; one that does not fit is only counted.
    #[inline]
    pub fn append_trade(&mut self, trade: &TapedTrade) {
        let at = TRADES_AT + self.trades * TRADE_WORDS;
        let Some(slot) = self.words.get(at..at + TRADE_WORDS) else {
            self.dropped += 1;
            self.words[DROPPED].store(self.dropped, Ordering::Relaxed);
            return;
        };
        let TapedTrade { ticks, instrument, maker, taker, price, quantity } = *trade;
        let values = [ticks, instrument.into(), maker, taker, price.cast_unsigned(), quantity];
        for (word, value) in slot.iter().zip(values) {
            // Relaxed: published by the count.
            word.store(value, Ordering::Relaxed);
        }
        self.trades += 1;
        // Release: pairs with the Acquire of a reader; trades below the count are complete.
        self.words[TRADES].store(self.trades as u64, Ordering::Release);
    }

    /// Writes a price level of a final order book; `rank` 0 is the best, excess levels are ignored.
    pub fn write_level(&self, instrument: u16, is_sell: bool, rank: usize, level: TapedLevel) {
        if usize::from(instrument) >= TAPED_INSTRUMENTS || rank >= TAPED_LEVELS {
            return;
        }
        let at = level_at(instrument.into(), is_sell, rank);
        let values = [level.price.cast_unsigned(), level.quantity, level.orders];
        for (word, value) in self.words[at..at + LEVEL_WORDS].iter().zip(values) {
            // Relaxed: published by `close`.
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Marks the exchange's tape as complete, with all price levels of the final books.
    pub fn close(&self) {
        // Release: pairs with the Acquire in `TapeView::is_closed`.
        self.words[CLOSED].store(1, Ordering::Release);
    }
}

const fn level_at(instrument: usize, is_sell: bool, rank: usize) -> usize {
    BOOKS + ((instrument * 2 + is_sell as usize) * TAPED_LEVELS + rank) * LEVEL_WORDS
}

/// The reading end of an exchange's tape (its list of trades).
pub struct TapeView {
    words: ReadOnlyWords,
}

impl TapeView {
    /// Opens the tape in an exchange's segment; `None` if the segment is too short.
    pub fn new(segment: impl Into<ReadOnlyWords>) -> Option<Self> {
        let words = segment.into();
        (words.len() >= TRADES_AT).then_some(Self { words })
    }

    /// Returns the trades on the exchange's tape.
    pub fn trades(&self) -> impl Iterator<Item = TapedTrade> + '_ {
        let count = self.words.load(TRADES, Ordering::Acquire) as usize;
        let max_trades = (self.words.len() - TRADES_AT) / TRADE_WORDS;
        (0..count.min(max_trades)).map(|number| {
            let word = |word_index: usize| {
                self.words.load(TRADES_AT + number * TRADE_WORDS + word_index, Ordering::Relaxed)
            };
            TapedTrade {
                ticks: word(0),
                instrument: word(1) as u16,
                maker: word(2),
                taker: word(3),
                price: word(4).cast_signed(),
                quantity: word(5),
            }
        })
    }

    /// Returns the number of trades that did not fit on the exchange's tape.
    pub fn dropped(&self) -> u64 {
        self.words.load(DROPPED, Ordering::Relaxed)
    }

    /// Returns `true` if trading ended normally and the exchange's tape has the final books.
    pub fn is_closed(&self) -> bool {
        self.words.load(CLOSED, Ordering::Acquire) == 1
    }

    /// Returns the price levels of one side of an instrument's final order book, the best first.
    pub fn levels(&self, instrument: u16, is_sell: bool) -> impl Iterator<Item = TapedLevel> + '_ {
        let ranks = if usize::from(instrument) < TAPED_INSTRUMENTS { TAPED_LEVELS } else { 0 };
        let level = move |rank| {
            let at = level_at(instrument.into(), is_sell, rank);
            let word = |word_index: usize| self.words.load(at + word_index, Ordering::Relaxed);
            TapedLevel { price: word(0).cast_signed(), quantity: word(1), orders: word(2) }
        };
        (0..ranks).map(level).take_while(|level| level.orders > 0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use shm::memory::Region;

    #[test]
    fn taped_trades_are_read_and_overflow_is_counted() {
        let region = Region::heap(TRADES_AT + 2 * TRADE_WORDS);
        let mut tape = TapeWriter::new(&region.words());
        let trade = |n: u64| TapedTrade {
            ticks: n,
            instrument: 3,
            maker: 1 << 63 | n,
            taker: n + 1,
            price: -7,
            quantity: 9,
        };
        (0..3).for_each(|n| tape.append_trade(&trade(n)));
        let level = |price| TapedLevel { price, quantity: 5, orders: 2 };
        tape.write_level(63, true, 0, level(10));
        tape.write_level(63, true, 1, level(11));
        tape.write_level(63, true, TAPED_LEVELS, level(12));
        tape.write_level(64, false, 0, level(13));
        let view = TapeView::new(region.words()).unwrap();
        assert!(!view.is_closed());
        tape.close();
        assert!(view.is_closed());
        assert_eq!(view.trades().collect::<Vec<_>>(), [trade(0), trade(1)]);
        assert_eq!(view.dropped(), 1);
        assert_eq!(view.levels(63, true).collect::<Vec<_>>(), [level(10), level(11)]);
        assert_eq!(view.levels(63, false).count() + view.levels(64, false).count(), 0);
        assert!(TapeView::new(Region::heap(100).words()).is_none());
    }
}
