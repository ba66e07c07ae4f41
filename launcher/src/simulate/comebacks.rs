//! Runs in which the engine and exchanges die and come back from their journals: what is drawn, and
//! what must hold.
//!
//! Every venue is an exchange in a process of its own. They and the engine are killed or hang at
//! times that the seed draws, alone, together, or one soon after the other, and strategies among
//! them; each dies at some look at its clock, and perhaps again while it comes back. What comes
//! next is what the launcher's roles make of a journal and of the memory that was left behind. In
//! two runs of three they have spares, which follow as seldom as they have a turn, and are gone now
//! and then. In one of three reports wait for the disk, and the machine may die (`machine`).
//!
//! The judge believes neither side: what was at an exchange, and what that makes of positions, it
//! reads from the exchange's journal.

use super::Simulated;
use crate::config::{Kinds, Settings};
use analysis::merge::{MergedRun, OrderEnd};
use analysis::units::Count;
use protocol::plan::{ExchangePlacement, Fault, FaultKind, Plan, Target, Technique, Trading, When};
use protocol::tape::TapedTrade;
use protocol::wire::{OrderId, Side};
use roles::faults::Draws;
use shm::ring::spsc_mux::SpscMux;
use std::collections::{BTreeMap, HashMap};
use venue::{Audit, Trade};

/// Whether it is such a run that a seed stands for, if nobody asks for a kind.
pub(super) fn is_drawn(seed: u64, technique: Technique) -> bool {
    technique == Technique::of::<SpscMux>() && Draws::new(seed, Draws::COMEBACKS).below(3) == 0
}

/// Makes every venue an exchange in a process of its own.
pub(super) fn shape(settings: &mut Settings, draws: &mut Draws) {
    settings.venue = Some(Kinds::new(vec![Trading::BOOK.into()]));
    settings.exchange = Some(ExchangePlacement::Process);
    settings.credentials = Some(Count(1 + draws.below(settings.strategies().0.min(2))));
    // What rests stays open: with few of them a strategy soon has nothing to send.
    let most = if draws.below(2) == 0 { 20 } else { 140 };
    settings.max_open = Some(Count(1 + draws.below(most)));
}

/// Who dies or hangs, and when; `death` draws that of a strategy.
pub(super) fn faults(
    draws: &mut Draws,
    plan: &Plan,
    window_ns: u64,
    death: fn(&mut Draws, &Plan, u64) -> Fault,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for _ in 0..=draws.below(4) {
        let ns = draws.below(2 * window_ns + 2_000);
        let exchange = Target::Exchange(draws.below(plan.trading().venues.into()) as u16);
        let targets = match draws.below(5) {
            0 | 1 => vec![(Target::Engine, 0)],
            2 => vec![(exchange, 0)],
            3 => vec![(Target::Engine, 0), (exchange, 0)],
            _ => vec![(Target::Engine, 0), (Target::Engine, 1 + draws.below(400))],
        };
        for (target, later) in targets {
            let kind = if draws.below(6) == 0 { FaultKind::Stop } else { FaultKind::Kill };
            let when = When::At { ns: ns + later };
            faults.push(Fault { kind, target, when, every_ns: None, lasts_ns: None });
        }
        if draws.below(4) == 0 {
            let mut death = death(draws, plan, window_ns);
            if let When::At { ns: at } = &mut death.when {
                // Together with the others.
                *at = ns;
            }
            faults.push(Fault { every_ns: None, ..death });
        }
    }
    faults
}

/// What the exchanges did by their journals.
#[derive(Debug, Default)]
pub(super) struct Audits {
    /// Orders that are in a journal, and how often.
    orders: HashMap<OrderId, u64>,
    /// What each strategy has bought less what it has sold, by instrument.
    positions: BTreeMap<(u16, u16), i64>,
    /// Messages that none may send.
    faults: u64,
    /// Trades by the journals, and those of them that the tapes have, each in its place.
    trades: (u64, u64),
}

impl Audits {
    /// Adds what one of them did, with what its tape has.
    pub fn add(&mut self, audit: &Audit, tape: &[TapedTrade]) {
        let trades = audit.trades.len().max(tape.len());
        let is_same = |(trade, taped): &(&Trade, &TapedTrade)| {
            (trade.maker, trade.taker, trade.price, trade.quantity)
                == (taped.maker, taped.taker, taped.price, taped.quantity)
        };
        let same = audit.trades.iter().zip(tape).filter(is_same).count();
        self.trades = (self.trades.0 + trades as u64, self.trades.1 + same as u64);
        audit.orders.iter().for_each(|id| *self.orders.entry(*id).or_default() += 1);
        for report in audit.reports.iter().filter(|report| report.filled > 0) {
            let signed = match report.side {
                Side::Buy => report.filled.cast_signed(),
                Side::Sell => report.filled.wrapping_neg().cast_signed(),
            };
            *self.positions.entry((report.id.strategy(), report.instrument)).or_default() += signed;
        }
        self.faults += audit.faults;
    }
}

/// What does not hold of a run that came to its end: found in what the exchanges' journals say.
pub(super) fn differences(run: &Simulated, merged: &MergedRun) -> Vec<String> {
    let mut found = Vec::new();
    let Some(audits) = &run.audits else { return vec!["the exchanges' journals cannot be read".into()] };
    let twice = audits.orders.iter().find(|(_, times)| **times > 1);
    found.extend(twice.map(|(id, times)| format!("order {id} was at its exchange {times} times")));
    if audits.faults > 0 {
        found.push(format!("{} messages to exchanges were none that may be sent", audits.faults));
    }
    if audits.trades.0 != audits.trades.1 {
        let (trades, same) = audits.trades;
        found.push(format!("of {trades} trades of the journals or the tapes {same} are in both"));
    }
    let mut known = 0;
    for (id, row) in merged.orders() {
        let is_there = audits.orders.contains_key(&id);
        known += u64::from(is_there);
        let end = OrderEnd::from_points(row.points(), false);
        if !is_there && end == OrderEnd::Returned {
            found.push(format!("order {id} was returned, and no exchange had it"));
        }
        let lives = !run.scenario.culprits.contains(&id.strategy());
        if lives && !matches!(end, OrderEnd::Returned | OrderEnd::Rejected) {
            found.push(format!("order {id} of a strategy that lives: {end:?}"));
        }
    }
    if known != audits.orders.len() as u64 {
        found.push(format!("{} orders were at exchanges, and {known} were sent", audits.orders.len()));
    }
    let booked =
        merged.positions.iter().map(|booked| ((booked.strategy, booked.instrument), booked.account.net));
    let booked: BTreeMap<_, _> = booked.filter(|(_, net)| *net != 0).collect();
    let traded: BTreeMap<_, _> =
        audits.positions.iter().map(|(of, net)| (*of, *net)).filter(|(_, net)| *net != 0).collect();
    if booked != traded {
        found.push(format!("positions are {booked:?}, and by the exchanges' journals {traded:?}"));
    }
    for comeback in run.record.role_restarts.iter().filter(|comeback| comeback.recovered_ns.is_none()) {
        found.push(format!("{} did not come back", comeback.role));
    }
    found
}
