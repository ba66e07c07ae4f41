//! `launcher report` and `launcher open`: print a run's report, open its page.

use crate::cli::{OpenFlags, ReportFlags};
use crate::experiments;
use crate::saved_results;
use anyhow::{Context, Result, bail};
use planner::config::{ReportLength, UsageError};
use record::document::{Document, write_user_path};
use record::experiment::ExperimentHead;
use record::logfile::EXTENSION;
use record::numbers::counted;
use record::run::RunRecord;
use record::screen::{self, print_warning};
use runtime::progress::Progress;
use runtime::{gather, run};
use std::io::{IsTerminal as _, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use verdict::html::{self, HTML_FILE};
use verdict::report;
use verdict::summary::Summary;

/// Prints the report of a run, in the given length.
pub fn show(summary: &Summary, length: ReportLength) -> Result<()> {
    let mut out = screen::stdout();
    let text = match length {
        ReportLength::Short => report::first_screen(summary, out.has_colors()),
        ReportLength::Full => report::terminal(summary, out.has_colors()),
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Merges a run's logs again and prints its complete report, or writes its HTML page. The report of
/// an experiment is made from its saved runs.
pub fn report(flags: &ReportFlags) -> Result<ExitCode> {
    let folder = catalog::folder_of(&flags.run)?;
    check_has_results(&folder)?;
    if let Some(file) = &flags.html {
        return report_html(&folder, file.as_deref());
    }
    if ExperimentHead::is_in(&folder) {
        experiments::report(&folder, flags.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    saved_results::check_is_run_folder(&folder)?;
    let record = read_record(&folder)?;
    let summary = if has_logs(&folder) {
        let progress = Progress::new(!flags.json);
        let summary = run::evaluate(&folder, &record, &progress)?;
        progress.clear();
        summary
    } else {
        saved_summary(&folder)?
    };
    if flags.json {
        screen::stdout().write_all(&summary.json()?)?;
    } else {
        show(&summary, ReportLength::Full)?;
    }
    Ok(if summary.valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns an error for a folder in which is neither a run nor an experiment, nor any of them below
/// it, which [`saved_results::check_is_run_folder`] names.
fn check_has_results(folder: &Path) -> Result<(), UsageError> {
    let has_some = || saved_results::list_results(folder).is_ok_and(|all| !all.is_empty());
    if catalog::is_result(folder) || has_some() {
        return Ok(());
    }
    let name = folder.display();
    Err(UsageError(format!(
        "{name}: not the folder of a run or an experiment: none is in it; launcher list shows what there is"
    )))
}

fn has_logs(folder: &Path) -> bool {
    let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    names.any(|path| path.extension().is_some_and(|extension| extension == EXTENSION))
}

/// Reads the saved results of a run without logs: an experiment keeps those of its runs only with
/// `--keep-logs`.
fn saved_summary(folder: &Path) -> Result<Summary> {
    let name = folder.display();
    if !folder.join(Summary::FILE).exists() {
        bail!(
            "{name}: neither stamp logs nor saved results are in it: nothing is left to report; make the run again"
        );
    }
    print_warning(&format!("{name}: its stamp logs were not kept: this is what was saved after the run"));
    Ok(Summary::read(folder)?)
}

/// Reads a run's record. Logs that a full disk left in `/dev/shm` are saved in the folder first.
fn read_record(folder: &Path) -> Result<RunRecord> {
    let record = RunRecord::read(folder)?;
    saved_results::check_has_orders(&record, folder)?;
    let rescued = gather::rescue(&record.plan, folder)?;
    if rescued > 0 {
        let logs = counted(rescued as u64, "log");
        print_warning(&format!("saved in {}: {logs} that had stayed in /dev/shm", folder.display()));
    }
    Ok(record)
}

fn report_html(folder: &Path, file: Option<&Path>) -> Result<ExitCode> {
    let file = file.map_or_else(|| folder.join(HTML_FILE), Path::to_owned);
    make_page(folder, &file)?;
    writeln!(screen::stdout(), "Written to {}", file.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the HTML page of a folder from saved results; a run with missing results is merged first.
fn make_page(folder: &Path, file: &Path) -> Result<()> {
    if html::needs_merge(folder) {
        let progress = Progress::new(true);
        run::evaluate(folder, &read_record(folder)?, &progress)?;
        progress.clear();
    }
    if ExperimentHead::is_in(folder) {
        return experiments::write_page(folder, file);
    }
    Ok(write_user_path(file, html::render(folder)?.as_bytes())?)
}

/// Prints the path of a run's page and, on a terminal, opens it with xdg-open.
pub fn open(flags: &OpenFlags) -> Result<ExitCode> {
    let is_latest = flags.folder == Path::new("latest") && !flags.folder.exists();
    let folder = if is_latest { latest(Path::new("runs"))? } else { catalog::folder_of(&flags.folder)? };
    check_has_results(&folder)?;
    let page = folder.join(HTML_FILE);
    let is_made = page.symlink_metadata().is_ok_and(|facts| facts.is_file());
    // An experiment may have continued: its page is written again each time.
    if !is_made || !folder.join("run.json").exists() {
        make_page(&folder, &page)?;
    }
    let path = page.canonicalize().with_context(|| page.display().to_string())?;
    writeln!(screen::stdout(), "{}", path.display())?;
    if std::io::stdout().is_terminal() {
        let mut opener = Command::new("xdg-open");
        opener.arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Its own process group: it outlives this terminal. Without a browser the path must do.
        let _ = opener.process_group(0).spawn();
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the newest folder: their names start with the time.
fn latest(runs: &Path) -> Result<PathBuf> {
    let entries =
        std::fs::read_dir(runs).map_err(|error| UsageError(format!("{}: {error}", runs.display())))?;
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    Ok(folders.max().ok_or_else(|| UsageError(format!("{}: no run in it", runs.display())))?)
}
