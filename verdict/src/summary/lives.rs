//! The incarnations of strategies one after the other, with the kind, the time and the orders of
//! each.

use super::strategies::distribution;
use merge::figures::{Distribution, engine_ticks};
use merge::{MergedRun, OrderEnd};
use protocol::index::StrategyIndex;
use protocol::stamps::Point;
use record::run::{Addition, EndByOperator, Incident, RunRecord};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The life of one incarnation of a strategy: from its start to its end. Times are nanoseconds
/// since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifeSummary {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Epoch of the incarnation.
    pub epoch: u16,
    /// Kind of the strategy: a built-in name, or `exec:` and a command.
    pub kind: String,
    /// Time in nanoseconds at which the incarnation ran, or was started if it never did.
    pub from_ns: u64,
    /// Time in nanoseconds at which the incarnation's end was detected; null if it lived to the end
    /// of the run.
    pub to_ns: Option<u64>,
    /// Number of orders that the incarnation sent.
    pub sent: u64,
    /// Number of the incarnation's orders that were returned to it.
    pub returned: u64,
    /// rt_venue of the incarnation's orders after the warm-up.
    pub rt_venue: Distribution,
    /// How the incarnation ended; null if it lived to the end of the run.
    pub ended: Option<String>,
}

/// The orders of one incarnation, and the times of the measured ones in ticks.
#[derive(Default)]
struct LifeOrders {
    sent: u64,
    returned: u64,
    engine_ticks: Vec<u64>,
}

/// Returns the lives of strategies that had more than one or were added by an operator, by strategy
/// and epoch. Allocates 8 bytes for each of their orders during the call.
pub(super) fn summarize(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<LifeSummary> {
    let added = record.additions.iter().map(|addition| addition.strategy);
    let restarted = record.incidents.iter().filter(|incident| has_successor(record, incident));
    let shown: BTreeSet<StrategyIndex> = added.chain(restarted.map(|incident| incident.strategy)).collect();
    let mut orders: BTreeMap<(StrategyIndex, u16), LifeOrders> = BTreeMap::new();
    for strategy in &shown {
        for (id, row) in merged.orders_of(*strategy) {
            let life = orders.entry((*strategy, id.epoch())).or_default();
            life.sent += u64::from(row.has(Point::StrategySend));
            life.returned += u64::from(OrderEnd::from_points(row.points(), false) == OrderEnd::Returned);
            if merged.is_past_warm_up(row) {
                life.engine_ticks.push(engine_ticks(row));
            }
        }
    }
    let mut lives: Vec<LifeSummary> = shown.iter().flat_map(|strategy| times_of(record, *strategy)).collect();
    for life in &mut lives {
        let mut found = orders.remove(&(life.strategy, life.epoch)).unwrap_or_default();
        (life.sent, life.returned) = (found.sent, found.returned);
        life.rt_venue = distribution(&mut found.engine_ticks, ns_per_tick);
    }
    lives
}

/// Returns `true` if another incarnation began after the one that ended.
fn has_successor(record: &RunRecord, ended: &Incident) -> bool {
    let is_next = |strategy, epoch| strategy == ended.strategy && epoch > ended.epoch;
    ended.restarted_ns.is_some()
        || record.incidents.iter().any(|other| is_next(other.strategy, other.epoch))
        || record.additions.iter().any(|other| is_next(other.strategy, other.epoch))
}

/// Returns the lives of one strategy, without their orders.
fn times_of(record: &RunRecord, strategy: StrategyIndex) -> Vec<LifeSummary> {
    let ended: BTreeMap<u16, &Incident> = (record.incidents.iter().rev())
        .filter(|incident| incident.strategy == strategy)
        .map(|incident| (incident.epoch, incident))
        .collect();
    let added: BTreeMap<u16, &Addition> = (record.additions.iter())
        .filter(|addition| addition.strategy == strategy)
        .map(|addition| (addition.epoch, addition))
        .collect();
    let trading = record.plan.trading();
    let first = (!trading.is_spare(strategy)).then_some(0);
    let restarted = ended.values().filter(|incident| incident.restarted_ns.is_some());
    let epochs: BTreeSet<u16> = (first.into_iter())
        .chain(ended.keys().copied())
        .chain(added.keys().copied())
        .chain(restarted.map(|incident| incident.epoch.saturating_add(1)))
        .collect();
    let mut kind = trading.strategy_kind(strategy);
    let mut lives = Vec::new();
    for epoch in epochs {
        let before = epoch.checked_sub(1).and_then(|before| ended.get(&before));
        let replaced = before.and_then(|incident| match &incident.by_operator {
            Some(EndByOperator::Replaced(kind)) => Some(kind.as_str()),
            _ => None,
        });
        let other = added.get(&epoch).map(|addition| addition.kind.as_str()).or(replaced);
        kind = other.filter(|other| !other.is_empty()).unwrap_or(kind);
        let from_ns = match (added.get(&epoch), before) {
            (Some(addition), _) => addition.running_ns.unwrap_or(addition.started_ns),
            (None, Some(before)) => before.restarted_ns.or(before.repaired_ns).unwrap_or(before.detected_ns),
            (None, None) => 0,
        };
        let end = ended.get(&epoch);
        lives.push(LifeSummary {
            strategy,
            epoch,
            kind: kind.to_owned(),
            from_ns,
            to_ns: end.map(|end| end.detected_ns),
            ended: end.map(|end| end.cause.clone()),
            ..LifeSummary::default()
        });
    }
    lives
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::{OnDeath, Plan, Trading};
    use record::run::RunOutcome;

    fn record() -> RunRecord {
        let trading = Trading { spare_strategies: 1, orders: vec![1; 3], ..Trading::new(3, 1) };
        let plan = Plan { on_death: OnDeath::Restart, ..Plan::for_trading(trading) }.arranged();
        RunRecord::new(plan, RunOutcome::Complete)
    }

    fn ended(epoch: u16, restarted_ns: Option<u64>, by_operator: Option<EndByOperator>) -> Incident {
        let detected_ns = 100 * u64::from(epoch) + 50;
        let cause = format!("end {epoch}");
        Incident {
            strategy: StrategyIndex(1),
            epoch,
            detected_ns,
            cause,
            restarted_ns,
            by_operator,
            ..Incident::default()
        }
    }

    #[test]
    fn kind_of_each_life_is_that_of_last_change() {
        let mut record = record();
        record.incidents = vec![
            ended(0, Some(60), None),
            ended(1, Some(170), Some(EndByOperator::Replaced("maker".into()))),
            ended(2, None, Some(EndByOperator::Retired)),
        ];
        record.additions = vec![Addition {
            strategy: StrategyIndex(1),
            epoch: 3,
            kind: "taker".into(),
            started_ns: 300,
            running_ns: Some(310),
        }];
        let lives = times_of(&record, StrategyIndex(1));
        let shown: Vec<_> =
            lives.iter().map(|life| (life.epoch, life.kind.as_str(), life.from_ns, life.to_ns)).collect();
        assert_eq!(
            shown,
            [
                (0, "player", 0, Some(50)),
                (1, "player", 60, Some(150)),
                (2, "maker", 170, Some(250)),
                (3, "taker", 310, None),
            ]
        );
        assert_eq!(lives[2].ended.as_deref(), Some("end 2"));
        assert!(has_successor(&record, &record.incidents[2]), "it was added");
        record.additions.clear();
        assert!(!has_successor(&record, &record.incidents[2]));
    }

    #[test]
    fn spare_lives_from_its_addition_on() {
        let mut record = record();
        assert_eq!(times_of(&record, StrategyIndex(2)), [], "it was never added");
        let (strategy, epoch, started_ns) = (StrategyIndex(2), 1, 70);
        record.additions = vec![Addition { strategy, epoch, started_ns, ..Addition::default() }];
        let lives = times_of(&record, StrategyIndex(2));
        assert_eq!((lives.len(), lives[0].epoch, lives[0].from_ns), (1, 1, 70), "it never ran");
        assert_eq!((lives[0].kind.as_str(), lives[0].to_ns), ("player", None));
    }
}
