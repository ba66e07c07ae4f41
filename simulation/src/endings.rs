//! Events at the natural end of a strategy: operators end or add it, and external kills hit it, the
//! engine or an exchange, in every order and within a few turns of its last order, its last report
//! and its exit.
//!
//! In these scenarios a strategy's process exits some turns after it has reported done, as a real
//! one does.

use protocol::commands::{Command, OpenOrders};
use protocol::faults::Draws;
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::plan::{Plan, Role};

/// A strategy's process exits fewer turns than this after it has reported done.
const MAX_TURNS_UNTIL_EXIT: u64 = 24;
/// An event comes fewer turns than this after its moment.
const MAX_DELAY: u64 = 40;

/// A moment near the natural end of a strategy, from which a simulated event is timed: last order
/// sent, done, or process exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMoment {
    /// The strategy has sent its last order.
    Sent,
    /// The strategy has its last report, and has reported done.
    Done,
    /// The strategy's process has exited.
    Exited,
}

/// The action of a simulated event at the natural end of a strategy: a command or a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndingAct {
    /// An operator gives a command.
    Command(Command),
    /// The process of a role is killed from outside the run.
    Kill(Role),
}

/// A simulated event at the natural end of a strategy: a command or a kill.
#[derive(Clone, Copy, Debug)]
pub struct EndingEvent {
    /// The strategy that ends.
    pub strategy: StrategyIndex,
    /// The moment of its end from which the event is timed.
    pub moment: EndMoment,
    /// Turns of the run between the moment and the event.
    pub delay: u64,
    /// The command or the kill of the event.
    pub act: EndingAct,
}

impl EndingEvent {
    /// Describes the event at a strategy's end in one line.
    pub fn describe(&self) -> String {
        let Self { strategy, moment, delay, act } = self;
        format!("{delay} turns after strategy {strategy} is at {moment:?}: {act:?}")
    }
}

/// Draws the events at the ends of one or two strategies; none in half of the scenarios.
/// `is_recovery`: engine and exchanges may be killed.
pub(super) fn draw(draws: &mut Draws, plan: &Plan, is_recovery: bool) -> Vec<EndingEvent> {
    let trading = plan.trading();
    let mut events = Vec::new();
    for _ in 0..draws.below(2) * (1 + draws.below(2)) {
        let strategy = StrategyIndex(draws.below(trading.strategies.into()) as u16);
        for _ in 0..=draws.below(4) {
            let moment = [EndMoment::Sent, EndMoment::Done, EndMoment::Exited][draws.below(3) as usize];
            let open_orders = [OpenOrders::Drain, OpenOrders::Cancel][draws.below(2) as usize];
            let end =
                |is_replaced| EndingAct::Command(Command::EndStrategy { strategy, open_orders, is_replaced });
            let venue = VenueIndex(draws.below(trading.venues.into()) as u16);
            let act = match draws.below(if is_recovery { 9 } else { 7 }) {
                0..=1 => end(false),
                2..=4 => end(true),
                5 => EndingAct::Command(Command::AddStrategy { strategy }),
                6 => EndingAct::Kill(Role::Strategy(strategy)),
                7 => EndingAct::Kill(Role::Orchestrator),
                _ => EndingAct::Kill(Role::Exchange(venue)),
            };
            let delay = if draws.below(2) == 0 { draws.below(4) } else { draws.below(MAX_DELAY) };
            events.push(EndingEvent { strategy, moment, delay, act });
        }
    }
    events
}

/// The events of a run that are still to come.
pub(super) struct Endings<'a> {
    /// Each with the turn at which it is due, once its moment has come.
    pending: Vec<(&'a EndingEvent, Option<u64>)>,
}

impl<'a> Endings<'a> {
    /// Creates the list of pending events (commands and kills) near the natural ends of a simulated
    /// run's strategies.
    pub fn new(events: &'a [EndingEvent]) -> Self {
        Self { pending: events.iter().map(|event| (event, None)).collect() }
    }

    /// Removes the next event near a strategy's end that is due by step number `turn` of the
    /// simulation, and returns its command or kill. `None` if none is due. `has_come` returns
    /// whether a strategy has reached a moment of its end.
    pub fn take_due(
        &mut self,
        turn: u64,
        has_come: impl Fn(StrategyIndex, EndMoment) -> bool,
    ) -> Option<EndingAct> {
        for (event, due) in &mut self.pending {
            if due.is_none() && has_come(event.strategy, event.moment) {
                *due = Some(turn + event.delay);
            }
        }
        let place = self.pending.iter().position(|(_, due)| due.is_some_and(|due| due <= turn))?;
        Some(self.pending.remove(place).0.act)
    }
}

/// Draws how many turns a strategy's process needs to exit after it has reported done.
pub(super) fn draw_turns_until_exit(draws: &mut Draws) -> u64 {
    if draws.below(3) == 0 { 0 } else { draws.below(MAX_TURNS_UNTIL_EXIT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_due_after_its_moment_and_once() {
        let act = EndingAct::Command(Command::AddStrategy { strategy: StrategyIndex(1) });
        let event = EndingEvent { strategy: StrategyIndex(1), moment: EndMoment::Done, delay: 3, act };
        let events = [event];
        let mut endings = Endings::new(&events);
        assert_eq!(endings.take_due(9, |_, moment| moment == EndMoment::Sent), None);
        let has_come = |strategy, moment| (strategy, moment) == (StrategyIndex(1), EndMoment::Done);
        assert_eq!(endings.take_due(10, has_come), None);
        assert_eq!(endings.take_due(12, |_, _| false), None);
        assert_eq!(endings.take_due(13, |_, _| false), Some(act));
        assert_eq!(endings.take_due(99, |_, _| true), None);
    }
}
