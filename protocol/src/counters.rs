//! Counters: what each agent counts, typed and labelled, in its thread's segment behind the
//! thread's own status.
//!
//! ```text
//! word   0         16        80                                                       1136
//!        │ header  │ status  │ agent 0: owner, 15 counters │ agent 1: … │ … 66 agents │ stamp records …
//! ```
//!
//! A thread runs one agent or several ([`crate::plan::ThreadPlan::roles`]). Each has its own
//! counters, in the order in which the thread's duty cycle visits them, so that agents that share a
//! thread neither add up nor overwrite one another. One writer (the thread), any number of readers,
//! all Relaxed: a counter is a figure of its own, and none says that another is there already. The
//! thread's state says that all are final.
//!
//! What a counter means is never read from memory: names and units come from the role's record
//! ([`crate::role`]). Values may be any.

use crate::labels::{Counter, CounterLabel, MOST};
use crate::role::{Role, RoleKind};
use crate::wire::MAX_VENUES;
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};

/// Words of one agent: its owner's tag, then its counters.
pub const AGENT_WORDS: usize = 1 + MOST;
/// Agents that one thread may run: every gateway, the orchestrator, and one to spare.
pub const MAX_AGENTS: usize = MAX_VENUES + 2;
/// Words of all counters of a thread.
pub const COUNTER_WORDS: usize = AGENT_WORDS * MAX_AGENTS;

/// The word that names an agent's owner, for who has a log and no plan: kind and index. 0: nobody.
pub(crate) fn tag(role: Role) -> u64 {
    let kind = RoleKind::ALL.iter().position(|kind| *kind == role.kind()).map_or(0, |place| place as u64 + 1);
    kind << 16 | u64::from(role.index())
}

pub(crate) fn role_of(tag: u64) -> Option<Role> {
    let kind = RoleKind::ALL.get(usize::try_from(tag >> 16).ok()?.checked_sub(1)?)?;
    let role = match kind {
        RoleKind::Strategy => Role::Strategy(tag as u16),
        RoleKind::Orchestrator => Role::Orchestrator,
        RoleKind::Gateway => Role::Gateway(tag as u16),
        RoleKind::Exchange => Role::Exchange(tag as u16),
    };
    (self::tag(role) == tag).then_some(role)
}

/// Names the owners of a thread's counters.
///
/// # Panics
/// If there are more than [`MAX_AGENTS`].
pub(crate) fn announce(words: &AtomicWords, roles: &[Role]) {
    assert!(roles.len() <= MAX_AGENTS, "a thread runs {MAX_AGENTS} agents at most");
    for (agent, role) in roles.iter().enumerate() {
        words[agent * AGENT_WORDS].store(tag(*role), Ordering::Relaxed);
    }
}

/// The counters of a thread's agents, one agent after the other: who writes them.
pub struct Slots<'a> {
    words: &'a AtomicWords,
    next: usize,
}

impl<'a> Slots<'a> {
    pub(crate) const fn new(words: &'a AtomicWords) -> Self {
        Self { words, next: 0 }
    }

    /// The counters of the next agent. Every agent takes its own, also one that counts nothing.
    ///
    /// # Panics
    /// If there are more than [`MAX_AGENTS`]: a valid plan has no such thread.
    #[inline(always)]
    pub fn take(&mut self) -> Slot<'a> {
        let slot = &self.words[self.next * AGENT_WORDS..][..AGENT_WORDS];
        self.next += 1;
        Slot(slot)
    }
}

/// One agent's counters: who writes them.
pub struct Slot<'a>(pub(crate) &'a [AtomicU64]);

impl Slot<'_> {
    /// Stores a counter's value. A plain store to a line of our own.
    #[inline(always)]
    pub fn set(&self, counter: impl Counter, value: u64) {
        self.0[1 + counter.place()].store(value, Ordering::Relaxed);
    }
}

/// A copy of all counters of a thread. The default: all of them zero.
#[derive(Clone, Debug, Default)]
pub struct Counters(Vec<u64>);

/// One agent's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCounters {
    role: Role,
    values: [u64; AGENT_WORDS - 1],
}

impl Counters {
    /// From words that were copied out; what is missing is 0. Any words will do.
    pub fn from_words(words: impl IntoIterator<Item = u64>) -> Self {
        Self(words.into_iter().take(COUNTER_WORDS).collect())
    }

    fn agent(&self, place: usize, role: Role) -> AgentCounters {
        let word = |index: usize| self.0.get(place * AGENT_WORDS + 1 + index).copied().unwrap_or(0);
        AgentCounters { role, values: std::array::from_fn(word) }
    }

    /// Each agent's counters, for a thread that runs these.
    pub fn agents<'a>(&'a self, roles: &'a [Role]) -> impl Iterator<Item = AgentCounters> + 'a {
        roles.iter().enumerate().map(|(place, role)| self.agent(place, *role))
    }

    /// One agent's counters; all zero if the thread does not run it.
    pub fn of(&self, roles: &[Role], role: Role) -> AgentCounters {
        let place = roles.iter().position(|other| *other == role);
        self.agent(place.unwrap_or(MAX_AGENTS), role)
    }

    /// The sum of the counters of that name over all agents of a thread that runs these.
    pub fn total(&self, roles: &[Role], name: &str) -> u64 {
        let values = self.agents(roles).filter_map(|agent| agent.named(name));
        values.fold(0, u64::saturating_add)
    }

    /// Each agent's counters as the thread itself says whose they are: for who has no plan.
    pub fn announced(&self) -> impl Iterator<Item = AgentCounters> + '_ {
        let tags = self.0.iter().step_by(AGENT_WORDS).enumerate();
        tags.filter_map(|(place, tag)| Some(self.agent(place, role_of(*tag)?)))
    }
}

impl AgentCounters {
    /// Those of that agent among a thread's words, of which no others are read.
    pub(crate) fn from_words(roles: &[Role], role: Role, word: impl Fn(usize) -> u64) -> Self {
        let place = roles.iter().take(MAX_AGENTS).position(|other| *other == role);
        let value = |index| place.map_or(0, |place| word(place * AGENT_WORDS + 1 + index));
        Self { role, values: std::array::from_fn(value) }
    }

    /// Whose they are.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// A counter's value; 0 if agents of this role have no such counter.
    pub fn get<C: Counter>(&self, counter: C) -> u64 {
        let has = self.role.record().counters == C::LABELS;
        if has { self.values[counter.place()] } else { 0 }
    }

    /// The value of the counter of that name, if this role has one.
    pub fn named(&self, name: &str) -> Option<u64> {
        self.labelled().find(|(label, _)| label.name == name).map(|(_, value)| value)
    }

    /// All counters of this role.
    pub fn labelled(&self) -> impl Iterator<Item = (&'static CounterLabel, u64)> {
        self.role.record().counters.iter().zip(self.values)
    }
}
