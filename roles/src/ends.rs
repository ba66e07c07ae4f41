//! The two ends of a technique as values: how each is attached, and the types that they have then.
//!
//! | ends | their types | where |
//! |---|---|---|
//! | [`Ends::typed`] | the technique's own: pushes and pops are inlined into the agents' loops | techniques in memory, in release builds |
//! | [`Ends::boxed`] | one pair for all techniques: a dynamic call a message | debug builds; techniques through the kernel, whose messages cost a system call each; faults; the simulation |
//!
//! What is built from ends is compiled once for each pair of types. So boxed ends make one agent of
//! those of all techniques.

use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::{
    Allocation, BlockedSlot, Consumer, Full, Link, LinkSpec, Message, PeerFault, Producer, Step,
};

type AttachProducer<P> = fn(&LinkSpec, usize, &mut Attached<'_>) -> Result<P, RegionError>;
type AttachConsumer<C> = fn(&LinkSpec, &mut Attached<'_>) -> Result<C, RegionError>;

/// How the ends of a technique are attached: see [`Link`].
pub struct Ends<P, C> {
    /// [`Link::producer`].
    pub producer: AttachProducer<P>,
    /// [`Link::inherit`].
    pub inherit: AttachProducer<P>,
    /// [`Link::consumer`].
    pub consumer: AttachConsumer<C>,
    /// [`Link::resume`].
    pub resume: AttachConsumer<C>,
}

impl<P, C> Clone for Ends<P, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, C> Copy for Ends<P, C> {}

impl<P, C> Ends<P, C> {
    /// The ends of that technique.
    pub const fn typed<L: Link<Producer = P, Consumer = C>>() -> Self {
        Self { producer: L::producer, inherit: L::inherit, consumer: L::consumer, resume: L::resume }
    }
}

/// The ends of any technique.
pub type BoxedEnds = Ends<BoxedProducer, BoxedConsumer>;

impl BoxedEnds {
    /// The ends of that technique, boxed.
    pub const fn boxed<L: Link>() -> Self {
        Self {
            producer: |spec, index, attached| L::producer(spec, index, attached).map(BoxedProducer::new),
            inherit: |spec, index, attached| L::inherit(spec, index, attached).map(BoxedProducer::new),
            consumer: |spec, attached| L::consumer(spec, attached).map(BoxedConsumer::new),
            resume: |spec, attached| L::resume(spec, attached).map(BoxedConsumer::new),
        }
    }
}

/// The ends with which the loops for a technique in memory are compiled. In release builds they are
/// the technique's own: no dynamic call stands between a measured loop and its ring, as the type
/// says.
#[cfg(not(debug_assertions))]
pub(crate) const fn measured<L: Link>() -> Ends<L::Producer, L::Consumer> {
    Ends::typed::<L>()
}

/// The ends with which the loops for a technique in memory are compiled. In debug builds nothing is
/// measured: boxed ones.
#[cfg(debug_assertions)]
pub(crate) const fn measured<L: Link>() -> BoxedEnds {
    BoxedEnds::boxed::<L>()
}

/// What [`BoxedProducer`] calls of a producer.
trait AnyProducer: Send {
    fn try_push(&mut self, message: &Message) -> Result<(), Full>;
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full>;
    fn try_push_many(&mut self, messages: &[Message]) -> usize;
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

    fn try_push_many(&mut self, messages: &[Message]) -> usize {
        Producer::try_push_many(self, messages)
    }

    fn withdraw(&mut self) {
        Producer::withdraw(self);
    }
}

/// The sending end of any technique.
pub struct BoxedProducer(Box<dyn AnyProducer>);

impl BoxedProducer {
    /// That producer behind a dynamic call.
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

    fn try_push_many(&mut self, messages: &[Message]) -> usize {
        self.0.try_push_many(messages)
    }

    fn withdraw(&mut self) {
        self.0.withdraw();
    }
}

/// The receiving end of any technique.
pub struct BoxedConsumer(Box<dyn Consumer>);

impl BoxedConsumer {
    /// That consumer behind a dynamic call.
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

    fn revive(&mut self, producer: usize) {
        self.0.revive(producer);
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
