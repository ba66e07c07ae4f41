//! `launcher board` with real processes: untorn values, versions that add up, killed processes, and
//! complete clean-up.

use crate::common::{
    Launcher, Running, assert_exists, command, entries, list, newest_process, number, output, proc, signal,
    string, wait_until,
};
use serde_json::Value;

fn board(launcher: &Launcher, flags: &str) -> Running {
    let line = format!("board --json --out {} {flags}", launcher.out.path().display());
    Running::spawn(&mut command(&line)).with_maker()
}

/// Starts a board that lasts until it is interrupted, and waits until its writer has begun.
fn start(launcher: &Launcher, readers: u16) -> Running {
    let running = board(launcher, &format!("--mode poisson:2k --duration 60s --readers {readers}"));
    let has_process = |name: &str| newest_process(running.maker(), name, 0).is_some();
    wait_until("the board has its processes", || {
        has_process("board-writer") && has_process("board-reader-0")
    });
    // The writer spins once the board has started; before, it sleeps.
    let cpu_ticks = || {
        let stat = proc(running.maker_process("board-writer"), "stat");
        let ticks = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(11));
        ticks.and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0)
    };
    wait_until("the writer has begun", || cpu_ticks() >= 5);
    running
}

/// Checks that each reader read or missed every written version, and read none torn.
fn check(case: &Value) {
    let writes = number(&case["writer"]["writes"]);
    assert!(writes > 0, "{case:#}");
    for reader in list(&case["each"]) {
        let reading = &reader["reading"];
        let count = |key: &str| number(&reading[key]);
        assert_eq!((count("torn"), count("unseen")), (0, 0), "{reader:#}");
        assert_eq!(count("reads") + count("missed"), writes, "{reader:#}");
        let share = reading["missed_share"].as_f64().unwrap();
        assert!((share * writes as f64 - count("missed") as f64).abs() < 0.5, "{reader:#}");
        assert_eq!(reading["propagation"]["count"], reading["reads"], "every read is measured");
    }
    assert_eq!(case["writer"]["write"]["count"], case["writer"]["writes"]);
}

/// Adds up the counts of a measure in a table of latencies over time.
fn counted(csv: &str, measure: &str) -> u64 {
    let rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|cells| cells[1] == measure).map(|cells| cells[3].parse::<u64>().unwrap()).sum()
}

#[test]
fn board_values_are_consistent_at_every_level() {
    let launcher = Launcher::new();
    let flags = "--mode poisson:2k,stress --duration 600ms --readers 2 --size 64";
    let levels = "--isolation thread,sandbox --allow-weaker-sandbox";
    let result = board(&launcher, &format!("{flags} {levels}")).end();
    let boards = result.json();
    result.succeeds();
    let cases = list(&boards["cases"]);
    assert_eq!(cases.len(), 4);
    for case in cases {
        check(case);
        let is_timed = case["mode"] == "poisson:2000";
        assert_eq!(case["writer"]["from_due"].is_null(), !is_timed);
        assert!(!is_timed || case["scheduled"] == case["writer"]["writes"]);
    }
    let files = entries(&launcher.folder());
    let files: Vec<_> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    let (latencies, files): (Vec<&str>, Vec<&str>) =
        files.into_iter().partition(|name| name.starts_with("latency-"));
    assert_eq!(latencies.len(), 4 * 4, "a case has its writer, two readers, and all: {latencies:?}");
    let merged = std::fs::read_to_string(launcher.folder().join("latency-0.csv")).unwrap();
    let reads = number(&cases[0]["all"]["reads"]);
    assert_eq!(counted(&merged, "write"), number(&cases[0]["writer"]["writes"]));
    assert_eq!((counted(&merged, "read"), counted(&merged, "propagation")), (reads, reads));
    let slices = list(&cases[0]["timeline"]);
    assert_eq!(slices.iter().map(|slice| number(&slice["reads"])).sum::<u64>(), reads);
    assert_eq!(
        files,
        [
            "board.md",
            "experiment.json",
            "left-out.csv",
            "report.html",
            "rows.csv",
            "runs",
            "seed-reads.csv",
            "seed-writes.csv"
        ]
    );
}

#[test]
fn contained_board_values_are_consistent() {
    let Some(launcher) = Launcher::contained() else { return };
    let flags = "--mode poisson:2k --duration 600ms --readers 2 --isolation container";
    let result = board(&launcher, flags).end();
    let boards = result.json();
    result.succeeds();
    let [case] = list(&boards["cases"]) else { panic!("{boards:#}") };
    check(case);
}

#[test]
fn board_survives_deaths_and_readers_cannot_write() {
    let launcher = Launcher::new();
    let running = start(&launcher, 2);
    let (pid, writer, reader) =
        (running.maker(), running.maker_process("board-writer"), running.maker_process("board-reader-0"));
    // A reader's pages of the board cannot be written.
    let rights = |pid: u32| {
        let maps = proc(pid, "maps");
        let board = maps.lines().find(|line| line.ends_with(".board"))?;
        board.split_whitespace().nth(1).map(str::to_owned)
    };
    wait_until("both have mapped the board", || rights(writer).is_some() && rights(reader).is_some());
    assert_eq!((rights(writer).as_deref(), rights(reader).as_deref()), (Some("rw-s"), Some("r--s")));
    signal(writer, "KILL");
    wait_until("the writer has a successor", || newest_process(pid, "board-writer", writer).is_some());
    signal(reader, "KILL");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let result = running.interrupt().fails(130, &[]);
    let case = &result.json()["cases"][0];
    let writes = number(&case["writer"]["writes"]);
    for reader in list(&case["each"]) {
        let count = |key: &str| number(&reader["reading"][key]);
        assert!(count("torn") == 0 && count("reads") > 0, "{reader:#}");
        assert!(reader["name"] == "reader-0" || count("reads") + count("missed") == writes, "{reader:#}");
    }
    let deaths = list(&case["deaths"]);
    // `duration_ns` was written by the successor, the writer that exits normally.
    assert!(number(&case["duration_ns"]) > number(&deaths[0]["at_ns"]), "{case:#}");
    let deaths_and_successors: Vec<_> =
        deaths.iter().map(|death| (string(&death["process"]), death["succeeded"] == true)).collect();
    assert_eq!(deaths_and_successors, [("board-writer", true), ("board-reader-0", false)]);
}

#[test]
fn interrupted_board_saves_results_and_cleans_up() {
    let launcher = Launcher::new();
    let running = start(&launcher, 1);
    let boards = running.interrupt().fails(130, &[]).json();
    assert_eq!(boards["interrupted"], true);
    check(&boards["cases"][0]);
    assert_exists(&launcher.folder().join("report.html"));
    let runs = entries(&launcher.folder().join("runs"));
    output(&format!("inspect {}", runs[0].display())).succeeds();
    let running = start(&launcher, 1);
    signal(running.pid(), "KILL");
    running.end();
}

/// Also, a limit that it reaches is a warning.
#[test]
fn board_file_is_consistent_and_leaves_nothing() {
    let (launcher, folder) = (Launcher::new(), tempfile::tempdir().unwrap());
    let path = folder.path().canonicalize().unwrap();
    let limits = "--healthy write-rate=0,write-p50=off,write-p99=off,read-p95=off,read-rate=off";
    let flags = "--preset seed --mode stress --duration 100ms --readers 1";
    let result = board(&launcher, &format!("{flags} {limits} --board-folder {}", path.display())).end();
    let boards = result.json();
    result.succeeds();
    let [case] = list(&boards["cases"]) else { panic!("{boards:#}") };
    check(case);
    assert_eq!(string(&case["on"]), path.to_str().unwrap());
    assert!(entries(&path).is_empty());
    assert_eq!((number(&case["size_bytes"]), number(&case["readers"])), (96, 1));
    let [warning] = list(&case["warnings"]) else { panic!("{:#}", case["warnings"]) };
    assert_eq!((string(&warning["threshold"]), number(&warning["limit"])), ("write-rate", 0));
    let rate = case["writer"]["writes_per_s"].as_f64().unwrap().round();
    assert_eq!((string(&warning["unit"]), number(&warning["measured"])), ("per_s", rate as u64));
}

#[test]
fn invalid_board_input_is_named() {
    output("board --size 12").fails(2, &["--size 12"]);
    output("board --nodes 0:9").fails(2, &["--nodes 0:9", "no node 9"]);
}
