//! A look as OpenMetrics text, into a file or for who asks on loopback: Prometheus and what speaks
//! its language.

use super::model::Snapshot;
use crate::config::UsageError;
use analysis::document::write_user_path;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// How long one who asks may take to ask and to listen.
const PATIENCE: Duration = Duration::from_millis(500);

pub enum Metrics {
    /// Into a file, written anew at each look, whole or not at all.
    File(PathBuf),
    Listener(TcpListener),
}

impl Metrics {
    /// A file, or an address of this machine alone: `127.0.0.1:9464`.
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

    /// Writes a look, or has it ready.
    pub fn publish(&self, text: &str) -> Result<()> {
        match self {
            Self::File(path) => write_user_path(path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display())),
            Self::Listener(_) => Ok(()),
        }
    }

    /// Answers all who ask now.
    pub fn serve(&self, text: &str) {
        let Self::Listener(listener) = self else { return };
        while let Ok((stream, _)) = listener.accept() {
            // Who goes away unanswered has only itself to blame.
            let _ = answer(stream, text);
        }
    }
}

fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // Whatever is asked for, there is one answer; the question is read so that the connection ends
    // in order.
    let _ = stream.read(&mut [0; 4_096])?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

/// A sample: its labels and its value.
type Sample<'a> = (Vec<(&'a str, String)>, f64);

fn of(name: &str, value: impl ToString) -> Vec<(&str, String)> {
    vec![(name, value.to_string())]
}

fn both<'a>(one: (&'a str, &str), other: (&'a str, &str)) -> Vec<(&'a str, String)> {
    [one, other].map(|(name, value)| (name, value.to_owned())).to_vec()
}

/// A family of metrics as text; what is no number is left out.
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

/// A look as OpenMetrics text. Times are in seconds.
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
            |(name, value): (&&str, &u64)| (both(("role", &role.role), ("counter", name)), *value as f64);
        role.counters.iter().map(counter)
    });
    let switches = roles.iter().flat_map(|role| {
        let kinds = [("voluntary", role.voluntary_switches), ("involuntary", role.involuntary_switches)];
        kinds.map(|(kind, count)| Some((both(("role", &role.role), ("kind", kind)), count? as f64)))
    });
    let gaps = roles.iter().map(|role| (of("role", &role.role), seconds(role.longest_gap_ns)));
    let ages =
        roles.iter().filter_map(|role| Some((of("role", &role.role), seconds(role.heartbeat_age_ns?))));
    let fills = rings.iter().filter_map(|ring| Some((of("ring", &ring.ring), ring.fill? as f64)));
    let capacities = rings.iter().map(|ring| (of("ring", &ring.ring), ring.capacity as f64));
    let stages = stages.iter().flat_map(|stage| {
        let quantiles = [("0.5", stage.p50_ns), ("0.99", stage.p99_ns)];
        quantiles
            .map(|(quantile, ns)| Some((both(("stage", stage.stage), ("quantile", quantile)), seconds(ns?))))
    });
    let incidents = strategies.iter().map(|line| (of("strategy", line.strategy), line.incidents as f64));
    let killed = strategies
        .iter()
        .map(|line| (of("strategy", line.strategy), f64::from(u8::from(!line.killed.is_empty()))));
    let positions = strategies.iter().flat_map(|line| {
        let strategy = line.strategy.to_string();
        line.positions.iter().map(move |position| {
            let instrument = position.instrument.to_string();
            (both(("strategy", &strategy), ("instrument", &instrument)), position.net as f64)
        })
    });
    let errors =
        errors.iter().map(|line| (both(("who", &line.who), ("what", &line.what)), line.count as f64));
    [
        family("run", "info", "The run that is watched.", [(run.to_vec(), 1.0)]),
        family(
            "orders",
            "counter",
            "Orders so far.",
            orders.map(|(what, count)| (of("what", what), count as f64)),
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
    use crate::watch::model::ErrorLine;

    #[test]
    fn what_others_wrote_ends_no_line() {
        let error = ErrorLine { who: "strategy-1".into(), what: "says \"a\\b\"\nx".into(), count: 2 };
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
