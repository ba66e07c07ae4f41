//! Figures of the crossing between two hosts, with clock errors: `remote.json` and its table.

use crate::far::{Far, MOST_READINGS, Orders};
use bridge::clock::{Assumed, Interval, Known, NoOffset, Offset, quantile};
use bridge::link::Link;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Its name in the run's folder.
pub const FILE: &str = "remote.json";

/// The version of its form.
const VERSION: u32 = 1;

/// So far before the first order and behind the last one the offset is told too: there its bounds
/// widen.
const OUTSIDE_NS: u64 = 60_000_000_000;

/// The shares that are printed.
const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

/// A figure of the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// In nanoseconds; none where it is smaller than its error.
    pub ns: Option<i64>,
    /// It is at most so far from the truth, in nanoseconds.
    pub error_ns: u64,
}

/// A stage between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// `out`, `there`, `home` or `whole`.
    pub name: String,
    /// p50, p90, p99, max.
    pub quantiles: Vec<Figure>,
}

/// How far the engine's clock is ahead at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    /// Which time.
    pub when: String,
    /// The least that it can be, in nanoseconds.
    pub least_ns: i128,
    /// The most.
    pub most_ns: i128,
}

/// The two clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// Why nothing is known of them.
    pub unknown: Option<String>,
    /// How far the engine's is ahead: before, during and after.
    pub ahead: Vec<Ahead>,
    /// How fast it gains, in parts per million: the least and the most.
    pub drift_ppm: Option<[f64; 2]>,
}

/// What the link counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// Sessions that were up.
    pub sessions: u64,
    /// Messages that came again.
    pub doubled: u64,
    /// Frames of sessions that are over.
    pub stale: u64,
    /// Bytes that were no frame of this meeting.
    pub strange: u64,
    /// Frames that no honest side sends.
    pub misconduct: u64,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crossing {
    /// The version of this form.
    pub version: u32,
    /// The run's id.
    pub run: String,
    /// Orders, by what became of them.
    pub orders: Orders,
    /// What the link counted.
    pub frames: Frames,
    /// Sessions that ended before the run did, and why.
    pub downs: Vec<(u64, String)>,
    /// The stages of the orders that the engine answered.
    pub stages: Vec<Stage>,
    /// Orders of which the stages are.
    pub measured: u64,
    /// The clocks.
    pub clocks: Clocks,
    /// Why the bridge could not go on.
    pub error: Option<String>,
}

fn figure(known: Known) -> Figure {
    Figure { ns: known.says_something().then_some(known.ns), error_ns: known.error_ns }
}

fn exact(ns: u64) -> Known {
    Known { ns: i64::try_from(ns).unwrap_or(i64::MAX), error_ns: 0 }
}

impl Clocks {
    fn of(offset: &Result<Offset, NoOffset>, first: u64, last: u64) -> Self {
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
    /// Of a bridge whose run is over.
    pub fn of(run: &str, far: &Far<'_>, link: &Link, error: Option<String>) -> Self {
        let offset = link.clocks.solve(&Assumed::default());
        let legs: Vec<_> = match &offset {
            Ok(offset) => far.readings.iter().filter_map(|readings| offset.legs(readings)).collect(),
            Err(_) => Vec::new(),
        };
        let stage = |name: &str, values: Vec<Known>| Stage {
            name: name.into(),
            quantiles: SHARES.iter().filter_map(|(_, share)| quantile(&values, *share)).map(figure).collect(),
        };
        let stages = vec![
            stage("out", legs.iter().map(|legs| legs.out).collect()),
            stage("there", legs.iter().map(|legs| exact(legs.there)).collect()),
            stage("home", legs.iter().map(|legs| legs.home).collect()),
            stage("whole", legs.iter().map(|legs| exact(legs.whole)).collect()),
        ];
        let first = far.readings.iter().map(|readings| readings.sent).min().unwrap_or(0);
        let last = far.readings.iter().map(|readings| readings.back).max().unwrap_or(0);
        let bridge::link::Counts { strange, stale, doubled, sessions, misconduct } = link.counts;
        Self {
            version: VERSION,
            run: run.into(),
            orders: far.orders,
            frames: Frames { sessions, doubled, stale, strange, misconduct },
            downs: far.downs.iter().map(|(session, why)| (*session, why.to_string())).collect(),
            measured: legs.len() as u64,
            stages: if legs.is_empty() { Vec::new() } else { stages },
            clocks: Clocks::of(&offset, first, last),
            error,
        }
    }

    /// Writes it into a run's folder.
    ///
    /// # Errors
    /// What the system refused.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        let new = folder.join(format!("{FILE}.new"));
        std::fs::write(&new, text + "\n")?;
        std::fs::rename(new, folder.join(FILE))
    }

    /// Reads it from a run's folder.
    ///
    /// # Errors
    /// What the system refused; what is none of this version.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(folder.join(FILE))?;
        let crossing: Self = serde_json::from_str(&text).map_err(io::Error::other)?;
        if crossing.version != VERSION {
            return Err(io::Error::other(format!("{FILE} has version {}, not {VERSION}", crossing.version)));
        }
        Ok(crossing)
    }

    /// The table.
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
            let cells: String = quantiles.iter().map(|figure| format!("{:>24}", cell(figure))).collect();
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
        if self.measured < answered.min(MOST_READINGS as u64) && self.clocks.unknown.is_none() {
            line(format!("         {} of them have stages", self.measured));
        }
        let Frames { sessions, doubled, stale, strange, misconduct } = self.frames;
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
fn cell(figure: &Figure) -> String {
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
