//! The strategy on this side of the interface: keeps the reports of a duty cycle for who calls.

use protocol::wire::Report;
use strategy::{BATCH, Orders, Strategy};

/// The reports of one duty cycle, which is at most [`BATCH`], and what was done since the one
/// before.
pub(crate) struct Inbox {
    reports: Vec<Report>,
    /// So many of them were taken.
    taken: usize,
    /// Orders sent and touches heard since the last duty cycle: that cycle counts as one with work,
    /// so that it is published.
    done: usize,
    finished: bool,
}

impl Inbox {
    /// An empty one.
    pub fn new() -> Self {
        Self { reports: Vec::with_capacity(BATCH), taken: 0, done: 0, finished: false }
    }

    /// Whether all reports were taken: then there is room for those of another duty cycle.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.reports.len()
    }

    /// The next reports, at most so many, the oldest first.
    #[inline]
    pub fn take(&mut self, most: usize) -> &[Report] {
        let from = self.taken;
        self.taken = self.reports.len().min(from.saturating_add(most));
        &self.reports[from..self.taken]
    }

    /// The caller has sent an order or heard a touch.
    #[inline]
    pub const fn did(&mut self) {
        self.done += 1;
    }

    /// The caller sends no more, and wants no more reports.
    pub const fn finish(&mut self) {
        self.finished = true;
    }
}

impl Strategy for Inbox {
    const ON_MARKET_DATA: bool = true;

    /// The caller asks for touches itself.
    #[inline]
    fn on_turn(&mut self, orders: &mut impl Orders) -> usize {
        self.on_cycle(orders)
    }

    #[inline]
    fn on_cycle(&mut self, _: &mut impl Orders) -> usize {
        core::mem::take(&mut self.done)
    }

    #[inline]
    fn on_report(&mut self, report: &Report, _: &mut impl Orders) {
        if self.finished {
            return;
        }
        if self.is_empty() {
            self.reports.clear();
            self.taken = 0;
        }
        // Never grows: a duty cycle brings no more, and there is none before all of the last one's
        // were taken.
        self.reports.push(*report);
    }

    fn finished(&self) -> bool {
        self.finished
    }
}
