//! The gate of a program's start: system calls that it may make until somebody outside ends that, for good.
//!
//! A filter is for ever, and one that a program puts up itself is its own to leave out. So the filter is there before the program is, and
//! leaves what is listed alone; at every other call the thread waits for what is said outside (seccomp's user notification). While the gate
//! is open that is always "go on": what is asked for is not looked at, since a thread beside it could change that meanwhile, and what may not be at all is
//! refused by another filter. Once the gate is closed every such call fails with ENOSYS, and nothing opens it again.

use super::calls::{self, Call};
use crate::process;
use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use seccompiler::SeccompAction;
use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// To hand the gate to who is to watch it, which is done behind it.
pub(super) const HANDING: &[Call] =
    &[calls::call(libc::SYS_sendmsg, "the gate itself: refused by the filter that comes next")];

/// How long a call that is gone when it is to be answered is waited for to be followed by another, or by the end of the process.
const GONE: Duration = Duration::from_millis(1);

/// Puts the gate up for the calling thread, and what it starts: what it is watched by. `free`: the calls that do not wait.
pub(super) fn put_up<'a>(free: impl Iterator<Item = &'a Call>) -> io::Result<OwnedFd> {
    // The crate does not know the action. It stands in the place of one that it knows.
    let (known, meant) = (libc::SECCOMP_RET_TRACE, libc::SECCOMP_RET_USER_NOTIF);
    let program =
        calls::filter(free, SeccompAction::Allow, SeccompAction::Trace(0)).map_err(io::Error::other)?;
    let step = |step: seccompiler::sock_filter| {
        let is_it = u32::from(step.code) == libc::BPF_RET | libc::BPF_K && step.k == known;
        libc::sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: if is_it { meant } else { step.k } }
    };
    let mut program: Vec<libc::sock_filter> = program.into_iter().map(step).collect();
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: the kernel reads a program of the length that it is told, which lives until the call has returned, and writes nothing.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

/// Hands the gate to whoever has the other end of that socket.
pub(super) fn hand_over(gate: &OwnedFd, through: BorrowedFd<'_>) -> io::Result<()> {
    let byte = [0];
    let handed = [gate.as_raw_fd()];
    let message = [ControlMessage::ScmRights(&handed)];
    sendmsg::<()>(through.as_raw_fd(), &[IoSlice::new(&byte)], &message, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// What [`hand_over`] has sent; `None`: the other end is gone.
fn take(from: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let mut room = cmsg_space!([i32; 1]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(from.as_raw_fd(), &mut bytes, Some(room.as_mut_slice()), flags)?;
    let handed = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(handed) => handed.first().copied(),
        _ => None,
    });
    // SAFETY: the kernel has just given us this descriptor, room for no other one, and nobody else knows it.
    Ok(handed.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// The gate as it is watched: open until it is closed, until its time is over, or until this is dropped.
pub struct Gate {
    /// Dropping it ends the thread.
    open: Option<PipeWriter>,
    watcher: Option<JoinHandle<()>>,
}

impl Gate {
    /// Waits for a gate at this socket, in a thread of its own, and keeps it open for at most so long.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open(handed: UnixStream, at_most: Duration) -> io::Result<Self> {
        let (closed, open) = io::pipe()?;
        let until = Instant::now() + at_most;
        let watching = move || keep_open(&handed, &closed, until);
        let watcher = thread::Builder::new().name("gate".into()).stack_size(64 << 10).spawn(watching)?;
        Ok(Self { open: Some(open), watcher: Some(watcher) })
    }

    /// Closes it: when this returns no call goes through it any more.
    pub fn close(&mut self) {
        drop(self.open.take());
        if let Some(watcher) = self.watcher.take() {
            // It has no state: if it panicked, it has let go of the gate.
            let _ = watcher.join();
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.close();
    }
}

/// Says "go on" to every call. When it returns the kernel closes the gate, since nobody has it any more.
fn keep_open(handed: &UnixStream, closed: &PipeReader, until: Instant) {
    let mut gate: Option<OwnedFd> = None;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let next = gate.as_ref().map_or(handed.as_fd(), AsFd::as_fd);
        match process::wait_readable(&[closed.as_fd(), next], left) {
            Ok(ready) if !ready[0] && !left.is_zero() => {
                if !ready[1] {
                    continue;
                }
            }
            _ => return,
        }
        match &gate {
            None => match take(handed) {
                Ok(Some(handed)) => gate = Some(handed),
                _ => return,
            },
            // The call may be gone: a signal came, or the process ended.
            Some(gate) => {
                if !go_on(gate.as_fd()) {
                    thread::sleep(GONE);
                }
            }
        }
    }
}

/// What the kernel says of a call, and more room than it needs: all but the id is not looked at.
#[repr(C)]
struct Asked {
    id: u64,
    rest: [u64; 63],
}

/// Takes the next call that waits, and says "go on" to it; `false`: there is none any more.
fn go_on(gate: BorrowedFd<'_>) -> bool {
    let mut asked = Asked { id: 0, rest: [0; 63] };
    // SAFETY: the kernel writes what it says of a call, 80 bytes, into a live local that is larger, and wants zeros in it before.
    let taken = unsafe { libc::ioctl(gate.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) };
    if taken < 0 {
        return false;
    }
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut answer = libc::seccomp_notif_resp { id: asked.id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads a live local of the type that the call takes.
    unsafe { libc::ioctl(gate.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) >= 0 }
}
