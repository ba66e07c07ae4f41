//! The attach functions of a technique's two ends, with typed or boxed results.
//!
//! | ends | calls | used for |
//! |---|---|---|
//! | [`TechniqueEnds::typed`] | inlined into loops | memory techniques in release builds |
//! | [`TechniqueEnds::boxed`] | dynamic | debug builds, kernel techniques, faults, simulation |
//!
//! Code over ends is compiled once per pair of types, so all techniques with boxed ends share one
//! agent.

use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::{
    Allocation, BlockedSlot, Consumer, Full, Link, LinkSpec, Message, PeerFault, Producer, Step,
};

type AttachProducer<P> = fn(&LinkSpec, usize, &mut Attached<'_>) -> Result<P, RegionError>;
type AttachConsumer<C> = fn(&LinkSpec, &mut Attached<'_>) -> Result<C, RegionError>;

/// The functions that attach the sending and the receiving end of a technique, which is a kind of
/// queue between processes: see [`Link`].
pub struct TechniqueEnds<P, C> {
    /// Creates a sending end, as [`Link::producer`] does.
    pub producer: AttachProducer<P>,
    /// Continues a crashed sending end, as [`Link::resume_producer`] does.
    pub resume_producer: AttachProducer<P>,
    /// Creates the receiving end, as [`Link::consumer`] does.
    pub consumer: AttachConsumer<C>,
    /// Continues a crashed receiving end, as [`Link::resume_consumer`] does.
    pub resume_consumer: AttachConsumer<C>,
}

impl<P, C> Clone for TechniqueEnds<P, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, C> Copy for TechniqueEnds<P, C> {}

impl<P, C> TechniqueEnds<P, C> {
    /// Returns functions that attach a technique's ends with their concrete types.
    pub const fn typed<L: Link<Producer = P, Consumer = C>>() -> Self {
        Self {
            producer: L::producer,
            resume_producer: L::resume_producer,
            consumer: L::consumer,
            resume_consumer: L::resume_consumer,
        }
    }
}

/// The functions that attach the ends of any technique (kind of queue) as boxed trait objects.
pub type BoxedEnds = TechniqueEnds<BoxedProducer, BoxedConsumer>;

impl BoxedEnds {
    /// Returns functions that attach a technique's ends as boxed trait objects.
    pub const fn boxed<L: Link>() -> Self {
        Self {
            producer: |spec, index, attached| L::producer(spec, index, attached).map(BoxedProducer::new),
            resume_producer: |spec, index, attached| {
                L::resume_producer(spec, index, attached).map(BoxedProducer::new)
            },
            consumer: |spec, attached| L::consumer(spec, attached).map(BoxedConsumer::new),
            resume_consumer: |spec, attached| L::resume_consumer(spec, attached).map(BoxedConsumer::new),
        }
    }
}

/// Returns the functions with which measured loops attach a technique's ends. In release builds
/// they are the technique's own: no dynamic call is between a measured loop and its ring, as the
/// type shows.
#[cfg(not(debug_assertions))]
pub(crate) const fn measured<L: Link>() -> TechniqueEnds<L::Producer, L::Consumer> {
    TechniqueEnds::typed::<L>()
}

/// Returns the functions with which loops attach a technique's ends in debug builds: behind dynamic
/// calls.
#[cfg(debug_assertions)]
pub(crate) const fn measured<L: Link>() -> BoxedEnds {
    BoxedEnds::boxed::<L>()
}

/// A producer behind dynamic calls, for [`BoxedProducer`].
trait AnyProducer: Send {
    fn try_push(&mut self, message: &Message) -> Result<(), Full>;
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full>;
    fn withdraw(&mut self);
}

impl<P: Producer> AnyProducer for P {
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        Producer::try_push(self, message)
    }

    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        Producer::try_push_with(self, message, &mut |step| at(step))
    }

    fn withdraw(&mut self) {
        Producer::withdraw(self);
    }
}

/// The sending end of any technique (kind of queue), boxed and called dynamically.
pub struct BoxedProducer(Box<dyn AnyProducer>);

impl BoxedProducer {
    /// Wraps a technique's sending end so that it is called dynamically.
    pub fn new(producer: impl Producer + 'static) -> Self {
        Self(Box::new(producer))
    }
}

impl Producer for BoxedProducer {
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        self.0.try_push(message)
    }

    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        self.0.try_push_with(message, at)
    }

    fn withdraw(&mut self) {
        self.0.withdraw();
    }
}

/// The receiving end of any technique (kind of queue), boxed and called dynamically.
pub struct BoxedConsumer(Box<dyn Consumer>);

impl BoxedConsumer {
    /// Wraps a technique's receiving end so that it is called dynamically.
    pub fn new(consumer: impl Consumer + 'static) -> Self {
        Self(Box::new(consumer))
    }
}

impl Consumer for BoxedConsumer {
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_pop()
    }

    fn take(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.take()
    }

    fn release(&mut self) {
        self.0.release();
    }

    fn pass_over(&mut self, producer: usize, taken: u64) -> Result<(), u64> {
        self.0.pass_over(producer, taken)
    }

    fn forget(&mut self, producer: usize) {
        self.0.forget(producer);
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.0.take_fault()
    }

    fn retire(&mut self, producer: usize) -> bool {
        self.0.retire(producer)
    }

    fn renew(&mut self, producer: usize) {
        self.0.renew(producer);
    }

    fn passed_over(&self) -> u64 {
        self.0.passed_over()
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        self.0.check()
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        self.0.blocked()
    }

    fn allocation(&self) -> Allocation {
        self.0.allocation()
    }
}
