//! The command: measures all cases, saves what there is after each, prints and draws it.

use super::figures;
use super::flags::BoardFlags;
use super::measure::{self, Setting};
use crate::runtime::folder;
use crate::runtime::progress::Progress;
use crate::runtime::run::Interrupted;
use crate::runtime::signals::Signals;
use analysis::document::Document;
use analysis::experiment::Boards;
use analysis::html;
use analysis::report::board;
use analysis::report::grid::wrapped;
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

/// What to know about every case.
const NOTES: [&str; 5] = [
    "write: from before to behind the call, as the writer's core sees it; with park, the wake-up is part of it. Making a value's \
     content and checking it is in no time, but in writes/s and reads/s",
    "from due: from when the write was due (open loop: a late write is not forgiven)",
    "propagation: from before the write until a reader has the value whole; read: from when it saw the version",
    "stale: from when the version behind the one that a reader had was due until it has a newer one",
    "times over 2,048 ticks are kept to one part in 2,048, greatest and least exactly; all readers' counts are added up",
];

/// Does what `launcher board` says.
///
/// # Errors
/// [`crate::config::UsageError`] for what cannot be had; a case that could not begin; a folder that cannot be written.
pub fn board(flags: &BoardFlags) -> Result<ExitCode> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let machine = crate::host::machine();
    let cases = flags.cases()?;
    let cores = flags.cores(&machine)?;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let folder = folder::make(&flags.out, &started, "board")?;
    let mut boards = Boards {
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        machine,
        interrupted: false,
        warn: flags.warnings(),
        cases: Vec::new(),
        notes: NOTES.map(String::from).into(),
    };
    let progress = Progress::new(!flags.json);
    let all_ns = cases.iter().map(|case| case.duration_ns).sum();
    progress.time("measuring", all_ns);
    for (number, case) in cases.iter().enumerate() {
        progress.says(format!("case {} of {}, {}", number + 1, cases.len(), case.mode));
        let setting = Setting {
            machine: &boards.machine,
            cores: &cores,
            weaker_sandbox: flags.allow_weaker_sandbox,
            folder: &folder,
            signals: &signals,
            progress: &progress,
            before_ns: cases[..number].iter().map(|case| case.duration_ns).sum(),
            all_ns,
        };
        let ended = match measure::measure(case, &setting) {
            Ok(ended) => ended,
            // What was measured is saved; nothing of this one is.
            Err(error) if error.is::<Interrupted>() && !boards.cases.is_empty() => {
                boards.interrupted = true;
                break;
            }
            Err(error) => {
                progress.clear();
                if boards.cases.is_empty() {
                    let _ = fs::remove_dir_all(&folder);
                }
                return Err(error);
            }
        };
        boards.interrupted = ended.interrupted;
        boards.cases.push(figures::case(case, &ended));
        boards.save(&folder)?;
        if ended.interrupted {
            break;
        }
    }
    progress.clear();
    boards.save(&folder)?;
    html::write(&folder, &folder.join(html::HTML_FILE))?;
    print(&boards, &folder, flags.json)?;
    Ok(match (boards.interrupted, boards.cases.iter().all(|case| case.is_sound())) {
        (true, _) => crate::runtime::signals::exit_code(),
        (_, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn print(boards: &Boards, folder: &Path, json: bool) -> Result<()> {
    let mut out = crate::output::stdout();
    if json {
        out.write_all(&boards.json()?)?;
        return Ok(());
    }
    let colour = out.is_coloured();
    for grid in board::grids(boards) {
        writeln!(out, "{}", grid.terminal(colour))?;
    }
    for note in &boards.notes {
        writeln!(out, "{}", wrapped(note))?;
    }
    writeln!(out, "\nSaved in {}", folder.display())?;
    Ok(())
}
