//! Operators' commands, and kill switches: new orders are rejected at once, queued ones are
//! recalled, the venues are told to cancel, and the last confirmation ends it (FIX: mass cancel).
//!
//! The switch is thrown before the time is taken that is logged as [`Point::KillSeen`]. One thread
//! checks and dispatches, so no new order and no replace of the scope has a t3 after it.

use super::{Core, Effects, Notice};
use crate::risk::SettingError;
use protocol::commands::{Command, CommandStatus, MAX_COMMANDS};
use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::limits::{LimitSetting, RiskControl};
use protocol::record::Point;
use protocol::wire::{CancelScope, OrderId};
use serde::{Deserialize, Serialize};

/// A switch that was thrown and whose orders are not all confirmed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Kill {
    pub(super) switch: KillSwitch,
    /// Orders whose end is not confirmed.
    open: u64,
}

/// The most switches at once: a command kills at most once, and limits kill a strategy once more
/// for each revival.
pub(super) const fn max_kills(strategies: usize) -> usize {
    2 * MAX_COMMANDS + strategies
}

/// The most records that kill switches and positions write into the engine's log.
pub const fn log_records(strategies: u64, instruments: u64) -> u64 {
    2 * max_kills(strategies as usize) as u64 + 8 * strategies.saturating_mul(instruments)
}

impl Core {
    pub(super) fn command(&mut self, number: u32, command: Option<Command>, out: &mut impl Effects) {
        let done = match command {
            Some(Command::Kill(scope)) => self.kill(scope, KillCause::Operator, Some(number), out),
            Some(Command::Revive(scope)) => self.revive(scope, number, out),
            Some(Command::SetLimit { scope, control, value }) => {
                self.set_limit(scope, control, value).map(|()| {
                    out.notify(Notice::CommandSeen { number, ticks: None, orders: 0 });
                })
            }
            None => Err(CommandStatus::Unknown),
        };
        if let Err(why) = done {
            out.notify(Notice::CommandRefused { number, why });
        }
    }

    fn set_limit(&mut self, scope: Scope, control: u8, value: u64) -> Result<(), CommandStatus> {
        let control = RiskControl::from_code(control).ok_or(CommandStatus::NoSuchLimit)?;
        self.risk.set(&LimitSetting { scope, control, value }, &self.positions).map_err(|error| match error {
            SettingError::NoSuch(_) => CommandStatus::NoSuchScope,
            SettingError::Limit(_) => CommandStatus::NoSuchLimit,
        })
    }

    /// Throws the kill switch of a strategy because of a limit, unless it is on.
    #[cold]
    pub(super) fn kill_by_limit(&mut self, strategy: usize, control: RiskControl, out: &mut impl Effects) {
        if !self.risk.is_killed(strategy) {
            _ = self.kill(Scope::Strategy(strategy as u16), KillCause::Limit(control.code()), None, out);
        }
    }

    /// Throws a switch for an operator's `command` of that number, or else by itself.
    ///
    /// # Errors
    /// [`Status::NoSuchScope`].
    #[cold]
    pub(super) fn kill(
        &mut self,
        scope: Scope,
        cause: KillCause,
        command: Option<u32>,
        out: &mut impl Effects,
    ) -> Result<(), CommandStatus> {
        self.risk.turn(scope, true, &self.positions).ok_or(CommandStatus::NoSuchScope)?;
        let number = command.unwrap_or(self.next_switch);
        self.next_switch = self.next_switch.saturating_add(u32::from(command.is_none()));
        let switch = KillSwitch { number, scope, is_on: true, cause };
        let seen = log(switch, Point::KillSeen, out);
        out.recall();
        if self.kills.len() == max_kills(self.sessions.len()) {
            self.counts.faults += 1;
            return Ok(());
        }
        let cancel = self.cancel_scope(scope);
        for gateway in 0..self.gateways.len() {
            if self.may_have_orders_of(gateway, scope) {
                self.cancel_at(gateway, cancel, out);
            }
        }
        let credential = |strategy: u16| self.risk.credential(strategy.into());
        let open = self.positions.mark_killed(|strategy, venue, instrument| {
            scope.contains(strategy, credential(strategy), venue, instrument)
        });
        self.kills.push(Kill { switch, open });
        if command.is_some() {
            out.notify(Notice::CommandSeen { number, ticks: Some(seen), orders: open });
        }
        self.finish_kills(out);
        Ok(())
    }

    #[cold]
    fn revive(&mut self, scope: Scope, number: u32, out: &mut impl Effects) -> Result<(), CommandStatus> {
        self.risk.turn(scope, false, &self.positions).ok_or(CommandStatus::NoSuchScope)?;
        let switch = KillSwitch { number, scope, is_on: false, cause: KillCause::Operator };
        let seen = log(switch, Point::KillSeen, out);
        out.notify(Notice::CommandSeen { number, ticks: Some(seen), orders: 0 });
        Ok(())
    }

    fn cancel_scope(&self, scope: Scope) -> CancelScope {
        match scope {
            Scope::Strategy(strategy) => {
                let epoch = self.sessions[usize::from(strategy)].epoch;
                CancelScope::for_strategy(OrderId::new(strategy, epoch, 0))
            }
            Scope::Instrument(instrument) => CancelScope { strategy: None, instrument: Some(instrument) },
            Scope::All | Scope::Credential(_) | Scope::Venue(_) => CancelScope::default(),
        }
    }

    /// Returns `true` if a gateway can have orders of the scope.
    const fn may_have_orders_of(&self, gateway: usize, scope: Scope) -> bool {
        let (venue, credential) = (gateway / self.plan.credentials, gateway % self.plan.credentials);
        match scope {
            Scope::All | Scope::Instrument(_) => true,
            Scope::Venue(index) => index as usize == venue,
            Scope::Credential(index) => index as usize == credential,
            Scope::Strategy(index) => index as usize % self.plan.credentials == credential,
        }
    }

    /// Counts an order that a switch cancels and that is no longer open.
    #[cold]
    pub(super) fn confirm_killed(
        &mut self,
        strategy: usize,
        (venue, instrument): (u16, u16),
        out: &mut impl Effects,
    ) {
        let credential = self.risk.credential(strategy);
        for kill in &mut self.kills {
            if kill.switch.scope.contains(strategy as u16, credential, venue, instrument) {
                kill.open = kill.open.saturating_sub(1);
            }
        }
        self.finish_kills(out);
    }

    /// Ends the switches that have no open orders left.
    fn finish_kills(&mut self, out: &mut impl Effects) {
        self.kills.retain(|kill| {
            if kill.open == 0 {
                let done = log(kill.switch, Point::KillDone, out);
                if kill.switch.cause == KillCause::Operator {
                    out.notify(Notice::CommandDone { number: kill.switch.number, ticks: done });
                }
            }
            kill.open > 0
        });
    }
}

/// Logs a switch. Returns the time in ticks.
fn log(switch: KillSwitch, point: Point, out: &mut impl Effects) -> u64 {
    let (id, detail) = switch.to_record();
    out.log_now(point, id, detail)
}
