//! `launcher report FOLDER --html [FILE]`.

use super::fixtures::{evaluated, page, tailed};
use std::path::Path;
use std::process::Command;

/// What the command printed, if it went well, or its error.
fn report(folder: &Path, more: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launcher"));
    let output = command.arg("report").arg(folder).arg("--html").args(more).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn the_page_is_written_from_saved_results_alone() {
    let (folder, _) = evaluated(&tailed(2_000));
    let written = page(&folder);
    for name in ["report.html", "strategy-0.stamps", "orchestrator.stamps"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    assert!(report(folder.path(), &[]).unwrap().contains("report.html"));
    assert_eq!(page(&folder), written);

    let file = folder.path().join("elsewhere.html");
    assert!(report(folder.path(), &[file.to_str().unwrap()]).unwrap().contains("elsewhere.html"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), written);
}

#[test]
fn missing_results_are_made_from_the_logs_first() {
    let (folder, _) = evaluated(&tailed(2_000));
    let written = page(&folder);
    for name in ["report.html", "timeline.json", "summary.json", "histograms.hlog"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    report(folder.path(), &[]).unwrap();
    assert_eq!(page(&folder), written);
}

#[test]
fn damage_is_named() {
    let (folder, _) = evaluated(&tailed(2_000));
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("histograms.hlog"), "Tag=submit,0.0,1.0,1.0,*\n").unwrap();
    std::fs::write(path("timeline.json"), "{\"schema\":\"bulkhead.timeline/9\"}").unwrap();
    report(folder.path(), &[]).unwrap();
    let html = page(&folder);
    assert!(html.contains("No curves: histograms.hlog:") && html.contains("bulkhead.timeline/9"));

    std::fs::write(path("summary.json"), "{\"schema\":\"bulkhead.summary/9\"}").unwrap();
    assert!(report(folder.path(), &[]).unwrap_err().contains("use the launcher that wrote it"));
    std::fs::write(path("summary.json"), "{").unwrap();
    assert!(report(folder.path(), &[]).unwrap_err().contains("summary.json"));
}

#[test]
fn other_folders_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    assert!(report(folder.path(), &[]).unwrap_err().contains("not the folder of a run"));
    let (run, _) = evaluated(&tailed(20));
    assert!(report(run.path(), &["/nonexistent/x.html"]).unwrap_err().contains("cannot write"));
}
