//! Kill switches with orders open, waiting and on their way.

use super::*;
use proptest::prelude::*;
use protocol::desk::{ANSWERS_WORDS, Answers, Command, DESK_WORDS, Operator, Status};
use protocol::kill::{Cause, Scope, Switch};
use protocol::limits::Control;
use protocol::wire::{CancelScope, Instruction};

/// What the orchestrator's log holds.
fn records(bench: &Bench) -> Vec<Record> {
    let records = &bench.segment[LOG_OFFSET..];
    (0..count_records(&bench.segment.clone().into()))
        .map(|i| {
            let word = |offset: usize| records[2 * i + offset].load(Ordering::Relaxed);
            Record::from_words(word(0), word(1)).unwrap()
        })
        .collect()
}

/// The switches of the log: point, scope, whether it is on.
fn switches(bench: &Bench) -> Vec<(Point, Scope, bool)> {
    let of = |record: &Record| Switch::of(record).map(|switch| (record.point, switch.scope, switch.is_on));
    records(bench).iter().filter_map(of).collect()
}

pub(super) fn commanded(capacity: usize) -> (Bench, Operator, Answers) {
    let mut bench = bench(capacity, 100);
    let (desk, answers) = (Region::heap(DESK_WORDS).words(), Region::heap(ANSWERS_WORDS).words());
    let operator = Operator::new(&desk);
    bench.orchestrator = bench.orchestrator.commanded(Desk::new(&desk.into(), &answers));
    (bench, operator, Answers::new(&answers.into()))
}

/// Kills in one way or another.
type Kill = fn(&mut Bench, Scope);

fn kill(bench: &mut Bench, scope: Scope) {
    let command = Input::Command { number: 0, command: Some(Command::Kill(scope)) };
    assert!(bench.orchestrator.take(command, |_| (), &mut bench.cycle));
}

/// Sends orders, kills a scope in between, and looks for what got through. `Err`: what did.
fn kill_between(scope: Scope, before: &[(u16, u16)], after: &[(u16, u16)], kill: Kill) -> Result<(), String> {
    let mut bench = bench(4, 100);
    let mut next = [0, 0];
    let mut send = |bench: &mut Bench, (strategy, venue): (u16, u16)| {
        let order = order(strategy, next[usize::from(strategy)], venue);
        next[usize::from(strategy)] += 1;
        bench.accept(&order);
    };
    before.iter().for_each(|which| send(&mut bench, *which));
    let killed_at = records(&bench).len();
    let queued = |bench: &Bench, id: OrderId| {
        let is_it = |message: &Message| Order::from_message(*message).is_ok_and(|order| order.id == id);
        (0..2).any(|gateway| bench.orchestrator.outputs.gateways[gateway].find(is_it).is_some())
    };
    let sent_before = (0..2).flat_map(|strategy| (0..30).map(move |n| OrderId::new(strategy, 0, n)));
    let queued: Vec<OrderId> = sent_before.filter(|id| queued(&bench, *id)).collect();
    kill(&mut bench, scope);
    after.iter().for_each(|which| send(&mut bench, *which));
    // The gateways take everything: what waited and may go goes now.
    let (mut told, mut sent) = ([false, false], Vec::new());
    for _ in 0..40 {
        for (venue, told) in told.iter_mut().enumerate() {
            while let Some(message) = bench.inboxes[venue].try_pop().unwrap() {
                match Instruction::from_message(message).unwrap() {
                    Instruction::Order(order) => sent.push((order, *told)),
                    Instruction::CancelAll(_) => *told = true,
                }
            }
        }
        bench.cycle();
    }
    let concerns = |order: &Order| scope.concerns(order.id.strategy(), 0, order.venue, order.instrument);
    for (order, is_late) in &sent {
        if concerns(order) && *is_late {
            return Err(format!("{} reached its venue after the word to cancel", order.id));
        }
        if concerns(order) && queued.contains(&order.id) {
            return Err(format!("{} was queued and went after the switch", order.id));
        }
    }
    let late =
        records(&bench).into_iter().skip(killed_at).filter(|record| record.point == Point::OrchDispatch);
    for record in late {
        let order = sent.iter().find(|(order, _)| order.id == record.id).unwrap().0;
        if concerns(&order) {
            return Err(format!("{} was dispatched after the switch", order.id));
        }
    }
    for venue in 0..2 {
        if scope.concerns(9, 0, venue, 0) || matches!(scope, Scope::All | Scope::Instrument(_)) {
            assert!(told[usize::from(venue)], "venue {venue} is told");
        }
    }
    // Every order is accounted for: sent, or refused.
    let refused = records(&bench).iter().filter(|record| record.point == Point::Rejected).count();
    assert_eq!(sent.len() + refused, before.len() + after.len());
    Ok(())
}

fn orders() -> impl Strategy<Value = Vec<(u16, u16)>> {
    prop::collection::vec((0u16..2, 0u16..2), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_of_the_scope_gets_through(kind in 0u8..5, index in 0u16..2, before in orders(), after in orders()) {
        // There is one credential and one instrument.
        let scope = Scope::from_code(kind, if kind == 2 || kind == 4 { 0 } else { index }).unwrap();
        prop_assert_eq!(kill_between(scope, &before, &after, kill), Ok(()));
    }
}

#[test]
fn a_kill_that_lets_an_instrument_or_what_waits_through_is_found() {
    // It tells the venues and forgets to throw the switch.
    fn only_tells(bench: &mut Bench, scope: Scope) {
        kill(bench, scope);
        let Core { risk, positions, .. } = &mut bench.orchestrator.core;
        risk.turn(scope, false, positions);
    }
    let many = [(0, 0); 8];
    assert_eq!(kill_between(Scope::Instrument(0), &many, &many, kill), Ok(()));
    let found = kill_between(Scope::Instrument(0), &many, &many, only_tells).unwrap_err();
    assert!(found.contains("after the"), "{found}");
    // It throws the switch and lets what waits go.
    fn lets_wait(bench: &mut Bench, scope: Scope) {
        kill(bench, scope);
        bench.orchestrator.outputs.recall_is_due = false;
    }
    let found = kill_between(Scope::Strategy(0), &many, &[], lets_wait).unwrap_err();
    assert!(found.contains("after the"), "{found}");
}

#[test]
fn an_operator_hears_what_was_open_and_when_the_last_was_confirmed() {
    let (mut bench, operator, answers) = commanded(16);
    for n in 0..3 {
        bench.send(&order(0, n, (n % 2) as u16), 0);
    }
    bench.send(&order(1, 0, 0), 1);
    bench.cycle();
    bench.cycle.clock.set(100);
    operator.give(Command::Kill(Scope::Strategy(0)), 90, 1).unwrap();
    bench.cycle();
    let answer = answers.of(0);
    assert_eq!((answer.status, answer.seen_ticks, answer.orders), (Status::Seen, 100, 3));
    for venue in 0..2 {
        let told: Vec<_> = std::iter::from_fn(|| bench.inboxes[venue].try_pop().unwrap())
            .filter_map(|message| match Instruction::from_message(message).unwrap() {
                Instruction::CancelAll(scope) => Some(scope),
                Instruction::Order(_) => None,
            })
            .collect();
        assert_eq!(told, [CancelScope::of(OrderId::new(0, 0, 0))]);
    }
    bench.send(&order(0, 3, 0), 0);
    bench.send(&order(1, 1, 0), 1);
    bench.cycle();
    assert_eq!(bench.reports(0)[0].reason, Reject::Killed.code());
    assert_eq!(answers.rejections(Reject::Killed.code()), 1);
    assert_eq!(bench.position(1).0, 2, "the other one trades on");
    for n in 0..3 {
        bench.cycle.clock.set(200 + n);
        assert_eq!(answers.of(0).status, Status::Seen);
        bench.completion.try_push(&report(&order(0, n, 0)).to_message()).unwrap();
        bench.completion.try_push(&report(&order(1, 7 + n, 0)).to_message()).unwrap();
        bench.cycle();
    }
    assert_eq!((answers.of(0).status, answers.of(0).done_ticks), (Status::Done, 202));
    operator.give(Command::Revive(Scope::Strategy(0)), 300, 1).unwrap();
    bench.send(&order(0, 4, 0), 0);
    bench.cycle();
    assert_eq!((answers.of(1).status, bench.position(0).0), (Status::Done, 1));
    let scope = Scope::Strategy(0);
    let (seen, done) = (Point::KillSeen, Point::KillDone);
    assert_eq!(switches(&bench), [(seen, scope, true), (done, scope, true), (seen, scope, false)]);
}

#[test]
fn what_cannot_be_commanded_is_answered() {
    let (mut bench, operator, answers) = commanded(8);
    let limit = |control, value| Command::SetLimit { scope: Scope::All, control, value };
    let volume = Control::MaxOrderVolume.code();
    for (number, (command, status)) in (0..).zip([
        (Command::Kill(Scope::Venue(2)), Status::NoSuchScope),
        (Command::Revive(Scope::Credential(1)), Status::NoSuchScope),
        (limit(200, 1), Status::NoSuchLimit),
        (limit(Control::Restricted.code(), 2), Status::NoSuchLimit),
        (limit(volume, 6), Status::Done),
    ]) {
        assert_eq!(operator.give(command, 1, 1), Some(number));
        bench.cycle();
        assert_eq!(answers.of(number).status, status);
    }
    bench.send(&order(0, 0, 0), 0);
    bench.cycle();
    assert_eq!(bench.reports(0)[0].reason, Reject::TooLarge.code(), "the new limit is in force");
}

#[test]
fn kill_is_done_with_its_last_order_although_cancel_is_queued() {
    let mut bench = bench(2, 100);
    (0..2).for_each(|n| bench.send(&order(0, n, 0), 0));
    bench.cycle();
    kill(&mut bench, Scope::Venue(0));
    assert_eq!((switches(&bench).len(), bench.queued()), (1, 1));
    for n in 0..2 {
        bench.completion.try_push(&report(&order(0, n, 0)).to_message()).unwrap();
        bench.cycle();
    }
    assert_eq!(switches(&bench)[1], (Point::KillDone, Scope::Venue(0), true));
}

#[test]
fn limits_kill_by_themselves() {
    let cause = |bench: &Bench| {
        let found = records(bench).iter().find_map(Switch::of);
        found.map(|switch| (switch.scope, switch.cause))
    };
    let set = |bench: &mut Bench, control, value| {
        let setting = protocol::limits::LimitSetting { scope: Scope::All, control, value };
        let Core { risk, positions, .. } = &mut bench.orchestrator.core;
        risk.set(&setting, positions).unwrap();
    };
    let mut rejected = bench(16, 100);
    set(&mut rejected, Control::MaxRejections, 1);
    (0..3).for_each(|n| rejected.send(&Order { price: -1, ..order(1, n, 0) }, 1));
    rejected.cycle();
    let killed = |control: Control| Some((Scope::Strategy(1), Cause::Limit(control.code())));
    assert_eq!(cause(&rejected), killed(Control::MaxRejections));
    let reasons: Vec<u8> = rejected.reports(1).iter().map(|report| report.reason).collect();
    assert_eq!(reasons, [Reject::BadPrice, Reject::BadPrice, Reject::Killed].map(Reject::code));

    let mut flooded = bench(16, 100);
    set(&mut flooded, Control::KillMessageRate, 10);
    (0..2).for_each(|n| flooded.send(&order(1, n, 0), 1));
    flooded.cycle();
    assert_eq!(cause(&flooded), killed(Control::KillMessageRate));

    let mut lost = bench(16, 100);
    set(&mut lost, Control::MaxLoss, 0);
    let sold = Order { price: 10, ..order(1, 0, 0) };
    lost.completion.try_push(&report(&sold).to_message()).unwrap();
    lost.cycle();
    assert_eq!(cause(&lost), None);
    lost.completion.try_push(&report(&Order { price: 100_000_000, ..order(0, 0, 0) }).to_message()).unwrap();
    lost.cycle();
    assert_eq!(cause(&lost), killed(Control::MaxLoss), "what it sold costs more now");
}

#[test]
fn a_death_kills_where_that_is_wanted() {
    let (mut bench, launching, _) = super::incidents::supervised(8);
    let setting =
        protocol::limits::LimitSetting { scope: Scope::Strategy(0), control: Control::KillOnDeath, value: 1 };
    let Core { risk, positions, .. } = &mut bench.orchestrator.core;
    risk.set(&setting, positions).unwrap();
    for strategy in 0..2 {
        launching.fence(strategy, 0, &super::incidents::death());
    }
    (0..8).for_each(|_| {
        bench.cycle();
    });
    let found: Vec<_> = records(&bench).iter().filter_map(Switch::of).collect();
    let switch = Switch { number: 0, scope: Scope::Strategy(0), is_on: true, cause: Cause::Death };
    assert_eq!(found, [switch, switch], "seen and done; the other one's death kills nobody");
    launching.revive(0, 1);
    (0..8).for_each(|_| {
        bench.cycle();
    });
    let next = Order { id: OrderId::new(0, 1, 0), ..order(0, 0, 0) };
    bench.accept(&next);
    assert_eq!(bench.reports(0)[0].reason, Reject::Killed.code(), "the next incarnation is refused");
}
