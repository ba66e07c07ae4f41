//! Unix sockets that preserve message boundaries (SOCK_SEQPACKET), with names in `/dev/shm`.
//!
//! The standard library has no type for them, but its stream types work, since read, write and
//! accept are the same calls: a read returns one packet, a write sends one.

use super::os;
use core::time::Duration;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, bind, connect as connect_to, getsockopt,
    listen as listen_on, recv, setsockopt, socket, sockopt,
};
use nix::sys::stat::{Mode, fchmod};
use shm::memory::RegionError;
use shm::memory::SHM_DIR;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

/// The requested send buffer in bytes; the kernel limits it to the maximum for ordinary users
/// (`/proc/sys/net/core/wmem_max`).
const SEND_BUFFER: usize = 1 << 28;

fn address(name: &str) -> Result<UnixAddr, RegionError> {
    UnixAddr::new(format!("{SHM_DIR}/{name}").as_str()).map_err(os(name, "name a socket like that"))
}

fn unix_socket(name: &str) -> Result<OwnedFd, RegionError> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(os(name, "make a socket"))
}

/// Creates a socket with this name, mode 0600, and listens on it, non-blocking. The backlog is the
/// system's maximum (`/proc/sys/net/core/somaxconn`), because connections that will be refused wait
/// in it too.
///
/// # Errors
/// An error of the system (the name exists, no permission).
pub fn listen(name: &str) -> Result<UnixListener, RegionError> {
    let fd = unix_socket(name)?;
    // Before binding: on Linux the name gets the socket's mode, so that it is never open to others.
    fchmod(&fd, Mode::S_IRUSR | Mode::S_IWUSR).map_err(os(name, "restrict its socket"))?;
    bind(fd.as_raw_fd(), &address(name)?).map_err(os(name, "bind its socket"))?;
    listen_on(&fd, Backlog::MAXCONN).map_err(os(name, "listen on its socket"))?;
    Ok(UnixListener::from(fd))
}

/// Connects to a socket within a time, and makes the connection non-blocking. Waits up to `timeout`
/// for a listener.
///
/// # Errors
/// The last error of the system.
pub fn connect(name: &str, timeout: Duration) -> Result<UnixStream, RegionError> {
    let fd = unix_socket(name)?;
    let address = address(name)?;
    let deadline = Instant::now() + timeout;
    loop {
        match connect_to(fd.as_raw_fd(), &address) {
            Ok(()) => break,
            // Not bound yet, not listening yet, or the backlog is full.
            Err(Errno::ENOENT | Errno::ECONNREFUSED | Errno::EAGAIN) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(errno) => return Err(os(name, "connect to its socket")(errno)),
        }
    }
    // A smaller buffer is not an error.
    let _ = setsockopt(&fd, sockopt::SndBuf, &SEND_BUFFER);
    Ok(UnixStream::from(fd))
}

/// Returns the process id of a socket's peer, as the kernel reports it. That is the connecting
/// process, or for a client the listening one. 0 is a process outside this PID namespace.
///
/// # Errors
/// An error of the system.
pub fn peer_pid(stream: &UnixStream) -> io::Result<u32> {
    Ok(getsockopt(stream, sockopt::PeerCredentials)?.pid().cast_unsigned())
}

/// Returns `true` if a packet is pending on the connection, without taking it.
pub(crate) fn has_packet(stream: &UnixStream) -> bool {
    let mut byte = [0];
    // 0 bytes if the peer has closed it, an error if no packet is pending.
    recv(stream.as_raw_fd(), &mut byte, MsgFlags::MSG_PEEK).is_ok_and(|bytes| bytes > 0)
}
