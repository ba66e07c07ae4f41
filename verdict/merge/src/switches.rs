//! Kill switches: orders that were dispatched although one was on, and the times of the cancels.
//!
//! The orchestrator logs each switch when it has seen it and when the last order that it cancels is
//! confirmed. While it is on, no new order in its scope may have a t3; a cancel may, and its t3 is
//! marked as one.

use super::row::OrderRow;
use super::table::OrderTable;
use super::violation::{Findings, ViolationKind, Violations, order_name};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::limits::RiskControl;
use protocol::plan::Trading;
use protocol::stamps::{Point, Record};
use protocol::wire::OrderId;

/// The activation of a kill switch (stop of orders): its scope, cause and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillActivation {
    /// Kill switch (scope and cause) as the orchestrator logged it.
    pub switch: KillSwitch,
    /// Time at which the orchestrator saw the kill switch, in ticks.
    pub seen: u64,
    /// Time at which the last order that it cancels was confirmed; `None` if that did not happen.
    pub done: Option<u64>,
    /// Time at which the kill switch was turned off, in ticks; `None` if it stayed on.
    pub revived: Option<u64>,
}

/// The kill switches of a run, to check that no order passed one that was on.
#[derive(Debug, Default)]
pub(super) struct KillSwitches {
    /// Activations in the order in which they were seen.
    pub kills: Vec<KillActivation>,
    /// For each activation: the turns between which it was on.
    spans: Vec<(usize, Option<usize>)>,
    /// Switch turns so far in the orchestrator's log: they order events with equal times.
    turn_count: usize,
    /// Scopes that are on at the current position of the orchestrator's log.
    on: Vec<Scope>,
    /// Orders that were dispatched while a venue or an instrument was killed and whose own were not
    /// known yet, each with the number of turns before it.
    suspects: Vec<(OrderId, usize)>,
    pub found: Violations,
}

/// Detail of a t3 that is not a new order.
const NOT_NEW: u8 = 1;

impl KillSwitches {
    /// Applies a log record about a kill switch: turned on, turned off, or the last of its cancels
    /// confirmed.
    #[cold]
    pub fn record(&mut self, record: Record) {
        let Some(switch) = KillSwitch::from_record(&record) else {
            return self.found.add(ViolationKind::Killed, || {
                format!("{}: a kill switch of no scope that there is", record.point.name())
            });
        };
        let same = |kill: &&mut KillActivation| {
            (kill.switch.number, kill.switch.scope, kill.switch.cause)
                == (switch.number, switch.scope, switch.cause)
        };
        if record.point == Point::KillDone {
            match self.kills.iter_mut().rev().find(same) {
                Some(kill) if kill.done.is_none() && kill.seen <= record.value => {
                    kill.done = Some(record.value)
                }
                _ => self.found.add(ViolationKind::Killed, || {
                    format!("kill switch {} of {}: done, and never seen", switch.number, switch.scope)
                }),
            }
        } else if switch.is_on {
            self.turn_count += 1;
            self.spans.push((self.turn_count, None));
            self.kills.push(KillActivation { switch, seen: record.value, done: None, revived: None });
            self.on.push(switch.scope);
        } else {
            self.turn_count += 1;
            // Reviving all turns every switch off.
            let is_off = |scope: Scope| switch.scope == Scope::All || scope == switch.scope;
            self.on.retain(|scope| !is_off(*scope));
            let is_ended = |kill: &KillActivation| is_off(kill.switch.scope) && kill.revived.is_none();
            for (kill, span) in self.kills.iter_mut().zip(&mut self.spans).filter(|(kill, _)| is_ended(kill))
            {
                (kill.revived, span.1) = (Some(record.value), Some(self.turn_count));
            }
        }
    }

    /// Returns `true` if any kill switch is on, at the current position in the orchestrator's log.
    #[inline]
    pub fn is_any_on(&self) -> bool {
        !self.on.is_empty()
    }

    /// Handles the dispatch of an order while a kill switch is on, and records a violation if the
    /// switch covers the order.
    #[cold]
    pub fn on_dispatch(&mut self, record: Record, row: &OrderRow, instrument: u16, trading: &Trading) {
        if record.detail == NOT_NEW {
            return;
        }
        let needs_row = |scope: &Scope| matches!(scope, Scope::Venue(_) | Scope::Instrument(_));
        let on = self.on.iter().copied();
        let scope = match row.pushed() {
            Some((gateway, _)) => concerning(on, record.id, gateway, instrument, trading),
            None => concerning(on.filter(|scope| !needs_row(scope)), record.id, 0, 0, trading),
        };
        match scope {
            Some(scope) => add_killed(record.id, scope, &mut self.found),
            None if row.pushed().is_none() && self.on.iter().any(needs_row) => {
                self.suspects.push((record.id, self.turn_count));
            }
            None => {}
        }
    }

    /// Returns `true` if a kill switch counts as the cause of the order's cancel: the orchestrator
    /// saw the switch before the venue completed the order. That completion is at `done`, the t5 of
    /// the order's last report. The venue learned of the switch before a revival and may confirm
    /// afterwards.
    #[cold]
    pub fn has_cancelled(
        &self,
        id: OrderId,
        row: &OrderRow,
        done: Option<u64>,
        instrument: u16,
        trading: &Trading,
    ) -> bool {
        let (Some((gateway, _)), Some(done)) = (row.pushed(), done) else {
            return false;
        };
        let seen = self.kills.iter().filter(|kill| kill.seen <= done).map(|kill| kill.switch.scope);
        concerning(seen, id, gateway, instrument, trading).is_some()
    }

    /// Counts a violation for each order that a kill switch covered at its dispatch, if only
    /// gateways' logs have the order's venue and instrument.
    pub fn check(&self, table: &OrderTable, trading: &Trading, findings: &mut Findings) {
        for (id, turns) in &self.suspects {
            let Some((gateway, _)) = table.row(*id).and_then(OrderRow::pushed) else { continue };
            let on = self.kills.iter().zip(&self.spans).filter_map(|(kill, (from, until))| {
                let was_on = from <= turns && until.is_none_or(|until| *turns < until);
                was_on.then_some(kill.switch.scope)
            });
            if let Some(scope) = concerning(on, *id, gateway, table.instrument(*id), trading) {
                add_killed(*id, scope, findings.certain());
            }
        }
    }
}

fn concerning(
    mut on: impl Iterator<Item = Scope>,
    id: OrderId,
    gateway: usize,
    instrument: u16,
    trading: &Trading,
) -> Option<Scope> {
    let (strategy, venue) = (id.strategy().0, trading.venue_of(GatewayIndex(gateway as u16)));
    let credential = trading.credential_of(StrategyIndex(strategy));
    on.find(|scope| scope.contains(StrategyIndex(strategy), credential, venue, instrument))
}

#[cold]
fn add_killed(id: OrderId, scope: Scope, found: &mut Violations) {
    found.add(ViolationKind::Killed, || {
        format!("{}: dispatched although the kill switch of {scope} had been seen", order_name(id))
    });
}

impl KillActivation {
    /// Returns the cause of the kill switch's activation: `operator`, `death`, `limit max-loss`.
    pub fn cause(&self) -> String {
        match self.switch.cause {
            KillCause::Operator => "operator".into(),
            KillCause::Death => "death".into(),
            KillCause::Limit(code) => RiskControl::from_code(code)
                .map_or_else(|| format!("limit {code}"), |control| format!("limit {control}")),
        }
    }
}
