//! The handler of the signals that a thread with a protection key raises by a mistake of its own.
//!
//! The kernel resets the register of rights when it delivers a signal: key 0 is accessible, and no
//! other. So the handler runs on a stack of key 0, and opens all rights before it touches anything
//! of its thread. When it returns, the kernel restores the register from the signal's frame.

use super::owners::{STATIC, owner_of};
use super::register::Rights;
use super::state::{self, ThreadState};
use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::{mem, ptr};
use shm::sync::{AtomicU64, Ordering};
use std::io;
use std::sync::OnceLock;

/// The signals of a thread's own mistakes. Not SIGBUS, which tells of a segment that lost memory.
pub(super) const OWN: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGABRT, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// The code of a SIGSEGV whose access a protection key refused (`SEGV_PKUERR`).
const REFUSED_BY_KEY: c_int = 4;

/// The handlers that the program had before, in the order of [`OWN`].
static BEFORE: [OnceLock<libc::sigaction>; OWN.len()] = [const { OnceLock::new() }; OWN.len()];

// The address of the count that the standard library increases when a panic begins; 0: unknown.
static PANIC_COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns `true` once the beginning of a panic is recognized.
pub(super) fn knows_panics() -> bool {
    PANIC_COUNT.load(Ordering::Relaxed) != 0
}

/// Installs the handler for the whole process, in front of the program's own ones.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
    let mut is_installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if mem::replace(&mut *is_installed, true) {
        return Ok(());
    }
    super::owners::register_programs();
    for (signal, before) in OWN.iter().zip(&BEFORE) {
        // SAFETY: all zeros are a valid value of this plain structure of C.
        let (mut own, mut old): (libc::sigaction, libc::sigaction) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        own.sa_sigaction = enter as *const () as usize;
        own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both structures are live; the handler has the type that SA_SIGINFO asks for.
        if unsafe { libc::sigaction(*signal, ptr::null(), &raw mut old) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Before the handler may run.
        let _ = before.set(old);
        // SAFETY: as above.
        if unsafe { libc::sigaction(*signal, &raw const own, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The handler. It opens all rights first: the thread's own variables carry its key.
extern "C" fn enter(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    Rights::OPEN.apply();
    handle(signal, info, context);
}

/// Handles a signal with all rights. Never inlined: it finds the thread's variables through the
/// thread's memory.
#[inline(never)]
fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(state) = state::closed_state() else { return pass_on(signal, info, context) };
    // SAFETY: the kernel's structure, for the duration of the handler.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if signal == libc::SIGSEGV && code == REFUSED_BY_KEY {
        if state.learns_panics.take() {
            PANIC_COUNT.store(address as u64, Ordering::Relaxed);
        }
        // A panic writes for all threads, prints and unwinds: it has all rights.
        if address as u64 == PANIC_COUNT.load(Ordering::Relaxed) && open_interrupted(context) {
            return;
        }
    }
    (state.report)(describe(state, signal, code, address, info).as_str());
    end_thread()
}

/// A text of limited length, written without an allocation.
struct Text {
    bytes: [u8; 256],
    len: usize,
}

impl Text {
    fn as_str(&self) -> &str {
        let bytes = &self.bytes[..self.len];
        let valid = core::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        core::str::from_utf8(&bytes[..valid]).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let fits = text.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        Ok(())
    }
}

/// Returns what the thread did.
fn describe(
    state: &ThreadState,
    signal: c_int,
    code: c_int,
    address: usize,
    info: *const libc::siginfo_t,
) -> Text {
    let mut text = Text { bytes: [0; 256], len: 0 };
    let (name, owner) = (&state.name, owner_of(address));
    let written = match signal {
        libc::SIGSEGV if code == REFUSED_BY_KEY => {
            let advice =
                if owner.starts_with(STATIC) { "; keep it in the strategy or a thread-local" } else { "" };
            write!(text, "protection key: {name} wrote to {address:#x}, {owner}{advice}")
        }
        libc::SIGSEGV if code > 0 && address != 0 => {
            write!(text, "SIGSEGV: {name} accessed {address:#x}, {owner}")
        }
        libc::SIGSEGV => write!(text, "SIGSEGV of {name}"),
        libc::SIGABRT => write!(text, "SIGABRT: {name} aborted"),
        libc::SIGSYS => {
            /// Offset of the system call's number (`si_syscall`), in bytes.
            const NUMBER: usize = 24;
            // SAFETY: within the kernel's structure, which has this field for SIGSYS.
            let number = unsafe { info.cast::<u8>().add(NUMBER).cast::<c_int>().read() };
            write!(text, "SIGSYS: {name} made system call {number}, which would end the process")
        }
        other => write!(text, "signal {other} of {name}"),
    };
    // The text takes everything, up to its length.
    let _ = written;
    text
}

/// Ends the calling thread, and nothing else: nothing is dropped.
fn end_thread() -> ! {
    loop {
        // SAFETY: ends this thread. The kernel clears the word that tells of its end, in memory to
        // which this thread has all rights now.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Calls the handler that the program had before.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = OWN.iter().position(|own| *own == signal).and_then(|index| BEFORE[index].get());
    match before.map_or(libc::SIG_DFL, |before| before.sa_sigaction) {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // SAFETY: all zeros are a valid value, and that of the default action. An instruction
            // that is repeated raises the signal again.
            unsafe {
                let default: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
                if matches!(signal, libc::SIGABRT | libc::SIGSYS) {
                    libc::raise(signal);
                }
            }
        }
        handler => {
            // SAFETY: what the program installed, with the arguments of the kernel. A handler
            // without SA_SIGINFO ignores two of them.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { mem::transmute(ptr::with_exposed_provenance::<()>(handler)) };
            handler(signal, info, context);
        }
    }
}

/// Gives the interrupted code all rights when the handler returns. Returns `false` if the register
/// is not in the signal's frame.
fn open_interrupted(context: *mut c_void) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        /// "FPXS": the frame has more than the oldest registers.
        const MAGIC: u32 = 0x4650_5853;
        /// Offset of what the kernel says of the frame, in bytes.
        const SOFTWARE: usize = 464;
        /// The register's number among the parts of the frame.
        const COMPONENT: u32 = 9;
        // SAFETY: the structure that the kernel gave the handler, and the frame of registers to
        // which it points, which is as long as the kernel says there.
        unsafe {
            let frame = (*context.cast::<libc::ucontext_t>()).uc_mcontext.fpregs.cast::<u8>();
            let offset = core::arch::x86_64::__cpuid_count(0xd, COMPONENT).ebx as usize;
            let (magic, length) = (frame.add(SOFTWARE).cast::<u32>(), frame.add(SOFTWARE + 16).cast::<u32>());
            if magic.read_unaligned() != MAGIC || offset == 0 || offset + 4 > length.read_unaligned() as usize
            {
                return false;
            }
            frame.add(offset).cast::<u32>().write_unaligned(Rights::OPEN.bits());
        }
        true
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = context;
        false
    }
}
