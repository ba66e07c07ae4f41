//! Pictures of a run by command: `report --html`, `open`, `export --svg`; and what happens where
//! nobody reads the output.

use crate::common::{bounded, command};
use crate::fixture::{Fixture, Shape};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// What the command printed, if it went well, or its error.
fn said(words: &[&str]) -> Result<String, String> {
    let (code, stdout, stderr) = bounded(words);
    if code == Some(0) { Ok(stdout) } else { Err(stderr) }
}

fn report(folder: &Path, more: &[&str]) -> Result<String, String> {
    said(&[&["report", folder.to_str().unwrap(), "--html"], more].concat())
}

/// A run with all its results, and its page.
fn evaluated() -> (TempDir, String) {
    let folder = Fixture::new(Shape { orders: 2_000, ..Shape::PLAIN }).write();
    said(&["report", folder.path().to_str().unwrap()]).unwrap();
    let page = page(folder.path());
    (folder, page)
}

fn page(folder: &Path) -> String {
    fs::read_to_string(folder.join("report.html")).unwrap()
}

#[test]
fn page_is_made_of_saved_results_or_the_logs() {
    let (folder, written) = evaluated();
    let path = |name: &str| folder.path().join(name);
    for name in ["report.html", "timeline.json", "summary.json", "histograms.hlog"] {
        fs::remove_file(path(name)).unwrap();
    }
    report(folder.path(), &[]).unwrap();
    assert!(page(folder.path()) == written, "missing results are made from the logs first");

    for name in ["report.html", "strategy-0.stamps", "orchestrator.stamps"] {
        fs::remove_file(path(name)).unwrap();
    }
    let opened = said(&["open", folder.path().to_str().unwrap()]).unwrap();
    assert_eq!(Path::new(opened.trim()), path("report.html").canonicalize().unwrap());
    assert!(page(folder.path()) == written, "saved results are enough");
    let elsewhere = path("elsewhere.html");
    assert!(report(folder.path(), &[elsewhere.to_str().unwrap()]).unwrap().contains("elsewhere.html"));
    assert!(fs::read_to_string(elsewhere).unwrap() == written);

    // Damage is named: in the page where it can do without, as an error where it cannot.
    fs::write(path("histograms.hlog"), "Tag=submit,0.0,1.0,1.0,*\n").unwrap();
    fs::write(path("timeline.json"), "{\"schema\":\"bulkhead.timeline/9\"}").unwrap();
    report(folder.path(), &[]).unwrap();
    let html = page(folder.path());
    assert!(html.contains("No curves: histograms.hlog:") && html.contains("bulkhead.timeline/9"));
    for (summary, words) in
        [("{\"schema\":\"bulkhead.summary/9\"}", "use the launcher that wrote it"), ("{", "summary.json")]
    {
        fs::write(path("summary.json"), summary).unwrap();
        assert!(report(folder.path(), &[]).unwrap_err().contains(words));
    }
}

#[test]
fn other_folders_and_places_are_refused() {
    let (run, _) = evaluated();
    let folder = tempfile::tempdir().unwrap();
    for command in [
        &["report", folder.path().to_str().unwrap(), "--html"][..],
        &["open", folder.path().to_str().unwrap()],
    ] {
        assert!(said(command).unwrap_err().contains("not the folder of a run"), "{command:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written there");
    assert!(report(run.path(), &["/nonexistent/x.html"]).unwrap_err().contains("cannot write"));
}

#[test]
fn order_path_is_exported_where_there_is_a_median() {
    let (run, _) = evaluated();
    let export =
        |run: &Path, file: &Path| said(&["export", run.to_str().unwrap(), "--svg", file.to_str().unwrap()]);
    let file = run.path().join("path.svg");
    export(run.path(), &file).unwrap();
    assert!(fs::read_to_string(&file).unwrap().starts_with("<svg"));

    let few = Fixture::new(Shape { strategies: 1, orders: 10, ..Shape::PLAIN }).write();
    said(&["report", few.path().to_str().unwrap()]).unwrap();
    let file = few.path().join("path.svg");
    let refused = export(few.path(), &file).unwrap_err();
    assert!(refused.contains("too few orders came back") && !file.exists(), "{refused}");
}

/// As by `launcher … 2>&1 | head -1`: the exit code is that of the command, and nothing panics.
#[test]
fn closed_output_is_no_error() {
    let (run, _) = evaluated();
    let folder = run.path().to_str().unwrap();
    let ended = |words: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(words);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        command.status().unwrap().code()
    };
    let run_commands: [&[&str]; 8] = [
        &["report", folder],
        &["report", folder, "--json"],
        &["inspect", folder],
        &["inspect", folder, "--worst", "3"],
        &["inspect", folder, "--csv"],
        &["list", folder],
        &["open", folder],
        &["delete", folder, "--dry-run"],
    ];
    let others: [&[&str]; 8] = [
        &["--help"],
        &["run", "--help"],
        &["man"],
        &["completions", "bash"],
        &["simulate", "--seeds", "2"],
        &["simulate", "--seeds", "2", "--json"],
        &["run", "--dry-run"],
        &["sweep", "--technique", "spsc-mux,linked", "--dry-run"],
    ];
    for words in run_commands.into_iter().chain(others) {
        assert_eq!(ended(words), Some(0), "{words:?}");
    }
    let refused: [&[&str]; 3] = [&["run", "--bogus"], &["inspect", "nothere"], &["compare", folder, folder]];
    for words in refused {
        assert_eq!(ended(words), Some(2), "{words:?}");
    }
    let broken = ["simulate", "--seeds", "200", "--broken", "drops"];
    assert_eq!(ended(&broken), Some(1));
}
