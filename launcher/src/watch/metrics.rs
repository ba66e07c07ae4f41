//! A look as OpenMetrics text, into a file or for who asks on loopback: Prometheus and what speaks its language.

use super::model::Snapshot;
use crate::config::UsageError;
use analysis::document::write_named;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// How long one who asks may take to ask and to listen.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where metrics go.
pub enum Metrics {
    /// Into a file, written anew at each look, whole or not at all.
    File(PathBuf),
    /// To who asks there.
    Listener(TcpListener),
}

impl Metrics {
    /// A file, or an address of this machine alone: `127.0.0.1:9464`.
    ///
    /// # Errors
    /// [`UsageError`]: an address that others can reach, or one that cannot be had.
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
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn publish(&self, text: &str) -> Result<()> {
        match self {
            Self::File(path) => {
                write_named(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
            }
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
    // Whatever is asked for, there is one answer; the question is read so that the connection ends in order.
    let _ = stream.read(&mut [0; 4_096])?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

/// A family of metrics that is being written.
struct Family<'a> {
    out: &'a mut String,
    sample: String,
}

impl<'a> Family<'a> {
    fn new(out: &'a mut String, name: &str, kind: &str, help: &str) -> Self {
        let _ = writeln!(out, "# TYPE bulkhead_{name} {kind}\n# HELP bulkhead_{name} {help}");
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        Self { out, sample: format!("bulkhead_{name}{suffix}") }
    }

    fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        if value.is_finite() {
            let _ = writeln!(self.out, "{}{labels} {value}", self.sample);
        }
    }
}

/// A look as OpenMetrics text. Times are in seconds.
pub fn text(looked: &Snapshot) -> String {
    let mut out = String::new();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let run = [
        ("run", looked.run.as_str()),
        ("isolation", &looked.isolation),
        ("technique", &looked.technique),
        ("state", looked.state.name()),
    ];
    Family::new(&mut out, "run", "info", "The run that is watched.").add(&run, 1.0);
    let mut family = Family::new(&mut out, "orders", "counter", "Orders so far.");
    for (what, count) in [
        ("sent", looked.sent),
        ("dispatched", looked.dispatched),
        ("settled", looked.settled),
        ("rejected", looked.rejected),
    ] {
        family.add(&[("what", what)], count as f64);
    }
    let mut family = Family::new(&mut out, "role_counter", "counter", "What a role counts.");
    for role in &looked.roles {
        for (counter, value) in &role.counters {
            family.add(&[("role", &role.role), ("counter", counter)], *value as f64);
        }
    }
    let mut family =
        Family::new(&mut out, "role_switches", "counter", "Context switches of a role's thread.");
    for role in &looked.roles {
        for (kind, count) in
            [("voluntary", role.voluntary_switches), ("involuntary", role.involuntary_switches)]
        {
            count
                .into_iter()
                .for_each(|count| family.add(&[("role", &role.role), ("kind", kind)], count as f64));
        }
    }
    let mut family =
        Family::new(&mut out, "role_longest_gap_seconds", "gauge", "The longest time away from duty cycles.");
    looked.roles.iter().for_each(|role| family.add(&[("role", &role.role)], seconds(role.longest_gap_ns)));
    let mut family =
        Family::new(&mut out, "role_heartbeat_age_seconds", "gauge", "Since the last duty cycle.");
    for role in &looked.roles {
        role.heartbeat_age_ns.into_iter().for_each(|age| family.add(&[("role", &role.role)], seconds(age)));
    }
    let mut family = Family::new(&mut out, "ring_messages", "gauge", "Messages in a ring.");
    for ring in &looked.rings {
        ring.fill.into_iter().for_each(|fill| family.add(&[("ring", &ring.ring)], fill as f64));
    }
    let mut family = Family::new(&mut out, "ring_capacity", "gauge", "Messages that a ring has room for.");
    looked.rings.iter().for_each(|ring| family.add(&[("ring", &ring.ring)], ring.capacity as f64));
    let mut family =
        Family::new(&mut out, "stage_seconds", "gauge", "What a stage costs now, of sampled orders.");
    for stage in &looked.stages {
        for (quantile, value) in [("0.5", stage.p50_ns), ("0.99", stage.p99_ns)] {
            value
                .into_iter()
                .for_each(|ns| family.add(&[("stage", stage.stage), ("quantile", quantile)], seconds(ns)));
        }
    }
    strategies(looked, &mut out);
    let mut family = Family::new(&mut out, "errors", "counter", "What went wrong.");
    for error in &looked.errors {
        family.add(&[("who", &error.who), ("what", &error.what)], error.count as f64);
    }
    out.push_str("# EOF\n");
    out
}

fn strategies(looked: &Snapshot, out: &mut String) {
    let name = |index: u16| index.to_string();
    let mut family = Family::new(out, "strategy_incidents", "counter", "How often a strategy has died.");
    for line in &looked.strategies {
        family.add(&[("strategy", &name(line.strategy))], line.incidents as f64);
    }
    let mut family =
        Family::new(out, "strategy_killed", "gauge", "Whether a kill switch concerns a strategy.");
    for line in &looked.strategies {
        family.add(&[("strategy", &name(line.strategy))], f64::from(u8::from(!line.killed.is_empty())));
    }
    let mut family = Family::new(out, "strategy_position", "gauge", "Bought minus sold, in 1e-8 units.");
    for line in &looked.strategies {
        for position in &line.positions {
            let instrument = position.instrument.to_string();
            family
                .add(&[("strategy", &name(line.strategy)), ("instrument", &instrument)], position.net as f64);
        }
    }
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
