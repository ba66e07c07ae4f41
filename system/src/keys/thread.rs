//! A thread whose rights to write are closed: its own stack, heap and segments, and nothing else.

use super::arena::{self, Arena};
use super::register::{Key, Rights};
use super::rseq::UnregisteredArea;
use super::state::{self, ThreadState};
use super::{calls, owners, signals};
use core::cell::Cell;
use core::{mem, ptr};
use std::io;

/// The size of the stack on which a thread's signals are handled, in bytes.
const SIGNAL_STACK_BYTES: usize = 64 << 10;

/// The size of the pages below a stack that catch its overflow, in bytes, at least.
const GUARD_BYTES: usize = 4096;

/// The memory that a thread may write, as protection keys and a heap, and the thread's name in
/// messages.
#[derive(Clone, Debug)]
pub struct WriteRights {
    /// The protection key of the thread's stack, its heap and its own segments.
    pub own: Key,
    /// The protection key of segments that several such threads write, if there are any.
    pub shared: Option<Key>,
    /// The heap of the thread.
    pub heap: Arena,
    /// The name of the thread in messages, such as `strategy-1`.
    pub name: String,
}

/// A thread prepared to give up write access to other threads' memory: its stack carries its
/// protection key. Its signals have a separate stack.
pub struct PreparedThread {
    state: Box<ThreadState>,
    rights: Rights,
    /// First address and length in bytes of its stack, with its thread-local variables.
    stack: (usize, usize),
    signal_stack: *mut libc::c_void,
    stack_before: libc::stack_t,
    /// What the kernel would write with the thread's rights.
    rseq: Option<UnregisteredArea>,
}

impl PreparedThread {
    /// Prepares the calling thread for protection keys, and gives it a heap of its own.
    /// [`PreparedThread::close`] then refuses its writes to all but what `may_write` names.
    /// `report` publishes why it ends, if it makes a mistake that would end a process: it runs in a
    /// signal handler, so it neither allocates nor waits. The thread then ends at once, and what it
    /// had is not dropped.
    ///
    /// # Errors
    /// The system refuses memory, a key or a handler.
    pub fn new(may_write: WriteRights, report: impl Fn(&str) + 'static) -> io::Result<Self> {
        let WriteRights { own, shared, heap, name } = may_write;
        signals::install()?;
        let rseq = UnregisteredArea::new()?;
        let stack = own_stack()?;
        own.protect_range(stack.0, stack.1)?;
        let guard = (stack.0.saturating_sub(GUARD_BYTES), GUARD_BYTES);
        owners::register(guard.0, guard.1, format!("the guard of {name}'s stack, which overflowed"));
        owners::register(stack.0, stack.1, format!("{name}'s stack"));
        owners::register(heap.range().0, heap.range().1, format!("{name}'s heap"));
        let (signal_stack, stack_before) = use_signal_stack()?;
        let state = Box::new(ThreadState {
            name,
            report: Box::new(report),
            learns_panics: Cell::new(false),
            is_closed: Cell::new(false),
        });
        calls::restrict(stack.0).map_err(io::Error::other)?;
        state::set(&raw const *state);
        heap.enter();
        let rights = Rights::writing([own].into_iter().chain(shared));
        Ok(Self { state, rights, stack, signal_stack, stack_before, rseq })
    }

    /// Restricts the calling thread's writes to the memory that its [`WriteRights`] allow, until
    /// the returned guard is dropped.
    pub fn close(&self) -> ClosedRights<'_> {
        let before = block_signals();
        self.state.is_closed.set(true);
        self.rights.apply();
        ClosedRights { thread: self, before }
    }
}

impl Drop for PreparedThread {
    fn drop(&mut self) {
        state::set(ptr::null());
        arena::leave();
        // The C library gives the stack to a later thread. Without this it would keep the key.
        let _ = Key::DEFAULT.protect_range(self.stack.0, self.stack.1);
        // SAFETY: the signal stack was made by this thread and is not in use, as this is no
        // handler; the one before is that of the thread's runtime.
        unsafe {
            libc::sigaltstack(&raw const self.stack_before, ptr::null_mut());
            libc::munmap(self.signal_stack, SIGNAL_STACK_BYTES);
        }
        self.rseq.iter().for_each(UnregisteredArea::register);
    }
}

/// A guard: until it is dropped, its thread may write only the memory that its [`WriteRights`]
/// allow.
pub struct ClosedRights<'a> {
    thread: &'a PreparedThread,
    /// The signals that were blocked before.
    before: libc::sigset_t,
}

impl Drop for ClosedRights<'_> {
    fn drop(&mut self) {
        Rights::OPEN.apply();
        self.thread.state.is_closed.set(false);
        // SAFETY: a live set that `block_signals` filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}

/// Blocks all signals of the calling thread but those of its own mistakes: another handler would
/// run on this thread's stack, without the rights to it. Returns those that were blocked before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are live, and filled before they are read.
    unsafe {
        let (mut blocked, mut before): (libc::sigset_t, libc::sigset_t) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut blocked);
        for signal in signals::OWN.into_iter().chain([libc::SIGBUS]) {
            libc::sigdelset(&raw mut blocked, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, &raw mut before);
        before
    }
}

/// Returns the first address and the length of the calling thread's stack. With the C library's
/// threads that includes the thread-local variables and the thread's control block, which the
/// kernel writes with the thread's rights: rseq, the robust list, the word that tells of its end.
fn own_stack() -> io::Result<(usize, usize)> {
    // SAFETY: the attributes are filled by the first call if it succeeds, read by the second and
    // released by the third; the other two are live locals.
    unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        let error = libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let (mut start, mut bytes) = (ptr::null_mut(), 0);
        let error = libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        match error {
            0 => Ok((start.addr(), bytes)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Makes a stack for the calling thread's signals. Returns it, and the one before.
fn use_signal_stack() -> io::Result<(*mut libc::c_void, libc::stack_t)> {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new private mapping at an address that the kernel chooses; both structures are
    // live.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), SIGNAL_STACK_BYTES, rights, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let own = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: SIGNAL_STACK_BYTES };
        let mut before: libc::stack_t = mem::zeroed();
        match libc::sigaltstack(&raw const own, &raw mut before) {
            0 => Ok((memory, before)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Finds the standard library's variable that a panic writes first, so that a thread with
/// restricted write access can still panic. Starts a thread that panics.
///
/// # Errors
/// A thread cannot be started or prepared.
pub fn detect_panic_start(key: Key, heap: Arena) -> io::Result<()> {
    if signals::knows_panics() {
        return Ok(());
    }
    let attempt = move || {
        let name = "the trial of a panic".to_owned();
        let prepared = PreparedThread::new(WriteRights { own: key, shared: None, heap, name }, |_| {})?;
        prepared.state.learns_panics.set(true);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _closed = prepared.close();
            std::panic::resume_unwind(Box::new(()));
        }));
        drop(ended);
        Ok(())
    };
    std::thread::Builder::new()
        .spawn(attempt)?
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the trial failed")))
}
