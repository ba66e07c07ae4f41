//! The command `launcher watch`: polls an active run each second, and prints it as tables or JSON
//! or publishes metrics.

use super::metrics::{MetricsTarget, metrics_text};
use super::model::Snapshot;
use super::sampler::Sampler;
use super::tables::tables;
use crate::active_view::ActiveRunView;
use crate::operator::find_run;
use anyhow::{Context, Result};
use clap::Args;
use record::numbers::counted;
use record::screen;
use runtime::affinity_guard::AffinityGuard;
use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;
use terminal_size::{Height, terminal_size_of};

/// The command-line flags of `launcher watch`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct WatchFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    #[arg(default_value = "latest")]
    pub run: String,
    /// Print the tables once and exit, as without a terminal
    #[arg(long)]
    pub once: bool,
    /// Print a line of JSON each second until the run ends; with --once one line
    #[arg(long)]
    pub json: bool,
    /// Publish OpenMetrics text each second: in a file, at a loopback address, or - for stdout
    #[arg(long, value_name = "FILE|ADDR", conflicts_with = "json")]
    pub metrics: Option<String>,
}

/// The examples below the help of `launcher watch`.
pub const EXAMPLES: &str = "\
Examples:
  launcher watch                        the newest active run, each second
  launcher watch runs/RUN               a run by its folder, or by its id
  launcher watch --once                 the tables once
  launcher watch --json | jq .rate      a line each second, until the run ends
  launcher watch --metrics 127.0.0.1:9464      for Prometheus, until the run ends

It only reads. Ctrl-C ends it.";

const INTERVAL: Duration = Duration::from_secs(1);
/// With `--once`, the time over which rates are counted.
const RATE_WINDOW: Duration = Duration::from_millis(250);
/// Moves the cursor to the top left corner and clears the screen below it.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// Runs `launcher watch`: shows an active run, each second or once.
pub fn watch(flags: &WatchFlags) -> Result<ExitCode> {
    let metrics =
        flags.metrics.as_deref().map(|target| MetricsTarget::open(target, flags.once)).transpose()?;
    let run = find_run(&flags.run)?;
    let view = ActiveRunView::open(&run).with_context(|| format!("cannot read run {run}"))?;
    // Keeps off the run's cores.
    AffinityGuard::move_off(&view.plan).keep();
    let mut sampler = Sampler::new(view);
    if let Some(target) = metrics {
        publish_metrics(&mut sampler, &target, flags.once)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_redrawn = stdout().is_terminal() && !flags.once && !flags.json;
    let is_once = flags.once || !flags.json && !is_redrawn;
    let mut snapshot = sampler.poll()?;
    if is_once && !snapshot.state.is_over() {
        // A rate is a difference.
        sleep(RATE_WINDOW);
        snapshot = sampler.poll()?;
    }
    loop {
        print(&snapshot, flags.json, is_redrawn)?;
        if is_once || snapshot.state.is_over() {
            break;
        }
        sleep(INTERVAL);
        snapshot = sampler.poll()?;
    }
    if is_redrawn {
        writeln!(screen::stdout(), "\nthe run has ended: launcher report {}", snapshot.folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Publishes the metrics of each poll until the run ends, or of one poll.
fn publish_metrics(sampler: &mut Sampler, target: &MetricsTarget, is_once: bool) -> Result<()> {
    loop {
        let snapshot = sampler.poll()?;
        let text = metrics_text(&snapshot)?;
        target.publish(&text)?;
        if is_once || snapshot.state.is_over() {
            return Ok(());
        }
        target.wait(&text, INTERVAL);
    }
}

/// Prints a snapshot: as a line of JSON, or as tables, in place of the last ones if `is_redrawn`.
fn print(snapshot: &Snapshot, is_json: bool, is_redrawn: bool) -> Result<()> {
    let text = match is_json {
        true => serde_json::to_string(snapshot)? + "\n",
        false if is_redrawn => {
            stdout().write_all(CLEAR)?;
            let rows = terminal_size_of(stdout()).map_or(usize::MAX, |(_, Height(rows))| rows.into());
            cut_to_rows(&tables(snapshot), rows)
        }
        false => tables(snapshot),
    };
    let mut out = screen::stdout_while_read();
    write!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Cuts a text to a terminal of that many rows, the last of which stays empty for the cursor.
fn cut_to_rows(text: &str, rows: usize) -> String {
    let (count, max_lines) = (text.lines().count(), rows.saturating_sub(1));
    if count <= max_lines {
        return text.to_owned();
    }
    let shown = max_lines.saturating_sub(1);
    let lines: String = text.split_inclusive('\n').take(shown).collect();
    format!("{lines}… {}: --once prints all\n", counted((count - shown) as u64, "more line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_leaves_the_last_row_empty() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(cut_to_rows(text, 5), text);
        assert_eq!(cut_to_rows(text, 4), "a\nb\n… 2 more lines: --once prints all\n");
        assert_eq!(cut_to_rows(text, 0).lines().count(), 1);
    }
}
