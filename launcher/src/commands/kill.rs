//! `launcher kill` and `launcher revive`: turn a kill switch of an active run on and off.

use crate::cli::{KillFlags, KillTarget};
use crate::operator::ActiveRunHandle;
use anyhow::Result;
use planner::config::UsageError;
use protocol::commands::{Command, CommandStatus};
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::kill::Scope;
use protocol::plan::Plan;
use record::numbers::{count, counted, duration};
use record::screen;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

impl KillTarget {
    /// Returns the scope of orders (of a kill switch or limit) that the flags select in a run with
    /// this plan; `None` if no target is given.
    pub fn scope(&self, plan: &Plan) -> Result<Option<Scope>, UsageError> {
        let trading = plan.trading();
        let within = |flag: &str, index: u16, many: usize| match usize::from(index) < many {
            true => Ok(index),
            false => Err(UsageError(format!(
                "--{flag} {index}: the last of the run is {}",
                many.saturating_sub(1)
            ))),
        };
        Ok(Some(match self {
            Self { strategy: Some(index), .. } => {
                Scope::Strategy(StrategyIndex(within("strategy", *index, trading.strategies.into())?))
            }
            Self { credential: Some(index), .. } => {
                Scope::Credential(within("credential", *index, trading.credentials.into())?)
            }
            Self { venue: Some(index), .. } => {
                Scope::Venue(VenueIndex(within("venue", *index, trading.venues.into())?))
            }
            Self { instrument: Some(name), .. } => Scope::Instrument(instrument(name, plan)?),
            Self { all: true, .. } => Scope::All,
            _ => return Ok(None),
        }))
    }
}

fn instrument(name: &str, plan: &Plan) -> Result<u16, UsageError> {
    let instruments = &plan.trading().instruments;
    let named = instruments.iter().position(|instrument| instrument.name == name);
    let index = || name.parse::<usize>().ok().filter(|index| *index < instruments.len().max(1));
    named.or_else(index).and_then(|index| u16::try_from(index).ok()).ok_or_else(|| {
        let names: Vec<&str> =
            instruments.iter().take(10).map(|instrument| instrument.name.as_str()).collect();
        let instrument_names = if names.is_empty() { "instrument 0".into() } else { names.join(", ") };
        UsageError(format!("--instrument {name}: the run has {instrument_names}"))
    })
}

/// Runs `launcher kill` (`is_on`) and `launcher revive`: turns a kill switch on or off.
pub fn switch(flags: &KillFlags, is_on: bool) -> Result<ExitCode> {
    let run = ActiveRunHandle::find(&flags.run)?;
    let scope = flags.target.scope(&run.plan)?.unwrap_or_default();
    let command = if is_on { Command::Kill(scope) } else { Command::Revive(scope) };
    let (command_record, answer) = run.send(command, Duration::from_nanos(flags.timeout.0))?;
    let mut out = screen::stdout();
    let seen = duration(run.ns(command_record.ticks, answer.seen_ticks));
    let code = match (answer.status, is_on) {
        (CommandStatus::Done, false) => {
            writeln!(out, "revived {scope} of run {}: seen {seen} after the command", run.plan.run)?;
            ExitCode::SUCCESS
        }
        (CommandStatus::Done | CommandStatus::Seen, _) => {
            writeln!(out, "killed {scope} of run {}", run.plan.run)?;
            writeln!(out, "  seen        {seen} after the command: no new order passed from then on")?;
            let orders = count(answer.orders);
            match (answer.status, answer.orders) {
                (CommandStatus::Done, 0) => writeln!(out, "  cancelled   nothing: no order was open")?,
                (CommandStatus::Done, _) => {
                    let took = duration(run.ns(answer.seen_ticks, answer.done_ticks));
                    writeln!(
                        out,
                        "  cancelled   {}, the last confirmed {took} after that",
                        counted(answer.orders, "open order")
                    )?;
                }
                _ => writeln!(out, "  cancelled   not all of {orders} open orders within {}", flags.timeout)?,
            }
            if answer.status == CommandStatus::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        (why, _) => return Err(UsageError(format!("the engine refused {scope}: {why}")).into()),
    };
    Ok(code)
}
