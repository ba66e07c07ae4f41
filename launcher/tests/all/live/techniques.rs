//! Every technique of the table carries a live run, wherever it can; where it cannot, the launcher
//! says what can.

use crate::common::{Launcher, SHORT, assert_nothing_left, segments, signal, text, wait_until};
use protocol::plan::Technique;
use serde_json::Value;
use techniques::linked::Linked;

fn short(technique: Technique, more: &[&str]) -> Value {
    let launcher = Launcher::new();
    let summary = launcher.summary(&[SHORT, &["--technique", technique.name()], more].concat());
    let orders = &summary["orders"];
    for count in ["scheduled", "sent", "returned"] {
        assert_eq!(orders[count], 2000, "{technique}: {orders}");
    }
    assert_eq!((&orders["lost"], &orders["duplicated"]), (&0.into(), &0.into()), "{technique}: {orders}");
    assert_eq!(summary["technique"], technique.name());
    let faults = summary["processes"].as_array().unwrap().iter().map(|thread| thread["peer_faults"].as_u64());
    assert_eq!(faults.sum::<Option<u64>>(), Some(0), "{technique}");
    summary
}

/// Sandbox and container have such tests of their own: not every machine has them.
#[test]
fn every_technique_conserves_all_orders() {
    for technique in Technique::all() {
        short(technique, &["--isolation", "thread", "--idle", "park"]);
        if technique.crosses_processes() {
            short(technique, &["--isolation", "process", "--idle", "park"]);
        }
    }
}

#[test]
fn small_rings_push_back_and_lose_nothing() {
    for technique in Technique::all() {
        let stress =
            ["--arrivals", "stress", "--capacity", "2", "--delay", "fixed:10us", "--isolation", "thread"];
        let launcher = Launcher::new();
        let flags =
            ["--strategies", "2", "--venues", "2", "--orders", "2000", "--technique", technique.name()];
        let summary = launcher.summary(&flags.iter().chain(&stress).copied().collect::<Vec<_>>());
        assert_eq!(summary["orders"]["returned"], 2000, "{technique}");
    }
}

#[test]
fn heap_technique_across_processes_is_refused() {
    for technique in Technique::all() {
        let Some(twin) = technique.twin() else { continue };
        let launcher = Launcher::new();
        let output =
            launcher.run(&["--technique", technique.name(), "--isolation", "process"]).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{technique}: {stderr}");
        assert!(stderr.contains(&format!("--technique {twin},")), "{stderr}");
        assert_eq!(launcher.folders().len(), 0);
    }
}

#[test]
fn the_blocks_of_the_list_are_in_the_figures() {
    let engine = |technique| {
        let summary = short(technique, &["--isolation", "process"]);
        let threads = summary["processes"].as_array().unwrap();
        threads.iter().find(|thread| thread["role"] == "engine").unwrap().clone()
    };
    let linked = engine(Technique::from_link::<Linked>());
    let (fresh, reused) = (
        linked["agents"][0]["counters"]["blocks-fresh"].as_u64().unwrap(),
        linked["agents"][0]["counters"]["blocks-reused"].as_u64().unwrap(),
    );
    assert!(fresh >= 2, "each hand-off begins with one");
    // 2,000 orders and as many reports, 31 to a block; a block that another producer was faster to
    // link counts too.
    assert!(fresh + reused >= 2 * 2000 / 31, "{fresh} + {reused}");
    assert_eq!(engine(Technique::default())["agents"][0]["counters"]["blocks-fresh"], 0);
}

/// FIFOs and sockets are removed as memory is, by the process that is left to do it.
#[test]
fn a_killed_launcher_leaves_neither_fifo_nor_socket() {
    for technique in Technique::all().into_iter().filter(|technique| technique.is_kernel()) {
        let launcher = Launcher::new();
        let mut running =
            launcher.start(&["--technique", technique.name(), "--window", "30s", "--orders", "1000"]);
        let pid = running.pid();
        wait_until("the hand-off is there", || segments(pid).iter().any(|name| name.ends_with(".submit")));
        signal(pid, "KILL");
        running.child.wait().unwrap();
        wait_until("the reaper has cleared up", || segments(pid).is_empty());
        assert_nothing_left(pid);
    }
}
