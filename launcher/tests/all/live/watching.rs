//! `watch` of active runs at several levels, and of a run whose strategy overwrites its memory.

use crate::common::{
    LONG, Launcher, Running, command, list, number, output, signal, string, text, wait_until,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

pub fn watch_once(run: &str) -> Value {
    let result = output(&format!("watch {run} --once --json"));
    let snapshot = result.json();
    result.succeeds();
    snapshot
}

/// Returns a role's entry of the snapshot.
fn role<'a>(snapshot: &'a Value, name: &str) -> &'a Value {
    let mut roles = list(&snapshot["roles"]).iter();
    // The name of a gateway may be followed by its venue and credential.
    roles
        .find(|role| string(&role["role"]).split(' ').next() == Some(name))
        .unwrap_or_else(|| panic!("no {name} in {snapshot:#}"))
}

/// Starts a long run and waits until orders were settled.
pub fn start_trading(launcher: &Launcher, flags: &str) -> (Running, String) {
    let running = launcher.start(&format!("{LONG} {flags}"));
    let folder = launcher.folder().display().to_string();
    wait_until("orders flow", || watch_once(&folder)["settled"].as_u64() > Some(100));
    (running, folder)
}

fn assert_watched(flags: &str, sees_rings: bool) {
    let launcher = Launcher::new();
    let (running, folder) = start_trading(&launcher, flags);
    let snapshot = watch_once(&folder);
    assert_eq!((&snapshot["version"], &snapshot["state"]), (&2.into(), &"running".into()));
    for name in ["strategy-0", "strategy-1", "orchestrator", "gateway-0", "gateway-1"] {
        let role = role(&snapshot, name);
        assert_eq!(role["state"], "running", "{role:#}");
        assert!(role["rate"].as_f64().unwrap() > 0.0, "{role:#}");
        assert!(role["heartbeat_age_ns"].is_u64() && number(&role["reports"]) > 0, "{role:#}");
    }
    assert!(number(&role(&snapshot, "strategy-0")["counters"]["sent"]) > 0);
    let rings = list(&snapshot["rings"]);
    assert!(!sees_rings || rings.len() > 4 && rings.iter().all(|ring| ring["fill"].is_u64()), "{rings:#?}");

    // The same run by its id, and as text.
    let run = string(&snapshot["run"]);
    assert_eq!(watch_once(run)["run"], snapshot["run"]);
    let frame = output(&format!("watch {run}")).stdout;
    for word in [run, "orchestrator", "capacity", "rate/s", "deaths"] {
        assert!(frame.contains(word), "no {word} in\n{frame}");
    }
    assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
    // Venue and credential of each gateway.
    let has_credentials = flags.contains("--credentials");
    assert!(!has_credentials || ["gateway-2 1/0", "gateway-3 1/1"].iter().all(|name| frame.contains(name)));

    // Kill switches are shown.
    output(&format!("kill {run} --strategy 1 --timeout 60s")).succeeds();
    wait_until("the kill shows", || {
        let snapshot = watch_once(run);
        snapshot["strategies"][1]["killed"][0] == "strategy-1 by operator"
            && snapshot["strategies"][0]["killed"] == json!([])
            && number(&snapshot["rejected"]) > 0
    });

    // `watch` ends with the run, and refuses a run that has ended.
    let mut stream = command(&format!("watch {run} --json")).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(stream.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut states = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap()["state"].clone());
    assert_eq!(states.next(), Some("running".into()));
    signal(running.pid(), "INT");
    assert_eq!(states.last(), Some("over".into()));
    assert!(stream.wait().unwrap().success());
    running.end().fails(130, &[]);
    output(&format!("watch {folder} --once")).fails(2, &["is over"]);
}

#[test]
fn run_with_unnamed_memory_is_watched() {
    assert_watched(
        "--isolation sandbox --technique array-queue --credentials 2 --process each-gateway",
        true,
    );
}

#[test]
fn threaded_run_is_watched() {
    assert_watched("--isolation thread --technique crossbeam-array-queue", false);
}

/// A strategy overwrites all memory that it can, its status first. The others are shown correctly,
/// and nothing that it wrote reaches the terminal.
#[test]
fn scribbled_memory_does_not_mislead_watch() {
    let launcher = Launcher::new();
    let flags = "--isolation process --on-death continue --fault scribble:strategy-0@1s";
    let running = launcher.start(&format!("{LONG} {flags}"));
    let folder = launcher.folder().display().to_string();
    wait_until("strategy-0 is fenced", || {
        let frame = command(&format!("watch {folder} --once")).output().unwrap();
        assert!(frame.status.success(), "{}", text(&frame.stderr));
        let is_plain = |byte: &u8| *byte == b'\n' || *byte >= b' ' && *byte != 0x7F;
        assert!(frame.stdout.iter().all(is_plain), "{:?}", text(&frame.stdout));
        assert!(!text(&frame.stdout).chars().any(|c| ('\u{80}'..'\u{A0}').contains(&c)));
        watch_once(&folder)["strategies"][0]["is_fenced"] == true
    });
    let snapshot = watch_once(&folder);
    assert_eq!(snapshot["strategies"][0]["incidents"], 1);
    assert_eq!(snapshot["strategies"][1]["incidents"], 0);
    assert_eq!(role(&snapshot, "strategy-0")["pid"], Value::Null);
    assert!(role(&snapshot, "strategy-1")["rate"].as_f64().unwrap() > 0.0, "{snapshot:#}");
    running.interrupt();
}

/// A script that prints the metric families that Prometheus' own parser finds in a file. The parser
/// must also refuse a truncated text, a duplicate sample, and a wrong unit. It drops a duplicate
/// that directly follows its original, so the planted one follows the family's last sample.
const METRICS: &str = r#"
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
text = open(sys.argv[1]).read()
samples = [line for line in text.splitlines() if line.startswith('bulkhead_role_counter_orders_total{')]
for broken in [text.replace('# EOF\n', ''), text.replace(samples[-1], samples[-1] + '\n' + samples[0]),
               text.replace('# UNIT bulkhead_role_counter_orders orders', '# UNIT bulkhead_role_counter_orders reports')]:
    try: list(parse(broken)); sys.exit('a broken text was read')
    except ValueError: pass
print(json.dumps({f.name: {'type': f.type, 'unit': f.unit, 'help': f.documentation,
    'samples': [[s.labels, s.value] for s in f.samples]} for f in parse(text)}))
"#;

#[test]
fn metrics_are_read_by_the_parser_of_prometheus() {
    let launcher = Launcher::new();
    let (running, folder) = start_trading(&launcher, "--isolation process");
    let folder_of_metrics = tempfile::tempdir().unwrap();
    let file = folder_of_metrics.path().join("bulkhead.prom");
    let name = file.display().to_string();
    output(&format!("watch {folder} --once --metrics {name}")).succeeds();
    if let Some(parsed) = crate::exports::asked("prometheus_client", METRICS, &[&file]) {
        let samples = |family: &str| list(&parsed[family]["samples"]);
        let sent = samples("bulkhead_role_counter_orders").iter().find(|sample| {
            let labels = &sample[0];
            labels["role"] == "strategy" && labels["index"] == "1" && labels["counter"] == "sent"
        });
        assert!(sent.unwrap()[1].as_f64().unwrap() > 0.0, "{parsed:#}");
        for (family, kind, unit, min) in [
            ("bulkhead_run", "info", "", 1),
            ("bulkhead_orders", "counter", "", 4),
            ("bulkhead_role_counter_orders", "counter", "orders", 8),
            ("bulkhead_role_level_orders", "gauge", "orders", 3),
            ("bulkhead_role_open_orders", "gauge", "orders", 3),
            ("bulkhead_role_longest_gap_seconds", "gauge", "seconds", 5),
            ("bulkhead_role_heartbeat_age_seconds", "gauge", "seconds", 5),
            ("bulkhead_ring_messages", "gauge", "messages", 5),
            ("bulkhead_strategy_killed", "gauge", "", 2),
        ] {
            let Value::Object(found) = &parsed[family] else { panic!("no {family} in {parsed:#}") };
            assert_eq!((&found["type"], &found["unit"]), (&kind.into(), &unit.into()), "{family}");
            assert!(samples(family).len() >= min && found["help"] != "", "{family}: {found:#?}");
        }
    }
    let printed = output(&format!("watch {folder} --once --metrics -")).succeeds();
    assert!(printed.contains(r#"counter="dispatched"} "#) && printed.ends_with("# EOF\n"), "{printed}");

    // A currently free port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut server = command(&format!("watch {folder} --metrics {port}")).spawn().unwrap();
    let mut writer = command(&format!("watch {folder} --metrics {name}")).spawn().unwrap();
    wait_until("the metrics server answers", || TcpStream::connect(&port).is_ok());
    let mut stream = TcpStream::connect(&port).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("openmetrics-text") && answer.ends_with("# EOF\n"), "{answer}");
    assert!(answer.contains("bulkhead_orders_total{"), "{answer}");

    // Both notice the end, and the file shows it.
    signal(running.pid(), "INT");
    assert!(server.wait().unwrap().success() && writer.wait().unwrap().success());
    assert!(std::fs::read_to_string(&file).unwrap().contains("state=\"over\""));
    running.end().fails(130, &[]);
}

#[test]
fn unwatchable_run_is_refused() {
    output("watch 20000101-000000000 --once").fails(2, &["no run 20000101-000000000"]);
    output("watch latest --metrics 0.0.0.0:9464").fails(2, &["only on loopback"]);
    output("watch latest --once --metrics 127.0.0.1:9464").fails(2, &["--once"]);
    output("watch latest --json --metrics x").fails(2, &["--json"]);
}
