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

/// Where an order comes in the expected sequence, by its release time and its arrival.
type Key = fn(u64, u64) -> (u64, u64);

const RIGHT: Key = |release, arrival| (release, arrival);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// An order that much later than now, of strategy 0, 1 or 2.
    Push(u64, u16),
    /// An order for a time that has passed already.
    PushLate(u64),
    /// Time advances by this many ticks, and everything due is taken.
    Advance(u64),
    /// Time goes on to the next release as far as it is known.
    AdvanceToNext,
    /// Time advances by this many ticks, and one order is taken.
    TakeOne(u64),
    Cancel(u16),
}

/// Ticks of every size: within a slot, some slots, a turn of the wheel, many turns; and equal ones.
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

/// Plays the steps against a map by `key`. `Err`: the first difference.
fn play(capacity: usize, start: u64, steps: &[Step], key: Key) -> Result<(), String> {
    let mut held = TimerWheel::with_capacity(capacity);
    let mut expected = BTreeMap::new();
    let (mut now, mut sequence) = (start, 0);
    let fail = |what: &str, step: &Step| Err(format!("{what}, at {step:?}"));
    for step in steps {
        let mut take = usize::MAX;
        match *step {
            Step::Push(..) | Step::PushLate(_) => {
                if expected.len() == capacity || held.is_full() {
                    continue;
                }
                let (release, strategy) = match *step {
                    Step::Push(delay, strategy) => (now.saturating_add(delay), strategy),
                    Step::PushLate(late) => (now.saturating_sub(late), 0),
                    _ => unreachable!("asked above"),
                };
                let order = Order::new(OrderId::new(strategy, 0, sequence), 0);
                held.push(release, order);
                expected.insert(key(release, sequence), (release, order));
                sequence += 1;
                take = 0;
            }
            Step::Advance(by) => now = now.saturating_add(by),
            Step::AdvanceToNext => now = now.max(held.next_release().min(u64::MAX / 2)),
            Step::TakeOne(by) => (now, take) = (now.saturating_add(by), 1),
            Step::Cancel(strategy) => {
                let scope = CancelScope::for_strategy(OrderId::new(strategy, 0, 0));
                let mut cancelled = held.cancel_all(scope);
                cancelled.sort_by_key(|order| order.id);
                let concerned = expected
                    .extract_if(.., |_, (_, order)| scope.contains(order.id, order.request.instrument));
                let mut concerned: Vec<Order> = concerned.map(|(_, (_, order))| order).collect();
                concerned.sort_by_key(|order| order.id);
                if cancelled != concerned {
                    return fail("the wrong orders are cancelled", step);
                }
                take = 0;
            }
        }
        let first = |expected: &BTreeMap<_, (u64, Order)>| {
            expected.first_key_value().map_or(u64::MAX, |(_, (release, _))| *release)
        };
        for _ in 0..take {
            let is_due = !expected.is_empty() && first(&expected) <= now;
            let next = is_due.then(|| expected.pop_first().expect("it is not empty").1.1);
            if held.pop_due(now) != next {
                return fail("another order comes out", step);
            }
            if next.is_none() {
                break;
            }
        }
        if held.next_release() > first(&expected) {
            return fail("the next release is later than it says", step);
        }
        if take > 1 && now < u64::MAX && held.next_release() <= now {
            return fail("all that is due was taken, and the next release has come", step);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]
    #[test]
    fn orders_come_out_by_release_time_and_arrival(
        capacity in prop::sample::select(vec![1usize, 2, 20, 300, 5000]),
        start in ticks(),
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 30 } else { 400 }),
    ) {
        prop_assert_eq!(play(capacity, start, &steps, RIGHT), Ok(()));
    }
}

/// Steps that hold several orders a slot, orders of equal times and orders a turn apart.
fn telling() -> Vec<Step> {
    let pushes = [7, 5, 5, 5, 1 << 13, 1 << 31, (1 << 31) + 5, 3 << 31, 6].map(|delay| Step::Push(delay, 1));
    pushes.into_iter().chain([Step::AdvanceToNext; 12]).chain([Step::Advance(1 << 33)]).collect()
}

#[test]
fn wrong_release_order_is_detected() {
    assert_eq!(play(100, 0, &telling(), RIGHT), Ok(()));
    let wrong: [(&str, Key); 3] = [
        ("the newest of equal times first", |release, arrival| (release, !arrival)),
        ("a slot's orders as they came", |release, arrival| (release >> 14, arrival)),
        ("all turns of the wheel as one", |release, arrival| (release & ((1 << 31) - 1), arrival)),
    ];
    for (what, key) in wrong {
        assert!(play(100, 0, &telling(), key).is_err(), "{what}");
    }
}

#[test]
fn a_sweep_looks_only_where_an_order_may_be() {
    let mut held = TimerWheel::with_capacity(100_000);
    let order = |sequence| Order::new(OrderId::new(1, 0, sequence), 0);
    // As many at once as three, however many came one after the other.
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
fn cancelled_orders_leave_their_room() {
    let mut held = TimerWheel::with_capacity(4);
    let scope = CancelScope::for_strategy(OrderId::new(1, 0, 0));
    for round in 0..100 {
        while !held.is_full() {
            held.push(1_000_000, Order::new(OrderId::new(1, 0, round), 0));
        }
        assert_eq!(held.cancel_all(scope).len(), 4);
        assert_eq!(held.pop_due(999_999), None);
    }
    // These have begun: their places are free when their time has come.
    while !held.is_full() {
        held.push(2_000_000, Order::new(OrderId::new(1, 0, 0), 0));
    }
    assert_eq!(held.pop_due(1_999_999), None);
    assert_eq!(held.cancel_all(scope).len(), 4);
    assert_eq!((held.pop_due(2_000_000), held.is_full(), held.next_release()), (None, false, u64::MAX));
}
