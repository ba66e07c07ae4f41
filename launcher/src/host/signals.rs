//! Ctrl-C and its relatives, as something to poll.

use super::raw_mode;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[expect(clippy::disallowed_types, reason = "signal-hook's flags are of this type; loom has no signals")]
type SignalFlag = std::sync::atomic::AtomicUsize;

/// How often [`end_anyway`] looks.
const LOOK: Duration = Duration::from_millis(100);

/// Which signal asked last for an end; 0: none. Signals come to a process, so there is one.
static ASKED: LazyLock<Arc<SignalFlag>> = LazyLock::new(Arc::default);

/// The exit code of what was interrupted, as shells have it: 128 and the signal, of Ctrl-C where
/// nobody knows.
pub fn exit_code() -> ExitCode {
    // Relaxed: the byte in the stream, which says that one came, is the kernel's to order.
    let signal = match ASKED.load(Ordering::Relaxed) {
        0 => SIGINT as usize,
        signal => signal,
    };
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// The exit code of what only reads and goes on until it is ended: Ctrl-C is how a user ends it,
/// and no failure.
pub fn exit_code_of_reader() -> ExitCode {
    // Relaxed: as in `exit_code`.
    match ASKED.load(Ordering::Relaxed) {
        0 => ExitCode::SUCCESS,
        signal if signal == SIGINT as usize => ExitCode::SUCCESS,
        _ => exit_code(),
    }
}

/// Ends the process so long after a signal has asked it to end, whatever it does then: it may be
/// blocked in a write to a terminal or a pipe that nobody reads. For processes that hold nothing
/// that must be given back.
pub fn end_anyway(after: Duration) {
    std::thread::spawn(move || {
        while !asked() {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(after);
        // Where the terminal was in raw mode, it is given back as it was.
        raw_mode::leave();
        // Relaxed: as in `exit_code`.
        let signal = ASKED.load(Ordering::Relaxed);
        std::process::exit(if signal == SIGINT as usize {
            0
        } else {
            128 + i32::try_from(signal).unwrap_or(0)
        });
    });
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
    /// From now on SIGINT, SIGTERM and SIGHUP no longer kill this process but can be asked for
    /// here. A SIGHUP that was ignored before stays so: that is how `nohup` asks for a run that
    /// outlives its terminal.
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

/// From now on a write beyond the limit of a file's size (`ulimit -f`) is an error and does not end
/// this process.
///
/// # Errors
/// If the system refuses a handler.
pub fn survive_file_limit() -> io::Result<()> {
    signal_hook::flag::register_usize(SIGXFSZ, Arc::default(), 1).map(drop)
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
