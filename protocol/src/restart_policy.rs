//! Which roles of a run come back when they die, and why others do not.

use crate::plan::{ExchangePlacement, Isolation, Journalling, OnDeath, Placement, Plan, ProcessPlan, Role};

impl Plan {
    /// Whether its exchanges come back: each has a journal, and a process that can be killed alone.
    pub fn exchanges_are_restartable(&self) -> bool {
        let trading = self.trading();
        self.on_death == OnDeath::Restart
            && self.isolation != Isolation::Thread
            && trading.exchange == ExchangePlacement::Process
            && trading.journal != Journalling::None
    }

    /// Whether its engine comes back: beside that, everything that it knows of its venues is in
    /// rings that live on, each with one writer and one reader, so that counts say what a dead one
    /// had done.
    pub fn engine_is_restartable(&self) -> bool {
        let trading = self.trading();
        let record = self.technique.record();
        self.exchanges_are_restartable()
            && trading.books().count() == usize::from(trading.venues)
            && record.resumable
            && record.inheritable
            && self.placement == Placement::Engine
            && !(0..trading.gateways()).any(|gateway| self.is_checked(gateway))
    }

    /// Returns `true` if the run outlives the death of this process: it has gateways and nothing
    /// else, and can be killed alone.
    pub fn outlives(&self, process: &ProcessPlan) -> bool {
        let is_gateway = |role| matches!(role, Role::Gateway(_));
        self.on_death != OnDeath::Stop
            && self.isolation != Isolation::Thread
            && self.roles_of(process).all(is_gateway)
    }

    /// Returns `true` if a gateway may die and the run goes on.
    pub fn gateways_may_die(&self) -> bool {
        self.processes.iter().any(|process| self.outlives(process))
    }

    /// Returns `true` if a process of gateways is started again after its death. What a checked
    /// gateway knows of its exchange dies with it, and the exchange does not: such a process is
    /// not.
    pub fn restarts_gateways_of(&self, process: &ProcessPlan) -> bool {
        let is_checked_book = |role: Role| self.is_book_of(role.index()) && self.is_checked(role.index());
        self.outlives(process)
            && self.on_death == OnDeath::Restart
            && !self.roles_of(process).any(is_checked_book)
    }

    /// The gateways of such processes.
    pub fn restarted_gateways(&self) -> impl Iterator<Item = Role> + '_ {
        let restarted = self.processes.iter().filter(|process| self.restarts_gateways_of(process));
        restarted.flat_map(|process| self.roles_of(process))
    }

    /// Returns `true` if a gateway's successor resumes its session with an exchange, so that no
    /// order there is lost with the gateway.
    pub fn resumes_gateway(&self, gateway: u16) -> bool {
        let has_it =
            |process: &&ProcessPlan| self.roles_of(process).any(|role| role == Role::Gateway(gateway));
        self.is_book_of(gateway)
            && self.processes.iter().find(has_it).is_some_and(|process| self.restarts_gateways_of(process))
    }

    fn is_book_of(&self, gateway: u16) -> bool {
        self.trading().is_book(self.trading().venue_of(gateway))
    }

    /// Whether a process keeps a journal of an exchange: it opens files all the time, and has
    /// threads for them.
    pub fn has_journal(&self, process: &ProcessPlan) -> bool {
        let is_exchange = |role| matches!(role, Role::Exchange(_));
        self.trading().journal != Journalling::None && self.roles_of(process).any(is_exchange)
    }

    /// Whether its engine keeps a journal.
    pub fn engine_has_journal(&self) -> bool {
        self.trading().journal != Journalling::None
    }
}
