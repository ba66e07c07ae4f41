//! `aeron`: Aeron IPC, an exclusive publication for each producer.
//!
//! ```text
//! publication, session of producer 0 ── a log of three terms ─┐
//! publication, session of producer 1 ── a log of three terms ─┼─▶ one subscription, in turns
//! publication, session of producer N ── a log of three terms ─┘
//!                    └───────────── media driver ───────────────┘ makes logs, moves limits
//! ```
//!
//! A message is a frame: claimed in the producer's own log, written there, committed, and read
//! there in place. A claim beyond the limit that the driver has set is [`Full`]. No message passes
//! through the driver, which is on the consumer's thread (see [`media`]): in a process of its own
//! it could die alone, and producers would stand still at their limit.
//!
//! The session, which the producer chooses for its publication, encodes its index and its process,
//! which must be the one that was started for that producer. A dead producer leaves a log with
//! committed frames, which the consumer takes; its successor has a log of its own. Aeron clears up
//! after a timeout, by which nobody may decide here: the consumer refuses the image of the dead,
//! and the next producer that attaches releases the pages of its log.
//!
//! Another subscription would begin with what is sent then, so a consumer is not replaced. The logs
//! and the driver's memory are trusted: a hostile process can make the engine fault.

mod media;

use core::ops::ControlFlow;
use launcher::shm::attached::{Attached, Peers};
use launcher::shm::memory::RegionError;
use launcher::shm::queue::MAX_PRODUCERS;
use launcher::shm::ring::step::reach;
use launcher::shm::ring::{
    Consumer, Full, Link, LinkSpec, MESSAGE_WORDS, Message, PeerFault, Producer, SegmentSpec, Step,
    TechniqueInfo,
};
use media::{Care, STREAM, refused};
use rusteron_client::{
    Aeron as Client, AeronClaim, AeronExclusivePublication, AeronHeader, AeronOfferError, AeronSubscription,
};
use std::collections::VecDeque;

const BYTES: usize = MESSAGE_WORDS * size_of::<u64>();
/// Words that are written before the middle of a push.
const HALF: usize = MESSAGE_WORDS / 2;
/// Bits of a process's id: the kernel gives none that is larger.
const PID_BITS: u32 = 22;
/// Frames of a dead producer's that are looked at between two others' messages.
const KEPT: usize = 64;

const _: () = assert!(MAX_PRODUCERS <= 1 << (u32::BITS - PID_BITS), "a session has bits for each");

/// The technique `aeron`: an Aeron IPC publication.
pub struct Aeron;

/// The sending end of the technique `aeron`.
pub struct Sender {
    // Dropped in this order.
    publication: AeronExclusivePublication,
    _client: Client,
}

/// The receiving end of the technique `aeron`.
pub struct Receiver {
    // Dropped in this order.
    subscription: AeronSubscription,
    care: Care,
    origins: Origins,
    /// Messages read to find the end of a dead producer's log, and not yet returned.
    kept: VecDeque<(usize, Message)>,
}

struct Origins {
    /// The session of each producer that has sent something.
    sessions: Vec<Option<i32>>,
    peers: Box<dyn Peers>,
    fault: Option<PeerFault>,
}

fn session(index: usize, pid: u32) -> i32 {
    ((index as u32) << PID_BITS | pid).cast_signed()
}

const fn whose(session: i32) -> (usize, u32) {
    let session = session.cast_unsigned();
    ((session >> PID_BITS) as usize, session & ((1 << PID_BITS) - 1))
}

impl Sender {
    #[inline]
    fn claim(&self) -> Result<AeronClaim, Full> {
        let claim = match self.publication.try_claim_owned(BYTES) {
            // The rest of a term was too short, and is passed over: there is room in the next one.
            Err(AeronOfferError::AdminAction) => self.publication.try_claim_owned(BYTES),
            claim => claim,
        };
        // The limit is reached, or the subscription is gone.
        claim.map_err(|_| Full)
    }
}

fn write(bytes: &mut [u8], words: &[u64]) {
    let (places, _) = bytes.as_chunks_mut();
    places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_ne_bytes());
}

impl Producer for Sender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        let mut claim = self.claim()?;
        let (first, second) = claim.data().split_at_mut(HALF * size_of::<u64>());
        write(first, &message[..HALF]);
        let written = reach(at, Step::HalfWritten).and_then(|()| {
            write(second, &message[HALF..]);
            reach(at, Step::Written)
        });
        if written.is_err() {
            // Dropped, it would be taken back: the dead do not.
            core::mem::forget(claim);
            return written;
        }
        claim.commit().map_err(|_| Full)?;
        let _ = at(Step::Published);
        Ok(())
    }
}

impl Origins {
    /// A frame: whose it is, and its message; `None`, and a fault: no producer's, or no message.
    #[inline]
    fn read(&mut self, bytes: &[u8], session: Option<i32>) -> Option<(usize, Message)> {
        let (words, []) = bytes.as_chunks() else { return self.framing(bytes) };
        let Ok(words) = <&[[u8; 8]; MESSAGE_WORDS]>::try_from(words) else { return self.framing(bytes) };
        let (producer, _) = whose(session?);
        if self.sessions.get(producer) != Some(&session) {
            self.look_up(session?)?;
        }
        Some((producer, words.map(u64::from_ne_bytes)))
    }

    #[cold]
    fn framing<T>(&mut self, bytes: &[u8]) -> Option<T> {
        self.fault = Some(PeerFault::Framing { bytes: bytes.len() });
        None
    }

    #[cold]
    fn look_up(&mut self, session: i32) -> Option<()> {
        let (producer, pid) = whose(session);
        let known = self.sessions.get_mut(producer).filter(|_| self.peers.producer(producer) == Some(pid));
        if known.is_none() {
            self.fault = Some(PeerFault::Stranger { pid: pid.into() });
        }
        *known? = Some(session);
        Some(())
    }
}

impl Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        if let Some((producer, message)) = self.kept.pop_front() {
            return Some((Some(producer), message));
        }
        for look in 0.. {
            let (mut told, origins) = (None, &mut self.origins);
            let read = |bytes: &[u8], header: AeronHeader| {
                told = origins.read(bytes, header.session_id());
            };
            // At all logs, each time from another one on.
            if let Ok(1..) = self.subscription.poll_fn(read, 1) {
                self.care.took();
                return told.map(|(producer, message)| (Some(producer), message));
            }
            // The rest of a term that was too short counts as nothing: poll at least twice.
            if look > 0 && !self.care.try_work_idle() {
                break;
            }
        }
        None
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.origins.fault.take().map(|fault| (None, fault))
    }

    fn retire(&mut self, producer: usize) -> bool {
        // What it published and nobody has heard of is known after this.
        self.care.try_call();
        let (kept, origins) = (&mut self.kept, &mut self.origins);
        let mut is_over = kept.iter().all(|(from, _)| *from != producer);
        let mut logs = Vec::new();
        self.subscription.for_each_image(|image| {
            let Ok(constants) = image.get_constants() else { return };
            if whose(constants.session_id()).0 != producer || !is_over {
                return;
            }
            let from = image.position();
            let read =
                |bytes: &[u8], header: AeronHeader| kept.extend(origins.read(bytes, header.session_id()));
            // Behind the end of a term nothing is read, and it goes on all the same.
            is_over = image.poll_fn(read, KEPT).is_ok() && image.position() == from;
            if is_over {
                let _ = image.reject(c"its process has died");
                logs.push(constants.correlation_id());
            }
        });
        if is_over {
            // The driver cleans what was read before it lets the log be.
            self.care.try_call();
            logs.iter().for_each(|log| self.care.let_go(*log));
        }
        is_over
    }

    fn renew(&mut self, producer: usize) {
        self.origins.sessions[producer] = None;
    }
}

impl Link for Aeron {
    const INFO: TechniqueInfo = crate::record("aeron");

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
        const WHAT: &str = "make a publication of it";
        let name = attached.name(spec.name);
        let client = media::client(&name, true)?;
        media::give_back(&name);
        let channel = media::channel_of(session(index, std::process::id()));
        let asked = client.async_add_exclusive_publication(&channel, STREAM).map_err(refused(&name, WHAT))?;
        let publication = media::wait(&name, WHAT, || {
            client.main_do_work().map_err(refused(&name, WHAT))?;
            asked.poll().map_err(refused(&name, WHAT))
        })?;
        media::wait(&name, "find its consumer", || Ok(publication.is_connected().then_some(())))?;
        Ok(Sender { publication, _client: client })
    }

    fn consumer(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        let name = attached.name(spec.name);
        let (subscription, care) = Care::new(&name, spec.capacity)?;
        let peers = attached.peers(spec.name);
        let origins = Origins { sessions: vec![None; spec.producers], peers, fault: None };
        Ok(Receiver { subscription, care, origins, kept: VecDeque::new() })
    }
}
