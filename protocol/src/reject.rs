//! The reasons for rejecting orders before they reach a venue.

macro_rules! reasons {
    ($($variant:ident = $code:literal, $fix:literal, $name:literal, $text:literal;)+) => {
        /// The reason for rejecting an order; its code is in the report and in the stamp log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reject { $(#[doc = $text] $variant = $code,)+ }

        impl Reject {
            /// All reasons for rejecting orders, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the reason for rejecting orders that has this code.
            #[inline]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns the FIX OrdRejReason (tag 103) that is closest to the reason for rejecting
            /// an order.
            pub const fn fix_code(self) -> u16 {
                match self { $(Self::$variant => $fix,)+ }
            }

            /// Returns the reason's name in tables and files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the reason as FIX Text (tag 58), for people.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

reasons! {
    UnknownVenue = 1, 99, "unknown-venue", "there is no such venue";
    TooManyOpen = 2, 3, "too-many-open", "the strategy has as many orders open as it may";
    TooLarge = 3, 26, "order-volume", "the quantity is above the maximum order volume";
    BadPrice = 4, 99, "bad-price", "the price is negative";
    Killed = 5, 21, "killed", "a kill switch is on";
    Gone = 6, 99, "gone", "the strategy that sent it is dead";
    NotPlanned = 7, 3, "not-planned", "the plan has no more orders of the strategy for that venue";
    // Last used by version 0.2: too many orders were open at the venue's gateway.
    VenueBusy = 8, 99, "venue-busy", "the venue's gateway takes no orders, and as many as may wait already";
    // Last used by version 0.2: the gateway had reached the venue's message limit.
    Throttled = 9, 99, "throttled", "the gateway has sent as many messages as the venue allows";
    VenueSilent = 10, 99, "venue-silent", "the venue has not answered in time";
    VenueDown = 11, 2, "venue-down", "the venue is disconnected";
    VenueRefuses = 12, 0, "venue-refuses", "the venue refuses it";
    UnknownInstrument = 13, 1, "unknown-instrument", "there is no such instrument";
    Restricted = 14, 0, "restricted", "the instrument is restricted";
    OddTick = 15, 18, "odd-tick", "the price is no multiple of the tick";
    OddLot = 16, 13, "odd-lot", "the quantity is no multiple of the lot";
    PriceBand = 17, 16, "price-band", "the price is outside of the instrument's band";
    PriceCollar = 18, 16, "price-collar", "the price is too far from the reference price";
    NoReference = 19, 19, "no-reference", "there is no reference price yet";
    OrderValue = 20, 27, "order-value", "the value is above the maximum order value";
    MessageRate = 21, 21, "message-rate", "the strategy sends faster than it may";
    CredentialRate = 22, 21, "credential-rate", "the credential's strategies send faster than they may";
    ExecutionThrottle = 23, 21, "execution-throttle", "as many executions as may be without re-enabling";
    Duplicate = 24, 6, "duplicate", "the same order was sent a moment ago";
    Position = 25, 3, "position", "the position could exceed its limit";
    GrossExposure = 26, 25, "gross-exposure", "the gross exposure could exceed its limit";
    NetExposure = 27, 25, "net-exposure", "the net exposure could exceed its limit";
    Overflow = 28, 20, "overflow", "price and quantity are too large to be reckoned with";
    WrongInstrument = 29, 1, "wrong-instrument", "a replace names another instrument than its order";
    VenueUnknown = 30, 99, "venue-unknown", "the venue's gateway died, and what became of the order is unknown";
    CredentialOpen = 31, 3, "credential-open", "the credential's strategies have as many orders open as they may";
}

impl Reject {
    /// Returns the code, in reports and stamp logs, of the reason for rejecting an order, from 1.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_round_trip() {
        assert_eq!(Reject::from_code(0), None);
        for (index, reason) in Reject::ALL.iter().enumerate() {
            assert_eq!(Reject::from_code(reason.code()), Some(*reason));
            assert_eq!(usize::from(reason.code()), index + 1, "codes have no gaps");
            let twins = Reject::ALL.iter().filter(|other| other.name() == reason.name()).count();
            assert_eq!(twins, 1, "{} is one reason's name", reason.name());
        }
        assert_eq!(Reject::from_code(Reject::ALL.len() as u8 + 1), None);
    }

    #[test]
    fn every_fix_code_is_one_of_the_standard() {
        for reason in Reject::ALL {
            let code = reason.fix_code();
            assert!(code <= 29 && code != 17 || code == 99, "{} has {code}", reason.name());
        }
    }
}
