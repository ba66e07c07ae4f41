//! Tests of operators' kill, revive and limit commands.

use super::*;
use protocol::commands::{
    ANSWERS_WORDS, COMMANDS_WORDS, Command, CommandAnswers, CommandStatus, CommandWriter,
};
use protocol::kill::Scope;
use protocol::limits::RiskControl;

pub(super) fn commanded(capacity: usize) -> (Bench, CommandWriter, CommandAnswers) {
    let mut bench = bench(capacity, 100);
    let (desk, answers) = (Region::heap(COMMANDS_WORDS).words(), Region::heap(ANSWERS_WORDS).words());
    let operator = CommandWriter::new(&desk);
    bench.orchestrator.outputs.commands = Some(CommandChannel::new(&desk.into(), &answers));
    (bench, operator, CommandAnswers::new(&answers.into()))
}

#[test]
fn invalid_commands_are_refused() {
    let (mut bench, operator, answers) = commanded(8);
    let limit = |control, value| Command::SetLimit { scope: Scope::All, control, value };
    let volume = RiskControl::MaxOrderVolume.code();
    for (number, (command, status)) in (0..).zip([
        (Command::Kill(Scope::Venue(2)), CommandStatus::NoSuchScope),
        (Command::Revive(Scope::Credential(1)), CommandStatus::NoSuchScope),
        (limit(200, 1), CommandStatus::NoSuchLimit),
        (limit(RiskControl::Restricted.code(), 2), CommandStatus::NoSuchLimit),
        (limit(volume, 6), CommandStatus::Done),
    ]) {
        assert_eq!(operator.append(command, 1, 1), Some(number));
        bench.cycle();
        assert_eq!(answers.answer(number).status, status);
    }
    bench.send(&order(0, 0, 0), 0);
    bench.cycle();
    assert_eq!(bench.reports(0)[0].reason, Reject::TooLarge.code(), "the new limit is in force");
}

#[test]
fn kill_ends_with_last_order_despite_queued_cancel() {
    let (mut bench, operator, answers) = commanded(2);
    (0..2).for_each(|n| bench.send(&order(0, n, 0), 0));
    bench.cycle();
    bench.cycle.clock.set(100);
    operator.append(Command::Kill(Scope::Venue(0)), 90, 1).unwrap();
    bench.cycle();
    let answer = answers.answer(0);
    assert_eq!((answer.status, answer.seen_ticks, answer.orders), (CommandStatus::Seen, 100, 2));
    assert_eq!(bench.queued(), 1);
    for n in 0..2 {
        bench.cycle.clock.set(200 + n);
        bench.completion.try_push(&report(&order(0, n, 0)).to_message()).unwrap();
        bench.cycle();
    }
    assert_eq!((answers.answer(0).status, answers.answer(0).done_ticks), (CommandStatus::Done, 201));
    bench.send(&order(0, 2, 0), 0);
    bench.cycle();
    assert_eq!(answers.rejections(Reject::Killed.code()), 1);
}
