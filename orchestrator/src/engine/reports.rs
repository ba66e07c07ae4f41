//! Handles reports of venues: returns each to its strategy, then settles its order.

use super::{Core, Effects};
use protocol::checksum::digest;
use protocol::index::GatewayIndex;
use protocol::record::{Point, key_with};
use protocol::wire::{Message, PLACEHOLDER, Report};

impl Core {
    #[inline(always)]
    pub(super) fn handle_report(
        &mut self,
        gateway: Option<GatewayIndex>,
        message: &Message,
        out: &mut (impl Effects + ?Sized),
    ) {
        self.counts.reports += 1;
        // Gateways are trusted, so an invalid report is a bug: counted and skipped.
        let report = Report::from_message(*message).ok();
        let known = report.filter(|report| self.sessions.has(report.id.strategy()));
        let Some(report) = known else {
            self.reported.add(digest(message));
            self.counts.faults += u64::from(message != &PLACEHOLDER);
            // The sender is unknown where gateways share memory.
            if let Some(session) = gateway.and_then(|gateway| self.gateways.get_mut(gateway)) {
                session.counts.reports += 1;
            }
            return;
        };
        // Needed after the hand-over.
        self.positions.prefetch(report.id);
        out.stamp(Point::OrchRecvCompletion, report.id, report.number);
        let strategy = report.id.strategy();
        let is_current = self.sessions[strategy].is_current(report.id);
        self.counts.settled += u64::from(report.is_last);
        let digest = if is_current {
            self.send_back(&report, message, out)
        } else {
            self.count_orphan(strategy, out.off_path());
            digest(message)
        };
        self.reported.add(digest);
        // After the hand-over, off the report's path.
        self.settle_report(&report, is_current, out);
    }

    /// Sends a report of a venue back to its strategy. Returns its digest, which is computed after
    /// the hand-over, off the report's path.
    #[inline(always)]
    pub(super) fn send_back(
        &mut self,
        report: &Report,
        message: &Message,
        out: &mut (impl Effects + ?Sized),
    ) -> u64 {
        out.to_strategy(report, message);
        let digest = digest(message);
        self.sessions[report.id.strategy()].returned.add(digest);
        digest
    }

    #[inline(always)]
    fn settle_report(&mut self, report: &Report, is_current: bool, out: &mut (impl Effects + ?Sized)) {
        // Booked already in the live engine: reports are taken first in a duty cycle.
        self.book_last_order();
        let strategy = report.id.strategy();
        let gateway = self.gateway_of(strategy, report.venue);
        if let Some(session) = self.gateways.get_mut(gateway) {
            session.counts.reports += 1;
            session.counts.last_report = key_with(Point::GatewayDone, report.id, report.stamp_detail());
        }
        let Some(change) = self.positions.settle(report, is_current) else {
            self.counts.faults += 1;
            return;
        };
        self.settle(strategy, &change, report.price, out.off_path());
    }
}
