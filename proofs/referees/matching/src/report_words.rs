//! A report as the seven words of a message of the SPSC ring.

use crate::abi::Report;

impl Report {
    /// Returns a report's fields as words.
    #[inline(always)]
    pub fn to_words(&self) -> [u64; 7] {
        let kinds = u64::from(self.report_type) | u64::from(self.side) << 8;
        [
            kinds | u64::from(self.quantity) << 32,
            self.sequence_number,
            self.order_id,
            self.price_ticks as u64,
            self.maker_order_id,
            self.taker_order_id,
            0,
        ]
    }

    /// Returns the report that has these words.
    #[inline(always)]
    pub fn from_words(words: [u64; 7]) -> Report {
        Report {
            report_type: words[0] as u8,
            side: (words[0] >> 8) as u8,
            quantity: (words[0] >> 32) as u32,
            sequence_number: words[1],
            order_id: words[2],
            price_ticks: words[3] as i64,
            maker_order_id: words[4],
            taker_order_id: words[5],
            ..Report::default()
        }
    }
}
