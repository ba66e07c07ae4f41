//! The entry point of a process of a run. Finds itself in the plan, composes its agents and runs
//! each on its thread.
//!
//! A child process gets its name and the run's id; everything else is derived from the plan in the
//! control segment.

use super::book;
use super::compose::compose;
use super::engine;
use super::protection_keys::ProtectionKeys;
use super::recovered::StandbyState;
use super::recovery_environment::SystemRecovery;
use super::runner::Confinement;
use super::standby;
use super::threads::{self, ProcessThreads, ThreadLoop};
use crate::faults::own;
use crate::recovered::RecoveredRoles;
use anyhow::{Context, Result, anyhow, bail};
use protocol::barrier;
use protocol::control::Control;
use protocol::launcher_watch::{self, LauncherWatch};
use protocol::plan::{Isolation, Plan, ProcessPlan, Role, StrategyResources, ThreadPlan};
use protocol::segments;
use protocol::status::{StatusField, StatusWriter};
use shm::attached::Attached;
use std::path::{Path, PathBuf};
use system::clock::Clock;
use system::keys::WriteRights;
use system::sandbox::AllowedFiles;
use system::{memory, process};

/// Runs the process `name` of a run until the run ends; `run` is the address of the run's control
/// segment.
pub fn run(name: &str, run: &str) -> Result<()> {
    let (control, plan) = segments::control_at(run).context("this command is started by the launcher")?;
    let (is_spare, name) =
        name.strip_prefix(standby::STANDBY_PREFIX).map_or((false, name), |name| (true, name));
    let process_plan = plan.processes.iter().find(|process| process.name == name);
    let process_plan = process_plan.ok_or_else(|| anyhow!("run {} has no process {name}", plan.run))?;
    let watch = LauncherWatch::new(&plan, process_plan).context("cannot watch the launcher")?;
    process::set_thread_name(name);
    exit_on_panic();
    let mut attached = segments::attach_with(&plan, Some(process_plan), &control);
    let mut watch = Some(watch);
    let mut state = None;
    if is_spare {
        confine_to_files(&plan, process_plan)?;
        // One thread less to start at the promotion. In a sandbox threads start after the
        // confinement.
        if let Some(watch) = watch.take_if(|_| plan.isolation_of(process_plan) != Isolation::Sandbox) {
            watch.start(&plan, &control).context("cannot watch the launcher")?;
        }
        state = standby::wait(&plan, process_plan, &control, &mut attached)?;
        if state.is_none() {
            return Ok(());
        }
    }
    let confined = if is_spare { Ok(()) } else { confine_to_files(&plan, process_plan) };
    let result =
        confined.and_then(|()| run_process(&plan, process_plan, &control, watch, state, &mut attached));
    if let Err(error) = &result {
        report_failure(&plan, process_plan, error, &mut attached);
    } else if control.is_abandoned() {
        bail!(launcher_watch::launcher_death_message(&plan));
    }
    result
}

/// Makes a panic end the process, unless it is in the thread of a strategy that can end without
/// ending its process. The launcher sees the exit code and shows the output.
pub fn exit_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        if !threads::keep_panic(info) {
            std::process::exit(101);
        }
    }));
}

/// Publishes an error in each of the process's status blocks.
fn report_failure(
    plan: &Plan,
    process_plan: &ProcessPlan,
    error: &anyhow::Error,
    attached: &mut Attached<'_>,
) {
    for thread in &process_plan.threads {
        if let Ok(segment) = segments::attach_thread(attached, &plan.threads[*thread as usize].name) {
            StatusWriter::new(&segment).fail(&format!("{error:#}"));
        }
    }
}

/// Confines a sandboxed process with a journal to its directory, before its roles are built and
/// start threads.
fn confine_to_files(plan: &Plan, process_plan: &ProcessPlan) -> Result<()> {
    let is_sandboxed_with_journal =
        plan.isolation_of(process_plan) == Isolation::Sandbox && plan.has_journal(process_plan);
    let Some(profile) = plan.sandbox_of(process_plan).filter(|_| is_sandboxed_with_journal) else {
        return Ok(());
    };
    let venues = plan.roles_of(process_plan).filter_map(|role| match role {
        Role::Exchange(venue) => Some(venue),
        _ => None,
    });
    let folders: Vec<PathBuf> = venues.map(|venue| book::journal_folder(plan, venue)).collect();
    for folder in &folders {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let read: Vec<&Path> = plan.trading().opening_book.iter().map(Path::new).collect();
    Ok(profile.confine_to(&AllowedFiles { folders: &folders, read: &read }, plan.weaker_sandbox)?)
}

fn run_process(
    plan: &Plan,
    process_plan: &ProcessPlan,
    control: &Control,
    watch: Option<LauncherWatch>,
    standby: Option<StandbyState>,
    attached: &mut Attached<'_>,
) -> Result<()> {
    let begun_ticks = plan.clock.now();
    let keys = ProtectionKeys::allocate(plan, process_plan)?;
    let mut recovered = engine::recover(plan, process_plan, control, standby, attached, &SystemRecovery)?;
    publish_recovery(plan, process_plan, begun_ticks, attached)?;
    // The engine's threads come last in a plan and are composed first: consumers before producers.
    let threads: Vec<&ThreadPlan> =
        process_plan.threads.iter().rev().map(|index| &plan.threads[*index as usize]).collect();
    let keys = keys.as_ref();
    let loops = build_loops(plan, &threads, keys, control, attached, &mut recovered)?;
    let profile = plan.sandbox_of(process_plan);
    let has_journal = plan.has_journal(process_plan);
    // A journal's segments are memory, more of it the longer the run.
    if profile.is_some() && !has_journal && plan.isolation_of(process_plan) != Isolation::Thread {
        limit_resources(plan.resources_of(process_plan), loops.len())?;
    }
    let profile = profile.filter(|_| plan.isolation_of(process_plan) == Isolation::Sandbox);
    if let Some(profile) = profile.filter(|_| !has_journal) {
        profile.confine(plan.weaker_sandbox)?;
    }
    let sandbox = profile.map(|profile| Confinement::new(profile, loops.len()));
    let sandbox = sandbox.as_ref();
    if let Some(watch) = watch {
        watch.start(plan, control).context("cannot watch the launcher")?;
    }
    let threads = ProcessThreads::new(plan, control, sandbox, &loops);
    threads.run(loops, |thread| build_loops(plan, &[thread], keys, control, attached, &mut recovered))
}

/// Publishes in the process's status blocks when its recovery began, and that it ends now.
fn publish_recovery(
    plan: &Plan,
    process_plan: &ProcessPlan,
    begun_ticks: u64,
    attached: &mut Attached<'_>,
) -> Result<()> {
    let ended_ticks = plan.clock.now();
    for thread in &process_plan.threads {
        let segment = segments::attach_thread(attached, &plan.threads[*thread as usize].name)?;
        let status = StatusWriter::new(&segment);
        status.set(StatusField::RecoveryBegunTicks, begun_ticks);
        status.set(StatusField::RecoveryEndedTicks, ended_ticks);
    }
    Ok(())
}

/// Limits the memory of this process, by default for each of its threads, and its open files.
fn limit_resources(resources: &StrategyResources, threads: usize) -> Result<()> {
    let default = memory::STRATEGY_MEMORY_BYTES.saturating_mul(threads as u64);
    if let Some(limit) = resources.memory_growth(default) {
        memory::limit_growth(limit).context("cannot limit this process's memory")?;
    }
    if let Some(files) = resources.files {
        memory::limit_files(files).context("cannot limit this process's open files")?;
    }
    Ok(())
}

/// Builds the loops of threads: all are composed before the first one's faults get the memory.
fn build_loops<'a>(
    plan: &Plan,
    threads: &[&'a ThreadPlan],
    keys: Option<&ProtectionKeys>,
    control: &Control,
    attached: &mut Attached<'_>,
    recovered: &mut RecoveredRoles,
) -> Result<Vec<ThreadLoop<'a>>> {
    let mut parts = Vec::new();
    for &thread in threads {
        let segment = segments::attach_thread(attached, &thread.name)?;
        let rights = keys.map(|keys| keys.rights_of(plan, thread)).transpose()?.flatten();
        // What the thread has is on its own heap.
        let (composed, idle) = on_heap_of(rights.as_ref(), || {
            let idle = barrier::idle_strategy(attached, plan, thread)?;
            anyhow::Ok((compose(plan, thread, control, attached, recovered, own::perform)?, idle))
        })?;
        parts.push((thread, composed, segment, idle, rights));
    }
    if let Some(keys) = keys {
        keys.protect(plan, attached)?;
    }
    let built = parts.into_iter().map(|(thread, composed, segment, idle, rights)| {
        on_heap_of(rights.clone().as_ref(), || {
            let run = composed.arm(attached, &segment);
            let log = segments::stamp_log(plan, thread, &segment);
            ThreadLoop { thread, run, segment, log, idle, rights }
        })
    });
    Ok(built.collect())
}

/// Calls a function that allocates on a thread's own heap, if it has one.
fn on_heap_of<T>(rights: Option<&WriteRights>, call: impl FnOnce() -> T) -> T {
    match rights {
        Some(rights) => rights.heap.within(call),
        None => call(),
    }
}
