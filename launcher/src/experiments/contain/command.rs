//! The command: runs the matrix, cell by cell, saves after each, and prints the table.

use super::cost;
use super::matrix::{Cell, across_processes, cells, settings};
use super::rows::{CONTAIN_FILE, CONTAIN_SCHEMA, Containments, Row, row};
use crate::config::{Settings, UsageError};
use crate::experiments::sweep::{self, Axis, Swept};
use crate::host::Machine;
use crate::planner;
use crate::runtime::clean::{self, Scope};
use crate::runtime::folder;
use crate::runtime::progress::Progress;
use crate::runtime::run::{self, Interrupted, Presentation};
use crate::runtime::signals::Signals;
use analysis::html;
use analysis::record::Outcome;
use analysis::report::contain as table;
use analysis::report::grid::wrapped;
use analysis::units::Nanos;
use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::plan::{Isolation, Technique};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// The flags of `contain`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ContainFlags {
    /// The settings of `run`; technique and isolation may be lists, fault says what is tried.
    #[command(flatten)]
    pub swept: Swept,
    /// YAML file of settings, `key: value`
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub config: Option<PathBuf>,
    /// Print the table as JSON on stdout
    #[arg(long, help_heading = "Run")]
    pub json: bool,
    /// Go on with a kernel that lacks a piece of the sandbox
    #[arg(long, help_heading = "Run")]
    pub allow_weaker_sandbox: bool,
    /// How long the processes may take to get ready
    #[arg(long, value_name = "DUR", default_value = "30s", hide = true)]
    pub start_timeout: Nanos,
}

/// What to try.
struct Asked {
    base: Settings,
    cells: Vec<Cell>,
}

impl ContainFlags {
    fn asked(&self) -> Result<Asked, UsageError> {
        let asked = self.swept.asked(None, self.config.as_ref())?;
        if asked.preset.is_some() {
            return Err(UsageError("--preset with contain: there is none; leave it out".into()));
        }
        let (mut techniques, mut isolations) = (Vec::new(), Vec::new());
        for value in asked.axes.iter().flatten() {
            let mut settings = Settings::default();
            value.apply(&mut settings);
            match value.axis {
                Axis::Technique => techniques.extend(settings.technique),
                Axis::Isolation => isolations.extend(settings.isolation),
                axis => {
                    return Err(UsageError(format!(
                        "--{axis} takes one value here: launcher sweep --{axis} A,B varies it"
                    )));
                }
            }
        }
        techniques.extend(asked.base.technique);
        isolations.extend(asked.base.isolation);
        if techniques.is_empty() {
            techniques = across_processes();
        }
        if isolations.is_empty() {
            isolations = Isolation::ALL.to_vec();
        }
        let cells = cells(&techniques, &isolations, asked.base.fault.as_ref());
        if cells.is_empty() {
            return Err(UsageError(format!(
                "nothing to try: {} runs under --isolation thread only, and no fault fits it",
                techniques
                    .iter()
                    .map(|technique: &Technique| technique.name())
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Ok(Asked { base: asked.base, cells })
    }
}

/// Does what `launcher contain` says.
///
/// # Errors
/// [`UsageError`] for what cannot be had; a run that could not be made.
pub fn command(flags: &ContainFlags) -> Result<ExitCode> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    clean::clean(Scope::KeepLogs).context("cannot look into /dev/shm")?;
    let machine = crate::host::machine();
    let Asked { base, cells } = flags.asked()?;
    // Found out before the first run: a setting that cannot be.
    for cell in &cells {
        planner::resolve(&settings(cell, &base), &machine)?;
    }
    let out = base.out.clone().unwrap_or_else(|| "runs".into());
    let folder = create(&out)?;
    let mut all = Containments {
        schema: CONTAIN_SCHEMA.into(),
        machine: machine.cpu_model.clone(),
        rows: Vec::new(),
        cost: Some(cost::measure()),
        notes: Vec::new(),
    };
    all.notes.extend(all.cost.map(|cost| cost.words()));
    let progress = Progress::new(!flags.json);
    let how = Presentation {
        quiet: true,
        weaker_sandbox: flags.allow_weaker_sandbox,
        start_timeout: Duration::from_nanos(flags.start_timeout.0),
        signals: &signals,
    };
    progress.phase("trying", cells.len() as u64);
    for (number, cell) in cells.iter().enumerate() {
        progress.at(number as u64);
        let asked = Settings { out: Some(folder.clone()), ..settings(cell, &base) };
        match try_cell(cell, &asked, &machine, &how)? {
            Some(row) => all.rows.push(row),
            None => {
                progress.clear();
                save(&all, &folder)?;
                eprintln!(
                    "interrupted after {number} of {} cells; saved in {}",
                    cells.len(),
                    folder.display()
                );
                return Ok(ExitCode::from(130));
            }
        }
        save(&all, &folder)?;
    }
    progress.clear();
    finish(&all, &folder, flags.json)
}

/// One run; `None`: interrupted.
fn try_cell(cell: &Cell, asked: &Settings, machine: &Machine, how: &Presentation<'_>) -> Result<Option<Row>> {
    let resolved = planner::resolve(asked, machine)?;
    let finished = match run::run(&resolved, machine, how) {
        Ok(finished) if finished.outcome == Outcome::Interrupted => return Ok(None),
        Ok(finished) => finished,
        Err(error) if error.is::<Interrupted>() => return Ok(None),
        Err(error) => {
            let Cell { technique, isolation, scenario } = cell;
            return Err(error.context(format!("{} against {technique} under {isolation}", scenario.name)));
        }
    };
    sweep::discard_logs(&finished.folder);
    let name = finished.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(row(cell, &finished.summary, &name)))
}

fn create(out: &Path) -> Result<PathBuf> {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
    let base = format!("{}-contain", time.trim_end_matches('Z'));
    for number in 1..1000 {
        let name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
        let path = out.join(name);
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {} (--out)", out.display()))?;
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make {} (--out)", path.display()));
            }
        }
    }
    bail!("{} holds a thousand of this second: choose another --out", out.display())
}

fn save(all: &Containments, folder: &Path) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(all)?;
    json.push(b'\n');
    folder::write_whole(&folder.join(CONTAIN_FILE), &json)
}

fn finish(all: &Containments, folder: &Path, json: bool) -> Result<ExitCode> {
    let heading = "What isolation buys: containment";
    let mut documents = table::narrow(all);
    documents.push(table::wide(all));
    sweep::save_grids(folder, "contain", heading, &all.notes, &documents)?;
    html::write(folder, &folder.join(html::HTML_FILE))?;
    let mut out = crate::output::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, all)?;
        writeln!(out)?;
    } else {
        let colour = out.is_coloured();
        for grid in table::narrow(all) {
            writeln!(out, "{}", grid.terminal(colour))?;
        }
        for note in &all.notes {
            writeln!(out, "{}", wrapped(note))?;
        }
        writeln!(out, "Saved in {}", folder.display())?;
    }
    Ok(ExitCode::SUCCESS)
}
