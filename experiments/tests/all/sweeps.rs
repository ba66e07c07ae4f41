//! Live sweeps, comparisons and bills: counts, structure and verdicts, never a latency.

use crate::common::{
    CommandResult, FULL_REPORT, Running, assert_nothing_left, busy_maker, command, document, entries, list,
    number, output, signal, string, wait_until,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Runs that take a moment each.
const TINY: &str = "--strategies 1 --venues 2 --orders 500 --window 50ms --delay fixed:1ms --idle park";

/// Runs a command with a folder of its own as `--out`, which must go well; what it printed.
fn made(out: &TempDir, line: &str) -> String {
    ok(output(&format!("{line} {FULL_REPORT} --out {}", out.path().display())))
}

fn ok(result: CommandResult) -> String {
    let lines = result.stderr.lines().filter(|line| !line.starts_with("warning: busy: "));
    assert_eq!(lines.collect::<Vec<_>>(), [""; 0], "no progress where there is no terminal");
    result.succeeds()
}

fn only(out: &TempDir) -> PathBuf {
    let mut folders = entries(out.path());
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

fn runs(sweep: &Value) -> Vec<Value> {
    list(&sweep["rows"]).iter().filter(|row| row["figures"].is_object()).cloned().collect()
}

fn narrow(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{text}");
    assert!(!text.contains('\u{1b}'), "no colors");
}

const SWEEP: &str = "sweep --isolation thread,process";

/// Starts an experiment of 2 points × 2 repeats and ends it by a signal while a run after the first
/// `finished` ones goes on.
fn killed(out: &TempDir, name: &str, experiment: &str, finished: usize) -> (PathBuf, Option<i32>) {
    let arguments = format!("{experiment} --repeats 2 --window 700ms --orders 500 --delay fixed:1ms");
    let load = format!("--venues 2 --strategies 1 --idle park --out {}", out.path().display());
    let running = Running::spawn(&mut command(&format!("{arguments} {load}")));
    let measured = || {
        let folder = entries(out.path()).pop().filter(|folder| folder.join("experiment.json").exists());
        folder.map_or(0, |folder| runs(&document(&folder, "experiment.json")).len())
    };
    wait_until("runs are finished", || measured() >= finished);
    let mut launcher = None;
    wait_until("another one runs", || {
        launcher = busy_maker(running.pid());
        launcher.is_some()
    });
    signal(running.pid(), name);
    let code = running.end().code;
    assert_nothing_left(launcher.unwrap());
    let folder = only(out);
    assert!((1..4).contains(&runs(&document(&folder, "experiment.json")).len()), "in the middle");
    (folder, code)
}

/// Resumes and checks that what was finished before was not made again.
fn resumed(folder: &Path) {
    let before = runs(&document(folder, "experiment.json"));
    narrow(&ok(output(&format!("resume {}", folder.display()))));
    let sweep = document(folder, "experiment.json");
    let after = runs(&sweep);
    assert_eq!((&sweep["state"], after.len()), (&"complete".into(), 4));
    assert!(before.iter().all(|run| after.contains(run)), "finished runs are kept as they were");
    let named: Vec<&str> = after.iter().map(|run| string(&run["folder"])).collect();
    for run in entries(folder).iter().filter(|path| path.is_dir()) {
        assert!(named.contains(&run.file_name().unwrap().to_str().unwrap()), "{run:?} is nobody's");
        let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "stamps");
        assert!(!entries(run).iter().any(is_log), "logs are gone once summed up");
    }
    let hashes: Vec<&Value> = after.iter().map(|run| &run["figures"]["schedule_hash"]).collect();
    let is_one = hashes[0] == hashes[1] && hashes[2] == hashes[3];
    assert!(is_one, "a repeat has one schedule for all: {hashes:?}");
    assert_ne!(hashes[0], hashes[2], "each repeat has its own");
}

#[test]
fn an_interrupted_sweep_goes_on() {
    let out = tempfile::tempdir().unwrap();
    let (folder, code) = killed(&out, "INT", SWEEP, 1);
    assert_eq!(code, Some(130));
    assert_eq!(document(&folder, "experiment.json")["state"], "interrupted");
    resumed(&folder);
}

#[test]
fn interrupted_comparison_compares_its_finished_pairs() {
    let out = tempfile::tempdir().unwrap();
    let (folder, code) = killed(&out, "INT", "compare --a isolation=thread --b isolation=process", 2);
    assert_eq!(code, Some(130));
    let compared = output(&format!("compare {} --json", folder.display())).json();
    let compared = &compared["comparisons"][0];
    assert!((1..=2).contains(&pairs_and_moved(compared)), "{compared:#}");
}

#[test]
fn a_killed_sweep_leaves_nothing_and_goes_on() {
    let out = tempfile::tempdir().unwrap();
    let (folder, code) = killed(&out, "KILL", SWEEP, 1);
    assert_eq!(code, None);
    resumed(&folder);
}

#[test]
fn a_sweep_over_rate_and_work_writes_its_tables() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "sweep --work 0ns,20us --rate 5k,10k --repeats 1 --window 60ms --delay fixed:1ms";
    let stdout = made(&out, &format!("{arguments} --venues 2 --strategies 1"));
    narrow(&stdout);
    for word in ["rt_venue p50", "too few orders for a p99.9", "5,000/s", "20000 ns"] {
        assert!(stdout.contains(word), "{word}:\n{stdout}");
    }
    let folder = only(&out);
    for file in ["sweep.md", "rows.csv", "rt_venue_p50.csv", "rt_venue_p99.csv", "rt_venue_p999.csv"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let csv = std::fs::read_to_string(folder.join("rows.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5, "a line for each run:\n{csv}");
    let orders: Vec<u64> = runs(&document(&folder, "experiment.json"))
        .iter()
        .map(|run| number(&run["figures"]["returned"]))
        .collect();
    assert_eq!(orders, [300, 600, 300, 600]);
    deleted(&folder);
}

#[test]
fn bill_has_comparable_row_for_each_level() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "bill --technique spsc-mux --isolation thread,process --repeats 5";
    let stdout = made(&out, &format!("{arguments} {TINY}"));
    narrow(&stdout);
    for word in
        ["isolation", "CPU s/M", "PSS", "preempted/s", "against thread's", "thread (A/A)", "all pairs"]
    {
        assert!(stdout.contains(word), "{word}:\n{stdout}");
    }
    // Above it stand announcements, more of them the more pairs are lost.
    let report = stdout.lines().skip_while(|line| !line.contains("against threads,"));
    // A table more for each placement of the cores.
    assert!((20..=80).contains(&report.count()), "the page has the rest:\n{stdout}");
    let folder = only(&out);
    let path = folder.display();
    let bill = output(&format!("bill {path} --json")).json();
    assert_eq!(bill["schema"], "bulkhead.bill/2");
    let rows = list(&bill["rows"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1]["variant"], "A/A");
    // Lost pairs were replaced, until five count: 15 repeats at most.
    let runs = number(&rows[0]["runs"]);
    assert!(rows[0]["reference"].is_null() && (5..=15).contains(&runs), "{runs} runs");
    assert_eq!(rows[2]["reference"]["isolation"], "thread");
    let differences = list(&rows[2]["differences"]).len();
    assert_eq!(differences, 12, "from due and from sending, raw, without steal and without stalls");
    for cost in ["cpu_s_per_million", "startup_ns", "page_faults", "context_switches"] {
        assert!(rows[2][cost].is_number(), "{cost}: {}", rows[2]);
    }
    assert!(folder.join("bill.csv").exists() && folder.join("bill.md").exists());
    let again = output(&format!("bill {path} --json")).json();
    assert_eq!(again, bill, "made again of what was measured");

    let levels = format!("compare {path} --a isolation=thread --b isolation=process");
    let compared = output(&format!("{levels} --json")).json();
    let [found] = list(&compared["comparisons"]) else { panic!("{compared:#}") };
    assert_eq!(pairs_and_moved(found), runs);
    let lines = list(&found["lines"]);
    assert_eq!(lines.len(), 33, "eleven measures at three percentiles");
    assert_eq!(lines[0]["measure"], "rt_venue_from_due");
    let known = ["equivalent", "faster", "slower", "cannot-tell"];
    assert!(lines.iter().all(|line| known.contains(&string(&line["verdict"]))));
    assert_eq!((&lines[2]["percentile"], &lines[2]["verdict"]), (&"p99.9".into(), &"cannot-tell".into()));
    assert!(!list(&lines[2]["why"]).is_empty(), "500 orders have no p99.9");
    narrow(&ok(output(&levels)));
    output(&format!("compare {path} {path}")).fails(2, &["the same runs", "name two"]);
    let unknown = output(&format!("compare {path} --a isolation=thread --b work=5us"));
    unknown.fails(2, &["--b work=5us", "the folder holds 0ns"]);
    deleted(&folder);
}

#[test]
fn runs_are_compared_and_unlike_ones_are_not() {
    let out = tempfile::tempdir().unwrap();
    for seed in [1, 2] {
        made(&out, &format!("run --seed {seed} {TINY}"));
    }
    let runs = entries(out.path());
    let [one, other] = [&runs[0], &runs[1]].map(|run| run.display());
    output(&format!("compare {one} {one}")).fails(2, &["the same runs", "name two"]);
    output(&format!("compare {one} {other}")).fails(3, &["other schedule", "the same --seed"]);
}

/// Deletes an experiment: everything in its folder is known to be bulkhead's.
fn deleted(folder: &Path) {
    let message = ok(output(&format!("delete {}", folder.display())));
    assert!(message.contains("deleted") && !folder.exists(), "{message}");
}

/// The pairs that were compared, and those that were left out because the machine moved its cores
/// during a run.
fn pairs_and_moved(comparison: &Value) -> u64 {
    let caveats = list(&comparison["caveats"]).iter().filter_map(Value::as_str);
    let moved = caveats.filter(|caveat| caveat.contains("the core-to-core floor changed during a run"));
    let moved: u64 = moved.map(|caveat| caveat.split(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    number(&comparison["pairs"]) + moved
}

#[test]
fn two_settings_are_measured_on_the_spot_in_alternation() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "compare --a isolation=thread --b isolation=process --repeats 2 --json";
    // Two repeats have no verdict, of which it warns.
    let made = output(&format!("{arguments} {TINY} --out {}", out.path().display())).succeeds();
    let report: Value = serde_json::from_str(&made).unwrap();
    let folder = only(&out);
    let sweep = document(&folder, "experiment.json");
    // Pairs that dropped out were replaced: three at most, or ten for an answer.
    let repeats = number(&sweep["repeats"]);
    assert!((2..=12).contains(&repeats), "{repeats} repeats");
    assert_eq!(pairs_and_moved(&report["comparisons"][0]), repeats);
    let begun: Vec<&str> = list(&sweep["rows"]).iter().map(|row| string(&row["figures"]["run"])).collect();
    assert!(begun.is_sorted(), "rows are in the order of their runs: {begun:?}");
    let first = |row: usize| string(&sweep["rows"][row]["name"]).chars().next();
    assert_eq!([0, 1, 2, 3].map(first), [Some('A'), Some('B'), Some('B'), Some('A')], "each begins in turn");
    for file in ["experiment.json", "compare.csv", "compare.md", "rows.csv"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    // Files of the user's stay, and so does the folder that they are in.
    std::fs::write(folder.join("thesis.md"), "mine").unwrap();
    std::fs::create_dir(folder.join("drafts")).unwrap();
    let kept = output(&format!("delete --dry-run {}", folder.display())).fails(1, &[]);
    assert_eq!(kept.stdout.lines().count(), 3, "{kept:?}");
    let shown = ok(output(&format!("compare {} {FULL_REPORT}", folder.display())));
    assert!(shown.contains("B (process)") && shown.contains("A (thread)"), "{shown}");
    assert!(shown.lines().last().unwrap().starts_with("Saved in "), "{shown}");
    // The first screen is the answer, one table and the next commands; the report has all of it.
    let screen = ok(output(&format!("compare {}", folder.display())));
    assert!(screen.lines().count() <= 24 && screen.starts_with("B (process) against"), "{screen}");
    let last: Vec<&str> = screen.lines().rev().take(3).collect();
    assert!(last[0].starts_with("full: ") && last[1].starts_with("next: "), "{screen}");
    let report = output(&format!("report {}", folder.display())).succeeds();
    assert_eq!(shown, format!("{report}{}\n", last[2]));
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("<title>Compare</title>") && !page.contains("<td>all</td>"));
}

#[test]
fn max_rate_search_ends_with_result() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "sweep --find-max-rate --p999 1ns --steps 2 --rate 100k --window 120ms --delay fixed:1ms";
    let stdout = made(&out, &format!("{arguments} --venues 2 --strategies 1"));
    narrow(&stdout);
    assert_eq!(stdout.matches("not held: p99.9").count(), 2, "every step is printed:\n{stdout}");
    assert_eq!(stdout.matches("0 of 2 runs").count(), 2, "the third would decide nothing:\n{stdout}");
    assert!(stdout.contains("even the lowest rate tried"), "{stdout}");
    let sweep = document(&only(&out), "experiment.json");
    let held: Vec<&Value> = list(&sweep["rows"]).iter().map(|row| &row["figures"]["held"]).collect();
    assert_eq!(held, [false, false], "a row is a rate that was tried");
}

#[test]
fn dry_run_prints_the_runs_and_makes_none() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "sweep --isolation thread,process --repeats 2 --dry-run";
    let message = made(&out, &format!("{arguments} {TINY}"));
    let names: Vec<&str> = message
        .lines()
        .filter(|line| line.contains("seed"))
        .filter_map(|line| line.split("isolation=").nth(1))
        .collect();
    assert_eq!(names, ["thread", "process", "process", "thread"], "{message}");
    assert!(message.contains("4 runs, about") && message.contains("nothing was measured"), "{message}");
    for (arguments, runs) in [
        ("compare --a isolation=thread --b isolation=process --repeats 3", 6),
        ("bill --technique spsc-mux --isolation thread,process --repeats 5", 15),
    ] {
        let message = made(&out, &format!("{arguments} --dry-run {TINY}"));
        assert!(
            message.contains(&format!("{runs} runs, about")) && message.contains("nothing was measured"),
            "{message}"
        );
        let replaced = "pairs that drop out are replaced: up to";
        assert!(message.contains(replaced), "{message}");
        assert_eq!(message.contains("warning: no verdicts: 3 repeats"), runs == 6, "{message}");
    }
    let contain = made(&out, "contain --technique spsc-mux --isolation process --fault kill --dry-run");
    assert!(contain.contains("nothing was measured"), "{contain}");
    output("bill /nowhere --dry-run").fails(2, &["--dry-run"]);
    assert!(entries(out.path()).is_empty());
}

/// A bill with the arm `native`: what was run stands in its rows.
#[test]
fn native_rows_name_technique_and_level() {
    let out = tempfile::tempdir().unwrap();
    let line = format!("bill --isolation native,thread,process --repeats 2 {TINY}");
    // Two repeats have no verdict, of which it warns.
    let stdout = output(&format!("{line} {FULL_REPORT} --out {}", out.path().display())).succeeds();
    for word in ["native (by value)", "native (by pointer)", "CPU s/M"] {
        assert!(stdout.contains(word), "{word}:\n{stdout}");
    }
    let folder = only(&out);
    let bill = output(&format!("bill {} --json", folder.display())).json();
    let rows = list(&bill["rows"]);
    let run =
        |row: &Value| [&row["isolation"], &row["technique"]].map(|text| text.as_str().unwrap().to_owned());
    let found: Vec<[String; 2]> = rows.iter().map(run).collect();
    let wanted = [
        ["thread", "spsc-mux"],
        ["thread", "spsc-mux"],
        ["thread", "rtrb-mux"],
        ["thread", "rtrb-pointer-mux"],
        ["process", "spsc-mux"],
    ];
    assert_eq!(found, wanted.map(|row| row.map(str::to_owned)));
    let has_cost: Vec<bool> = rows.iter().map(|row| row["adds_to_native"].is_object()).collect();
    assert_eq!(has_cost, [true, false, false, false, true], "the monolith itself has none");
    let csv = std::fs::read_to_string(folder.join("rows.csv")).unwrap();
    // A lost pair is replaced once.
    let made = csv.matches("rtrb-mux,thread,technique=rtrb-mux isolation=thread,").count();
    assert!((2..=3).contains(&made) && csv.starts_with("technique,isolation,"), "{made} runs");
}

#[test]
fn impossible_sweep_is_refused_before_running() {
    for (line, wanted) in [
        ("sweep --preset sead", "did you mean seed?"),
        ("sweep --technique ,", "--technique A,B"),
        ("sweep --isolation thread,proces", "did you mean process?"),
        ("sweep", "nothing to sweep over"),
        ("sweep --capacity 64,100", "capacity=100: --capacity 100: rings have a power of two"),
        ("sweep --find-max-rate", "--p999"),
        ("sweep --resume /nowhere", "/nowhere: no such folder"),
        ("sweep --resume /nowhere --seed 4", "--seed with --resume"),
        ("bill --work 0ns,1us", "launcher sweep --work"),
        ("bill --isolation native", "--isolation native,thread,process"),
        ("bill --isolation native,native,thread", "native is named twice"),
        ("bill /nowhere", "/nowhere"),
        ("compare", "--a and --b"),
        ("compare /nowhere /nothing", "/nowhere"),
        ("compare --a isolation=thread --b isolation=none", "isolation=none"),
    ] {
        output(line).fails(2, &[wanted]);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("experiment.json"), "{\"schema\": \"bulkhead.experiment/0\"}").unwrap();
    let path = folder.path().display();
    let resume = output(&format!("sweep --resume {path}"));
    resume.fails(1, &["bulkhead.experiment/0", "use the launcher that wrote it"]);
    output(&format!("compare {path} {path}")).fails(1, &["bulkhead.experiment/0"]);
}
