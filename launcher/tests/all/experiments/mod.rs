//! Many runs: sweeps, comparisons, bills, the containment matrix, surveys, the benchmarks' flags.

mod contain;
mod planned;
mod survey;
mod sweeps;

use crate::common::{command, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// What a command printed that succeeds.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Runs a command that fails with all of these words.
fn refused(command: &mut Command, code: i32, wanted: &[&str]) -> Output {
    let output = command.output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {stderr}");
    for word in wanted {
        assert!(stderr.contains(word), "{command:?}: {word:?} is not in: {stderr}");
    }
    output
}

/// The one folder in the out folder.
fn only(out: &TempDir) -> PathBuf {
    let entries = std::fs::read_dir(out.path()).unwrap();
    let folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn impossible_experiment_is_refused_before_running() {
    for (line, wanted) in [
        ("sweep --preset sead", "did you mean seed?"),
        ("sweep --technique ,", "--technique A,B"),
        ("sweep --isolation thread,proces", "did you mean process?"),
        ("sweep", "nothing to sweep over"),
        ("sweep --capacity 64,100", "capacity=100: --capacity 100: rings have a power of two"),
        ("sweep --find-max-rate", "--p999"),
        ("sweep --resume /nowhere", "not the folder of a sweep"),
        ("sweep --resume /nowhere --seed 4", "--seed with --resume"),
        ("bill --work 0ns,1us", "launcher sweep --work"),
        ("bill /nowhere", "/nowhere"),
        ("compare", "--a and --b"),
        ("compare /nowhere /nothing", "/nowhere"),
        ("compare --a isolation=thread --b isolation=none", "isolation=none"),
        ("contain --isolation process --technique std-mpsc", "its twin over shared memory"),
        ("contain --work 0ns,500ns", "launcher sweep"),
        ("contain --fault explode", "explode"),
        ("contain --preset seed", "--preset"),
        ("survey --minutes 0", "--minutes"),
        ("survey --minutes 5 --quick", "--quick"),
        ("survey --index x --quick", "--quick"),
        ("survey 5", "5"),
        ("board --size 12", "--size 12"),
    ] {
        refused(&mut command(&line.split_whitespace().collect::<Vec<_>>()), 2, &[wanted]);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    refused(&mut command(&["survey", "--index", path]), 2, &["--index"]);
    std::fs::write(folder.path().join("sweep.json"), "{\"schema\": \"bulkhead.sweep/0\"}").unwrap();
    let wanted = ["bulkhead.sweep/0", "use the launcher that wrote it"];
    refused(&mut command(&["sweep", "--resume", path]), 1, &wanted);
    refused(&mut command(&["compare", path, path]), 1, &wanted[..1]);
}
