//! Sandboxed exchanges with a journal: each of their threads is confined, the journal's included,
//! and only the journal's files are accessible. `system/tests/all/sandbox/files.rs` tests what the
//! kernel refuses.
#![cfg(target_arch = "x86_64")]

use crate::common::{Launcher, Running, list, proc, serving_process, signal, slow, wait_for, wait_until};

const FLAGS: &str = "--isolation sandbox --venue book --venues 1 --exchange process --journal process \
                     --on-death restart --idle park --liveness 2s --strategies 2";

fn wait_for_exchange(running: &Running, killed: &[u32]) -> u32 {
    wait_for("the exchange is running", || serving_process(running.pid(), "exchange-0", killed))
}

/// Returns name and `/proc` status of each thread of a process.
fn threads(pid: u32) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let read = |task: &std::path::Path, file: &str| std::fs::read_to_string(task.join(file)).unwrap();
    tasks.map(|task| (read(&task.path(), "comm").trim().to_owned(), read(&task.path(), "status"))).collect()
}

fn assert_confined(pid: u32) {
    // The last thread that starts installs the seccomp filter for all threads.
    wait_until("the exchange is confined", || {
        threads(pid).iter().all(|(_, status)| status.contains("Seccomp:\t2"))
    });
    let all = threads(pid);
    assert!(all.iter().any(|(name, _)| name == "journal-helper"), "{all:?}");
    let limits = proc(pid, "limits");
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().next(), Some("256"), "{limits}");
    for (name, status) in all {
        for expected_field in
            ["Seccomp:\t2", "NoNewPrivs:\t1", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"]
        {
            assert!(status.contains(expected_field), "{name}: {expected_field}: {status}");
        }
    }
}

#[test]
fn journaled_exchange_and_successor_are_confined() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    // Longer than the test, even on a slow machine.
    let running = launcher.start(&format!("{FLAGS} --orders 20k --window 30s"));
    let first = wait_for_exchange(&running, &[]);
    assert_confined(first);
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(first, "KILL");
    assert_confined(wait_for_exchange(&running, &[first]));
    let summary = launcher.interrupted(running);
    assert_eq!((&summary["valid"], list(&summary["comebacks"]).len()), (&true.into(), 1), "{summary:#}");
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{}", summary["orders"]);
}

/// The journal's folder is replaced by another one, in which the exchange cannot create its next
/// segment: `BULKHEAD_SLOW=1` only, since its first segment must be full before.
#[test]
fn exchange_opens_files_only_in_journal_folder() {
    let Some(launcher) = Launcher::sandboxed().filter(|_| slow()) else { return };
    let running = launcher.start(&format!("{FLAGS} --orders 120k --window 3s"));
    assert_confined(wait_for_exchange(&running, &[]));
    let folder = launcher.folder().join("journal-venue-0");
    // No further segment is prepared until the first one is full.
    wait_until("the journal has its segments", || folder.join("log-00000003").exists());
    std::fs::rename(&folder, folder.with_file_name("moved")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    running.end().fails(1, &["journal fails", "Permission denied"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "no file was created there");
}
