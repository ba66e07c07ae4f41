//! The registry that maps names to monomorphised agents: an entry for each strategy and each venue
//! with each technique.
//!
//! It is filled once, at the start of the program; from then on a plan's names lead to functions,
//! each compiled for its types. What is built in is filled in by `Registry::built_in`, which is
//! not generic: no other crate compiles it again. The measured loops of the techniques on the heap
//! are filled in by the crate `heap-techniques`, which is compiled beside this one. A program adds
//! its own techniques with the built-in strategies and venues, and its own strategies and venues
//! with every technique.

use super::agents::{LoopClock, MeasuredClock, RoleAgent};
use super::build::{BuildStrategy, StrategyBuilder, book_agent, strategy_or_faulty, thread_agent};
use super::queue::TechniqueLoops;
use super::role_context::RoleContext;
use super::technique_ends::{BoxedConsumer, BoxedEnds, BoxedProducer, TechniqueEnds, measured};
use anyhow::{Context as _, Result};
use core::any::TypeId;
use gateway::{DelayVenue, InFull, Venue, VenueContext};
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, Role, Trading};
use shm::ring::{Consumer, Link, Producer};
use std::sync::{Arc, OnceLock};
use strategy::{BuiltIn, Context, Strategy};
use system::clock;
use techniques::{RegisterError, Technique, TechniqueVisitor};

/// A list of techniques (kinds of queues between processes) as a type, so that loops can be
/// compiled for each.
pub trait Links: 'static {
    /// Registers the techniques of the list under their names.
    fn register() -> Result<(), RegisterError>;

    /// Calls the visitor with the type of each technique of the list, without the built-in ones.
    fn each_own(visitor: &mut impl TechniqueVisitor);

    /// Calls the visitor with the type of each built-in technique and each technique of the list.
    fn each(visitor: &mut impl TechniqueVisitor) {
        techniques::visit(visitor);
        Self::each_own(visitor);
    }
}

impl Links for () {
    fn register() -> Result<(), RegisterError> {
        Ok(())
    }

    fn each_own(_: &mut impl TechniqueVisitor) {}
}

impl<L: Link, Rest: Links> Links for (L, Rest) {
    fn register() -> Result<(), RegisterError> {
        Rest::register()?;
        Technique::register::<L>().map(drop)
    }

    fn each_own(visitor: &mut impl TechniqueVisitor) {
        Rest::each_own(visitor);
        visitor.visit::<L>();
    }
}

/// A function that creates a strategy of one kind.
pub type MakeStrategy<S> = Arc<dyn Fn(&Context) -> S + Send + Sync>;
/// A function that creates a venue of one kind.
pub type MakeVenue<V> = Arc<dyn Fn(&VenueContext) -> V + Send + Sync>;

/// A function that builds the agent of a thread with the given roles.
pub(super) type BuildThread<K> = Box<
    dyn Fn(&mut RoleContext<'_, '_>, &[Role], &StrategyBuilder<'_, K>) -> Result<Box<dyn RoleAgent<K>>>
        + Send
        + Sync,
>;

/// The functions that build a strategy, or a thread with gateways, for one technique.
pub(super) struct Entry<M, A> {
    name: &'static str,
    technique: Technique,
    /// The measured loops, compiled for the technique ends that [`measured`] selects.
    pub measured: M,
    /// Agents for any clock and for single steps, on boxed ends, so that all techniques share their
    /// code.
    pub any: A,
}

pub(super) type StrategyEntry = Entry<BuildStrategy<MeasuredClock>, BuildStrategy<clock::AnyClock>>;
pub(super) type VenueEntry = Entry<BuildThread<MeasuredClock>, BuildThread<clock::AnyClock>>;

/// What is compiled for one technique alone.
struct TechniqueEntry {
    technique: Technique,
    ends: BoxedEnds,
    /// Its loops are compiled for its own ends, without a dynamic call per message.
    is_typed: bool,
    /// The loops of the queue benchmark.
    loops: TechniqueLoops,
}

/// The strategies, venues and techniques (kinds of queues) from which the roles of a run are built.
#[derive(Default)]
pub struct Registry {
    strategies: Vec<StrategyEntry>,
    venues: Vec<VenueEntry>,
    techniques: Vec<TechniqueEntry>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Adds something on the ends of each technique: those that its measured loops are compiled with,
/// and boxed ones.
trait Fill {
    fn add<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
        boxed: BoxedEnds,
    );
}

/// A visitor of techniques that calls a [`Fill`].
struct OnEach<F>(F);

impl<F: Fill> TechniqueVisitor for OnEach<F> {
    fn visit<L: Link>(&mut self) {
        self.0.add(Technique::from_link::<L>(), measured::<L>(), BoxedEnds::boxed::<L>());
    }

    fn visit_kernel<L: Link>(&mut self) {
        self.0.add(Technique::from_link::<L>(), BoxedEnds::boxed::<L>(), BoxedEnds::boxed::<L>());
    }
}

/// A visitor that adds the built-in techniques with the built-in strategies and venues. Those on
/// the heap get boxed ends: [`Registry::compile_measured`] replaces their loops.
struct AddBuiltIn<'a>(&'a mut Registry);

impl TechniqueVisitor for AddBuiltIn<'_> {
    fn visit<L: Link>(&mut self) {
        OnEach(FillBuiltIn(self.0)).visit::<L>();
    }

    fn visit_kernel<L: Link>(&mut self) {
        OnEach(FillBuiltIn(self.0)).visit_kernel::<L>();
    }

    fn visit_heap<L: Link>(&mut self) {
        self.visit_kernel::<L>();
    }
}

struct FillStrategy<'a, S> {
    name: &'static str,
    make: MakeStrategy<S>,
    registry: &'a mut Registry,
}

impl<S: Strategy + Send + 'static> Fill for FillStrategy<'_, S> {
    fn add<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
        boxed: BoxedEnds,
    ) {
        let measured = build_strategy(ends, Arc::clone(&self.make));
        let any = build_strategy(boxed, Arc::clone(&self.make));
        self.registry.strategies.push(Entry { name: self.name, technique, measured, any });
    }
}

fn build_strategy<K, P, C, S>(ends: TechniqueEnds<P, C>, make: MakeStrategy<S>) -> BuildStrategy<K>
where
    K: LoopClock,
    P: Producer + 'static,
    C: Consumer + 'static,
    S: Strategy + Send + 'static,
{
    Box::new(move |parts, index| strategy_or_faulty(ends, parts, index, &*make))
}

struct FillVenue<'a, V> {
    name: &'static str,
    make: MakeVenue<V>,
    registry: &'a mut Registry,
}

impl<V: Venue + 'static> Fill for FillVenue<'_, V> {
    fn add<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
        boxed: BoxedEnds,
    ) {
        let measured = build_thread(ends, Arc::clone(&self.make));
        let any = build_thread(boxed, Arc::clone(&self.make));
        self.registry.venues.push(Entry { name: self.name, technique, measured, any });
    }
}

fn build_thread<K, P, C, V>(ends: TechniqueEnds<P, C>, make: MakeVenue<V>) -> BuildThread<K>
where
    K: LoopClock,
    P: Producer + 'static,
    C: Consumer + 'static,
    V: Venue + 'static,
{
    Box::new(move |parts, roles, strategy| {
        let make = |_: &mut RoleContext<'_, '_>, context: &VenueContext| Ok(make(context));
        thread_agent(ends, parts, roles, &make, strategy)
    })
}

fn build_book_thread<K, P, C>(ends: TechniqueEnds<P, C>) -> BuildThread<K>
where
    K: LoopClock,
    P: Producer + 'static,
    C: Consumer + 'static,
{
    Box::new(move |parts, roles, strategy| book_agent(ends, parts, roles, strategy))
}

/// Adds the ends, and the built-in strategies and venues.
struct FillBuiltIn<'a>(&'a mut Registry);

impl Fill for FillBuiltIn<'_> {
    fn add<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
        boxed: BoxedEnds,
    ) {
        let registry = &mut *self.0;
        let loops = TechniqueLoops::on_ends(ends);
        registry.techniques.push(TechniqueEntry { technique, ends: boxed, is_typed: is_typed(ends), loops });
        for (name, make) in BuiltIn::ALL {
            FillStrategy { name, make: Arc::new(make), registry }.add(technique, ends, boxed);
        }
        let make = Arc::new(in_full);
        FillVenue { name: Trading::DELAY_VENUE, make, registry }.add(technique, ends, boxed);
        let (measured, any) = (build_book_thread(ends), build_book_thread(boxed));
        registry.venues.push(Entry { name: Trading::BOOK, technique, measured, any });
    }
}

/// Returns `true` if no call of the ends is dynamic.
fn is_typed<P: 'static, C: 'static>(_: TechniqueEnds<P, C>) -> bool {
    TypeId::of::<P>() != TypeId::of::<BoxedProducer>() && TypeId::of::<C>() != TypeId::of::<BoxedConsumer>()
}

fn in_full(context: &VenueContext) -> DelayVenue<InFull> {
    DelayVenue::new(InFull, context)
}

impl Registry {
    /// bulkhead's own strategies and venues with the built-in techniques. Not generic: compiled in
    /// this crate, once.
    #[inline(never)]
    fn built_in() -> Self {
        let mut registry = Self::default();
        techniques::visit(&mut AddBuiltIn(&mut registry));
        registry
    }

    /// Creates a registry of the built-in strategies and venues on the techniques (kinds of queues)
    /// of the list `T` and all built-in ones.
    pub fn with_built_in<T: Links>() -> Self {
        let mut registry = Self::built_in();
        T::each_own(&mut OnEach(FillBuiltIn(&mut registry)));
        registry
    }

    /// Replaces the loops with which a built-in technique is measured by loops that call its
    /// sending and receiving ends directly, without dynamic calls. They are compiled by the crate
    /// that calls this, at the same time as this crate. In debug builds no loop is measured:
    /// nothing changes.
    pub fn compile_measured<L: Link>(&mut self) {
        #[cfg(not(debug_assertions))]
        self.replace_measured(Technique::from_link::<L>(), measured::<L>());
    }

    #[cfg(not(debug_assertions))]
    fn replace_measured<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
    ) {
        for entry in self.techniques.iter_mut().filter(|entry| entry.technique == technique) {
            entry.is_typed = is_typed(ends);
            entry.loops = TechniqueLoops::on_ends(ends);
        }
        for entry in self.strategies.iter_mut().filter(|entry| entry.technique == technique) {
            if let Some((_, make)) = BuiltIn::ALL.into_iter().find(|(name, _)| *name == entry.name) {
                entry.measured = build_strategy(ends, Arc::new(make));
            }
        }
        for entry in self.venues.iter_mut().filter(|entry| entry.technique == technique) {
            match entry.name {
                Trading::DELAY_VENUE => entry.measured = build_thread(ends, Arc::new(in_full)),
                Trading::BOOK => entry.measured = build_book_thread(ends),
                _ => {}
            }
        }
    }

    /// Adds a kind of strategy with this name to the registry, in place of one with the same name.
    pub fn add_strategy<T: Links, S: Strategy + Send + 'static>(
        &mut self,
        name: &'static str,
        make: MakeStrategy<S>,
    ) {
        self.strategies.retain(|entry| entry.name != name);
        T::each(&mut OnEach(FillStrategy { name, make, registry: self }));
    }

    /// Adds a kind of venue with this name to the registry.
    pub fn add_venue<T: Links, V: Venue + 'static>(&mut self, name: &'static str, make: MakeVenue<V>) {
        T::each(&mut OnEach(FillVenue { name, make, registry: self }));
    }

    /// Makes this registry the one that the whole program uses, if none is installed yet.
    pub fn install(self) {
        let _ = REGISTRY.set(self);
    }

    /// Returns the installed registry of this program, or the built-in one.
    pub(super) fn installed() -> &'static Self {
        REGISTRY.get_or_init(Self::built_in)
    }

    /// Returns the functions that build a strategy of a plan.
    pub(super) fn strategy(&self, plan: &Plan, index: StrategyIndex) -> Result<&StrategyEntry> {
        find(&self.strategies, "strategy", plan.trading().strategy_kind(index), plan.technique)
    }

    /// Returns the functions that build a thread whose gateways are to venues of a kind.
    pub(super) fn thread(&self, plan: &Plan, kind: &str) -> Result<&VenueEntry> {
        find(&self.venues, "venue", kind, plan.technique)
    }
}

fn find<'a, M, A>(
    entries: &'a [Entry<M, A>],
    what: &str,
    name: &str,
    technique: Technique,
) -> Result<&'a Entry<M, A>> {
    let found = entries.iter().find(|entry| (entry.name, entry.technique) == (name, technique));
    found.with_context(|| {
        format!("this program has no {what} {name} with {technique}: it is not the one that planned the run")
    })
}

/// Returns the functions that attach a technique's ends as boxed trait objects; `None` for a
/// technique that was never installed.
pub fn ends_of(technique: Technique) -> Option<BoxedEnds> {
    entry_of(technique).map(|entry| entry.ends)
}

/// Returns a technique's producer and consumer loops of the queue benchmark; `None` for a technique
/// that was never installed.
pub fn queue_loops_of(technique: Technique) -> Option<&'static TechniqueLoops> {
    entry_of(technique).map(|entry| &entry.loops)
}

/// Returns the techniques (kinds of queues) whose loops are compiled for their types, without a
/// dynamic call per message.
pub fn typed_techniques() -> Vec<Technique> {
    let all = Registry::installed().techniques.iter();
    all.filter(|entry| entry.is_typed).map(|entry| entry.technique).collect()
}

fn entry_of(technique: Technique) -> Option<&'static TechniqueEntry> {
    Registry::installed().techniques.iter().find(|entry| entry.technique == technique)
}
