//! The registry that maps names to monomorphised agents: an entry for each strategy and each venue
//! with each technique.
//!
//! It is filled once, at the start of the program; from then on a plan's names lead to functions,
//! each compiled for its types. What is built in is filled in by `Registry::built_in`, which is
//! not generic: no other crate compiles it again. A program adds its own techniques with the
//! built-in strategies and venues, and its own strategies and venues with every technique.

use super::agents::RoleAgent;
use super::build::{BuildStrategy, StrategyBuilder, book_agent, strategy_or_faulty, thread_agent};
use super::role_context::RoleContext;
use super::technique_ends::{BoxedConsumer, BoxedEnds, BoxedProducer, TechniqueEnds, measured};
use anyhow::{Context as _, Result};
use core::any::TypeId;
use gateway::{DelayVenue, InFull, Venue, VenueContext};
use protocol::plan::{Plan, Role, Trading};
use shm::ring::{Consumer, Link, Producer};
use std::sync::{Arc, OnceLock};
use strategy::{BuiltIn, Context, Strategy};
use techniques::{RegisterError, Technique, Visitor};

/// A list of techniques, as types.
pub trait Links: 'static {
    /// Registers the techniques under their names.
    ///
    /// # Errors
    /// A name is taken or empty.
    fn register() -> Result<(), RegisterError>;

    /// Calls the visitor with each technique of the list.
    fn each_own(visitor: &mut impl Visitor);

    /// Calls the visitor with each built-in technique and each technique of the list.
    fn each(visitor: &mut impl Visitor) {
        techniques::visit(visitor);
        Self::each_own(visitor);
    }
}

impl Links for () {
    fn register() -> Result<(), RegisterError> {
        Ok(())
    }

    fn each_own(_: &mut impl Visitor) {}
}

impl<L: Link, Rest: Links> Links for (L, Rest) {
    fn register() -> Result<(), RegisterError> {
        Rest::register()?;
        Technique::register::<L>().map(drop)
    }

    fn each_own(visitor: &mut impl Visitor) {
        Rest::each_own(visitor);
        visitor.visit::<L>();
    }
}

/// Creates a strategy of one kind.
pub type MakeStrategy<S> = Arc<dyn Fn(&Context) -> S + Send + Sync>;
/// Creates a venue of one kind.
pub type MakeVenue<V> = Arc<dyn Fn(&VenueContext) -> V + Send + Sync>;

/// Builds the agent of a thread with the given roles.
pub(super) type BuildThread = Box<
    dyn Fn(&mut RoleContext<'_, '_>, &[Role], &StrategyBuilder<'_>) -> Result<Box<dyn RoleAgent>>
        + Send
        + Sync,
>;

/// The techniques, strategies and venues from which roles are built.
#[derive(Default)]
pub struct Registry {
    strategies: Vec<(&'static str, Technique, BuildStrategy)>,
    venues: Vec<(&'static str, Technique, BuildThread)>,
    ends: Vec<(Technique, BoxedEnds)>,
    /// Techniques with loops compiled for their own ends.
    typed: Vec<Technique>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Adds entries to the registry for each technique's ends.
trait Fill {
    fn add<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
    );
}

/// A visitor of techniques that calls a [`Fill`].
struct OnEach<F>(F);

impl<F: Fill> Visitor for OnEach<F> {
    fn visit<L: Link>(&mut self) {
        self.0.add(Technique::of::<L>(), measured::<L>());
    }

    fn visit_kernel<L: Link>(&mut self) {
        self.0.add(Technique::of::<L>(), BoxedEnds::boxed::<L>());
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
    ) {
        let make = Arc::clone(&self.make);
        let build =
            move |parts: &mut RoleContext<'_, '_>, index| strategy_or_faulty(ends, parts, index, &*make);
        self.registry.strategies.push((self.name, technique, Box::new(build)));
    }
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
    ) {
        let make = Arc::clone(&self.make);
        let build = move |parts: &mut RoleContext<'_, '_>, roles: &[Role], strategy: &StrategyBuilder<'_>| {
            let make = |_: &mut RoleContext<'_, '_>, context: &VenueContext| Ok(make(context));
            thread_agent(ends, parts, roles, &make, strategy)
        };
        self.registry.venues.push((self.name, technique, Box::new(build)));
    }
}

/// Adds the built-in strategies and venues.
struct FillBuiltIn<'a>(&'a mut Registry);

impl Fill for FillBuiltIn<'_> {
    fn add<P: Producer + 'static, C: Consumer + 'static>(
        &mut self,
        technique: Technique,
        ends: TechniqueEnds<P, C>,
    ) {
        let registry = &mut *self.0;
        if TypeId::of::<P>() != TypeId::of::<BoxedProducer>()
            && TypeId::of::<C>() != TypeId::of::<BoxedConsumer>()
        {
            registry.typed.push(technique);
        }
        for (name, make) in BuiltIn::ALL {
            FillStrategy { name, make: Arc::new(make), registry }.add(technique, ends);
        }
        let make = Arc::new(|context: &VenueContext| DelayVenue::new(InFull, context));
        FillVenue { name: Trading::DELAY_VENUE, make, registry }.add(technique, ends);
        let build = move |parts: &mut RoleContext<'_, '_>, roles: &[Role], strategy: &StrategyBuilder<'_>| {
            book_agent(ends, parts, roles, strategy)
        };
        registry.venues.push((Trading::BOOK, technique, Box::new(build)));
    }
}

/// Adds the boxed ends.
struct FillEnds<'a>(&'a mut Registry);

impl Visitor for FillEnds<'_> {
    fn visit<L: Link>(&mut self) {
        self.0.ends.push((Technique::of::<L>(), BoxedEnds::boxed::<L>()));
    }
}

impl Registry {
    /// bulkhead's own strategies and venues with the built-in techniques. Not generic: compiled in
    /// this crate, once.
    #[inline(never)]
    fn built_in() -> Self {
        let mut registry = Self::default();
        techniques::visit(&mut OnEach(FillBuiltIn(&mut registry)));
        techniques::visit(&mut FillEnds(&mut registry));
        registry
    }

    /// bulkhead's own strategies and venues, with these techniques and the built-in ones.
    pub fn with_built_in<T: Links>() -> Self {
        let mut registry = Self::built_in();
        T::each_own(&mut OnEach(FillBuiltIn(&mut registry)));
        T::each_own(&mut FillEnds(&mut registry));
        registry
    }

    /// Adds a strategy.
    pub fn add_strategy<T: Links, S: Strategy + Send + 'static>(
        &mut self,
        name: &'static str,
        make: MakeStrategy<S>,
    ) {
        T::each(&mut OnEach(FillStrategy { name, make, registry: self }));
    }

    /// Adds a venue.
    pub fn add_venue<T: Links, V: Venue + 'static>(&mut self, name: &'static str, make: MakeVenue<V>) {
        T::each(&mut OnEach(FillVenue { name, make, registry: self }));
    }

    /// Makes this the program's table, if it has none yet.
    pub fn install(self) {
        let _ = REGISTRY.set(self);
    }

    /// The program's table: what was installed, else what is built in.
    pub(super) fn installed() -> &'static Self {
        REGISTRY.get_or_init(Self::built_in)
    }

    /// The boxed ends of a technique; `None` for one that was never installed.
    fn ends(&self, technique: Technique) -> Option<BoxedEnds> {
        self.ends.iter().find(|(known, _)| *known == technique).map(|(_, ends)| *ends)
    }

    /// Returns the builder of a strategy of a plan.
    pub(super) fn strategy(&self, plan: &Plan, index: u16) -> Result<&BuildStrategy> {
        let kind = plan.trading().strategy_kind(index);
        let found =
            self.strategies.iter().find(|(name, technique, _)| (*name, *technique) == (kind, plan.technique));
        let missing = || {
            format!(
                "this program has no strategy {} with {}: it is not the one that planned the run",
                kind, plan.technique
            )
        };
        found.map(|(.., build)| build).with_context(missing)
    }

    /// Returns the builder of a thread whose gateways are to venues of a kind.
    pub(super) fn thread(&self, plan: &Plan, kind: &str) -> Result<&BuildThread> {
        let found =
            self.venues.iter().find(|(name, technique, _)| (*name, *technique) == (kind, plan.technique));
        let missing = || {
            format!(
                "this program has no venue {} with {}: it is not the one that planned the run",
                kind, plan.technique
            )
        };
        found.map(|(.., build)| build).with_context(missing)
    }
}

/// The boxed ends of a technique of this program; `None` for one that was never installed.
pub fn ends_of(technique: Technique) -> Option<BoxedEnds> {
    Registry::installed().ends(technique)
}

/// The techniques of this program whose loops are compiled for their own ends, without a dynamic
/// call a message.
pub fn typed_techniques() -> &'static [Technique] {
    &Registry::installed().typed
}
