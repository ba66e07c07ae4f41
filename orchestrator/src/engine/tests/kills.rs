//! Kill switches with orders open, queued and on their way.

use super::*;
use proptest::prelude::*;
use protocol::commands::{CommandStatus, OpenOrders};
use protocol::index::VenueIndex;
use protocol::kill::{KillCause, KillSwitch};
use protocol::wire::CancelScope;

/// The switches in the log: point, scope, whether it is on, cause.
fn switches(effects: &[Effect]) -> Vec<(Point, Scope, bool, KillCause)> {
    let of = |effect: &Effect| {
        let Effect::Stamp(point, id, detail) = *effect else { return None };
        let switch = KillSwitch::from_record(&protocol::record::Record { point, id, detail, value: 0 })?;
        Some((point, switch.scope, switch.is_on, switch.cause))
    };
    effects.iter().filter_map(of).collect()
}

type Kill = fn(&mut Bench, Scope) -> Vec<Effect>;

fn kill(bench: &mut Bench, scope: Scope) -> Vec<Effect> {
    bench.command(0, Command::Kill(scope))
}

/// Sends orders to gateways with `CAPACITY` slots that take nothing, kills a scope in between, and
/// looks for what got through. `Err`: what did.
fn kill_between(scope: Scope, before: &[(u16, u16)], after: &[(u16, u16)], kill: Kill) -> Result<(), String> {
    const CAPACITY: usize = 4;
    let mut bench = bench(100);
    let mut next = [0, 0];
    let mut send = |bench: &mut Bench, (strategy, venue): (u16, u16)| {
        let order = order(strategy, next[usize::from(strategy)], venue);
        next[usize::from(strategy)] += 1;
        bench.send(&order);
    };
    let concerns = |order: &Order| {
        scope.contains(order.id.strategy(), 0, VenueIndex(order.request.venue), order.request.instrument)
    };
    before.iter().for_each(|which| send(&mut bench, *which));
    let mut queues = [0, 1].map(|gateway| sent(&bench.out, gateway));
    let effects = kill(&mut bench, scope);
    if effects.contains(&Effect::Recall) {
        for queue in &mut queues {
            let queued = queue.split_off(queue.len().min(CAPACITY));
            for instruction in queued {
                if bench.core.should_recall(&instruction.to_message()) {
                    bench.apply(Input::Recalled { message: instruction.to_message() });
                } else {
                    queue.push(instruction);
                }
            }
        }
    }
    for (queue, venue) in queues.iter().zip(0..) {
        for instruction in queue.iter().skip(CAPACITY) {
            if let Instruction::Order(order) = instruction
                && concerns(order)
            {
                return Err(format!("{} was queued and went after the switch", order.id));
            }
        }
        let is_meant =
            scope.contains(StrategyIndex(9), 0, VenueIndex(venue), 0) || matches!(scope, Scope::Strategy(_));
        let cancels = sent(&effects, venue).len();
        assert_eq!(cancels, usize::from(is_meant), "venue {venue} is told once, or not at all");
    }
    let from = bench.out.len();
    after.iter().for_each(|which| send(&mut bench, *which));
    let later = (0..2).flat_map(|gateway| sent(&bench.out[from..], gateway)).collect::<Vec<_>>();
    for instruction in &later {
        if let Instruction::Order(order) = instruction
            && concerns(order)
        {
            return Err(format!("{} was dispatched after the switch", order.id));
        }
    }
    // Every order is accounted for: sent, or refused.
    let there = queues.iter().map(Vec::len).sum::<usize>() + later.len();
    assert_eq!(there + bench.count(Point::Rejected), before.len() + after.len());
    Ok(())
}

fn orders() -> impl Strategy<Value = Vec<(u16, u16)>> {
    prop::collection::vec((0u16..2, 0u16..2), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_of_the_scope_gets_through(
        kind in 0u8..5, index in 0u16..2, before in orders(), after in orders(),
    ) {
        // There is one instrument.
        let scope = Scope::from_code(kind, if kind == 4 { 0 } else { index }).unwrap();
        prop_assert_eq!(kill_between(scope, &before, &after, kill), Ok(()));
    }
}

#[test]
fn incomplete_kill_is_detected() {
    // Sends mass cancels and does not turn on the switch.
    fn only_cancels(bench: &mut Bench, scope: Scope) -> Vec<Effect> {
        let effects = kill(bench, scope);
        let Core { risk, positions, .. } = &mut bench.core;
        risk.set_switch(scope, false, positions).unwrap();
        effects
    }
    // Turns on the switch and forgets what is queued.
    fn recalls_nothing(bench: &mut Bench, scope: Scope) -> Vec<Effect> {
        kill(bench, scope).into_iter().filter(|effect| *effect != Effect::Recall).collect()
    }
    let many = [(0, 0); 8];
    assert_eq!(kill_between(Scope::Instrument(0), &many, &many, kill), Ok(()));
    let found = kill_between(Scope::Instrument(0), &[], &many, only_cancels).unwrap_err();
    assert!(found.contains("dispatched after the"), "{found}");
    let found = kill_between(Scope::Strategy(StrategyIndex(0)), &many, &[], recalls_nothing).unwrap_err();
    assert!(found.contains("went after the"), "{found}");
}

#[test]
fn operator_gets_open_count_and_completion_time() {
    let mut bench = bench(100);
    let scope = Scope::Strategy(StrategyIndex(0));
    (0..3).for_each(|n| _ = bench.send(&order(0, n, (n % 2) as u16)));
    bench.send(&order(1, 0, 0));
    let effects = kill(&mut bench, scope);
    let seen = |number, orders| {
        Effect::OperatorNotice(OperatorNotice::CommandSeen { number, ticks: Some(0), orders })
    };
    assert!(effects.contains(&seen(0, 3)));
    let cancel = [Instruction::CancelAll(CancelScope::for_strategy(OrderId::new(0, 0, 0)))];
    assert_eq!((sent(&effects, 0), sent(&effects, 1)), (cancel.into(), cancel.into()));
    assert_eq!(returned(&bench.send(&order(0, 3, 0)), 0), [(3, Reject::Killed.code())]);
    assert_eq!(sent(&bench.send(&order(1, 1, 0)), 0).len(), 1, "the other one trades on");
    let done = Effect::OperatorNotice(OperatorNotice::CommandDone { number: 0, ticks: 0 });
    for n in 0..3 {
        assert!(!bench.out.contains(&done));
        bench.fill(&order(0, n, 0));
        bench.fill(&order(1, 7 + n, 0));
    }
    assert!(bench.out.contains(&done));
    assert!(bench.command(1, Command::Revive(scope)).contains(&seen(1, 0)));
    assert_eq!(sent(&bench.send(&order(0, 4, 0)), 0).len(), 1);
    let logged = [(Point::KillSeen, true), (Point::KillDone, true), (Point::KillSeen, false)];
    assert_eq!(switches(&bench.out), logged.map(|(point, is_on)| (point, scope, is_on, KillCause::Operator)));
}

/// Ends strategy 0 with three orders open, and begins its next incarnation. Returns what was sent
/// to gateway 0 at the command, and what an order of the successor gets back.
fn end_and_succeed(open_orders: OpenOrders, before: Option<Command>) -> (Vec<Instruction>, Vec<(u64, u8)>) {
    let mut bench = bench(100);
    (0..3).for_each(|n| _ = bench.send(&order(0, n, 0)));
    before.into_iter().for_each(|command| _ = bench.command(0, command));
    let end = Command::EndStrategy { strategy: StrategyIndex(0), open_orders, is_replaced: true };
    let effects = bench.command(1, end);
    assert_eq!(returned(&bench.send(&order(0, 3, 0)), 0), [(3, Reject::Killed.code())]);
    assert_eq!(sent(&bench.send(&order(1, 0, 0)), 0).len(), 1, "the other one trades on");
    let done = Effect::OperatorNotice(OperatorNotice::CommandDone { number: 1, ticks: 0 });
    for n in 0..3 {
        assert!(!bench.out.contains(&done));
        bench.fill(&order(0, n, 0));
    }
    assert!(bench.out.contains(&done));
    bench.fence(0, 0, true);
    bench.apply(Input::Retired { strategy: StrategyIndex(0) });
    let position = bench.position(0);
    bench.fence(0, 1, false);
    assert_eq!(bench.position(0), position, "what is held continues");
    let mut next = order(0, 0, 0);
    next.id = OrderId::new(0, 1, 0);
    (sent(&effects, 0), returned(&bench.send(&next), 0))
}

#[test]
fn successor_of_ended_strategy_trades() {
    let cancel = Instruction::CancelAll(CancelScope::for_strategy(OrderId::new(0, 0, 0)));
    assert_eq!(end_and_succeed(OpenOrders::Drain, None), (vec![], vec![]));
    assert_eq!(end_and_succeed(OpenOrders::Cancel, None), (vec![cancel], vec![]));
}

#[test]
fn kill_switch_of_operator_continues_for_successor() {
    let refused = vec![(0, Reject::Killed.code())];
    let kill = Command::Kill(Scope::Strategy(StrategyIndex(0)));
    assert_eq!(end_and_succeed(OpenOrders::Drain, Some(kill)).1, refused);
}

#[test]
fn revived_strategy_that_is_ended_stays_refused() {
    for scope in [Scope::All, Scope::Strategy(StrategyIndex(0))] {
        let mut bench = bench(100);
        let open_orders = OpenOrders::Drain;
        bench
            .command(0, Command::EndStrategy { strategy: StrategyIndex(0), open_orders, is_replaced: false });
        bench.command(1, Command::Revive(scope));
        assert_eq!(returned(&bench.send(&order(0, 0, 0)), 0), [(0, Reject::Killed.code())]);
        assert_eq!(sent(&bench.send(&order(1, 0, 0)), 0).len(), 1);
    }
}

#[test]
fn limit_that_is_met_during_an_end_stays_for_successor() {
    let mut bench = bench(100);
    let open_orders = OpenOrders::Drain;
    bench.command(0, Command::EndStrategy { strategy: StrategyIndex(0), open_orders, is_replaced: true });
    let mut effects = Vec::new();
    bench.core.kill_by_limit(StrategyIndex(0), RiskControl::MaxLoss, &mut effects);
    assert_eq!(sent(&effects, 0).len(), 1, "what is open is cancelled");
    bench.fence(0, 0, true);
    bench.apply(Input::Retired { strategy: StrategyIndex(0) });
    bench.fence(0, 1, false);
    let mut next = order(0, 0, 0);
    next.id = OrderId::new(0, 1, 0);
    assert_eq!(returned(&bench.send(&next), 0), [(0, Reject::Killed.code())]);
}

#[test]
fn command_without_scope_or_limit_is_refused() {
    let limit = |control, value| Command::SetLimit { scope: Scope::All, control, value };
    let max_loss = |scope| Command::SetLimit { scope, control: RiskControl::MaxLoss.code(), value: 1 };
    for (command, why) in [
        (Some(Command::Kill(Scope::Venue(VenueIndex(2)))), CommandStatus::NoSuchScope),
        (Some(Command::Revive(Scope::Instrument(1))), CommandStatus::NoSuchScope),
        (Some(Command::Kill(Scope::Credential(1))), CommandStatus::NoSuchScope),
        (
            Some(Command::EndStrategy {
                strategy: StrategyIndex(2),
                open_orders: OpenOrders::Drain,
                is_replaced: false,
            }),
            CommandStatus::NoSuchScope,
        ),
        (Some(max_loss(Scope::Strategy(StrategyIndex(2)))), CommandStatus::NoSuchScope),
        (Some(max_loss(Scope::Venue(VenueIndex(0)))), CommandStatus::NoSuchLimit),
        (Some(limit(200, 1)), CommandStatus::NoSuchLimit),
        (Some(limit(RiskControl::Restricted.code(), 2)), CommandStatus::NoSuchLimit),
        (None, CommandStatus::Unknown),
    ] {
        let mut bench = bench(8);
        let effects = bench.apply(Input::Command { number: 3, command });
        assert_eq!(effects, [Effect::OperatorNotice(OperatorNotice::CommandRefused { number: 3, why })]);
    }
}

#[test]
fn limits_kill_by_themselves() {
    type Trade = fn(&mut Bench, u64);
    let cases: [(RiskControl, u64, Trade); 3] = [
        (RiskControl::MaxRejections, 1, |bench, n| _ = bench.send(&priced(-1, order(1, n, 0)))),
        (RiskControl::KillMessageRate, 10, |bench, n| _ = bench.send(&order(1, n, 0))),
        // What strategy 1 sold costs more after the trade of strategy 0.
        (RiskControl::MaxLoss, 0, |bench, n| {
            let (strategy, price) = [(1, 10), (0, 100_000_000)][n as usize];
            bench.fill(&priced(price, order(strategy, 0, 0)));
        }),
    ];
    for (control, value, trade) in cases {
        let mut bench = bench_of(&RiskSetup { limits: &[limit(control, value)], ..SETUP });
        trade(&mut bench, 0);
        assert_eq!(switches(&bench.out), [], "{control:?}");
        trade(&mut bench, 1);
        let killed =
            (Point::KillSeen, Scope::Strategy(StrategyIndex(1)), true, KillCause::Limit(control.code()));
        assert_eq!(switches(&bench.out)[0], killed);
        let next = bench.core.sessions[StrategyIndex(1)].next_order().unwrap();
        let next = Order { id: next, ..order(1, 0, 0) };
        assert_eq!(returned(&bench.send(&next), 1), [(next.id.sequence(), Reject::Killed.code())]);
    }
}

#[test]
fn a_death_kills_where_that_is_wanted() {
    let limit = LimitSetting {
        scope: Scope::Strategy(StrategyIndex(0)),
        control: RiskControl::KillOnDeath,
        value: 1,
    };
    let mut bench = bench_of(&RiskSetup { limits: &[limit], ..SETUP });
    (0..2).for_each(|strategy| _ = bench.fence(strategy, 0, true));
    let killed = |point| (point, Scope::Strategy(StrategyIndex(0)), true, KillCause::Death);
    let found = [killed(Point::KillSeen), killed(Point::KillDone)];
    assert_eq!(switches(&bench.out), found, "the other death does not kill");
    bench.apply(Input::Retired { strategy: StrategyIndex(0) });
    bench.fence(0, 1, false);
    let next = Order { id: OrderId::new(0, 1, 0), ..order(0, 0, 0) };
    let refused = [(0, Reject::Killed.code())];
    assert_eq!(returned(&bench.send(&next), 0), refused, "the next incarnation is refused");
}
