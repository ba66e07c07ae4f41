//! The C functions: each checks the caller's pointers and calls [`crate::calls`].
//!
//! `unsafe` is needed because the validity of a C caller's pointers cannot be checked, except that
//! they are not null. A panic never leaves a function: it becomes
//! [`BH_DEFECT`](crate::codes::BH_DEFECT).
#![allow(unsafe_code)]

use crate::calls;
use crate::codes::{BH_NOT_ATTACHED, BH_NULL, BH_OK, BH_VERSION};
use crate::layout::{Context, Order, Report, Tick};
use core::ffi::c_char;

/// Returns the code of a result.
#[inline]
fn code(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(BH_OK)
}

/// Returns the code for a null pointer; not being attached comes first.
#[cold]
fn no_pointer() -> i32 {
    match calls::now() {
        Ok(_) => BH_NULL,
        Err(_) => BH_NOT_ATTACHED,
    }
}

/// Returns the version of the library, to be compared with BH_VERSION of the header.
#[unsafe(no_mangle)]
pub extern "C" fn bh_version() -> u32 {
    BH_VERSION
}

/// Attaches the calling thread to the run that the environment names, as the strategy that it
/// names, and waits until the run begins. `version` is BH_VERSION. Prepare everything before: from
/// here on the thread is pinned, the process's memory is limited, and the launcher expects a poll
/// within `--liveness`.
///
/// Returns BH_OK, BH_OVER if the run was stopped before it began, or BH_WRONG_VERSION, BH_ATTACHED
/// or BH_CANNOT_ATTACH.
#[unsafe(no_mangle)]
pub extern "C" fn bh_attach(version: u32) -> i32 {
    code(calls::attach(version))
}

/// Writes the strategy's information about its run to `context`.
///
/// # Safety
/// `context` is null or valid for the write of one context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_get_context(context: *mut Context) -> i32 {
    if context.is_null() {
        return no_pointer();
    }
    match calls::context() {
        Ok(known) => {
            // SAFETY: not null, so by this function's contract it is valid for the write of one and
            // aligned.
            unsafe { context.write(known) };
            BH_OK
        }
        Err(code) => code,
    }
}

/// Writes the position that the strategy inherits from its predecessors in an instrument: bought
/// minus sold, in 1e-8 units, and its average price, in cents. Zeros if it inherits none, as in
/// epoch 0. It is the engine's position when the predecessor had ended, and does not change; a fill
/// of a predecessor's order after that is not in it. Since version 1.2.
///
/// # Safety
/// `net` and `average_price` are null or valid for the write of a number each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_position(instrument: u16, net: *mut i64, average_price: *mut i64) -> i32 {
    if net.is_null() || average_price.is_null() {
        return no_pointer();
    }
    match calls::position(instrument) {
        Ok(position) => {
            // SAFETY: neither is null, so by this function's contract both are valid for the write
            // and aligned.
            unsafe {
                net.write(position.net);
                average_price.write(position.average_price);
            }
            BH_OK
        }
        Err(code) => code,
    }
}

/// Runs one duty cycle: takes up to `room` reports, in the order in which the engine returned them,
/// and publishes a heartbeat. Without reports it idles as the run's plan says, for at most
/// `wait_ns` nanoseconds, often far less; 0: not at all.
///
/// Returns the number of reports written; 0: none now. BH_OVER: no more will come, call bh_finish.
///
/// # Safety
/// `reports` is valid for the write of `room` reports; with `room` 0 it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_poll(reports: *mut Report, room: u32, wait_ns: u64) -> i32 {
    if reports.is_null() && room > 0 {
        return no_pointer();
    }
    let taken = calls::poll(room as usize, wait_ns, |index, report| {
        // SAFETY: `index` is below `room`, and not null then, so by this function's contract it is
        // valid for the write and aligned.
        unsafe { reports.add(index).write(*report) };
    });
    match taken {
        // At most a batch.
        Ok(taken) => taken as i32,
        Err(code) => code,
    }
}

/// Sends an order: numbers, stamps and pushes it. Its reports follow, exactly one of which is the
/// last. Its sequence is written to `sequence`, unless that is null: 0 for the first order of an
/// incarnation, then incremented by 1.
///
/// Returns BH_OK, also if the ring was full: the order is then queued, keeps its stamp, and nothing
/// overtakes it. BH_BUSY, BH_TOO_MANY_OPEN, BH_ENDING, BH_SPENT, BH_BAD_ORDER: nothing was sent and
/// no sequence used.
///
/// # Safety
/// `order` is null or valid for the read of an order; `sequence` is null or valid for the write of
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_send(order: *const Order, sequence: *mut u64) -> i32 {
    // SAFETY: this function's contract is that of `sent`.
    unsafe { sent(order, None, sequence) }
}

/// Sends an order like bh_send, with its intended send time in nanoseconds since the start of the
/// run, against which its lateness is measured (slip). A time in the future counts as now. Since
/// version 1.1.
///
/// # Safety
/// `order` is null or valid for the read of an order; `sequence` is null or valid for the write of
/// a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_send_due(order: *const Order, due_ns: u64, sequence: *mut u64) -> i32 {
    // SAFETY: this function's contract is that of `sent`.
    unsafe { sent(order, Some(due_ns), sequence) }
}

/// # Safety
/// `order` is null or valid for the read of an order; `sequence` is null or valid for the write of
/// a number.
#[inline]
unsafe fn sent(order: *const Order, due_ns: Option<u64>, sequence: *mut u64) -> i32 {
    if order.is_null() {
        return no_pointer();
    }
    // SAFETY: not null, so by this function's contract it is valid for the read of one and aligned.
    // Every field is a number, so every bit pattern is valid.
    let order = unsafe { order.read() };
    match calls::send(&order, due_ns) {
        Ok(number) => {
            if !sequence.is_null() {
                // SAFETY: not null, so by this function's contract it is valid for the write and
                // aligned.
                unsafe { sequence.write(number) };
            }
            BH_OK
        }
        Err(code) => code,
    }
}

/// Writes the next top of book that is newer than the last one read of its instrument. Returns 1 if
/// there was one, 0 if there is none now (after a batch the rest follows in the next call), or
/// BH_NO_MARKET_DATA.
///
/// # Safety
/// `tick` is null or valid for the write of one tick.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_board_read(tick: *mut Tick) -> i32 {
    if tick.is_null() {
        return no_pointer();
    }
    match calls::board_read() {
        Ok(Some(found)) => {
            // SAFETY: not null, so by this function's contract it is valid for the write of one and
            // aligned.
            unsafe { tick.write(found) };
            1
        }
        Ok(None) => BH_OK,
        Err(code) => code,
    }
}

/// Writes the time since the start of the run, in nanoseconds, by the run's clock.
///
/// # Safety
/// `ns` is null or valid for the write of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_now(ns: *mut u64) -> i32 {
    if ns.is_null() {
        return no_pointer();
    }
    match calls::now() {
        Ok(since_start) => {
            // SAFETY: not null, so by this function's contract it is valid for the write and
            // aligned.
            unsafe { ns.write(since_start) };
            BH_OK
        }
        Err(code) => code,
    }
}

/// Publishes a heartbeat, for a strategy that computes for longer than `--liveness` between two
/// polls, each of which publishes one too.
#[unsafe(no_mangle)]
pub extern "C" fn bh_heartbeat() -> i32 {
    code(calls::heartbeat())
}

/// Finishes the strategy: waits until every open order is answered (without delivering these
/// reports) or the run has ended, completes the strategy's log and detaches the thread. The process
/// then has some seconds to exit, with exit code 0.
#[unsafe(no_mangle)]
pub extern "C" fn bh_finish() -> i32 {
    code(calls::finish())
}

/// Returns the English text of a code; for BH_CANNOT_ATTACH and BH_BAD_ORDER that of this thread's
/// last such call. Never null; valid until the thread's next bh_attach.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_text(code: i32) -> *const c_char {
    calls::text_pointer(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{
        BH_ATTACHED, BH_BAD_ORDER, BH_BUSY, BH_CANNOT_ATTACH, BH_DEFECT, BH_NO_MARKET_DATA, BH_SPENT,
        BH_WRONG_VERSION,
    };
    use crate::session::AttachedSession;
    use core::ffi::CStr;
    use core::ptr::{null, null_mut};

    fn error_text(code: i32) -> String {
        // SAFETY: never null, and no attach in between.
        unsafe { CStr::from_ptr(bh_error_text(code)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn every_function_refuses_detached_thread() {
        let (mut context, mut tick, mut ns) = (Context::default(), Tick::default(), 0);
        let (mut net, mut price) = (0, 0);
        // SAFETY: each points to what it should.
        let codes = unsafe {
            [
                bh_get_context(&raw mut context),
                bh_position(0, &raw mut net, &raw mut price),
                bh_poll(null_mut(), 0, 0),
                bh_send(&Order::default(), &raw mut ns),
                bh_send(null(), null_mut()),
                bh_board_read(&raw mut tick),
                bh_now(&raw mut ns),
                bh_heartbeat(),
                bh_finish(),
            ]
        };
        assert_eq!(codes, [BH_NOT_ATTACHED; 9]);
        assert!(error_text(BH_NOT_ATTACHED).contains("bh_attach"));
    }

    #[test]
    fn other_major_and_later_minor_versions_are_refused() {
        assert_eq!(bh_version(), BH_VERSION);
        for version in [0, BH_VERSION + 1, BH_VERSION + 0x1_0000, BH_VERSION - 0x1_0000] {
            assert_eq!(bh_attach(version), BH_WRONG_VERSION, "{version:x}");
        }
        assert_eq!(bh_attach(BH_VERSION), BH_CANNOT_ATTACH, "no launcher has started the tests");
        let why = error_text(BH_CANNOT_ATTACH);
        assert!(why.starts_with("BULKHEAD_RUN is not set") && why.contains("--strategy exec:"), "{why}");
    }

    /// Panics in whatever is called first.
    struct Defective;

    impl AttachedSession for Defective {
        fn poll(
            &mut self,
            _: usize,
            _: u64,
        ) -> Result<&[protocol::wire::Report], crate::session::SessionOver> {
            panic!("a defect on purpose")
        }
        fn send(
            &mut self,
            _: strategy::OrderRequest,
            due_ns: Option<u64>,
        ) -> Result<protocol::wire::OrderId, strategy::Refused> {
            Err(if due_ns.is_some() { strategy::Refused::Busy } else { strategy::Refused::Spent })
        }
        fn next_tick(&mut self) -> Option<protocol::market::MarketTick> {
            None
        }
        fn has_market_data(&self) -> bool {
            false
        }
        fn since_start(&self, _: Option<u64>) -> u64 {
            7
        }
        fn heartbeat(&self) {}
        fn run_info(&self) -> &crate::session::RunInfo {
            panic!("nobody asks")
        }
        fn finish(self: Box<Self>) {}
        fn fail(&self, why: &str) {
            assert!(why.contains("defect"), "{why}");
        }
    }

    #[test]
    fn panic_stays_in_library_and_ends_strategy() {
        calls::attach_to(Box::new(Defective));
        assert_eq!(bh_attach(BH_VERSION), BH_ATTACHED);
        let mut ns = 0;
        // SAFETY: each points to what it should, or to nothing.
        unsafe {
            assert_eq!((bh_now(&raw mut ns), ns), (BH_OK, 7));
            assert_eq!((bh_now(null_mut()), bh_send(null(), null_mut())), (BH_NULL, BH_NULL));
            assert_eq!(bh_poll(null_mut(), 1, 0), BH_NULL);
            assert_eq!(bh_board_read(&mut Tick::default()), BH_NO_MARKET_DATA);
            let order = Order { side: 9, ..Order::default() };
            assert_eq!(bh_send(&raw const order, null_mut()), BH_BAD_ORDER);
            assert!(error_text(BH_BAD_ORDER).starts_with("side: "), "{}", error_text(BH_BAD_ORDER));
            assert_eq!(bh_send(&Order::default(), null_mut()), BH_SPENT);
            assert_eq!(bh_send_due(&Order::default(), 1, null_mut()), BH_BUSY);
            assert_eq!(bh_poll(null_mut(), 0, 0), BH_DEFECT);
            assert_eq!(bh_poll(null_mut(), 0, 0), BH_NOT_ATTACHED);
        }
    }
}
