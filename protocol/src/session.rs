//! Messages between a gateway and its exchange: numbered instructions and numbered reports.
//!
//! Both links are rings of one writer and one reader, so a message that is missing, doubled or out
//! of place is an error of the peer's: the numbers show it. They stand in words of the messages
//! that mean nothing between these two.
//!
//! | message | where its number is |
//! |---|---|
//! | instruction | word 1, an order's delay: a matching engine has none |
//! | report | the upper half of word 6 |

use crate::wire::Message;

/// The reason in the report of an order that was cancelled because all orders of a scope were: its
/// strategy is dead, or a kill switch is on.
pub const WITHDRAWN: u8 = 0xFF;

const REPORT_WORD: usize = 6;
const REPORT_SHIFT: u32 = 32;

/// Gives an instruction its number.
#[inline]
pub const fn number_instruction(message: &mut Message, number: u32) {
    message[1] = number as u64;
}

/// The number of an instruction; what does not fit 32 bits is none that was ever given.
#[inline]
pub const fn instruction_number(message: &Message) -> u64 {
    message[1]
}

/// Gives a report its number.
#[inline]
pub const fn number_report(message: &mut Message, number: u32) {
    message[REPORT_WORD] = message[REPORT_WORD] & 0xFFFF_FFFF | (number as u64) << REPORT_SHIFT;
}

/// The number of a report.
#[inline]
pub const fn report_number(message: &Message) -> u32 {
    (message[REPORT_WORD] >> REPORT_SHIFT) as u32
}

/// The numbers of one direction of a session: from 0, modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    next: u32,
}

impl Numbers {
    /// The numbers behind so many messages, modulo 2^32.
    pub const fn behind(count: u32) -> Self {
        Self { next: count }
    }

    /// The number of the next message that is sent.
    #[inline]
    pub const fn give(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// Whether a message that was taken has the number that it must have. The next one is expected
    /// to follow it in any case.
    #[inline]
    pub const fn take(&mut self, number: u32) -> bool {
        let is_next = number == self.next;
        self.next = number.wrapping_add(1);
        is_next
    }

    /// Messages so far, modulo 2^32.
    pub const fn count(&self) -> u32 {
        self.next
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wire::{Order, OrderId, OrderStatus, Report, Side};

    #[test]
    fn a_number_changes_nothing_else() {
        let order = Order::new(OrderId::new(3, 1, 7), 2);
        let mut message = order.to_message();
        number_instruction(&mut message, u32::MAX);
        assert_eq!(instruction_number(&message), u64::from(u32::MAX));
        assert_eq!(Order::from_message(message), Ok(Order { delay_ns: u64::from(u32::MAX), ..order }));
        let report = Report {
            id: order.id,
            venue: 2,
            instrument: 9,
            status: OrderStatus::PartiallyFilled,
            reason: 4,
            side: Side::Sell,
            price: -5,
            filled: 6,
            leaves: 7,
            cumulative: 8,
            number: 3,
            is_last: true,
        };
        let mut message = report.to_message();
        number_report(&mut message, 0xFEDC_BA98);
        number_report(&mut message, 0x1234_5678);
        assert_eq!(report_number(&message), 0x1234_5678);
        assert_eq!(Report::from_message(message), Ok(report));
    }

    #[test]
    fn a_gap_and_a_repeat_are_seen_once() {
        let (mut sent, mut taken) = (Numbers { next: u32::MAX }, Numbers { next: u32::MAX });
        assert!(taken.take(sent.give()) && taken.take(sent.give()));
        assert_eq!((sent.count(), taken.count()), (1, 1));
        sent.give();
        assert!(!taken.take(sent.give()) && taken.take(sent.give()));
        assert!(!taken.take(2) && taken.take(3));
    }
}
