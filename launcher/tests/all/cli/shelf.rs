//! A folder of results: listed, found by `latest`, compared with a baseline, taken away.

use crate::common::{LONG, Launcher, SHORT, assert_exists, command, output, signal, text, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn list(folder: &Path) -> Vec<Value> {
    let output = output(&["list", folder.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
}

#[test]
fn results_are_listed_found_and_taken_away() {
    let launcher = Launcher::new();
    let run = launcher.run(SHORT).arg("--quiet").output().unwrap();
    assert!(run.status.success(), "{}", said(&run));
    let folder = launcher.folders().remove(0);
    // Where its folder is stands alone on stdout, for scripts.
    assert_eq!(Path::new(text(&run.stdout).trim()), folder.canonicalize().unwrap());
    let living = launcher.start(LONG);
    wait_until("there are two", || list(launcher.out.path()).len() == 2);

    let all = list(launcher.out.path());
    let verdicts: Vec<&str> = all.iter().map(|entry| entry["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["valid", "running"]);
    // Valid, and too short for its latencies to be quoted: in the words of its report.
    let report = output(&["report", folder.to_str().unwrap()]);
    let json = output(&["report", folder.to_str().unwrap(), "--json"]);
    let summary: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(all[0]["fit_for_latency"], false);
    assert_eq!(all[0]["reasons"], summary["reasons"]);
    let fitness = all[0]["fitness"].as_str().unwrap();
    assert_eq!(fitness, "not fit for latency claims");
    assert!(said(&report).contains(&fitness.to_uppercase()), "{}", said(&report));
    assert_eq!((&all[1]["fitness"], &all[1]["fit_for_latency"]), (&Value::Null, &Value::Null));
    let table = output(&["list", launcher.out.path().to_str().unwrap()]);
    assert!(
        ["spsc-mux process", "for latency claims", "not fit: "]
            .iter()
            .all(|words| said(&table).contains(words)),
        "{}",
        said(&table)
    );

    // Where one is wanted, a folder of many names one.
    for args in [&["report"][..], &["inspect", "--worst", "3"]] {
        let refused = output(&[args, &[launcher.out.path().to_str().unwrap()]].concat());
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(said(&refused).contains("a folder of results"), "{}", said(&refused));
    }

    // What lives stays, and what is named with it.
    let lives = launcher.folders().remove(1);
    let refused = output(&["delete", folder.to_str().unwrap(), lives.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("still active"), "{}", said(&refused));
    for wrong in ["/", "/etc", "no-such-run"] {
        assert_eq!(output(&["delete", wrong]).status.code(), Some(2), "{wrong}");
    }
    let dry = output(&["delete", "--dry-run", folder.to_str().unwrap()]);
    assert!(said(&dry).contains("would be deleted"), "{}", said(&dry));
    assert_exists(&folder);
    assert!(output(&["delete", folder.to_str().unwrap()]).status.success());
    assert!(!folder.exists());

    signal(living.pid(), "INT");
    living.end();
}

#[test]
fn a_quiet_run_prints_its_json_all_the_same() {
    let launcher = Launcher::new();
    for (repeats, is_list) in [("1", false), ("2", true)] {
        let run = launcher.run(SHORT).args(["--quiet", "--json", "--repeats", repeats]).output().unwrap();
        assert!(run.status.success(), "{}", said(&run));
        let printed: Value = serde_json::from_slice(&run.stdout).unwrap();
        let first = if is_list { &printed[0] } else { &printed };
        assert_eq!(
            (first["valid"].as_bool(), printed.as_array().map(Vec::len)),
            (Some(true), is_list.then_some(2))
        );
        assert_eq!(text(&run.stderr), "");
    }
}

#[test]
fn only_what_bulkhead_wrote_is_deleted() {
    let launcher = Launcher::new();
    // A folder of somebody's whose file happens to have that name.
    let project = launcher.out.path().join("project");
    std::fs::create_dir(&project).unwrap();
    for (file, content) in
        [("run.json", "{\"scripts\": {}}"), ("main.c", "int main;"), ("report.html", "mine")]
    {
        std::fs::write(project.join(file), content).unwrap();
    }
    let refused = output(&["delete", project.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("no run or experiment of bulkhead"), "{}", said(&refused));
    assert_eq!(std::fs::read_dir(&project).unwrap().count(), 3);
    std::fs::remove_dir_all(&project).unwrap();

    assert!(launcher.run(SHORT).arg("--quiet").output().unwrap().status.success());
    let folder = launcher.folders().remove(0);
    let path = folder.to_str().unwrap();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc", folder.join("journal-engine")).unwrap();
    let deleted = output(&["delete", path]);
    assert_eq!(deleted.status.code(), Some(1), "{}", said(&deleted));
    for name in ["notes.txt stays", "journal-engine stays", "but for what bulkhead did not write"] {
        assert!(said(&deleted).contains(name), "{name}: {}", said(&deleted));
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "all that was bulkhead's is gone");
}

#[test]
fn latest_is_the_run_that_began_last() {
    let launcher = Launcher::new();
    let out = launcher.out.path();
    for seed in ["1", "2"] {
        let mut run = command(&[&["run", "--seed", seed], SHORT].concat());
        let run = run.current_dir(out).output().unwrap();
        assert!(run.status.success(), "{}", said(&run));
    }
    let report = command(&["report", "latest", "--json"]).current_dir(out).output().unwrap();
    let summary: Value = serde_json::from_slice(&report.stdout).unwrap();
    let all = list(&out.join("runs"));
    assert_eq!(summary["run"], all[1]["run"]);
    let inspected = command(&["inspect", "latest", "--order", "0/1"]).current_dir(out).output().unwrap();
    assert!(inspected.status.success(), "{}", said(&inspected));
    let first = all[0]["folder"].as_str().unwrap();
    let compared = command(&["compare", first, "latest"]).current_dir(out).output().unwrap();
    // Both are found; what they played differs.
    assert!(said(&compared).contains("other schedule"), "{}", said(&compared));
    for asked in [&["report", "latest"][..], &["compare", "latest", "latest"]] {
        let none = command(asked).current_dir("/").output().unwrap();
        assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    }
}

#[test]
fn a_dry_run_starts_nothing() {
    let launcher = Launcher::new();
    let run = launcher.run(SHORT).arg("--dry-run").output().unwrap();
    assert!(run.status.success(), "{}", said(&run));
    assert!(
        said(&run).contains("strategy-0") && said(&run).contains("Nothing was started"),
        "{}",
        said(&run)
    );
    assert!(launcher.folders().is_empty());
}

#[test]
fn a_baseline_is_a_gate_for_ci() {
    let launcher = Launcher::new();
    let repeats = |more: &[&str]| {
        launcher.run(SHORT).args(["--repeats", "5", "--seed", "7"]).args(more).output().unwrap()
    };
    assert!(repeats(&["--quiet"]).status.success());
    let baseline = tempfile::tempdir().unwrap();
    for folder in launcher.folders() {
        std::fs::rename(&folder, baseline.path().join(folder.file_name().unwrap())).unwrap();
    }
    let path = baseline.path().to_str().unwrap();
    // The same schedules again: whatever the machine does, it is not a thousand times as slow.
    let passed = repeats(&["--baseline", path, "--fail-if-slower", "1000%"]);
    // On a machine that moves its cores pairs are left out, and there may be too few: not an pass.
    let is_comparable = !said(&passed).contains("cannot be compared");
    assert_eq!(passed.status.success(), is_comparable, "{}", said(&passed));
    assert!(!is_comparable || said(&passed).contains("B against A"), "{}", said(&passed));
    // One run proves nothing, and does not pass.
    let one = launcher.folders().remove(0);
    let one = one.to_str().unwrap();
    let compared = output(&["compare", one, path, "--fail-if-slower", "5%"]);
    assert!(matches!(compared.status.code(), Some(1 | 2)), "{}", said(&compared));
    assert!(said(&compared).contains("cannot be compared"), "{}", said(&compared));
    for wrong in [&["--fail-if-slower", "5%"][..], &["--baseline", path, "--fail-if-slower", "5"]] {
        assert_eq!(repeats(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn shells_and_man_are_told_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let completions = output(&["completions", shell]);
        assert!(completions.status.success() && said(&completions).contains("watch"), "{shell}");
    }
    let pages = tempfile::tempdir().unwrap();
    let man = output(&["man", "--out", pages.path().to_str().unwrap()]);
    assert!(man.status.success(), "{}", said(&man));
    for page in ["launcher.1", "launcher-run.1", "launcher-watch.1"] {
        assert_exists(&pages.path().join(page));
    }
    assert!(text(&output(&["man"]).stdout).starts_with(".ie"));
}

/// The book's page of commands is what `man --markdown` prints; `BULKHEAD_GOLDEN=1` writes it.
#[test]
fn commands_page_of_the_book_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/commands.md");
    let printed = output(&["man", "--markdown"]);
    assert!(printed.status.success(), "{}", said(&printed));
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        std::fs::write(&page, &printed.stdout).unwrap();
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page == text(&printed.stdout), "docs/src/commands.md is old: write it with BULKHEAD_GOLDEN=1");
    assert!(!output(&["man", "--markdown", "--out", "x"]).status.success());
}

/// The program under its project's name is the same one: it runs its own processes.
#[test]
fn bulkhead_is_the_launcher() {
    let launcher = Launcher::new();
    let mut run = Command::new(env!("CARGO_BIN_EXE_bulkhead"));
    let run = run
        .args(["run", "--quiet", "--out", launcher.out.path().to_str().unwrap()])
        .args(SHORT)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", said(&run));
    assert_eq!(list(launcher.out.path())[0]["verdict"], "valid");
}

#[test]
fn a_long_experiment_says_how_long_it_takes() {
    let launcher = Launcher::new();
    let out = launcher.out.path().to_str().unwrap();
    let words = ["sweep", "--isolation", "thread,process", "--window", "30s", "--repeats", "3", "--out", out];
    let pipe = std::process::Stdio::piped;
    let sweep = command(&words).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    wait_until("it has begun", || std::fs::read_dir(out).is_ok_and(|entries| entries.count() > 0));
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(sweep.id(), "INT");
    let sweep = sweep.wait_with_output().unwrap();
    assert!(text(&sweep.stdout).contains("6 runs, about 3 minutes"), "{}", said(&sweep));
}
