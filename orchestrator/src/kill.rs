//! Kill switches at work: new orders are refused at once, what waits for room is turned away, the venues are told to cancel, and
//! the last confirmation ends it.
//!
//! The switch is thrown before the time is taken that is logged as [`Point::KillSeen`]. One thread checks and dispatches, so no
//! new order and no replace of the scope has a t3 after it.

use super::{Event, Orchestrator};
use crate::positions::Closed;
use crate::risk::{Reject, Risk};
use protocol::agent::Cycle;
use protocol::checksum::digest;
use protocol::desk::COMMANDS;
use protocol::kill::{Cause, Scope, Switch};
use protocol::limits::Control;
use protocol::stamps::Point;
use protocol::wire::{CancelScope, Instruction, Operation, OrderId};
use serde::{Deserialize, Serialize};
use shm::clock::Clock;
use shm::ring::Consumer;

/// A switch that was thrown and whose orders are not all confirmed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Kill {
    switch: Switch,
    /// Gateways that have been told, or need not be.
    told: usize,
    /// Orders whose end is not confirmed.
    open: u64,
}

/// Whether all gateways know what they are to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// They do.
    All,
    /// Some inbox was full.
    NotYet,
}

/// The switches that are not done yet, and the number of the next that the engine throws by itself.
pub(crate) struct Kills {
    active: Vec<Kill>,
    next: u32,
    told: Told,
}

/// The same as plain values.
#[derive(Serialize, Deserialize)]
pub(crate) struct KillsState {
    active: Vec<Kill>,
    next: u32,
    /// All gateways know.
    told: bool,
}

impl Kills {
    pub(crate) fn new(strategies: usize) -> Self {
        // Each command kills at most once, and by limits each strategy once more for each revival.
        Self { active: Vec::with_capacity(2 * COMMANDS + strategies), next: 0, told: Told::All }
    }

    pub(crate) fn state(&self) -> KillsState {
        KillsState { active: self.active.clone(), next: self.next, told: self.told == Told::All }
    }

    /// Goes on from there; `None`: of scopes that there are not, or more of them than there is room for.
    pub(crate) fn restore(&mut self, state: &KillsState, gateways: usize, risk: &Risk) -> Option<()> {
        let is_one = |kill: &Kill| kill.told <= gateways && risk.has(kill.switch.scope);
        (state.active.len() <= self.active.capacity() && state.active.iter().all(is_one)).then_some(())?;
        // Its room stays.
        self.active.clear();
        self.active.extend(&state.active);
        self.next = state.next;
        self.told = if state.told { Told::All } else { Told::NotYet };
        Some(())
    }

    #[inline(always)]
    pub(crate) const fn are_told(&self) -> Told {
        self.told
    }
}

/// The most records that kill switches and positions write into the orchestrator's log.
pub const fn log_records(strategies: u64, instruments: u64) -> u64 {
    2 * (2 * COMMANDS as u64 + strategies) + 8 * strategies.saturating_mul(instruments)
}

impl<R: Consumer> Orchestrator<R> {
    /// A limit turns the kill switch of a strategy on, unless it is on.
    #[cold]
    pub(crate) fn kill_by_limit<C: Clock>(
        &mut self,
        strategy: usize,
        control: Control,
        cycle: &mut Cycle<C>,
    ) {
        if !self.risk.is_killed(strategy) {
            self.kill(Scope::Strategy(strategy as u16), Cause::Limit(control.code()), None, cycle);
        }
    }

    /// Throws a switch: an operator's command of that number, or one of the engine's own. `false`: there is no such scope.
    #[cold]
    pub(crate) fn kill<C: Clock>(
        &mut self,
        scope: Scope,
        cause: Cause,
        command: Option<u32>,
        cycle: &mut Cycle<C>,
    ) -> bool {
        if !self.risk.turn(scope, true, &self.positions) {
            return false;
        }
        let switch = Switch { number: self.number(command), scope, is_on: true, cause };
        let seen = log(switch, Point::KillSeen, cycle);
        let credentials = self.credentials;
        let credential = |strategy: u16| (usize::from(strategy) % credentials) as u16;
        // What cancels may go on: it makes nothing worse.
        self.turn_away_if(
            |order| {
                let strategy = order.id.strategy();
                matches!(order.operation, Operation::New | Operation::Replace)
                    && scope.concerns(strategy, credential(strategy), order.venue, order.instrument)
            },
            Reject::Killed,
            cycle,
        );
        let at = self.kills.active.len();
        if at == self.kills.active.capacity() {
            self.faults += 1;
            return true;
        }
        let told = self.first_concerned(0, scope);
        self.kills.active.push(Kill { switch, told, open: 0 });
        // What is written down happens in steps, each in its place among the others: the gateways' turn comes with the next duty
        // cycle.
        self.kills.told = Told::NotYet;
        if !self.is_kept {
            self.tell(cycle.now);
        }
        // Counting comes after telling.
        let open = self.positions.mark_killed(|strategy, venue, instrument| {
            scope.concerns(strategy, credential(strategy), venue, instrument)
        });
        if let Some(kill) = self.kills.active.get_mut(at) {
            kill.open = open;
        }
        if let (Some(number), Some(desk)) = (command, &self.desk) {
            desk.seen(number, seen, open);
        }
        self.finish_kills(cycle);
        true
    }

    /// Takes a switch back. `false`: there is no such scope.
    #[cold]
    pub(crate) fn revive<C: Clock>(
        &mut self,
        scope: Scope,
        command: Option<u32>,
        cycle: &mut Cycle<C>,
    ) -> bool {
        if !self.risk.turn(scope, false, &self.positions) {
            return false;
        }
        let switch = Switch { number: self.number(command), scope, is_on: false, cause: Cause::Operator };
        let seen = log(switch, Point::KillSeen, cycle);
        if let (Some(number), Some(desk)) = (command, &self.desk) {
            desk.seen(number, seen, 0);
        }
        true
    }

    fn number(&mut self, command: Option<u32>) -> u32 {
        command.unwrap_or_else(|| {
            self.kills.next = self.kills.next.saturating_add(1);
            self.kills.next - 1
        })
    }

    /// Tells the gateways what to cancel, as far as their inboxes have room.
    #[cold]
    pub(crate) fn tell_gateways<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        self.tell(cycle.now);
        self.finish_kills(cycle);
    }

    fn tell(&mut self, now: u64) {
        self.kills.told = Told::All;
        for index in 0..self.kills.active.len() {
            while let gateway = self.kills.active[index].told
                && gateway < self.inboxes.len()
            {
                if !self.inboxes[gateway].ring.has_room()
                    || !self.keep(&Event::KillTold { kill: index as u16, gateway: gateway as u16 }, now)
                {
                    self.kills.told = Told::NotYet;
                    break;
                }
                self.tell_of_kill(index, gateway);
            }
        }
    }

    /// Tells a gateway whose inbox has room what a switch cancels.
    pub(crate) fn tell_of_kill(&mut self, index: usize, gateway: usize) {
        let scope = self.kills.active[index].switch.scope;
        let message = Instruction::CancelAll(self.cancel_scope(scope)).to_message();
        let inbox = &mut self.inboxes[gateway];
        let is_sent = inbox.send(&message);
        debug_assert!(is_sent, "asked before");
        inbox.sum.add(digest(&message));
        self.kills.active[index].told = self.first_concerned(gateway + 1, scope);
    }

    /// The first gateway from that one on that can have orders of the scope.
    fn first_concerned(&self, from: usize, scope: Scope) -> usize {
        let all = self.inboxes.len();
        (from..all).find(|gateway| self.has_orders_of(*gateway, scope)).unwrap_or(all)
    }

    /// The switches that are not done.
    pub(crate) const fn active_kills(&self) -> usize {
        self.kills.active.len()
    }

    /// What the gateways are told to cancel.
    fn cancel_scope(&self, scope: Scope) -> CancelScope {
        match scope {
            Scope::Strategy(strategy) => {
                let epoch = self.lines[usize::from(strategy)].epoch;
                CancelScope::of(OrderId::new(strategy, epoch, 0))
            }
            Scope::Instrument(instrument) => CancelScope { strategy: None, instrument: Some(instrument) },
            Scope::All | Scope::Credential(_) | Scope::Venue(_) => CancelScope::default(),
        }
    }

    /// Whether a gateway can have orders of the scope.
    fn has_orders_of(&self, gateway: usize, scope: Scope) -> bool {
        let (venue, credential) = (gateway / self.credentials, gateway % self.credentials);
        match scope {
            Scope::All | Scope::Instrument(_) => true,
            Scope::Venue(index) => usize::from(index) == venue,
            Scope::Credential(index) => usize::from(index) == credential,
            Scope::Strategy(index) => usize::from(index) % self.credentials == credential,
        }
    }

    /// An order that a switch cancelled is closed.
    #[cold]
    pub(crate) fn confirmed<C: Clock>(&mut self, strategy: usize, closed: Closed, cycle: &mut Cycle<C>) {
        let credential = self.risk.credential(strategy);
        for kill in &mut self.kills.active {
            if kill.switch.scope.concerns(strategy as u16, credential, closed.venue, closed.instrument) {
                kill.open = kill.open.saturating_sub(1);
            }
        }
        self.finish_kills(cycle);
    }

    /// Ends the switches of which nothing is open any more.
    pub(crate) fn finish_kills<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let gateways = self.inboxes.len();
        let Self { kills, desk, .. } = self;
        kills.active.retain(|kill| {
            let is_done = kill.open == 0 && kill.told == gateways;
            if is_done {
                let done = log(kill.switch, Point::KillDone, cycle);
                if let (Cause::Operator, Some(desk)) = (kill.switch.cause, &desk) {
                    desk.done(kill.switch.number, done);
                }
            }
            !is_done
        });
    }
}

/// Logs a switch, now; when that is.
fn log<C: Clock>(switch: Switch, point: Point, cycle: &mut Cycle<C>) -> u64 {
    let (id, detail) = switch.to_record();
    cycle.stamp_with(point, id, detail)
}
