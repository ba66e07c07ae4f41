use super::*;
use proptest::prelude::*;
use protocol::wire::{CancelScope, Order};
use std::collections::{BTreeMap, BTreeSet};

/// The structures under test: [`TimerWheel`], and models with one defect each.
trait Holds {
    fn push(&mut self, release: u64, order: Order);
    fn pop_due(&mut self, now: u64) -> Option<Order>;
    fn next_release(&self) -> u64;
    fn is_full(&self) -> bool {
        false
    }
    /// All orders of the scope.
    fn cancel(&mut self, scope: CancelScope) -> Vec<Order>;
}

impl Holds for TimerWheel<Order> {
    fn push(&mut self, release: u64, order: Order) {
        TimerWheel::push(self, release, order);
    }
    fn pop_due(&mut self, now: u64) -> Option<Order> {
        TimerWheel::pop_due(self, now)
    }
    fn next_release(&self) -> u64 {
        TimerWheel::next_release(self)
    }
    fn is_full(&self) -> bool {
        TimerWheel::is_full(self)
    }
    fn cancel(&mut self, scope: CancelScope) -> Vec<Order> {
        let mut sweep = CancelSweep { scope, cursor: 0, budget: 0, now: 0 };
        let mut cancelled = Vec::new();
        while !self.is_swept(&sweep) {
            // In small steps.
            sweep.budget = 3;
            cancelled.extend(TimerWheel::cancel(self, &mut sweep, |order| (order.id, order.instrument)));
        }
        cancelled
    }
}

/// Sorted by whatever the key makes of release time and arrival.
struct Sorted {
    key: fn(u64, u64) -> (u64, u64),
    orders: BTreeMap<(u64, u64), (u64, Order)>,
    arrivals: u64,
}

impl Holds for Sorted {
    fn push(&mut self, release: u64, order: Order) {
        self.arrivals += 1;
        self.orders.insert((self.key)(release, self.arrivals), (release, order));
    }
    fn pop_due(&mut self, now: u64) -> Option<Order> {
        let first = self.orders.first_entry()?;
        (first.get().0 <= now).then(|| first.remove().1)
    }
    fn next_release(&self) -> u64 {
        self.orders.first_key_value().map_or(u64::MAX, |(_, (release, _))| *release)
    }
    fn cancel(&mut self, scope: CancelScope) -> Vec<Order> {
        let concerned = |(_, order): &(u64, Order)| scope.contains(order.id, order.instrument);
        let cancelled =
            self.orders.values().filter(|held| concerned(held)).map(|(_, order)| *order).collect();
        self.orders.retain(|_, held| !concerned(held));
        cancelled
    }
}

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

/// Plays the steps against a map by release time and arrival; what differs first.
fn play(held: &mut impl Holds, capacity: usize, start: u64, steps: &[Step]) -> Result<(), String> {
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
                expected.insert((release, sequence), order);
                sequence += 1;
                take = 0;
            }
            Step::Advance(by) => now = now.saturating_add(by),
            Step::AdvanceToNext => now = now.max(held.next_release().min(u64::MAX / 2)),
            Step::TakeOne(by) => (now, take) = (now.saturating_add(by), 1),
            Step::Cancel(strategy) => {
                let scope = CancelScope::for_strategy(OrderId::new(strategy, 0, 0));
                let is_concerned = |order: &Order| scope.contains(order.id, order.instrument);
                let concerned: BTreeSet<u64> =
                    expected.values().filter(|order| is_concerned(order)).map(|o| o.id.sequence()).collect();
                let cancelled = held.cancel(scope);
                if cancelled.len() != concerned.len()
                    || !cancelled.iter().all(|order| concerned.contains(&order.id.sequence()))
                {
                    return fail("the wrong ones are cancelled", step);
                }
                expected.retain(|_, order| !is_concerned(order));
                take = 0;
            }
        }
        for _ in 0..take {
            let is_due = expected.first_key_value().is_some_and(|((release, _), _)| *release <= now);
            let next = is_due.then(|| expected.pop_first().expect("looked at").1);
            if held.pop_due(now) != next {
                return fail("another order comes out", step);
            }
            if next.is_none() {
                break;
            }
        }
        let first = expected.first_key_value().map_or(u64::MAX, |((release, _), _)| *release);
        if held.next_release() > first {
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
        let played = play(&mut TimerWheel::with_capacity(capacity), capacity, start, &steps);
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}

/// Steps that hold several orders a slot, orders of equal times and orders a turn apart.
fn telling() -> Vec<Step> {
    let pushes = [7, 5, 5, 5, 1 << 13, 1 << 31, (1 << 31) + 5, 3 << 31, 6].map(|delay| Step::Push(delay, 1));
    pushes.into_iter().chain([Step::AdvanceToNext; 12]).chain([Step::Advance(1 << 33)]).collect()
}

#[test]
fn wrong_release_order_is_detected() {
    let sorted = |key| Sorted { key, orders: BTreeMap::new(), arrivals: 0 };
    let right = play(&mut sorted(|release, arrival| (release, arrival)), 100, 0, &telling());
    assert_eq!(right, Ok(()));
    type Key = fn(u64, u64) -> (u64, u64);
    let wrong: [(&str, Key); 3] = [
        ("the newest of equal times first", |release, arrival| (release, !arrival)),
        ("a slot's orders as they came", |release, arrival| (release >> 14, arrival)),
        ("all turns of the wheel as one", |release, arrival| (release & ((1 << 31) - 1), arrival)),
    ];
    for (what, key) in wrong {
        assert!(play(&mut sorted(key), 100, 0, &telling()).is_err(), "{what}");
    }
    assert_eq!(play(&mut TimerWheel::with_capacity(100), 100, 0, &telling()), Ok(()));
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
    let key_of = |order: &Order| (order.id, order.instrument);
    let cancelled = core::iter::from_fn(|| TimerWheel::cancel(&mut held, &mut sweep, key_of)).count();
    assert_eq!((cancelled, sweep.budget, held.is_swept(&sweep)), (2, 5, true));
}

#[test]
fn cancelled_orders_leave_their_room() {
    let mut held = TimerWheel::with_capacity(4);
    for round in 0..100 {
        while !held.is_full() {
            held.push(1_000_000, Order::new(OrderId::new(1, 0, round), 0));
        }
        assert_eq!(Holds::cancel(&mut held, CancelScope::for_strategy(OrderId::new(1, 0, 0))).len(), 4);
        assert_eq!(held.pop_due(999_999), None);
    }
    // These have begun: their places are free when their time has come.
    while !held.is_full() {
        held.push(2_000_000, Order::new(OrderId::new(1, 0, 0), 0));
    }
    assert_eq!(held.pop_due(1_999_999), None);
    assert_eq!(Holds::cancel(&mut held, CancelScope::for_strategy(OrderId::new(1, 0, 0))).len(), 4);
    assert_eq!((held.pop_due(2_000_000), held.is_full(), held.next_release()), (None, false, u64::MAX));
}
