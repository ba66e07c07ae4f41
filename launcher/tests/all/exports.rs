//! The files that `export` writes, opened with the tools that they are for: Perfetto's own
//! messages. This needs Python with the package `perfetto` (`BULKHEAD_PYTHON` names another one
//! than python3); otherwise the test prints a note.

use crate::common::{Launcher, list, number, output, output_of, skip};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

/// The Python program that has the packages.
fn python() -> String {
    std::env::var("BULKHEAD_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Runs a script that needs a package; `None`, and a loud word, where it is not there.
pub fn asked(package: &str, script: &str, args: &[&Path]) -> Option<Value> {
    if output_of(Command::new(python()).args(["-c", &format!("import {package}")])).code != Some(0) {
        let python = python();
        skip(&format!("no {package} for {python}, what it reads was not opened (pip install {package})"));
        return None;
    }
    let answer = output_of(Command::new(python()).args(["-c", script]).args(args));
    let read = answer.json();
    answer.succeeds();
    Some(read)
}

/// Slices of a track must nest, begins and ends match, and flows have a beginning and an end.
const TRACE: &str = r#"
import json, sys
from collections import Counter, defaultdict
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
trace = Trace(); trace.ParseFromString(open(sys.argv[1], 'rb').read())
names, parents, open_, errors = {}, {}, defaultdict(list), []
flows, tracks, kinds, last = defaultdict(set), defaultdict(set), Counter(), 0
for packet in trace.packet:
    if packet.HasField('track_descriptor'):
        d = packet.track_descriptor
        names[d.uuid] = d.thread.thread_name or d.process.process_name or d.name
        if d.HasField('parent_uuid'): parents[d.uuid] = d.parent_uuid
        continue
    event = packet.track_event
    if packet.timestamp < last: errors.append('time goes back')
    last = packet.timestamp
    if event.track_uuid not in names: errors.append('no track')
    if event.type == 1: open_[event.track_uuid].append(event.name)
    elif event.type == 2:
        if not open_[event.track_uuid]: errors.append('an end without a beginning')
        else: open_[event.track_uuid].pop()
    if event.type != 2:
        kinds[list(event.categories)[0]] += 1
        for flow in list(event.flow_ids) + list(event.terminating_flow_ids): flows[flow].add(event.track_uuid)
        if event.terminating_flow_ids: tracks['ended'].add(event.terminating_flow_ids[0])
errors += ['left open'] * sum(map(bool, open_.values()))
errors += ['no parent'] * sum(p not in names for p in parents.values())
print(json.dumps({'errors': errors, 'names': sorted(names.values()), 'kinds': kinds, 'flows': len(flows),
    'ended': len(tracks['ended']), 'least': min(map(len, flows.values()))}))
"#;

#[test]
fn exports_are_read_by_what_they_are_for() {
    let launcher = Launcher::new();
    let summary = launcher.summary(
        "--strategies 2 --venues 2 --orders 2000 --window 400ms --delay uniform:1ms..20ms --isolation process \
         --idle park --on-death restart --fault kill:strategy-1@150ms",
    );
    let returned = number(&summary["orders"]["returned"]);
    let to = tempfile::tempdir().unwrap();
    let trace = to.path().join("t");
    let run = launcher.folder();
    output(&format!("export {} --perfetto {}", run.display(), trace.display())).succeeds();
    if let Some(read) = asked("perfetto", TRACE, &[&trace]) {
        assert_eq!(read["errors"], serde_json::json!([]), "{read:#}");
        let names = list(&read["names"]);
        for name in ["strategy-0", "strategy-1", "engine", "strategy-1 incidents"] {
            assert!(names.contains(&name.into()), "{names:?}");
        }
        assert!(number(&read["kinds"]["order"]) > 5_000 && read["kinds"]["incident"] == 1, "{read:#}");
        // Every order that was sent is a flow; those that came back have an end.
        assert!(number(&read["flows"]) >= returned && number(&read["ended"]) >= returned, "{read:#}");
    }
}

#[test]
fn replayed_flow_has_the_orders_of_its_run() {
    let launcher = Launcher::new();
    let shape = "--strategies 3 --venues 2 --delay uniform:1ms..5ms --idle park";
    let to = tempfile::tempdir().unwrap();
    // The orders that a run sent: of their ids what counts is the strategy.
    let order = |line: &str| -> Vec<String> {
        let mut fields: Vec<String> = line.split(',').map(String::from).collect();
        fields[3] = fields[3].parse().map_or_else(|_| fields[3].clone(), |id: u64| (id % 3).to_string());
        fields
    };
    let run = |flags: &str, name: &str| {
        let summary = launcher.summary(&format!("{shape} {flags}"));
        let path = to.path().join(name);
        output(&format!("export {} --flow {}", launcher.folder().display(), path.display())).succeeds();
        let flow = std::fs::read_to_string(&path).unwrap();
        assert_eq!(flow.lines().count() as u64, 1 + number(&summary["orders"]["sent"]));
        (flow.lines().map(order).collect::<Vec<_>>(), path)
    };
    let death = "--on-death restart --fault kill:strategy-1@100ms";
    let (sent, path) = run(&format!("--orders 3000 --window 300ms {death}"), "a.csv");
    let replay = format!("--technique linked --isolation thread --schedule {}", path.display());
    let (replayed, _) = run(&replay, "b.csv");
    assert!(sent == replayed, "the replay sent other orders, or at other times");
}

#[test]
fn table_of_orders_has_the_figures_of_its_run() {
    let launcher = Launcher::new();
    let summary =
        launcher.summary("--strategies 2 --orders 2000 --window 300ms --delay fixed:1ms --idle park");
    let to = tempfile::tempdir().unwrap();
    let path = to.path().join("orders.csv");
    output(&format!("export {} --csv {}", launcher.folder().display(), path.display())).succeeds();
    let mut reader = csv::Reader::from_path(&path).unwrap();
    let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
    assert_eq!(summary["orders"]["sent"], rows.len());
    let measured: Vec<_> = rows.iter().filter(|row| row["measured"] == "true").collect();
    assert_eq!(summary["rt_venue"]["count"], measured.len());
    let count = |column: &str| measured.iter().map(|row| &row[column]).collect::<BTreeSet<_>>().len();
    assert_eq!((count("strategy"), count("venue"), count("rejected")), (2, 4, 1));
    let engine_ns = |row: &HashMap<String, String>| {
        let [t1, t4, t5, t8] = ["t1", "t4", "t5", "t8"].map(|stamp| row[stamp].parse::<i64>().unwrap());
        (t8 - t1) - (t5 - t4)
    };
    for (figure, own) in [
        ("min_ns", measured.iter().map(|row| engine_ns(row)).min()),
        ("max_ns", measured.iter().map(|row| engine_ns(row)).max()),
    ] {
        let reported = summary["rt_venue"][figure].as_i64().unwrap();
        assert!(own.unwrap().abs_diff(reported) <= 4, "each stamp is rounded by itself: {own:?}, {reported}");
    }
}

#[test]
fn an_export_of_nothing_is_refused() {
    for args in ["runs/x", "/no/such --perfetto", "/no/such --perfetto /dev/null", "runs/x --partitioned"] {
        assert_ne!(output(&format!("export {args}")).code, Some(0), "{args}");
    }
}

#[test]
fn spacing_of_recording_has_every_row() {
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/coinbase-2016-03-12/flow.csv");
    let result = output(&format!("inspect {flow} --spacing --json"));
    let instrument = &result.json()["instruments"][0];
    let counts: u64 = list(&instrument["classes"]).iter().map(|class| number(&class["count"])).sum();
    assert_eq!((number(&instrument["ticks"]), counts), (3_800, 3_799));
    assert_eq!(instrument["most_frequent"], "1 ms to 10 ms");
    result.succeeds();
    let shown = output(&format!("inspect {flow} --spacing")).succeeds();
    assert!(shown.lines().all(|line| line.chars().count() <= 80) && shown.contains("█"), "{shown}");
    output("inspect --spacing none.csv").fails(1, &["none.csv: cannot be read"]);
    output(&format!("inspect {flow} --spacing --head 3")).fails(2, &["--head"]);
}
