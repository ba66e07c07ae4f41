use super::*;
use proptest::prelude::*;
use protocol::wire::{CancelScope, Order};
use std::collections::BTreeMap;

impl TimerWheel<Order> {
    fn cancel_all(&mut self, scope: CancelScope) -> Vec<Order> {
        let mut sweep = CancelSweep { scope, cursor: 0, budget: 0, now: 0 };
        let mut cancelled = Vec::new();
        while !self.is_swept(&sweep) {
            // In small steps.
            sweep.budget = 3;
            cancelled.extend(self.cancel(&mut sweep, |order| (order.id, order.request.instrument)));
        }
        cancelled
    }
}

/// Sort key of an order in the expected sequence, from its release time and its arrival.
type SortKey = fn(u64, u64) -> (u64, u64);

const CORRECT_KEY: SortKey = |release, arrival| (release, arrival);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// An order released after this delay, of strategy 0, 1 or 2.
    Push(u64, u16),
    /// An order whose release time has passed already.
    PushLate(u64),
    /// Time advances by this many ticks, and all due orders are popped.
    Advance(u64),
    /// Time advances to the next known release.
    AdvanceToNext,
    /// Time advances by this many ticks, and one order is popped.
    TakeOne(u64),
    Cancel(u16),
}

/// Draws ticks of every size: within a slot, some slots, a revolution of the wheel, many
/// revolutions.
fn ticks() -> impl Strategy<Value = u64> {
    let sizes = [0, 1, 4, 10, 15, 20, 24, 30, 31, 32, 33, 40, 61];
    (prop::sample::select(sizes.to_vec()), any::<u64>()).prop_map(|(size, bits)| bits & ((1 << size) - 1))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (ticks(), 0u16..3).prop_map(|(delay, strategy)| Step::Push(delay, strategy)),
        // All in a few slots, and often at one time.
        4 => (0u64..4, 0u16..3).prop_map(|(delay, strategy)| Step::Push(1_000_000 + delay * 5_000, strategy)),
        1 => ticks().prop_map(Step::PushLate),
        3 => ticks().prop_map(Step::Advance),
        4 => Just(Step::AdvanceToNext),
        3 => ticks().prop_map(Step::TakeOne),
        1 => (0u16..3).prop_map(Step::Cancel),
    ]
}

/// Applies the steps to the wheel and to a map ordered by `key`. Returns the first difference as an
/// error.
fn compare_with_map(capacity: usize, start: u64, steps: &[Step], key: SortKey) -> Result<(), String> {
    let mut held = TimerWheel::with_capacity(capacity);
    let mut expected = BTreeMap::new();
    let (mut now, mut sequence) = (start, 0);
    let difference = |problem: &str, step: &Step| Err(format!("{problem}, at {step:?}"));
    for step in steps {
        let mut max_popped = usize::MAX;
        match *step {
            Step::Push(..) | Step::PushLate(_) => {
                if expected.len() == capacity || held.is_full() {
                    continue;
                }
                let (release, strategy) = match *step {
                    Step::Push(delay, strategy) => (now.saturating_add(delay), strategy),
                    Step::PushLate(late) => (now.saturating_sub(late), 0),
                    _ => unreachable!("matched above"),
                };
                let order = Order::new(OrderId::new(strategy, 0, sequence), 0);
                held.push(release, order);
                expected.insert(key(release, sequence), (release, order));
                sequence += 1;
                max_popped = 0;
            }
            Step::Advance(ticks) => now = now.saturating_add(ticks),
            Step::AdvanceToNext => now = now.max(held.next_release().min(u64::MAX / 2)),
            Step::TakeOne(ticks) => (now, max_popped) = (now.saturating_add(ticks), 1),
            Step::Cancel(strategy) => {
                let scope = CancelScope::for_strategy(OrderId::new(strategy, 0, 0));
                let mut cancelled = held.cancel_all(scope);
                cancelled.sort_by_key(|order| order.id);
                let expected_cancels = expected
                    .extract_if(.., |_, (_, order)| scope.contains(order.id, order.request.instrument));
                let mut expected_cancels: Vec<Order> =
                    expected_cancels.map(|(_, (_, order))| order).collect();
                expected_cancels.sort_by_key(|order| order.id);
                if cancelled != expected_cancels {
                    return difference("the wrong orders are cancelled", step);
                }
                max_popped = 0;
            }
        }
        let first = |expected: &BTreeMap<_, (u64, Order)>| {
            expected.first_key_value().map_or(u64::MAX, |(_, (release, _))| *release)
        };
        for _ in 0..max_popped {
            let is_due = !expected.is_empty() && first(&expected) <= now;
            let next = is_due.then(|| expected.pop_first().expect("it is not empty").1.1);
            if held.pop_due(now) != next {
                return difference("another order is popped", step);
            }
            if next.is_none() {
                break;
            }
        }
        if held.next_release() > first(&expected) {
            return difference("the next release is reported too late", step);
        }
        if max_popped > 1 && now < u64::MAX && held.next_release() <= now {
            return difference("all due orders were popped, but the next release is in the past", step);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]
    #[test]
    fn orders_are_popped_by_release_time_and_arrival(
        capacity in prop::sample::select(vec![1usize, 2, 20, 300, 5000]),
        start in ticks(),
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 30 } else { 400 }),
    ) {
        prop_assert_eq!(compare_with_map(capacity, start, &steps, CORRECT_KEY), Ok(()));
    }
}

/// Steps with several orders a slot, orders of equal times and orders a revolution apart.
fn revealing_steps() -> Vec<Step> {
    let pushes = [7, 5, 5, 5, 1 << 13, 1 << 31, (1 << 31) + 5, 3 << 31, 6].map(|delay| Step::Push(delay, 1));
    pushes.into_iter().chain([Step::AdvanceToNext; 12]).chain([Step::Advance(1 << 33)]).collect()
}

#[test]
fn wrong_release_order_is_detected() {
    assert_eq!(compare_with_map(100, 0, &revealing_steps(), CORRECT_KEY), Ok(()));
    let wrong: [(&str, SortKey); 3] = [
        ("the newest of equal times first", |release, arrival| (release, !arrival)),
        ("a slot's orders by arrival", |release, arrival| (release >> 14, arrival)),
        ("all revolutions of the wheel as one", |release, arrival| (release & ((1 << 31) - 1), arrival)),
    ];
    for (problem, key) in wrong {
        assert!(compare_with_map(100, 0, &revealing_steps(), key).is_err(), "{problem}");
    }
}

#[test]
fn late_wheel_visits_only_used_entries() {
    let mut held = TimerWheel::with_capacity(100_000);
    (0..3).for_each(|sequence| held.push(sequence, Order::new(OrderId::new(1, 0, sequence), 0)));
    assert_eq!(held.used().count(), 3);
    let revolutions = 5 << REVOLUTION_BITS;
    assert!((0..3).all(|_| held.pop_due(revolutions).is_some()) && held.pop_due(revolutions).is_none());
}

#[test]
fn sweep_visits_only_used_slots() {
    let mut held = TimerWheel::with_capacity(100_000);
    let order = |sequence| Order::new(OrderId::new(1, 0, sequence), 0);
    // At most three orders at a time, however many in total.
    for round in 0..1_000 {
        (0..3).for_each(|sequence| held.push(round, order(sequence)));
        while held.pop_due(round + 1).is_some() {}
    }
    (0..2).for_each(|sequence| held.push(2_000, order(sequence)));
    let scope = CancelScope::for_strategy(order(0).id);
    let mut sweep = CancelSweep { scope, cursor: 0, budget: 8, now: 0 };
    let key_of = |order: &Order| (order.id, order.request.instrument);
    let cancelled = core::iter::from_fn(|| held.cancel(&mut sweep, key_of)).count();
    assert_eq!((cancelled, sweep.budget, held.is_swept(&sweep)), (2, 5, true));
}

#[test]
fn cancelled_orders_free_their_slots() {
    let mut held = TimerWheel::with_capacity(4);
    let scope = CancelScope::for_strategy(OrderId::new(1, 0, 0));
    for round in 0..100 {
        while !held.is_full() {
            held.push(1_000_000, Order::new(OrderId::new(1, 0, round), 0));
        }
        assert_eq!(held.cancel_all(scope).len(), 4);
        assert_eq!(held.pop_due(999_999), None);
    }
    // These are in the current slot: their entries are freed at their release time.
    while !held.is_full() {
        held.push(2_000_000, Order::new(OrderId::new(1, 0, 0), 0));
    }
    assert_eq!(held.pop_due(1_999_999), None);
    assert_eq!(held.cancel_all(scope).len(), 4);
    assert_eq!((held.pop_due(2_000_000), held.is_full(), held.next_release()), (None, false, u64::MAX));
}
