//! `iceoryx2`: the publish-subscribe of `iceoryx2`, with a service for each hand-off.
//!
//! ```text
//! publisher "0" ── data segment ─┐
//! publisher "1" ── data segment ─┼─ a queue of offsets each ─▶ subscriber
//! publisher "N" ── data segment ─┘
//! ```
//!
//! A message is a sample: loaned from the publisher's own segment, written there, and sent as an
//! offset through a queue shared with the subscriber, which copies it out. With safe overflow off
//! and data for a full queue discarded, a send that reaches nobody is [`Full`].
//!
//! The ends are of `ipc_threadsafe`, not of `ipc`: bulkhead attaches an end on one thread and uses
//! it on another. It costs an uncontended mutex in each call.
//!
//! A header has the producer's index and its process, which must be the one that was started for
//! that producer; the subscriber checks the first message of each publisher. A dead producer leaves
//! its sent samples. Its places in the service are freed by the next node, which is that of its
//! successor; so there is room for twice as many publishers. A subscriber takes what waits in the
//! order of its connections, not in turns: a fast sender delays others and a retirement.
//!
//! Its queues cannot be resumed, so a consumer is not replaced. It trusts shared memory: a
//! hostile process can crash the engine.

use core::ops::ControlFlow;
use core::time::Duration;
use iceoryx2::identifiers::UniquePublisherId;
use iceoryx2::node::Node;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{
    BackpressureStrategy, Config, FileName, LogLevel, NodeBuilder, Path, SemanticString, ServiceName,
    SignalHandlingMode, ipc_threadsafe, set_log_level,
};
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use launcher::shm::attached::{Attached, HeapObjects, Peers};
use launcher::shm::memory::{RegionError, directory};
use launcher::shm::ring::step::reach;
use launcher::shm::ring::{
    Consumer, Full, Link, LinkSpec, MESSAGE_WORDS, Message, PeerFault, Producer, SegmentSpec, Step,
    TechniqueInfo,
};
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

type Ipc = ipc_threadsafe::Service;

/// How long an end waits for another that is making the service.
const PATIENCE: Duration = Duration::from_secs(10);
/// Words that are written before the middle of a push.
const HALF: usize = MESSAGE_WORDS / 2;

/// The technique `iceoryx2`: a publish-subscribe service of that crate.
pub struct Iceoryx2;

/// What the ends of a hand-off in one process share.
struct Hub {
    service: PortFactory<Ipc, Message, u64>,
    _node: Node<Ipc>,
}

/// The sending end of the technique `iceoryx2`.
pub struct Sender {
    publisher: Publisher<Ipc, Message, u64>,
    /// Content of a header: the producer's index, and its process.
    whose: u64,
    _hub: Arc<Hub>,
}

/// The receiving end of the technique `iceoryx2`.
pub struct Receiver {
    subscriber: Subscriber<Ipc, Message, u64>,
    _hub: Arc<Hub>,
    /// Whose each publisher is, of those that have sent something.
    known: Vec<(UniquePublisherId, usize)>,
    producers: usize,
    peers: Box<dyn Peers>,
    fault: Option<PeerFault>,
}

/// Converts the crate's error into an error of the segment with that name.
fn refused<E: Debug>(name: &str, what: &'static str) -> impl FnOnce(E) -> RegionError {
    let name = name.to_owned();
    move |error| RegionError::Os { name, what, source: io::Error::other(format!("iceoryx2: {error:?}")) }
}

static HUBS: HeapObjects<Mutex<Option<Arc<Hub>>>> = HeapObjects::new();

impl Hub {
    /// Returns this process's hub of a hand-off; its first end creates it.
    fn attach(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Arc<Self>, RegionError> {
        let hub = HUBS.get_or_create(attached, spec.name, Mutex::default);
        let mut hub = hub.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hub) = &*hub {
            return Ok(Arc::clone(hub));
        }
        let created = Arc::new(Self::create(spec, &attached.name(spec.name))?);
        Ok(Arc::clone(hub.insert(created)))
    }

    /// Creates a hub: a node with files in the hand-off's folder.
    fn create(spec: &LinkSpec<'_>, name: &str) -> Result<Self, RegionError> {
        set_log_level(LogLevel::Error);
        let mut config = Config::default();
        let path = directory::path(name).display().to_string();
        config.global.set_root_path(&Path::new(path.as_bytes()).map_err(refused(name, "use its folder"))?);
        config.global.creation_timeout = PATIENCE;
        let prefix = FileName::new(format!("{name}.").as_bytes());
        config.global.prefix = prefix.map_err(refused(name, "name memory like it"))?;
        // The launcher and the roles have handlers of their own.
        let node = NodeBuilder::new().config(&config).signal_handling_mode(SignalHandlingMode::Disabled);
        let node = node.create::<Ipc>().map_err(refused(name, "make a node in its folder"))?;
        let service = ServiceName::new(spec.name).map_err(refused(name, "name a service like it"))?;
        // Of each producer, one that has died and not been cleared up, and its successor.
        let ports = 2 * spec.producers;
        let service = node
            .service_builder(&service)
            .publish_subscribe::<Message>()
            .user_header::<u64>()
            .enable_safe_overflow(false)
            .history_size(0)
            .subscriber_max_buffer_size(spec.capacity as usize)
            .subscriber_max_borrowed_samples(1)
            .max_publishers(ports)
            .max_subscribers(1)
            .max_nodes(ports + 1)
            .open_or_create();
        Ok(Self { service: service.map_err(refused(name, "make a service of it"))?, _node: node })
    }
}

impl Producer for Sender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        reach(at, Step::Entered)?;
        // No sample to loan: all are in flight.
        let mut sample = self.publisher.loan().map_err(|_| Full)?;
        *sample.user_header_mut() = self.whose;
        sample.payload_mut()[..HALF].copy_from_slice(&message[..HALF]);
        reach(at, Step::HalfWritten)?;
        sample.payload_mut()[HALF..].copy_from_slice(&message[HALF..]);
        reach(at, Step::Written)?;
        match sample.send() {
            Ok(1..) => {
                let _ = at(Step::Published);
                Ok(())
            }
            // Not delivered: the queue is full, or the subscriber is missing.
            _ => Err(Full),
        }
    }
}

impl Receiver {
    /// Returns the producer of a publisher; `None`, with a fault, if no process was started for it.
    #[inline]
    fn producer(&mut self, origin: UniquePublisherId, whose: u64) -> Option<usize> {
        let known = self.known.iter().find(|(publisher, _)| *publisher == origin);
        match known {
            Some((_, producer)) => Some(*producer),
            None => self.look_up(origin, whose),
        }
    }

    #[cold]
    fn look_up(&mut self, origin: UniquePublisherId, whose: u64) -> Option<usize> {
        let (index, pid) = ((whose >> 32) as usize, whose as u32);
        let producer =
            Some(index).filter(|index| *index < self.producers && self.peers.producer(*index) == Some(pid));
        match producer {
            Some(producer) => self.known.push((origin, producer)),
            None => self.fault = Some(PeerFault::Stranger { pid: pid.into() }),
        }
        producer
    }
}

impl Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // An error is a publisher that cannot be connected to; it is tried again at the next poll.
        let sample = self.subscriber.receive().ok()??;
        let (message, whose, origin) = (*sample.payload(), *sample.user_header(), sample.origin());
        drop(sample);
        self.producer(origin, whose).map(|producer| (Some(producer), message))
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take().map(|fault| (None, fault))
    }

    fn retire(&mut self, _: usize) -> bool {
        // It shows whether a message waits, not whose.
        matches!(self.subscriber.has_samples(), Ok(false))
    }

    fn renew(&mut self, producer: usize) {
        self.known.retain(|(_, known)| *known != producer);
    }
}

impl Link for Iceoryx2 {
    const INFO: TechniqueInfo = crate::record("iceoryx2");

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
        let hub = Hub::attach(spec, attached)?;
        let name = attached.name(spec.name);
        let publisher = hub
            .service
            .publisher_builder()
            .backpressure_strategy(BackpressureStrategy::DiscardData)
            .max_loaned_samples(1)
            .create()
            .map_err(refused(&name, "make a publisher of it"))?;
        let whose = (index as u64) << 32 | u64::from(std::process::id());
        Ok(Sender { publisher, whose, _hub: hub })
    }

    fn consumer(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        let hub = Hub::attach(spec, attached)?;
        let name = attached.name(spec.name);
        let subscriber =
            hub.service.subscriber_builder().create().map_err(refused(&name, "make a subscriber of it"))?;
        let peers = attached.peers(spec.name);
        Ok(Receiver {
            subscriber,
            _hub: hub,
            known: Vec::new(),
            producers: spec.producers,
            peers,
            fault: None,
        })
    }
}
