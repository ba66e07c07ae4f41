//! Violations: what a valid run must never show, counted by kind, with a first example each.

use protocol::wire::OrderId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of violation. Any of them makes the run invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// A point stamped twice for one order.
    Duplicate,
    /// A sequence that its strategy left out.
    Gap,
    /// An order of a strategy or a sequence that the plan does not have, or of an epoch that the
    /// record does not have.
    NotInPlan,
    /// An order that the engine saw and no strategy sent.
    NeverSent,
    /// A point in the log of a thread that has no business stamping it.
    Misplaced,
    /// A strategy's orders were stamped as sent out of their sequence.
    SendOrder,
    /// A strategy's orders reached the orchestrator in another order than they were sent, or were
    /// dispatched when its next incarnation had begun.
    SubmitOrder,
    /// Orders reached a gateway in another order than they were dispatched.
    DispatchOrder,
    /// A gateway's reports reached the orchestrator in another order than they were pushed.
    CompletionOrder,
    /// Reports reached a strategy in another order than they were returned.
    ReturnOrder,
    /// An order of which not exactly one report is the last, or is not the last one.
    LastReport,
    /// A stamp before the one that it must follow.
    TimeOrder,
    /// An order that came back without having been stamped everywhere.
    MissingPoint,
    /// A rejected order that was dispatched all the same.
    RejectedDispatched,
    /// An order that was cancelled, or refused, because its strategy was dead, and whose strategy
    /// was not.
    NotDead,
    /// An order that never came back, in a run that ended as if it had, and that no death explains.
    Lost,
    /// Records that found their log full.
    RecordsDropped,
    /// A thread counted something else than it stamped.
    Counters,
    /// A thread was handed what no honest peer hands over, and no death or fault of the record
    /// explains it; or, outside the sandbox, a strategy was quarantined for its orders, and no
    /// fault of the plan explains it.
    PeerFaults,
    /// A fill that no report carries, that stands there twice, or that has no price.
    Fill,
    /// What the orchestrator says that a strategy holds is not what was filled.
    Position,
    /// A version of a touch that its exchange left out, wrote twice, or wrote before the one in
    /// front of it.
    Touch,
    /// An order that says that a version of a touch triggered it which was never written, or not
    /// yet when it was sent.
    Trigger,
    /// An order that was dispatched although a kill switch that concerns it was on.
    Killed,
    /// What one end of a hand-off pushed is not what the other took: lost, doubled, made up or
    /// torn.
    Checksum,
}

/// All violations of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Which.
    pub kind: ViolationKind,
    /// How often.
    pub count: u64,
    /// The first example, in words: `strategy 3 order 17: t5 before t4`.
    pub first: String,
}

/// Collects violations; a list, since there are few kinds and mostly none.
#[derive(Clone, Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Counts one violation; `example` is only asked for the first of its kind.
    #[cold]
    pub fn add(&mut self, kind: ViolationKind, example: impl FnOnce() -> String) {
        self.add_many(kind, 1, example);
    }

    /// Counts `count` violations at once; none for 0.
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

    /// How many there are of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, violation| sum.saturating_add(violation.count))
    }

    /// The first that was found.
    pub fn first(&self) -> Option<&Violation> {
        self.0.first()
    }

    /// Adds all of another list.
    pub fn append(&mut self, other: Violations) {
        for Violation { kind, count, first } in other.0 {
            self.add_many(kind, count, || first);
        }
    }

    /// The violations, by kind.
    pub fn into_sorted(mut self) -> Vec<Violation> {
        self.0.sort_by_key(|violation| violation.kind);
        self.0
    }
}

/// Violations by who testifies to them.
///
/// A thread of the engine is believed. What contradicts it by the word of a strategy alone (the
/// stamps and counters in memory that the strategy can write) is kept apart: where strategies may
/// be hostile, it says that the strategy lies.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What does not rest on a strategy's word.
    pub firm: Violations,
    by_strategy: BTreeMap<u16, Violations>,
}

impl Findings {
    /// Counts one violation that rests on the word of the strategy `witness`, or on nobody's alone.
    #[cold]
    pub fn add(&mut self, witness: Option<u16>, kind: ViolationKind, example: impl FnOnce() -> String) {
        match witness {
            None => self.firm.add(kind, example),
            Some(strategy) => self.by_strategy.entry(strategy).or_default().add(kind, example),
        }
    }

    /// The strategies whose word contradicts the engine's, and how.
    pub fn accused(&self) -> impl Iterator<Item = (u16, &Violations)> {
        self.by_strategy.iter().map(|(strategy, violations)| (*strategy, violations))
    }

    /// Forgets what rests on a strategy's word.
    pub fn disregard(&mut self, strategy: u16) {
        self.by_strategy.remove(&strategy);
    }

    /// All of it, by kind.
    pub fn into_sorted(mut self) -> Vec<Violation> {
        for violations in core::mem::take(&mut self.by_strategy).into_values() {
            self.firm.append(violations);
        }
        self.firm.into_sorted()
    }
}

/// How an order is named in examples: `strategy 3 order 17`.
pub fn name_of(id: OrderId) -> String {
    match id.epoch() {
        0 => format!("strategy {} order {}", id.strategy(), id.sequence()),
        epoch => format!("strategy {} epoch {epoch} order {}", id.strategy(), id.sequence()),
    }
}
