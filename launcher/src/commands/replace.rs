//! `launcher retire` and `launcher replace`: end a strategy of an active run, and start another one
//! in its place.

use crate::cli::{OpenOrdersFlag, ReplaceFlags, RetireFlags};
use crate::operator::{ActiveRunHandle, CommandTimeouts};
use anyhow::{Context, Result};
use planner::config::UsageError;
use planner::config::components::{KindList, StrategyKind};
use planner::config::value::SettingValue;
use protocol::commands::{Command, CommandAnswer, CommandStatus, MAX_TEXT_BYTES, OpenOrders};
use protocol::index::StrategyIndex;
use protocol::isolation::Isolation;
use protocol::plan::{OnDeath, Plan, Role, Technique, Trading};
use protocol::status::ThreadState;
use record::numbers::{counted, duration};
use record::screen;
use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// How long the launcher may take to end the old process and to start the new one.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `launcher retire`: ends a strategy of an active run for good.
pub fn retire(flags: &RetireFlags) -> Result<ExitCode> {
    end(flags, None)
}

/// Runs `launcher replace`: ends a strategy of an active run and starts a successor.
pub fn replace(flags: &ReplaceFlags) -> Result<ExitCode> {
    let kind = flags.with.as_deref().map(|kind| checked_kind("--with", kind)).transpose()?;
    end(&flags.end, Some(kind.unwrap_or_default()))
}

/// What became of a strategy that an operator ended.
struct Ended {
    /// Open orders when the engine saw the command, and whether they were cancelled.
    orders: u64,
    was_cancelled: bool,
    /// Until its last open order had ended, and until the launcher had ended or replaced it.
    settled: Duration,
    took: Duration,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ended,
    Replaced,
    /// The engine or the launcher has not done it in time.
    Unfinished(&'static str),
}

fn end(flags: &RetireFlags, successor: Option<String>) -> Result<ExitCode> {
    let run = ActiveRunHandle::find(&flags.run)?;
    let strategy = strategy_of(&flags.strategy, &run.plan)?;
    let name = Role::Strategy(strategy).to_string();
    check(&run, strategy, successor.is_some())?;
    check_program(&run.plan, strategy, "--with", successor.as_deref().unwrap_or_default())?;
    let began = Instant::now();
    let before = run.incarnation(strategy).epoch;
    let (answer, was_cancelled) = give(&run, strategy, successor.as_deref(), flags)?;
    let settled = began.elapsed();
    let fate = match answer.status {
        CommandStatus::Done => wait_for_launcher(&run, strategy, before, successor.is_some())?,
        CommandStatus::Seen => Fate::Unfinished("open orders have not ended"),
        why => return Err(UsageError(format!("the engine refused {name}: {why}")).into()),
    };
    let ended = Ended { orders: answer.orders, was_cancelled, settled, took: began.elapsed(), fate };
    let mut out = screen::stdout();
    if flags.json {
        writeln!(out, "{:#}", json(&run.plan.run, &name, &ended))?;
    } else {
        out.write_all(text(&run.plan.run, &name, &ended).as_bytes())?;
    }
    Ok(if matches!(fate, Fate::Unfinished(_)) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Sends the command, and once more to cancel what is still open after the time.
fn give(
    run: &ActiveRunHandle,
    strategy: StrategyIndex,
    successor: Option<&str>,
    flags: &RetireFlags,
) -> Result<(CommandAnswer, bool)> {
    let within = Duration::from_nanos(flags.within.0);
    let command =
        |open_orders| Command::EndStrategy { strategy, open_orders, is_replaced: successor.is_some() };
    let send = |open_orders, timeouts| {
        run.send_with_text(command(open_orders), successor.unwrap_or_default(), timeouts)
    };
    if flags.open_orders == OpenOrdersFlag::Drain {
        let (_, answer) = send(OpenOrders::Drain, CommandTimeouts::with_done(within))?;
        if answer.status != CommandStatus::Seen {
            return Ok((answer, false));
        }
    }
    // The venues confirm each cancel.
    let confirmed = within.max(CommandTimeouts::SEEN);
    let (_, answer) = send(OpenOrders::Cancel, CommandTimeouts::with_done(confirmed))?;
    Ok((answer, answer.orders > 0))
}

/// Waits until the launcher has ended the strategy, or its successor runs. Returns an error if the
/// strategy finished by itself before that.
fn wait_for_launcher(
    run: &ActiveRunHandle,
    strategy: StrategyIndex,
    before: u16,
    is_replaced: bool,
) -> Result<Fate, UsageError> {
    if is_replaced {
        return match wait_for_incarnation(run, strategy, before) {
            IncarnationStart::Runs => Ok(Fate::Replaced),
            IncarnationStart::Ended => Ok(Fate::Unfinished("its successor ended before it traded")),
            IncarnationStart::Late => Ok(Fate::Unfinished("its successor does not run yet")),
            IncarnationStart::HasFinished => Err(finished(strategy, is_replaced)),
        };
    }
    let began = Instant::now();
    while began.elapsed() < LAUNCHER_TIMEOUT && !run.is_over() {
        run.wake_launcher();
        let life = run.incarnation(strategy);
        if life.epoch == before && life.fenced {
            return Ok(Fate::Ended);
        }
        if life.epoch == before && run.has_finished(strategy) {
            return Err(finished(strategy, is_replaced));
        }
        sleep(POLL_INTERVAL);
    }
    Ok(Fate::Unfinished("its process has not ended yet"))
}

/// What became of a strategy that the launcher is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncarnationStart {
    Runs,
    Ended,
    /// The strategy in whose place it was to start has finished by itself.
    HasFinished,
    /// It does not run yet, or the run is over.
    Late,
}

/// Waits until an incarnation of a strategy runs that is later than the epoch `before`.
pub(super) fn wait_for_incarnation(
    run: &ActiveRunHandle,
    strategy: StrategyIndex,
    before: u16,
) -> IncarnationStart {
    let (began, mut is_renewed) = (Instant::now(), false);
    while began.elapsed() < LAUNCHER_TIMEOUT && !run.is_over() {
        run.wake_launcher();
        let life = run.incarnation(strategy);
        // In the first moment the state is the predecessor's.
        if std::mem::replace(&mut is_renewed, life.epoch > before) {
            match run.state_of(strategy) {
                // What cannot be read is another user's run.
                None | Some(ThreadState::Running | ThreadState::Done) => return IncarnationStart::Runs,
                Some(_) if life.fenced || life.epoch > before + 1 => return IncarnationStart::Ended,
                Some(_) => {}
            }
        } else if life.epoch == before && run.has_finished(strategy) {
            return IncarnationStart::HasFinished;
        }
        sleep(POLL_INTERVAL);
    }
    IncarnationStart::Late
}

/// Returns the strategy that a user names: `2` or `strategy-2`.
pub(super) fn strategy_of(name: &str, plan: &Plan) -> Result<StrategyIndex, UsageError> {
    let count = plan.trading().strategies;
    let number = name.strip_prefix("strategy-").unwrap_or(name).parse::<u16>();
    number.ok().filter(|index| *index < count).map(StrategyIndex).ok_or_else(|| {
        UsageError(format!(
            "{name}: no such strategy; the run has strategy-0 to strategy-{}",
            count.max(1) - 1
        ))
    })
}

/// Refuses what the run cannot do.
fn check(run: &ActiveRunHandle, strategy: StrategyIndex, is_replaced: bool) -> Result<(), UsageError> {
    let (plan, name) = (&run.plan, Role::Strategy(strategy));
    if plan.on_death == OnDeath::Stop {
        let why = "ends when a strategy ends: start it with --on-death continue or restart";
        return Err(UsageError(format!("run {} {why}", plan.run)));
    }
    if plan.isolation.kind_of(strategy).is_thread() {
        let why = "is a thread of the engine's process, which cannot be ended alone: use --isolation process";
        return Err(UsageError(format!("{name} {why}")));
    }
    if let [first, .., last] = plan.group_of(strategy)[..] {
        let level = plan.isolation.kind_of(strategy);
        let why = format!(
            "shares its process with others, from strategy-{first} to strategy-{last}: it cannot be ended without them.\n\
             Use launcher kill to stop its orders, or start a run with --isolation {level} without groups"
        );
        return Err(UsageError(format!("{name} {why}")));
    }
    let life = run.incarnation(strategy);
    if life.fenced {
        let what = if is_replaced { "replace" } else { "retire" };
        return Err(UsageError(format!("{name} has ended already: there is nothing to {what}")));
    }
    if run.has_finished(strategy) {
        return Err(finished(strategy, is_replaced));
    }
    Ok(())
}

/// Returns the error that a strategy has finished by itself.
fn finished(strategy: StrategyIndex, is_replaced: bool) -> UsageError {
    let (name, what) = (Role::Strategy(strategy), if is_replaced { "replace" } else { "retire" });
    UsageError(format!("{name} has finished: there is nothing to {what}"))
}

/// Refuses a program as the kind of a strategy that cannot be one.
pub(super) fn check_program(
    plan: &Plan,
    strategy: StrategyIndex,
    flag: &str,
    kind: &str,
) -> Result<(), UsageError> {
    if Trading::command_of(kind).is_none() {
        return Ok(());
    }
    let name = Role::Strategy(strategy);
    let why = if plan.isolation.kind_of(strategy) == Isolation::Sandbox {
        format!("{name} is in a sandbox, in which no program starts: use --isolation process or container")
    } else if !Technique::built_in().contains(&plan.technique) {
        format!("programs trade through bulkhead's own techniques, and the run has {}", plan.technique)
    } else {
        return Ok(());
    };
    Err(UsageError(format!("{flag} {kind}: {why}")))
}

/// Checks a strategy kind that a user names with a flag. A program's path is made absolute: the
/// launcher of the run may have another current folder.
pub(super) fn checked_kind(flag: &str, kind: &str) -> Result<String> {
    let kinds = KindList::<StrategyKind>::parse(kind).map_err(UsageError)?;
    let [kind] = kinds.0.as_slice() else {
        return Err(UsageError(format!("{flag} {kind}: name one kind")).into());
    };
    let mut kind = kind.clone();
    if let Some(command) = Trading::command_of(&kind) {
        let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
        if program.contains('/') {
            let path = std::path::absolute(program).with_context(|| format!("cannot resolve {program}"))?;
            if !path.is_file() {
                return Err(UsageError(format!("{flag} {kind}: no such file: {}", path.display())).into());
            }
            kind = format!("{}{} {rest}", Trading::PROGRAM, path.display()).trim_end().to_owned();
        }
    }
    if kind.len() > MAX_TEXT_BYTES {
        let why = format!("longer than {MAX_TEXT_BYTES} bytes: put the command into a script");
        return Err(UsageError(format!("{flag} {kind}: {why}")).into());
    }
    Ok(kind)
}

fn text(run: &str, name: &str, ended: &Ended) -> String {
    let verb = match ended.fate {
        Fate::Ended => "retired",
        Fate::Replaced => "replaced",
        Fate::Unfinished(_) => "refuses new orders of",
    };
    let how = match (ended.orders, ended.was_cancelled) {
        (0, _) => "none was open".into(),
        // Those that end before their cancel arrives are filled: the report counts each by its end.
        (orders, true) => format!("{} at the engine cancelled or ended", counted(orders, "open order")),
        (orders, false) => format!("{} at the engine drained", counted(orders, "open order")),
    };
    let mut text = format!("{verb} {name} of run {run}\n");
    text += &format!("  open orders  {how}, after {}\n", duration(ended.settled.as_nanos() as u64));
    let took = duration(ended.took.as_nanos() as u64);
    text += &match ended.fate {
        Fate::Ended => format!("  ended        {took} after the command\n"),
        Fate::Replaced => format!("  gap          {took} from the command to its successor\n"),
        Fate::Unfinished(why) => format!("  not done     {why}, {took} after the command\n"),
    };
    text
}

fn json(run: &str, name: &str, ended: &Ended) -> serde_json::Value {
    let (is_done, why) = match ended.fate {
        Fate::Unfinished(why) => (false, Some(why)),
        Fate::Ended | Fate::Replaced => (true, None),
    };
    serde_json::json!({
        "run": run,
        "strategy": name,
        "done": is_done,
        "why_not": why,
        "open_orders": ended.orders,
        "cancelled": ended.was_cancelled,
        "settled_ns": ended.settled.as_nanos() as u64,
        "took_ns": ended.took.as_nanos() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_names_open_orders_and_gap() {
        let of = |orders, was_cancelled, fate| {
            let settled = Duration::from_millis(3);
            text("r", "strategy-1", &Ended { orders, was_cancelled, settled, took: 2 * settled, fate })
        };
        assert!(
            of(0, false, Fate::Ended)
                .starts_with("retired strategy-1 of run r\n  open orders  none was open")
        );
        assert!(of(2, true, Fate::Replaced).contains("2 open orders at the engine cancelled or ended"));
        assert!(of(1, false, Fate::Replaced).contains("1 open order at the engine drained"));
        let unfinished = of(1, false, Fate::Unfinished("its successor does not run yet"));
        assert!(unfinished.contains("not done     its successor does not run yet"), "{unfinished}");
    }

    #[test]
    fn kind_is_checked_before_it_is_sent() {
        assert_eq!(checked_kind("--with", "maker").unwrap(), "maker");
        for (kind, why) in
            [("makr", "maker"), ("maker,taker", "name one"), ("exec:./no/such", "no such file")]
        {
            let error = checked_kind("--with", kind).unwrap_err();
            assert!(error.is::<UsageError>() && error.to_string().contains(why), "{error}");
        }
        let long = format!("exec:true {}", "x".repeat(MAX_TEXT_BYTES));
        assert!(
            checked_kind("--with", &long).unwrap_err().to_string().contains("put the command into a script")
        );
    }
}
