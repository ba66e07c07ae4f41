//! The functions. Each is one call into safe code; what stands here are the pointers of a caller that no compiler has checked.
//!
//! This and `shm` are the only places with `unsafe`: a C interface is a promise of somebody else's about pointers, which nothing here can
//! check but that they are not null. No panic leaves a function: it becomes [`BH_DEFECT`].
//!
//! A strategy belongs to the thread that attached it, so there is no handle to keep, to hand to the wrong thread or to use when it
//! is gone: another thread's call is [`BH_NOT_ATTACHED`].
#![allow(unsafe_code)]

use crate::attach;
use crate::codes::{
    self, BH_ATTACHED, BH_BAD_ORDER, BH_CANNOT_ATTACH, BH_DEFECT, BH_NO_MARKET_DATA, BH_NOT_ATTACHED,
    BH_NULL, BH_OK, BH_OVER, BH_WRONG_VERSION,
};
use crate::layout::{Context, Order, Report, Tick};
use crate::line::Line;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of this interface: the major one in the upper 16 bits, the minor one below. A library serves programs that were
/// made for its major version and no later minor one.
pub const BH_VERSION: u32 = 0x0001_0000;

thread_local! {
    /// The strategy of this thread.
    static LINE: RefCell<Option<Box<dyn Line>>> = const { RefCell::new(None) };
    /// Why this thread could not be attached, the last time.
    static WHY: RefCell<CString> = RefCell::new(codes::text(BH_CANNOT_ATTACH).to_owned());
    /// What was wrong with the last order that was none.
    static WRONG: Cell<&'static CStr> = const { Cell::new(codes::text(BH_BAD_ORDER)) };
}

/// Runs `act` on this thread's strategy. A panic ends the strategy: nobody knows in what state it is.
fn guarded(act: impl FnOnce(&mut Option<Box<dyn Line>>) -> i32) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let within = |line: &RefCell<Option<Box<dyn Line>>>| match line.try_borrow_mut() {
            Ok(mut line) => act(&mut line),
            Err(_) => BH_NOT_ATTACHED,
        };
        LINE.try_with(within).unwrap_or(BH_NOT_ATTACHED)
    }));
    result.unwrap_or_else(|_| {
        let told = catch_unwind(|| {
            if let Some(line) = LINE.try_with(RefCell::take).ok().flatten() {
                line.fail("a defect of bulkhead's library: see what the process printed");
            }
        });
        // A second one while the first is dealt with: there is nothing left to do.
        drop(told);
        BH_DEFECT
    })
}

/// The same where there must be one.
#[inline]
fn attached(act: impl FnOnce(&mut dyn Line) -> i32) -> i32 {
    guarded(|line| match line {
        Some(line) => act(&mut **line),
        None => BH_NOT_ATTACHED,
    })
}

/// The version of the library, to be compared with BH_VERSION of the header.
#[unsafe(no_mangle)]
pub extern "C" fn bh_version() -> u32 {
    BH_VERSION
}

/// Attaches the calling thread to the run that the environment names, as the strategy that it names, and waits until the run begins.
/// `version` is BH_VERSION. Prepare everything before: from here on the thread is pinned, the process's memory is limited, and
/// the launcher expects a poll within `--liveness`.
///
/// BH_OK: go on. BH_OVER: the run was stopped before it began. Else BH_WRONG_VERSION, BH_ATTACHED or BH_CANNOT_ATTACH.
#[unsafe(no_mangle)]
pub extern "C" fn bh_attach(version: u32) -> i32 {
    if version >> 16 != BH_VERSION >> 16 || version > BH_VERSION {
        return BH_WRONG_VERSION;
    }
    guarded(|line| {
        if line.is_some() {
            return BH_ATTACHED;
        }
        match attach::attach() {
            Ok(Some(found)) => {
                *line = Some(found);
                BH_OK
            }
            Ok(None) => BH_OVER,
            Err(error) => {
                let text: Vec<u8> = error.to_string().bytes().filter(|byte| *byte != 0).collect();
                WHY.with(|why| why.replace(CString::new(text).unwrap_or_default()));
                BH_CANNOT_ATTACH
            }
        }
    })
}

/// Writes what the strategy knows of its run.
///
/// # Safety
/// `context` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_get_context(context: *mut Context) -> i32 {
    attached(|line| {
        if context.is_null() {
            return BH_NULL;
        }
        // SAFETY: not null, so by this function's contract it is valid for the write of one and aligned.
        unsafe { context.write(Context::of(line.facts(), line.hears())) };
        BH_OK
    })
}

/// One duty cycle: takes the next reports, at most `room`, in the order in which the engine returned them, and says that the strategy
/// lives. Without any it idles as the run's plan says, for at most `wait_ns` nanoseconds, often far less; 0: not at all.
///
/// How many reports were written; 0: none now. BH_OVER: none will come any more, call bh_finish.
///
/// # Safety
/// `reports` has room for `room` of them; with `room` 0 it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_poll(reports: *mut Report, room: u32, wait_ns: u64) -> i32 {
    attached(|line| {
        if reports.is_null() && room > 0 {
            return BH_NULL;
        }
        let Ok(taken) = line.poll(room as usize, wait_ns) else { return BH_OVER };
        for (place, report) in taken.iter().enumerate() {
            // SAFETY: `place` is below `room`, and not null then, so by this function's contract it is valid for the write and aligned.
            unsafe { reports.add(place).write(Report::from(report)) };
        }
        // At most what a duty cycle brings.
        taken.len() as i32
    })
}

/// Sends an order: numbers, stamps and pushes it. From then on its reports follow, exactly one of which is the last. Its sequence is
/// written to `sequence`, unless that is null: 0 for the first order of an incarnation, then one more each.
///
/// BH_OK, also where the ring was full: the order then waits, keeps its stamp, and nothing overtakes it. BH_BUSY, BH_TOO_MANY_OPEN,
/// BH_ENDING, BH_SPENT, BH_BAD_ORDER: nothing was sent and no sequence used.
///
/// # Safety
/// `order` is null or an order; `sequence` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_send(order: *const Order, sequence: *mut u64) -> i32 {
    attached(|line| {
        if order.is_null() {
            return BH_NULL;
        }
        // SAFETY: not null, so by this function's contract it is valid for the read of one and aligned. Every field is a number:
        // whatever stands there is one.
        let order = unsafe { order.read() };
        let order = match order.parse() {
            Ok(order) => order,
            Err(wrong) => {
                WRONG.set(wrong);
                return BH_BAD_ORDER;
            }
        };
        match line.send(order) {
            Ok(id) => {
                if !sequence.is_null() {
                    // SAFETY: not null, so by this function's contract it is valid for the write and aligned.
                    unsafe { sequence.write(id.sequence()) };
                }
                BH_OK
            }
            Err(refused) => codes::of_refusal(refused),
        }
    })
}

/// Writes the next touch that is newer than the last one that was read of its instrument. 1: there was one. 0: none now; after so
/// many in a row the rest comes behind the next call. BH_NO_MARKET_DATA.
///
/// # Safety
/// `tick` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_board_read(tick: *mut Tick) -> i32 {
    attached(|line| {
        if tick.is_null() {
            return BH_NULL;
        }
        if !line.hears() {
            return BH_NO_MARKET_DATA;
        }
        let Some(heard) = line.next_tick() else { return BH_OK };
        let written_ns = line.since_start(Some(heard.written));
        // SAFETY: not null, so by this function's contract it is valid for the write of one and aligned.
        unsafe { tick.write(Tick::of(&heard, written_ns)) };
        1
    })
}

/// Writes the time since the start of the run, in nanoseconds, by the run's clock.
///
/// # Safety
/// `ns` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_now(ns: *mut u64) -> i32 {
    attached(|line| {
        if ns.is_null() {
            return BH_NULL;
        }
        // SAFETY: not null, so by this function's contract it is valid for the write and aligned.
        unsafe { ns.write(line.since_start(None)) };
        BH_OK
    })
}

/// Says that the strategy lives, for one that computes for longer than `--liveness` between two polls, each of which says so too.
#[unsafe(no_mangle)]
pub extern "C" fn bh_heartbeat() -> i32 {
    attached(|line| {
        line.beat();
        BH_OK
    })
}

/// Sends no more, waits until every open order is answered (what is answered now is not handed over any more) or the run is over,
/// writes the end of the strategy's log and says that it is done. Then the thread is not attached any more, and the process has some
/// seconds to end, with exit code 0.
#[unsafe(no_mangle)]
pub extern "C" fn bh_finish() -> i32 {
    guarded(|line| match line.take() {
        Some(line) => {
            line.finish();
            BH_OK
        }
        None => BH_NOT_ATTACHED,
    })
}

/// The text of a code, in English; of BH_CANNOT_ATTACH and BH_BAD_ORDER that of this thread's last such call. Never null; valid until
/// the thread's next bh_attach.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_text(code: i32) -> *const c_char {
    let text = catch_unwind(|| match code {
        BH_CANNOT_ATTACH => WHY.try_with(|why| why.try_borrow().ok().map(|why| why.as_ptr())).ok().flatten(),
        BH_BAD_ORDER => WRONG.try_with(|wrong| wrong.get().as_ptr()).ok(),
        _ => None,
    });
    text.ok().flatten().unwrap_or_else(|| codes::text(code).as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{null, null_mut};

    fn said(code: i32) -> String {
        // SAFETY: never null, and no attach in between.
        unsafe { CStr::from_ptr(bh_error_text(code)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn who_is_not_attached_is_told_by_every_function() {
        let (mut context, mut tick, mut ns) = (Context::default(), Tick::default(), 0);
        // SAFETY: each points to what it should.
        let codes = unsafe {
            [
                bh_get_context(&raw mut context),
                bh_poll(null_mut(), 0, 0),
                bh_send(&Order::default(), &raw mut ns),
                bh_send(null(), null_mut()),
                bh_board_read(&raw mut tick),
                bh_now(&raw mut ns),
                bh_heartbeat(),
                bh_finish(),
            ]
        };
        assert_eq!(codes, [BH_NOT_ATTACHED; 8]);
        assert!(said(BH_NOT_ATTACHED).contains("bh_attach"));
    }

    #[test]
    fn another_major_version_and_a_later_minor_one_are_refused() {
        assert_eq!(bh_version(), BH_VERSION);
        for version in [0, BH_VERSION + 1, BH_VERSION + 0x1_0000, BH_VERSION - 0x1_0000] {
            assert_eq!(bh_attach(version), BH_WRONG_VERSION, "{version:x}");
        }
        assert_eq!(bh_attach(BH_VERSION), BH_CANNOT_ATTACH, "no launcher has started the tests");
        assert!(said(BH_CANNOT_ATTACH).starts_with("BULKHEAD_RUN is not set"), "{}", said(BH_CANNOT_ATTACH));
    }

    /// Panics in whatever is called first.
    struct Defective;

    impl Line for Defective {
        fn poll(&mut self, _: usize, _: u64) -> Result<&[protocol::wire::Report], crate::line::Over> {
            panic!("a defect on purpose")
        }
        fn send(&mut self, _: strategy::NewOrder) -> Result<protocol::wire::OrderId, strategy::Refused> {
            Err(strategy::Refused::Spent)
        }
        fn next_tick(&mut self) -> Option<protocol::market::Tick> {
            None
        }
        fn hears(&self) -> bool {
            false
        }
        fn since_start(&self, _: Option<u64>) -> u64 {
            7
        }
        fn beat(&self) {}
        fn facts(&self) -> &crate::line::Facts {
            panic!("nobody asks")
        }
        fn finish(self: Box<Self>) {}
        fn fail(&self, why: &str) {
            assert!(why.contains("defect"), "{why}");
        }
    }

    #[test]
    fn a_panic_does_not_leave_the_library_and_ends_the_strategy() {
        LINE.with(|line| *line.borrow_mut() = Some(Box::new(Defective)));
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
            assert!(said(BH_BAD_ORDER).starts_with("side: "), "{}", said(BH_BAD_ORDER));
            assert_eq!(bh_send(&Order::default(), null_mut()), codes::BH_SPENT);
            assert_eq!(bh_poll(null_mut(), 0, 0), BH_DEFECT);
            assert_eq!(bh_poll(null_mut(), 0, 0), BH_NOT_ATTACHED);
        }
    }
}
