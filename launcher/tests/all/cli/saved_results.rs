//! A folder of results: listed, found by `latest`, compared with a baseline, deleted.

use crate::common::{
    LONG, Launcher, Running, SHORT, assert_exists, command, entries, list, output, output_of, string,
    wait_until,
};
use crate::fixture::{Fixture, Shape};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn listed(folder: &Path) -> Vec<Value> {
    serde_json::from_str(&output(&format!("list {} --json", folder.display())).succeeds()).unwrap()
}

#[test]
fn results_are_listed_found_and_deleted() {
    let launcher = Launcher::new();
    let printed = launcher.result(&format!("{SHORT} --quiet")).succeeds();
    let folder = launcher.folder();
    // The run's folder is all that is printed on stdout, for scripts.
    assert_eq!(Path::new(printed.trim()), folder.canonicalize().unwrap());
    let running = launcher.start(LONG);
    wait_until("two runs are listed", || listed(launcher.out.path()).len() == 2);

    let all = listed(launcher.out.path());
    let verdicts: Vec<&str> = all.iter().map(|entry| string(&entry["verdict"])).collect();
    assert_eq!(verdicts, ["valid", "running"]);
    // Valid, and too short for its latencies to be quoted: in the words of its report.
    let (path, results) = (folder.display(), launcher.out.path().display());
    let report = output(&format!("report {path}")).succeeds();
    let summary = output(&format!("report {path} --json")).json();
    assert_eq!((&all[0]["fit_for_latency"], &all[0]["reasons"]), (&false.into(), &summary["reasons"]));
    let fitness = string(&all[0]["fitness"]);
    assert_eq!(fitness, "not fit for latency claims");
    assert!(report.contains(&fitness.to_uppercase()), "{report}");
    assert_eq!((&all[1]["fitness"], &all[1]["fit_for_latency"]), (&Value::Null, &Value::Null));
    let table = output(&format!("list {results}")).succeeds();
    for expected in ["spsc-mux process", "valid; not fit: ", "\n  running"] {
        assert!(table.contains(expected), "{table}");
    }

    // Commands for one run refuse a folder of several.
    for command in ["report", "inspect --worst 3"] {
        output(&format!("{command} {results}")).fails(2, &["a folder of results"]);
    }

    // An active run is kept, and so are the other runs named in the command.
    let active = launcher.folder();
    output(&format!("delete {path} {}", active.display())).fails(2, &["still active"]);
    for invalid in ["/", "/etc", "no-such-run"] {
        output(&format!("delete {invalid}")).fails(2, &[]);
    }
    let dry = output(&format!("delete --dry-run {path}")).all_output();
    assert!(dry.contains("would be deleted"), "{dry}");
    assert_exists(&folder);
    output(&format!("delete {path}")).succeeds();
    assert!(!folder.exists());
    running.interrupt();
}

/// Several runs are printed as one document.
#[test]
fn quiet_run_still_prints_its_json() {
    let launcher = Launcher::new();
    for (repeats, is_list) in [(1, false), (2, true)] {
        let result = launcher.result(&format!("{SHORT} --quiet --json --repeats {repeats}"));
        assert_eq!(result.stderr, "");
        let printed = result.json();
        let runs = if is_list { list(&printed) } else { std::slice::from_ref(&printed) };
        assert!(runs.len() == repeats && runs.iter().all(|run| run["valid"] == true), "{printed:#}");
    }
    assert_eq!(launcher.folders().len(), 1 + 2);
}

#[test]
fn delete_keeps_foreign_files() {
    let launcher = Launcher::new();
    // A foreign folder with a file of that name.
    let project = launcher.out.path().join("project");
    std::fs::create_dir(&project).unwrap();
    for (file, content) in
        [("run.json", "{\"scripts\": {}}"), ("main.c", "int main;"), ("report.html", "mine")]
    {
        std::fs::write(project.join(file), content).unwrap();
    }
    output(&format!("delete {}", project.display())).fails(2, &["no run or experiment of bulkhead"]);
    assert_eq!(entries(&project).len(), 3);
    std::fs::remove_dir_all(&project).unwrap();

    launcher.result(&format!("{SHORT} --quiet")).succeeds();
    let folder = launcher.folder();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc", folder.join("journal-engine")).unwrap();
    let deleted = output(&format!("delete {}", folder.display())).fails(1, &[]).all_output();
    for name in ["notes.txt stays", "journal-engine stays", "but for what bulkhead did not write"] {
        assert!(deleted.contains(name), "{name}: {deleted}");
    }
    assert_eq!(entries(&folder).len(), 2, "all that was bulkhead's is gone");
}

#[test]
fn latest_names_the_newest_run() {
    let launcher = Launcher::new();
    let out = launcher.out.path();
    let run_here = |line: &str| output_of(command(line).current_dir(out));
    for seed in [1, 2] {
        run_here(&format!("run --seed {seed} {SHORT}")).succeeds();
    }
    let summary = run_here("report latest --json").json();
    let all = listed(&out.join("runs"));
    assert_eq!(summary["run"], all[1]["run"]);
    run_here("inspect latest --order 0/1").succeeds();
    // Both are found, but their schedules differ.
    let compared = run_here(&format!("compare {} latest", string(&all[0]["folder"]))).all_output();
    assert!(compared.contains("other schedule"), "{compared}");
    for line in ["report latest", "compare latest latest"] {
        output_of(command(line).current_dir("/")).fails(2, &[]);
    }
}

/// Two runs and a folder without one, in `runs`: the current folder of the commands, and the run's
/// id and the other's.
fn two_results() -> (TempDir, [String; 2]) {
    let out = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    for (name, digit) in [("first", "1"), ("second", "2")] {
        let mut run = Fixture::new(Shape::PLAIN);
        // Both begin alike.
        run.record.plan.run = format!("{}{digit}", run.record.plan.run);
        let folder = out.path().join("runs").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        run.write_to(&folder);
        ids.push(run.record.plan.run);
    }
    std::fs::create_dir(out.path().join("runs/empty")).unwrap();
    (out, ids.try_into().unwrap())
}

/// A run is named by its id, the beginning of that, its folder, the folder's name in `list`, or
/// `latest`, in every command that reads one.
#[test]
fn run_is_named_alike_in_every_command() {
    let (out, [first, second]) = two_results();
    let here = |line: &str| output_of(command(line).current_dir(out.path()));
    let both = &first[..first.len() - 1];
    for of_run in ["report", "inspect", "open", "export --csv o.csv", "delete --dry-run"] {
        for name in [&first, "first", "runs/first"] {
            here(&format!("{of_run} {name}")).succeeds();
        }
        here(&format!("{of_run} {both}")).fails(2, &["2 runs begin with", &first, &second]);
        here(&format!("{of_run} 1999"))
            .fails(2, &["1999: no such folder and no run of ./runs", "launcher list"]);
        here(&format!("{of_run} runs/nothing")).fails(2, &["no such folder"]);
    }
    assert_eq!(here("report latest --json").json()["run"], second.as_str());
    // Both are found; one run each decides nothing.
    let compared = here(&format!("compare first {second}"));
    assert!(!compared.all_output().contains("no such folder"), "{compared:?}");
    // Commands for active runs find it too, and report that it is over.
    for of_active in ["watch", "kill --all", "limits", "retire", "replace", "add --strategy maker"] {
        for name in [&first, "first", "runs/first"] {
            let strategy = if of_active.starts_with("re") { "0" } else { "" };
            here(&format!("{of_active} {name} {strategy}")).fails(2, &["is over: launcher report"]);
        }
    }
}

#[test]
fn folder_without_results_is_usage_error() {
    let (out, _) = two_results();
    let here = |line: &str| output_of(command(line).current_dir(out.path()));
    for of_folder in [
        "report runs/empty",
        "report runs/empty --html",
        "open runs/empty",
        "inspect runs/empty",
        "export --csv o.csv runs/empty",
        "compare runs/empty runs/first",
        "bill runs/empty",
        "sweep --resume runs/empty",
        "resume runs/empty",
        "resume runs/first",
    ] {
        let refused = here(of_folder).fails(2, &["runs/"]);
        assert_eq!(refused.stdout, "", "{of_folder}");
    }
    assert!(entries(&out.path().join("runs/empty")).is_empty());
}

#[test]
fn dry_run_starts_nothing() {
    let launcher = Launcher::new();
    let printed = launcher.result(&format!("{SHORT} --dry-run")).succeeds();
    assert!(printed.contains("strategy-0") && printed.contains("Nothing was started"), "{printed}");
    assert!(launcher.folders().is_empty());
}

#[test]
fn baseline_comparison_gates_ci() {
    let launcher = Launcher::new();
    let repeats = |more: &str| launcher.result(&format!("{SHORT} --repeats 5 --seed 7 {more}"));
    repeats("--quiet").succeeds();
    let baseline = tempfile::tempdir().unwrap();
    for folder in launcher.folders() {
        std::fs::rename(&folder, baseline.path().join(folder.file_name().unwrap())).unwrap();
    }
    let path = baseline.path().display();
    // The same schedules again: no machine is ten times slower the second time.
    let passed = repeats(&format!("--baseline {path} --fail-if-slower 1000%"));
    // On a machine that moves its cores, pairs are left out. If too few remain, or they differ too
    // much, the gate is undecided. It never fails.
    let printed = passed.all_output();
    let is_undecided = passed.code == Some(3) && passed.stderr.contains("error: --fail-if-slower: ");
    assert!(passed.code == Some(0) || is_undecided, "{printed}");
    assert!(is_undecided || printed.contains("B against A"), "{printed}");
    // One run proves nothing, and does not pass.
    let single = launcher.folders().remove(0);
    let compared = output(&format!("compare {} {path} --fail-if-slower 5%", single.display()));
    assert_eq!(compared.code, Some(3), "{compared:?}");
    assert!(compared.all_output().contains("cannot be compared"), "{compared:?}");
    for invalid in ["--fail-if-slower 5%".into(), format!("--baseline {path} --fail-if-slower 5")] {
        repeats(&invalid).fails(2, &[]);
    }
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let completions = output(&format!("completions {shell}")).succeeds();
        assert!(completions.contains("watch"), "{shell}");
    }
    let pages = tempfile::tempdir().unwrap();
    output(&format!("man --out {}", pages.path().display())).succeeds();
    for page in ["launcher.1", "launcher-run.1", "launcher-watch.1"] {
        assert_exists(&pages.path().join(page));
    }
    assert!(output("man").stdout.starts_with(".ie"));
}

/// TAB completes what names a run: in the shell itself, with the script as it is printed.
#[test]
fn bash_completes_names_of_runs() {
    let out = tempfile::tempdir().unwrap();
    let run = out.path().join("runs/first");
    std::fs::create_dir_all(&run).unwrap();
    Fixture::new(Shape::PLAIN).write_to(&run);
    let script = output("completions bash").succeeds();
    let shell = format!(
        "launcher() {{ {} \"$@\"; }}\n{script}\n\
         tab() {{ COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
         _launcher_runs launcher \"${{@: -1}}\" \"${{@: -2:1}}\"; echo \"$# ${{COMPREPLY[*]}}\"; }}\n\
         tab launcher report ''; tab launcher inspect fi; tab launcher run --baseline la; tab launcher report --h; \
         tab launcher list ''; tab launcher wat\n",
        env!("CARGO_BIN_EXE_launcher")
    );
    let printed = output_of(Command::new("bash").args(["--norc", "-c", &shell]).current_dir(out.path()));
    let lines: Vec<&str> = printed.stdout.lines().collect();
    let [report, inspect, baseline, flag, list, command] = lines[..] else { panic!("{printed:?}") };
    // Names, then files; the ids of other tests' active runs are between them.
    assert!(report.starts_with("3 latest ") && report.ends_with(" first runs"), "{report}");
    assert_eq!((inspect, baseline), ("3 first", "4 latest"));
    assert!(flag.contains("--html") && !list.contains("latest") && command == "2 watch", "{printed:?}");
}

/// The book's page of commands is what `man --markdown` prints; `BULKHEAD_GOLDEN=1` writes it.
#[test]
fn commands_page_of_the_book_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/commands.md");
    let printed = output("man --markdown").succeeds();
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        std::fs::write(&page, &printed).unwrap();
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page == printed, "docs/src/commands.md is old: write it with BULKHEAD_GOLDEN=1");
    assert_ne!(output("man --markdown --out x").code, Some(0));
}

/// The program `bulkhead` is the launcher, and starts its roles from its own executable.
#[test]
fn bulkhead_is_the_launcher() {
    let launcher = Launcher::new();
    let run = launcher.run(&format!("{SHORT} --quiet"));
    output_of(Command::new(env!("CARGO_BIN_EXE_bulkhead")).args(run.get_args())).succeeds();
    assert_eq!(listed(launcher.out.path())[0]["verdict"], "valid");
}

#[test]
fn long_experiment_prints_its_expected_duration() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "sweep --isolation thread,process --window 30s --repeats 3";
    let sweep = Running::spawn(&mut command(&format!("{arguments} --out {}", out.path().display())));
    wait_until("the experiment has begun", || !entries(out.path()).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(500));
    let printed = sweep.interrupt().all_output();
    // On a busy machine it expects more.
    let minutes = printed.split_once("6 runs, about ").and_then(|(_, rest)| rest.split_once(" minutes"));
    let minutes = minutes.and_then(|(minutes, _)| minutes.parse::<u64>().ok());
    assert!(minutes.is_some_and(|minutes| minutes >= 3), "{printed}");
}
