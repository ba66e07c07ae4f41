//! Output on terminals of 60 columns fits them and loses no content.

use super::pages::evaluated;
use crate::common::{skip, text, wait_until};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// Returns what the launcher prints on a terminal of that width; `None`: no `script` to make one.
fn on_terminal(columns: u16, args: &str) -> Option<String> {
    let launcher = env!("CARGO_BIN_EXE_launcher");
    let line = format!("stty cols {columns} rows 50; NO_COLOR=1 {launcher} {args} 2>/dev/null");
    let result = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
    match result {
        Ok(result) => Some(text(&result.stdout).replace('\r', "")),
        Err(_) => {
            skip("no script(1) here, nothing was tried on a narrow terminal");
            None
        }
    }
}

#[test]
fn tables_fit_the_terminal_width() {
    let (run, _) = evaluated();
    let folder = run.path().display();
    let wide = on_terminal(80, &format!("report {folder}"));
    for args in [
        "doctor".to_owned(),
        format!("report {folder}"),
        format!("inspect {folder}"),
        format!("inspect {folder} --order 0/3"),
    ] {
        let Some(printed) = on_terminal(60, &args) else { return };
        let long: Vec<&str> = printed.lines().filter(|line| line.chars().count() > 60).collect();
        // Long paths and names are not split.
        let torn: Vec<&&str> = long
            .iter()
            .filter(|line| line.split_whitespace().all(|word| word.chars().count() <= 50))
            .collect();
        assert!(torn.is_empty() && printed.lines().count() > 5, "{args}: {torn:#?}\n{printed}");
    }
    let narrow = on_terminal(60, &format!("report {folder}")).unwrap();
    for cell in ["p99.99", "round_trip", "max gap", "busy"] {
        assert!(narrow.contains(cell) && wide.as_ref().unwrap().contains(cell), "{cell}: {narrow}");
    }
}

#[test]
fn open_runs_xdg_open_on_terminal() {
    let (run, _) = evaluated();
    let bin = tempfile::tempdir().unwrap();
    let opened = bin.path().join("opened");
    let program = bin.path().join("xdg-open");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let open = format!("{} open {}", env!("CARGO_BIN_EXE_launcher"), run.path().display());
    // Into a pipe: only the path.
    let piped = Command::new("sh").args(["-c", &open]).env("PATH", &path).output().unwrap();
    assert!(text(&piped.stdout).trim().ends_with("report.html") && !opened.exists());
    let mut script = Command::new("script");
    script.args(["-qec", &open, "/dev/null"]).env("PATH", &path).stdin(Stdio::null());
    let Ok(result) = script.output() else { return };
    let page = text(&result.stdout).trim().to_owned();
    wait_until("xdg-open got the page", || {
        std::fs::read_to_string(&opened).is_ok_and(|got| got.trim() == page)
    });
}
