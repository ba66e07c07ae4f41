//! `aeron`: Aeron's IPC channel, an exclusive publication for each producer of a hand-off, on one stream.
//!
//! ```text
//! publication 0 ── log of three terms ─┐
//! publication 1 ── log of three terms ─┼─ an image of each ─▶ subscription
//! publication N ── log of three terms ─┘
//!        └──────── media driver: limits, positions, liveness ────────┘
//! ```
//!
//! A message is claimed in the publication's log, written there and committed; the subscription polls the images in turns and copies out
//! a frame at a time. Aeron needs a media driver. Here it is a thread of the consumer's process, the engine's: it ends with it. Each
//! process of a producer has a client with a thread of its own, which says to the driver that it lives; the consumer's client has none
//! and does its work when a poll finds nothing, and every so many messages.
//!
//! **Full** is what the driver says: it moves a publication's limit behind the subscription when it looks, up to a millisecond later.
//! So a push may be refused although all is taken. The window has room for the capacity of the hand-off.
//!
//! **Whose a message is**: the session's number is made of the producer's index and its process, which must be the one that was started
//! for it. Aeron keeps it with each frame, in memory that the producer writes.
//!
//! **What a dead producer leaves:** its committed messages. A claim that it did not commit is a gap in its own log, where nobody else's
//! messages stand. The driver closes its log when it has heard nothing of its client for ten seconds; its successor has another session,
//! so it does not wait for that.
//!
//! **What it does not do:** positions are of a subscription and end with it, so a consumer is not replaced. What it reads from shared
//! memory it believes: a hostile process can make the engine fault.

use core::ops::ControlFlow;
use core::time::Duration;
use launcher::shm::attached::{Attached, Peers};
use launcher::shm::memory::{RegionError, folder};
use launcher::shm::ring::step::reach;
use launcher::shm::ring::{
    Consumer, Full, Home, Link, LinkSpec, MESSAGE_WORDS, Message, PeerFault, Producer, Record, SegmentSpec,
    Step,
};
use rusteron_client::{
    Aeron, AeronContext, AeronExclusivePublication, AeronOfferError, AeronSubscription, Handlers,
};
use rusteron_media_driver::bindings::aeron_threading_mode_enum;
use rusteron_media_driver::{AeronDriver, AeronDriverContext, EmbeddedMediaDriver};
use std::ffi::CString;
use std::fmt::Debug;
use std::io;
use std::time::Instant;

/// The stream of every hand-off: each has a driver of its own.
const STREAM: i32 = 1;
/// How long an end waits for the driver and for the other end. The launcher gives up on a run sooner or later itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a message, and of its frame in a log: a head of 32 bytes, a multiple of 32.
const BYTES: usize = size_of::<Message>();
const FRAME_BYTES: usize = (32 + BYTES).next_multiple_of(32);
/// The shortest and the longest term that Aeron has.
const TERM_BYTES: [usize; 2] = [1 << 16, 1 << 30];
/// Bits of a session's number that are the process: Linux has no larger process ids. The rest is the producer.
const PID_BITS: u32 = 22;
/// After so many messages without an empty poll the consumer's client does its work all the same.
const BUSY: u32 = 1024;

/// The technique.
pub struct AeronIpc;

/// The sending end.
pub struct Sender {
    publication: AeronExclusivePublication,
}

/// The receiving end. Closed in this order.
pub struct Receiver {
    subscription: AeronSubscription,
    client: Aeron,
    _driver: EmbeddedMediaDriver,
    /// Whose each session is, of those that have sent something.
    known: Vec<(i32, usize)>,
    producers: usize,
    peers: Box<dyn Peers>,
    fault: Option<PeerFault>,
    /// Messages since the client last did its work.
    busy: u32,
    /// Polls that found nothing.
    empty: u64,
    /// Of each producer that is being retired, how many there were when that began.
    retiring: Vec<Option<u64>>,
}

/// What Aeron says of what it refused, as an error of the segment with that name.
fn refused<E: Debug>(name: &str, what: &'static str) -> impl Fn(E) -> RegionError {
    let name = name.to_owned();
    move |error| RegionError::Os {
        name: name.clone(),
        what,
        source: io::Error::other(format!("aeron: {error:?}")),
    }
}

/// The driver's directory, which it makes itself: in the folder of the hand-off.
fn directory(name: &str) -> CString {
    let path = folder::path(name).join("driver").display().to_string();
    CString::new(path).expect("names of runs have no zero byte")
}

/// A term of which the window, its half, has room for so many messages.
fn term_bytes(capacity: u32) -> usize {
    (2 * FRAME_BYTES * capacity as usize).next_power_of_two().clamp(TERM_BYTES[0], TERM_BYTES[1])
}

/// A producer's session in this process.
fn session(index: usize) -> Option<i32> {
    let index = i32::try_from(index).ok().filter(|index| *index < 1 << (31 - PID_BITS))?;
    let pid = i32::try_from(std::process::id()).ok().filter(|pid| *pid < 1 << PID_BITS)?;
    Some(index << PID_BITS | pid)
}

/// A client of the driver in that directory, once there is one.
fn client(directory: &CString, with_thread: bool) -> Result<Aeron, rusteron_client::AeronCError> {
    let context = AeronContext::new()?;
    context.set_dir(directory)?;
    context.set_driver_timeout_ms(PATIENCE.as_millis() as u64)?;
    context.set_use_conductor_agent_invoker(!with_thread)?;
    // Without one, Aeron ends the process.
    context.set_error_handler(Some(|code: i32, text: &str| eprintln!("aeron: error {code}: {text}")))?;
    let client = Aeron::new(&context)?;
    client.start()?;
    Ok(client)
}

fn driver(directory: &CString) -> Result<EmbeddedMediaDriver, rusteron_media_driver::AeronCError> {
    let context = AeronDriverContext::new()?;
    context.set_dir(directory)?;
    context.set_dir_delete_on_start(true)?;
    context.set_dir_delete_on_shutdown(true)?;
    context.set_threading_mode(aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED)?;
    Ok(AeronDriver::launch_embedded_guard(context, false))
}

impl Producer for Sender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        let mut claim = match self.publication.try_claim_owned(BYTES) {
            // A term is full and the next one begins: again.
            Err(AeronOfferError::AdminAction) => self.publication.try_claim_owned(BYTES),
            claim => claim,
        }
        // Whatever it is: the driver says that it is full, or the run is ending.
        .map_err(|_| Full)?;
        let (bytes, _) = claim.data().as_chunks_mut::<8>();
        for (place, (bytes, word)) in bytes.iter_mut().zip(message).enumerate() {
            if place == MESSAGE_WORDS / 2 {
                reach(at, Step::HalfWritten)?;
            }
            *bytes = word.to_le_bytes();
        }
        reach(at, Step::Written)?;
        claim.commit().map_err(|_| Full)?;
        let _ = at(Step::Published);
        Ok(())
    }
}

impl Receiver {
    /// Takes a frame, if there is one: its session and its bytes as words, or how many bytes it is that are no message.
    #[inline]
    fn poll(&mut self) -> Option<(i32, Result<Message, usize>)> {
        let mut taken = None;
        // An error is an image that is being closed; it is gone with the next poll.
        let _ = self.subscription.poll_fn(
            |bytes, header| {
                let (words, rest) = bytes.as_chunks::<8>();
                let message = match <&[[u8; 8]; MESSAGE_WORDS]>::try_from(words) {
                    Ok(words) if rest.is_empty() => Ok(words.map(u64::from_le_bytes)),
                    _ => Err(bytes.len()),
                };
                taken = Some((header.session_id().unwrap_or(-1), message));
            },
            1,
        );
        taken
    }

    /// Whose that session is; `None`, and a fault: of nobody who was started for it.
    #[inline]
    fn producer(&mut self, session: i32) -> Option<usize> {
        match self.known.iter().find(|(known, _)| *known == session) {
            Some((_, producer)) => Some(*producer),
            None => self.look_up(session),
        }
    }

    #[cold]
    fn look_up(&mut self, session: i32) -> Option<usize> {
        let (index, pid) = (session >> PID_BITS, (session & ((1 << PID_BITS) - 1)).cast_unsigned());
        let producer = usize::try_from(index).ok().filter(|index| *index < self.producers);
        let producer = producer.filter(|index| self.peers.producer(*index) == Some(pid));
        match producer {
            Some(producer) => self.known.push((session, producer)),
            None => self.fault = Some(PeerFault::Stranger { pid }),
        }
        producer
    }

    /// The client says that it lives and learns of new images; whether there was something to do.
    fn work(&mut self) -> bool {
        self.busy = 0;
        self.client.main_do_work().is_ok_and(|done| done > 0)
    }
}

impl Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.busy += 1;
        if self.busy > BUSY {
            self.work();
        }
        let mut taken = self.poll();
        if taken.is_none() && self.work() {
            taken = self.poll();
        }
        let Some((session, message)) = taken else {
            self.empty += 1;
            return None;
        };
        let producer = self.producer(session)?;
        match message {
            Ok(message) => Some((Some(producer), message)),
            Err(bytes) => {
                self.fault = Some(PeerFault::Framing { bytes });
                None
            }
        }
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take().map(|fault| (None, fault))
    }

    fn retire(&mut self, producer: usize) -> bool {
        // Nothing new comes of it: after a poll that found nothing at all, nothing of it is left.
        let began = *self.retiring[producer].get_or_insert(self.empty);
        let is_retired = self.empty > began;
        if is_retired {
            self.retiring[producer] = None;
        }
        is_retired
    }

    fn revive(&mut self, producer: usize) {
        self.known.retain(|(_, known)| *known != producer);
    }
}

impl Link for AeronIpc {
    const RECORD: Record = Record::new("aeron", Home::Foreign)
        .steps(&[Step::Entered, Step::HalfWritten, Step::Written, Step::Published])
        .apart();

    type Producer = Sender;
    type Consumer = Receiver;

    fn segments(spec: &LinkSpec<'_>) -> Vec<SegmentSpec> {
        vec![crate::folder(spec)]
    }

    fn producer(
        spec: &LinkSpec<'_>,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Sender, RegionError> {
        let name = attached.name(spec.name);
        let os = |what| refused(&name, what);
        let client = crate::shared(attached, spec.name, || {
            client(&directory(&name), true).map_err(refused(&name, "find its media driver"))
        })?;
        let session = session(index).ok_or_else(|| refused(&name, "number a session of it")(index))?;
        let channel = format!("aeron:ipc?term-length={}|session-id={session}", term_bytes(spec.capacity));
        let channel = CString::new(channel).expect("no zero byte");
        let publication = client.add_exclusive_publication(&channel, STREAM, PATIENCE);
        let publication = publication.map_err(|error| os("add a publication to it")(format!("{error:?}")))?;
        let deadline = Instant::now() + PATIENCE;
        while !publication.is_connected() {
            if Instant::now() > deadline {
                return Err(os("connect to its subscription")("nobody has subscribed".into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Sender { publication })
    }

    fn consumer(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        let name = attached.name(spec.name);
        let directory = directory(&name);
        let driver = driver(&directory).map_err(refused(&name, "start its media driver"))?;
        let client = client(&directory, false).map_err(refused(&name, "find its media driver"))?;
        let subscription =
            client.add_subscription(c"aeron:ipc", STREAM, Handlers::NONE, Handlers::NONE, PATIENCE);
        Ok(Receiver {
            subscription: subscription.map_err(refused(&name, "subscribe to it"))?,
            client,
            _driver: driver,
            known: Vec::new(),
            producers: spec.producers,
            peers: attached.peers(spec.name),
            fault: None,
            busy: 0,
            empty: 0,
            retiring: vec![None; spec.producers],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_has_room_for_the_capacity_in_its_window() {
        assert_eq!(FRAME_BYTES, 96);
        for capacity in [2, 64, 8192, 1 << 20] {
            assert!(term_bytes(capacity) / 2 >= FRAME_BYTES * capacity as usize, "{capacity}");
            assert!(term_bytes(capacity).is_power_of_two());
        }
    }

    #[test]
    fn a_session_says_whose_it_is() {
        let of = session(3).unwrap();
        assert_eq!((of >> PID_BITS, (of & ((1 << PID_BITS) - 1)) as u32), (3, std::process::id()));
        assert_eq!(session(1 << 9), None);
    }
}
