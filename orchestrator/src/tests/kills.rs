//! Operators' kill commands, and the duty cycle in which a kill switch reaches the gateways.

use super::*;
use crate::live::HandOffs;
use journal::{Options, Writer};
use protocol::commands::{
    ANSWERS_WORDS, COMMANDS_WORDS, Command, CommandAnswers, CommandChannel, CommandStatus, CommandWriter,
};
use protocol::index::{PerGateway, PerStrategy, StrategyIndex, VenueIndex};
use protocol::kill::Scope;
use protocol::limits::{LimitSetting, RiskControl};
use protocol::stamps::Stamps;
use std::path::Path;

/// The cause that turns on the switch.
#[derive(Clone, Copy, Debug)]
enum Trigger {
    Command,
    /// One rejection too many.
    Order,
    /// A loss.
    Report,
    Death,
}

/// The bench with a journal in that directory. What the journal holds already is applied first.
fn journaled(directory: &Path, capacity: usize) -> Bench<Writer> {
    let Bench { orchestrator, submit, inboxes, completion, returns, cycle, segment } = bench(capacity, 100);
    let Orchestrator { hand_offs, core, outputs, .. } = orchestrator;
    let HandOffs { submit: orders, completion: reports } = hand_offs;
    let replica = Replica::new(core, Stamps::All);
    let journal_options = (directory, &Options::default());
    let (successor, recovered) =
        replica.promote(None, journal_options, OutputWatermarks::default(), outputs, 0).unwrap();
    // The rings are new: nothing in them was taken.
    let without_outputs =
        Recovered { taken: PerStrategy::default(), gateways: PerGateway::default(), ..recovered };
    let orchestrator = successor.attach(orders, reports, &without_outputs).unwrap();
    Bench { orchestrator, submit, inboxes, completion, returns, cycle, segment }
}

/// Connects an operator. Returns its end, and the answers.
fn connect_operator<J>(bench: &mut Bench<J>) -> (CommandWriter, CommandAnswers) {
    let (commands, answers) = (Region::heap(COMMANDS_WORDS).words(), Region::heap(ANSWERS_WORDS).words());
    bench.orchestrator.outputs.commands = Some(CommandChannel::new(&commands.clone().into(), &answers));
    (CommandWriter::new(&commands), CommandAnswers::new(&answers.into()))
}

fn set_limit<J>(bench: &mut Bench<J>, control: RiskControl, value: u64) {
    let setting = LimitSetting { scope: Scope::Strategy(StrategyIndex(1)), control, value };
    let Core { risk, positions, .. } = &mut bench.orchestrator.core;
    risk.set(&setting, positions).unwrap();
}

/// Returns the duty cycles until the first gateway gets a mass cancel, and the instructions that it
/// was sent until then, in order.
fn cycles_until_cancel<J: InputLog>(
    trigger: Trigger,
    (mut bench, launching, _): (Bench<J>, ControlWriter, Repairs),
) -> (usize, Vec<Instruction>) {
    let (operator, _) = connect_operator(&mut bench);
    bench.send(&order(1, 0, 0));
    bench.turn();
    match trigger {
        Trigger::Command => {
            operator.append(Command::Kill(Scope::Strategy(StrategyIndex(1))), 1, 1).unwrap();
        }
        Trigger::Order => {
            set_limit(&mut bench, RiskControl::MaxRejections, 1);
            (1..3).for_each(|n| bench.send(&priced(-1, order(1, n, 0))));
        }
        Trigger::Report => {
            set_limit(&mut bench, RiskControl::MaxLoss, 0);
            bench.fill(&priced(10, order(1, 0, 0)));
            bench.fill(&priced(100_000_000, order(0, 0, 0)));
        }
        Trigger::Death => {
            set_limit(&mut bench, RiskControl::KillOnDeath, 1);
            launching.fence(StrategyIndex(1), 0, &death());
        }
    }
    // Orders of another strategy are after the trigger in the same batch.
    (0..4).for_each(|n| bench.send(&order(0, n, 0)));
    let mut sent = Vec::new();
    for cycles in 1..10 {
        bench.turn();
        sent.extend(bench.take_all(0));
        if sent.iter().any(|instruction| matches!(instruction, Instruction::CancelAll(_))) {
            return (cycles, sent);
        }
    }
    panic!("{trigger:?}: the gateway got no mass cancel");
}

#[test]
fn kill_reaches_gateways_in_same_cycle_with_journal() {
    for trigger in [Trigger::Command, Trigger::Order, Trigger::Report, Trigger::Death] {
        let directory = tempfile::tempdir().unwrap();
        let without = cycles_until_cancel(trigger, supervise(bench(64, 100)));
        let with = cycles_until_cancel(trigger, supervise(journaled(directory.path(), 64)));
        assert_eq!(without.0, 1, "{trigger:?}");
        assert_eq!(with, without, "{trigger:?}: duty cycles, and what the gateway was sent");
    }
}

#[test]
fn recall_is_recovered_from_journal() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = journaled(directory.path(), 2);
    (0..5).for_each(|n| {
        bench.send(&order(0, n, 1));
        bench.turn();
    });
    assert_eq!(bench.queued(), 3);
    let kill = Input::Command { number: 0, command: Some(Command::Kill(Scope::Strategy(StrategyIndex(0)))) };
    assert!(bench.orchestrator.record_and_apply(kill, |_| (), &mut bench.cycle));
    bench.turn();
    assert_eq!((bench.position(0).0, bench.orchestrator.core.counts.dispatched), (2, 2));
    drop(bench.orchestrator);
    let recovered = journaled(directory.path(), 8).orchestrator;
    assert_eq!((recovered.core.positions.open(StrategyIndex(0)), recovered.core.counts.dispatched), (2, 2));
}

#[test]
fn kill_ends_with_last_order_despite_queued_cancel() {
    let mut bench = bench(2, 100);
    let (operator, answers) = connect_operator(&mut bench);
    (0..2).for_each(|n| bench.send(&order(0, n, 0)));
    bench.cycle();
    bench.cycle.clock.set(100);
    operator.append(Command::Kill(Scope::Venue(VenueIndex(0))), 90, 1).unwrap();
    bench.cycle();
    let answer = answers.answer(0);
    assert_eq!((answer.status, answer.seen_ticks, answer.orders), (CommandStatus::Seen, 100, 2));
    assert_eq!(bench.queued(), 1);
    for n in 0..2 {
        bench.cycle.clock.set(200 + n);
        bench.fill(&order(0, n, 0));
        bench.cycle();
    }
    assert_eq!((answers.answer(0).status, answers.answer(0).done_ticks), (CommandStatus::Done, 201));
    bench.send(&order(0, 2, 0));
    bench.cycle();
    assert_eq!(answers.rejections(Reject::Killed.code()), 1);
}
