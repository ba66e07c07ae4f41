//! Return codes of the C interface and their texts.
//!
//! 0 and above is success. −1 to −15 are regular answers that a program acts upon. −16 and below
//! are errors of the program or of the environment.

use core::ffi::CStr;
use strategy::Refused;

/// Version of this interface: major in the upper 16 bits, minor below. A library serves programs of
/// its major version and of no later minor version.
pub const BH_VERSION: u32 = 0x0001_0002;

/// Success; of a poll or a read: nothing available now.
pub const BH_OK: i32 = 0;
/// An earlier order is still queued for the ring: poll, then send again.
pub const BH_BUSY: i32 = -1;
/// The limit of open orders is reached: poll, then send again.
pub const BH_TOO_MANY_OPEN: i32 = -2;
/// The run is ending: no more orders are sent. Continue to poll until BH_OVER.
pub const BH_ENDING: i32 = -3;
/// All orders of the plan are sent. Continue to poll until BH_OVER.
pub const BH_SPENT: i32 = -4;
/// All orders are sent and answered, or the run has ended: call bh_finish.
pub const BH_OVER: i32 = -5;
/// The calling thread is not attached, or the call is nested in another one, from a signal handler.
pub const BH_NOT_ATTACHED: i32 = -16;
/// The calling thread is attached already.
pub const BH_ATTACHED: i32 = -17;
/// The program was compiled for another version of this interface: see bh_version.
pub const BH_WRONG_VERSION: i32 = -18;
/// Attaching to the run failed; bh_error_text returns the cause.
pub const BH_CANNOT_ATTACH: i32 = -19;
/// A required pointer is null.
pub const BH_NULL: i32 = -20;
/// The order is invalid: bh_error_text names the field. Nothing was sent.
pub const BH_BAD_ORDER: i32 = -21;
/// The run has no market data: no venue is an exchange, or market data was switched off.
pub const BH_NO_MARKET_DATA: i32 = -22;
/// A defect of this library. The strategy is detached, and the launcher is notified.
pub const BH_DEFECT: i32 = -23;

/// Returns the fixed text of a return code, such as `the run is ending` for BH_ENDING.
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

/// Returns the return code, such as BH_BUSY, for the reason why a strategy's order was not sent.
pub const fn from_refused(refused: Refused) -> i32 {
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
        let mut texts: Vec<&CStr> = (BH_DEFECT - 1..=BH_OK).map(text).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 14 + 1, "14 codes, and the others");
    }
}
