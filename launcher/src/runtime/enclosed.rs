//! Strategies that are programs of somebody else's, in the sandbox: this executable confines itself and becomes the program, whose gate the
//! launcher closes when it has attached ([`system::sandbox::program`]).

use anyhow::{Context, Result};
use core::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use system::memory;
use system::sandbox::{Gate, program};

/// The flag of `role` for a kernel that lacks a piece of the sandbox.
pub const WEAKER: &str = "--weaker";

/// How long a program may take until it has attached. Then the gate is closed, and it cannot any more. Longer than any start is waited for by default.
const OPEN: Duration = Duration::from_secs(60);

/// Where the program of a command is, if not in PATH, and the folders that it needs to see wherever they are: its own and the current one.
///
/// # Errors
/// There is no current folder.
pub fn places(program: &str) -> Result<(PathBuf, Vec<PathBuf>)> {
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

/// What `role NAME RUN -- COMMAND` does, with a socket as its standard input: hands its gate over there and becomes the program.
///
/// # Errors
/// What keeps the sandbox from being put up, or the program from being started.
pub fn become_program(words: &[String], weaker_is_fine: bool) -> Result<Infallible> {
    let (first, rest) = words.split_first().context("no program")?;
    let (program, mut sees) = places(first)?;
    sees.push(program.clone());
    let sees: Vec<PathBuf> = sees.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut command = Command::new(program);
    command.arg0(first).args(rest).stdin(Stdio::from(std::fs::File::open("/dev/null")?));
    let launcher = io::stdin().as_fd().try_clone_to_owned()?;
    program::enclose(&sees, launcher.as_fd(), weaker_is_fine)?;
    Err(command.exec()).with_context(|| format!("cannot start {first} in its sandbox"))
}

/// A program's gate, as the launcher has it.
#[derive(Default)]
pub struct Enclosure {
    gate: Option<Gate>,
    /// Why it was killed.
    refused: Option<String>,
}

impl Enclosure {
    /// Of a program that is being started, with the other end of that socket as its standard input.
    ///
    /// # Errors
    /// What the system refused.
    pub fn of(socket: UnixStream) -> io::Result<Self> {
        Ok(Self { gate: Some(Gate::open(socket, OPEN)?), refused: None })
    }

    /// Whether the gate is open.
    pub const fn is_open(&self) -> bool {
        self.gate.is_some()
    }

    /// Why the process is not to live; `None`: nothing is to be said against it.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Its process has ended.
    pub fn end(&mut self) {
        self.gate = None;
    }

    /// The program says that it has attached: closes the gate, and looks from outside whether it is in its sandbox. Whatever it has done
    /// itself, it cannot leave it from here on, nor take more memory.
    pub fn close(&mut self, pid: u32) {
        let Some(mut gate) = self.gate.take() else { return };
        gate.close();
        let found = match program::unconfined(pid) {
            Ok(None) => memory::limit_of(pid, memory::STRATEGY_ROOM).err().map(|error| error.to_string()),
            Ok(Some(found)) => Some(found),
            Err(error) => Some(error.to_string()),
        };
        // One that is gone has died, and that is seen elsewhere.
        let is_there = std::path::Path::new(&format!("/proc/{pid}/exe")).read_link().is_ok();
        self.refused = found
            .filter(|_| is_there)
            .map(|found| format!("killed: claims to be attached but is not sandboxed: {found}"));
    }
}
