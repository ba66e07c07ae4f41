//! The process outside a container: makes it, starts the strategy in it, and ends as that one ends.

use super::{INIT, PROBE, WEAKER, groups};
use crate::host::groups::Tree;
use crate::runtime::setup;
use anyhow::{Context, Result, bail};
use protocol::orphan;
use protocol::plan::{Plan, ProcessPlan};
use protocol::topology;
use protocol::trading::{PROCESS_VARIABLE, RUN_VARIABLE};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use system::container::check::{self, Expected};
use system::container::{self, Contents, Handed, Part};
use system::process;

/// What `role NAME RUN --contain` does.
pub fn role(name: &str, run: &str) -> Result<()> {
    match name {
        INIT => init(),
        PROBE => probe(run),
        _ => strategy(name, run),
    }
}

/// The first process of a container: looks around, says what it found, and waits.
fn init() -> Result<()> {
    let mut told = String::new();
    io::stdin().lock().read_line(&mut told)?;
    let expected: Expected = serde_json::from_str(&told).context("what a container is to be")?;
    let found = check::violations(&expected)?;
    println!("{}", found.join("; "));
    Ok(container::be_init()?)
}

/// Makes a container without the parts that are named.
fn probe(what: &str) -> Result<()> {
    let words: Vec<&str> = what.split(',').collect();
    let is_left = |part: &Part| !words.contains(&part.name());
    let parts: Vec<Part> = Part::ALL.into_iter().filter(is_left).collect();
    end(&mut make("-", &Contents::default(), &parts, (0, words.contains(&WEAKER)))?);
    Ok(())
}

/// Makes a container around the calling process, but for process ids; its first process.
fn make(
    run: &str,
    contents: &Contents,
    parts: &[Part],
    (priority, weaker_is_fine): (u8, bool),
) -> Result<Child> {
    let memory = contents.memory.iter();
    let memory = memory.map(|file| (file.name.clone(), file.access == shm::attached::Access::Write));
    let expected = Expected { memory: memory.collect(), host: check::namespaces() };
    container::separate(contents, parts)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bulkhead container").args(["role", super::FLAG, INIT, run]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut init = container::start_init(&mut command, parts)?;
    let checked = container::give_up(parts, priority, weaker_is_fine)
        .map_err(anyhow::Error::from)
        .and_then(|()| ask(&mut init, &expected));
    if let Err(error) = checked {
        end(&mut init);
        return Err(error);
    }
    Ok(init)
}

/// Has the first process look around.
fn ask(init: &mut Child, expected: &Expected) -> Result<()> {
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

/// Ends a container.
fn end(init: &mut Child) {
    let _ = init.kill();
    let _ = init.wait();
}

/// Makes a container, starts the strategy of that name in it, and ends as it does.
fn strategy(name: &str, run: &str) -> Result<()> {
    let (_control, plan) = setup::open_control(run)?;
    let me = plan.processes.iter().find(|process| process.name == name && plan.is_contained(process));
    let me = me.with_context(|| format!("run {} has no process {name} in a container", plan.run))?;
    process::wake_with_parent(plan.launcher_pid).context("cannot watch the launcher")?;
    let launcher = process::pidfd_open(plan.launcher_pid).context("cannot watch the launcher")?;
    process::set_thread_name("container");
    groups::enter(Tree::real(), &plan.run, name)?;
    let (mut command, folders) = command(&plan, me, run)?;
    // What is handed over as a descriptor has no name.
    let is_named = |what: &String| plan.handles.iter().all(|handle| handle.name != *what);
    let memory = topology::rights(&plan, me)
        .filter(|(what, _)| is_named(what))
        .map(|(what, access)| Handed { name: plan.segment_name(&what), access })
        .collect();
    let limits = (plan.priority.unwrap_or(0), plan.weaker_sandbox);
    let mut init = make(run, &Contents { memory, folders }, &Part::ALL, limits)?;
    if let Err(error) = announce(&init) {
        end(&mut init);
        return Err(error);
    }
    // A group of its own: a signal to its group would stop this process too, and nobody would see
    // the end of the container.
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
    // Init does not end before everything else in there has been waited for, and that one only this
    // process can wait for.
    let killed = init.kill();
    let status = program.wait();
    let reaped = init.wait();
    waited?;
    killed.and(reaped)?;
    process::end_like(status?)
}

/// What is to be started, and the folders that it needs to see wherever they are.
fn command(plan: &Plan, me: &ProcessPlan, run: &str) -> Result<(Command, Vec<PathBuf>)> {
    let Some(words) = plan.program_of(me) else {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(format!("bulkhead {}", me.name)).args(["role", &me.name, run]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        return Ok((command, Vec::new()));
    };
    let mut words = words.split_whitespace();
    let first = words.next().unwrap_or_default();
    let (program, folders) = places(first)?;
    let log = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(program);
    command
        .arg0(first)
        .args(words)
        .env(RUN_VARIABLE, run)
        .env(PROCESS_VARIABLE, &me.name)
        .env("TMPDIR", Path::new(container::TMP))
        .stdin(Stdio::null())
        .stdout(log);
    Ok((command, folders))
}

/// Where the program of a command is, if not in PATH, and the folders that it needs to see wherever
/// they are: its own and the current one.
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

/// Tells the launcher who is the first one in there, and waits until it has got hold of it: only
/// then anything else may run there.
fn announce(init: &Child) -> Result<()> {
    writeln!(io::stdout(), "{}", init.id())?;
    io::stdin().read_exact(&mut [0]).context("the launcher does not answer")
}

/// Tells the launcher who the strategy is, and waits until it has got hold of that one, too.
fn report(program: &Child) -> Result<()> {
    writeln!(io::stdout(), "{}", program.id())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Waits for the end of the program; where the launcher dies, for as long as a role may take to
/// finish its log.
fn wait(program: &Child, launcher: BorrowedFd<'_>) -> Result<()> {
    const LONG: Duration = Duration::from_secs(3600);
    let program = process::pidfd_open(program.id())?;
    loop {
        let ready = process::wait_readable(&[program.as_fd(), launcher], LONG)?;
        if ready[0] {
            return Ok(());
        }
        if ready[1] {
            process::wait_readable(&[program.as_fd()], orphan::GRACE + orphan::GRACE / 2)?;
            return Ok(());
        }
    }
}
