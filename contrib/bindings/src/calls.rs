//! The calls of the interface in safe Rust, for the C functions and for language modules in Rust. A
//! strategy belongs to the thread that attached it: a call from another one returns
//! [`BH_NOT_ATTACHED`]. Failures are codes ([`crate::codes`]); a panic becomes [`BH_DEFECT`].

use crate::attach;
use crate::codes::{
    self, BH_ATTACHED, BH_BAD_ORDER, BH_CANNOT_ATTACH, BH_DEFECT, BH_NO_MARKET_DATA, BH_NOT_ATTACHED,
    BH_OVER, BH_VERSION, BH_WRONG_VERSION,
};
use crate::layout::{Context, Order, Report, Tick};
use crate::session::AttachedSession;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use strategy::InheritedPosition;
use system::fork;

thread_local! {
    static SESSION: RefCell<Option<Box<dyn AttachedSession>>> = const { RefCell::new(None) };
    static ATTACH_ERROR: RefCell<CString> = RefCell::new(codes::text(BH_CANNOT_ATTACH).to_owned());
    static ORDER_ERROR: Cell<&'static CStr> = const { Cell::new(codes::text(BH_BAD_ORDER)) };
}

static GUARDED_FORKS: Once = Once::new();

/// Detaches the child of a fork: the orders of its parent's session are not its own. What the
/// session owns is not dropped, since that would write to memory that the parent uses.
extern "C" fn detach_child() {
    let detach = |session: &RefCell<Option<_>>| session.try_borrow_mut().ok().and_then(|mut own| own.take());
    std::mem::forget(SESSION.try_with(detach));
}

/// Runs `call` on this thread's strategy. A panic ends the strategy, because its state is unknown.
#[inline]
fn guarded<T>(call: impl FnOnce(&mut Option<Box<dyn AttachedSession>>) -> Result<T, i32>) -> Result<T, i32> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let within = |session: &RefCell<Option<Box<dyn AttachedSession>>>| match session.try_borrow_mut() {
            Ok(mut session) => call(&mut session),
            Err(_) => Err(BH_NOT_ATTACHED),
        };
        SESSION.try_with(within).unwrap_or(Err(BH_NOT_ATTACHED))
    }));
    result.unwrap_or_else(|_| Err(defect()))
}

#[cold]
fn defect() -> i32 {
    let notified = catch_unwind(|| {
        if let Some(session) = SESSION.try_with(RefCell::take).ok().flatten() {
            session.fail("a defect of bulkhead's library: see what the process printed");
        }
    });
    // Ignores a second panic.
    drop(notified);
    BH_DEFECT
}

/// Runs `call` like [`guarded`], if a strategy is attached.
#[inline]
fn attached<T>(call: impl FnOnce(&mut dyn AttachedSession) -> Result<T, i32>) -> Result<T, i32> {
    guarded(|session| match session {
        Some(session) => call(&mut **session),
        None => Err(BH_NOT_ATTACHED),
    })
}

/// Attaches the calling thread as a strategy to its run, and waits until the run begins: see
/// [`bh_attach`](crate::abi::bh_attach).
pub fn attach(version: u32) -> Result<(), i32> {
    if version >> 16 != BH_VERSION >> 16 || version > BH_VERSION {
        return Err(BH_WRONG_VERSION);
    }
    guarded(|session| {
        if session.is_some() {
            return Err(BH_ATTACHED);
        }
        match attach::attach() {
            Ok(Some(found)) => {
                *session = Some(found);
                // Without memory for it a forked child is as before: it must make no call.
                GUARDED_FORKS.call_once(|| drop(fork::run_in_children(detach_child)));
                Ok(())
            }
            Ok(None) => Err(BH_OVER),
            Err(error) => {
                let text: Vec<u8> = error.to_string().bytes().filter(|byte| *byte != 0).collect();
                ATTACH_ERROR.with(|why| why.replace(CString::new(text).unwrap_or_default()));
                Err(BH_CANNOT_ATTACH)
            }
        }
    })
}

/// Returns the identity and the limits of the calling thread's strategy, and facts about its run.
#[inline]
pub fn context() -> Result<Context, i32> {
    attached(|session| Ok(Context::from_run_info(session.run_info(), session.has_market_data())))
}

/// Returns the position that the strategy inherits in an instrument; zeros if it inherits none.
pub fn position(instrument: u16) -> Result<InheritedPosition, i32> {
    attached(|session| Ok(session.run_info().context.position(instrument)))
}

/// Runs a duty cycle of the strategy: passes up to `max` reports to `take`, with their indices, and
/// returns their number. Without reports it idles, for at most `wait_ns`. `BH_OVER`: no more
/// reports will come.
#[inline]
pub fn poll(max: usize, wait_ns: u64, mut take: impl FnMut(usize, &Report)) -> Result<usize, i32> {
    poll_wire(max, wait_ns, |index, report| take(index, &Report::from(report)))
}

/// Runs a duty cycle of the strategy as [`poll`] does, with reports in wire format, for programs in
/// Rust.
#[inline]
pub fn poll_wire(
    max: usize,
    wait_ns: u64,
    mut take: impl FnMut(usize, &protocol::wire::Report),
) -> Result<usize, i32> {
    attached(|session| {
        let Ok(taken) = session.poll(max, wait_ns) else { return Err(BH_OVER) };
        taken.iter().enumerate().for_each(|(index, report)| take(index, report));
        Ok(taken.len())
    })
}

/// Sends the strategy's order and returns its sequence number; `due_ns`: its intended send time in
/// nanoseconds since the start of the run. An error means that nothing was sent.
#[inline]
pub fn send(order: &Order, due_ns: Option<u64>) -> Result<u64, i32> {
    attached(|session| {
        let order = order.parse().map_err(|wrong| {
            ORDER_ERROR.set(wrong);
            BH_BAD_ORDER
        })?;
        session.send(order, due_ns).map(|id| id.sequence()).map_err(codes::from_refused)
    })
}

/// Sends an order of a program in Rust, as [`send`] does, without the checks that return
/// `BH_BAD_ORDER`.
#[inline]
pub fn send_new(order: strategy::OrderRequest, due_ns: Option<u64>) -> Result<u64, i32> {
    attached(|session| session.send(order, due_ns).map(|id| id.sequence()).map_err(codes::from_refused))
}

/// Returns the next top of book (best prices) that the strategy has not read yet.
#[inline]
pub fn board_read() -> Result<Option<Tick>, i32> {
    attached(|session| {
        if !session.has_market_data() {
            return Err(BH_NO_MARKET_DATA);
        }
        let Some(tick) = session.next_tick() else { return Ok(None) };
        let written_ns = session.since_start(Some(tick.written));
        Ok(Some(Tick::from_tick(&tick, written_ns)))
    })
}

/// Returns the nanoseconds since the start of the run, by the run's clock.
#[inline]
pub fn now() -> Result<u64, i32> {
    attached(|session| Ok(session.since_start(None)))
}

/// Publishes a heartbeat of the strategy, so that it does not count as hung.
#[inline]
pub fn heartbeat() -> Result<(), i32> {
    attached(|session| {
        session.heartbeat();
        Ok(())
    })
}

/// Finishes the strategy: sends no more, waits for its open orders and detaches the thread.
pub fn finish() -> Result<(), i32> {
    guarded(|session| match session.take() {
        Some(session) => {
            session.finish();
            Ok(())
        }
        None => Err(BH_NOT_ATTACHED),
    })
}

/// Returns the text of the interface's return code as a C string. For `BH_CANNOT_ATTACH` and
/// `BH_BAD_ORDER` it is that of this thread's last such call. Valid until the thread's next
/// [`attach`].
pub fn text_pointer(code: i32) -> *const c_char {
    let text = catch_unwind(|| match code {
        BH_CANNOT_ATTACH => {
            ATTACH_ERROR.try_with(|why| why.try_borrow().ok().map(|why| why.as_ptr())).ok().flatten()
        }
        BH_BAD_ORDER => ORDER_ERROR.try_with(|wrong| wrong.get().as_ptr()).ok(),
        _ => None,
    });
    text.ok().flatten().unwrap_or_else(|| codes::text(code).as_ptr())
}

/// Returns the text of the interface's return code as a string.
pub fn text(code: i32) -> String {
    let own = match code {
        BH_CANNOT_ATTACH => ATTACH_ERROR.with(|why| why.borrow().to_string_lossy().into_owned()),
        BH_BAD_ORDER => ORDER_ERROR.get().to_string_lossy().into_owned(),
        _ => String::new(),
    };
    if own.is_empty() { codes::text(code).to_string_lossy().into_owned() } else { own }
}

/// Attaches the calling thread to the session of a test.
#[cfg(test)]
pub(crate) fn attach_to(session: Box<dyn AttachedSession>) {
    SESSION.with(|own| *own.borrow_mut() = Some(session));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detached_calls_fail_and_both_texts_agree() {
        assert_eq!(now(), Err(BH_NOT_ATTACHED));
        assert_eq!(poll(0, 0, |_, _| ()), Err(BH_NOT_ATTACHED));
        assert_eq!(attach(BH_VERSION), Err(BH_CANNOT_ATTACH), "no launcher has started the tests");
        assert!(text(BH_CANNOT_ATTACH).starts_with("BULKHEAD_RUN is not set"));
        assert_eq!(text(BH_OVER), codes::text(BH_OVER).to_string_lossy());
    }
}
