//! Exchanges and engines that are killed and recover from their journals: nothing is lost, nothing
//! is done twice.

use super::exchange::plays_the_morning;
use super::watching::once;
use crate::common::{
    Launcher, entries, in_place, list, number, output_of, signal, skip, slow, string, wait_for, wait_until,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const BASE: &str =
    "--venue book --venues 1 --exchange process --on-death restart --idle park --isolation process";

/// A run whose journals have several segments, the exchange's seven and the engine's twenty: what
/// rests stays open, and no more may be sent than may be open. It is slow enough for a busy
/// machine, and a test ends it long before its last segment.
pub const MANY_SEGMENTS: &str = "--orders 300k --max-open 300k --window 20s --journal process --liveness 10s";

/// The segment that a journal has once its first one is full: two are prepared ahead, also before
/// anything is written.
pub const BEHIND_THE_FIRST: &str = "log-00000004";

/// The exchange killed at these times, in milliseconds. Not again and again for ever: where coming
/// back takes longer than the time between two of them it would be killed on its way until nobody
/// starts it any more.
fn kills(times: &[u64]) -> String {
    let kills: Vec<String> = times.iter().map(|time| format!("kill:exchange@{time}ms")).collect();
    kills.join("; ")
}

/// The trades and the last book are those of the real exchange, however often its successor had to
/// take over.
#[test]
fn killed_exchange_reproduces_recorded_session() {
    let faults = kills(&[150, 350, 550, 1_000, 6_000]);
    for (strategies, journal) in [(1, "process"), (8, "group")] {
        // The last kill comes where the session takes that long.
        let more = format!(
            "--exchange process --journal {journal} --on-death restart --fault '{faults}' --allow-unfired"
        );
        let summary = plays_the_morning(strategies, "process", &more);
        let died = list(&summary["comebacks"]);
        // On a slow machine several kills are one restart.
        assert!(!died.is_empty(), "{died:#?}");
        let is_back =
            |one: &Value| one["detect_to_recovery_ns"].is_u64() && one["cause"] == "signal 9 (SIGKILL)";
        assert!(died.iter().all(is_back), "{died:#?}");
    }
}

/// Checks that each order has ended once in a run with deaths, and that all that were at a role
/// that died were answered.
pub fn assert_settled(summary: &Value) {
    let orders = &summary["orders"];
    let settled = ["returned", "cancelled", "orphaned", "lost"].map(|count| number(&orders[count]));
    assert_eq!(number(&orders["sent"]), settled.iter().sum::<u64>(), "{orders}");
    assert_eq!(orders["duplicated"], 0, "{orders}");
    assert!(summary["containment"].is_null() || summary["containment"]["lost_of_survivors"] == 0);
    let died = list(&summary["comebacks"]);
    assert!(died.iter().all(|one| one["in_flight"] == one["answered"]), "{died:#?}");
}

/// Runs with these faults; every order must be returned whose strategy still ran, and all that were
/// at the exchange be answered. Gives what died.
fn loses_nothing(faults: &str, more: &str) -> Vec<Value> {
    let summary = Launcher::new().summary(&format!(
        "{BASE} --strategies 3 --orders 20k --window 2s --liveness 2s --fault '{faults}' --allow-unfired {more}"
    ));
    assert_eq!(summary["outcome"]["ended"], "complete", "{}", summary["orders"]);
    assert_settled(&summary);
    let died = list(&summary["comebacks"]);
    assert!(died.iter().all(|one| one["detect_to_recovery_ns"].is_u64()), "{died:#?}");
    for role in ["engine", "exchange-0"] {
        let of_role = died.iter().filter(|one| one["role"] == role);
        let records: Vec<u64> = of_role.map(|one| number(&one["records"])).collect();
        assert!(records.is_sorted() && records.first() != Some(&0), "{records:?}");
    }
    died.to_vec()
}

#[test]
fn hung_exchange_or_engine_comes_back_and_loses_nothing() {
    let died = loses_nothing("stop:exchange@200ms; stop:engine@1700ms", "--journal process");
    assert_eq!(died.len(), 2, "{died:#?}");
    for role in ["exchange-0", "engine"] {
        let hangs = |one: &&Value| one["role"] == role && string(&one["cause"]).starts_with("hangs");
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
        let died = loses_nothing(faults, &format!("--journal {journal}"));
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
    let launcher = Launcher::new();
    let running = launcher.start(&format!(
        "{BASE} --strategies 3 --strategy player,maker,taker --orders 60k --window 60s --journal process \
         --liveness 10s"
    ));
    let await_exchange = |killed: &[u32]| {
        wait_for("the exchange is in its duty cycles", || in_place(running.pid(), "exchange-0", killed))
    };
    let folder = launcher.folder().display().to_string();
    let settled = || once(&folder)["settled"].as_u64().unwrap_or(0);
    let mut killed = Vec::new();
    for _ in 0..4 {
        killed.push(await_exchange(&killed));
        let before = settled();
        wait_until("it trades", || settled() > before + 100);
        signal(*killed.last().unwrap(), "KILL");
    }
    await_exchange(&killed);
    let before = settled();
    wait_until("it trades again", || settled() > before + 100);
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
    assert_settled(&summary);
    let died = list(&summary["comebacks"]);
    assert_eq!(died.len(), killed.len(), "{died:#?}");
    assert!(died.iter().all(|one| one["detect_to_recovery_ns"].is_u64()), "{died:#?}");
    let records: Vec<u64> = died.iter().map(|one| number(&one["records"])).collect();
    assert!(records.is_sorted() && records[0] > 0, "{records:?}");
}

/// The snapshots of a journal, in order.
pub fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let all = if folder.exists() { entries(folder) } else { Vec::new() };
    let is_one = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("snapshot-");
    all.into_iter().filter(is_one).collect()
}

/// Its spare dies as well: a snapshot and the rest of the log are enough.
#[test]
fn exchange_recovers_from_snapshot_without_standby() {
    let launcher = Launcher::new();
    let running =
        launcher.start(&format!("{BASE} --orders 500k --window 18s --journal process --liveness 1s"));
    let folder = launcher.folder().join("journal-venue-0");
    wait_until("a snapshot is there", || !snapshots(&folder).is_empty());
    signal(running.process("spare:exchange-0"), "KILL");
    let living = running.process("exchange-0");
    signal(living, "KILL");
    wait_for("it is back", || in_place(running.pid(), "exchange-0", &[living]));
    let summary = launcher.interrupted(running);
    let [died] = list(&summary["comebacks"]) else { panic!("{:#}", summary["comebacks"]) };
    assert!(number(&died["again"]) < number(&died["records"]), "{died:#?}");
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"]);
}

/// What the kernel says of a disk on which nothing can be prepared any more: the exchange, or the
/// engine, stops and says so, and the run ends.
#[test]
fn unwritable_journal_disk_ends_run_with_reason() {
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command
    };
    if output_of(&mut alone("mount -t tmpfs tmpfs /mnt")).code != Some(0) {
        return skip("mounting in a user namespace is not allowed here");
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
        let run = launcher.run(&format!("{BASE} {MANY_SEGMENTS}"));
        let mut command = alone(script);
        command.arg(launcher.out.path()).args([disk, journal, BEHIND_THE_FIRST]);
        command.arg(run.get_program()).args(run.get_args());
        output_of(&mut command).fails(1, &[role, "its journal fails", says]);
    }
}

/// Without a journal the engine dies with it, and says so.
#[test]
fn without_a_journal_a_killed_exchange_ends_the_run() {
    let flags = format!("{BASE} --orders 4k --window 1s --fault kill:exchange@200ms");
    let result = Launcher::new().result(&flags);
    assert!(result.code == Some(1) && result.said().contains("exchange"), "{}", result.said());
}

/// Flips a bit of a file, in a byte that follows from its length.
pub fn flip_bit(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// A role that cannot recover is not restarted for ever: its journal is damaged while it is dead.
#[test]
fn a_damaged_journal_ends_the_run_with_its_reason() {
    let launcher = Launcher::new();
    let running =
        launcher.start(&format!("{BASE} --orders 240k --window 18s --journal process --liveness 1s"));
    let folder = launcher.folder().join("journal-venue-0");
    let segment = || {
        let paths = std::fs::read_dir(&folder).ok()?.flatten().map(|file| file.path());
        paths.filter(|path| path.metadata().is_ok_and(|data| data.len() > 0)).min()
    };
    wait_until("the journal is there", || segment().is_some());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = running.process("exchange-0");
    // Stopped, so that it cannot be back before its journal is damaged.
    signal(pid, "STOP");
    // A record in the middle: later ones were written, so it is not a torn tail.
    flip_bit(&segment().unwrap(), |_| 4096 + 77);
    // Its spare had read that before.
    signal(running.process("spare:exchange-0"), "KILL");
    signal(pid, "KILL");
    running.end().fails(1, &["journal is incomplete"]);
}
