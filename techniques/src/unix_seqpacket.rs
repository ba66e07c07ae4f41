//! `unix-seqpacket`: Unix sockets that preserve message boundaries. Non-blocking, one message per
//! call.
//!
//! ```text
//! producer 0 ── connection ──┐
//! producer 1 ── connection ──┼─ epoll ─▶ consumer, listens on /dev/shm/bulkhead.<run>.<link>
//! producer N ── connection ──┘
//! ```
//!
//! The consumer binds when it attaches and accepts when it polls. Producers connect when they
//! attach; they wait until the name exists and their own process id is published, since the
//! processes of a run start at the same time. The first packet on a connection is the producer's
//! index (8 bytes); every further packet is a message (56 bytes). An empty poll is one `epoll_wait`
//! for any number of producers; ready connections are served one message at a time, in turn.
//!
//! Each producer's send buffer has the maximum size for ordinary users (`wmem_max`), independent of
//! the run's capacity. Full is EAGAIN.
//!
//! **What a dead producer leaves:** whole messages, and a connection that the kernel has closed at
//! its end. The kernel holds the only state of the queue, so no peer waits for the dead producer.
//! [`Consumer::retire`](shm::ring::Consumer::retire) waits until its messages are taken and closes
//! our end, so that its successor can claim the index, which only one connection can have.
//!
//! **Peers are not trusted.** The kernel reports the connecting process (`SO_PEERCRED`), and the
//! launcher publishes the process of each producer ([`Peers`]). Connections of other processes are
//! refused, and each producer has one connection, so none can impersonate another. Several
//! producers in one process identify themselves, and are trusted. A producer in turn checks that
//! the listening process is the consumer's. A packet of another size, or an index that is invalid
//! or belongs to another process or connection, is a [`PeerFault`], and the connection is closed.

use crate::named::{self, os, seqpacket};
use core::ops::ControlFlow;
use core::time::Duration;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use shm::attached::{Attached, Peers};
use shm::memory::RegionError;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, PeerFault, SegmentPlace, SegmentSpec, TechniqueInfo};
use shm::ring::{MESSAGE_WORDS, Message};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;
use zerocopy::IntoBytes;

/// How long a producer waits for its consumer. The launcher has its own timeout for the start of a
/// run.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of connections returned by one `epoll_wait`.
const MAX_EVENTS: usize = 64;
/// The event token of the listening socket; the token of a connection is its index.
const LISTENER: u64 = u64::MAX;

/// The technique `unix-seqpacket`: Unix sockets that preserve message boundaries.
pub struct UnixSeqpacket;

/// The sending end of `unix-seqpacket`: a connection.
pub struct SeqpacketSender(UnixStream);

struct Connection {
    stream: UnixStream,
    pid: u32,
    /// The producer's index from its first packet; `None` before that.
    producer: Option<usize>,
}

/// The receiving end of `unix-seqpacket`: the listening socket and all connections.
pub struct SeqpacketReceiver {
    listener: UnixListener,
    epoll: Epoll,
    /// At most one for each producer; a closed connection leaves `None`.
    connections: Vec<Option<Connection>>,
    /// The events of the last `epoll_wait`, and the range still to be served.
    ready: [EpollEvent; MAX_EVENTS],
    ready_len: usize,
    next: usize,
    peers: Box<dyn Peers>,
    fault: Option<(Option<usize>, PeerFault)>,
}

impl shm::ring::Producer for SeqpacketSender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Any error is Full: EAGAIN means full; if the consumer is gone, the run is ending.
        whole(at, || match self.0.write(message.as_bytes()) {
            Ok(bytes) if bytes == size_of::<Message>() => Ok(()),
            _ => Err(Full),
        })
    }
}

impl SeqpacketReceiver {
    /// Accepts pending connections of producers that have none, and closes others. Returns `true`
    /// if a connection was accepted.
    #[cold]
    fn try_accept(&mut self) -> bool {
        let mut has_new = false;
        for _ in 0..self.connections.len() {
            let Ok((stream, _)) = self.listener.accept() else { break };
            let pid = seqpacket::peer_pid(&stream).unwrap_or(0);
            let slot = self.connections.iter().position(Option::is_none);
            let Some(slot) = slot.filter(|_| self.can_accept(pid)) else {
                let producer = self.only_producer_of(pid);
                self.store_fault(producer, PeerFault::Stranger { pid: pid.into() });
                continue;
            };
            let event = EpollEvent::new(EpollFlags::EPOLLIN, slot as u64);
            if stream.set_nonblocking(true).is_ok() && self.epoll.add(&stream, event).is_ok() {
                self.connections[slot] = Some(Connection { stream, pid, producer: None });
                has_new = true;
            }
        }
        has_new
    }

    /// Stores a fault until it is taken; a fault with a known producer has priority.
    #[cold]
    fn store_fault(&mut self, producer: Option<usize>, fault: PeerFault) {
        if self.fault.is_none_or(|(named, _)| named.is_none()) {
            self.fault = Some((producer, fault));
        }
    }

    /// Returns the producers of a process.
    fn producers_of(&self, pid: u32) -> impl Iterator<Item = usize> {
        (0..self.connections.len()).filter(move |index| self.peers.producer(*index) == Some(pid))
    }

    /// Returns `true` if the process has fewer connections than producers.
    fn can_accept(&self, pid: u32) -> bool {
        let open = self.connections.iter().flatten().filter(|connection| connection.pid == pid);
        open.count() < self.producers_of(pid).count()
    }

    /// Returns the producer of a process, if there is exactly one.
    fn only_producer_of(&self, pid: u32) -> Option<usize> {
        let mut producers = self.producers_of(pid);
        producers.next().filter(|_| producers.next().is_none())
    }

    #[inline]
    fn serve(&mut self, slot: usize) -> Option<(Option<usize>, Message)> {
        let unnamed = self.is_unidentified(slot);
        let taken = self.receive_packet(slot);
        // A message may follow the identification packet.
        if unnamed { self.receive_packet(slot) } else { taken }
    }

    fn is_unidentified(&self, slot: usize) -> bool {
        matches!(self.connections.get(slot), Some(Some(Connection { producer: None, .. })))
    }

    #[inline]
    fn receive_packet(&mut self, slot: usize) -> Option<(Option<usize>, Message)> {
        let connection = self.connections.get_mut(slot)?.as_mut()?;
        // One word more than a message, to detect longer packets.
        let mut packet = [0; MESSAGE_WORDS + 1];
        let read = connection.stream.read(packet.as_mut_bytes());
        match (read, connection.producer) {
            (Ok(bytes), producer @ Some(_)) if bytes == size_of::<Message>() => {
                let mut message = [0; MESSAGE_WORDS];
                message.copy_from_slice(&packet[..MESSAGE_WORDS]);
                Some((producer, message))
            }
            (Err(error), _) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            (Ok(bytes), None) if bytes == size_of::<u64>() => {
                self.identify(slot, packet[0]);
                None
            }
            (Ok(bytes), producer) => {
                self.connections[slot] = None;
                // 0 bytes: the producer has closed it.
                if bytes > 0 {
                    self.store_fault(producer, PeerFault::Framing { bytes });
                }
                None
            }
            (Err(_), _) => {
                self.connections[slot] = None;
                None
            }
        }
    }

    /// Assigns a connection to the producer that it claims to be, or closes it.
    #[cold]
    fn identify(&mut self, slot: usize, index: u64) {
        let Some(pid) = self.connections[slot].as_ref().map(|connection| connection.pid) else { return };
        let producer = usize::try_from(index).ok().filter(|index| self.peers.producer(*index) == Some(pid));
        let taken = self.connections.iter().flatten().any(|c| c.producer.is_some() && c.producer == producer);
        if producer.is_none_or(|producer| producer >= self.connections.len()) || taken {
            self.connections[slot] = None;
            let producer = self.only_producer_of(pid);
            self.store_fault(producer, PeerFault::InvalidIndex { index });
        } else if let Some(connection) = &mut self.connections[slot] {
            connection.producer = producer;
        }
    }
}

impl shm::ring::Consumer for SeqpacketReceiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // Serves the remaining events, then polls once more; and again after each poll with new
        // connections or identifications, which may have crowded out a message. The number of polls
        // is bounded, so a process that keeps connecting does not block the others.
        let (mut looks, mut more) = (1, 2 + self.connections.len());
        loop {
            let mut has_new = false;
            while self.next < self.ready_len {
                let token = self.ready[self.next].data();
                self.next += 1;
                if token == LISTENER {
                    has_new |= self.try_accept();
                    continue;
                }
                let is_new = self.is_unidentified(token as usize);
                if let Some(message) = self.serve(token as usize) {
                    return Some(message);
                }
                has_new |= is_new;
            }
            if has_new && more > 0 {
                (looks, more) = (1, more - 1);
            }
            if looks == 0 {
                return None;
            }
            looks -= 1;
            self.ready_len = self.epoll.wait(&mut self.ready, EpollTimeout::ZERO).unwrap_or(0);
            self.next = 0;
        }
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take()
    }

    fn retire(&mut self, producer: usize) -> bool {
        // The producer may have died before its connection was accepted or identified.
        self.try_accept();
        for slot in 0..self.connections.len() {
            if self.connections[slot].as_ref().is_some_and(|connection| connection.producer.is_none()) {
                // An unidentified connection has no message yet.
                let _ = self.receive_packet(slot);
            }
        }
        let theirs = |connection: &Connection| connection.producer == Some(producer);
        let connection = self.connections.iter_mut().find(|c| c.as_ref().is_some_and(theirs));
        let Some(connection) = connection else { return true };
        if connection.as_ref().is_some_and(|connection| seqpacket::has_packet(&connection.stream)) {
            return false;
        }
        *connection = None;
        true
    }
}

impl Link for UnixSeqpacket {
    const INFO: TechniqueInfo = TechniqueInfo::new("unix-seqpacket", Home::Kernel).apart();

    type Producer = SeqpacketSender;
    type Consumer = SeqpacketReceiver;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        named::segments(spec, SegmentPlace::Socket)
    }

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<SeqpacketSender, RegionError> {
        let name = attached.name(spec.name);
        let peers = attached.peers(spec.name);
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        // The launcher publishes our process id after the start, and we may be faster.
        while peers.producer(index) != Some(std::process::id()) || peers.consumer().is_none() {
            if Instant::now() > deadline {
                let missing = format!("process {} is not the one started for it", std::process::id());
                return Err(os(&name, "connect as a producer")(io::Error::other(missing)));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut stream = seqpacket::connect(&name, CONNECT_TIMEOUT)?;
        let listening = seqpacket::peer_pid(&stream).map_err(os(&name, "ask who listens there"))?;
        if peers.consumer() != Some(listening) {
            let stranger = format!("process {listening} listens there, which is not the consumer's");
            return Err(os(&name, "connect to its consumer")(io::Error::other(stranger)));
        }
        let hello = stream.write_all(&(index as u64).to_le_bytes());
        hello.map_err(os(&name, "say hello through it"))?;
        Ok(SeqpacketSender(stream))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<SeqpacketReceiver, RegionError> {
        let name = attached.name(spec.name);
        let listener = seqpacket::listen(&name)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.and_then(|epoll| {
            epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER)).map(|()| epoll)
        });
        let epoll = epoll.map_err(os(&name, "watch it"))?;
        Ok(SeqpacketReceiver {
            listener,
            epoll,
            connections: (0..spec.producers).map(|_| None).collect(),
            ready: [EpollEvent::empty(); MAX_EVENTS],
            ready_len: 0,
            next: 0,
            peers: attached.peers(spec.name),
            fault: None,
        })
    }
}
