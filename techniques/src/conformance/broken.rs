//! Rings with one fault each: what the suite must find, and what a run must find if it ever carries
//! orders through one. They are good rings whose consumer spoils every hundredth message, or
//! forgets the dead.

use core::marker::PhantomData;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::spsc_mux::SpscMux;
use shm::ring::{
    Allocation, BlockedSlot, Consumer, Link, LinkSpec, MESSAGE_WORDS, Message, PeerFault, SegmentSpec,
    TechniqueInfo,
};

/// Looks in vain that a message which was kept back waits for another one of its producer: long
/// enough for a strategy that sends each millisecond, and a run that ends gets all.
const PATIENCE: u32 = 10_000;

/// A message as a consumer gives it out.
type Popped = (Option<usize>, Message);

/// What a broken ring does to a message.
pub trait Spoil: Send + 'static {
    /// The name of the technique.
    const NAME: &'static str;

    /// Whether the consumer mends what a dead producer has left.
    const RETIRES: bool = true;

    /// Whether a dead producer's memory is made anew for its successor.
    const RENEWS: bool = true;

    /// From this producer on the consumer finds nothing at its first look at each message.
    const HIDES: usize = usize::MAX;

    /// Spoils a message: what comes out now, and what comes out later: after it, or if nothing
    /// comes out now, after the next one of the same producer (or when that has not come for a long
    /// time).
    fn spoil(message: Popped, before: &Message) -> (Option<Popped>, Option<Popped>);
}

/// Gives it out twice.
pub struct Doubles;
/// Never gives it out.
pub struct Drops;
/// Gives it out after the next one of the same producer.
pub struct Reorders;
/// Gives it out with half of the words of the one before.
pub struct Tears;
/// Gives those of the producers behind the first 64 out with the second look.
pub struct Hides;
/// Does nothing to a message, and leaves what a dead producer has left as it is.
pub struct Neglects;

/// Does nothing to a message, and hands a dead producer's memory to its successor as it is.
pub struct Remembers;

impl Spoil for Doubles {
    const NAME: &'static str = "broken-doubles";

    fn spoil(message: Popped, _: &Message) -> (Option<Popped>, Option<Popped>) {
        (Some(message), Some(message))
    }
}

impl Spoil for Drops {
    const NAME: &'static str = "broken-drops";

    fn spoil(_: Popped, _: &Message) -> (Option<Popped>, Option<Popped>) {
        (None, None)
    }
}

impl Spoil for Reorders {
    const NAME: &'static str = "broken-reorders";

    fn spoil(message: Popped, _: &Message) -> (Option<Popped>, Option<Popped>) {
        (None, Some(message))
    }
}

impl Spoil for Tears {
    const NAME: &'static str = "broken-tears";

    fn spoil((from, mut message): Popped, before: &Message) -> (Option<Popped>, Option<Popped>) {
        message[MESSAGE_WORDS / 2..].copy_from_slice(&before[MESSAGE_WORDS / 2..]);
        (Some((from, message)), None)
    }
}

impl Spoil for Hides {
    const NAME: &'static str = "broken-hides";
    const HIDES: usize = 64;

    fn spoil(message: Popped, _: &Message) -> (Option<Popped>, Option<Popped>) {
        (Some(message), None)
    }
}

impl Spoil for Neglects {
    const NAME: &'static str = "broken-neglects";
    const RETIRES: bool = false;

    fn spoil(message: Popped, _: &Message) -> (Option<Popped>, Option<Popped>) {
        (Some(message), None)
    }
}

impl Spoil for Remembers {
    const NAME: &'static str = "broken-remembers";
    const RENEWS: bool = false;

    fn spoil(message: Popped, _: &Message) -> (Option<Popped>, Option<Popped>) {
        (Some(message), None)
    }
}

/// The ring `T`, spoilt.
pub struct Broken<S, T = SpscMux>(PhantomData<(S, T)>);

/// Its consumer.
pub struct Receiver<S, C> {
    inner: C,
    popped: u64,
    before: Message,
    late: Option<Popped>,
    is_due: bool,
    /// Looks in vain that it goes on waiting for another message of its producer; 0: it waits for
    /// none.
    patience: u32,
    spoil: PhantomData<S>,
}

impl<S: Spoil, C: Consumer> Consumer for Receiver<S, C> {
    fn try_pop(&mut self) -> Option<Popped> {
        if std::mem::take(&mut self.is_due) {
            return self.late.take();
        }
        let Some(message) = self.inner.try_pop() else {
            self.patience = self.patience.saturating_sub(1);
            return if self.patience == 0 { self.late.take() } else { None };
        };
        if message.0.is_some_and(|producer| producer >= S::HIDES) {
            (self.late, self.is_due) = (Some(message), true);
            return None;
        }
        // What was kept back comes behind this one.
        self.is_due = self.late.is_some_and(|(producer, _)| self.patience == 0 || producer == message.0);
        self.popped += 1;
        let before = std::mem::replace(&mut self.before, message.1);
        if !self.popped.is_multiple_of(100) || self.late.is_some() {
            return Some(message);
        }
        let (now, late) = S::spoil(message, &before);
        (self.late, self.patience) = (late, if now.is_none() { PATIENCE } else { 0 });
        now.or_else(|| self.try_pop())
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.inner.take_fault()
    }

    fn retire(&mut self, producer: usize) -> bool {
        !S::RETIRES || self.inner.retire(producer)
    }

    fn revive(&mut self, producer: usize) {
        self.inner.revive(producer);
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

impl<S: Spoil, T: Link> Link for Broken<S, T> {
    const INFO: TechniqueInfo = TechniqueInfo { name: S::NAME, reference: None, resumable: false, ..T::INFO };

    type Producer = T::Producer;
    type Consumer = Receiver<S, T::Consumer>;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        let mut segments = T::segments(spec);
        if !S::RENEWS {
            // No producer's own: nobody makes it anew.
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
        Ok(Receiver {
            inner,
            popped: 0,
            before: [0; MESSAGE_WORDS],
            late: None,
            is_due: false,
            patience: 0,
            spoil: PhantomData,
        })
    }
}
