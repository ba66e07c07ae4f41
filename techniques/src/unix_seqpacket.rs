//! `unix-seqpacket`: Unix sockets that keep messages apart. Non-blocking, one message a call.
//!
//! ```text
//! producer 0 ── connection ──┐
//! producer 1 ── connection ──┼─ epoll ─▶ consumer, which has bound and listens on /dev/shm/bulkhead.<run>.<link>
//! producer N ── connection ──┘
//! ```
//!
//! The consumer binds when it attaches and accepts when it polls; producers connect when they
//! attach, and wait for the name to be there, and for their own id to be known, since the processes
//! of a run start at the same time. The first packet on a connection is the producer's index (8
//! bytes), from then on every packet is a message (56 bytes). An empty poll is one `epoll_wait`
//! however many producers there are; each connection that has something is served one message a
//! turn.
//!
//! The send buffer is as large as the kernel lets an ordinary user make it (`wmem_max`), whatever
//! the run's capacity: each producer has its own. Full is EAGAIN.
//!
//! **What a dead producer leaves:** whole messages, and a connection that the kernel has closed at
//! its end. The kernel holds the queue's only state, so nobody waits for the dead one.
//! [`Consumer::retire`](shm::ring::Consumer::retire) waits until its messages are taken and closes
//! our end, so that its successor can claim the index: as long as a connection has it, no other
//! gets it.
//!
//! **The others are not trusted.** The kernel says which process has connected (`SO_PEERCRED`), and
//! who started the processes which one each producer is ([`Peers`]). Any other process is refused
//! when it connects, and one that is a producer has one connection, so that nobody can take
//! another's place. Where several producers are threads of one process, they say which is which,
//! and are believed. A producer asks the kernel in turn whether it is the consumer that listens
//! under the name. A packet of another size, an index that is none, another process's, or another
//! connection's: a [`PeerFault`], and the connection is closed.

use crate::named::seqpacket;
use core::ops::ControlFlow;
use core::time::Duration;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use shm::attached::{Attached, Peers};
use shm::memory::RegionError;
use shm::ring::step::{Step, whole};
use shm::ring::{EndRights, Full, Home, Link, LinkSpec, PeerFault, SegmentPlace, SegmentSpec, TechniqueInfo};
use shm::ring::{MESSAGE_WORDS, Message};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;
use zerocopy::IntoBytes;

/// How long a producer waits for its consumer to be there. The launcher gives up on a run sooner or
/// later itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many connections one `epoll_wait` names at most.
const EVENTS: usize = 64;
/// The listening socket among the events; a connection is its place in the list.
const LISTENER: u64 = u64::MAX;

/// The technique.
pub struct UnixSeqpacket;

/// The sending end: a connection.
pub struct Sender(UnixStream);

struct Connection {
    stream: UnixStream,
    /// The process that has connected.
    pid: u32,
    /// Who it said it is; `None` before its first packet.
    producer: Option<usize>,
}

/// The receiving end.
pub struct Receiver {
    listener: UnixListener,
    epoll: Epoll,
    /// At most one for each producer; one that was closed leaves its place.
    connections: Vec<Option<Connection>>,
    /// What the last `epoll_wait` named, and what of that is still to be served.
    ready: [EpollEvent; EVENTS],
    ready_len: usize,
    next: usize,
    peers: Box<dyn Peers>,
    fault: Option<(Option<usize>, PeerFault)>,
}

impl shm::ring::Producer for Sender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Any error is Full: EAGAIN says so; if the consumer is gone, the run is ending.
        whole(at, || match self.0.write(message.as_bytes()) {
            Ok(bytes) if bytes == size_of::<Message>() => Ok(()),
            _ => Err(Full),
        })
    }
}

impl Receiver {
    /// Accepts whoever waits and is a producer without a connection; closes what others have
    /// opened. Whether anybody came.
    #[cold]
    fn accept(&mut self) -> bool {
        let mut came = false;
        for _ in 0..self.connections.len() {
            let Ok((stream, _)) = self.listener.accept() else { break };
            let pid = seqpacket::peer(&stream).unwrap_or(0);
            let place = self.connections.iter().position(Option::is_none);
            let Some(place) = place.filter(|_| self.has_room_for(pid)) else {
                let producer = self.only_producer_of(pid);
                self.found(producer, PeerFault::Stranger { pid: pid.into() });
                continue;
            };
            let event = EpollEvent::new(EpollFlags::EPOLLIN, place as u64);
            if stream.set_nonblocking(true).is_ok() && self.epoll.add(&stream, event).is_ok() {
                self.connections[place] = Some(Connection { stream, pid, producer: None });
                came = true;
            }
        }
        came
    }

    /// Keeps a fault until it is taken; one that names a producer rather than another.
    #[cold]
    fn found(&mut self, producer: Option<usize>, fault: PeerFault) {
        if self.fault.is_none_or(|(named, _)| named.is_none()) {
            self.fault = Some((producer, fault));
        }
    }

    /// The producers that are of that process.
    fn producers_of(&self, pid: u32) -> impl Iterator<Item = usize> {
        (0..self.connections.len()).filter(move |index| self.peers.producer(*index) == Some(pid))
    }

    /// Whether the process has fewer connections than producers.
    fn has_room_for(&self, pid: u32) -> bool {
        let open = self.connections.iter().flatten().filter(|connection| connection.pid == pid);
        open.count() < self.producers_of(pid).count()
    }

    /// The producer whose process it is, if it is one producer's alone.
    fn only_producer_of(&self, pid: u32) -> Option<usize> {
        let mut producers = self.producers_of(pid);
        producers.next().filter(|_| producers.next().is_none())
    }

    /// Serves one event; a message if it brought one.
    #[inline]
    fn serve(&mut self, place: usize) -> Option<(Option<usize>, Message)> {
        let unnamed = self.is_unnamed(place);
        let taken = self.take(place);
        // Behind the name there may be a message.
        if unnamed { self.take(place) } else { taken }
    }

    /// Whether there is a connection that has not said whose it is.
    fn is_unnamed(&self, place: usize) -> bool {
        matches!(self.connections.get(place), Some(Some(Connection { producer: None, .. })))
    }

    /// Takes one packet of a connection.
    #[inline]
    fn take(&mut self, place: usize) -> Option<(Option<usize>, Message)> {
        let connection = self.connections.get_mut(place)?.as_mut()?;
        // One word more than a message, so that a longer packet shows.
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
                self.name(place, packet[0]);
                None
            }
            (Ok(bytes), producer) => {
                self.connections[place] = None;
                // Nothing: the producer has closed it.
                if bytes > 0 {
                    self.found(producer, PeerFault::Framing { bytes });
                }
                None
            }
            (Err(_), _) => {
                self.connections[place] = None;
                None
            }
        }
    }

    /// A connection says whose it is.
    #[cold]
    fn name(&mut self, place: usize, index: u64) {
        let Some(pid) = self.connections[place].as_ref().map(|connection| connection.pid) else { return };
        let producer = usize::try_from(index).ok().filter(|index| self.peers.producer(*index) == Some(pid));
        let taken = self.connections.iter().flatten().any(|c| c.producer.is_some() && c.producer == producer);
        if producer.is_none_or(|producer| producer >= self.connections.len()) || taken {
            self.connections[place] = None;
            let producer = self.only_producer_of(pid);
            self.found(producer, PeerFault::InvalidIndex { index });
        } else if let Some(connection) = &mut self.connections[place] {
            connection.producer = producer;
        }
    }
}

impl shm::ring::Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // What is left of the last look, then a new one; and another one behind each that brought
        // new connections or names: so many of them may be told of at once that somebody's message
        // is not. A process that connects again and again holds up nobody.
        let (mut looks, mut more) = (1, 2 + self.connections.len());
        loop {
            let mut came = false;
            while self.next < self.ready_len {
                let token = self.ready[self.next].data();
                self.next += 1;
                if token == LISTENER {
                    came |= self.accept();
                    continue;
                }
                let is_new = self.is_unnamed(token as usize);
                if let Some(message) = self.serve(token as usize) {
                    return Some(message);
                }
                came |= is_new;
            }
            if came && more > 0 {
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
        // It may have died before we accepted it, or before we took its name.
        self.accept();
        for place in 0..self.connections.len() {
            if self.connections[place].as_ref().is_some_and(|connection| connection.producer.is_none()) {
                // Nothing that has no name yet brings a message.
                let _ = self.take(place);
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

    type Producer = Sender;
    type Consumer = Receiver;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        vec![SegmentSpec {
            name: spec.name.into(),
            place: SegmentPlace::Socket,
            words: 0,
            kind: shm::ring::spsc::KIND,
            capacity: 0,
            slot_words: MESSAGE_WORDS as u64,
            index: 0,
            ends: EndRights::ALL_WRITE,
        }]
    }

    fn producer(spec: &LinkSpec, index: usize, attached: &mut Attached<'_>) -> Result<Sender, RegionError> {
        let name = attached.name(spec.name);
        let peers = attached.peers(spec.name);
        let os = |what, source| RegionError::Os { name: name.clone(), what, source };
        let deadline = Instant::now() + PATIENCE;
        // Who starts this process notes its id when it knows it, and we may be faster.
        while peers.producer(index) != Some(std::process::id()) || peers.consumer().is_none() {
            if Instant::now() > deadline {
                let missing = format!("process {} is not the one started for it", std::process::id());
                return Err(os("connect as a producer", io::Error::other(missing)));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut stream = seqpacket::connect(&name, PATIENCE)?;
        let listening = seqpacket::peer(&stream).map_err(|error| os("ask who listens there", error))?;
        if peers.consumer() != Some(listening) {
            let stranger = format!("process {listening} listens there, which is not the consumer's");
            return Err(os("connect to its consumer", io::Error::other(stranger)));
        }
        let hello = stream.write_all(&(index as u64).to_le_bytes());
        hello.map_err(|error| os("say hello through it", error))?;
        Ok(Sender(stream))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        let name = attached.name(spec.name);
        let listener = seqpacket::listen(&name)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.and_then(|epoll| {
            epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER)).map(|()| epoll)
        });
        let epoll =
            epoll.map_err(|errno| RegionError::Os { name, what: "watch it", source: errno.into() })?;
        Ok(Receiver {
            listener,
            epoll,
            connections: (0..spec.producers).map(|_| None).collect(),
            ready: [EpollEvent::empty(); EVENTS],
            ready_len: 0,
            next: 0,
            peers: attached.peers(spec.name),
            fault: None,
        })
    }
}
