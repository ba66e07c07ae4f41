//! Tests of operators' kill, revive and limit commands.

use super::*;
use protocol::commands::{
    ANSWERS_WORDS, COMMANDS_WORDS, Command, CommandAnswers, CommandStatus, CommandWriter,
};
use protocol::kill::Scope;

pub(super) fn commanded(capacity: usize) -> (Bench, CommandWriter, CommandAnswers) {
    let mut bench = bench(capacity, 100);
    let (desk, answers) = (Region::heap(COMMANDS_WORDS).words(), Region::heap(ANSWERS_WORDS).words());
    let operator = CommandWriter::new(&desk);
    bench.orchestrator.outputs.commands = Some(CommandChannel::new(&desk.into(), &answers));
    (bench, operator, CommandAnswers::new(&answers.into()))
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
