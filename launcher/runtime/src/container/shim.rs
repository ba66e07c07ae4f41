//! The container shim: creates the container, starts the strategy in it, and exits as the strategy
//! does.

use super::{INIT, PROBE, WEAKER, cgroups};
use anyhow::{Context, Result, bail};
use protocol::launcher_watch;
use protocol::plan::{Plan, ProcessPlan};
use protocol::segments;
use protocol::topology::{self, CONTROL};
use protocol::trading::{PROCESS_VARIABLE, RUN_VARIABLE};
use run_memory::segments as setup;
use shm::attached::Access;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use system::container::check::{self, ExpectedContainer};
use system::container::{self, ContainerContents, ContainerLimits, ContainerPart};
use system::process;

/// Creates a container and runs a strategy in it, as `launcher role NAME RUN --contain`.
pub fn role(name: &str, run: &str) -> Result<()> {
    match name {
        INIT => init(),
        PROBE => probe(run),
        _ => strategy(name, run),
    }
}

/// Runs the first process of a container: checks its surroundings, reports violations, and reaps.
fn init() -> Result<()> {
    let mut told = String::new();
    io::stdin().lock().read_line(&mut told)?;
    let expected: ExpectedContainer = serde_json::from_str(&told).context("what a container is to be")?;
    let found = check::violations(&expected)?;
    println!("{}", found.join("; "));
    Ok(container::run_init()?)
}

fn probe(what: &str) -> Result<()> {
    let left_out: Vec<&str> = what.split(',').collect();
    let is_left = |part: &ContainerPart| !left_out.contains(&part.name());
    let parts: Vec<ContainerPart> = ContainerPart::ALL.iter().copied().filter(is_left).collect();
    let limits = ContainerLimits::default();
    end(&mut make("-", &ContainerContents::default(), &parts, &limits, left_out.contains(&WEAKER))?);
    Ok(())
}

/// Creates a container around the calling process. Returns its first process.
fn make(
    run: &str,
    contents: &ContainerContents,
    parts: &[ContainerPart],
    limits: &ContainerLimits,
    weaker_is_fine: bool,
) -> Result<Child> {
    let expected = ExpectedContainer {
        memory: contents.memory.clone(),
        host: check::namespaces(),
        hidden: contents.hidden.clone(),
    };
    container::enter_namespaces(contents, parts)?;
    let mut command = super::role_command("container");
    command.args([super::FLAG, INIT, run]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut init = container::start_init(&mut command, parts)?;
    let checked = container::drop_rights(parts, limits, weaker_is_fine)
        .map_err(anyhow::Error::from)
        .and_then(|()| ask(&mut init, &expected));
    if let Err(error) = checked {
        end(&mut init);
        return Err(error);
    }
    Ok(init)
}

fn ask(init: &mut Child, expected: &ExpectedContainer) -> Result<()> {
    let (Some(stdin), Some(stdout)) = (&mut init.stdin, init.stdout.take()) else { bail!("it has no pipes") };
    serde_json::to_writer(&mut *stdin, expected)?;
    stdin.write_all(b"\n")?;
    let mut found = String::new();
    if BufReader::new(stdout).read_line(&mut found)? == 0 {
        bail!("the container's first process ended at once");
    }
    match found.trim() {
        "" => Ok(()),
        found => bail!("the container is not closed: {found}"),
    }
}

fn end(init: &mut Child) {
    let _ = init.kill();
    let _ = init.wait();
}

fn strategy(name: &str, run: &str) -> Result<()> {
    let (_control, plan) = setup::open_control(run)?;
    let me = plan.processes.iter().find(|process| process.name == name && plan.is_contained(process));
    let me = me.with_context(|| format!("run {} has no process {name} in a container", plan.run))?;
    process::wake_with_parent(plan.launcher_pid).context("cannot watch the launcher")?;
    let launcher = process::pidfd_open(plan.launcher_pid).context("cannot watch the launcher")?;
    process::set_thread_name("container");
    // Another user takes the plan's descriptor of the control segment.
    let is_foreign = plan.resources_of(me).user.is_some();
    let address = if is_foreign { segments::run_address(&plan) } else { run.to_owned() };
    let (mut command, folders) = command(&plan, me, &address)?;
    // Segments passed as descriptors have no name, except the control segment.
    let is_named = |what: &String| what == CONTROL || plan.handles.iter().all(|handle| handle.name != *what);
    let memory = topology::rights(&plan, me)
        .filter(|(what, _)| is_named(what))
        .map(|(what, access)| (plan.segment_name(&what), access == Access::Write))
        .collect();
    let limits = ContainerLimits {
        processes: cgroups::max_processes(plan.resources_of(me)),
        // A lower limit applies once the strategy has its segments.
        files: plan.resources_of(me).files.unwrap_or(0).max(container::DESCRIPTORS),
        priority: plan.priority.unwrap_or(0),
    };
    // What it prints goes to a file there that it has open.
    let hidden = vec![PathBuf::from(&plan.folder)];
    let contents = ContainerContents { memory, folders, hidden };
    let mut init = make(run, &contents, ContainerPart::ALL, &limits, plan.weaker_sandbox)?;
    if let Err(error) = announce(&init) {
        end(&mut init);
        return Err(error);
    }
    // A process group of its own: a signal to the strategy's group would stop this process too, and
    // the end of the container would not be seen.
    command.process_group(0);
    let started = command.spawn().with_context(|| format!("cannot start {name} in its container"));
    let mut program = match started {
        Ok(program) => program,
        Err(error) => {
            end(&mut init);
            return Err(error);
        }
    };
    let waited = report(&program).and_then(|()| wait(&program, launcher.as_fd()));
    // Init does not exit before all other processes inside are reaped, and the strategy can only be
    // reaped by this process.
    let killed = init.kill();
    let status = program.wait();
    let reaped = init.wait();
    waited?;
    killed.and(reaped)?;
    process::exit_like(status?)
}

/// Returns the command to start, and the folders that must stay visible.
fn command(plan: &Plan, me: &ProcessPlan, run: &str) -> Result<(Command, Vec<PathBuf>)> {
    let Some(arguments) = plan.program_of(me) else {
        let mut command = super::role_command(&me.name);
        command.args([me.name.as_str(), run]).stdin(Stdio::null()).stdout(Stdio::null());
        return Ok((command, Vec::new()));
    };
    let mut arguments = arguments.split_whitespace();
    let first = arguments.next().unwrap_or_default();
    let (program, folders) = places(first)?;
    let log = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command
        .arg0(first)
        .args(arguments)
        .env(RUN_VARIABLE, run)
        .env(PROCESS_VARIABLE, &me.name)
        .env("TMPDIR", Path::new(container::TMP))
        .stdin(Stdio::null())
        .stdout(log);
    Ok((command, folders))
}

/// Returns the path of a command's program, if not in PATH, and the folders that must stay visible.
fn places(program: &str) -> Result<(PathBuf, Vec<PathBuf>)> {
    let folder = std::env::current_dir().context("cannot find the current folder")?;
    let mut folders = vec![folder.clone()];
    if !program.contains('/') {
        return Ok((program.into(), folders));
    }
    let program = folder.join(program);
    let real = program.canonicalize().unwrap_or_else(|_| program.clone());
    folders.extend([&program, &real].into_iter().filter_map(|path| Some(path.parent()?.to_owned())));
    Ok((program, folders))
}

/// Sends the launcher the id of the first process, and waits until it has opened it.
fn announce(init: &Child) -> Result<()> {
    writeln!(io::stdout(), "{}", init.id())?;
    io::stdin().read_exact(&mut [0]).context("the launcher does not answer")
}

/// Sends the launcher the id of the strategy, and waits until it has opened it.
fn report(program: &Child) -> Result<()> {
    writeln!(io::stdout(), "{}", program.id())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Waits for the program to exit; if the launcher dies, for as long as a role may take to finish
/// its log.
fn wait(program: &Child, launcher: BorrowedFd<'_>) -> Result<()> {
    const LONG: Duration = Duration::from_secs(3600);
    let program = process::pidfd_open(program.id())?;
    loop {
        let ready = process::wait_readable(&[program.as_fd(), launcher], LONG)?;
        if ready[0] {
            return Ok(());
        }
        if ready[1] {
            process::wait_readable(&[program.as_fd()], launcher_watch::GRACE + launcher_watch::GRACE / 2)?;
            return Ok(());
        }
    }
}
