//! Wake-up of a queue's receiver: a flag in shared memory, and a FIFO that can be polled.
//!
//! Before it waits, the receiver arms its flag and checks its rings once more. A sender publishes
//! its message and then loads the flag; if it is armed, the sender writes a byte to the FIFO, once
//! for each wait. That no wake-up is lost is the doorbell's argument ([`bell`]). A sender that is
//! killed between its message and its byte leaves the message unannounced until the next push, so
//! waits are bounded: [`MAX_WAIT`].
//!
//! **A receiver that only polls costs its senders no fence.** The doorbell's argument needs a fence
//! between message and flag, which waits until the message has left the CPU's store buffer: half of
//! the time of a stream. A flag that was never armed is 0, and its senders leave the fence out. The
//! first receiver of a queue that arms it then waits for [`FIRST_ARM`] before it checks its rings,
//! in which the message of a sender that has not seen the flag becomes visible.

use crate::attached::Attached;
use crate::bell::{self, BELL, Listener};
use crate::memory::calls::{effective_user, wait_readable};
use crate::memory::{ReadOnlyWords, RegionError, SHM_DIR};
use crate::sync::{AtomicU64, Ordering, fence};
use core::time::Duration;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};

/// Name of the segment with the receiver's wait flag, within the queue.
pub(super) const FLAG: &str = "queue.wake";
/// Name of the FIFO that wakes the receiver, within the queue.
pub(super) const FIFO: &str = "queue.fifo";

/// Maximum time (100 ms) that a receiver sleeps although a killed sender left a message without
/// waking it.
pub const MAX_WAIT: Duration = Duration::from_millis(100);

/// Time from the first time that a queue's flag is armed until its rings are checked. A store
/// leaves a store buffer within microseconds, and at the latest when its thread is preempted.
const FIRST_ARM: Duration = Duration::from_micros(100);

/// Bytes read from the FIFO after a wait: senders write one each, a hostile one any number.
const MAX_DRAINED: usize = 4096;

/// Opens a FIFO for both directions: neither open nor write waits for the other end.
fn open_both_ways(path: &str, flags: i32) -> io::Result<File> {
    File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK | flags).open(path)
}

/// Opens the FIFO that wakes the receiver of a queue with a name.
pub(super) fn open_fifo(name: &str) -> Result<File, RegionError> {
    let open = || {
        let fifo = open_both_ways(&format!("{SHM_DIR}/{name}"), libc::O_NOFOLLOW)?;
        let facts = fifo.metadata()?;
        let is_ours = facts.file_type().is_fifo() && facts.uid() == effective_user();
        if is_ours { Ok(fifo) } else { Err(io::Error::other("not a FIFO of this user")) }
    };
    open().map_err(RegionError::os(name, "open it"))
}

/// Opens a pipe again, so that its flags are not shared with other processes.
pub(super) fn reopen_pipe(pipe: &File) -> io::Result<File> {
    if !pipe.metadata()?.file_type().is_fifo() {
        return Err(io::Error::other("it is not a pipe"));
    }
    open_both_ways(&format!("/proc/self/fd/{}", pipe.as_raw_fd()), 0)
}

pub(super) struct Waker {
    flag: ReadOnlyWords,
    fifo: File,
    /// Value of the flag for which a byte was written.
    announced: u64,
}

impl Waker {
    pub(super) fn attach(attached: &mut Attached<'_>, fifo: File) -> Result<Self, RegionError> {
        let flag = ReadOnlyWords::from(attached.region(FLAG, bell::KIND)?.words().slice(BELL, 1));
        Ok(Self { flag, fifo, announced: 0 })
    }

    /// Wakes the receiver if it waits or is about to. To be called after the message was published.
    #[inline]
    pub(super) fn wake(&mut self) {
        // Relaxed: may miss the first arming, see the module's documentation.
        if self.flag.load(0, Ordering::Relaxed) == bell::NEVER_ARMED {
            return;
        }
        // SeqCst: pairs with the fence in `Listener::arm`; orders the publishing store before this
        // load.
        fence(Ordering::SeqCst);
        let flag = self.flag.load(0, Ordering::Relaxed);
        if bell::is_armed(flag) && flag != self.announced {
            self.announce(flag);
        }
    }

    /// Returns the flag, which is 0 until a receiver of the queue has waited.
    pub(super) fn flag(&self) -> &AtomicU64 {
        self.flag.futex()
    }

    #[cold]
    fn announce(&mut self, flag: u64) {
        self.announced = flag;
        // A full FIFO is readable, which is all that the receiver needs.
        let _ = (&self.fifo).write(&[1]);
    }
}

pub(super) struct Waiter {
    listener: Listener,
    fifo: File,
    is_armed: bool,
    /// This receiver or a predecessor has armed the flag.
    was_armed: bool,
}

impl Waiter {
    pub(super) fn attach(attached: &mut Attached<'_>, fifo: File) -> Result<Self, RegionError> {
        let words = attached.region(FLAG, bell::KIND)?.words();
        // Relaxed: our own store, or that of a predecessor, which is gone.
        let was_armed = words[BELL].load(Ordering::Relaxed) != bell::NEVER_ARMED;
        Ok(Self { listener: Listener::new(&words), fifo, is_armed: false, was_armed })
    }

    /// Sets the flag that asks senders for a wake-up. The receiver must check its rings after this
    /// and before it waits.
    pub(super) fn arm(&mut self) {
        if !self.is_armed {
            self.listener.arm();
            self.is_armed = true;
            if !core::mem::replace(&mut self.was_armed, true) {
                std::thread::sleep(FIRST_ARM);
            }
        }
    }

    /// Returns `true` if the flag is armed.
    pub(super) const fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Clears the flag that asks senders for a wake-up, and empties the FIFO. Does nothing if the
    /// flag is not armed.
    #[inline]
    pub(super) fn disarm(&mut self) {
        if self.is_armed {
            self.clear();
        }
    }

    #[cold]
    fn clear(&mut self) {
        self.listener.disarm();
        self.is_armed = false;
        // What is left of more than that is a spurious wake-up.
        let _ = (&self.fifo).read(&mut [0; MAX_DRAINED]);
    }

    /// Waits for a sender's wake-up, at most for `timeout`. May return early.
    pub(super) fn wait(&self, timeout: Duration) {
        if wait_readable(self.fd(), timeout).is_err() {
            std::thread::sleep(timeout.min(Duration::from_millis(1)));
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}
