//! Compares the checksums of both ends of each hand-off, from the end of the logs.
//!
//! Stamps show that an order arrived, and in order. Checksums show that it arrived unchanged: a
//! torn, duplicated or forged message makes the two ends differ.

use super::ThreadLog;
use super::deaths::Deaths;
use super::violation::{Findings, ViolationKind};
use crate::record::{RunOutcome, RunRecord};
use protocol::plan::Role;
use protocol::stamps::{HandOff, LinkEnd};
use protocol::status::ThreadState;
use std::collections::BTreeMap;

/// The checksums in all logs, for both ends of each link.
#[derive(Debug, Default)]
pub(super) struct LinkChecksums(BTreeMap<LinkEnd, u64>);

impl LinkChecksums {
    /// Inserts the checksum of one end of a link. Returns `false` if there is one already.
    pub fn try_insert(&mut self, end: LinkEnd, sum: u64) -> bool {
        self.0.insert(end, sum).is_none()
    }

    /// Removes the checksums that an untrusted strategy wrote.
    pub fn forget(&mut self, strategy: u16) {
        let belongs_to_strategy = |end: &LinkEnd| match end.hand_off {
            HandOff::Submit | HandOff::Return => end.peer == strategy,
            HandOff::Inbox | HandOff::Completion => false,
        };
        self.0.retain(|end, _| !belongs_to_strategy(end));
    }

    /// Compares the checksums at both ends of each link and reports those that differ. Only for
    /// complete runs: in others messages were in flight.
    pub fn check(&self, record: &RunRecord, logs: &[ThreadLog], deaths: &Deaths, findings: &mut Findings) {
        if record.outcome != RunOutcome::Complete {
            return;
        }
        let plan = &record.plan;
        let has_ended = |role| {
            let log = plan.thread_of(role).and_then(|thread| logs.get(thread));
            log.is_some_and(|log| log.status.state() == ThreadState::Done)
        };
        let engine = has_ended(Role::Orchestrator);
        for strategy in
            (0..plan.trading().strategies).filter(|strategy| engine && has_ended(Role::Strategy(*strategy)))
        {
            let newest = self.newest_epoch(strategy);
            if deaths.is_untrusted(strategy) || deaths.incident(strategy, newest).is_some() {
                continue;
            }
            for hand_off in [HandOff::Submit, HandOff::Return] {
                let at = |end: LinkEnd| self.0.get(&end).copied();
                let pushed = at(LinkEnd::sender(hand_off, strategy, newest));
                let taken = at(LinkEnd::receiver(hand_off, strategy, newest));
                let who = format!("strategy-{strategy}");
                compare(hand_off, &who, pushed, taken, Some(strategy), findings);
            }
        }
        // After a restart both ends have the checksum of the last incarnation.
        let is_live = |gateway: &u16| !deaths.is_down(usize::from(*gateway));
        let mut living = (0..plan.trading().venues).filter(is_live);
        if !engine || !living.all(|gateway| has_final_checksum(plan, gateway, logs)) {
            return;
        }
        let mut reported = Some(0u64);
        for gateway in (0..plan.trading().venues).filter(is_live) {
            let at = |end: LinkEnd| self.0.get(&end).copied();
            let (pushed, taken) = (
                at(LinkEnd::sender(HandOff::Inbox, gateway, 0)),
                at(LinkEnd::receiver(HandOff::Inbox, gateway, 0)),
            );
            compare(HandOff::Inbox, &format!("gateway-{gateway}"), pushed, taken, None, findings);
            let sum = at(LinkEnd::sender(HandOff::Completion, gateway, 0));
            reported = reported.zip(sum).map(|(all, sum)| all.wrapping_add(sum));
        }
        if deaths.has_outage() {
            // A dead gateway left no checksum, and the engine's covers all gateways. Reports of
            // survivors are checked by their stamps.
            return;
        }
        let taken = self.0.get(&LinkEnd::receiver(HandOff::Completion, 0, 0)).copied();
        compare(HandOff::Completion, "the gateways", reported, taken, None, findings);
    }

    /// Returns the newest epoch of a strategy for which either end has a checksum.
    fn newest_epoch(&self, strategy: u16) -> u16 {
        let its = |end: &&LinkEnd| {
            matches!(end.hand_off, HandOff::Submit | HandOff::Return) && end.peer == strategy
        };
        self.0.keys().filter(its).map(|end| end.epoch).max().unwrap_or(0)
    }
}

fn has_final_checksum(plan: &protocol::plan::Plan, gateway: u16, logs: &[ThreadLog]) -> bool {
    let log = plan.thread_of(Role::Gateway(gateway)).and_then(|thread| logs.get(thread));
    log.is_some_and(|log| log.status.state() == ThreadState::Done)
}

fn compare(
    hand_off: HandOff,
    who: &str,
    pushed: Option<u64>,
    taken: Option<u64>,
    witness: Option<u16>,
    findings: &mut Findings,
) {
    let name = hand_off.name();
    match (pushed, taken) {
        (Some(pushed), Some(taken)) if pushed == taken => {}
        (Some(_), Some(_)) => findings.add(witness, ViolationKind::Checksum, || {
            format!("{name} of {who}: what was taken is not what was pushed: lost, doubled, made up or torn")
        }),
        _ => findings.add(witness, ViolationKind::Checksum, || {
            format!("{name} of {who}: a log ends without its checksum: records are missing")
        }),
    }
}
