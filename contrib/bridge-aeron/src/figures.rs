//! Latencies between two hosts with clock errors: `remote.json` and its table.

use crate::strategy_side::{MAX_ROUND_TRIPS, Orders, StrategySide};
use bridge::clock::{ClockAssumptions, Interval, Offset, OffsetError, UncertainNs, quantile};
use bridge::link::{Link, LinkCounts};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Name of the file with a bridge's figures in the run's directory.
pub const FILE: &str = "remote.json";

const VERSION: u32 = 1;

/// Time around the orders at which the offset is reported too, with wider bounds, in nanoseconds.
const OUTSIDE_NS: u64 = 60_000_000_000;

const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

/// A duration on an order's way between two hosts, in nanoseconds, and the most by which it may be
/// too high or too low. Saved in `remote.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The figure in nanoseconds; `None` if it is smaller than its error.
    pub ns: Option<i64>,
    /// Maximum error in nanoseconds.
    pub error_ns: u64,
}

/// Quantiles of one stage of an order's way to the other host and back, in `remote.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Name of the stage: `out`, `there`, `home` or `whole`.
    pub name: String,
    /// p50, p90, p99, max.
    pub quantiles: Vec<Figure>,
}

/// Bounds, in nanoseconds, on how far the engine's clock was ahead of the strategies' host's at one
/// time, in `remote.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    /// Description of the time.
    pub when: String,
    /// Minimum in nanoseconds.
    pub least_ns: i128,
    /// Maximum in nanoseconds.
    pub most_ns: i128,
}

/// The offset and the drift between the clocks of the engine's and the strategies' hosts, in
/// `remote.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// Reason for which the offset is unknown.
    pub unknown: Option<String>,
    /// Lead of the engine's clock: before, during and after the run.
    pub ahead: Vec<Ahead>,
    /// Minimum and maximum rate at which the engine's clock gains, in parts per million.
    pub drift_ppm: Option<[f64; 2]>,
}

/// The measurements of a bridge, as saved in `remote.json`: order counts, ended sessions, latencies
/// between the hosts and clock offsets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crossing {
    /// Schema version.
    pub version: u32,
    /// The run's id.
    pub run: String,
    /// Orders by outcome.
    pub orders: Orders,
    /// Frame counters of the link.
    pub frames: LinkCounts,
    /// Sessions that ended before the run, with their causes.
    pub downs: Vec<(u64, String)>,
    /// Quantiles of the stages of answered orders.
    pub stages: Vec<Stage>,
    /// Number of orders measured.
    pub measured: u64,
    /// The clocks of the two hosts.
    pub clocks: Clocks,
    /// Why the bridge failed, if it did.
    pub error: Option<String>,
}

fn figure(value: UncertainNs) -> Figure {
    Figure { ns: value.is_significant().then_some(value.ns), error_ns: value.error_ns }
}

fn exact(ns: u64) -> UncertainNs {
    UncertainNs { ns: i64::try_from(ns).unwrap_or(i64::MAX), error_ns: 0 }
}

impl Clocks {
    fn from_offset(offset: &Result<Offset, OffsetError>, first: u64, last: u64) -> Self {
        let offset = match offset {
            Ok(offset) => offset,
            Err(error) => return Self { unknown: Some(error.to_string()), ..Self::default() },
        };
        let times = [
            ("a minute before the first order", first.saturating_sub(OUTSIDE_NS)),
            ("at the first order", first),
            ("in the middle", first.midpoint(last)),
            ("at the last order", last),
            ("a minute behind the last order", last.saturating_add(OUTSIDE_NS)),
        ];
        let ahead = |(when, at): (&str, u64)| {
            let Interval { low, high } = offset.at(at);
            Ahead { when: when.into(), least_ns: low, most_ns: high }
        };
        let Interval { low, high } = offset.drift_ppm();
        Self { unknown: None, ahead: times.map(ahead).into(), drift_ppm: Some([low, high]) }
    }
}

impl Crossing {
    /// Computes a bridge's measurements for `remote.json` after its run has ended.
    pub fn new(run: &str, side: &StrategySide<'_>, link: &Link, error: Option<String>) -> Self {
        let offset = link.clocks.solve(&ClockAssumptions::default());
        let trips: Vec<_> = match &offset {
            Ok(offset) => side.round_trips.iter().filter_map(|trip| offset.stages(trip)).collect(),
            Err(_) => Vec::new(),
        };
        let stage = |name: &str, values: Vec<UncertainNs>| Stage {
            name: name.into(),
            quantiles: SHARES.iter().filter_map(|(_, share)| quantile(&values, *share)).map(figure).collect(),
        };
        let stages = vec![
            stage("out", trips.iter().map(|trips| trips.out).collect()),
            stage("there", trips.iter().map(|trips| exact(trips.there)).collect()),
            stage("home", trips.iter().map(|trips| trips.home).collect()),
            stage("whole", trips.iter().map(|trips| exact(trips.whole)).collect()),
        ];
        let first = side.round_trips.iter().map(|trip| trip.sent).min().unwrap_or(0);
        let last = side.round_trips.iter().map(|trip| trip.returned).max().unwrap_or(0);
        Self {
            version: VERSION,
            run: run.into(),
            orders: side.orders,
            frames: link.counts,
            downs: side.downs.iter().map(|(session, why)| (*session, why.to_string())).collect(),
            measured: trips.len() as u64,
            stages: if trips.is_empty() { Vec::new() } else { stages },
            clocks: Clocks::from_offset(&offset, first, last),
            error,
        }
    }

    /// Writes the figures as `remote.json` into a run's directory.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        let new = folder.join(format!("{FILE}.new"));
        std::fs::write(&new, text + "\n")?;
        std::fs::rename(new, folder.join(FILE))
    }

    /// Reads the figures from `remote.json` in a run's directory; returns an error if the file's
    /// format version is not this program's.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(folder.join(FILE))?;
        let crossing: Self = serde_json::from_str(&text).map_err(io::Error::other)?;
        if crossing.version != VERSION {
            return Err(io::Error::other(format!("{FILE} has version {}, not {VERSION}", crossing.version)));
        }
        Ok(crossing)
    }

    /// Formats the figures as a table for the terminal.
    pub fn table(&self) -> String {
        let mut text = String::from("\nbetween the hosts\n");
        // Writing into a text cannot fail.
        let mut line = |words: String| {
            let _ = writeln!(text, "{words}");
        };
        if let Some(error) = &self.error {
            line(format!("the bridge could not go on: {error}"));
        }
        if !self.stages.is_empty() {
            let head: String = SHARES.iter().map(|(name, _)| format!("{name:>24}")).collect();
            line(format!("{:<8}{head}", "stage"));
        }
        for Stage { name, quantiles } in &self.stages {
            let cells: String =
                quantiles.iter().map(|figure| format!("{:>24}", figure_cell(figure))).collect();
            line(format!("{name:<8}{cells}"));
        }
        let Orders { answered, lost, cut_off, unknown, refused, cancels, strange } = self.orders;
        line(format!(
            "orders   answered {answered}, lost {lost}, cut off {cut_off}, unknown {unknown}, not sent {refused}"
        ));
        if cancels + strange > 0 {
            line(format!(
                "         cancels for strategies that died here {cancels}, reports that cannot be {strange}"
            ));
        }
        if self.measured < answered.min(MAX_ROUND_TRIPS as u64) && self.clocks.unknown.is_none() {
            line(format!("         {} of them have stages", self.measured));
        }
        let LinkCounts { sessions, doubled, stale, strange, misconduct } = self.frames;
        line(format!(
            "link     sessions {sessions}, doubled {doubled}, stale {stale}, strange {strange}, misconduct {misconduct}"
        ));
        for (session, why) in &self.downs {
            line(format!("         session {}.{} ended: {why}", session >> 48, session & 0xFFFF_FFFF_FFFF));
        }
        if let Some(unknown) = &self.clocks.unknown {
            line(format!("clocks   {unknown}"));
        }
        if let Some([least, most]) = self.clocks.drift_ppm {
            line(format!("clocks   the engine's gains {least:.3} to {most:.3} ppm, and is ahead by"));
        }
        for Ahead { when, least_ns, most_ns } in &self.clocks.ahead {
            let (middle, error) = (least_ns.midpoint(*most_ns), (most_ns - least_ns) / 2 + 1);
            line(format!("         {} ± {}   {when}", nanos(middle), nanos(error)));
        }
        text
    }
}

/// A figure that is smaller than its error is not shown.
fn figure_cell(figure: &Figure) -> String {
    match (figure.ns, figure.error_ns) {
        (Some(ns), 0) => nanos(ns.into()),
        (Some(ns), error) => format!("{} ± {}", nanos(ns.into()), nanos(error.into())),
        (None, error) => format!("< {}", nanos(error.into())),
    }
}

/// With three places at most.
fn nanos(ns: i128) -> String {
    let size = ns.unsigned_abs();
    match size {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        10_000_000..100_000_000_000 => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.6} s", ns as f64 / 1e9),
    }
}
