//! Return codes of the C interface and their texts.
//!
//! 0 and above: it went well. −1 to −15 are answers that a program acts upon and that are no
//! mistake. −16 and below are mistakes, or what cannot be mended.

use core::ffi::CStr;
use strategy::Refused;

/// The version of this interface: the major one in the upper 16 bits, the minor one below. A
/// library serves programs that were made for its major version and no later minor one.
pub const BH_VERSION: u32 = 0x0001_0001;

/// It was done; of a poll or a read: there is nothing now.
pub const BH_OK: i32 = 0;
/// An earlier order still waits for room in the ring: poll, then send again.
pub const BH_BUSY: i32 = -1;
/// As many orders are open as the plan allows: poll, then send again.
pub const BH_TOO_MANY_OPEN: i32 = -2;
/// The run is ending: no order is sent any more. Go on polling until BH_OVER.
pub const BH_ENDING: i32 = -3;
/// All orders of the plan are sent. Go on polling until BH_OVER.
pub const BH_SPENT: i32 = -4;
/// All orders are sent and answered, or the run is over: call bh_finish.
pub const BH_OVER: i32 = -5;
/// The calling thread is not attached, or this is a call within another one, from a signal handler.
pub const BH_NOT_ATTACHED: i32 = -16;
/// The calling thread is attached already.
pub const BH_ATTACHED: i32 = -17;
/// The program was made for another version of this interface: see bh_version.
pub const BH_WRONG_VERSION: i32 = -18;
/// The run cannot be attached; bh_error_text says why.
pub const BH_CANNOT_ATTACH: i32 = -19;
/// A pointer is null that must not be.
pub const BH_NULL: i32 = -20;
/// No order: bh_error_text says which field is wrong. Nothing was sent.
pub const BH_BAD_ORDER: i32 = -21;
/// The run has no market data: no venue is an exchange, or it was switched off.
pub const BH_NO_MARKET_DATA: i32 = -22;
/// A defect of this library. The strategy is no longer attached, and the launcher is told.
pub const BH_DEFECT: i32 = -23;

/// Every code.
pub const ALL: [i32; 14] = [
    BH_OK,
    BH_BUSY,
    BH_TOO_MANY_OPEN,
    BH_ENDING,
    BH_SPENT,
    BH_OVER,
    BH_NOT_ATTACHED,
    BH_ATTACHED,
    BH_WRONG_VERSION,
    BH_CANNOT_ATTACH,
    BH_NULL,
    BH_BAD_ORDER,
    BH_NO_MARKET_DATA,
    BH_DEFECT,
];

/// The text of a code, without what is known only of the call.
pub const fn text(code: i32) -> &'static CStr {
    match code {
        0.. => c"done",
        BH_BUSY => c"an earlier order still waits for room",
        BH_TOO_MANY_OPEN => c"too many open orders",
        BH_ENDING => c"the run is ending",
        BH_SPENT => c"all orders of the plan are sent",
        BH_OVER => c"all orders are sent and answered, or the run is over",
        BH_NOT_ATTACHED => c"this thread is not attached: call bh_attach first, on the thread that trades",
        BH_ATTACHED => c"this thread is attached already",
        BH_WRONG_VERSION => {
            c"the program was made for another version of the interface: compile it with this library's bulkhead.h"
        }
        BH_CANNOT_ATTACH => c"the run cannot be attached",
        BH_NULL => c"a pointer is null",
        BH_BAD_ORDER => c"no order",
        BH_NO_MARKET_DATA => c"the run has no market data: run with --venue book",
        BH_DEFECT => c"a defect of bulkhead's library: what it printed says where",
        _ => c"no code of this library",
    }
}

/// The code of a refusal.
pub(crate) const fn of_refusal(refused: Refused) -> i32 {
    match refused {
        Refused::Busy => BH_BUSY,
        Refused::TooManyOpen => BH_TOO_MANY_OPEN,
        Refused::Ending => BH_ENDING,
        Refused::Spent => BH_SPENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text_of_its_own() {
        let mut texts: Vec<&CStr> = ALL.map(text).to_vec();
        texts.push(text(-99));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ALL.len() + 1);
    }
}
