//! Sequence numbers of a session between a gateway and its exchange, for instructions and reports.
//!
//! Both links are rings of one writer and one reader, so a missing, duplicated or reordered message
//! is an error of the peer: the numbers show it. The numbers are in words of the messages that have
//! no meaning between these two.
//!
//! | message | where its number is |
//! |---|---|
//! | instruction | word 1, an order's delay: a matching engine has none |
//! | report | the upper half of word 6 |

use crate::wire::Message;

/// The reason code in the report of an order that the engine's mass cancel, and not its strategy,
/// has cancelled.
pub const WITHDRAWN: u8 = 0xFF;

const REPORT_WORD: usize = 6;
const REPORT_SHIFT: u32 = 32;

/// Writes the session's sequence number into a gateway's message to its exchange (an order request
/// or a mass cancel).
#[inline]
pub const fn number_instruction(message: &mut Message, number: u32) {
    message[1] = number as u64;
}

/// Returns the sequence number in a gateway's message to its exchange as received: a number of more
/// than 32 bits is invalid.
#[inline]
pub const fn instruction_number(message: &Message) -> u64 {
    message[1]
}

/// Writes the sequence number of a report into its message.
#[inline]
pub const fn number_report(message: &mut Message, number: u32) {
    message[REPORT_WORD] = message[REPORT_WORD] & 0xFFFF_FFFF | (number as u64) << REPORT_SHIFT;
}

/// Returns the sequence number in a report's message.
#[inline]
pub const fn report_number(message: &Message) -> u32 {
    (message[REPORT_WORD] >> REPORT_SHIFT) as u32
}

/// The sequence counter of one direction of the session between a gateway and its exchange: from 0,
/// modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionNumbers {
    next: u32,
}

impl SessionNumbers {
    /// Creates a counter that continues after `count` messages, modulo 2^32.
    pub const fn after(count: u32) -> Self {
        Self { next: count }
    }

    /// Returns the sequence number of the session's next message to send, and advances the counter.
    #[inline]
    pub const fn next_number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// Returns `true` if a received message has the expected sequence number; in either case, the
    /// number after the received one is expected next.
    #[inline]
    pub const fn try_accept(&mut self, number: u32) -> bool {
        let is_next = number == self.next;
        self.next = number.wrapping_add(1);
        is_next
    }

    /// Returns the number of the session's messages counted so far, modulo 2^32.
    pub const fn count(&self) -> u32 {
        self.next
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::wire::{Order, OrderId, OrderRequest, OrderStatus, Report, Side};

    #[test]
    fn session_number_changes_no_other_field() {
        let order = Order::new(OrderId::new(3, 1, 7), 2);
        let mut message = order.to_message();
        number_instruction(&mut message, u32::MAX);
        assert_eq!(instruction_number(&message), u64::from(u32::MAX));
        assert_eq!(
            Order::from_message(message),
            Ok(OrderRequest { delay_ns: u64::from(u32::MAX), ..order.request }.with_id(order.id))
        );
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
    fn gap_and_repeat_are_each_detected_once() {
        let (mut sent, mut taken) = (SessionNumbers { next: u32::MAX }, SessionNumbers { next: u32::MAX });
        assert!(taken.try_accept(sent.next_number()) && taken.try_accept(sent.next_number()));
        assert_eq!((sent.count(), taken.count()), (1, 1));
        sent.next_number();
        assert!(!taken.try_accept(sent.next_number()) && taken.try_accept(sent.next_number()));
        assert!(!taken.try_accept(2) && taken.try_accept(3));
    }
}
