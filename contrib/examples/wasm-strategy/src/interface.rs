//! The calls that a module imports from `bulkhead`: those of the C interface (`bulkhead.h`), with
//! its structures in the module's memory.
//!
//! No pointer of a module is trusted: bytes outside of its memory end the call with a trap that
//! names them. As in C a null pointer is address 0.

use bulkhead::codes::{BH_BAD_ORDER, BH_NULL, BH_OK, BH_VERSION, from_refused};
use bulkhead::layout::{Context, Order, Report, Tick};
use launcher::strategy::Orders;
use scoped_tls_hkt::scoped_thread_local;
use std::collections::VecDeque;
use wasmtime::{Caller, Error, Linker, Memory, Result, StoreLimits, format_err};
use zerocopy::{FromBytes, IntoBytes};

/// Maximum number of reports that a module may leave behind.
const MAX_REPORTS: usize = 1 << 16;

scoped_thread_local!(
    /// The operations of the duty cycle that has called the module on this thread.
    static mut ORDERS: for<'a> &'a mut (dyn Orders + 'a)
);

/// Runs `call` of a module, which sends its orders through `orders`.
#[inline]
pub(crate) fn with_orders<T>(orders: &mut impl Orders, call: impl FnOnce() -> T) -> T {
    ORDERS.set(orders, call)
}

/// The host's side of an instance of a module.
pub(crate) struct Host {
    /// Limits of its memory, tables and instances.
    pub limits: StoreLimits,
    /// The instance's memory; `None` while it is created.
    pub memory: Option<Memory>,
    context: Context,
    reports: VecDeque<Report>,
    /// Reports were lost because the module has not taken the earlier ones.
    has_overflowed: bool,
    /// Orders sent, and reports and market data taken, during this call.
    work: usize,
    /// The tick until which the module waits without a report; `u64::MAX`: for a report only.
    wake_at: u64,
    is_finished: bool,
}

impl Host {
    pub fn new(context: Context, limits: StoreLimits) -> Self {
        Self {
            limits,
            memory: None,
            context,
            reports: VecDeque::with_capacity(64),
            has_overflowed: false,
            work: 0,
            wake_at: 0,
            is_finished: false,
        }
    }

    /// Stores a report until the WebAssembly module polls; drops it if the module has finished or
    /// the buffer is full.
    #[inline]
    pub fn push_report(&mut self, report: Report) {
        if self.is_finished {
            return;
        }
        if self.reports.len() == MAX_REPORTS {
            self.has_overflowed = true;
            return;
        }
        self.reports.push_back(report);
    }

    /// Prepares the host for a call of the WebAssembly module; fails if reports for the module did
    /// not fit in the buffer.
    ///
    /// # Errors
    /// It has left too many reports behind.
    #[inline]
    pub fn begin_call(&mut self) -> Result<()> {
        if self.has_overflowed {
            return Err(format_err!("its last {MAX_REPORTS} reports were never polled"));
        }
        self.work = 0;
        self.wake_at = u64::MAX;
        Ok(())
    }

    /// Returns the number of orders sent and reports polled by the module since
    /// [`Host::begin_call`], plus one if reports wait; 0 lets the thread idle.
    #[inline]
    pub fn work(&self) -> usize {
        self.work + usize::from(!self.reports.is_empty())
    }

    #[inline]
    pub const fn wake_at(&self) -> u64 {
        self.wake_at
    }

    #[inline]
    pub const fn is_finished(&self) -> bool {
        self.is_finished
    }
}

/// Adds the calls to a linker.
pub(crate) fn add_to(linker: &mut Linker<Host>) -> Result<()> {
    const FROM: &str = "bulkhead";
    linker.func_wrap(FROM, "bh_version", || BH_VERSION)?;
    linker.func_wrap(FROM, "bh_get_context", get_context)?;
    linker.func_wrap(FROM, "bh_poll", poll)?;
    linker.func_wrap(FROM, "bh_send", |caller: Caller<'_, Host>, order: u32, sequence: u32| {
        send("bh_send", caller, order, None, sequence)
    })?;
    linker.func_wrap(
        FROM,
        "bh_send_due",
        |caller: Caller<'_, Host>, order: u32, due_ns: u64, sequence: u32| {
            send("bh_send_due", caller, order, Some(due_ns), sequence)
        },
    )?;
    linker.func_wrap(FROM, "bh_board_read", read_board)?;
    linker.func_wrap(FROM, "bh_now", now)?;
    linker.func_wrap(FROM, "bh_finish", |mut caller: Caller<'_, Host>| {
        caller.data_mut().is_finished = true;
        BH_OK
    })?;
    Ok(())
}

/// Bytes of a module's memory that a call reads or writes.
#[derive(Clone, Copy)]
struct Span {
    call: &'static str,
    what: &'static str,
    address: u32,
    len: usize,
}

impl Span {
    fn of<T>(call: &'static str, what: &'static str, address: u32) -> Self {
        Self { call, what, address, len: size_of::<T>() }
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// One of them is outside of the memory.
    #[inline]
    fn within(self, memory: &mut [u8]) -> Result<&mut [u8]> {
        let Self { call, what, address, len } = self;
        let size = memory.len();
        let from = address as usize;
        from.checked_add(len).and_then(|to| memory.get_mut(from..to)).ok_or_else(|| {
            format_err!("{call}: {what} at {address:#x} with {len} bytes is outside of the memory of {size}")
        })
    }
}

/// Returns the module's memory and the host's side.
#[inline]
fn parts<'a>(call: &'static str, caller: &'a mut Caller<'_, Host>) -> Result<(&'a mut [u8], &'a mut Host)> {
    let memory = caller.data().memory.ok_or_else(|| outside(call))?;
    Ok(memory.data_and_store_mut(caller))
}

/// Calls `act` with the operations of the duty cycle that runs.
#[inline]
fn orders<T>(call: &'static str, act: impl FnOnce(&mut (dyn Orders + '_)) -> T) -> Result<T> {
    if ORDERS.is_set() { Ok(ORDERS.with(act)) } else { Err(outside(call)) }
}

#[cold]
fn outside(call: &'static str) -> Error {
    format_err!("{call}: only valid within bh_cycle")
}

fn get_context(mut caller: Caller<'_, Host>, context: u32) -> Result<i32> {
    const CALL: &str = "bh_get_context";
    if context == 0 {
        return Ok(BH_NULL);
    }
    let (memory, host) = parts(CALL, &mut caller)?;
    Span::of::<Context>(CALL, "context", context).within(memory)?.copy_from_slice(host.context.as_bytes());
    Ok(BH_OK)
}

fn poll(mut caller: Caller<'_, Host>, reports: u32, room: u32, wait_ns: u64) -> Result<i32> {
    const CALL: &str = "bh_poll";
    // At most as many as a negative number cannot be mistaken for.
    let room = room.min(i32::MAX as u32) as usize;
    if room > 0 && reports == 0 {
        return Ok(BH_NULL);
    }
    let (memory, host) = parts(CALL, &mut caller)?;
    // All of the room, also if there are fewer reports.
    let len = room.saturating_mul(size_of::<Report>());
    let bytes = Span { call: CALL, what: "reports", address: reports, len }.within(memory)?;
    let mut taken = 0;
    for slot in bytes.chunks_exact_mut(size_of::<Report>()) {
        let Some(report) = host.reports.pop_front() else { break };
        slot.copy_from_slice(report.as_bytes());
        taken += 1;
    }
    host.work += taken as usize;
    if taken == 0 {
        host.wake_at = orders(CALL, |orders| orders.now().saturating_add(orders.time().ticks(wait_ns)))?;
    }
    Ok(taken)
}

#[inline]
fn send(
    call: &'static str,
    mut caller: Caller<'_, Host>,
    order: u32,
    due_ns: Option<u64>,
    sequence: u32,
) -> Result<i32> {
    if order == 0 {
        return Ok(BH_NULL);
    }
    let (memory, host) = parts(call, &mut caller)?;
    let bytes = Span::of::<Order>(call, "order", order).within(memory)?;
    let order = Order::read_from_bytes(bytes).map_err(|_| outside(call))?;
    // Before the order is sent, so that one with a bad pointer is not.
    let sequence = (sequence != 0).then(|| Span::of::<u64>(call, "sequence", sequence).within(memory));
    let sequence = sequence.transpose()?;
    let Ok(request) = order.parse() else { return Ok(BH_BAD_ORDER) };
    let sent = orders(call, |orders| {
        // A time in the future counts as now: no order is sent before it is due.
        let due = due_ns.map(|ns| orders.time().at(ns).min(orders.now()));
        orders.send_due(request, due)
    })?;
    match sent {
        Ok(id) => {
            host.work += 1;
            if let Some(bytes) = sequence {
                bytes.copy_from_slice(&id.sequence().to_le_bytes());
            }
            Ok(BH_OK)
        }
        Err(refused) => Ok(from_refused(refused)),
    }
}

fn read_board(mut caller: Caller<'_, Host>, tick: u32) -> Result<i32> {
    const CALL: &str = "bh_board_read";
    if tick == 0 {
        return Ok(BH_NULL);
    }
    let (memory, host) = parts(CALL, &mut caller)?;
    let bytes = Span::of::<Tick>(CALL, "tick", tick).within(memory)?;
    let Some((tick, time)) = orders(CALL, |orders| orders.next_tick().map(|tick| (tick, orders.time())))?
    else {
        return Ok(0);
    };
    let written_ns = time.ns(tick.written.saturating_sub(time.start_ticks));
    bytes.copy_from_slice(Tick::from_tick(&tick, written_ns).as_bytes());
    host.work += 1;
    Ok(1)
}

fn now(mut caller: Caller<'_, Host>, ns: u32) -> Result<i32> {
    const CALL: &str = "bh_now";
    if ns == 0 {
        return Ok(BH_NULL);
    }
    let (memory, _) = parts(CALL, &mut caller)?;
    let bytes = Span::of::<u64>(CALL, "number", ns).within(memory)?;
    let now = orders(CALL, |orders| {
        let time = orders.time();
        time.ns(orders.now().saturating_sub(time.start_ticks))
    })?;
    bytes.copy_from_slice(&now.to_le_bytes());
    Ok(BH_OK)
}
