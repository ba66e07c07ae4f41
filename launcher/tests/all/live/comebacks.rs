//! Exchanges and engines that are killed and recover from their journals: nothing is lost, nothing
//! is done twice.

use super::exchange::plays_the_morning;
use crate::common::{
    Launcher, assert_nothing_left, command, in_place, signal, slow, text, wait_for, wait_until,
};
use serde_json::Value;
use std::process::Command;

pub const BASE: [&str; 12] = [
    "--venue",
    "book",
    "--venues",
    "1",
    "--exchange",
    "process",
    "--on-death",
    "restart",
    "--idle",
    "park",
    "--isolation",
    "process",
];

/// A run whose journals have several segments, the exchange's seven and the engine's twenty: what
/// rests stays open, and no more may be sent than may be open.
pub const MANY_SEGMENTS: [&str; 10] =
    ["--orders", "300k", "--max-open", "300k", "--window", "4s", "--journal", "process", "--liveness", "1s"];

/// The segment that a journal has once its first one is full: two are prepared ahead, also before
/// anything is written.
pub const BEHIND_THE_FIRST: &str = "log-00000004";

pub fn comebacks(summary: &Value) -> Vec<Value> {
    summary["comebacks"].as_array().unwrap().clone()
}

/// The exchange killed at these times, in milliseconds. Not again and again for ever: where coming
/// back takes longer than the time between two of them it would be killed on its way until nobody
/// starts it any more.
fn kills<const N: usize>(times: [u64; N]) -> String {
    times.map(|time| format!("kill:exchange@{time}ms")).join("; ")
}

/// The trades and the last book are those of the real exchange, however often its successor had to
/// take over.
#[test]
fn killed_exchange_reproduces_recorded_session() {
    let faults = kills([150, 350, 550, 1_000, 6_000]);
    let more = |journal| {
        [
            &["--exchange", "process", "--journal", journal, "--on-death", "restart", "--idle", "park"][..],
            &["--fault", &faults],
        ]
        .concat()
    };
    for (strategies, journal) in [(1, "process"), (8, "group")] {
        let summary = plays_the_morning(strategies, "process", &more(journal));
        let died = comebacks(&summary);
        // On a slow machine several kills are one restart.
        assert!(!died.is_empty(), "{died:#?}");
        let is_back =
            |one: &Value| one["detect_to_recovery_ns"].is_u64() && one["cause"] == "signal 9 (SIGKILL)";
        assert!(died.iter().all(is_back), "{died:#?}");
    }
}

/// Runs with these faults; every order must be returned whose strategy still ran, and all that were
/// at the exchange be answered. Gives what died.
fn loses_nothing(faults: &str, more: &[&str]) -> Vec<Value> {
    loses_nothing_with(faults, "process", more)
}

/// The same with that journal.
fn loses_nothing_with(faults: &str, journal: &str, more: &[&str]) -> Vec<Value> {
    let launcher = Launcher::new();
    let load = ["--strategies", "3", "--orders", "20k", "--window", "2s"];
    let how = ["--journal", journal, "--liveness", "2s", "--fault", faults];
    let summary = launcher.summary(&[&BASE[..], &load, &how, more].concat());
    let orders = &summary["orders"];
    let count = |key: &str| orders[key].as_u64().unwrap();
    assert_eq!(summary["outcome"]["ended"], "complete", "{orders}");
    let settled: u64 = ["returned", "cancelled", "orphaned", "lost"].map(count).iter().sum();
    assert_eq!(count("sent"), settled, "{orders}");
    assert!(summary["containment"].is_null() || summary["containment"]["lost_of_survivors"] == 0);
    let died = comebacks(&summary);
    for one in &died {
        assert!(one["detect_to_recovery_ns"].is_u64(), "{one:#}");
        assert_eq!(one["in_flight"], one["answered"], "{one:#}");
    }
    for role in ["engine", "exchange-0"] {
        let of_role = died.iter().filter(|one| one["role"] == role);
        let records: Vec<u64> = of_role.map(|one| one["records"].as_u64().unwrap()).collect();
        assert!(records.is_sorted() && records.first() != Some(&0), "{records:?}");
    }
    died
}

#[test]
fn hung_exchange_or_engine_comes_back_and_loses_nothing() {
    let died = loses_nothing("stop:exchange@200ms; stop:engine@1700ms", &[]);
    assert_eq!(died.len(), 2, "{died:#?}");
    for role in ["exchange-0", "engine"] {
        let hangs = |one: &&Value| one["role"] == role && one["cause"].as_str().unwrap().starts_with("hangs");
        assert_eq!(died.iter().filter(hangs).count(), 1, "{died:#?}");
    }
}

/// The engine's orders are the strategies': all of them are answered, once. `kills` does this at
/// drawn times, with the other journal.
#[test]
fn orders_answered_once_despite_repeated_engine_kills() {
    let faults = "kill:engine@300ms; kill:engine@700ms; kill:engine@715ms; kill:exchange@900ms; kill:strategy-1@900ms; \
                  kill:engine@1102ms; kill:engine@1500ms; kill:exchange@1501ms";
    for journal in if slow() { &["group", "process"][..] } else { &["group"] } {
        let died = loses_nothing_with(faults, journal, &[]);
        let engines = died.iter().filter(|one| one["role"] == "engine").count();
        // On a slow machine a kill finds the successor of the last one on its way, and both are one
        // restart.
        assert!((1..=5).contains(&engines), "{died:#?}");
        assert!(died.iter().all(|one| one["cause"] == "signal 9 (SIGKILL)"), "{died:#?}");
    }
}

/// Strategies that are driven by market data go on behind a death; every version of a touch that
/// triggered an order was written.
#[test]
fn market_data_goes_on_behind_a_death() {
    let died =
        loses_nothing(&kills([300, 700, 1_100, 1_500, 1_900, 6_000]), &["--strategy", "player,maker,taker"]);
    assert!(died.len() >= 2, "{died:#?}");
}

/// Its spare dies as well: a snapshot and the rest of the log are enough.
#[test]
fn exchange_recovers_from_snapshot_without_standby() {
    let launcher = Launcher::new();
    let flags = ["--orders", "500k", "--window", "18s", "--journal", "process", "--liveness", "1s"];
    let running = launcher.start(&[&BASE[..], &flags].concat());
    let folder = launcher.folders()[0].join("journal-venue-0");
    let has_snapshot = || {
        let mut files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        files.any(|file| file.file_name().to_string_lossy().starts_with("snapshot-"))
    };
    wait_until("a snapshot is there", has_snapshot);
    signal(running.process("spare:exchange-0"), "KILL");
    let living = running.process("exchange-0");
    signal(living, "KILL");
    wait_for("it is back", || in_place(running.pid(), "exchange-0", &[living]));
    let summary = launcher.interrupted(running);
    let died = comebacks(&summary);
    let count = |key: &str| died[0][key].as_u64().unwrap();
    assert!(died.len() == 1 && count("again") < count("records"), "{died:#?}");
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"]);
}

/// What the kernel says of a disk on which nothing can be prepared any more: the exchange, or the
/// engine, stops and says so, and the run ends.
#[test]
fn unwritable_journal_disk_ends_run_with_reason() {
    let alone = |script: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).args(arguments).output()
    };
    if !alone("mount -t tmpfs tmpfs /mnt", &[]).is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: mounting in a user namespace is not allowed here");
        return;
    }
    // Over the folder, when the run is under way: the next segment meets the other disk.
    let script = "out=$0; disk=$1; journal=$2; next=$3; shift 3; \"$@\" & pid=$!; \
        until [ -e \"$(echo $out/*/$journal)/$next\" ]; do sleep 0.01; done; \
        mount -t tmpfs -o \"$disk\" tmpfs $out/*/$journal; wait $pid";
    for (disk, says, role, journal) in [
        ("size=1m", "No space left on device", "exchange-0", "journal-venue-0"),
        ("ro", "Read-only file system", "engine", "journal-engine"),
    ] {
        let launcher = Launcher::new();
        let out = launcher.out.path().to_str().unwrap();
        let run = launcher.run(&[&BASE[..], &MANY_SEGMENTS].concat());
        let words: Vec<&str> = [run.get_program()]
            .into_iter()
            .chain(run.get_args())
            .map(|word| word.to_str().unwrap())
            .collect();
        let output = alone(script, &[&[out, disk, journal, BEHIND_THE_FIRST], &words[..]].concat()).unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{role} {disk}: {said}");
        assert!(said.contains(role) && said.contains("its journal fails"), "{role} {disk}: {said}");
        assert!(said.contains(says), "{role} {disk}: {said}");
    }
}

/// Without a journal the engine dies with it, and says so.
#[test]
fn without_a_journal_a_killed_exchange_ends_the_run() {
    let launcher = Launcher::new();
    let flags = ["--orders", "4k", "--window", "1s", "--fault", "kill:exchange@200ms"];
    let output = launcher.run(&[&BASE[..], &flags].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(said.contains("exchange"), "{said}");
}

/// A role that cannot recover is not restarted for ever: its journal is damaged while it is dead.
#[test]
fn a_damaged_journal_ends_the_run_with_its_reason() {
    let launcher = Launcher::new();
    let flags = ["--orders", "240k", "--window", "18s", "--journal", "process", "--liveness", "1s"];
    let running = launcher.start(&[&BASE[..], &flags].concat());
    let folder = launcher.folders()[0].join("journal-venue-0");
    let segment = || {
        std::fs::read_dir(&folder)
            .ok()?
            .filter_map(Result::ok)
            .map(|file| file.path())
            .filter(|path| path.metadata().is_ok_and(|data| data.len() > 0))
            .min()
    };
    wait_until("the journal is there", || segment().is_some());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (launcher_pid, pid) = (running.pid(), running.process("exchange-0"));
    // Stopped, so that it cannot be back before its journal is damaged.
    signal(pid, "STOP");
    let path = segment().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // A bit of a record in the middle: what is behind it was written, so it is not a torn tail.
    bytes[4096 + 77] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    // Its spare had read that before.
    signal(running.process("spare:exchange-0"), "KILL");
    signal(pid, "KILL");
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("journal is incomplete"), "{stderr}");
    assert_nothing_left(launcher_pid);
}

#[test]
fn faults_of_exchanges_that_are_not_there_are_refused() {
    for (flags, says) in [
        (&["--fault", "kill:exchange"][..], "--venue book"),
        (&["--venue", "book", "--fault", "kill:exchange"], "--exchange process"),
        (&["--venue", "book", "--exchange", "process", "--fault", "segv:exchange"], "only kill and stop"),
        (
            &["--venue", "book", "--exchange", "process", "--venues", "1", "--fault", "kill:exchange-1"],
            "venue-1",
        ),
        (&["--journal", "process"], "--venue book"),
    ] {
        let mut run: Command = command(&["run"]);
        let output = run.args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(text(&output.stderr).contains(says), "{flags:?}: {}", text(&output.stderr));
    }
}
