//! Runs with journals whose logs are moved to disk while they last: a restarted role finds what its
//! log says, in memory and in the file.

use super::comebacks::{BASE, comebacks};
use super::spill::{honest, points, spiller, summary};
use crate::common::{Launcher, Running, assert_nothing_left, newest, segments, signal, wait_for, wait_until};
use protocol::spill::CHUNK_BYTES;
use protocol::stamps::Point;
use protocol::status::{STATUS_WORDS, ThreadStatus};
use shm::memory::header::HEADER_WORDS;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use system::process;

/// Four chunks for each log, and some more for the engine's.
const SPILL: &str = "--spill=8MiB";

/// Four seconds of orders, in which the rings of engine and exchange are written over.
fn flags_of<'a>(isolation: &'a str, journal: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let (base, process) = BASE.split_at(BASE.len() - 2);
    assert_eq!(process, ["--isolation", "process"]);
    let load = ["--orders", "40k", "--window", "4s", "--liveness", "3s", "--allow-weaker-sandbox"];
    [base, &load, &["--isolation", isolation, "--journal", journal], more].concat()
}

fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    flags_of("process", "process", more)
}

/// Kills the spiller repeatedly during the run.
fn kill_spillers(running: &Running, times: u32) {
    let (mut last, mut kills) = (0, 0);
    let next = |last| match newest(running.pid(), "spill", last) {
        None if running.has_ended() => Some(None),
        found => found.map(Some),
    };
    while kills < times
        && let Some(found) = wait_for("there is a spiller, or the run is over", || next(last))
    {
        // It may be ending with its run.
        last = found;
        process::pidfd_open(last).and_then(|pidfd| process::kill(pidfd.as_fd())).ok();
        kills += 1;
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(kills > 2, "{kills} kills");
}

/// That every order was answered once and everybody who died came back; `false`: the machine kept
/// the spiller waiting, and the run says so.
fn is_whole(folder: &Path) -> bool {
    let (summary, lost) = honest(folder);
    assert_eq!(summary["outcome"]["ended"], "complete", "{summary:#}");
    let orders = &summary["orders"];
    let count = |key: &str| orders[key].as_u64().unwrap();
    let settled: u64 = ["returned", "cancelled", "orphaned", "lost"].map(count).iter().sum();
    for one in comebacks(&summary) {
        assert!(one["detect_to_recovery_ns"].is_u64() && one["cause"] == "signal 9 (SIGKILL)", "{one:#}");
        assert!(lost || one["in_flight"] == one["answered"], "{one:#}");
    }
    if !lost {
        assert_eq!(count("sent"), settled, "{orders}");
        let points = points(folder);
        let sent = points.iter().filter(|((_, point), _)| *point == Point::StrategySend as u8);
        assert_eq!(sent.map(|(_, records)| records).sum::<u64>(), count("sent"));
    }
    !lost
}

/// That the rings of engine and exchange were written over: there is more in their files.
fn is_written_over(folder: &Path) {
    for log in ["engine", "exchange-0"] {
        let bytes = std::fs::metadata(folder.join(format!("{log}.stamps"))).unwrap().len();
        assert!(bytes > 5 * CHUNK_BYTES, "{log}: {bytes} bytes were more than its ring");
    }
}

/// With one strategy everything that is logged follows from its orders, but for the gaps of the
/// threads: whichever process dies.
#[test]
fn journaled_spilled_run_keeps_counts_despite_kills() {
    let launcher = Launcher::new();
    let one = ["--strategies", "1"];
    let whole = launcher.start(&flags(&one)).end();
    assert_eq!(whole.0, Some(0), "{}", whole.2);
    let wanted = points(&launcher.folders()[0]);
    let kills =
        "kill:engine@900ms; kill:exchange@1400ms; kill:engine@2s; kill:exchange@2001ms; kill:engine@2900ms";
    for faults in [&[][..], &["--fault", kills]] {
        let running = launcher.start(&flags(&[&one, &[SPILL][..], faults].concat()));
        let pid = running.pid();
        if !faults.is_empty() {
            kill_spillers(&running, 8);
        }
        let (code, _, stderr) = running.end();
        let folder = launcher.folders().pop().unwrap();
        if is_whole(&folder) {
            assert_eq!(code, Some(0), "{stderr}");
            assert_eq!(points(&folder), wanted, "{faults:?}");
            is_written_over(&folder);
        }
        assert_nothing_left(pid);
    }
}

/// Alone and together.
#[test]
fn orders_answered_once_despite_kills_of_all_roles() {
    let kills = "kill:engine@800ms; kill:exchange@1200ms; kill:strategy-1@1500ms; kill:engine@1502ms; \
                 kill:engine@2300ms; kill:exchange@2301ms; kill:strategy-0@2302ms; kill:exchange@3s";
    let two = &["--strategies", "2"][..];
    let three = &["--strategies", "3"][..];
    for (isolation, journal, more) in
        [("process", "process", three), ("sandbox", "process", two), ("process", "group", two)]
    {
        let launcher = Launcher::new();
        let running =
            launcher.start(&flags_of(isolation, journal, &[&[SPILL, "--fault", kills], more].concat()));
        let pid = running.pid();
        kill_spillers(&running, 9);
        let (_, _, stderr) = running.end();
        is_whole(&launcher.folders()[0]);
        let died = comebacks(&summary(&launcher.folders()[0]));
        let engines = died.iter().filter(|one| one["role"] == "engine").count();
        // On a slow machine several kills are one restart.
        assert!(engines >= 1 && died.len() > engines, "{more:?}: {died:#?}{stderr}");
        assert_nothing_left(pid);
    }
}

/// How many records the engine's log has lost, as its thread says.
fn lost(running: &Running) -> u64 {
    let name = segments(running.pid()).into_iter().find(|name| name.ends_with(".thread-engine")).unwrap();
    // Its log is behind that: megabytes.
    let mut bytes = [0; 8 * (HEADER_WORDS + STATUS_WORDS)];
    std::fs::File::open(format!("/dev/shm/{name}")).unwrap().read_exact(&mut bytes).unwrap();
    let words = bytes.as_chunks::<8>().0[HEADER_WORDS..].iter().map(|word| u64::from_le_bytes(*word));
    let words: Vec<u64> = words.collect();
    ThreadStatus::from_words(words.try_into().unwrap()).lost().records
}

/// Nothing leaves memory for a while, and records are lost. A role that restarts after that can
/// count nothing, sends and stamps nothing twice all the same, and the run says that it is partial.
#[test]
fn restart_after_lost_records_repeats_nothing() {
    let launcher = Launcher::new();
    let long = ["--strategies", "1", "--orders", "120k", "--window", "12s"];
    let (base, load) = (flags(&[]), ["--orders", "40k", "--window", "4s"]);
    let base: Vec<&str> = base.into_iter().filter(|flag| !load.contains(flag)).collect();
    let running = launcher.start(&[&base[..], &long, &[SPILL]].concat());
    let (pid, spiller) = (running.pid(), spiller(&running, 0));
    let folder = launcher.folders().remove(0);
    signal(spiller, "STOP");
    wait_until("records are lost", || lost(&running) > 0);
    let saved = || std::fs::metadata(folder.join("engine.stamps")).unwrap().len();
    let before = saved();
    signal(spiller, "CONT");
    wait_until("what is full has left", || saved() >= before + 4 * CHUNK_BYTES);
    for role in ["engine", "exchange-0"] {
        signal(running.process(role), "KILL");
    }
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(1), "{stderr}");
    let summary = summary(&folder);
    let said = summary.to_string();
    assert!(said.contains("the spiller was behind"), "{summary:#}");
    assert_eq!(summary["outcome"]["ended"], "complete", "{summary:#}");
    let died = comebacks(&summary);
    assert!(died.len() == 2 && died.iter().all(|one| one["detect_to_recovery_ns"].is_u64()), "{died:#?}");
    let kinds: Vec<&str> =
        summary["violations"].as_array().unwrap().iter().filter_map(|one| one["kind"].as_str()).collect();
    assert!(!kinds.iter().any(|kind| kind.contains("duplicate")), "{kinds:?}");
    assert_nothing_left(pid);
}
