//! Publishes a snapshot as OpenMetrics text for Prometheus and compatible tools: into a file, or
//! over HTTP on loopback.

use super::model::Snapshot;
use crate::config::UsageError;
use analysis::document::write_user_path;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum time for a client to send its request and to read the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(500);

pub enum Metrics {
    /// Into a file, replaced atomically at each poll.
    File(PathBuf),
    Listener(TcpListener),
}

impl Metrics {
    /// Opens a file, or a loopback address: `127.0.0.1:9464`.
    pub fn open(target: &str) -> Result<Self> {
        let Ok(address) = target.parse::<SocketAddr>() else { return Ok(Self::File(target.into())) };
        if !address.ip().is_loopback() {
            return Err(UsageError(format!(
                "--metrics {target}: only on loopback, for example 127.0.0.1:9464"
            ))
            .into());
        }
        let listener = TcpListener::bind(address);
        let listener = listener.map_err(|error| UsageError(format!("--metrics {target}: {error}")))?;
        listener.set_nonblocking(true)?;
        Ok(Self::Listener(listener))
    }

    /// Writes a snapshot to the file; a listener serves it on request.
    pub fn publish(&self, text: &str) -> Result<()> {
        match self {
            Self::File(path) => write_user_path(path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display())),
            Self::Listener(_) => Ok(()),
        }
    }

    /// Answers all pending HTTP requests with the last snapshot.
    pub fn serve(&self, text: &str) {
        let Self::Listener(listener) = self else { return };
        while let Ok((stream, _)) = listener.accept() {
            // A client that disconnects gets no answer.
            let _ = answer(stream, text);
        }
    }
}

fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
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

/// A sample: labels and value.
type Sample<'a> = (Vec<(&'a str, String)>, f64);

fn label(name: &str, value: impl ToString) -> Vec<(&str, String)> {
    vec![(name, value.to_string())]
}

fn labels<'a>(one: (&'a str, &str), other: (&'a str, &str)) -> Vec<(&'a str, String)> {
    [one, other].map(|(name, value)| (name, value.to_owned())).to_vec()
}

/// Formats a metric family; values that are not finite are left out.
fn family<'a>(name: &str, kind: &str, help: &str, samples: impl IntoIterator<Item = Sample<'a>>) -> String {
    let suffix = match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut out = format!("# TYPE bulkhead_{name} {kind}\n# HELP bulkhead_{name} {help}\n");
    for (labels, value) in samples.into_iter().filter(|(_, value)| value.is_finite()) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        out += &format!("bulkhead_{name}{suffix}{{{}}} {value}\n", labels.join(","));
    }
    out
}

/// Formats a snapshot of a run as OpenMetrics text. Times are in seconds.
pub fn text(looked: &Snapshot) -> String {
    let Snapshot { roles, rings, stages, strategies, errors, .. } = looked;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let run = [
        ("run", looked.run.clone()),
        ("isolation", looked.isolation.clone()),
        ("technique", looked.technique.clone()),
        ("state", looked.state.name().to_owned()),
    ];
    let orders = [
        ("sent", looked.sent),
        ("dispatched", looked.dispatched),
        ("settled", looked.settled),
        ("rejected", looked.rejected),
    ];
    let counters = roles.iter().flat_map(|role| {
        let counter =
            |(name, value): (&&str, &u64)| (labels(("role", &role.role), ("counter", name)), *value as f64);
        role.counters.iter().map(counter)
    });
    let switches = roles.iter().flat_map(|role| {
        let kinds = [("voluntary", role.voluntary_switches), ("involuntary", role.involuntary_switches)];
        kinds.map(|(kind, count)| Some((labels(("role", &role.role), ("kind", kind)), count? as f64)))
    });
    let gaps = roles.iter().map(|role| (label("role", &role.role), seconds(role.longest_gap_ns)));
    let ages =
        roles.iter().filter_map(|role| Some((label("role", &role.role), seconds(role.heartbeat_age_ns?))));
    let fills = rings.iter().filter_map(|ring| Some((label("ring", &ring.ring), ring.fill? as f64)));
    let capacities = rings.iter().map(|ring| (label("ring", &ring.ring), ring.capacity as f64));
    let stages = stages.iter().flat_map(|stage| {
        let quantiles = [("0.5", stage.p50_ns), ("0.99", stage.p99_ns)];
        quantiles.map(|(quantile, ns)| {
            Some((labels(("stage", stage.stage), ("quantile", quantile)), seconds(ns?)))
        })
    });
    let incidents = strategies.iter().map(|line| (label("strategy", line.strategy), line.incidents as f64));
    let killed = strategies
        .iter()
        .map(|line| (label("strategy", line.strategy), f64::from(u8::from(!line.killed.is_empty()))));
    let positions = strategies.iter().flat_map(|line| {
        let strategy = line.strategy.to_string();
        line.positions.iter().map(move |position| {
            let instrument = position.instrument.to_string();
            (labels(("strategy", &strategy), ("instrument", &instrument)), position.net as f64)
        })
    });
    let errors =
        errors.iter().map(|line| (labels(("who", &line.who), ("what", &line.what)), line.count as f64));
    [
        family("run", "info", "The run that is watched.", [(run.to_vec(), 1.0)]),
        family(
            "orders",
            "counter",
            "Orders so far.",
            orders.map(|(what, count)| (label("what", what), count as f64)),
        ),
        family("role_counter", "counter", "What a role counts.", counters),
        family("role_switches", "counter", "Context switches of a role's thread.", switches.flatten()),
        family("role_longest_gap_seconds", "gauge", "The longest time away from duty cycles.", gaps),
        family("role_heartbeat_age_seconds", "gauge", "Since the last duty cycle.", ages),
        family("ring_messages", "gauge", "Messages in a ring.", fills),
        family("ring_capacity", "gauge", "Messages that a ring has room for.", capacities),
        family("stage_seconds", "gauge", "What a stage costs now, of sampled orders.", stages.flatten()),
        family("strategy_incidents", "counter", "How often a strategy has died.", incidents),
        family("strategy_killed", "gauge", "Whether a kill switch concerns a strategy.", killed),
        family("strategy_position", "gauge", "Bought minus sold, in 1e-8 units.", positions),
        family("errors", "counter", "What went wrong.", errors),
        "# EOF\n".into(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::model::ErrorRow;

    #[test]
    fn metric_labels_are_escaped() {
        let error = ErrorRow { who: "strategy-1".into(), what: "says \"a\\b\"\nx".into(), count: 2 };
        let text = text(&Snapshot { errors: vec![error], ..Snapshot::default() });
        assert!(
            text.contains(r#"bulkhead_errors_total{who="strategy-1",what="says \"a\\b\"\nx"} 2"#),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    }

    #[test]
    fn others_cannot_ask() {
        for wrong in ["0.0.0.0:0", "[::]:9464"] {
            assert!(Metrics::open(wrong).err().unwrap().to_string().contains("only on loopback"), "{wrong}");
        }
        assert!(matches!(Metrics::open("metrics.txt").unwrap(), Metrics::File(_)));
        assert!(matches!(Metrics::open("127.0.0.1:0").unwrap(), Metrics::Listener(_)));
    }
}
