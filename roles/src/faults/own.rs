//! Faults that a strategy does to itself, at a time or within the push of an order.
//!
//! Two wrappers, used only for such a strategy; all others run the code that they always run.
//!
//! | wrapper | around | when |
//! |---|---|---|
//! | [`FaultyProducer`] | the technique's producer | at a step of the push of an order |
//! | [`FaultyAgent`] | the strategy's agent | at the first duty cycle after a time |
//!
//! Only the first incarnation has faults: one that was started again is healthy. What the launcher
//! does by signal is in `launcher::faults::schedule`.

pub use super::acts::Means;
pub use super::acts::{act, forge_headers, lie, scribble_once};
use crate::ends::BoxedProducer;
use crate::faults::by_signal;
use crate::faults::takings::Place;
use core::ops::ControlFlow;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::plan::{FaultKind, Isolation, Plan, Role, Target, When};
use protocol::stamps::StampLog;
use protocol::status::StatusWriter;
use protocol::topology::{self, Segment};
use protocol::wire::{Message, Order, OrderId};
use shm::attached::Access;
use shm::memory::{AtomicWords, SHM_DIR};
use shm::ring::{Full, Producer, Step};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use system::clock::Clock;

/// How many orders one duty cycle of a flood tries to push.
const FLOOD_BATCH: usize = 1024;
/// How long their venue keeps them: so that they are open all at once, and the limit of open orders
/// is passed.
const FLOOD_DELAY_NS: u64 = 10_000_000_000;

/// Where a push is left by who holds its place: it is claimed, or its own, and nothing shows the
/// message yet.
pub const HOLDS_AT: [Step; 3] = [Step::Claimed, Step::HalfWritten, Step::Written];

/// How a strategy does a fault to itself: `act` in a process. Returns only where the strategy goes
/// on.
pub type Act = fn(FaultKind, &mut Means);

/// The faults of one strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFaults {
    strategy: u16,
    venues: u16,
    /// The strategy shares its process, so its memory is not limited yet.
    is_thread: bool,
    /// Nanoseconds after the start, the last first.
    pub at: Vec<(u64, FaultKind)>,
    /// What is due at which step of which order's push.
    pub pushes: Vec<(u64, Step, FaultKind)>,
    /// What it knows of its surroundings.
    place: Place,
}

impl OwnFaults {
    /// What this incarnation of a strategy does to itself; `None`: nothing.
    pub fn of(plan: &Plan, strategy: u16, epoch: u16) -> Option<Self> {
        let (mut at, mut pushes) = (Vec::new(), Vec::new());
        let mine = |fault: &&protocol::plan::Fault| {
            epoch == 0 && fault.target == Target::Strategy(strategy) && !by_signal(fault)
        };
        for fault in plan.faults.iter().filter(mine) {
            match fault.when {
                When::At { ns } => at.push((ns, fault.kind)),
                When::Push { order, step } => pushes.push((order, step, fault.kind)),
            }
        }
        if at.is_empty() && pushes.is_empty() {
            return None;
        }
        at.sort_by_key(|(ns, _)| core::cmp::Reverse(*ns));
        let (venues, is_thread) = (plan.trading().venues, plan.isolation == Isolation::Thread);
        let role = Role::Strategy(strategy);
        let is_own = |segment: &Segment| segment.access([role]) == Some(Access::Write);
        let path = |segment: Segment| PathBuf::from(SHM_DIR).join(plan.segment_name(&segment.spec.name));
        let own = topology::segments(plan).into_iter().filter(is_own).map(path).collect();
        let place = Place { folder: plan.folder.clone().into(), launcher: plan.launcher_pid, own };
        Some(Self { strategy, venues, is_thread, at, pushes, place })
    }

    /// The technique's producer, with the faults within its pushes.
    pub fn producer(&self, producer: BoxedProducer, act: Act) -> FaultyProducer {
        let means = Means::new(self.strategy, self.is_thread, self.place.clone());
        let (strategy, venues, pushes) = (self.strategy, self.venues, self.pushes.clone());
        FaultyProducer(Arc::new(Mutex::new(Shared {
            strategy,
            venues,
            producer,
            pushes,
            next_sequence: 0,
            is_held: false,
            means,
            act,
        })))
    }

    /// The strategy's agent, whose session has (a clone of) that producer, with the faults at a
    /// time.
    pub fn agent<A>(self, agent: A, producer: FaultyProducer) -> FaultyAgent<A> {
        FaultyAgent { agent, producer, at: self.at }
    }
}

/// What both wrappers share. Only one thread ever has it.
struct Shared {
    strategy: u16,
    venues: u16,
    producer: BoxedProducer,
    /// What is due at which step of which order's push.
    pushes: Vec<(u64, Step, FaultKind)>,
    /// The sequence of the first order that was not pushed yet.
    next_sequence: u64,
    /// A push was left in its middle: this producer pushes nothing more.
    is_held: bool,
    means: Means,
    act: Act,
}

/// A producer with faults at steps of a push.
#[derive(Clone)]
pub struct FaultyProducer(Arc<Mutex<Shared>>);

impl FaultyProducer {
    /// What the process can write, for scribbling over it, and the status of its own thread, for
    /// lies.
    pub fn arm(&self, writable: Vec<AtomicWords>, status: StatusWriter) {
        let mut shared = self.shared();
        (shared.means.writable, shared.means.status) = (writable, Some(status));
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().expect("a thread that panics ends its process")
    }
}

impl Producer for FaultyProducer {
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        let mut shared = self.shared();
        let Shared { producer, pushes, next_sequence, is_held, means, act, .. } = &mut *shared;
        if *is_held {
            return Err(Full);
        }
        let order = Order::from_message(*message).map_or(u64::MAX, |order| order.id.sequence());
        if means.floods || pushes.contains(&(order, Step::Entered, FaultKind::Flood)) {
            // The flood takes over from here: this order waits for it, for ever.
            means.floods = true;
            return Err(Full);
        }
        if means.loses || pushes.contains(&(order, Step::Entered, FaultKind::Lose)) {
            means.loses = true;
            return Ok(());
        }
        producer.try_push_with(message, &mut |step| {
            pushes.retain(|(producer, place, kind)| {
                let is_due = (*producer, *place) == (order, step);
                if is_due {
                    act(*kind, means);
                }
                !is_due
            });
            if means.holds && HOLDS_AT.contains(&step) {
                *is_held = true;
                return ControlFlow::Break(());
            }
            at(step)
        })?;
        *next_sequence = order.wrapping_add(1);
        Ok(())
    }

    fn withdraw(&mut self) {
        let mut shared = self.shared();
        // Who was left in the middle of a push has not come to its end.
        if !shared.is_held {
            shared.producer.withdraw();
        }
    }
}

impl Shared {
    /// Pushes well-formed orders until the ring is full or it is enough for a duty cycle; how many.
    fn flood(&mut self) -> usize {
        for pushed in 0..FLOOD_BATCH {
            let order = Order {
                delay_ns: FLOOD_DELAY_NS,
                price: 1,
                quantity: 1,
                ..Order::new(
                    OrderId::new(self.strategy, 0, self.next_sequence),
                    (self.next_sequence % u64::from(self.venues)) as u16,
                )
            };
            if self.producer.try_push(&order.to_message()).is_err() {
                return pushed;
            }
            self.next_sequence += 1;
        }
        FLOOD_BATCH
    }
}

/// A strategy with faults at a time, that leaks or floods from then on.
pub struct FaultyAgent<A> {
    agent: A,
    producer: FaultyProducer,
    /// What is due when, in nanoseconds after the start, the last first.
    at: Vec<(u64, FaultKind)>,
}

impl<C: Clock, A: Agent<C>> Agent<C> for FaultyAgent<A> {
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut shared = self.producer.shared();
        while self.at.last().is_some_and(|(ns, _)| cycle.time.at(*ns) <= cycle.now) {
            if let Some((_, kind)) = self.at.pop() {
                (shared.act)(kind, &mut shared.means);
            }
        }
        shared.means.leak();
        shared.means.take();
        if shared.means.floods {
            // Neither reports are taken nor limits kept. It looks alive: its duty cycles go on.
            return shared.flood().max(1);
        }
        drop(shared);
        self.agent.duty_cycle(cycle)
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.agent.next_deadline(draining)
    }

    fn finished(&self, draining: bool) -> bool {
        self.agent.finished(draining)
    }

    fn failure(&self) -> Option<&str> {
        self.agent.failure()
    }

    fn seal(&self, log: &mut StampLog) {
        self.agent.seal(log);
    }

    fn keep_warm(&self, round: usize) {
        self.agent.keep_warm(round);
    }

    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.agent.publish(slots);
    }
}
