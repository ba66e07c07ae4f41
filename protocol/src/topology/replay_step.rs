//! One order in the sequence of a recorded flow, as a word of its segment.

/// One order in the replay order of a recording: its strategy and its venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The strategy that sends the order.
    pub strategy: u16,
    /// The venue of the order.
    pub venue: u16,
}

impl ReplayStep {
    /// Encodes the order's strategy and venue as a word.
    pub const fn word(self) -> u64 {
        (self.venue as u64) << 16 | self.strategy as u64
    }

    /// Decodes an order's strategy and venue from a word.
    pub const fn from_word(word: u64) -> Self {
        Self { strategy: word as u16, venue: (word >> 16) as u16 }
    }
}
