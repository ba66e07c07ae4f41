//! What is asked for ahead while there is nothing to do: what the next order and the next report of one strategy will need. All of it is a hint, and changes nothing.

use super::Orchestrator;
use super::line::StrategyLine;
use shm::prefetch::prefetch_lines;

/// Lines of anything that there is one of for each strategy, venue or instrument, at most: a call is to be short.
const FEW: usize = 8;
/// Lines of the agent itself, at most: all of them.
const OWN: usize = 64;

impl<R> Orchestrator<R> {
    /// In each round for the next strategy, and the next gateway.
    pub(super) fn warm(&self, round: usize) {
        prefetch_lines(self, OWN);
        if let Some(inbox) = round.checked_rem(self.inboxes.len()) {
            prefetch_lines(&self.inboxes[inbox], FEW);
        }
        let Some(strategy) = round.checked_rem(self.lines.len()) else { return };
        let line: &StrategyLine = &self.lines[strategy];
        prefetch_lines(line, FEW);
        prefetch_lines(&self.returns[strategy], FEW);
        self.risk.prefetch(strategy, FEW);
        self.positions.prefetch_strategy(strategy, FEW);
        if let Some(next) = line.next_order() {
            self.positions.prefetch(next);
        }
    }
}
