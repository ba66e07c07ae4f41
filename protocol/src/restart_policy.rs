//! The restart policy: which roles of a run are restarted after a crash, and why others are not.

use crate::index::{GatewayIndex, StrategyIndex};
use crate::plan::{ExchangePlacement, Journaling, OnDeath, Placement, Plan, ProcessPlan, Role, ThreadPlan};

impl Plan {
    /// Returns the strategy that `thread` of the engine's process runs, if the run continues after
    /// that thread ends or hangs; otherwise `None`.
    pub fn strategy_dying_alone(&self, thread: &ThreadPlan) -> Option<StrategyIndex> {
        match thread.roles[..] {
            [Role::Strategy(index)] if self.isolation.kind_of(index).is_thread() => {
                Some(index).filter(|_| self.on_death != OnDeath::Stop)
            }
            _ => None,
        }
    }

    /// Returns `true` if exchanges are restarted: each has a journal and a process of its own.
    pub fn exchanges_are_restartable(&self) -> bool {
        let trading = self.trading();
        self.on_death == OnDeath::Restart
            && !self.isolation.has_threads()
            && trading.exchange == ExchangePlacement::Process
            && trading.journal != Journaling::None
    }

    /// Returns `true` if the engine is restarted after a crash. This requires restartable
    /// exchanges, and rings of one writer and one reader, whose counts show how far the engine had
    /// come.
    pub fn engine_is_restartable(&self) -> bool {
        let trading = self.trading();
        let record = self.technique.info();
        self.exchanges_are_restartable()
            && trading.books().count() == usize::from(trading.venues)
            && record.consumer_resumable
            && record.producer_resumable
            && self.placement == Placement::Engine
            && !GatewayIndex::first(trading.gateways()).any(|gateway| self.validates_venue(gateway))
    }

    /// Returns `true` if a process runs only gateways and the plan lets the run continue after that
    /// process's death.
    pub fn can_lose_process(&self, process: &ProcessPlan) -> bool {
        let is_gateway = |role| matches!(role, Role::Gateway(_));
        self.on_death != OnDeath::Stop
            && !self.isolation.has_only_threads()
            && self.roles_of(process).all(is_gateway)
    }

    /// Returns `true` if the run continues after the death of a gateway.
    pub fn can_lose_gateways(&self) -> bool {
        self.processes.iter().any(|process| self.can_lose_process(process))
    }

    /// Returns `true` if a process of gateways is restarted after its death; `false` if one of the
    /// gateways checks its exchange's reports. The state of that gateway's session is lost with the
    /// process.
    pub fn should_restart_gateways(&self, process: &ProcessPlan) -> bool {
        let is_checked_book = |role: Role| matches!(role, Role::Gateway(gateway) if self.is_book_of(gateway) && self.validates_venue(gateway));
        self.can_lose_process(process)
            && self.on_death == OnDeath::Restart
            && !self.roles_of(process).any(is_checked_book)
    }

    /// Returns the gateways of all processes that are restarted.
    pub fn restartable_gateways(&self) -> impl Iterator<Item = Role> + '_ {
        let restarted = self.processes.iter().filter(|process| self.should_restart_gateways(process));
        restarted.flat_map(|process| self.roles_of(process))
    }

    /// Returns `true` if a restarted gateway resumes its session with an exchange, losing no order.
    pub fn can_resume_gateway(&self, gateway: GatewayIndex) -> bool {
        let has_it =
            |process: &&ProcessPlan| self.roles_of(process).any(|role| role == Role::Gateway(gateway));
        self.is_book_of(gateway)
            && self.processes.iter().find(has_it).is_some_and(|process| self.should_restart_gateways(process))
    }

    fn is_book_of(&self, gateway: GatewayIndex) -> bool {
        self.trading().is_book(self.trading().venue_of(gateway))
    }

    /// Returns `true` if a process runs an exchange that writes a journal, for which the process
    /// opens files.
    pub fn has_journal(&self, process: &ProcessPlan) -> bool {
        let is_exchange = |role| matches!(role, Role::Exchange(_));
        self.trading().journal != Journaling::None && self.roles_of(process).any(is_exchange)
    }

    /// Returns `true` if the engine writes a journal.
    pub fn engine_has_journal(&self) -> bool {
        self.trading().journal != Journaling::None
    }
}
