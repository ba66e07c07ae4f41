//! Simulated crash recovery: the engine and exchanges die and recover from their journals. Draws
//! the scenario and checks the result.
//!
//! Every venue is an exchange in its own process. Exchanges and the engine are killed or hang at
//! drawn times, alone, together or shortly after each other, and strategies among them; each dies
//! at some read of its clock, and perhaps again during recovery. What happens next is what the
//! launcher's roles make of the journal and the memory left behind. In two of three runs they have
//! standbys, which follow rarely and are lost now and then. In one of three runs reports wait for
//! the disk, and the machine may die (`machine`).
//!
//! The judge trusts neither side: it reads from the exchanges' journals which orders an exchange
//! had, and the positions that follow.

use super::Simulated;
use merge::{MergedRun, OrderEnd};
use planner::config::{KindList, Settings};
use protocol::faults::Draws;
use protocol::index::VenueIndex;
use protocol::plan::{ExchangePlacement, Fault, FaultKind, FaultTarget, FaultTime, Plan, Technique, Trading};
use protocol::tape::TapedTrade;
use protocol::wire::{OrderId, Side};
use record::units::Count;
use shm::ring::spsc_mux::SpscMux;
use std::collections::{BTreeMap, HashMap};
use venue::{Audit, Trade};

/// Returns `true` if a seed stands for a crash-recovery run, unless the user requested a kind.
pub(super) fn is_drawn(seed: u64, technique: Technique) -> bool {
    technique == Technique::from_link::<SpscMux>() && Draws::new(seed, Draws::RESTARTS).below(3) == 0
}

/// Changes the settings of a crash-recovery run: every venue is an exchange in its own process.
pub(super) fn shape(settings: &mut Settings, draws: &mut Draws) {
    settings.venue = Some(KindList::new(vec![Trading::BOOK.into()]));
    settings.exchange = Some(ExchangePlacement::Process);
    // Resting orders stay open: with few allowed, a strategy soon has nothing to send.
    let max_open_orders = if draws.below(2) == 0 { 20 } else { 140 };
    settings.max_open = Some(Count(1 + draws.below(max_open_orders)));
}

/// Draws which roles of a crash-recovery run die or hang, and when. `draw_death` draws a
/// strategy's death.
pub(super) fn faults(
    draws: &mut Draws,
    plan: &Plan,
    window_ns: u64,
    draw_death: fn(&mut Draws, &Plan, u64) -> Fault,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for _ in 0..=draws.below(4) {
        let ns = draws.below(2 * window_ns + 2_000);
        let exchange = FaultTarget::Exchange(VenueIndex(draws.below(plan.trading().venues.into()) as u16));
        let targets = match draws.below(5) {
            0 | 1 => vec![(FaultTarget::Engine, 0)],
            2 => vec![(exchange, 0)],
            3 => vec![(FaultTarget::Engine, 0), (exchange, 0)],
            _ => vec![(FaultTarget::Engine, 0), (FaultTarget::Engine, 1 + draws.below(400))],
        };
        for (target, delay_ns) in targets {
            let kind = if draws.below(6) == 0 { FaultKind::Stop } else { FaultKind::Kill };
            let when = FaultTime::At { ns: ns + delay_ns };
            faults.push(Fault { kind, target, when, every_ns: None, lasts_ns: None });
        }
        if draws.below(4) == 0 {
            let mut death = draw_death(draws, plan, window_ns);
            if let FaultTime::At { ns: at } = &mut death.when {
                // Together with the others.
                *at = ns;
            }
            faults.push(Fault { every_ns: None, ..death });
        }
    }
    faults
}

/// The orders, fills and trades of a run's exchanges, read from their journals.
#[derive(Debug, Default)]
pub(super) struct JournalAudits {
    /// Orders in the journals, with their number of occurrences.
    orders: HashMap<OrderId, u64>,
    /// Net position of each strategy by instrument.
    positions: BTreeMap<(u16, u16), i64>,
    /// Invalid messages.
    faults: u64,
    /// Trades in the journals, and how many of them are on the tapes at the same position.
    trades: (u64, u64),
}

impl JournalAudits {
    /// Adds one exchange's orders, fills and trades to the run's: `audit` is read from the
    /// exchange's journal, `tape` is its list of trades.
    pub fn add(&mut self, audit: &Audit, tape: &[TapedTrade]) {
        let trades = audit.trades.len().max(tape.len());
        let is_on_tape = |(trade, taped): &(&Trade, &TapedTrade)| {
            (trade.maker, trade.taker, trade.price, trade.quantity)
                == (taped.maker, taped.taker, taped.price, taped.quantity)
        };
        let on_tape_count = audit.trades.iter().zip(tape).filter(is_on_tape).count();
        self.trades = (self.trades.0 + trades as u64, self.trades.1 + on_tape_count as u64);
        audit.orders.iter().for_each(|id| *self.orders.entry(*id).or_default() += 1);
        for report in audit.reports.iter().filter(|report| report.filled > 0) {
            let change = match report.side {
                Side::Buy => report.filled.cast_signed(),
                Side::Sell => report.filled.wrapping_neg().cast_signed(),
            };
            *self.positions.entry((report.id.strategy().0, report.instrument)).or_default() += change;
        }
        self.faults += audit.faults;
    }
}

/// Returns how the results of a run differ from the exchanges' journals.
pub(super) fn differences(run: &Simulated, merged: &MergedRun) -> Vec<String> {
    let mut mismatches = Vec::new();
    let Some(audits) = &run.audits else { return vec!["the exchanges' journals cannot be read".into()] };
    let duplicate = audits.orders.iter().find(|(_, occurrences)| **occurrences > 1);
    mismatches.extend(
        duplicate.map(|(id, occurrences)| format!("order {id} was at its exchange {occurrences} times")),
    );
    if audits.faults > 0 {
        mismatches.push(format!("{} messages to exchanges were none that may be sent", audits.faults));
    }
    if audits.trades.0 != audits.trades.1 {
        let (trades, on_tape_count) = audits.trades;
        mismatches
            .push(format!("of {trades} trades of the journals or the tapes {on_tape_count} are in both"));
    }
    let mut journaled_count = 0;
    for (id, row) in merged.orders() {
        let is_in_journal = audits.orders.contains_key(&id);
        journaled_count += u64::from(is_in_journal);
        let end = OrderEnd::from_points(row.points(), false);
        if !is_in_journal && end == OrderEnd::Returned {
            mismatches.push(format!("order {id} was returned, and no exchange had it"));
        }
        let is_survivor = !run.scenario.is_culprit(id.strategy());
        if is_survivor && !matches!(end, OrderEnd::Returned | OrderEnd::Rejected) {
            mismatches.push(format!("order {id} of a strategy that lives: {end:?}"));
        }
    }
    if journaled_count != audits.orders.len() as u64 {
        mismatches.push(format!(
            "{} orders were at exchanges, and {journaled_count} were sent",
            audits.orders.len()
        ));
    }
    let booked =
        merged.positions.iter().map(|booked| ((booked.strategy.0, booked.instrument), booked.account.net));
    let booked: BTreeMap<_, _> = booked.filter(|(_, net)| *net != 0).collect();
    let traded: BTreeMap<_, _> =
        audits.positions.iter().map(|(account, net)| (*account, *net)).filter(|(_, net)| *net != 0).collect();
    if booked != traded {
        mismatches.push(format!("positions are {booked:?}, and by the exchanges' journals {traded:?}"));
    }
    for restart in run.record.role_restarts.iter().filter(|restart| restart.recovered_ns.is_none()) {
        mismatches.push(format!("{} did not come back", restart.role));
    }
    mismatches
}
