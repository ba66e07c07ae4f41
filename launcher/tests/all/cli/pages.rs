//! Pages and pictures of a run: `report --html`, `open`, `export --svg`; and commands whose output
//! is closed.

use crate::common::{command, entries, output};
use crate::fixture::{Fixture, Shape};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs a command. Returns its stdout, or its stderr if it failed.
fn run_command(line: &str) -> Result<String, String> {
    let result = output(line);
    if result.code == Some(0) { Ok(result.stdout) } else { Err(result.stderr) }
}

fn report(folder: &Path, file: &str) -> Result<String, String> {
    run_command(&format!("report {} --html {file}", folder.display()))
}

/// Creates a run with all its results. Returns its folder and its page.
pub fn evaluated() -> (TempDir, String) {
    let folder = Fixture::new(Shape { orders: 2_000, ..Shape::PLAIN }).write();
    run_command(&format!("report {}", folder.path().display())).unwrap();
    let page = page(folder.path());
    (folder, page)
}

fn page(folder: &Path) -> String {
    fs::read_to_string(folder.join("report.html")).unwrap()
}

#[test]
fn page_is_built_from_saved_results_or_logs() {
    let (folder, written) = evaluated();
    let path = |name: &str| folder.path().join(name);
    for name in ["report.html", "timeline.json", "summary.json", "histograms.hlog"] {
        fs::remove_file(path(name)).unwrap();
    }
    report(folder.path(), "").unwrap();
    assert!(page(folder.path()) == written, "missing results are made from the logs first");

    for name in ["report.html", "strategy-0.stamps", "orchestrator.stamps"] {
        fs::remove_file(path(name)).unwrap();
    }
    let opened = run_command(&format!("open {}", folder.path().display())).unwrap();
    assert_eq!(Path::new(opened.trim()), path("report.html").canonicalize().unwrap());
    assert!(page(folder.path()) == written, "saved results are enough");
    let elsewhere = path("elsewhere.html");
    assert!(report(folder.path(), elsewhere.to_str().unwrap()).unwrap().contains("elsewhere.html"));
    assert!(fs::read_to_string(elsewhere).unwrap() == written);

    // Damage is named: in the page if the file is optional, otherwise as an error.
    fs::write(path("histograms.hlog"), "Tag=submit,0.0,1.0,1.0,*\n").unwrap();
    fs::write(path("timeline.json"), "{\"schema\":\"bulkhead.timeline/9\"}").unwrap();
    report(folder.path(), "").unwrap();
    let html = page(folder.path());
    assert!(html.contains("No curves: histograms.hlog:") && html.contains("bulkhead.timeline/9"));
    for (summary, expected) in
        [("{\"schema\":\"bulkhead.summary/9\"}", "use the launcher that wrote it"), ("{", "summary.json")]
    {
        fs::write(path("summary.json"), summary).unwrap();
        assert!(report(folder.path(), "").unwrap_err().contains(expected));
    }
}

#[test]
fn other_folders_and_places_are_refused() {
    let (run, _) = evaluated();
    let folder = tempfile::tempdir().unwrap();
    for command in ["open", "report --html=x.html"] {
        let refused = run_command(&format!("{command} {}", folder.path().display())).unwrap_err();
        assert!(refused.contains("not the folder of a run"), "{command}: {refused}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written there");
    assert!(report(run.path(), "/nonexistent/x.html").unwrap_err().contains("cannot write"));
}

#[test]
fn run_without_logs_shows_what_was_saved() {
    let (run, _) = evaluated();
    let folder = run.path().display();
    let merged = output(&format!("report {folder} --json")).succeeds();
    for path in entries(run.path()).iter().filter(|path| path.extension().is_some_and(|of| of == "stamps")) {
        fs::remove_file(path).unwrap();
    }
    let saved = output(&format!("report {folder} --json"));
    assert!(saved.stdout == merged && saved.stderr.contains("stamp logs were not kept"), "{saved:?}");
    fs::remove_file(run.path().join("summary.json")).unwrap();
    output(&format!("report {folder}"))
        .fails(1, &["neither stamp logs nor saved results", "make the run again"]);
}

#[test]
fn file_of_a_run_is_refused_with_its_folder() {
    let (run, _) = evaluated();
    let folder = run.path().display();
    let advice = format!("name its folder, {folder}");
    for command in ["report", "open", "report --html=x.html"] {
        output(&format!("{command} {folder}/summary.json")).fails(2, &["not a folder", &advice]);
    }
    output("report /etc/passwd").fails(2, &["/etc/passwd: it is not a folder", "launcher list"]);
}

#[test]
fn order_path_export_requires_a_median() {
    let (run, _) = evaluated();
    let export =
        |run: &Path, file: &Path| run_command(&format!("export {} --svg {}", run.display(), file.display()));
    let file = run.path().join("path.svg");
    export(run.path(), &file).unwrap();
    assert!(fs::read_to_string(&file).unwrap().starts_with("<svg"));

    let small = Fixture::new(Shape { strategies: 1, orders: 10, ..Shape::PLAIN }).write();
    run_command(&format!("report {}", small.path().display())).unwrap();
    let file = small.path().join("path.svg");
    let refused = export(small.path(), &file).unwrap_err();
    assert!(refused.contains("too few orders came back") && !file.exists(), "{refused}");
}

/// As in `launcher … 2>&1 | head -1`: the command keeps its exit code and does not panic.
#[test]
fn closed_output_is_no_error() {
    let (run, _) = evaluated();
    let folder = run.path().display();
    let exit_code = |line: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(line);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        command.status().unwrap().code()
    };
    for line in
        ["report", "inspect", "inspect --worst 3", "inspect --csv", "list", "open", "delete --dry-run"]
    {
        assert_eq!(exit_code(&format!("{line} {folder}")), Some(0), "{line}");
    }
    for (line, code) in [
        (&*format!("report {folder} --json"), 0),
        ("--help", 0),
        ("run --help", 0),
        ("man", 0),
        ("completions bash", 0),
        ("simulate --seeds 2", 0),
        ("simulate --seeds 2 --json", 0),
        ("run --dry-run", 0),
        ("sweep --technique spsc-mux,linked --dry-run", 0),
        ("run --bogus", 2),
        ("inspect nothere", 2),
        (&*format!("compare {folder} {folder}"), 2),
        ("simulate --seeds 200 --broken drops", 1),
    ] {
        assert_eq!(exit_code(line), Some(code), "{line}");
    }
}
