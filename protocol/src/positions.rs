//! The positions that a strategy's successor inherits: written by the engine when an incarnation
//! has ended, read by the next one before its first order.
//!
//! Only the engine can write them. They do not change while the successor runs: from then on it
//! counts its own fills. An order of a dead incarnation that is filled after its end changes the
//! engine's position, and not these.

use crate::index::StrategyIndex;
use crate::plan::{OnDeath, Plan};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;

/// Number of 64-bit words of the position in an instrument: the quantity, and the average price.
pub const POSITION_WORDS: usize = 2;

/// The segment kind (code, name and layout) of the positions that a strategy inherits from its
/// earlier incarnations, one for each instrument.
pub const POSITIONS_KIND: SegmentKind =
    SegmentKind::new(22, "positions", &[("position", POSITION_WORDS)]).of_slots(HEADER_WORDS, POSITION_WORDS);

/// Returns the name, within the run, of the segment with the positions that a strategy inherits
/// from its earlier incarnations.
pub fn positions_segment(strategy: StrategyIndex) -> String {
    format!("positions-{strategy}")
}

/// The position in one instrument that a strategy inherits from its earlier incarnations (before
/// restarts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InheritedPosition {
    /// The instrument's index.
    pub instrument: u16,
    /// Bought minus sold, in 1e-8 units.
    pub net: i64,
    /// Average price of the quantity held, in cents.
    pub average_price: i64,
}

impl Plan {
    /// Returns `true` if strategies of the plan can have successors, which inherit positions.
    pub fn has_inheritance(&self) -> bool {
        self.is_trading() && self.on_death != OnDeath::Stop
    }
}

/// Writes a strategy's positions in all instruments, in their order: quantity (1e-8 units) and
/// average price (cents). Positions without a place in the segment are left out.
pub fn write(segment: &AtomicWords, positions: impl Iterator<Item = (i64, i64)>) {
    let places = segment[HEADER_WORDS..].chunks_exact(POSITION_WORDS);
    for (place, (net, average_price)) in places.zip(positions) {
        let words = [net.cast_unsigned(), average_price.cast_unsigned()];
        // Relaxed: published by the repair, which the launcher reads before it starts a successor.
        place.iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }
}

/// Reads a strategy's positions that differ from 0, in the order of the instruments.
pub fn read(segment: &ReadOnlyWords) -> impl Iterator<Item = InheritedPosition> + use<> {
    let segment = segment.clone();
    let count = segment.len().saturating_sub(HEADER_WORDS) / POSITION_WORDS;
    (0..u16::try_from(count).unwrap_or(u16::MAX)).filter_map(move |instrument| {
        let at = HEADER_WORDS + usize::from(instrument) * POSITION_WORDS;
        // Relaxed: written before this process was started.
        let load = |word| segment.load(at + word, Ordering::Relaxed).cast_signed();
        let position = InheritedPosition { instrument, net: load(0), average_price: load(1) };
        (position.net != 0).then_some(position)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use shm::memory::Region;

    #[test]
    fn positions_are_read_back_and_replaced() {
        let segment = Region::heap(HEADER_WORDS + 3 * POSITION_WORDS).words();
        let read_back = || read(&segment.clone().into()).collect::<Vec<_>>();
        assert_eq!(read_back(), []);
        let (bought, sold) = ((7, i64::MAX), (-5, i64::MIN));
        write(&segment, [bought, (0, 1), sold, (9, 9)].into_iter());
        let position =
            |instrument, (net, average_price)| InheritedPosition { instrument, net, average_price };
        assert_eq!(read_back(), [position(0, bought), position(2, sold)]);
        write(&segment, [(0, 0), (3, -1)].into_iter());
        assert_eq!(read_back(), [position(1, (3, -1)), position(2, sold)]);
    }
}
