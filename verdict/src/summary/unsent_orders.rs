//! Orders that were never sent in a run that ended normally, and why: a strategy had reached its
//! maximum of open orders (resting orders at an exchange are open until trading ends), or trading
//! was closed because nothing had progressed for some time.

use merge::MergedRun;
use protocol::index::StrategyIndex;
use protocol::labels::StrategyCounter;
use protocol::plan::{Role, Trading};
use record::numbers::{count, counted};
use record::run::{RunOutcome, RunRecord};

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
            && !trading.is_spare(StrategyIndex(strategy))
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

/// Returns a note on the orders that were not sent because the strategies that have them in the
/// plan are spare: never added, or only after the orders were due.
pub(super) fn of_spares(record: &RunRecord, merged: &MergedRun) -> Option<String> {
    let trading = record.plan.trading();
    let is_added = |spare: StrategyIndex| record.additions.iter().any(|addition| addition.strategy == spare);
    let (mut unused, mut missing) = (0, 0u64);
    for spare in trading.spares() {
        let planned = trading.orders.get(spare.as_usize()).copied().unwrap_or(0);
        let is_unused = !is_added(spare);
        unused += u64::from(is_unused);
        // An interrupted run sends fewer of each strategy's.
        if is_unused || record.outcome == RunOutcome::Complete {
            missing = missing.saturating_add(planned.saturating_sub(merged.orders_of(spare).count() as u64));
        }
    }
    let why = match (unused, trading.spares().len() as u64 - unused) {
        (0, _) => "spare strategies were added after they were due".to_owned(),
        (unused, 0) => format!("{} not added", were(unused, "spare strategy")),
        (unused, _) => {
            format!("{} not added, and others after they were due", were(unused, "spare strategy"))
        }
    };
    (missing > 0).then(|| {
        format!("{} of {} orders were not sent: {why}", count(missing), count(merged.orders.scheduled))
    })
}

/// Returns `1 spare strategy was`, `2 spare strategies were`.
fn were(number: u64, what: &str) -> String {
    format!("{} {}", counted(number, what), if number == 1 { "was" } else { "were" })
}
