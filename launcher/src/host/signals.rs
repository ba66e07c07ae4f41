//! Ctrl-C and its relatives, as something to poll.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

#[expect(clippy::disallowed_types, reason = "signal-hook's flags are of this type; loom has no signals")]
type SignalFlag = std::sync::atomic::AtomicUsize;

/// Which signal asked last for an end; 0: none. Signals come to a process, so there is one.
static ASKED: LazyLock<Arc<SignalFlag>> = LazyLock::new(Arc::default);

/// The exit code of what was interrupted, as shells have it: 128 and the signal, of Ctrl-C where nobody knows.
pub fn exit_code() -> ExitCode {
    // Relaxed: the byte in the stream, which says that one came, is the kernel's to order.
    let signal = match ASKED.load(Ordering::Relaxed) {
        0 => SIGINT as usize,
        signal => signal,
    };
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// Whether one came since [`Signals::catch`]: for what waits for input.
pub fn asked() -> bool {
    // Relaxed: only itself is read.
    ASKED.load(Ordering::Relaxed) != 0
}

/// Counts requests to end: the first one ends the run in order, the second one at once.
pub struct Signals {
    stream: UnixStream,
}

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP no longer kill this process but can be asked for here. A SIGHUP that was ignored
    /// before stays so: that is how `nohup` asks for a run that outlives its terminal.
    ///
    /// # Errors
    /// If the system refuses a pipe or a handler.
    pub fn catch() -> io::Result<Self> {
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            signal_hook::flag::register_usize(signal, Arc::clone(&ASKED), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { stream })
    }

    /// How many came since the last call.
    pub fn take(&self) -> usize {
        let mut bytes = [0; 16];
        (&self.stream).read(&mut bytes).unwrap_or(0)
    }
}

/// Whether this process ignores a signal, which it has then from whoever started it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
