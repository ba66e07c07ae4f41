//! Publishes snapshots as OpenMetrics text for Prometheus and compatible tools: on stdout, in a
//! file that is replaced at each poll, or over HTTP on loopback.

use super::model::{RoleRow, Snapshot, StrategyRow};
use anyhow::{Context, Result};
use planner::config::UsageError;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use protocol::labels::CounterLabel;
use protocol::role::RoleKind;
use record::document::write_user_path;
use record::escape::single_line;
use record::screen;
use shm::sync::AtomicU64;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum time for a client to send its request and to read the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval at which a listener looks for clients.
const TICK: Duration = Duration::from_millis(50);
/// Names of counters that can fall: current values and peaks.
const LEVELS: [&str; 4] = ["in-flight-peak", "waiting", "waiting-peak", "open-peak"];

/// The destination to which `launcher watch` publishes metrics.
pub enum MetricsTarget {
    Stdout,
    /// A file that is replaced atomically at each poll.
    File(PathBuf),
    Listener(TcpListener),
}

impl MetricsTarget {
    /// Opens a destination for metrics: `-` for stdout, a loopback address (`127.0.0.1:9464`) or a
    /// file.
    pub fn open(target: &str, is_once: bool) -> Result<Self> {
        let wrong = |why: String| UsageError(format!("--metrics {target}: {why}"));
        let Ok(address) = target.parse::<SocketAddr>() else {
            return Ok(if target == "-" { Self::Stdout } else { Self::File(target.into()) });
        };
        if !address.ip().is_loopback() {
            return Err(wrong("only on loopback, for example 127.0.0.1:9464".into()).into());
        }
        if is_once {
            return Err(wrong("is answered until the run ends: leave --once out".into()).into());
        }
        let listener = TcpListener::bind(address);
        let listener = listener.map_err(|error| wrong(format!("{error}; choose another port")))?;
        listener.set_nonblocking(true)?;
        Ok(Self::Listener(listener))
    }

    /// Publishes the OpenMetrics text of a run's snapshot. A listener answers with it in
    /// [`Self::wait`].
    pub fn publish(&self, text: &str) -> Result<()> {
        match self {
            Self::Stdout => {
                let mut out = screen::stdout_while_read();
                write!(out, "{text}")?;
                Ok(out.flush()?)
            }
            Self::File(path) => write_user_path(path, text.as_bytes())
                .with_context(|| format!("--metrics: cannot write {}", path.display())),
            Self::Listener(_) => Ok(()),
        }
    }

    /// Waits for the interval between snapshots; an HTTP destination answers requests with the
    /// metrics text in that time.
    pub fn wait(&self, text: &str, interval: Duration) {
        let Self::Listener(listener) = self else { return sleep(interval) };
        let until = Instant::now() + interval;
        while Instant::now() < until {
            match listener.accept() {
                // A client that disconnects gets no answer.
                Ok((stream, _)) => drop(answer(stream, text)),
                Err(_) => sleep(TICK),
            }
        }
    }
}

fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    // There is one answer for every request; the request is read so that the connection closes
    // cleanly.
    let _ = stream.read(&mut [0; 4_096])?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

/// Labels of a sample, with their values.
type Labels = Vec<(&'static str, String)>;

/// The metric families of a snapshot.
struct Families(Registry);

impl Families {
    /// Adds a family whose name ends in the unit; an empty one is for names that end in it already.
    fn register(&mut self, name: &str, unit: &str, help: &str, family: impl Metric) {
        match unit {
            "" => self.0.register(name, help, family),
            unit => self.0.register_with_unit(name, help, Unit::Other(unit.into()), family),
        }
    }

    /// Adds a family of counters; those with equal labels are added up.
    fn counters(
        &mut self,
        name: &str,
        unit: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in samples {
            family.get_or_create(&labels).inc_by(value);
        }
        self.register(name, unit, help, family);
    }

    /// Adds a family of gauges.
    fn gauges(
        &mut self,
        name: &str,
        unit: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in samples {
            family.get_or_create(&labels).set(value);
        }
        self.register(name, unit, help, family);
    }
}

/// Returns the kind and the index of a role: `strategy` and `1` of `strategy-1`.
fn role_labels(row: &RoleRow) -> Labels {
    let (kind, index) = row.role.split_once('-').unwrap_or((&row.role, "0"));
    vec![("role", single_line(kind)), ("index", single_line(index))]
}

/// Returns the counters of all roles by their kind of metric and unit.
fn role_counters(roles: &[RoleRow]) -> BTreeMap<(bool, &'static str), Vec<(Labels, u64)>> {
    let mut families: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in roles {
        let labels = role_labels(row);
        let kind = RoleKind::ALL.iter().find(|kind| labels[0].1 == kind.name());
        for CounterLabel { name, unit } in kind.map_or(&[][..], |kind| kind.info().counters) {
            let Some(value) = row.counters.get(name) else { continue };
            let labels = [labels.clone(), vec![("counter", (*name).to_owned())]].concat();
            families.entry((LEVELS.contains(name), *unit)).or_default().push((labels, *value));
        }
    }
    families
}

/// Formats a snapshot of a run as OpenMetrics text. Times are in seconds.
pub fn metrics_text(snapshot: &Snapshot) -> Result<String> {
    let Snapshot { roles, rings, strategies, errors, .. } = snapshot;
    let run = [("run".into(), single_line(&snapshot.run).into())];
    let mut families = Families(Registry::with_prefix_and_labels("bulkhead", run.into_iter()));
    let seconds = |ns: u64| ns as f64 / 1e9;
    families.0.register(
        "run",
        "Run with its state",
        Info::new(vec![
            ("isolation", single_line(&snapshot.isolation)),
            ("technique", single_line(&snapshot.technique)),
            ("state", snapshot.state.name().to_owned()),
        ]),
    );
    let orders = [
        ("sent", snapshot.sent),
        ("dispatched", snapshot.dispatched),
        ("settled", snapshot.settled),
        ("rejected", snapshot.rejected),
    ];
    let orders = orders.map(|(what, count)| (vec![("what", what.to_owned())], count));
    families.counters("orders", "", "Orders of the run so far, by the step that they reached", orders);
    for ((is_level, unit), samples) in role_counters(roles) {
        if is_level {
            let samples = samples.into_iter().map(|(labels, value)| (labels, value as f64));
            families.gauges("role_level", unit, "Current values and peaks of a role", samples);
        } else {
            families.counters(
                "role_counter",
                unit,
                "Counters of a role since its incarnation began",
                samples,
            );
        }
    }
    let of_roles = |figure: fn(&RoleRow) -> Option<u64>| {
        roles.iter().filter_map(move |row| Some((role_labels(row), figure(row)? as f64)))
    };
    let in_seconds =
        |figure: fn(&RoleRow) -> Option<u64>| of_roles(figure).map(|(labels, ns)| (labels, ns / 1e9));
    families.gauges("role_open", "orders", "Orders that are with a role now", of_roles(|row| row.in_flight));
    families.gauges(
        "role_longest_gap",
        "seconds",
        "Longest time between two duty cycles",
        in_seconds(|row| Some(row.longest_gap_ns)),
    );
    families.gauges(
        "role_heartbeat_age",
        "seconds",
        "Time since the last duty cycle began",
        in_seconds(|row| row.heartbeat_age_ns),
    );
    let ring = |name: &str| vec![("ring", single_line(name))];
    families.gauges(
        "ring",
        "messages",
        "Messages in a ring",
        rings.iter().filter_map(|row| Some((ring(&row.ring), row.fill? as f64))),
    );
    families.gauges(
        "ring_capacity",
        "",
        "Messages that a ring can hold",
        rings.iter().map(|row| (ring(&row.ring), row.capacity as f64)),
    );
    let strategy = |index: u16| vec![("strategy", index.to_string())];
    for (name, unit, help, figure) in [
        (
            "strategy_incidents",
            "",
            "How often a strategy has died",
            (|row| row.incidents) as fn(&StrategyRow) -> u64,
        ),
        ("strategy_refused", "orders", "Orders of dead incarnations that were refused", |row| row.refused),
        ("strategy_orphaned", "reports", "Reports that no incarnation could receive", |row| row.orphaned),
    ] {
        families.counters(
            name,
            unit,
            help,
            strategies.iter().map(|row| (strategy(row.strategy), figure(row))),
        );
    }
    families.gauges(
        "strategy_killed",
        "",
        "Whether a kill switch concerns a strategy",
        strategies.iter().map(|row| (strategy(row.strategy), f64::from(u8::from(!row.killed.is_empty())))),
    );
    let error = |who: &str, what: &str| vec![("who", single_line(who)), ("what", single_line(what))];
    let errors = errors.iter().map(|row| (error(&row.who, &row.what), row.count));
    families.counters("errors", "", "Errors of the run so far", errors);
    families.gauges(
        "elapsed",
        "seconds",
        "Time since the run began",
        [(vec![], seconds(snapshot.elapsed_ns))],
    );
    let mut text = String::new();
    encode(&mut text, &families.0).context("cannot format metrics")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::model::ErrorRow;

    #[test]
    fn metric_labels_are_escaped() {
        let error = ErrorRow { who: "strategy-1".into(), what: "says \"a\\b\"\nx\u{1b}".into(), count: 2 };
        let text = metrics_text(&Snapshot { errors: vec![error], ..Snapshot::default() }).unwrap();
        let sample = text.lines().find(|line| line.starts_with("bulkhead_errors_total{")).unwrap();
        assert!(sample.ends_with("} 2") && sample.contains(r#"says \"a\\b\" x"#), "{sample}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    }

    /// Numbers and names are those of other processes.
    #[test]
    fn any_snapshot_gives_one_sample_per_label_set() {
        let role = |name: &str, count| RoleRow {
            role: name.into(),
            in_flight: Some(count),
            longest_gap_ns: count,
            heartbeat_age_ns: Some(count),
            counters: [("sent", count), ("in-flight-peak", count), ("no such counter", count)].into(),
            ..RoleRow::default()
        };
        let roles = vec![role("strategy-1", u64::MAX), role("strategy-1", 1), role("", 1), role("a-\n-b", 1)];
        let text = metrics_text(&Snapshot { roles, ..Snapshot::default() }).unwrap();
        let mut names: Vec<&str> =
            text.lines().filter_map(|line| line.rsplit_once("} ")).map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), text.contains("no such")), (count, false), "{text}");
        assert!(text.contains("# TYPE bulkhead_role_level_orders gauge"), "{text}");
        assert!(text.contains("# UNIT bulkhead_role_counter_orders orders"), "{text}");
    }

    #[test]
    fn metrics_server_listens_only_on_loopback() {
        let open = |target: &str, is_once| MetricsTarget::open(target, is_once);
        for (wrong, is_once, why) in [
            ("0.0.0.0:0", false, "only on loopback"),
            ("[::]:9464", false, "only on loopback"),
            ("[::1]:0", true, "--once"),
        ] {
            assert!(open(wrong, is_once).err().unwrap().to_string().contains(why), "{wrong}");
        }
        assert!(matches!(open("metrics.txt", true).unwrap(), MetricsTarget::File(_)));
        assert!(matches!(open("-", true).unwrap(), MetricsTarget::Stdout));
        assert!(matches!(open("127.0.0.1:0", false).unwrap(), MetricsTarget::Listener(_)));
    }
}
