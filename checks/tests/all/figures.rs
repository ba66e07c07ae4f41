//! The figures of README and book: `docs/figures.py` computes them again from the saved runs.

use checks::root;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Returns the exit code and the output of the script, with files in the place of others; `None`
/// without Python 3.11 (`.ci/run` calls the script itself).
fn compare(instead: &[(&str, PathBuf)]) -> Option<(i32, String)> {
    let mut modules = Command::new("python3");
    let has_modules =
        modules.args(["-c", "import lzma, tomllib"]).output().is_ok_and(|out| out.status.success());
    if !has_modules {
        eprintln!("skipped: no python3 with tomllib and lzma");
        return None;
    }
    let mut script = Command::new("python3");
    script.arg(root().join("docs/figures.py"));
    for (path, file) in instead {
        script.arg("--with").arg(format!("{path}={}", file.display()));
    }
    let out = script.output().expect("python3 runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    Some((out.status.code().expect("an exit code"), text))
}

#[test]
fn published_figures_are_those_of_their_runs() {
    if let Some((code, text)) = compare(&[]) {
        assert_eq!(code, 0, "{text}");
    }
}

#[test]
fn changed_and_undeclared_figures_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |path: &'static str, from: &str, to: &str| {
        let text = fs::read_to_string(root().join(path)).expect("a file");
        let changed = folder.path().join(path.replace('/', "-"));
        assert!(text.contains(from), "{path} has no {from:?}");
        fs::write(&changed, text.replacen(from, to, 1)).expect("a file");
        (path, changed)
    };
    let changed = [
        // Changed in its entry as well: then it is not what the runs give.
        with("README.md", "+18.4 % [+16.5, +20.4] |", "+12 % [+16.5, +20.4] 4,321"),
        with("docs/figures.toml", "README = \"+18.4 %", "README = \"+12 %"),
        with("data/results/2026-11-20-epyc-2core/README.md", "9 / 0 / 1", "10 / 0 / 0"),
    ];
    let Some((code, text)) = compare(&changed) else { return };
    assert_eq!(code, 1, "{text}");
    for found in [
        "(epyc-20k.process-16-p50-alone): computed 18.4",
        "4,321 is in no entry",
        "(contained.process) is not there",
        "3 errors",
    ] {
        assert!(text.contains(found), "not found: {found}\n{text}");
    }
}
