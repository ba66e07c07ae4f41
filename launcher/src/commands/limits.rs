//! `launcher limits`: shows or changes the limits of an active run.

use crate::cli::{KillTarget, LimitsFlags};
use crate::operator::ActiveRunHandle;
use anyhow::Result;
use planner::config::UsageError;
use planner::config::limits::{limit_of, limit_text, value_text};
use protocol::commands::{Command, CommandStatus};
use protocol::limits::{LimitSetting, RiskControl};
use protocol::reject::Reject;
use record::numbers::{count, duration};
use record::screen;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use verdict::table::{Column, Grid};

/// Runs `launcher limits`: prints or sets an active run's risk limits.
pub fn limits(flags: &LimitsFlags) -> Result<ExitCode> {
    let run = ActiveRunHandle::find(&flags.run)?;
    if flags.set.is_empty() {
        return show(&run);
    }
    let LimitsFlags { strategy, credential, ref instrument, .. } = *flags;
    let target = KillTarget { strategy, credential, venue: None, instrument: instrument.clone(), all: false };
    let scope = target.scope(&run.plan)?.unwrap_or_default();
    // All are valid, or none is sent.
    let settings: Vec<LimitSetting> =
        flags.set.iter().map(|text| limit_of(text, scope).map_err(UsageError)).collect::<Result<_, _>>()?;
    let mut out = screen::stdout();
    for setting in settings {
        let LimitSetting { scope, control, value } = setting;
        let command = Command::SetLimit { scope, control: control.code(), value };
        let (command_record, answer) = run.send(command, Duration::from_nanos(flags.timeout.0))?;
        match answer.status {
            CommandStatus::Done | CommandStatus::Seen => {
                let seen = duration(run.ns(command_record.ticks, answer.seen_ticks));
                writeln!(out, "{}: in force {seen} after the command", limit_text(&setting))?;
            }
            why => {
                return Err(UsageError(format!("the engine refused {}: {why}", limit_text(&setting))).into());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(run: &ActiveRunHandle) -> Result<ExitCode> {
    let (commands, answers) = run.commands()?;
    let set = commands.iter().filter_map(|entry| match entry.command {
        Some(Command::SetLimit { scope, control, value })
            if matches!(answers.answer(entry.number).status, CommandStatus::Done | CommandStatus::Seen) =>
        {
            Some(LimitSetting { scope, control: RiskControl::from_code(control)?, value })
        }
        _ => None,
    });
    let mut in_force: Vec<LimitSetting> = Vec::new();
    for setting in run.plan.trading().limits.iter().copied().chain(set) {
        // A later limit of the same scope replaces an earlier one, and follows the limits that it
        // overrides.
        in_force.retain(|other| (other.scope, other.control) != (setting.scope, setting.control));
        in_force.push(setting);
    }
    let mut out = screen::stdout();
    writeln!(out, "run {}", run.plan.run)?;
    if in_force.is_empty() {
        writeln!(
            out,
            "no limits but that of open orders: {} a strategy",
            count(run.plan.trading().max_open.into())
        )?;
    } else {
        let rejected = |limit: &LimitSetting| {
            limit.control.info().reason.map(|reason| count(answers.rejections(reason as u8)))
        };
        let columns: [Column<'_, LimitSetting>; 5] = [
            ("limit", &|limit| limit.control.name().to_owned()),
            ("for", &|limit| limit.scope.to_string()),
            ("value", &|limit| value_text(limit.control, limit.value)),
            ("unit", &|limit| limit.control.info().unit.name().into()),
            ("rejected", &|limit| rejected(limit).unwrap_or_default()),
        ];
        write!(out, "{}", Grid::from_rows("", "", 1, &columns, &in_force).terminal(false))?;
    }
    for reason in Reject::ALL {
        let rejected = answers.rejections(*reason as u8);
        if rejected > 0 {
            writeln!(
                out,
                "rejected {}: {} (FIX {}, {})",
                count(rejected),
                reason.name(),
                reason.fix_code(),
                reason.text()
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
