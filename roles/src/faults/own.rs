//! Faults that a strategy inflicts on itself, at a time or within the push of an order.
//!
//! Two wrappers, used only for such a strategy and one whose heap it writes to; all others run the
//! code that they always run.
//!
//! | wrapper | around | when |
//! |---|---|---|
//! | [`FaultyProducer`] | the technique's producer | at a step of the push of an order |
//! | [`FaultyAgent`] | the strategy's agent | at the first duty cycle after a time |
//!
//! Only the first incarnation has faults. Faults that the launcher performs by signal are in
//! `supervision::faults`.

pub use super::acts::{FaultContext, forge_headers, forge_status, perform, scribble_once};
use crate::faults::heap::HeapBlock;
use crate::faults::resources::Surroundings;
use crate::faults::storm::{Disturbance, Storms};
use crate::technique_ends::BoxedProducer;
use core::ops::ControlFlow;
use protocol::agent::{Agent, Cycle};
use protocol::counters::CounterSlots;
use protocol::faults::{HOLD_STEPS, is_by_signal};
use protocol::index::StrategyIndex;
use protocol::labels::StrategyCounter;
use protocol::plan::{FaultKind, FaultTarget, FaultTime, Isolation, Plan, Role};
use protocol::stamps::StampLog;
use protocol::status::StatusWriter;
use protocol::topology::{self, RunSegment, SegmentPurpose};
use protocol::trading::SUBMIT;
use protocol::wire::{Message, Order, OrderId, OrderRequest};
use shm::attached::{Access, Attached};
use shm::memory::SHM_DIR;
use shm::ring::{Full, Producer, Step};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use system::clock::Clock;

/// Number of orders that one duty cycle of a flood tries to push.
const FLOOD_BATCH: usize = 1024;
/// Delay of the flood's orders at their venue: long, so that the limit of open orders is exceeded.
const FLOOD_DELAY_NS: u64 = 10_000_000_000;

/// A function that executes an injected fault of a strategy. Returns only if the strategy
/// continues.
pub type FaultAction = fn(FaultKind, &mut FaultContext);

/// The faults that one strategy inflicts on itself, from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFaults {
    strategy: u16,
    venues: u16,
    /// The strategy is a thread of the engine, so its process's memory is not limited yet.
    is_thread: bool,
    /// Faults by time in nanoseconds after the start, latest first.
    pub timed: Vec<(u64, FaultKind)>,
    /// Disturbances: from when to when and how often, in nanoseconds after the start.
    disturbances: Vec<Disturbance>,
    /// Faults by order sequence and step of its push.
    pub pushes: Vec<(u64, Step, FaultKind)>,
    surroundings: Surroundings,
    /// The segments of others that its wild writes overwrite, where they are mapped.
    foreign: Vec<String>,
    /// The strategy is a thread of the engine's process.
    is_engine_thread: bool,
    /// Its own heap is what another strategy's fault overwrites or reads.
    is_target: bool,
    /// The block of another strategy's heap that it overwrites or reads.
    foreign_heap: Option<String>,
}

/// Returns the strategy that another one's wild writes hit.
fn target_of(plan: &Plan, strategy: StrategyIndex) -> Option<StrategyIndex> {
    StrategyIndex::first(plan.trading().strategies).find(|other| *other != strategy)
}

/// Returns the name of the block on a strategy's heap that is written to.
fn heap_block(strategy: StrategyIndex) -> String {
    format!("heap-{}", Role::Strategy(strategy))
}

const fn is_of_heap(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::WildHeap | FaultKind::ReadOthers)
}

/// Returns the names of the segments of others that a strategy's fault of a kind overwrites or
/// reads.
fn foreign_segments(plan: &Plan, strategy: StrategyIndex, kind: FaultKind) -> Vec<String> {
    let other = target_of(plan, strategy);
    let has_role = |thread: usize, role| plan.threads[thread].roles.contains(&role);
    let is_overwritten = |segment: &RunSegment| match (kind, segment.purpose, other) {
        (FaultKind::WildRing | FaultKind::ReadOthers, SegmentPurpose::Link(link), Some(other)) => {
            let is_submit = plan.links[link].name == SUBMIT;
            is_submit && segment.access([Role::Strategy(other)]) == Some(Access::Write)
        }
        (FaultKind::WildLog | FaultKind::ReadOthers, SegmentPurpose::Thread(thread), Some(other)) => {
            has_role(thread, Role::Strategy(other))
        }
        (FaultKind::WildEngine, SegmentPurpose::Thread(thread), _) => has_role(thread, Role::Orchestrator),
        _ => false,
    };
    let segments = topology::segments(plan).into_iter();
    segments.filter(is_overwritten).map(|segment| segment.spec.name).collect()
}

impl OwnFaults {
    /// Returns the faults that an incarnation of a strategy inflicts on itself; `None` if there are
    /// none.
    pub fn for_strategy(plan: &Plan, strategy: StrategyIndex, epoch: u16) -> Option<Self> {
        let (mut timed, mut disturbances, mut pushes) = (Vec::new(), Vec::new(), Vec::new());
        let mine = |fault: &&protocol::plan::Fault| {
            epoch == 0 && fault.target == FaultTarget::Strategy(strategy) && !is_by_signal(fault)
        };
        for fault in plan.faults.iter().filter(mine) {
            match fault.when {
                FaultTime::At { ns } if fault.kind.is_disturbance() => {
                    let until_ns = fault.lasts_ns.map_or(u64::MAX, |lasts| ns.saturating_add(lasts));
                    let every_ns = fault.every_ns.unwrap_or(0);
                    disturbances.push(Disturbance { kind: fault.kind, from_ns: ns, until_ns, every_ns });
                }
                FaultTime::At { ns } => timed.push((ns, fault.kind)),
                FaultTime::Push { order, step } => pushes.push((order, step, fault.kind)),
            }
        }
        let hits_it = |fault: &protocol::plan::Fault| match fault.target {
            FaultTarget::Strategy(other) => {
                other != strategy && is_of_heap(fault.kind) && target_of(plan, other) == Some(strategy)
            }
            _ => false,
        };
        let is_target = epoch == 0 && plan.faults.iter().any(hits_it);
        if timed.is_empty() && disturbances.is_empty() && pushes.is_empty() && !is_target {
            return None;
        }
        timed.sort_by_key(|(ns, _)| core::cmp::Reverse(*ns));
        let isolation = plan.isolation.kind_of(strategy);
        let (venues, is_thread) = (plan.trading().venues, isolation == Isolation::Thread);
        let role = Role::Strategy(strategy);
        let is_writable = |segment: &RunSegment| segment.access([role]) == Some(Access::Write);
        let path = |name: &str| PathBuf::from(SHM_DIR).join(plan.segment_name(name));
        let writable_segments = topology::segments(plan)
            .into_iter()
            .filter(is_writable)
            .map(|segment| path(&segment.spec.name))
            .collect();
        let kinds = || {
            let of_pushes = pushes.iter().map(|(_, _, kind)| *kind);
            timed.iter().map(|(_, kind)| *kind).chain(of_pushes)
        };
        let foreign: Vec<String> = kinds().flat_map(|kind| foreign_segments(plan, strategy, kind)).collect();
        let foreign_heap = target_of(plan, strategy).filter(|_| kinds().any(is_of_heap)).map(heap_block);
        let surroundings = Surroundings {
            folder: plan.folder.clone().into(),
            launcher: plan.launcher_pid,
            writable_segments,
            others_segments: foreign.iter().map(|name| path(name)).collect(),
            engine_core: plan.thread_of(Role::Orchestrator).and_then(|thread| plan.threads[thread].core),
        };
        Some(Self {
            strategy: strategy.0,
            venues,
            is_thread,
            timed,
            disturbances,
            pushes,
            surroundings,
            foreign,
            is_engine_thread: isolation.is_thread(),
            is_target,
            foreign_heap,
        })
    }

    /// Wraps the strategy's producer so that its faults occur within its pushes.
    pub fn producer(&self, producer: BoxedProducer, act: FaultAction) -> FaultyProducer {
        let context = FaultContext::new(self.strategy, self.is_thread, self.surroundings.clone())
            .as_engine_thread(self.is_engine_thread);
        let faults = self.clone();
        let state = FaultyState { faults, producer, next_sequence: 0, is_held: false, context, act };
        FaultyProducer(Arc::new(Mutex::new(state)))
    }

    /// Wraps the strategy's agent so that its faults occur at their times. Its session has a clone
    /// of `producer`.
    pub fn agent<A>(self, agent: A, producer: FaultyProducer) -> FaultyAgent<A> {
        let storms = Storms::new(self.disturbances, self.surroundings);
        FaultyAgent { agent, producer, timed: self.timed, storms }
    }
}

/// The state that both wrappers share, on one thread.
struct FaultyState {
    faults: OwnFaults,
    producer: BoxedProducer,
    /// Sequence of the next order to push.
    next_sequence: u64,
    /// A push was abandoned: this producer pushes nothing more.
    is_held: bool,
    context: FaultContext,
    act: FaultAction,
}

/// A wrapper of a strategy's producer whose pushes may be abandoned or hang halfway, as an injected
/// fault requests.
#[derive(Clone)]
pub struct FaultyProducer(Arc<Mutex<FaultyState>>);

impl FaultyProducer {
    /// Allocates the heap block that another strategy's injected fault accesses, if this strategy
    /// is the target of one. Called where the strategy's own memory is allocated.
    pub fn expose_heap(&self, attached: &mut Attached<'_>) {
        let mut shared = self.shared();
        if shared.faults.is_target {
            let name = heap_block(StrategyIndex(shared.faults.strategy));
            shared.context.own_heap = Some(HeapBlock::register(attached, &name));
        }
    }

    /// Gives the injected faults access to the process's memory and to its thread's status block.
    pub fn arm(&self, attached: &Attached<'_>, status: StatusWriter) {
        let mut shared = self.shared();
        let foreign = shared.faults.foreign.iter().filter_map(|name| attached.mapped(name)).collect();
        let foreign_heap = shared.faults.foreign_heap.as_ref();
        let foreign_heap = foreign_heap.and_then(|name| HeapBlock::find(attached, name));
        let context = &mut shared.context;
        (context.foreign, context.foreign_heap) = (foreign, foreign_heap);
        (context.writable, context.read_only) = (attached.writable(), attached.read_only());
        context.status = Some(status);
    }

    fn shared(&self) -> MutexGuard<'_, FaultyState> {
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
        let FaultyState { faults: OwnFaults { pushes, .. }, producer, next_sequence, is_held, context, act } =
            &mut *shared;
        if *is_held {
            return Err(Full);
        }
        let order = Order::from_message(*message).map_or(u64::MAX, |order| order.id.sequence());
        if context.should_flood || pushes.contains(&(order, Step::Entered, FaultKind::Flood)) {
            // The flood takes over from here: this order is never pushed.
            context.should_flood = true;
            return Err(Full);
        }
        if context.should_lose || pushes.contains(&(order, Step::Entered, FaultKind::Lose)) {
            context.should_lose = true;
            return Ok(());
        }
        producer.try_push_with(message, &mut |step| {
            pushes.retain(|(producer, due_step, kind)| {
                let is_due = (*producer, *due_step) == (order, step);
                if is_due {
                    act(*kind, context);
                }
                !is_due
            });
            if context.should_hold_claim && HOLD_STEPS.contains(&step) {
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
        // An abandoned push never ends.
        if !shared.is_held {
            shared.producer.withdraw();
        }
    }
}

impl FaultyState {
    /// Pushes valid orders until the ring is full or the batch is complete. Returns the number
    /// pushed.
    fn flood(&mut self) -> usize {
        for pushed in 0..FLOOD_BATCH {
            let id = OrderId::new(self.faults.strategy, 0, self.next_sequence);
            let venue = (self.next_sequence % u64::from(self.faults.venues)) as u16;
            let order = OrderRequest {
                delay_ns: FLOOD_DELAY_NS,
                price: 1,
                quantity: 1,
                ..OrderRequest::to_venue(venue)
            }
            .with_id(id);
            if self.producer.try_push(&order.to_message()).is_err() {
                return pushed;
            }
            self.next_sequence += 1;
        }
        FLOOD_BATCH
    }
}

/// A strategy's agent into which faults are injected at their times.
pub struct FaultyAgent<A> {
    agent: A,
    producer: FaultyProducer,
    timed: Vec<(u64, FaultKind)>,
    storms: Storms,
}

impl<C: Clock, A: Agent<C>> Agent<C> for FaultyAgent<A> {
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut shared = self.producer.shared();
        while self.timed.last().is_some_and(|(ns, _)| cycle.time.at(*ns) <= cycle.now) {
            if let Some((_, kind)) = self.timed.pop() {
                (shared.act)(kind, &mut shared.context);
            }
        }
        shared.context.check_heap();
        shared.context.leak(cycle.now, &cycle.time);
        shared.context.fill_heap();
        shared.context.take_resources();
        if shared.context.should_flood {
            // Takes no reports and keeps no limits. It seems alive, because its duty cycles
            // continue.
            return shared.flood().max(1);
        }
        drop(shared);
        self.storms.step(cycle);
        self.agent.duty_cycle(cycle)
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.agent.next_deadline(draining).min(self.storms.next_tick())
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

    fn prefetch_hot(&self, round: usize) {
        self.agent.prefetch_hot(round);
    }

    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let slot = slots.clone().next_agent();
        self.agent.publish(slots);
        slot.set(StrategyCounter::Disturbed, self.storms.steps());
    }
}
