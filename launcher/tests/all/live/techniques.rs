//! Every technique of the table carries a live run at each isolation level that it supports.

use crate::common::{Launcher, SHORT, list, number, segments, wait_until};
use protocol::plan::Technique;
use serde_json::Value;
use techniques::linked::Linked;

fn conserves(technique: Technique, count: u64, flags: &str) -> Value {
    let summary = Launcher::new().summary(&format!("{flags} --technique {technique}"));
    let orders = &summary["orders"];
    let counts = ["scheduled", "sent", "returned", "lost", "duplicated"].map(|key| number(&orders[key]));
    assert_eq!(counts, [count, count, count, 0, 0], "{technique}: {orders}");
    assert_eq!(summary["technique"], technique.name());
    let faults = list(&summary["processes"]).iter().map(|thread| number(&thread["peer_faults"]));
    assert_eq!(faults.sum::<u64>(), 0, "{technique}");
    summary
}

/// As threads with rings of two slots, which apply backpressure. As processes, sandboxes and
/// containers the techniques in memory and those of the kernel have other tests.
#[test]
fn every_technique_conserves_all_orders() {
    for technique in Technique::all() {
        conserves(
            technique,
            600,
            "--strategies 2 --venues 2 --orders 600 --arrivals stress --capacity 2 --delay fixed:10us --isolation thread",
        );
    }
}

/// The linked list counts its blocks; other techniques have none.
#[test]
fn blocks_of_linked_list_are_counted() {
    for technique in [Technique::from_link::<Linked>(), Technique::from_name("array-queue").unwrap()] {
        let summary = conserves(technique, 2000, &format!("{SHORT} --isolation process"));
        assert_list_blocks(technique, &summary);
    }
}

fn assert_list_blocks(technique: Technique, summary: &Value) {
    let threads = list(&summary["processes"]);
    let engine = threads.iter().find(|thread| thread["role"] == "engine").unwrap();
    let counters = &engine["agents"][0]["counters"];
    let (fresh, reused) = (number(&counters["blocks-fresh"]), number(&counters["blocks-reused"]));
    if technique != Technique::from_link::<Linked>() {
        return assert_eq!(fresh, 0, "{technique}");
    }
    assert!(fresh >= 2, "each hand-off begins with one");
    // 2,000 orders and as many reports, 31 to a block. A block that lost the race to be linked
    // counts too.
    assert!(fresh + reused >= 2 * 2000 / 31, "{fresh} + {reused}");
}

/// The reaper removes FIFOs and sockets as it removes memory.
#[test]
fn killed_launcher_leaves_neither_fifo_nor_socket() {
    for technique in Technique::all().into_iter().filter(|technique| technique.is_kernel()) {
        let launcher = Launcher::new();
        let mut running = launcher.start(&format!("--technique {technique} --window 30s --orders 1000"));
        let pid = running.pid();
        wait_until("the hand-off exists", || segments(pid).iter().any(|name| name.ends_with(".submit")));
        running.kill();
        running.end();
    }
}
