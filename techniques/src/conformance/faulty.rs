//! Faulty rings with one fault each, which the conformance suite and the checks of a run must
//! detect. They are correct rings whose consumer corrupts every hundredth message or skips a
//! repair.

use core::marker::PhantomData;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::spsc_mux::SpscMux;
use shm::ring::{
    Allocation, BlockedSlot, Consumer, Link, LinkSpec, MESSAGE_WORDS, Message, PeerFault, SegmentSpec,
    TechniqueInfo,
};

/// Number of empty polls for which a held-back message waits for another one of its producer: long
/// enough for a strategy that sends every millisecond, and a run that ends gets all messages.
const MAX_EMPTY_POLLS: u32 = 10_000;

type PoppedMessage = (Option<usize>, Message);
type Deliveries = (Option<PoppedMessage>, Option<PoppedMessage>);

/// A defect of a deliberately faulty ring, which the conformance suite must detect.
pub trait RingFault: Send + 'static {
    /// The name of the technique with this defect.
    const NAME: &'static str;

    /// `true` if the consumer repairs the ring after a producer's death.
    const RETIRES: bool = true;

    /// `true` if a dead producer's memory is reset for its successor.
    const RESETS: bool = true;

    /// The first producer whose messages the consumer misses at their first poll.
    const HIDES_FROM: usize = usize::MAX;

    /// Whether the technique declares that its ring is bounded, which is true.
    const BOUNDED: bool = true;

    /// Corrupts a received message as the fault does; by default not at all. Returns the message to
    /// deliver now, and one to deliver later: directly after it, or, if none is delivered now,
    /// after the next one of the same producer (or after many empty polls).
    fn corrupt(message: PoppedMessage, _before: &Message) -> Deliveries {
        (Some(message), None)
    }
}

/// A faulty ring's behavior: every hundredth message is delivered twice.
pub struct DuplicatesMessage;
/// A faulty ring's behavior: every hundredth message is never delivered.
pub struct DropsMessage;
/// A faulty ring's behavior: every hundredth message arrives after the next one of the same
/// producer.
pub struct ReordersMessages;
/// A faulty ring's behavior: every hundredth message has half of the words of the previous one.
pub struct TearsMessage;
/// A faulty ring's behavior: messages of producers beyond the first 64 are found only at the second
/// poll.
pub struct HidesMessage;
/// A faulty ring's behavior: a dead producer's ring is never repaired.
pub struct SkipsRetirement;

/// A faulty ring's behavior: a dead producer's memory is passed to its successor without a reset.
pub struct KeepsDeadMemory;

impl RingFault for DuplicatesMessage {
    const NAME: &'static str = "broken-doubles";

    fn corrupt(message: PoppedMessage, _: &Message) -> Deliveries {
        (Some(message), Some(message))
    }
}

impl RingFault for DropsMessage {
    const NAME: &'static str = "broken-drops";

    fn corrupt(_: PoppedMessage, _: &Message) -> Deliveries {
        (None, None)
    }
}

impl RingFault for ReordersMessages {
    const NAME: &'static str = "broken-reorders";

    fn corrupt(message: PoppedMessage, _: &Message) -> Deliveries {
        (None, Some(message))
    }
}

impl RingFault for TearsMessage {
    const NAME: &'static str = "broken-tears";

    fn corrupt((from, mut message): PoppedMessage, before: &Message) -> Deliveries {
        message[MESSAGE_WORDS / 2..].copy_from_slice(&before[MESSAGE_WORDS / 2..]);
        (Some((from, message)), None)
    }
}

impl RingFault for HidesMessage {
    const NAME: &'static str = "broken-hides";
    const HIDES_FROM: usize = 64;
}

impl RingFault for SkipsRetirement {
    const NAME: &'static str = "broken-neglects";
    const RETIRES: bool = false;
}

impl RingFault for KeepsDeadMemory {
    const NAME: &'static str = "broken-remembers";
    const RESETS: bool = false;
}

/// The technique `T` with the injected defect `S`.
pub struct FaultyRing<S, T = SpscMux>(PhantomData<(S, T)>);

/// The receiving end of a technique with an injected defect.
pub struct FaultyReceiver<S, C> {
    inner: C,
    popped: u64,
    before: Message,
    late: Option<PoppedMessage>,
    is_due: bool,
    /// Number of empty polls that the late message still waits for another one of its producer; 0:
    /// it does not wait.
    polls_left: u32,
    fault: PhantomData<S>,
}

impl<S: RingFault, C: Consumer> Consumer for FaultyReceiver<S, C> {
    fn try_pop(&mut self) -> Option<PoppedMessage> {
        if std::mem::take(&mut self.is_due) {
            return self.late.take();
        }
        let Some(message) = self.inner.try_pop() else {
            self.polls_left = self.polls_left.saturating_sub(1);
            return if self.polls_left == 0 { self.late.take() } else { None };
        };
        if message.0.is_some_and(|producer| producer >= S::HIDES_FROM) {
            (self.late, self.is_due) = (Some(message), true);
            return None;
        }
        // The held-back message follows this one.
        self.is_due = self.late.is_some_and(|(producer, _)| self.polls_left == 0 || producer == message.0);
        self.popped += 1;
        let before = std::mem::replace(&mut self.before, message.1);
        if !self.popped.is_multiple_of(100) || self.late.is_some() {
            return Some(message);
        }
        let (now, late) = S::corrupt(message, &before);
        (self.late, self.polls_left) = (late, if now.is_none() { MAX_EMPTY_POLLS } else { 0 });
        now.or_else(|| self.try_pop())
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.inner.take_fault()
    }

    fn retire(&mut self, producer: usize) -> bool {
        !S::RETIRES || self.inner.retire(producer)
    }

    fn renew(&mut self, producer: usize) {
        self.inner.renew(producer);
    }

    fn passed_over(&self) -> u64 {
        self.inner.passed_over()
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        self.inner.check()
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        self.inner.blocked()
    }

    fn allocation(&self) -> Allocation {
        self.inner.allocation()
    }
}

impl<S: RingFault, T: Link> Link for FaultyRing<S, T> {
    const INFO: TechniqueInfo = TechniqueInfo {
        name: S::NAME,
        reference: None,
        consumer_resumable: false,
        bounded: T::INFO.bounded && S::BOUNDED,
        ..T::INFO
    };

    type Producer = T::Producer;
    type Consumer = FaultyReceiver<S, T::Consumer>;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        let mut segments = T::segments(spec);
        if !S::RESETS {
            // Not owned by a producer, so it is never reset.
            segments.iter_mut().for_each(|segment| segment.ends.only = None);
        }
        segments
    }

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<T::Producer, RegionError> {
        T::producer(spec, index, attached)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
        let inner = T::consumer(spec, attached)?;
        Ok(FaultyReceiver {
            inner,
            popped: 0,
            before: [0; MESSAGE_WORDS],
            late: None,
            is_due: false,
            polls_left: 0,
            fault: PhantomData,
        })
    }
}
