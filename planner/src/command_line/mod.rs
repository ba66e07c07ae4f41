//! What the command lines of bulkhead's programs share: how arguments are joined, and which exit
//! code an error gives.

pub mod definition;

use crate::config::{Undecided, UsageError};
use crate::host::signals::{self, Interrupted};
use record::document::{DocumentError, DocumentFault};
use record::escape::single_line;
use record::screen::print_warning;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use system::memory;

/// Joins a flag and the negative value after it (`--window -5s` to `--window=-5s`), so that clap
/// treats the value as the flag's own.
pub fn join_negative_values(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let is_flag = |word: &OsString| {
        word.to_str().is_some_and(|word| word.len() > 2 && word.starts_with("--") && !word.contains('='))
    };
    let is_negative = |word: &OsString| {
        let first = word.to_str().and_then(|word| word.strip_prefix('-')?.chars().next());
        first.is_some_and(|first| first.is_ascii_digit())
    };
    for word in arguments {
        match joined.last_mut().filter(|last| is_flag(last) && is_negative(&word)) {
            Some(flag) => {
                flag.push("=");
                flag.push(&word);
            }
            None => joined.push(word),
        }
    }
    joined
}

/// Prints the error of a failed command and returns the exit code for its process. The code of an
/// error is 2 for usage, 3 for a comparison that decides nothing, 130, 143 or 129 after a
/// termination signal, else 1. `is_result` returns whether a folder holds a run or an experiment.
pub fn exit_code(result: anyhow::Result<ExitCode>, is_result: fn(&Path) -> bool) -> ExitCode {
    result.unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        let limit = remedy_for_file_limit(&error);
        print_warning(&format!("error: {}{limit}", chain(&error)));
        // A read interrupted by Ctrl-C is not a usage error.
        let is_usage = error.is::<UsageError>() || names_no_results(&error, is_result) || !limit.is_empty();
        if is_usage && !signals::is_end_requested() {
            ExitCode::from(2)
        } else if is_usage || error.is::<Interrupted>() {
            signals::exit_code()
        } else if error.is::<Undecided>() {
            ExitCode::from(3)
        } else {
            ExitCode::FAILURE
        }
    })
}

/// Returns `true` if the error is about a folder that does not exist, or in which is neither a run
/// nor an experiment.
fn names_no_results(error: &anyhow::Error, is_result: fn(&Path) -> bool) -> bool {
    let absent = |error: &DocumentError| {
        error.fault == DocumentFault::Absent && !error.path.parent().is_some_and(is_result)
    };
    error.downcast_ref().is_some_and(absent)
}

/// Formats an error and its causes in one line, without repeating a cause that is already included.
fn chain(error: &anyhow::Error) -> String {
    // A usage error may show the line of a configuration file on further lines, already escaped.
    let has_lines = error.is::<UsageError>();
    let line = |cause: String| if has_lines { cause } else { single_line(&cause) };
    error.chain().fold(String::new(), |message, cause| match line(cause.to_string()) {
        cause if message.is_empty() => cause,
        cause if message.contains(&cause) => message,
        cause => format!("{message}: {cause}"),
    })
}

/// Returns the remedy for a file that exceeds this process's file-size limit, which the error
/// itself does not name.
fn remedy_for_file_limit(error: &anyhow::Error) -> String {
    let is_limit = error.chain().any(|cause| cause.to_string().contains(&too_large().to_string()));
    match memory::file_limit().filter(|_| is_limit) {
        Some(bytes) => format!(
            "; files of this process may have at most {} KiB: raise that limit (ulimit -f unlimited)",
            bytes >> 10
        ),
        None => String::new(),
    }
}

fn too_large() -> std::io::Error {
    nix::errno::Errno::EFBIG.into()
}

/// Returns `true` if the reader closed our output: `launcher inspect … | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}

/// Prints the requested faults of a run that were never injected, or that began and had not taken
/// full effect when the run was over. Returns the exit code that they cause: failure, unless they
/// are `allowed`.
pub fn report_unfired(unfired: &[String], allowed: bool) -> ExitCode {
    let [first, others @ ..] = unfired else { return ExitCode::SUCCESS };
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    if allowed {
        print_warning(&format!("note: {first}{more}"));
        return ExitCode::SUCCESS;
    }
    print_warning(&format!("error: {first}{more}; --allow-unfired accepts it"));
    ExitCode::FAILURE
}

/// Returns the worse of two exit codes: the first one, or the second one if the first is success.
pub fn worse(first: ExitCode, second: ExitCode) -> ExitCode {
    if first == ExitCode::SUCCESS { second } else { first }
}
