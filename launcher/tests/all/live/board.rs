//! `launcher board` with real processes: nothing torn, versions that add up, deaths, and nothing
//! left behind.

use crate::common::{Launcher, Running, assert_nothing_left, family, signal, text, wait_until};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

fn command(launcher: &Launcher, flags: &[&str]) -> Command {
    let mut command =
        crate::common::command(&["board", "--json", "--out", launcher.out.path().to_str().unwrap()]);
    command.args(flags);
    command
}

fn start(launcher: &Launcher, flags: &[&str]) -> Running {
    let child = command(launcher, flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = Running { child };
    wait_until("the board has its processes", || {
        has(&running, "board-writer") && has(&running, "board-reader-0")
    });
    running
}

fn has(running: &Running, name: &str) -> bool {
    family(running.pid()).iter().any(|(_, line)| line.contains(&format!("role {name} ")))
}

/// Each reader's versions add up to what was written; none was torn.
fn check(case: &Value, but: &[&str]) {
    let writes = case["writer"]["writes"].as_u64().unwrap();
    assert!(writes > 0, "{case:#}");
    for reader in case["each"].as_array().unwrap() {
        let reading = &reader["reading"];
        let of = |key: &str| reading[key].as_u64().unwrap();
        assert_eq!(of("torn"), 0, "{reader:#}");
        assert_eq!(of("reads") + of("missed") + of("unseen"), writes, "{reader:#}");
        assert!(of("unseen") == 0 || but.contains(&reader["name"].as_str().unwrap()), "{reader:#}");
        assert_eq!(reading["propagation"]["count"], reading["reads"], "every read is measured");
    }
    assert_eq!(case["writer"]["write"]["count"], case["writer"]["writes"]);
}

#[test]
fn board_values_are_consistent_at_every_level() {
    let launcher = Launcher::new();
    let flags = ["--mode", "poisson:2k,stress", "--duration", "150ms", "--readers", "2", "--size", "64"];
    let levels = ["--isolation", "thread,process,sandbox", "--allow-weaker-sandbox"];
    let output = command(&launcher, &[&flags[..], &levels].concat()).output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let boards: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cases = boards["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        check(case, &[]);
        let is_timed = case["mode"] == "poisson:2000";
        assert_eq!(case["writer"]["from_due"].is_null(), !is_timed);
        assert!(!is_timed || case["scheduled"] == case["writer"]["writes"]);
    }
    let folder = &launcher.folders()[0];
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["board.json", "board.md", "left-out.csv", "report.html", "seed-rows.csv"]);
}

#[test]
fn deaths_harm_nobody_else_and_a_reader_cannot_write() {
    let launcher = Launcher::new();
    let running = start(&launcher, &["--mode", "poisson:2k", "--duration", "60s", "--readers", "2"]);
    let (pid, writer, reader) =
        (running.pid(), running.process("board-writer"), running.process("board-reader-0"));
    // The board is the memory without a name; who reads it has pages that cannot be written, and no
    // descriptor of it.
    let board = |pid: u32| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let rights: Vec<String> = maps
            .lines()
            .filter(|line| line.contains(".board (deleted)"))
            .filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned))
            .collect();
        rights
    };
    wait_until("both have mapped it", || !board(writer).is_empty() && !board(reader).is_empty());
    assert_eq!((board(writer), board(reader)), (vec!["rw-s".to_owned()], vec!["r--s".to_owned()]));
    // It spins from the start on; before, it sleeps.
    let spent = || {
        let stat = fs::read_to_string(format!("/proc/{writer}/stat")).unwrap_or_default();
        let fields =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().nth(11).unwrap_or("0").to_owned());
        fields.and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0)
    };
    wait_until("it has begun", || spent() >= 5);
    signal(writer, "KILL");
    let of_writer = || family(pid).into_iter().find(|(_, line)| line.contains("role board-writer "));
    wait_until("a successor", || of_writer().is_some_and(|(found, _)| found != writer));
    signal(reader, "KILL");
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal(pid, "INT");
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    let boards: Value = serde_json::from_str(&stdout).unwrap();
    let case = &boards["cases"][0];
    let writes = case["writer"]["writes"].as_u64().unwrap();
    for reader in case["each"].as_array().unwrap() {
        let of = |key: &str| reader["reading"][key].as_u64().unwrap();
        assert!(of("torn") == 0 && of("reads") > 0, "{reader:#}");
        assert!(reader["name"] == "reader-0" || of("reads") + of("missed") == writes, "{reader:#}");
    }
    // Written by the writer that exits normally: the successor.
    assert!(case["duration_ns"].as_u64() > case["deaths"][0]["at_ns"].as_u64(), "{case:#}");
    let deaths = case["deaths"].as_array().unwrap();
    let died: Vec<_> =
        deaths.iter().map(|death| (death["process"].as_str(), death["succeeded"].as_bool())).collect();
    assert_eq!(died, [(Some("board-writer"), Some(true)), (Some("board-reader-0"), Some(false))]);
    assert_nothing_left(pid);
}

#[test]
fn interrupted_board_saves_results_and_cleans_up() {
    for (how, code) in [("INT", Some(130)), ("KILL", None)] {
        let launcher = Launcher::new();
        let running = start(&launcher, &["--mode", "poisson:2k", "--duration", "60s", "--readers", "1"]);
        let pid = running.pid();
        std::thread::sleep(std::time::Duration::from_millis(100));
        signal(pid, how);
        let (found, stdout, stderr) = running.end();
        assert_eq!(found, code, "{how}: {stderr}");
        if how == "INT" {
            let boards: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(boards["interrupted"], true);
            check(&boards["cases"][0], &[]);
            assert!(launcher.folders()[0].join("report.html").exists());
        }
        assert_nothing_left(pid);
    }
}
