//! One process of a case: the writer, a reader, or all of them as threads.

use super::agents::Ground;
use super::carrier;
use super::log::{Field, Log, State};
use super::plan::{self, BOARD, BoardPlan, CONTROL, Carrier, DUE, START, STATE, WAIT};
use anyhow::{Context, Result, anyhow, bail};
use protocol::plan::{ClockSource, Isolation};
use shm::board;
use shm::memory::{View, Words};
use shm::sync::Ordering;
use std::time::Duration;
use system::clock::{Clock, Monotonic, Timebase, Tsc};
use system::usage::Usage;
use system::{pin, process, sandbox};

/// What names of a case's processes begin with.
pub const PREFIX: &str = "board-";
/// The writer's process.
pub const WRITER: &str = "board-writer";
/// The process of all, where writer and readers are threads.
pub const ALL: &str = "board-all";

/// The name of a reader's process.
pub fn reader_name(reader: usize) -> String {
    format!("{PREFIX}reader-{reader}")
}

/// What an agent works on.
enum Memory {
    Writer(Words),
    Reader(View),
}

/// Runs the process of that name, whose plan is behind the descriptor in `address`.
///
/// # Errors
/// What kept it from starting.
pub fn run(name: &str, address: &str) -> Result<()> {
    let fd = address.parse().with_context(|| format!("{address}: not the descriptor of a plan"))?;
    let plan = BoardPlan::inherit(fd)?;
    // The launcher's death is everybody's: nothing that they share has a name.
    process::die_with_parent(plan.launcher_pid)?;
    process::set_thread_name(name);
    let agents = agents(name, plan.cores.len())?;
    let control = plan.view(CONTROL)?;
    let due = plan.scheduled.map(|_| plan.view(DUE)).transpose()?;
    let readers_view = if agents.iter().any(|agent| *agent > 0) { Some(plan.view(BOARD)?) } else { None };
    let mut parts = Vec::new();
    for agent in agents {
        let log = Log::new(&plan.segment(&plan::log_name(agent))?);
        let memory = match &readers_view {
            Some(view) if agent > 0 => Memory::Reader(view.clone()),
            _ => Memory::Writer(plan.segment(BOARD)?),
        };
        parts.push((agent, log, memory));
    }
    let profile = (plan.isolation == Isolation::Sandbox).then_some(sandbox::STRATEGY);
    if let Some(profile) = &profile {
        profile.confine(plan.weaker_sandbox)?;
    }
    let work = |(agent, log, memory): (usize, Log, Memory)| -> Result<()> {
        process::precise_timers();
        if let Some(core) = plan.cores[agent] {
            pin::pin_to(core)?;
        }
        if let Some(profile) = &profile {
            profile.restrict_calls(false)?;
        }
        let before = Usage::of_this_thread();
        match plan.clock {
            ClockSource::Tsc => agent_loop(&plan, Tsc, &control, due.as_ref(), &log, memory),
            ClockSource::Monotonic => agent_loop(&plan, Monotonic, &control, due.as_ref(), &log, memory),
        }?;
        let usage = Usage::of_this_thread().since(before);
        log.set(Field::Cpu, usage.cpu_ns);
        log.set(Field::Voluntary, usage.voluntary_switches);
        log.set(Field::Involuntary, usage.involuntary_switches);
        log.set(Field::Faults, usage.minor_faults + usage.major_faults);
        log.set(Field::HasUsage, 1);
        log.state(State::Done);
        Ok(())
    };
    if let [_] = parts.as_slice() {
        return parts.into_iter().try_for_each(work);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| work(part))).collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

/// The agents of a process: 0 is the writer, then the readers.
fn agents(name: &str, all: usize) -> Result<Vec<usize>> {
    let reader = name.strip_prefix("board-reader-").and_then(|number| number.parse::<usize>().ok());
    match (name, reader) {
        (WRITER, _) => Ok(vec![0]),
        (ALL, _) => Ok((0..all).collect()),
        (_, Some(reader)) if reader < all.saturating_sub(1) => Ok(vec![reader + 1]),
        _ => bail!("a benchmark of the board has no process {name}"),
    }
}

fn agent_loop<C: Clock>(
    plan: &BoardPlan,
    clock: C,
    control: &View,
    due: Option<&View>,
    log: &Log,
    memory: Memory,
) -> Result<()> {
    enum Ends {
        Writer(board::Writer),
        Reader(board::Reader),
        CarelessWriter(carrier::Careless<Words>),
        CarelessReader(carrier::Careless<View>),
    }
    let mut ends = match (plan.carrier, memory) {
        (Carrier::Board, Memory::Writer(words)) => Ends::Writer(board::Writer::attach(&words)?),
        (Carrier::Board, Memory::Reader(view)) => Ends::Reader(board::Reader::attach(&view)?),
        (Carrier::Careless, Memory::Writer(words)) => {
            Ends::CarelessWriter(carrier::careless_writer(words, plan.words))
        }
        (Carrier::Careless, Memory::Reader(view)) => {
            Ends::CarelessReader(carrier::careless_reader(view, plan.words))
        }
    };
    log.state(State::Ready);
    while control.load(STATE, Ordering::Acquire) == WAIT {
        std::thread::sleep(Duration::from_micros(50));
    }
    let time =
        Timebase { start_ticks: control.load(START, Ordering::Relaxed), ns_per_tick: plan.ns_per_tick };
    let ground = Ground { plan, clock, time, control, due, log };
    match &mut ends {
        Ends::Writer(writer) => ground.write(writer),
        Ends::Reader(reader) => ground.read(reader),
        Ends::CarelessWriter(writer) => ground.write(writer),
        Ends::CarelessReader(reader) => ground.read(reader),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_agents() {
        assert_eq!(agents(WRITER, 3).unwrap(), [0]);
        assert_eq!(agents(&reader_name(1), 3).unwrap(), [2]);
        assert_eq!(agents(ALL, 3).unwrap(), [0, 1, 2]);
        for name in ["board-reader-2", "board-reader-", "board-", "board-reader-18446744073709551615"] {
            assert!(agents(name, 3).is_err(), "{name}");
        }
    }
}
