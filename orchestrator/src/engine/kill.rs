//! Kill switches and operators' commands: new orders are rejected at once, queued ones are
//! recalled, the venues get mass cancels, and the last confirmation ends the switch.
//!
//! The switch is thrown before the time of [`Point::KillSeen`] is taken. One thread checks and
//! dispatches, so no new order or replace of the scope has a t3 after it.

use super::{Core, Effects, OperatorNotice, StrategySession};
use crate::positions::Change;
use crate::risk::SettingError;
use protocol::commands::{Command, CommandStatus, MAX_COMMANDS, OpenOrders};
use protocol::index::{GatewayIndex, PerStrategy, StrategyIndex, VenueIndex};
use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::limits::{LimitSetting, RiskControl};
use protocol::record::Point;
use protocol::wire::{CancelScope, OrderId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct UnconfirmedKill {
    pub(super) switch: KillSwitch,
    open: u64,
}

/// Returns the maximum number of kill switches that are on at once. One per command, and one per
/// strategy.
pub(super) const fn max_kills(strategies: usize) -> usize {
    2 * MAX_COMMANDS + strategies
}

/// Returns the maximum number of log records about kill switches and positions in one run, given
/// its numbers of strategies and instruments.
pub const fn log_records(strategies: u64, instruments: u64) -> u64 {
    2 * max_kills(strategies as usize) as u64 + 8 * strategies.saturating_mul(instruments)
}

impl Core {
    pub(super) fn handle_command(&mut self, number: u32, command: Option<Command>, out: &mut dyn Effects) {
        let done = match command {
            Some(Command::Kill(scope)) => {
                if let Some(session) = session_of(scope, &mut self.sessions) {
                    // Its next incarnation is killed as well.
                    session.is_ending = false;
                }
                self.kill(scope, KillCause::Operator, Some(number), OpenOrders::Cancel, out)
            }
            Some(Command::Revive(scope)) => self.revive(scope, number, out),
            Some(Command::SetLimit { scope, control, value }) => {
                self.set_limit(scope, control, value).map(|()| {
                    out.notify_operators(OperatorNotice::CommandSeen { number, ticks: None, orders: 0 });
                })
            }
            Some(Command::EndStrategy { strategy, open_orders, .. }) => {
                self.end_strategy(strategy, number, open_orders, out)
            }
            Some(Command::AddStrategy { strategy }) => self.accept_addition(strategy).map(|()| {
                // Reports on orders of the dead may have come since its repair.
                out.publish_positions(strategy, self.positions.accounts_of(strategy));
                out.notify_operators(OperatorNotice::CommandSeen { number, ticks: None, orders: 0 });
            }),
            None => Err(CommandStatus::Unknown),
        };
        if let Err(why) = done {
            out.notify_operators(OperatorNotice::CommandRefused { number, why });
        }
    }

    /// Refuses a strategy's new orders until its next incarnation begins, and confirms the command
    /// when it has no open order. One that a kill switch has stopped already stays stopped.
    fn end_strategy(
        &mut self,
        strategy: StrategyIndex,
        number: u32,
        open_orders: OpenOrders,
        out: &mut dyn Effects,
    ) -> Result<(), CommandStatus> {
        if !self.sessions.has(strategy) {
            return Err(CommandStatus::NoSuchScope);
        }
        let was_killed = self.risk.is_killed(strategy);
        self.sessions[strategy].is_ending |= !was_killed;
        self.kill(Scope::Strategy(strategy), KillCause::Operator, Some(number), open_orders, out)
    }

    /// Confirms that a strategy is down and repaired, so that the launcher may start another one in
    /// its place: once for each incarnation.
    fn accept_addition(&mut self, strategy: StrategyIndex) -> Result<(), CommandStatus> {
        let session = self.sessions.get_mut(strategy).ok_or(CommandStatus::NoSuchScope)?;
        let is_down = session.is_retired() && !std::mem::replace(&mut session.is_added, true);
        is_down.then_some(()).ok_or(CommandStatus::NotDown)
    }

    /// Accepts the orders of a strategy again that an operator has ended: its successor begins.
    pub(super) fn accept_successor(&mut self, strategy: StrategyIndex, out: &mut dyn Effects) {
        let scope = Scope::Strategy(strategy);
        if self.risk.set_switch(scope, false, &self.positions).is_some() {
            let number = self.next_switch;
            self.next_switch = self.next_switch.saturating_add(1);
            let switch = KillSwitch { number, scope, is_on: false, cause: KillCause::Operator };
            log_switch(switch, Point::KillSeen, out);
        }
    }

    fn set_limit(&mut self, scope: Scope, control: u8, value: u64) -> Result<(), CommandStatus> {
        let control = RiskControl::from_code(control).ok_or(CommandStatus::NoSuchLimit)?;
        self.risk.set(&LimitSetting { scope, control, value }, &self.positions).map_err(|error| match error {
            SettingError::NoSuch(_) => CommandStatus::NoSuchScope,
            SettingError::Limit(_) => CommandStatus::NoSuchLimit,
        })
    }

    #[cold]
    pub(super) fn kill_by_limit(
        &mut self,
        strategy: StrategyIndex,
        control: RiskControl,
        out: &mut dyn Effects,
    ) {
        // The switch of an operator who ends it would be turned off for its successor.
        let was_ending = std::mem::take(&mut self.sessions[strategy].is_ending);
        if was_ending || !self.risk.is_killed(strategy) {
            let cause = KillCause::Limit(control.code());
            _ = self.kill(Scope::Strategy(strategy), cause, None, OpenOrders::Cancel, out);
        }
    }

    #[cold]
    pub(super) fn kill(
        &mut self,
        scope: Scope,
        cause: KillCause,
        command: Option<u32>,
        open_orders: OpenOrders,
        out: &mut dyn Effects,
    ) -> Result<(), CommandStatus> {
        self.risk.set_switch(scope, true, &self.positions).ok_or(CommandStatus::NoSuchScope)?;
        let number = command.unwrap_or(self.next_switch);
        self.next_switch = self.next_switch.saturating_add(u32::from(command.is_none()));
        let switch = KillSwitch { number, scope, is_on: true, cause };
        let seen = log_switch(switch, Point::KillSeen, out);
        out.recall();
        if self.kills.len() == max_kills(self.sessions.len()) {
            self.counts.faults += 1;
            return Ok(());
        }
        if open_orders == OpenOrders::Cancel {
            let cancel = self.cancel_scope(scope);
            self.send_mass_cancels(scope, cancel, out);
        }
        let credential = |strategy| self.risk.credential(strategy);
        let open = self.positions.mark_killed(|strategy, venue, instrument| {
            scope.contains(strategy, credential(strategy), VenueIndex(venue), instrument)
        });
        self.kills.push(UnconfirmedKill { switch, open });
        if command.is_some() {
            out.notify_operators(OperatorNotice::CommandSeen { number, ticks: Some(seen), orders: open });
        }
        self.finish_kills(out);
        Ok(())
    }

    #[cold]
    fn revive(&mut self, scope: Scope, number: u32, out: &mut dyn Effects) -> Result<(), CommandStatus> {
        self.risk.set_switch(scope, false, &self.positions).ok_or(CommandStatus::NoSuchScope)?;
        for session in self.sessions.iter().filter(|session| session.is_ending) {
            // No new order of a strategy that an operator ends.
            self.risk.set_switch(Scope::Strategy(session.strategy), true, &self.positions);
        }
        let switch = KillSwitch { number, scope, is_on: false, cause: KillCause::Operator };
        let seen = log_switch(switch, Point::KillSeen, out);
        out.notify_operators(OperatorNotice::CommandSeen { number, ticks: Some(seen), orders: 0 });
        Ok(())
    }

    fn cancel_scope(&self, scope: Scope) -> CancelScope {
        match scope {
            Scope::Strategy(strategy) => {
                let epoch = self.sessions[strategy].epoch;
                CancelScope::for_strategy(OrderId::new(strategy.0, epoch, 0))
            }
            Scope::Instrument(instrument) => CancelScope { strategy: None, instrument: Some(instrument) },
            Scope::All | Scope::Credential(_) | Scope::Venue(_) => CancelScope::default(),
        }
    }

    /// Returns `true` if orders of a scope go through a gateway.
    pub(super) fn can_have_orders(&self, gateway: GatewayIndex, scope: Scope) -> bool {
        let (venue, credential) = (gateway.0 / self.credentials, gateway.0 % self.credentials);
        match scope {
            Scope::All | Scope::Instrument(_) => true,
            Scope::Venue(index) => index == VenueIndex(venue),
            Scope::Credential(index) => index == credential,
            Scope::Strategy(index) => self.risk.credential(index) == credential,
        }
    }

    #[cold]
    pub(super) fn confirm_killed(&mut self, strategy: StrategyIndex, change: &Change, out: &mut dyn Effects) {
        let Some(venue) = change.killed_at else { return };
        let credential = self.risk.credential(strategy);
        for kill in &mut self.kills {
            if kill.switch.scope.contains(strategy, credential, VenueIndex(venue), change.instrument) {
                kill.open = kill.open.saturating_sub(1);
            }
        }
        self.finish_kills(out);
    }

    fn finish_kills(&mut self, out: &mut dyn Effects) {
        self.kills.retain(|kill| {
            if kill.open == 0 {
                let done = log_switch(kill.switch, Point::KillDone, out);
                if kill.switch.cause == KillCause::Operator {
                    out.notify_operators(OperatorNotice::CommandDone {
                        number: kill.switch.number,
                        ticks: done,
                    });
                }
            }
            kill.open > 0
        });
    }
}

fn session_of(scope: Scope, sessions: &mut PerStrategy<StrategySession>) -> Option<&mut StrategySession> {
    let Scope::Strategy(strategy) = scope else { return None };
    sessions.get_mut(strategy)
}

fn log_switch(switch: KillSwitch, point: Point, out: &mut dyn Effects) -> u64 {
    let (id, detail) = switch.to_record();
    out.log_now(point, id, detail)
}
