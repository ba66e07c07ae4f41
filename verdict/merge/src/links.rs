//! Compares the checksums of both ends of each hand-off, from the end of the logs.
//!
//! Stamps show that an order arrived, and in order. Checksums show that it arrived unchanged: a
//! torn, duplicated or forged message makes the two ends differ.

use super::ThreadLog;
use super::context::CheckContext;
use super::violation::{Findings, ViolationKind};
use protocol::checksum::digest;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::plan::Role;
use protocol::stamps::{HandOff, LinkEnd};
use protocol::status::ThreadState;
use protocol::wire::{CancelScope, Instruction, OrderId};
use record::run::RunRecord;
use std::collections::BTreeMap;

/// Maximum mass cancels of an incarnation that ends: by its kill switch, by an operator and by its
/// death.
const MAX_LEFT_CANCELS: u64 = 3;

/// The checksums in all logs, for both ends of each link.
#[derive(Debug, Default)]
pub(super) struct LinkChecksums(BTreeMap<LinkEnd, u64>);

impl LinkChecksums {
    /// Stores the checksum of the messages at one end of a link (hand-off between two roles).
    /// Returns `false` if that end had one already, which is replaced.
    pub fn try_insert(&mut self, end: LinkEnd, sum: u64) -> bool {
        self.0.insert(end, sum).is_none()
    }

    /// Removes the message checksums that an untrusted strategy wrote.
    pub fn forget(&mut self, strategy: StrategyIndex) {
        self.0.retain(|end, _| !is_of_strategy(end, strategy));
    }

    /// Compares the message checksums at both ends of each link (hand-off), and counts a violation
    /// for each difference. Only for complete runs: in others messages were in flight.
    pub fn check(&self, context: &CheckContext, logs: &[ThreadLog], findings: &mut Findings) {
        let (record, deaths, plan) = (context.record, context.deaths, &context.record.plan);
        let has_ended = |role| {
            let log = plan.thread_of(role).and_then(|thread| logs.get(thread));
            log.is_some_and(|log| log.status.state() == ThreadState::Done)
        };
        if !context.is_complete || !has_ended(Role::Orchestrator) {
            return;
        }
        let at = |end: LinkEnd| self.0.get(&end).copied();
        for strategy in
            StrategyIndex::first(plan.trading().strategies).filter(|index| has_ended(Role::Strategy(*index)))
        {
            let ends = self.0.keys().filter(|end| is_of_strategy(end, strategy));
            let newest = ends.map(|end| end.epoch).max().unwrap_or(0);
            if deaths.is_untrusted(strategy) || deaths.incident(strategy, newest).is_some() {
                continue;
            }
            for hand_off in [HandOff::Submit, HandOff::Return] {
                let pushed = at(LinkEnd::sender(hand_off, strategy.0, newest));
                let taken = at(LinkEnd::receiver(hand_off, strategy.0, newest));
                let peer = Role::Strategy(strategy).to_string();
                compare(hand_off, &peer, pushed, taken, Some(strategy), findings);
            }
        }
        // After a restart both ends have the checksum of the last incarnation.
        let is_live = |gateway: &GatewayIndex| {
            let last = record.outages.iter().rfind(|outage| outage.gateways.contains(gateway));
            last.is_none_or(|outage| outage.restarted_ns.is_some())
        };
        let live: Vec<GatewayIndex> =
            GatewayIndex::first(plan.trading().gateways()).filter(is_live).collect();
        if !live.iter().all(|gateway| has_ended(Role::Gateway(*gateway))) {
            return;
        }
        let mut reported = Some(0u64);
        for gateway in live {
            let pushed = at(LinkEnd::sender(HandOff::Inbox, gateway.0, 0));
            let taken = at(LinkEnd::receiver(HandOff::Inbox, gateway.0, 0));
            if !pushed.zip(taken).is_some_and(|(pushed, taken)| is_left_cancel(pushed, taken, record)) {
                let peer = plan.trading().role_name(Role::Gateway(gateway));
                compare(HandOff::Inbox, &peer, pushed, taken, None, findings);
            }
            let sum = at(LinkEnd::sender(HandOff::Completion, gateway.0, 0));
            reported = reported.zip(sum).map(|(all, sum)| all.wrapping_add(sum));
        }
        // A dead gateway left no checksum, and the engine's covers all gateways. Reports of
        // survivors are checked by their stamps.
        if record.outages.is_empty() {
            let taken = at(LinkEnd::receiver(HandOff::Completion, 0, 0));
            compare(HandOff::Completion, "the gateways", reported, taken, None, findings);
        }
    }
}

/// Returns `true` if a gateway left only mass cancels of an incarnation that ended: it may see the
/// end of the run before the engine, which then sees that end. An order that such a cancel should
/// have reached has no answer, which is found by its stamps.
fn is_left_cancel(pushed: u64, taken: u64, record: &RunRecord) -> bool {
    let left = pushed.wrapping_sub(taken);
    record.incidents.iter().any(|incident| {
        let incarnation = OrderId::new(incident.strategy.0, incident.epoch, 0);
        let cancel = Instruction::CancelAll(CancelScope::for_strategy(incarnation));
        let digest = digest(&cancel.to_message());
        (1..=MAX_LEFT_CANCELS).any(|count| left == digest.wrapping_mul(count))
    })
}

fn is_of_strategy(end: &LinkEnd, strategy: StrategyIndex) -> bool {
    matches!(end.hand_off, HandOff::Submit | HandOff::Return) && end.peer == strategy.0
}

fn compare(
    hand_off: HandOff,
    peer: &str,
    pushed: Option<u64>,
    taken: Option<u64>,
    sole_source: Option<StrategyIndex>,
    findings: &mut Findings,
) {
    let description = match pushed.zip(taken) {
        Some((pushed, taken)) if pushed == taken => return,
        Some(_) => "what was taken is not what was pushed: lost, doubled, made up or torn",
        None => "a log ends without its checksum: records are missing",
    };
    findings.add(sole_source, ViolationKind::Checksum, || {
        format!("{} of {peer}: {description}", hand_off.name())
    });
}
