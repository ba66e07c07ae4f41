//! Several agents as one: a pair, a vector, and an agent behind a dynamic call.

use super::{Agent, Cycle};
use crate::counters::CounterSlots;
use crate::stamps::StampLog;
use system::clock::Clock;

/// Several agents on one thread are one composite agent: each runs once in each cycle. If the
/// second had work, the first runs again at once: otherwise a report would wait for the clock and
/// the counters on its way back.
impl<C: Clock, A: Agent<C>, B: Agent<C>> Agent<C> for (A, B) {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let (mut work, mut came_back) = (0, false);
        // A loop, so that the first agent's cycle is compiled once.
        loop {
            work += self.0.duty_cycle(cycle);
            if came_back {
                return work;
            }
            let handed_back = self.1.duty_cycle(cycle);
            if handed_back == 0 {
                return work;
            }
            work += handed_back;
            came_back = true;
        }
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.0.next_deadline(draining).min(self.1.next_deadline(draining))
    }

    fn finished(&self, draining: bool) -> bool {
        self.0.finished(draining) && self.1.finished(draining)
    }

    fn failure(&self) -> Option<&str> {
        self.0.failure().or_else(|| self.1.failure())
    }

    fn seal(&self, log: &mut StampLog) {
        self.0.seal(log);
        self.1.seal(log);
    }

    fn prefetch_hot(&self, round: usize) {
        self.0.prefetch_hot(round);
        self.1.prefetch_hot(round);
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        self.0.publish(slots);
        self.1.publish(slots);
    }
}

/// A dynamic call a duty cycle, where `A` is a trait object.
impl<C: Clock, A: Agent<C> + ?Sized> Agent<C> for Box<A> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        (**self).duty_cycle(cycle)
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        (**self).next_deadline(draining)
    }

    fn finished(&self, draining: bool) -> bool {
        (**self).finished(draining)
    }

    fn failure(&self) -> Option<&str> {
        (**self).failure()
    }

    fn seal(&self, log: &mut StampLog) {
        (**self).seal(log);
    }

    fn prefetch_hot(&self, round: usize) {
        (**self).prefetch_hot(round);
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        (**self).publish(slots);
    }
}

/// Runs each agent once in each cycle.
impl<C: Clock, A: Agent<C>> Agent<C> for Vec<A> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        self.iter_mut().map(|agent| agent.duty_cycle(cycle)).sum()
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.iter().map(|agent| agent.next_deadline(draining)).min().unwrap_or(u64::MAX)
    }

    fn finished(&self, draining: bool) -> bool {
        self.iter().all(|agent| agent.finished(draining))
    }

    fn failure(&self) -> Option<&str> {
        self.iter().find_map(Agent::failure)
    }

    fn seal(&self, log: &mut StampLog) {
        self.iter().for_each(|agent| agent.seal(log));
    }

    fn prefetch_hot(&self, round: usize) {
        if let Some(agent) = round.checked_rem(self.len()).map(|turn| &self[turn]) {
            agent.prefetch_hot(round / self.len());
        }
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        self.iter_mut().for_each(|agent| agent.publish(slots));
    }
}
