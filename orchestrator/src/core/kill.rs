//! Kill switches: new orders are rejected at once, queued ones are recalled, the venues are told to cancel, and the last
//! confirmation ends it (FIX: mass cancel).
//!
//! The switch is thrown before the time is taken that is logged as [`Point::KillSeen`]. One thread checks and dispatches, so no
//! new order and no replace of the scope has a t3 after it.

use super::{Core, Effects, Moment, Notice};
use crate::positions::Closed;
use crate::risk::Risk;
use protocol::desk::COMMANDS;
use protocol::kill::{Cause, Scope, Switch};
use protocol::limits::Control;
use protocol::record::Point;
use protocol::wire::{CancelScope, OrderId};
use serde::{Deserialize, Serialize};

/// A switch that was thrown and whose orders are not all confirmed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Kill {
    switch: Switch,
    /// Orders whose end is not confirmed.
    open: u64,
}

/// The switches that are not done yet, and the number of the next one that the engine throws by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kills {
    active: Vec<Kill>,
    next: u32,
    max: usize,
}

impl Kills {
    pub(super) fn new(strategies: usize) -> Self {
        // Each command kills at most once, and limits kill each strategy once more for each revival.
        let max = 2 * COMMANDS + strategies;
        Self { active: Vec::with_capacity(max), next: 0, max }
    }

    /// Continues from a snapshot; `None` if it is not of a run with these scopes.
    pub(super) fn restore(&mut self, state: &Self, risk: &Risk) -> Option<()> {
        let is_known = |kill: &Kill| risk.has(kill.switch.scope);
        (state.active.len() <= self.max && state.active.iter().all(is_known)).then_some(())?;
        // The allocation stays.
        self.active.clear();
        self.active.extend(&state.active);
        self.next = state.next;
        Some(())
    }
}

/// The most records that kill switches and positions write into the engine's log.
pub const fn log_records(strategies: u64, instruments: u64) -> u64 {
    2 * (2 * COMMANDS as u64 + strategies) + 8 * strategies.saturating_mul(instruments)
}

impl Core {
    /// Turns the kill switch of a strategy on because of a limit, unless it is on.
    #[cold]
    pub(super) fn kill_by_limit(
        &mut self,
        strategy: usize,
        control: Control,
        at: Moment,
        out: &mut impl Effects,
    ) {
        if !self.risk.is_killed(strategy) {
            self.kill(Scope::Strategy(strategy as u16), Cause::Limit(control.code()), None, at, out);
        }
    }

    /// Throws a switch: an operator's command of that number, or one of the engine's own. Returns `false` if there is no such scope.
    #[cold]
    pub(super) fn kill(
        &mut self,
        scope: Scope,
        cause: Cause,
        command: Option<u32>,
        _at: Moment,
        out: &mut impl Effects,
    ) -> bool {
        if !self.risk.turn(scope, true, &self.positions) {
            return false;
        }
        let switch = Switch { number: self.switch_number(command), scope, is_on: true, cause };
        let seen = log(switch, Point::KillSeen, out);
        out.recall();
        if self.kills.active.len() == self.kills.max {
            self.counts.faults += 1;
            return true;
        }
        let cancel = self.cancel_scope(scope);
        for gateway in 0..self.gateways() {
            if self.may_have_orders_of(gateway, scope) {
                self.cancel_at(gateway, cancel, out);
            }
        }
        let credentials = self.credentials;
        let open = self.positions.mark_killed(|strategy, venue, instrument| {
            scope.concerns(strategy, (usize::from(strategy) % credentials) as u16, venue, instrument)
        });
        self.kills.active.push(Kill { switch, open });
        if let Some(number) = command {
            out.notify(Notice::CommandSeen { number, ticks: Some(seen), orders: open });
        }
        self.finish_kills(out);
        true
    }

    /// Turns a switch off. Returns `false` if there is no such scope.
    #[cold]
    pub(super) fn revive(&mut self, scope: Scope, command: Option<u32>, out: &mut impl Effects) -> bool {
        if !self.risk.turn(scope, false, &self.positions) {
            return false;
        }
        let switch =
            Switch { number: self.switch_number(command), scope, is_on: false, cause: Cause::Operator };
        let seen = log(switch, Point::KillSeen, out);
        if let Some(number) = command {
            out.notify(Notice::CommandSeen { number, ticks: Some(seen), orders: 0 });
        }
        true
    }

    fn switch_number(&mut self, command: Option<u32>) -> u32 {
        command.unwrap_or_else(|| {
            self.kills.next = self.kills.next.saturating_add(1);
            self.kills.next - 1
        })
    }

    /// What the gateways are told to cancel.
    fn cancel_scope(&self, scope: Scope) -> CancelScope {
        match scope {
            Scope::Strategy(strategy) => {
                let epoch = self.sessions[usize::from(strategy)].epoch;
                CancelScope::of(OrderId::new(strategy, epoch, 0))
            }
            Scope::Instrument(instrument) => CancelScope { strategy: None, instrument: Some(instrument) },
            Scope::All | Scope::Credential(_) | Scope::Venue(_) => CancelScope::default(),
        }
    }

    /// Whether a gateway can have orders of the scope.
    const fn may_have_orders_of(&self, gateway: usize, scope: Scope) -> bool {
        let (venue, credential) = (gateway / self.credentials, gateway % self.credentials);
        match scope {
            Scope::All | Scope::Instrument(_) => true,
            Scope::Venue(index) => index as usize == venue,
            Scope::Credential(index) => index as usize == credential,
            Scope::Strategy(index) => index as usize % self.credentials == credential,
        }
    }

    /// An order that a switch cancelled is closed.
    #[cold]
    pub(super) fn confirmed(&mut self, strategy: usize, closed: Closed, out: &mut impl Effects) {
        let credential = self.risk.credential(strategy);
        for kill in &mut self.kills.active {
            if kill.switch.scope.concerns(strategy as u16, credential, closed.venue, closed.instrument) {
                kill.open = kill.open.saturating_sub(1);
            }
        }
        self.finish_kills(out);
    }

    /// Ends the switches that have no open orders left.
    fn finish_kills(&mut self, out: &mut impl Effects) {
        self.kills.active.retain(|kill| {
            if kill.open == 0 {
                let done = log(kill.switch, Point::KillDone, out);
                if kill.switch.cause == Cause::Operator {
                    out.notify(Notice::CommandDone { number: kill.switch.number, ticks: done });
                }
            }
            kill.open > 0
        });
    }
}

/// Logs a switch now. Returns when that is, in ticks.
fn log(switch: Switch, point: Point, out: &mut impl Effects) -> u64 {
    let (id, detail) = switch.to_record();
    out.log_now(point, id, detail)
}
