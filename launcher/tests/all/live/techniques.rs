//! Every technique of the table carries a live run, wherever it can; where it cannot, the launcher
//! says what can.

use crate::common::{Launcher, SHORT, list, number, segments, wait_until};
use protocol::plan::Technique;
use serde_json::Value;
use techniques::linked::Linked;

fn conserves(technique: Technique, flags: &str) -> Value {
    let summary = Launcher::new().summary(&format!("{flags} --technique {technique}"));
    let orders = &summary["orders"];
    let counts = ["scheduled", "sent", "returned", "lost", "duplicated"].map(|count| number(&orders[count]));
    assert_eq!(counts, [2000, 2000, 2000, 0, 0], "{technique}: {orders}");
    assert_eq!(summary["technique"], technique.name());
    let faults = list(&summary["processes"]).iter().map(|thread| number(&thread["peer_faults"]));
    assert_eq!(faults.sum::<u64>(), 0, "{technique}");
    summary
}

/// As threads with rings of two slots, which push back; as processes with rings that have room.
/// Sandbox and container have such tests of their own: not every machine has them.
#[test]
fn every_technique_conserves_all_orders() {
    for technique in Technique::all() {
        conserves(
            technique,
            "--strategies 2 --venues 2 --orders 2000 --arrivals stress --capacity 2 --delay fixed:10us --isolation thread",
        );
        if technique.crosses_processes() {
            let summary = conserves(technique, &format!("{SHORT} --isolation process --idle park"));
            assert_list_blocks(technique, &summary);
        }
    }
}

/// The blocks of the linked list are in the figures, and nobody else has any.
fn assert_list_blocks(technique: Technique, summary: &Value) {
    let threads = list(&summary["processes"]);
    let engine = threads.iter().find(|thread| thread["role"] == "engine").unwrap();
    let counters = &engine["agents"][0]["counters"];
    let (fresh, reused) = (number(&counters["blocks-fresh"]), number(&counters["blocks-reused"]));
    if technique != Technique::from_link::<Linked>() {
        return assert_eq!(fresh, 0, "{technique}");
    }
    assert!(fresh >= 2, "each hand-off begins with one");
    // 2,000 orders and as many reports, 31 to a block; a block that another producer was faster to
    // link counts too.
    assert!(fresh + reused >= 2 * 2000 / 31, "{fresh} + {reused}");
}

/// FIFOs and sockets are removed as memory is, by the process that is left to do it.
#[test]
fn a_killed_launcher_leaves_neither_fifo_nor_socket() {
    for technique in Technique::all().into_iter().filter(|technique| technique.is_kernel()) {
        let launcher = Launcher::new();
        let mut running = launcher.start(&format!("--technique {technique} --window 30s --orders 1000"));
        let pid = running.pid();
        wait_until("the hand-off is there", || segments(pid).iter().any(|name| name.ends_with(".submit")));
        running.kill();
        running.end();
    }
}
