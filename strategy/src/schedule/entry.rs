//! One order of a schedule, and its encoding in four words.

use super::EntryWords;
use protocol::wire::{Operation, OrderRequest, Side, WireError};

/// The longest venue delay that a scheduled order can have, in nanoseconds (48 bits: about 78
/// hours).
pub const MAX_DELAY_NS: u64 = (1 << 48) - 1;

/// The flag bit in a cancel's target for an order that was already in the book when the replayed
/// recording of orders began. The target is then this bit and the recording's order id below it. No
/// sequence has the bit.
pub const RESTING: u64 = 1 << 63;

/// An order of a schedule: due time, venue, request and delay at the venue.
///
/// ```text
/// word   63        56 55       48 47                                             0
///    0  │ fire_ns                                                                 │
///    1  │ code       │ venue     │ delay_ns                                        │
///    2  │ price (two's complement) of a new order · target of a cancel            │
///    3  │ quantity                                                                │
///
/// code: 0x10 new, buy · 0x11 new, sell · 0x20 cancel, buy · 0x21 cancel, sell; nothing else, so no
///       entry is all zeros, and a missing one is found
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Due time in nanoseconds from the start of the run; 0 in a closed loop.
    pub fire_ns: u64,
    /// The order to send: a limit order, a market order (price 0) or a cancel of instrument 0, with
    /// default terms and no trigger. Its venue is below the schedule's number of venues and below
    /// 256, its delay at most [`MAX_DELAY_NS`]. A cancel's target is a sequence of the same
    /// strategy and venue, or [`RESTING`] and that order's recorded id.
    pub request: OrderRequest,
}

const CODE_SHIFT: u32 = 56;
const VENUE_SHIFT: u32 = 48;

impl Entry {
    /// Encodes the scheduled order as 64-bit words. Bits of delay and venue that do not fit are cut
    /// off; a cancel's price and a new order's target are not encoded, nor are instrument, terms
    /// and trigger.
    #[inline]
    pub fn to_words(&self) -> EntryWords {
        let OrderRequest { venue, operation, side, delay_ns, price, quantity, target, .. } = self.request;
        let (operation, detail) = match operation {
            Operation::New => (0x10, price.cast_unsigned()),
            // A schedule has no replaces and no mass cancels.
            Operation::Cancel | Operation::Replace | Operation::MassCancel => (0x20, target),
        };
        let side = match side {
            Side::Buy => 0,
            Side::Sell => 1,
        };
        let code: u64 = operation | side;
        let venue = u64::from(venue) & 0xFF;
        let service = (code << CODE_SHIFT) | (venue << VENUE_SHIFT) | (delay_ns & MAX_DELAY_NS);
        [self.fire_ns, service, detail, quantity]
    }

    /// Decodes and validates a scheduled order from words copied from its segment. The venue is not
    /// checked.
    #[inline]
    pub fn from_words(words: EntryWords) -> Result<Self, WireError> {
        let code = words[1] >> CODE_SHIFT;
        let (operation, price, target) = match code & 0xF0 {
            0x10 => (Operation::New, words[2].cast_signed(), 0),
            0x20 => (Operation::Cancel, 0, words[2]),
            _ => return Err(WireError::BadOperation),
        };
        let side = match code & 0x0F {
            0 => Side::Buy,
            1 => Side::Sell,
            _ => return Err(WireError::BadSide),
        };
        let (fire_ns, quantity) = (words[0], words[3]);
        let base = OrderRequest::to_venue(venue_of(&words));
        let request =
            OrderRequest { operation, side, delay_ns: delay_of(&words), price, quantity, target, ..base };
        Ok(Self { fire_ns, request })
    }
}

/// In nanoseconds.
pub(super) fn delay_of(words: &EntryWords) -> u64 {
    words[1] & MAX_DELAY_NS
}

pub(super) fn venue_of(words: &EntryWords) -> u16 {
    ((words[1] >> VENUE_SHIFT) & 0xFF) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entry_roundtrips_through_words(
            fire_ns: u64, delay_ns in 0..=MAX_DELAY_NS, venue in 0u16..256, value: u64, quantity: u64,
            cancel: bool, sell: bool,
        ) {
            let operation = if cancel { Operation::Cancel } else { Operation::New };
            let (price, target) = if cancel { (0, value) } else { (value.cast_signed(), 0) };
            let side = if sell { Side::Sell } else { Side::Buy };
            let base = OrderRequest::to_venue(venue);
            let request = OrderRequest { operation, side, delay_ns, price, quantity, target, ..base };
            let entry = Entry { fire_ns, request };
            prop_assert_eq!(Entry::from_words(entry.to_words()), Ok(entry));
        }

        #[test]
        fn arbitrary_words_are_refused_or_kept(words: [u64; 4]) {
            if let Ok(entry) = Entry::from_words(words) {
                prop_assert_eq!(entry.to_words(), words);
            }
        }
    }

    #[test]
    fn entry_words_have_documented_layout() {
        let request = OrderRequest {
            delay_ns: 0x1234,
            side: Side::Sell,
            price: -1,
            quantity: 8,
            ..OrderRequest::to_venue(0xAB)
        };
        let entry = Entry { fire_ns: 9, request };
        assert_eq!(entry.to_words(), [9, 0x11AB_0000_0000_1234, u64::MAX, 8]);
        let cancel = OrderRequest { operation: Operation::Cancel, price: 0, target: RESTING | 7, ..request };
        assert_eq!(
            Entry { fire_ns: 9, request: cancel }.to_words(),
            [9, 0x21AB_0000_0000_1234, RESTING | 7, 8]
        );
        assert_eq!(Entry::from_words([0; 4]), Err(WireError::BadOperation), "a missing entry is detected");
    }
}
