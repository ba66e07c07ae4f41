//! Wrong usage, folders that are damaged, hostile or large, and the journal command.

mod bad_input;
mod hostile_text;
mod journal;
mod mutated_files;
mod pages;
mod saved_results;
mod special_files;
mod terminal_width;

use std::path::Path;

/// Returns commands that read a folder of results, or a run in it, and write at most into the run's
/// folder.
fn reading_commands(results: &Path, run: &Path) -> Vec<String> {
    let (results, run) = (results.display(), run.display());
    let of_run = [
        "inspect",
        "inspect --json",
        "inspect --csv",
        "inspect --worst 3",
        "inspect --order 0/3",
        "report",
        "report --json",
        "open",
        "bill",
        "delete --dry-run",
        "compare --a isolation=thread --b isolation=process",
    ];
    let mut commands = vec![
        format!("list {results}"),
        format!("list {results} --json"),
        format!("compare {run} {run}"),
        format!("report {run} --html"),
    ];
    commands.extend(of_run.map(|command| format!("{command} {run}")));
    commands
}
