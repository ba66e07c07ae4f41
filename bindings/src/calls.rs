//! The calls in safe Rust: what the C functions are made of, and modules for other languages that
//! are written in Rust.
//!
//! A strategy belongs to the thread that attached it, so there is no handle to keep, to hand to the
//! wrong thread or to use when it is gone: another thread's call is [`BH_NOT_ATTACHED`]. What is no
//! success is a code ([`crate::codes`]). No panic leaves a call: it becomes [`BH_DEFECT`].

use crate::attach;
use crate::codes::{
    self, BH_ATTACHED, BH_BAD_ORDER, BH_CANNOT_ATTACH, BH_DEFECT, BH_NO_MARKET_DATA, BH_NOT_ATTACHED,
    BH_OVER, BH_VERSION, BH_WRONG_VERSION,
};
use crate::layout::{Context, Order, Report, Tick};
use crate::line::Line;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The strategy of this thread.
    static LINE: RefCell<Option<Box<dyn Line>>> = const { RefCell::new(None) };
    /// Why this thread could not be attached, the last time.
    static WHY: RefCell<CString> = RefCell::new(codes::text(BH_CANNOT_ATTACH).to_owned());
    /// What was wrong with the last order that was none.
    static WRONG: Cell<&'static CStr> = const { Cell::new(codes::text(BH_BAD_ORDER)) };
}

/// Runs `act` on this thread's strategy. A panic ends the strategy: nobody knows in what state it
/// is.
#[inline]
fn guarded<T>(act: impl FnOnce(&mut Option<Box<dyn Line>>) -> Result<T, i32>) -> Result<T, i32> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let within = |line: &RefCell<Option<Box<dyn Line>>>| match line.try_borrow_mut() {
            Ok(mut line) => act(&mut line),
            Err(_) => Err(BH_NOT_ATTACHED),
        };
        LINE.try_with(within).unwrap_or(Err(BH_NOT_ATTACHED))
    }));
    result.unwrap_or_else(|_| Err(defect()))
}

/// Ends this thread's strategy.
#[cold]
fn defect() -> i32 {
    let told = catch_unwind(|| {
        if let Some(line) = LINE.try_with(RefCell::take).ok().flatten() {
            line.fail("a defect of bulkhead's library: see what the process printed");
        }
    });
    // A second one while the first is dealt with: there is nothing left to do.
    drop(told);
    BH_DEFECT
}

/// As [`guarded`], where there must be a strategy.
#[inline]
fn attached<T>(act: impl FnOnce(&mut dyn Line) -> Result<T, i32>) -> Result<T, i32> {
    guarded(|line| match line {
        Some(line) => act(&mut **line),
        None => Err(BH_NOT_ATTACHED),
    })
}

/// Attaches the calling thread to the run that the environment names and waits until the run
/// begins: see [`bh_attach`](crate::abi::bh_attach).
///
/// # Errors
/// `BH_OVER`: the run was stopped before it began. `BH_WRONG_VERSION`, `BH_ATTACHED`,
/// `BH_CANNOT_ATTACH`.
pub fn attach(version: u32) -> Result<(), i32> {
    if version >> 16 != BH_VERSION >> 16 || version > BH_VERSION {
        return Err(BH_WRONG_VERSION);
    }
    guarded(|line| {
        if line.is_some() {
            return Err(BH_ATTACHED);
        }
        match attach::attach() {
            Ok(Some(found)) => {
                *line = Some(found);
                Ok(())
            }
            Ok(None) => Err(BH_OVER),
            Err(error) => {
                let text: Vec<u8> = error.to_string().bytes().filter(|byte| *byte != 0).collect();
                WHY.with(|why| why.replace(CString::new(text).unwrap_or_default()));
                Err(BH_CANNOT_ATTACH)
            }
        }
    })
}

/// What the strategy knows of its run.
///
/// # Errors
/// `BH_NOT_ATTACHED`.
#[inline]
pub fn context() -> Result<Context, i32> {
    attached(|line| Ok(Context::of(line.facts(), line.hears())))
}

/// One duty cycle: hands each of the next reports, at most `room`, to `take` with its place from 0,
/// and says how many. Without any it idles as the plan says, for at most `wait_ns` nanoseconds.
///
/// # Errors
/// `BH_OVER`: none will come any more. `BH_NOT_ATTACHED`.
#[inline]
pub fn poll(room: usize, wait_ns: u64, mut take: impl FnMut(usize, &Report)) -> Result<usize, i32> {
    poll_wire(room, wait_ns, |place, report| take(place, &Report::from(report)))
}

/// The same with reports as the wire has them, for programs in Rust.
///
/// # Errors
/// As [`poll`].
#[inline]
pub fn poll_wire(
    room: usize,
    wait_ns: u64,
    mut take: impl FnMut(usize, &protocol::wire::Report),
) -> Result<usize, i32> {
    attached(|line| {
        let Ok(taken) = line.poll(room, wait_ns) else { return Err(BH_OVER) };
        taken.iter().enumerate().for_each(|(place, report)| take(place, report));
        Ok(taken.len())
    })
}

/// Sends an order, which was due at that time, in nanoseconds since the start of the run, if it was
/// due at one: its sequence.
///
/// # Errors
/// Nothing was sent: `BH_BUSY`, `BH_TOO_MANY_OPEN`, `BH_ENDING`, `BH_SPENT`, `BH_BAD_ORDER`,
/// `BH_NOT_ATTACHED`.
#[inline]
pub fn send(order: &Order, due_ns: Option<u64>) -> Result<u64, i32> {
    attached(|line| {
        let order = order.parse().map_err(|wrong| {
            WRONG.set(wrong);
            BH_BAD_ORDER
        })?;
        line.send(order, due_ns).map(|id| id.sequence()).map_err(codes::of_refusal)
    })
}

/// The same of an order that a program in Rust has made: its sequence.
///
/// # Errors
/// As [`send`], but for `BH_BAD_ORDER`.
#[inline]
pub fn send_new(order: strategy::NewOrder, due_ns: Option<u64>) -> Result<u64, i32> {
    attached(|line| line.send(order, due_ns).map(|id| id.sequence()).map_err(codes::of_refusal))
}

/// The next touch that is newer than the last one that was read of its instrument.
///
/// # Errors
/// `BH_NO_MARKET_DATA`, `BH_NOT_ATTACHED`.
#[inline]
pub fn board_read() -> Result<Option<Tick>, i32> {
    attached(|line| {
        if !line.hears() {
            return Err(BH_NO_MARKET_DATA);
        }
        let Some(heard) = line.next_tick() else { return Ok(None) };
        let written_ns = line.since_start(Some(heard.written));
        Ok(Some(Tick::of(&heard, written_ns)))
    })
}

/// Nanoseconds since the start of the run, by the run's clock.
///
/// # Errors
/// `BH_NOT_ATTACHED`.
#[inline]
pub fn now() -> Result<u64, i32> {
    attached(|line| Ok(line.since_start(None)))
}

/// Says that the strategy lives.
///
/// # Errors
/// `BH_NOT_ATTACHED`.
#[inline]
pub fn heartbeat() -> Result<(), i32> {
    attached(|line| {
        line.beat();
        Ok(())
    })
}

/// Sends no more, waits for what is open and says that the strategy is done. Then the thread is not
/// attached any more.
///
/// # Errors
/// `BH_NOT_ATTACHED`.
pub fn finish() -> Result<(), i32> {
    guarded(|line| match line.take() {
        Some(line) => {
            line.finish();
            Ok(())
        }
        None => Err(BH_NOT_ATTACHED),
    })
}

/// The text of a code; of `BH_CANNOT_ATTACH` and `BH_BAD_ORDER` that of this thread's last such
/// call. Ends with a zero byte; valid until the thread's next [`attach`].
pub fn text_pointer(code: i32) -> *const c_char {
    let text = catch_unwind(|| match code {
        BH_CANNOT_ATTACH => WHY.try_with(|why| why.try_borrow().ok().map(|why| why.as_ptr())).ok().flatten(),
        BH_BAD_ORDER => WRONG.try_with(|wrong| wrong.get().as_ptr()).ok(),
        _ => None,
    });
    text.ok().flatten().unwrap_or_else(|| codes::text(code).as_ptr())
}

/// The same as a value.
pub fn text(code: i32) -> String {
    let own = match code {
        BH_CANNOT_ATTACH => WHY.with(|why| why.borrow().to_string_lossy().into_owned()),
        BH_BAD_ORDER => WRONG.get().to_string_lossy().into_owned(),
        _ => String::new(),
    };
    if own.is_empty() { codes::text(code).to_string_lossy().into_owned() } else { own }
}

/// Attaches the calling thread to a line that a test has made.
#[cfg(test)]
pub(crate) fn attach_to(line: Box<dyn Line>) {
    LINE.with(|own| *own.borrow_mut() = Some(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_attached_is_told_and_a_text_is_the_same_in_both_forms() {
        assert_eq!(now(), Err(BH_NOT_ATTACHED));
        assert_eq!(poll(0, 0, |_, _| ()), Err(BH_NOT_ATTACHED));
        assert_eq!(attach(BH_VERSION), Err(BH_CANNOT_ATTACH), "no launcher has started the tests");
        assert!(text(BH_CANNOT_ATTACH).starts_with("BULKHEAD_RUN is not set"));
        assert_eq!(text(BH_OVER), codes::text(BH_OVER).to_string_lossy());
    }
}
