//! Calls the experiments' program in the launcher's folder, as `git` calls its own programs.
//!
//! It receives a descriptor of the executable that makes the runs, so that a user's launcher with
//! its own strategies, techniques and venues has every experiment.

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use planner::command_line::definition::CommandDefinition;
use planner::config::components::OwnComponents;
use planner::config::{ReportLength, Slower, Undecided, UsageError, program};
use record::experiment::ExperimentLine;
use record::screen;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The name of the program.
const PROGRAM: &str = "bulkhead-experiments";

/// Replaces this process by the experiments' program, which reads the arguments of the command
/// line.
pub fn replace(arguments: impl IntoIterator<Item = OsString>) -> Result<Infallible> {
    let (mut command, _launcher) = command()?;
    let error = command.args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {PROGRAM}"))
}

/// Returns the text line of each experiment for `launcher list`; none if the experiments' program
/// is missing.
pub fn lines(folders: &[String]) -> Vec<ExperimentLine> {
    if folders.is_empty() {
        return Vec::new();
    }
    let lines = ask(|command| command.arg("lines").arg("--").args(folders));
    lines.and_then(|lines| Ok(serde_json::from_slice(&lines)?)).unwrap_or_default()
}

/// Prints the complete report of an experiment, or its answer as JSON.
pub fn report(folder: &Path, json: bool) -> Result<()> {
    let report = ask(|command| {
        command.arg("report").args(json.then_some("--json")).arg("--").arg(folder).stdout(Stdio::inherit())
    });
    report.map(drop)
}

/// Writes the HTML page of an experiment to a file.
pub fn write_page(folder: &Path, file: &Path) -> Result<()> {
    ask(|command| command.arg("page").arg("--").arg(folder).arg(file)).map(drop)
}

/// Returns the picture of an experiment as SVG text, drawn by the experiments' program.
pub fn picture(folder: &Path) -> Result<String> {
    Ok(String::from_utf8(ask(|command| command.arg("picture").arg("--").arg(folder))?)?)
}

/// Returns an error if the experiments' program is not in the launcher's folder.
pub fn check_program_exists() -> Result<()> {
    command().map(drop)
}

/// Compares `runs` with the runs saved in the folder `baseline`, prints the table, and fails if
/// `runs` are slower by more than the share `gate`. Fails also if the repeats do not decide that.
pub fn against(
    baseline: &Path,
    runs: &[PathBuf],
    gate: Option<Slower>,
    quiet: bool,
    report: ReportLength,
) -> Result<()> {
    let report = if report == ReportLength::Full { "full" } else { "short" };
    let table = ask(|command| {
        command.arg("against").args(gate.map(|gate| format!("--fail-if-slower={gate}")));
        command.args(["--report", report]);
        command.args(quiet.then_some("--quiet")).arg("--").arg(baseline).args(runs).stdout(Stdio::inherit())
    });
    table.map(drop)
}

/// Returns the definitions of the experiments' commands; none if the experiments' program is
/// missing.
pub fn definitions() -> Vec<CommandDefinition> {
    let definitions = ask(|command| command.arg("definitions"));
    definitions.and_then(|json| Ok(serde_json::from_slice(&json)?)).unwrap_or_default()
}

/// Returns what the program prints. Its error and exit code become this program's.
fn ask(add_arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<Vec<u8>> {
    let (mut command, _launcher) = command()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = add_arguments(&mut command).spawn().with_context(|| format!("cannot start {PROGRAM}"))?;
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    if status.success() {
        return Ok(stdout);
    }
    let message = String::from_utf8_lossy(&stderr);
    let why = message.trim_end().strip_prefix("error: ").unwrap_or(message.trim_end()).to_owned();
    match status.code() {
        Some(2) => Err(UsageError(why).into()),
        Some(3) => Err(Undecided(why).into()),
        _ if why.is_empty() => bail!("{PROGRAM}: {status}"),
        _ => bail!(why),
    }
}

/// Returns the program's command, and the launcher's executable, which it inherits: to be kept open
/// until the command has started.
fn command() -> Result<(Command, File)> {
    let program = program::find_program(PROGRAM).ok_or_else(|| {
        let release = if build_info::PROFILE == "release" { " --release" } else { "" };
        UsageError(format!(
            "there is no {PROGRAM} in the launcher's folder or in PATH, which makes the experiments.\n\
             Build it: cargo build{release} -p launcher -p experiments; next to an installed launcher: \
             cargo install --locked --path experiments"
        ))
    })?;
    let launcher = File::open("/proc/self/exe").context("/proc/self/exe")?;
    fcntl(&launcher, FcntlArg::F_SETFD(FdFlag::empty())).context("/proc/self/exe")?;
    let mut command = Command::new(program);
    command.arg0(screen::program());
    command
        .arg(format!("--launcher={}", launcher.as_raw_fd()))
        .arg(format!("--build={}", build_info::COMMIT));
    let components = OwnComponents::registered();
    if !components.is_empty() {
        command.arg(format!("--components={}", serde_json::to_string(&components)?));
    }
    Ok((command, launcher))
}
