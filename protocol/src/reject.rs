//! Why orders are refused.

/// Why an order was refused; the code travels in the report and in the stamp log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reject {
    /// There is no such venue.
    UnknownVenue = 1,
    /// The strategy has as many orders open as it may.
    TooManyOpen = 2,
    /// The order's quantity is over the limit.
    TooLarge = 3,
    /// The price is negative.
    BadPrice = 4,
    /// The kill switch is on for everybody.
    Killed = 5,
    /// The incarnation of the strategy that sent it is dead.
    Gone = 6,
    /// The strategy has sent as many orders to that venue as the plan has.
    NotPlanned = 7,
    /// The venue's gateway takes no orders now, and as many as may wait for it wait already.
    VenueBusy = 8,
}

impl Reject {
    /// The reason with this code.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::UnknownVenue),
            2 => Some(Self::TooManyOpen),
            3 => Some(Self::TooLarge),
            4 => Some(Self::BadPrice),
            5 => Some(Self::Killed),
            6 => Some(Self::Gone),
            7 => Some(Self::NotPlanned),
            8 => Some(Self::VenueBusy),
            _ => None,
        }
    }
}
