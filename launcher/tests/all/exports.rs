//! The files that `export` writes, opened with the tools that they are for: Perfetto's own
//! messages, HdrHistogram's log reader, DuckDB. This needs Python with the packages `perfetto` and
//! `duckdb` (`BULKHEAD_PYTHON` names another one than python3); otherwise the test prints a note.

use crate::common::{Launcher, output, text};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Command;

fn python() -> String {
    std::env::var("BULKHEAD_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Runs a script that needs a package; `None`, and a loud word, where it is not there.
pub fn asked(package: &str, script: &str, args: &[&Path]) -> Option<Value> {
    let has = Command::new(python()).args(["-c", &format!("import {package}")]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        let words = format!(
            "SKIPPED: no {package} for {}, its export was not opened (pip install {package})",
            python()
        );
        // Not `eprintln!`, which a passing test swallows.
        let _ = writeln!(std::io::stderr(), "{words}");
        return None;
    }
    let output = Command::new(python()).args(["-c", script]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
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
    let flags = [
        "--strategies",
        "2",
        "--venues",
        "2",
        "--orders",
        "2000",
        "--window",
        "400ms",
        "--delay",
        "uniform:1ms..20ms",
        "--isolation",
        "process",
        "--idle",
        "park",
        "--on-death",
        "restart",
        "--fault",
        "kill:strategy-1@150ms",
    ];
    let summary = launcher.summary(&flags);
    let folder = launcher.folders().remove(0);
    let to = tempfile::tempdir().unwrap();
    let trace = to.path().join("t");
    let [run, path] = [&folder, &trace].map(|path| path.to_str().unwrap());
    let exported = output(&["export", run, "--perfetto", path]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let figure = |path: &str| summary.pointer(path).unwrap_or_else(|| panic!("no {path}")).as_u64().unwrap();

    if let Some(read) = asked("perfetto", TRACE, &[&trace]) {
        assert_eq!(read["errors"], serde_json::json!([]), "{read:#}");
        let names = read["names"].as_array().unwrap();
        for name in ["strategy-0", "strategy-1", "engine", "strategy-1 incidents"] {
            assert!(names.contains(&name.into()), "{names:?}");
        }
        assert!(read["kinds"]["order"].as_u64() > Some(5_000) && read["kinds"]["incident"] == 1, "{read:#}");
        // Every order that was sent is a flow; those that came back have an end.
        assert!(read["flows"].as_u64() >= Some(figure("/orders/returned")), "{read:#}");
        assert!(read["ended"].as_u64() >= Some(figure("/orders/returned")), "{read:#}");
    }
}

#[test]
fn replayed_flow_has_the_orders_of_its_run() {
    let launcher = Launcher::new();
    let shape = ["--strategies", "3", "--venues", "2", "--delay", "uniform:1ms..5ms", "--idle", "park"];
    let death = ["--on-death", "restart", "--fault", "kill:strategy-1@100ms"];
    let to = tempfile::tempdir().unwrap();
    let mut known = Vec::new();
    // The orders that a run sent: of their ids what counts is the strategy.
    let order = |line: &str| -> Vec<String> {
        let mut fields: Vec<String> = line.split(',').map(String::from).collect();
        fields[3] = fields[3].parse().map_or_else(|_| fields[3].clone(), |id: u64| (id % 3).to_string());
        fields
    };
    let mut run = |flags: &[&str], name: &str| {
        let summary = launcher.summary(&[&shape, flags].concat());
        let folder = launcher.folders().into_iter().find(|folder| !known.contains(folder)).unwrap();
        let path = to.path().join(name);
        let words = ["export", folder.to_str().unwrap(), "--flow", path.to_str().unwrap()];
        let exported = output(&words);
        assert!(exported.status.success(), "{}", text(&exported.stderr));
        known.push(folder);
        let flow = std::fs::read_to_string(&path).unwrap();
        assert_eq!(flow.lines().count() as u64, 1 + summary["orders"]["sent"].as_u64().unwrap());
        (flow.lines().map(order).collect::<Vec<_>>(), path.to_str().unwrap().to_owned())
    };
    let (sent, path) = run(&[&["--orders", "3000", "--window", "300ms"][..], &death].concat(), "a.csv");
    let replay = ["--technique", "linked", "--isolation", "thread", "--schedule", &path];
    let (replayed, _) = run(&replay, "b.csv");
    assert!(sent == replayed, "the replay sent other orders, or at other times");
}

#[cfg(feature = "parquet")]
const TABLES: &str = r#"
import json, sys, duckdb
orders, stages = (f"'{sys.argv[1]}/{name}.parquet'" for name in ['orders', 'stages'])
one = lambda query: duckdb.sql(query).fetchall()[0]
read = {}
read['orders'], read['measured'], read['strategies'] = one(
    f"select count(*), count(*) filter (measured), count(distinct strategy) from {orders}")
read['least'], = one(f"select min((t8 - t1) - (t5 - t4)) from {orders} where measured")
read['venues'], = one(f"select count(distinct venue) filter (measured) from {orders}")
# The seven stages of an order that counts are its way from t1 to t8; each stamp is rounded by itself.
read['apart'], read['stages'] = one(f"""select max(abs(o.t8 - o.t1 - s.ns)), min(s.many) from {orders} o join
    (select strategy, epoch, sequence, sum(ns) ns, count(distinct stage) many from {stages} group by all) s
    using (strategy, epoch, sequence) where o.measured""")
read['doubled'], = one(f"select count(*) from (select 1 from {stages} group by strategy, epoch, sequence, stage having count(*) > 1)")
print(json.dumps(read))
"#;

#[cfg(feature = "parquet")]
#[test]
fn tables_are_read_by_duckdb() {
    let launcher = Launcher::new();
    let flags = [
        "--strategies",
        "2",
        "--orders",
        "2000",
        "--window",
        "300ms",
        "--delay",
        "fixed:1ms",
        "--idle",
        "park",
    ];
    let summary = launcher.summary(&flags);
    let folder = launcher.folders().remove(0);
    let to = tempfile::tempdir().unwrap();
    let exported = output(&["export", folder.to_str().unwrap(), "--parquet", to.path().to_str().unwrap()]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    if let Some(read) = asked("duckdb", TABLES, &[to.path()]) {
        assert_eq!(read["orders"], summary["orders"]["sent"], "{read:#}");
        assert_eq!(read["measured"], summary["rt_venue"]["count"], "{read:#}");
        assert_eq!(
            (&read["strategies"], &read["stages"], &read["doubled"]),
            (&2.into(), &7.into(), &0.into())
        );
        assert_eq!(read["venues"], 4, "the default: {read:#}");
        assert!(read["apart"].as_i64().unwrap() <= 8, "{read:#}");
        let least = summary["rt_venue"]["min_ns"].as_i64().unwrap();
        assert!(read["least"].as_i64().unwrap().abs_diff(least) <= 4, "{read:#}");
    }
}

#[cfg(feature = "parquet")]
const PARTS: &str = r#"
import json, sys, duckdb
whole, parts = sys.argv[1:3]
read = {'runs': set(), 'differ': 0, 'strategies': 0}
one = lambda query: duckdb.sql(query).fetchall()[0]
for table in ['orders', 'stages']:
    for run in ['a', 'b']:
        one_file = f"'{whole}/{run}/{table}.parquet'"
        name, = one(f"select max(run) from read_parquet('{parts}/{table}/**/*.parquet', hive_partitioning = true) where run like '%-{run}'")
        kept = f"(select * exclude (run, strategy), strategy::int as strategy from read_parquet('{parts}/{table}/**/*.parquet', hive_partitioning = true) where run = '{name}')"
        read['runs'].add(name)
        columns = ', '.join(c for c, in duckdb.sql(f"select column_name from (describe select * from {one_file})").fetchall())
        file = f"(select * replace (strategy::int as strategy) from {one_file})"
        for a, b in [(file, kept), (kept, file)]:
            read['differ'] += one(f"select count(*) from (select {columns} from {a} except all select {columns} from {b})")[0]
        read['strategies'] = max(read['strategies'], one(f"select count(distinct strategy) from {kept}")[0])
read['runs'] = len(read['runs'])
print(json.dumps(read))
"#;

/// Two runs, a file for each strategy: the same rows as in one file each.
#[cfg(feature = "parquet")]
#[test]
fn tables_are_kept_by_run_and_strategy() {
    use crate::fixture::{Fixture, Shape};
    let to = tempfile::tempdir().unwrap();
    let parts = to.path().join("parts");
    for name in ["a", "b"] {
        let mut fixture = Fixture::new(Shape { strategies: 3, orders: 500, ..Shape::default() });
        fixture.record.plan.run = format!("made-up-{name}");
        let folder = fixture.write();
        let run = folder.path().to_str().unwrap();
        let whole = to.path().join(name);
        for words in [&[whole.to_str().unwrap()][..], &[parts.to_str().unwrap(), "--partitioned"]] {
            let exported = output(&[&["export", run, "--parquet"], words].concat());
            assert!(exported.status.success(), "{}", text(&exported.stderr));
        }
    }
    let names = |path: &str| {
        let mut names: Vec<String> = std::fs::read_dir(parts.join(path))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("orders"), ["run=made-up-a", "run=made-up-b"]);
    assert_eq!(names("stages/run=made-up-b"), ["strategy=0", "strategy=1", "strategy=2"]);
    if let Some(read) = asked("duckdb", PARTS, &[to.path(), &parts]) {
        assert_eq!(read, serde_json::json!({ "runs": 2, "differ": 0, "strategies": 3 }));
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_export_without_feature_names_build() {
    let refused = output(&["export", "/no/such", "--parquet", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--features parquet"), "{}", text(&refused.stderr));
}

#[test]
fn an_export_of_nothing_is_refused() {
    for args in [
        &["export", "runs/x"][..],
        &["export", "/no/such", "--perfetto"],
        &["export", "/no/such", "--perfetto", "/dev/null"],
        &["export", "runs/x", "--perfetto", "/dev/null", "--partitioned"],
    ] {
        let refused = output(args);
        assert!(!refused.status.success(), "{args:?}");
    }
}
