//! Violations of a run's invariants, counted by kind with a first example each.

use protocol::index::StrategyIndex;
use protocol::wire::OrderId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of violation: an error that a run's logs show, such as a lost, duplicated or reordered
/// order. Any violation makes the run invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// A point was stamped twice for one order.
    Duplicate,
    /// A strategy left out a sequence.
    Gap,
    /// An order has a strategy or a sequence outside the plan, or an epoch outside the record.
    NotInPlan,
    /// The engine received an order that no strategy sent.
    NeverSent,
    /// A thread stamped a point that does not belong to its roles.
    Misplaced,
    /// A strategy sent orders out of sequence.
    SendOrder,
    /// A strategy's orders reached the orchestrator out of order, or were dispatched after its next
    /// incarnation had begun.
    SubmitOrder,
    /// Orders reached a gateway in another order than they were dispatched.
    DispatchOrder,
    /// A gateway's reports reached the orchestrator in another order than they were pushed.
    CompletionOrder,
    /// Reports reached a strategy in another order than they were returned.
    ReturnOrder,
    /// Not exactly one report of an order is marked as last, or it is not the last one.
    LastReport,
    /// A stamp precedes one that it must follow.
    TimeOrder,
    /// A returned order lacks a stamp.
    MissingPoint,
    /// A rejected order was dispatched.
    RejectedDispatched,
    /// An order was canceled or refused because its strategy was dead, and the strategy was alive.
    NotDead,
    /// An order never returned, in a run that completed and without a death that explains it.
    Lost,
    /// Records were dropped because their log was full.
    RecordsDropped,
    /// The counters of a thread differ from its stamps.
    Counters,
    /// A thread received an invalid message that no death or fault of the record explains. Or,
    /// outside the sandbox, a strategy was quarantined for its orders without a fault of the plan.
    PeerFaults,
    /// A fill belongs to no report, is duplicated, or has no price.
    Fill,
    /// A position logged by the orchestrator differs from the fills.
    Position,
    /// An exchange skipped or repeated a top-of-book version, or wrote it before its predecessor.
    Touch,
    /// An order claims a trigger version that was never written, or not before it was sent.
    Trigger,
    /// An order was dispatched although a kill switch on its scope was on.
    Killed,
    /// The checksums of the two ends of a hand-off differ: messages were lost, duplicated, forged
    /// or torn.
    Checksum,
}

/// The violations of one kind in a run: their number, with a first example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Kind of violation.
    pub kind: ViolationKind,
    /// Number of violations.
    pub count: u64,
    /// First example: `strategy 3 order 17: t5 before t4`.
    pub first: String,
}

/// All violations of a run's invariants, counted by kind.
#[derive(Clone, Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Counts one violation of a kind, and keeps the first example. `example` is called only for
    /// the first of its kind.
    #[cold]
    pub fn add(&mut self, kind: ViolationKind, example: impl FnOnce() -> String) {
        self.add_many(kind, 1, example);
    }

    /// Counts `count` violations of a run's invariants of one kind, and keeps the first example.
    /// Does nothing for 0.
    #[cold]
    pub fn add_many(&mut self, kind: ViolationKind, count: u64, example: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|violation| violation.kind == kind) {
            Some(violation) => violation.count = violation.count.saturating_add(count),
            None => self.0.push(Violation { kind, count, first: example() }),
        }
    }

    /// Returns the number of violations of all kinds in the collection.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, violation| sum.saturating_add(violation.count))
    }

    /// Returns the kind of violation that was found first, with the number of its violations and
    /// its first example; `None` without any violation.
    pub fn first(&self) -> Option<&Violation> {
        self.0.first()
    }

    /// Adds the violations of another collection to this one, kind by kind.
    pub fn append(&mut self, other: Violations) {
        for Violation { kind, count, first } in other.0 {
            self.add_many(kind, count, || first);
        }
    }
}

/// A run's violations, grouped by the strategy whose stamps alone show them; under `None`, those
/// that do not rest on one strategy's stamps.
///
/// The engine's threads are trusted. A contradiction that rests only on a strategy's word (stamps
/// and counters in memory that the strategy can write) is kept separately: where strategies may be
/// hostile, it shows that the strategy forged them.
#[derive(Clone, Debug, Default)]
pub struct Findings(BTreeMap<Option<StrategyIndex>, Violations>);

impl Findings {
    /// Counts one violation whose only evidence is the stamps of the strategy `sole_source`, if
    /// that is given.
    #[cold]
    pub fn add(
        &mut self,
        sole_source: Option<StrategyIndex>,
        kind: ViolationKind,
        example: impl FnOnce() -> String,
    ) {
        self.0.entry(sole_source).or_default().add(kind, example);
    }

    /// Returns the violations that do not rest on one strategy's stamps alone, for more to be
    /// added.
    pub fn certain(&mut self) -> &mut Violations {
        self.0.entry(None).or_default()
    }

    /// Iterates over the strategies whose own stamps are the only evidence of violations, with
    /// those violations.
    pub fn accused(&self) -> impl Iterator<Item = (StrategyIndex, &Violations)> {
        self.0.iter().filter_map(|(sole_source, violations)| Some(((*sole_source)?, violations)))
    }

    /// Removes the violations whose only evidence is this strategy's stamps.
    pub fn disregard(&mut self, strategy: StrategyIndex) {
        self.0.remove(&Some(strategy));
    }

    /// Converts the findings to violations of the whole run, sorted by kind.
    pub fn into_sorted(self) -> Vec<Violation> {
        let mut all = Violations::default();
        self.0.into_values().for_each(|violations| all.append(violations));
        all.0.sort_by_key(|violation| violation.kind);
        all.0
    }
}

/// Returns the name of an order for messages, such as `strategy 3 order 17`.
pub fn order_name(id: OrderId) -> String {
    match id.epoch() {
        0 => format!("strategy {} order {}", id.strategy(), id.sequence()),
        epoch => format!("strategy {} epoch {epoch} order {}", id.strategy(), id.sequence()),
    }
}
