//! Queues market data and reports until the foreign program polls them.

use protocol::wire::Report;
use strategy::{BATCH, Orders, Strategy};

/// The reports of one duty cycle that the program has not taken yet, at most [`BATCH`].
pub(crate) struct Inbox {
    reports: Vec<Report>,
    taken: usize,
    /// Orders sent and market data read since the last duty cycle, which make the next one busy.
    done: usize,
    finished: bool,
}

impl Inbox {
    /// Creates an empty buffer for the reports of a strategy's program.
    pub fn new() -> Self {
        Self { reports: Vec::with_capacity(BATCH), taken: 0, done: 0, finished: false }
    }

    /// Returns `true` if the strategy's program has taken all reports: another duty cycle may run.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.reports.len()
    }

    /// Takes up to `max` reports from the strategy's buffer, oldest first.
    #[inline]
    pub fn take(&mut self, max: usize) -> &[Report] {
        let from = self.taken;
        self.taken = self.reports.len().min(from.saturating_add(max));
        &self.reports[from..self.taken]
    }

    /// Counts an action of the program in the duty cycle: an order sent or market data read.
    #[inline]
    pub const fn record_work(&mut self) {
        self.done += 1;
    }

    /// Ends the strategy: it sends no more orders and takes no more reports.
    pub const fn finish(&mut self) {
        self.finished = true;
    }
}

impl Strategy for Inbox {
    const ON_MARKET_DATA: bool = true;

    /// The caller reads market data itself.
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
        // Never grows: a duty cycle delivers at most a batch, and none runs before all reports of
        // the last one are taken.
        self.reports.push(*report);
    }

    fn finished(&self) -> bool {
        self.finished
    }
}
