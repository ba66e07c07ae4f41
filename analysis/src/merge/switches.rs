//! Kill switches: what was dispatched although one was on, and how long the cancels took.
//!
//! The orchestrator logs each switch when it has seen it and when the last order that it cancels is
//! confirmed. From the first on until it is turned off no new order that it concerns may have a t3;
//! a cancel may, and its t3 says that it is one.

use super::row::OrderRow;
use super::violation::{Findings, ViolationKind, Violations, name_of};
use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::limits::RiskControl;
use protocol::plan::Trading;
use protocol::stamps::{Point, Record};
use protocol::wire::OrderId;

/// A switch that was turned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// What the log says of it.
    pub switch: KillSwitch,
    /// When it was seen, in ticks.
    pub seen: u64,
    /// When the last order that it cancels was confirmed; none if that did not happen.
    pub done: Option<u64>,
    /// When it was turned off.
    pub revived: Option<u64>,
}

/// All switches of a run.
#[derive(Debug, Default)]
pub(super) struct Switches {
    kills: Vec<Kill>,
    /// Between which turns each of them was on.
    spans: Vec<(usize, Option<usize>)>,
    /// Turns so far in the orchestrator's log: it tells what came first, also where two times are
    /// the same.
    turns: usize,
    /// Those that are on at this place of the orchestrator's log.
    on: Vec<Scope>,
    /// Orders dispatched while a venue or an instrument was killed, of which neither was known
    /// then, each after so many turns.
    suspects: Vec<(OrderId, usize)>,
    /// What was found wrong while the logs were read.
    pub found: Violations,
}

/// The t3 of what is no new order has this detail.
const NOT_NEW: u8 = 1;

impl Switches {
    /// Takes a record about a switch.
    #[cold]
    pub fn take(&mut self, record: Record) {
        let Some(switch) = KillSwitch::from_record(&record) else {
            return self.found.add(ViolationKind::Killed, || {
                format!("{}: a kill switch of no scope that there is", record.point.name())
            });
        };
        let same = |kill: &&mut Kill| {
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
            self.turns += 1;
            self.spans.push((self.turns, None));
            self.kills.push(Kill { switch, seen: record.value, done: None, revived: None });
            self.on.push(switch.scope);
        } else {
            self.turns += 1;
            // Who revives everybody turns every switch off.
            let is_off = |scope: Scope| switch.scope == Scope::All || scope == switch.scope;
            self.on.retain(|scope| !is_off(*scope));
            let is_ended = |kill: &Kill| is_off(kill.switch.scope) && kill.revived.is_none();
            for (kill, span) in self.kills.iter_mut().zip(&mut self.spans).filter(|(kill, _)| is_ended(kill))
            {
                (kill.revived, span.1) = (Some(record.value), Some(self.turns));
            }
        }
    }

    /// Whether any is on.
    #[inline]
    pub fn is_any_on(&self) -> bool {
        !self.on.is_empty()
    }

    /// An order is dispatched while a switch is on.
    #[cold]
    pub fn dispatched(&mut self, record: Record, row: &OrderRow, instrument: u16, trading: &Trading) {
        if record.detail == NOT_NEW {
            return;
        }
        let needs_more = self.on.iter().any(|scope| matches!(scope, Scope::Venue(_) | Scope::Instrument(_)));
        match row.pushed() {
            Some((gateway, _)) => {
                if let Some(scope) =
                    concerning(self.on.iter().copied(), record.id, gateway, instrument, trading)
                {
                    through(record.id, scope, &mut self.found);
                }
            }
            None => {
                let known = self
                    .on
                    .iter()
                    .copied()
                    .filter(|scope| !matches!(scope, Scope::Venue(_) | Scope::Instrument(_)));
                match concerning(known, record.id, 0, 0, trading) {
                    Some(scope) => through(record.id, scope, &mut self.found),
                    None if needs_more => self.suspects.push((record.id, self.turns)),
                    None => {}
                }
            }
        }
    }

    /// Whether a kill switch that concerns an order had been seen when its venue was done with it
    /// (the t5 of its last report): what cancelled it then was the switch. The venue was told
    /// before a revival, and may confirm after it.
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

    /// Looks at those orders of which venue and instrument were not known when they were
    /// dispatched.
    pub fn check<'a>(
        &self,
        row: impl Fn(OrderId) -> Option<(&'a OrderRow, u16)>,
        trading: &Trading,
        findings: &mut Findings,
    ) {
        for (id, turns) in &self.suspects {
            let Some((row, instrument)) = row(*id) else { continue };
            let Some((gateway, _)) = row.pushed() else { continue };
            let on = self.kills.iter().zip(&self.spans).filter_map(|(kill, (from, until))| {
                let was_on = from <= turns && until.is_none_or(|until| *turns < until);
                was_on.then_some(kill.switch.scope)
            });
            if let Some(scope) = concerning(on, *id, gateway, instrument, trading) {
                through(*id, scope, &mut findings.firm);
            }
        }
    }

    /// The switches that were turned on, in the order in which they were seen.
    pub fn into_kills(self) -> Vec<Kill> {
        self.kills
    }
}

fn concerning(
    mut on: impl Iterator<Item = Scope>,
    id: OrderId,
    gateway: usize,
    instrument: u16,
    trading: &Trading,
) -> Option<Scope> {
    let credential = trading.credential_of(id.strategy());
    let venue = trading.venue_of(gateway as u16);
    on.find(|scope| scope.contains(id.strategy(), credential, venue, instrument))
}

#[cold]
fn through(id: OrderId, scope: Scope, found: &mut Violations) {
    found.add(ViolationKind::Killed, || {
        format!("{}: dispatched although the kill switch of {scope} had been seen", name_of(id))
    });
}

impl Kill {
    /// What turned it, in words: `operator`, `death`, `limit max-loss`.
    pub fn cause(&self) -> String {
        match self.switch.cause {
            KillCause::Operator => "operator".into(),
            KillCause::Death => "death".into(),
            KillCause::Limit(code) => RiskControl::from_code(code)
                .map_or_else(|| format!("limit {code}"), |control| format!("limit {control}")),
        }
    }
}
