//! Killed exchanges and engines recover from their journals and neither lose nor duplicate orders.

use super::exchange::play_recorded_morning;
use super::watching::watch_once;
use crate::common::{
    Launcher, RECOVERABLE, entries, list, number, output_of, serving_process, signal, skip, wait_for,
    wait_until,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A run whose journals have several segments, the exchange's two and the engine's six.
/// `--max-open` allows all orders, since resting orders stay open. Its rate suits a busy machine;
/// tests end it long before its last segment.
pub const MANY_SEGMENTS: &str = "--orders 100k --max-open 100k --window 10s --journal process --liveness 10s";

/// The segment that exists once a journal's first one is full: two are always prepared ahead.
pub const SEGMENT_AFTER_FIRST: &str = "log-00000004";

/// Formats faults that kill the exchange at these times, in milliseconds. Unlike a repeated fault,
/// they end, so an exchange that recovers slowly is not killed until it is given up.
fn kills(times: &[u64]) -> String {
    let kills: Vec<String> = times.iter().map(|time| format!("kill:exchange@{time}ms")).collect();
    kills.join("; ")
}

/// The trades and the last book equal those of the real exchange after any number of restarts.
#[test]
fn killed_exchange_reproduces_recorded_session() {
    let faults = kills(&[150, 350, 550, 1_000, 6_000]);
    // The last kill only fires if the session takes that long.
    let flags =
        format!("--exchange process --journal group --on-death restart --fault '{faults}' --allow-unfired");
    let summary = play_recorded_morning(8, "process", &flags);
    let restarts = list(&summary["comebacks"]);
    // On a slow machine several kills may cause one restart.
    assert!(!restarts.is_empty(), "{restarts:#?}");
    let has_recovered = |restart: &Value| {
        restart["detect_to_recovery_ns"].is_u64() && restart["cause"] == "signal 9 (SIGKILL)"
    };
    assert!(restarts.iter().all(has_recovered), "{restarts:#?}");
    let steps = ["restarted_ns", "begun_ns", "replayed_ns", "running_ns"];
    let has_steps_in_order = |restart: &Value| {
        let reached = steps.map(|step| restart["steps"][step].as_u64());
        reached.iter().all(Option::is_some)
            && reached.is_sorted()
            && restart["detected_ns"].as_u64() <= reached[0]
    };
    assert!(restarts.iter().all(has_steps_in_order), "{restarts:#?}");
}

/// Checks in a run with deaths that each order has ended once, and that all orders in flight at a
/// dead role were answered.
pub fn assert_settled(summary: &Value) {
    let orders = &summary["orders"];
    let settled = ["returned", "cancelled", "orphaned", "lost"].map(|count| number(&orders[count]));
    assert_eq!(number(&orders["sent"]), settled.iter().sum::<u64>(), "{orders}");
    assert_eq!(orders["duplicated"], 0, "{orders}");
    assert!(summary["containment"].is_null() || summary["containment"]["lost_of_survivors"] == 0);
    let restarts = list(&summary["comebacks"]);
    assert!(restarts.iter().all(|restart| restart["in_flight"] == restart["answered"]), "{restarts:#?}");
}

/// Strategies driven by market data continue after the exchange was killed. The merge checks that
/// every top-of-book version that triggered an order was written.
#[test]
fn market_data_continues_after_exchange_deaths() {
    let launcher = Launcher::new();
    let running = launcher.start(&format!(
        "{RECOVERABLE} --strategies 3 --strategy player,maker,taker --orders 60k --window 60s --journal process \
         --liveness 10s"
    ));
    let wait_for_exchange = |killed: &[u32]| {
        wait_for("the exchange is in its duty cycles", || {
            serving_process(running.pid(), "exchange-0", killed)
        })
    };
    let folder = launcher.folder().display().to_string();
    let settled = || watch_once(&folder)["settled"].as_u64().unwrap_or(0);
    let mut killed = Vec::new();
    for _ in 0..2 {
        killed.push(wait_for_exchange(&killed));
        let before = settled();
        wait_until("orders are settled", || settled() > before + 100);
        signal(*killed.last().unwrap(), "KILL");
    }
    wait_for_exchange(&killed);
    let before = settled();
    wait_until("orders are settled again", || settled() > before + 100);
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
    assert_settled(&summary);
    let restarts = list(&summary["comebacks"]);
    assert_eq!(restarts.len(), killed.len(), "{restarts:#?}");
    assert!(restarts.iter().all(|restart| restart["detect_to_recovery_ns"].is_u64()), "{restarts:#?}");
    let records: Vec<u64> = restarts.iter().map(|restart| number(&restart["records"])).collect();
    assert!(records.is_sorted() && records[0] > 0, "{records:?}");
}

/// Returns the snapshots of a journal, oldest first.
pub fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let all = if folder.exists() { entries(folder) } else { Vec::new() };
    let is_snapshot = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("snapshot-");
    all.into_iter().filter(is_snapshot).collect()
}

/// Its standby is killed as well: a snapshot and the rest of the log suffice.
#[test]
fn exchange_recovers_from_snapshot_without_standby() {
    let launcher = Launcher::new();
    let running =
        launcher.start(&format!("{RECOVERABLE} --orders 100k --window 10s --journal process --liveness 1s"));
    let folder = launcher.folder().join("journal-venue-0");
    wait_until("a snapshot exists", || !snapshots(&folder).is_empty());
    signal(running.process("spare:exchange-0"), "KILL");
    let running_exchange = running.process("exchange-0");
    signal(running_exchange, "KILL");
    wait_for("the exchange has recovered", || {
        serving_process(running.pid(), "exchange-0", &[running_exchange])
    });
    let summary = launcher.interrupted(running);
    let [restart] = list(&summary["comebacks"]) else { panic!("{:#}", summary["comebacks"]) };
    assert!(number(&restart["again"]) < number(&restart["records"]), "{restart:#?}");
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"]);
}

/// On a disk without space the engine stops with the kernel's error, and the run ends.
#[test]
fn full_journal_disk_ends_run_with_reason() {
    let in_mount_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command
    };
    if output_of(&mut in_mount_namespace("mount -t tmpfs tmpfs /mnt")).code != Some(0) {
        return skip("mounting in a user namespace is not allowed here");
    }
    // Mounted over the folder during the run, so that the next segment is on the other disk.
    let script = "out=$0; disk=$1; journal=$2; next=$3; shift 3; \"$@\" & pid=$!; \
        until [ -e \"$(echo $out/*/$journal)/$next\" ]; do sleep 0.01; done; \
        mount -t tmpfs -o \"$disk\" tmpfs $out/*/$journal; wait $pid";
    // The engine's first segment is full long before the exchange's.
    let launcher = Launcher::new();
    let run = launcher.run(&format!("{RECOVERABLE} {MANY_SEGMENTS}"));
    let mut command = in_mount_namespace(script);
    command.arg(launcher.out.path()).args(["size=1m", "journal-engine", SEGMENT_AFTER_FIRST]);
    command.arg(run.get_program()).args(run.get_args());
    output_of(&mut command).fails(1, &["engine", "its journal fails", "No space left on device"]);
}

/// Flips a bit of a file, in the byte at the offset that `at` returns for the file's length.
pub fn flip_bit(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// A role that cannot recover is not restarted forever: its journal is damaged while it is stopped.
#[test]
fn damaged_journal_ends_run_with_reason() {
    let launcher = Launcher::new();
    let running =
        launcher.start(&format!("{RECOVERABLE} --orders 40k --window 40s --journal process --liveness 1s"));
    let folder = launcher.folder().join("journal-venue-0");
    let segment = || {
        let paths = std::fs::read_dir(&folder).ok()?.flatten().map(|file| file.path());
        paths.filter(|path| path.metadata().is_ok_and(|data| data.len() > 0)).min()
    };
    wait_until("the journal exists", || segment().is_some());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = running.process("exchange-0");
    // Stopped, so that it cannot recover before its journal is damaged.
    signal(pid, "STOP");
    // A record in the middle: later ones were written, so it is not a torn tail.
    flip_bit(&segment().unwrap(), |_| 4096 + 77);
    // Its standby has already read the record.
    signal(running.process("spare:exchange-0"), "KILL");
    signal(pid, "KILL");
    running.end().fails(1, &["journal is incomplete"]);
}
