//! A history: calls with the times at which they began and returned, and its check.

use crate::spec::{Operation, Outcome, Spec};
use stateright::semantics::{ConsistencyTester as _, LinearizabilityTester};

/// One call. Times are tickets of one counter, so that they are all different.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number of the thread or process; a successor has another one.
    pub worker: usize,
    pub operation: Operation,
    pub began: u64,
    pub end: End,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Returned {
        at: u64,
        outcome: Outcome,
    },
    /// The process was killed: the call never returned. Nothing of it happens after `at`, when the
    /// process was reaped.
    Killed {
        at: u64,
    },
}

/// Returns how a killed call may have taken effect: `None` stands for "not at all".
fn possible_outcomes(call: &Call, calls: &[Call]) -> Vec<Option<Outcome>> {
    let is_returned = |value| {
        let same = |other: &&Call| matches!(other.end, End::Returned { outcome: Outcome::Value(found), .. } if found == value);
        calls.iter().filter(|other| other.operation == Operation::Pop).any(|other| same(&other))
    };
    let mut outcomes = vec![None];
    match call.operation {
        Operation::Push(_) | Operation::Write(_) | Operation::Release => outcomes.push(Some(Outcome::Done)),
        // It may have removed any message that no other pop has returned.
        Operation::Pop => outcomes.extend(calls.iter().filter_map(|other| match other.operation {
            Operation::Push(value) if !is_returned(value) => Some(Some(Outcome::Value(value))),
            _ => None,
        })),
        Operation::Take | Operation::Read => {}
    }
    outcomes
}

fn is_linearizable_with(calls: &[Call], killed: &[(usize, Option<Outcome>)], spec: &Spec) -> bool {
    let mut events = Vec::with_capacity(2 * calls.len());
    for (index, call) in calls.iter().enumerate() {
        let (at, outcome) = match call.end {
            End::Returned { at, outcome } => (at, outcome),
            End::Killed { at } => match killed.iter().find(|(killed, _)| *killed == index) {
                Some((_, Some(outcome))) => (at, *outcome),
                _ => continue,
            },
        };
        events.push((call.began, call.worker, Ok(call.operation)));
        events.push((at, call.worker, Err(outcome)));
    }
    events.sort_unstable_by_key(|(at, ..)| *at);
    let mut tester = LinearizabilityTester::new(spec.clone());
    for (_, worker, event) in events {
        let fed = match event {
            Ok(operation) => tester.on_invoke(worker, operation).map(|_| ()),
            Err(outcome) => tester.on_return(worker, outcome).map(|_| ()),
        };
        fed.expect("a worker makes one call after the other");
    }
    tester.is_consistent()
}

/// Returns `true` if the calls can be put in an order that the specification allows and in which
/// each call takes effect between its begin and its end. A killed call may have had its effect
/// before its process was reaped, or never.
pub fn is_linearizable(calls: &[Call], spec: &Spec) -> bool {
    let is_killed = |call: &Call| matches!(call.end, End::Killed { .. });
    let killed: Vec<usize> = (0..calls.len()).filter(|index| is_killed(&calls[*index])).collect();
    let mut choices = vec![Vec::new()];
    for index in killed {
        let outcomes = possible_outcomes(&calls[index], calls);
        let with = |choice: &Vec<_>| {
            let choice = choice.clone();
            outcomes
                .iter()
                .map(move |outcome| [&choice[..], &[(index, *outcome)]].concat())
                .collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(with).collect();
    }
    choices.iter().any(|choice| is_linearizable_with(calls, choice, spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{BoardSpec, QueueSpec};

    fn call(worker: usize, operation: Operation, began: u64, at: u64, outcome: Outcome) -> Call {
        Call { worker, operation, began, end: End::Returned { at, outcome } }
    }

    fn killed(worker: usize, operation: Operation, began: u64, at: u64) -> Call {
        Call { worker, operation, began, end: End::Killed { at } }
    }

    fn queue() -> Spec {
        Spec::Queue(QueueSpec::new(2, 2))
    }

    #[test]
    fn killed_push_may_arrive_or_not() {
        let push = killed(0, Operation::Push(1), 1, 4);
        let found = call(1, Operation::Pop, 2, 3, Outcome::Value(1));
        let empty = call(1, Operation::Pop, 5, 6, Outcome::Nothing);
        assert!(is_linearizable(&[push, found, empty], &queue()));
        assert!(is_linearizable(&[push, empty], &queue()));
        assert!(!is_linearizable(&[found, empty], &queue()));
    }

    #[test]
    fn killed_push_does_not_happen_later() {
        let push = killed(0, Operation::Push(1), 1, 2);
        let empty = call(1, Operation::Pop, 3, 4, Outcome::Nothing);
        let late = call(1, Operation::Pop, 5, 6, Outcome::Value(1));
        assert!(!is_linearizable(&[push, empty, late], &queue()));
    }

    #[test]
    fn killed_pop_may_remove_one_message() {
        let pushes =
            [1, 2].map(|value| call(0, Operation::Push(value), 2 * value, 2 * value + 1, Outcome::Done));
        let pop = killed(1, Operation::Pop, 6, 7);
        let next = |value| call(2, Operation::Pop, 8, 9, value);
        let after = |value| is_linearizable(&[&pushes[..], &[pop, next(value)]].concat(), &queue());
        assert!(after(Outcome::Value(1)) && after(Outcome::Value(2)) && !after(Outcome::Nothing));
    }

    #[test]
    fn taken_message_is_taken_again_until_released() {
        let calls = [
            call(0, Operation::Push(1), 1, 2, Outcome::Done),
            call(1, Operation::Take, 3, 4, Outcome::Value(1)),
            call(1, Operation::Take, 5, 6, Outcome::Value(1)),
            call(1, Operation::Release, 7, 8, Outcome::Done),
            call(1, Operation::Take, 9, 10, Outcome::Nothing),
        ];
        assert!(is_linearizable(&calls, &queue()));
        let mut doubled = calls;
        doubled[4].end = End::Returned { at: 10, outcome: Outcome::Value(1) };
        assert!(!is_linearizable(&doubled, &queue()));
    }

    #[test]
    fn full_queue_has_its_capacity_of_messages() {
        let push = |value, outcome| call(0, Operation::Push(value), 2 * value, 2 * value + 1, outcome);
        let calls = [push(1, Outcome::Done), push(2, Outcome::Done), push(3, Outcome::Full)];
        assert!(is_linearizable(&calls, &queue()));
        assert!(!is_linearizable(&[push(1, Outcome::Done), push(2, Outcome::Full)], &queue()));
    }

    #[test]
    fn board_goes_back_and_is_found() {
        let write = |value| call(0, Operation::Write(value), 4 * value, 4 * value + 1, Outcome::Done);
        let read = |value, at| call(1, Operation::Read, at, at + 1, Outcome::Value(value));
        let board = Spec::Board(BoardSpec::default());
        assert!(is_linearizable(&[write(1), write(2), read(1, 6), read(2, 10)], &board));
        assert!(!is_linearizable(&[write(1), write(2), read(2, 10), read(1, 12)], &board));
    }
}
