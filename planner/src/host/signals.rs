//! Catches the signals that end a command, and keeps the file-size limit from ending it.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGURG, SIGXFSZ};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

#[expect(clippy::disallowed_types, reason = "signal-hook's flags are of this type; loom has no signals")]
type SignalFlag = std::sync::atomic::AtomicUsize;

/// The last termination signal; 0 if none. Signals are per process, so there is one.
static REQUESTED: LazyLock<Arc<SignalFlag>> = LazyLock::new(Arc::default);

/// Returns the exit code of a command that a termination signal interrupted: 128 plus the signal,
/// SIGINT if unknown.
pub fn exit_code() -> ExitCode {
    // Relaxed: the byte in the stream, which announces it, is ordered by the kernel.
    let signal = match REQUESTED.load(Ordering::Relaxed) {
        0 => SIGINT as usize,
        signal => signal,
    };
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// Returns `true` if a termination signal has arrived since [`Signals::catch`].
pub fn is_end_requested() -> bool {
    // Relaxed: only itself is read.
    REQUESTED.load(Ordering::Relaxed) != 0
}

/// The error that a termination signal, such as Ctrl-C, ended a run before its first order, or
/// caused its results to be discarded.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted: nothing was measured")]
pub struct Interrupted;

impl Interrupted {
    /// Returns an [`Interrupted`] error if the process has received a termination signal, so that
    /// the caller begins no further work.
    pub fn check() -> Result<(), Self> {
        if is_end_requested() { Err(Self) } else { Ok(()) }
    }
}

/// The counter of termination signals: the first signal drains the run, the second one ends it
/// immediately.
pub struct Signals {
    stream: UnixStream,
}

impl Signals {
    /// Starts to catch SIGINT, SIGTERM and SIGHUP, and returns their counter. A SIGHUP that was
    /// ignored before stays ignored: that is how `nohup` keeps a run without its terminal.
    pub fn catch() -> io::Result<Self> {
        let (stream, write) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            signal_hook::flag::register_usize(signal, Arc::clone(&REQUESTED), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        // An operator's command interrupts a sleep: it does nothing else.
        signal_hook::flag::register_usize(SIGURG, Arc::default(), 1)?;
        Ok(Self { stream })
    }

    /// Returns the number of termination signals since the last call.
    pub fn take_requests(&self) -> usize {
        let mut bytes = [0; 16];
        (&self.stream).read(&mut bytes).unwrap_or(0)
    }
}

/// Makes a write beyond the file-size limit (`ulimit -f`) fail with an error instead of a fatal
/// signal.
pub fn survive_file_limit() -> io::Result<()> {
    signal_hook::flag::register_usize(SIGXFSZ, Arc::default(), 1).map(drop)
}

/// Returns `true` if this process ignores a signal, inherited from its parent.
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
