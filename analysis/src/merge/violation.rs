//! What a run must never show, counted by kind, with the first example of each named.

use protocol::wire::OrderId;
use serde::{Deserialize, Serialize};

/// A kind of violation. Any of them makes the run invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A point stamped twice for one order.
    Duplicate,
    /// A sequence that its strategy left out.
    Gap,
    /// An order of a strategy or a sequence that the plan does not have, or of an epoch that the record does not have.
    NotInPlan,
    /// An order that the engine saw and no strategy sent.
    NeverSent,
    /// A point in the log of a thread that has no business stamping it.
    Misplaced,
    /// A strategy's orders were stamped as sent out of their sequence.
    SendOrder,
    /// A strategy's orders reached the orchestrator in another order than they were sent, or were dispatched when its next
    /// incarnation had begun.
    SubmitOrder,
    /// Orders reached a gateway in another order than they were dispatched.
    DispatchOrder,
    /// A gateway's reports reached the orchestrator in another order than they were pushed.
    CompletionOrder,
    /// Reports reached a strategy in another order than they were returned.
    ReturnOrder,
    /// A stamp before the one that it must follow.
    TimeOrder,
    /// An order that came back without having been stamped everywhere.
    MissingPoint,
    /// A rejected order that was dispatched all the same.
    RejectedDispatched,
    /// An order that was cancelled, or refused, because its strategy was dead, and whose strategy was not.
    NotDead,
    /// An order that never came back, in a run that ended as if it had, and that no death explains.
    Lost,
    /// Records that found their log full.
    RecordsDropped,
    /// A thread counted something else than it stamped.
    Counters,
}

/// All violations of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Which.
    pub kind: Kind,
    /// How often.
    pub count: u64,
    /// The first example, in words: `strategy 3 order 17: t5 before t4`.
    pub first: String,
}

/// Collects violations; a list, since there are few kinds and mostly none.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Counts one violation; `example` is only asked for the first of its kind.
    #[cold]
    pub fn add(&mut self, kind: Kind, example: impl FnOnce() -> String) {
        self.add_many(kind, 1, example);
    }

    /// Counts `count` violations at once; none for 0.
    #[cold]
    pub fn add_many(&mut self, kind: Kind, count: u64, example: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|violation| violation.kind == kind) {
            Some(violation) => violation.count = violation.count.saturating_add(count),
            None => self.0.push(Violation { kind, count, first: example() }),
        }
    }

    /// The violations, by kind.
    pub fn into_sorted(mut self) -> Vec<Violation> {
        self.0.sort_by_key(|violation| violation.kind);
        self.0
    }
}

/// How an order is named in examples: `strategy 3 order 17`.
pub fn name_of(id: OrderId) -> String {
    match id.epoch() {
        0 => format!("strategy {} order {}", id.strategy(), id.sequence()),
        epoch => format!("strategy {} epoch {epoch} order {}", id.strategy(), id.sequence()),
    }
}
