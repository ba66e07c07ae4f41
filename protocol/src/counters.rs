//! Counters of agents, typed and labeled, in their thread's segment after the thread's status
//! block.
//!
//! ```text
//! word   0         16        80                                             1136
//!        │ header  │ status  │ agent 0: owner, 15 counters │ … 66 agents │ stamp records …
//! ```
//!
//! A thread runs one agent or several ([`crate::plan::ThreadPlan::roles`]). Each has its own
//! counters, in the order in which the thread's duty cycle visits them, so that agents that share a
//! thread do not share counters. One writer (the thread), any number of readers, all Relaxed: the
//! counters are independent of each other. The thread's state shows when all are final.
//!
//! The meaning of a counter is never read from memory: names and units come from the role's static
//! information ([`crate::role`]). Any value is valid.

use crate::index::{GatewayIndex, StrategyIndex, VenueIndex};
use crate::labels::{Counter, CounterLabel, MAX_COUNTERS};
use crate::role::{Role, RoleKind};
use crate::wire::MAX_VENUES;
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};

/// Number of 64-bit words of one agent's counters in its thread's segment: one for its role, then
/// the counters.
pub const AGENT_WORDS: usize = 1 + MAX_COUNTERS;
/// Maximum number of agents on one thread: [`MAX_VENUES`] gateways, the orchestrator, and one agent
/// of another role.
pub const MAX_AGENTS: usize = MAX_VENUES + 2;
/// Number of 64-bit words for the counters of all agents of a thread.
pub const COUNTER_WORDS: usize = AGENT_WORDS * MAX_AGENTS;

/// Returns the word for an agent's role in a log, for readers without a plan; 0: no agent.
pub(crate) fn tag(role: Role) -> u64 {
    let kind = RoleKind::ALL.iter().position(|kind| *kind == role.kind()).map_or(0, |index| index as u64 + 1);
    kind << 16 | u64::from(role.index())
}

pub(crate) fn role_of(tag: u64) -> Option<Role> {
    let kind = RoleKind::ALL.get(usize::try_from(tag >> 16).ok()?.checked_sub(1)?)?;
    let role = match kind {
        RoleKind::Strategy => Role::Strategy(StrategyIndex(tag as u16)),
        RoleKind::Orchestrator => Role::Orchestrator,
        RoleKind::Gateway => Role::Gateway(GatewayIndex(tag as u16)),
        RoleKind::Exchange => Role::Exchange(VenueIndex(tag as u16)),
        RoleKind::Producer => Role::Producer(tag as u16),
        RoleKind::Consumer => Role::Consumer(tag as u16),
        RoleKind::Writer => Role::Writer,
        RoleKind::Reader => Role::Reader(tag as u16),
    };
    (self::tag(role) == tag).then_some(role)
}

pub(crate) fn announce(words: &AtomicWords, roles: &[Role]) {
    assert!(roles.len() <= MAX_AGENTS, "a thread runs {MAX_AGENTS} agents at most");
    for (agent, role) in roles.iter().enumerate() {
        words[agent * AGENT_WORDS].store(tag(*role), Ordering::Relaxed);
    }
}

/// The writing end of all counters of a thread, which returns the slots of its agents one after
/// another.
#[derive(Clone)]
pub struct CounterSlots<'a> {
    words: &'a AtomicWords,
    next: usize,
}

impl<'a> CounterSlots<'a> {
    pub(crate) const fn new(words: &'a AtomicWords) -> Self {
        Self { words, next: 0 }
    }

    /// Returns the writing end of the next agent's counters, in the order in which the thread
    /// visits its agents. Each agent takes one, even if it counts nothing.
    #[inline(always)]
    pub fn next_agent(&mut self) -> AgentSlot<'a> {
        let slot = self.words[self.next * AGENT_WORDS..].first_chunk();
        self.next += 1;
        AgentSlot(slot.expect("a thread has no more agents than slots"))
    }
}

/// The writing end of one agent's counters.
pub struct AgentSlot<'a>(pub(crate) &'a [AtomicU64; AGENT_WORDS]);

impl AgentSlot<'_> {
    /// Stores the value of an agent's counter in a cache line that only this thread writes.
    #[inline(always)]
    pub fn set(&self, counter: impl Counter, value: u64) {
        self.0[1 + counter.index()].store(value, Ordering::Relaxed);
    }

    /// Adds `more` to the value of an agent's counter, wrapping around on overflow. A successor of
    /// a crashed thread continues its count.
    #[inline(always)]
    pub fn add(&self, counter: impl Counter, more: u64) {
        // Relaxed: this thread is the only writer.
        let word = &self.0[1 + counter.index()];
        word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }
}

/// A copy of the counters of all agents of a thread. By default all are zero.
#[derive(Clone, Debug, Default)]
pub struct ThreadCounters(Vec<u64>);

/// A copy of the counters of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCounters {
    role: Role,
    values: [u64; AGENT_WORDS - 1],
}

impl ThreadCounters {
    /// Decodes a thread's counters from copied words; missing words are 0. Any values are valid.
    pub fn from_words(words: impl IntoIterator<Item = u64>) -> Self {
        Self(words.into_iter().take(COUNTER_WORDS).collect())
    }

    fn agent(&self, agent_index: usize, role: Role) -> AgentCounters {
        let word = |index: usize| self.0.get(agent_index * AGENT_WORDS + 1 + index).copied().unwrap_or(0);
        AgentCounters { role, values: std::array::from_fn(word) }
    }

    /// Returns each agent's counters, for a thread that runs `roles`.
    pub fn agents<'a>(&'a self, roles: &'a [Role]) -> impl Iterator<Item = AgentCounters> + 'a {
        roles.iter().enumerate().map(|(agent_index, role)| self.agent(agent_index, *role))
    }

    /// Returns the counters of the thread's agent of one role; all zero if it does not run the
    /// role.
    pub fn agent_counters(&self, roles: &[Role], role: Role) -> AgentCounters {
        let agent_index = roles.iter().position(|other| *other == role);
        self.agent(agent_index.unwrap_or(MAX_AGENTS), role)
    }

    /// Returns the sum of the counters named `name` over all agents of a thread that runs `roles`.
    pub fn total(&self, roles: &[Role], name: &str) -> u64 {
        let values = self.agents(roles).filter_map(|agent| agent.get_by_name(name));
        values.fold(0, u64::saturating_add)
    }

    /// Returns each agent's counters, with the roles that the thread published itself, for readers
    /// without the plan.
    pub fn announced(&self) -> impl Iterator<Item = AgentCounters> + '_ {
        let tags = self.0.iter().step_by(AGENT_WORDS).enumerate();
        tags.filter_map(|(agent_index, tag)| Some(self.agent(agent_index, role_of(*tag)?)))
    }
}

impl AgentCounters {
    /// Reads the counters of one role from a thread's words; no other words are read.
    pub(crate) fn from_words(roles: &[Role], role: Role, word: impl Fn(usize) -> u64) -> Self {
        let agent_index = roles.iter().take(MAX_AGENTS).position(|other| *other == role);
        let value = |index| agent_index.map_or(0, |agent_index| word(agent_index * AGENT_WORDS + 1 + index));
        Self { role, values: std::array::from_fn(value) }
    }

    /// Returns the role of the agent.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the value of an agent's counter; 0 if agents of this role have no such counter.
    pub fn get<C: Counter>(&self, counter: C) -> u64 {
        let has = self.role.info().counters == C::LABELS;
        if has { self.values[counter.index()] } else { 0 }
    }

    /// Returns the value of the agent's counter named `name`, if its role has one.
    pub fn get_by_name(&self, name: &str) -> Option<u64> {
        self.labeled().find(|(label, _)| label.name == name).map(|(_, value)| value)
    }

    /// Returns all counters of the agent's role with their labels.
    pub fn labeled(&self) -> impl Iterator<Item = (&'static CounterLabel, u64)> {
        self.role.info().counters.iter().zip(self.values)
    }
}
