//! Orders that were never sent because a strategy had as many open as it may: what rests at an exchange is open until trading is over.

use crate::merge::Merged;
use crate::numbers::count;
use crate::record::{Outcome, RunRecord};
use protocol::labels::StrategyCounter;
use protocol::plan::Role;

/// How many they are, why, and the way out; `None` where there are none, and for a run that did not come to its end.
pub(super) fn orders(record: &RunRecord, merged: &Merged) -> Option<String> {
    let trading = record.plan.trading();
    if record.outcome != Outcome::Complete || merged.orders.sent >= merged.orders.scheduled {
        return None;
    }
    let mut sent = vec![0u64; trading.orders.len()];
    for (id, _) in merged.orders() {
        if let Some(sent) = sent.get_mut(usize::from(id.strategy())) {
            *sent += 1;
        }
    }
    let (mut limited, mut unsent) = (0u64, 0u64);
    for (strategy, (sent, planned)) in (0..).zip(sent.iter().zip(&trading.orders)) {
        let role = Role::Strategy(strategy);
        let Some(thread) = record.plan.thread_of(role) else { continue };
        let log = merged.threads.get(thread).filter(|log| !log.is_untrusted);
        let most = log.map_or(0, |log| {
            log.counters.of(&record.plan.threads[thread].roles, role).get(StrategyCounter::InFlightPeak)
        });
        if sent < planned && most >= trading.max_open.into() {
            (limited, unsent) = (limited + 1, unsent.saturating_add(planned - sent));
        }
    }
    let most = count(trading.max_open.into());
    let whose = if limited == 1 { "a strategy".into() } else { format!("{} strategies", count(limited)) };
    (limited > 0).then(|| {
        format!(
            "{} of {} orders were not sent: {whose} had {most} orders open, as many as --max-open allows, and what rests at a venue \
             stays open: raise --max-open",
            count(unsent),
            count(merged.orders.scheduled)
        )
    })
}
