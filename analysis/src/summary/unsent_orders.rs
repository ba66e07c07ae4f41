//! Orders that were never sent in a run that ended normally, and why: a strategy had reached its
//! maximum of open orders (resting orders at an exchange are open until trading ends), or trading
//! was closed because nothing had progressed for some time.

use crate::merge::MergedRun;
use crate::numbers::count;
use crate::record::{RunOutcome, RunRecord};
use protocol::index::StrategyIndex;
use protocol::labels::StrategyCounter;
use protocol::plan::{Role, Trading};

/// Returns a line for each cause of unsent orders, with their number and the remedy. None for a run
/// that did not end normally. For strategies that may send fewer orders than planned, and for dead
/// ones, only `--max-open` is reported.
pub(super) fn unsent_orders(record: &RunRecord, merged: &MergedRun) -> Vec<String> {
    let trading = record.plan.trading();
    if record.outcome != RunOutcome::Complete || merged.orders.sent >= merged.orders.scheduled {
        return Vec::new();
    }
    let mut sent = vec![0u64; trading.orders.len()];
    for (id, _) in merged.orders() {
        if let Some(sent) = sent.get_mut(id.strategy().as_usize()) {
            *sent += 1;
        }
    }
    let (mut limited, mut kept_back, mut closed) = (0u64, 0u64, 0u64);
    for (strategy, (sent, planned)) in (0..).zip(sent.iter().zip(&trading.orders)) {
        let role = Role::Strategy(StrategyIndex(strategy));
        let Some(thread) = record.plan.thread_of(role) else { continue };
        let log = merged.threads.get(thread).filter(|log| !log.is_untrusted);
        let max_open = log.map_or(0, |log| {
            log.counters
                .agent_counters(&record.plan.threads[thread].roles, role)
                .get(StrategyCounter::InFlightPeak)
        });
        let sends_all = log.is_some()
            && trading.strategy_kind(StrategyIndex(strategy)) == Trading::PLAYER
            && !record.incidents.iter().any(|incident| incident.strategy == StrategyIndex(strategy));
        let missing = planned.saturating_sub(*sent);
        if missing > 0 && max_open >= trading.max_open.into() {
            (limited, kept_back) = (limited + 1, kept_back.saturating_add(missing));
        } else if sends_all {
            closed = closed.saturating_add(missing);
        }
    }
    let all = count(merged.orders.scheduled);
    let max_open = count(trading.max_open.into());
    let subject = if limited == 1 { "a strategy".into() } else { format!("{} strategies", count(limited)) };
    let limited = (limited > 0).then(|| {
        format!(
            "{} of {all} orders were not sent: {subject} had {max_open} orders open, as many as --max-open allows, and what rests at a venue \
             stays open: raise --max-open",
            count(kept_back)
        )
    });
    let closed = (closed > 0).then(|| {
        format!(
            "{} of {all} orders were not sent: nothing had moved for seconds, so trading was closed: lower the rate or give the roles \
             cores",
            count(closed)
        )
    });
    limited.into_iter().chain(closed).collect()
}
