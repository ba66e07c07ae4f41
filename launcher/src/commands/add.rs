//! `launcher add`: starts a strategy in an active run, in the place of a spare or of one that has
//! ended.

use super::replace::{
    IncarnationStart, POLL_INTERVAL, check_program, checked_kind, strategy_of, wait_for_incarnation,
};
use crate::cli::AddFlags;
use crate::operator::{ActiveRunHandle, CommandTimeouts};
use anyhow::Result;
use planner::config::UsageError;
use planner::config::limits::{Limits, limit_of, limit_text};
use protocol::commands::{Command, CommandStatus};
use protocol::index::StrategyIndex;
use protocol::kill::Scope;
use protocol::limits::LimitSetting;
use protocol::plan::{OnDeath, Plan, Role};
use record::numbers::duration;
use record::screen;
use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the engine may take to confirm a command.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the engine may take to repair a death, as the launcher may take to start a successor.
const REPAIR_TIMEOUT: Duration = Duration::from_secs(30);

/// A strategy that was added, or that does not run.
struct AddedStrategy {
    strategy: StrategyIndex,
    kind: String,
    limits: Vec<LimitSetting>,
    start: IncarnationStart,
    took: Duration,
}

/// Runs `launcher add`: starts one more strategy in an active run.
pub fn add(flags: &AddFlags) -> Result<ExitCode> {
    let kind = checked_kind("--strategy", &flags.strategy)?;
    let run = ActiveRunHandle::find(&flags.run)?;
    let slot = flags.slot.as_deref().map(|name| strategy_of(name, &run.plan)).transpose()?;
    let strategy = check(&run, slot)?;
    check_level(&run.plan, strategy, flags.isolation.as_deref())?;
    check_program(&run.plan, strategy, "--strategy", &kind)?;
    let limits = limits_of(strategy, &flags.limits)?;
    for LimitSetting { scope, control, value } in &limits {
        let command = Command::SetLimit { scope: *scope, control: control.code(), value: *value };
        give(&run, command, "", &format!("--limits {control}"))?;
    }
    let (began, before) = (Instant::now(), run.incarnation(strategy).epoch);
    let name = Role::Strategy(strategy).to_string();
    wait_for_repair(&run, strategy, before);
    give(&run, Command::AddStrategy { strategy }, &kind, &name)?;
    let start = wait_for_incarnation(&run, strategy, before);
    let added = AddedStrategy { strategy, kind, limits, start, took: began.elapsed() };
    let mut out = screen::stdout();
    if flags.json {
        writeln!(out, "{:#}", json(&run.plan, &added))?;
    } else {
        out.write_all(text(&run.plan, &added).as_bytes())?;
    }
    Ok(if start == IncarnationStart::Runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits until the engine has repaired the last incarnation of a strategy, which may have ended
/// just now: it refuses a successor before.
fn wait_for_repair(run: &ActiveRunHandle, strategy: StrategyIndex, epoch: u16) {
    let began = Instant::now();
    while run.is_repaired(strategy, epoch) == Some(false)
        && began.elapsed() < REPAIR_TIMEOUT
        && !run.is_over()
    {
        sleep(POLL_INTERVAL);
    }
}

/// Sends a command that the engine confirms at once.
fn give(run: &ActiveRunHandle, command: Command, text: &str, what: &str) -> Result<()> {
    let (_, answer) = run.send_with_text(command, text, CommandTimeouts::with_done(ENGINE_TIMEOUT))?;
    match answer.status {
        CommandStatus::Done => Ok(()),
        why => Err(UsageError(format!("the engine refused {what}: {why}")).into()),
    }
}

/// Returns the slot in which a strategy can be started: the named one, or the first that is free.
fn check(run: &ActiveRunHandle, slot: Option<StrategyIndex>) -> Result<StrategyIndex, UsageError> {
    let plan = &run.plan;
    if plan.on_death == OnDeath::Stop {
        let why = "ends when a strategy ends: start it with --on-death continue or restart";
        return Err(UsageError(format!("run {} {why}", plan.run)));
    }
    let trading = plan.trading();
    let is_process = |strategy: &StrategyIndex| !plan.isolation.kind_of(*strategy).is_thread();
    let is_alone = |strategy: &StrategyIndex| is_process(strategy) && plan.group_of(*strategy).is_empty();
    let is_free = |strategy: &StrategyIndex| is_alone(strategy) && run.incarnation(*strategy).fenced;
    match slot {
        Some(slot) if !is_process(&slot) => {
            let why = "is a thread of the engine's process, and none is added to a running process";
            Err(UsageError(format!("{} {why}: use --isolation process", Role::Strategy(slot))))
        }
        Some(slot) if !is_alone(&slot) => {
            let why = "shares its process with others, and none is added to that: use --spare-strategies N, each of which has one";
            Err(UsageError(format!("{} {why}", Role::Strategy(slot))))
        }
        Some(slot) if !is_free(&slot) => {
            let why = "is not down: retire it first, or use launcher replace";
            Err(UsageError(format!("{} {why}", Role::Strategy(slot))))
        }
        Some(slot) => Ok(slot),
        None => {
            trading.spares().chain(StrategyIndex::first(trading.strategies)).find(is_free).ok_or_else(|| {
                let why = "has no free slot: retire a strategy, or start the run with --spare-strategies N";
                UsageError(format!("run {} {why}", plan.run))
            })
        }
    }
}

/// Refuses a level that the slot does not have: its segments and descriptors are fixed.
fn check_level(plan: &Plan, strategy: StrategyIndex, level: Option<&str>) -> Result<(), UsageError> {
    let (fixed, name) = (plan.isolation.kind_of(strategy), Role::Strategy(strategy));
    match level {
        Some(level) if level != fixed.name() => Err(UsageError(format!(
            "--isolation {level}: {name} of this run has level {fixed}, which is fixed when the run starts.\n\
             Leave --isolation out, or start a run with --isolation {level} for that slot"
        ))),
        _ => Ok(()),
    }
}

/// Reads the limits of the strategy to be added.
fn limits_of(strategy: StrategyIndex, texts: &[String]) -> Result<Vec<LimitSetting>, UsageError> {
    let own = Scope::Strategy(strategy);
    let limits =
        Limits::items(&texts.join(",")).map(|text| limit_of(text, own)).collect::<Result<Vec<_>, _>>();
    let limits = limits.map_err(|why| UsageError(format!("--limits {why}")))?;
    match limits.iter().find(|limit| limit.scope != own) {
        Some(limit) => {
            let why = "only limits of the strategy to be added: use launcher limits for others";
            Err(UsageError(format!("--limits {}: {why}", limit_text(limit))))
        }
        None => Ok(limits),
    }
}

impl AddedStrategy {
    fn why_not(&self, plan: &Plan) -> Option<String> {
        match self.start {
            IncarnationStart::Runs => None,
            IncarnationStart::Ended => {
                let name = Role::Strategy(self.strategy);
                Some(format!("it ended before it traded: {}/{name}.stderr has what it printed", plan.folder))
            }
            IncarnationStart::Late | IncarnationStart::HasFinished => Some("it does not run yet".into()),
        }
    }
}

fn text(plan: &Plan, added: &AddedStrategy) -> String {
    let name = Role::Strategy(added.strategy);
    let why_not = added.why_not(plan);
    let verb = if why_not.is_some() { "did not add" } else { "added" };
    let mut text = format!("{verb} {name} to run {}\n  kind    {}\n", plan.run, added.kind);
    if !added.limits.is_empty() {
        let limits: Vec<String> = added.limits.iter().map(limit_text).collect();
        text += &format!("  limits  {}\n", limits.join(", "));
    }
    let took = duration(added.took.as_nanos() as u64);
    text += &match why_not {
        None => format!("  runs    {took} after the command\n"),
        Some(why) => format!("  failed  {why}, {took} after the command\n"),
    };
    text
}

fn json(plan: &Plan, added: &AddedStrategy) -> serde_json::Value {
    let why_not = added.why_not(plan);
    serde_json::json!({
        "run": plan.run,
        "strategy": Role::Strategy(added.strategy).to_string(),
        "kind": added.kind,
        "limits": added.limits.iter().map(limit_text).collect::<Vec<_>>(),
        "done": why_not.is_none(),
        "why_not": why_not,
        "took_ns": added.took.as_nanos() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::isolation::Isolation;
    use protocol::plan::Trading;

    fn plan() -> Plan {
        Plan { folder: "runs/r".into(), ..Plan::for_trading(Trading::new(2, 1)) }
    }

    #[test]
    fn result_names_kind_limits_and_time() {
        let limits = limits_of(StrategyIndex(1), &["max-position=5k;message-rate=10".into()]).unwrap();
        let took = Duration::from_millis(4);
        let of = |start, limits: &[LimitSetting]| {
            let added = AddedStrategy {
                strategy: StrategyIndex(1),
                kind: "maker".into(),
                limits: limits.to_vec(),
                start,
                took,
            };
            text(&plan(), &added)
        };
        let runs = of(IncarnationStart::Runs, &limits);
        assert!(runs.starts_with("added strategy-1 to run test-1\n  kind    maker\n"), "{runs}");
        assert!(runs.contains("limits  strategy-1.max-position=5000, strategy-1.message-rate=10"), "{runs}");
        let ended = of(IncarnationStart::Ended, &[]);
        assert!(ended.contains("did not add") && ended.contains("runs/r/strategy-1.stderr"), "{ended}");
        assert!(of(IncarnationStart::Late, &[]).contains("failed  it does not run yet, "));
    }

    #[test]
    fn only_limits_of_added_strategy_are_accepted() {
        for (text, wanted) in [
            ("max-positon=1", "did you mean max-position"),
            ("all.max-position=1", "use launcher limits"),
            ("strategy-0.max-position=1", "use launcher limits"),
        ] {
            let error = limits_of(StrategyIndex(1), &[text.into()]).unwrap_err();
            assert!(error.0.contains(wanted), "{error}");
        }
        assert_eq!(limits_of(StrategyIndex(1), &[]), Ok(Vec::new()));
    }

    #[test]
    fn another_isolation_level_is_refused() {
        assert_eq!(check_level(&plan(), StrategyIndex(1), Some("process")), Ok(()));
        assert_eq!(check_level(&plan(), StrategyIndex(1), None), Ok(()));
        let error = check_level(&plan(), StrategyIndex(1), Some("sandbox")).unwrap_err();
        assert!(error.0.contains("start a run with --isolation sandbox"), "{error}");
    }

    #[test]
    fn program_is_refused_in_sandbox() {
        let mut plan = plan();
        assert_eq!(check_program(&plan, StrategyIndex(1), "--strategy", "exec:sh"), Ok(()));
        plan.isolation = Isolation::Sandbox.into();
        assert_eq!(check_program(&plan, StrategyIndex(1), "--strategy", "maker"), Ok(()));
        let error = check_program(&plan, StrategyIndex(1), "--strategy", "exec:sh").unwrap_err();
        assert!(error.0.contains("in which no program starts"), "{error}");
    }
}
