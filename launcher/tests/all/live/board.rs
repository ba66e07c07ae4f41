//! `launcher board` with real processes: nothing torn, versions that add up, deaths, and nothing
//! left behind.

use crate::common::{
    Launcher, Running, assert_exists, command, entries, list, newest, number, output, proc, signal, string,
    wait_until,
};
use serde_json::Value;

fn board(launcher: &Launcher, flags: &str) -> Running {
    Running::spawn(&mut command(&format!("board --json --out {} {flags}", launcher.out.path().display())))
}

/// Starts a board that lasts until it is ended, and waits until its writer has begun.
fn start(launcher: &Launcher, readers: u16) -> Running {
    let running = board(launcher, &format!("--mode poisson:2k --duration 60s --readers {readers}"));
    let has = |name: &str| newest(running.pid(), name, 0).is_some();
    wait_until("the board has its processes", || has("board-writer") && has("board-reader-0"));
    // It spins from the start on; before, it sleeps.
    let spent = || {
        let stat = proc(running.process("board-writer"), "stat");
        let ticks = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(11));
        ticks.and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0)
    };
    wait_until("it has begun", || spent() >= 5);
    running
}

/// Each reader's versions add up to what was written; none was torn.
fn check(case: &Value) {
    let writes = number(&case["writer"]["writes"]);
    assert!(writes > 0, "{case:#}");
    for reader in list(&case["each"]) {
        let reading = &reader["reading"];
        let of = |key: &str| number(&reading[key]);
        assert_eq!((of("torn"), of("unseen")), (0, 0), "{reader:#}");
        assert_eq!(of("reads") + of("missed"), writes, "{reader:#}");
        assert_eq!(reading["propagation"]["count"], reading["reads"], "every read is measured");
    }
    assert_eq!(case["writer"]["write"]["count"], case["writer"]["writes"]);
}

#[test]
fn board_values_are_consistent_at_every_level() {
    let launcher = Launcher::new();
    let flags = "--mode poisson:2k,stress --duration 150ms --readers 2 --size 64";
    let levels = "--isolation thread,process,sandbox --allow-weaker-sandbox";
    let result = board(&launcher, &format!("{flags} {levels}")).end();
    let boards = result.json();
    result.succeeds();
    let cases = list(&boards["cases"]);
    assert_eq!(cases.len(), 6);
    for case in cases {
        check(case);
        let is_timed = case["mode"] == "poisson:2000";
        assert_eq!(case["writer"]["from_due"].is_null(), !is_timed);
        assert!(!is_timed || case["scheduled"] == case["writer"]["writes"]);
    }
    let files = entries(&launcher.folder());
    let files: Vec<_> = files.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(
        files,
        ["board.md", "experiment.json", "left-out.csv", "report.html", "rows.csv", "seed-rows.csv"]
    );
}

#[test]
fn deaths_harm_nobody_else_and_a_reader_cannot_write() {
    let launcher = Launcher::new();
    let running = start(&launcher, 2);
    let (pid, writer, reader) =
        (running.pid(), running.process("board-writer"), running.process("board-reader-0"));
    // The board is the memory without a name; who reads it has pages that cannot be written, and no
    // descriptor of it.
    let rights = |pid: u32| {
        let maps = proc(pid, "maps");
        let board = maps.lines().find(|line| line.contains(".board (deleted)"))?;
        board.split_whitespace().nth(1).map(str::to_owned)
    };
    wait_until("both have mapped it", || rights(writer).is_some() && rights(reader).is_some());
    assert_eq!((rights(writer).as_deref(), rights(reader).as_deref()), (Some("rw-s"), Some("r--s")));
    signal(writer, "KILL");
    wait_until("a successor", || newest(pid, "board-writer", writer).is_some());
    signal(reader, "KILL");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let result = running.interrupt().fails(130, &[]);
    let case = &result.json()["cases"][0];
    let writes = number(&case["writer"]["writes"]);
    for reader in list(&case["each"]) {
        let of = |key: &str| number(&reader["reading"][key]);
        assert!(of("torn") == 0 && of("reads") > 0, "{reader:#}");
        assert!(reader["name"] == "reader-0" || of("reads") + of("missed") == writes, "{reader:#}");
    }
    let deaths = list(&case["deaths"]);
    // Written by the writer that exits normally: the successor.
    assert!(number(&case["duration_ns"]) > number(&deaths[0]["at_ns"]), "{case:#}");
    let died: Vec<_> =
        deaths.iter().map(|death| (string(&death["process"]), death["succeeded"] == true)).collect();
    assert_eq!(died, [("board-writer", true), ("board-reader-0", false)]);
}

#[test]
fn interrupted_board_saves_results_and_cleans_up() {
    let launcher = Launcher::new();
    let running = start(&launcher, 1);
    let boards = running.interrupt().fails(130, &[]).json();
    assert_eq!(boards["interrupted"], true);
    check(&boards["cases"][0]);
    assert_exists(&launcher.folder().join("report.html"));
    let running = start(&launcher, 1);
    signal(running.pid(), "KILL");
    running.end();
}

#[test]
fn bad_input_of_a_board_is_named() {
    output("board --size 12").fails(2, &["--size 12"]);
}
