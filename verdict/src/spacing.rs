//! The spacing of a recorded flow's rows for each instrument: how much time a consumer has for a
//! row before the next one comes.

use crate::table::{Grid, GridRow};
use hdrhistogram::Histogram;
use protocol::index::VenueIndex;
use record::document::answer_json;
use record::numbers::{count, counted, duration};
use serde::Serialize;
use std::collections::BTreeMap;

/// Lower bounds of the classes, in nanoseconds: powers of ten from below 1 µs to 10 s and more.
const CLASSES: [u64; 9] =
    [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];
/// Length of the longest bar of the histogram, in characters.
const BAR: u64 = 30;

/// A collector of the times between the rows of a recorded order flow, for each instrument. Each
/// venue of a flow is one instrument's book.
#[derive(Default)]
pub struct SpacingCollector {
    instruments: BTreeMap<u16, InstrumentTicks>,
}

struct InstrumentTicks {
    first_ns: u64,
    last_ns: u64,
    ticks: u64,
    classes: [u64; CLASSES.len()],
    spacings: Histogram<u64>,
}

/// The distribution of the times between one instrument's rows in a recorded flow, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spacing {
    /// Index of the venue in the flow, whose book is the instrument's.
    pub venue: VenueIndex,
    /// Number of rows of the instrument.
    pub ticks: u64,
    /// Time from the first row to the last one, in nanoseconds.
    pub window_ns: u64,
    /// Mean number of rows in a second; null for a flow of one time.
    pub ticks_per_second: Option<f64>,
    /// Mean spacing, in nanoseconds; null with fewer than two rows.
    pub mean_ns: Option<f64>,
    /// Median spacing, in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the spacings, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Longest spacing, in nanoseconds.
    pub max_ns: Option<u64>,
    /// The class with the most spacings, the shortest one of several; null without any.
    pub most_frequent: Option<String>,
    /// Number of spacings in each class, a power of ten wide.
    pub classes: Vec<SpacingClass>,
}

/// A class of an instrument's spacings (times between rows), such as 1 ms to 10 ms: its bounds in
/// nanoseconds and the number of spacings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpacingClass {
    /// Name of the class: `1 ms to 10 ms`.
    pub name: String,
    /// Shortest spacing of the class, in nanoseconds.
    pub from_ns: u64,
    /// Spacing in nanoseconds from which the next class begins; null for the last one.
    pub to_ns: Option<u64>,
    /// Number of spacings in the class.
    pub count: u64,
    /// Share of all spacings of the instrument, 0 to 1.
    pub share: f64,
}

/// The spacings of a flow, as `launcher inspect --spacing --json` prints them.
#[derive(Serialize)]
struct FlowSpacing<'a> {
    flow: &'a str,
    instruments: &'a [Spacing],
}

impl SpacingCollector {
    /// Adds a row of the recorded flow, with its time in nanoseconds; rows are in the order of
    /// their times.
    pub fn add(&mut self, venue: VenueIndex, time_ns: u64) {
        let ticks = self.instruments.entry(venue.0).or_insert_with(|| InstrumentTicks::new(time_ns));
        if ticks.ticks > 0 {
            ticks.record(time_ns.saturating_sub(ticks.last_ns));
        }
        (ticks.ticks, ticks.last_ns) = (ticks.ticks + 1, time_ns);
    }

    /// Returns the distribution of the spacings between rows for each instrument.
    pub fn finish(self) -> Vec<Spacing> {
        self.instruments.into_iter().map(|(venue, ticks)| ticks.spacing(VenueIndex(venue))).collect()
    }
}

impl InstrumentTicks {
    fn new(first_ns: u64) -> Self {
        let spacings = Histogram::new(3).expect("three digits are allowed");
        Self { first_ns, last_ns: first_ns, ticks: 0, classes: [0; CLASSES.len()], spacings }
    }

    fn record(&mut self, spacing_ns: u64) {
        let class = CLASSES.partition_point(|from| *from <= spacing_ns) - 1;
        self.classes[class] += 1;
        // It grows with its values: none is refused.
        let _ = self.spacings.record(spacing_ns);
    }

    fn spacing(self, venue: VenueIndex) -> Spacing {
        let all: u64 = self.classes.iter().sum();
        let class = |(index, count): (usize, &u64)| SpacingClass {
            name: class_name(index),
            from_ns: CLASSES[index],
            to_ns: CLASSES.get(index + 1).copied(),
            count: *count,
            share: *count as f64 / all.max(1) as f64,
        };
        let classes: Vec<SpacingClass> = self.classes.iter().enumerate().map(class).collect();
        let most = self.classes.iter().max().copied().unwrap_or(0);
        let first = classes.iter().find(|class| class.count == most && most > 0);
        let window_ns = self.last_ns - self.first_ns;
        let known = |value: u64| (all > 0).then_some(value);
        Spacing {
            venue,
            ticks: self.ticks,
            window_ns,
            ticks_per_second: (window_ns > 0).then(|| all as f64 * 1e9 / window_ns as f64),
            mean_ns: (all > 0).then(|| window_ns as f64 / all as f64),
            p50_ns: known(self.spacings.value_at_quantile(0.5)),
            p99_ns: known(self.spacings.value_at_quantile(0.99)),
            max_ns: known(self.spacings.max()),
            most_frequent: first.map(|class| class.name.clone()),
            classes,
        }
    }
}

fn class_name(index: usize) -> String {
    let bound = |index: usize| match CLASSES[index] {
        ns if ns >= 1_000_000_000 => format!("{} s", ns / 1_000_000_000),
        ns if ns >= 1_000_000 => format!("{} ms", ns / 1_000_000),
        ns => format!("{} µs", ns / 1_000),
    };
    match index {
        0 => format!("below {}", bound(1)),
        last if last + 1 == CLASSES.len() => format!("{} and more", bound(last)),
        _ => format!("{} to {}", bound(index), bound(index + 1)),
    }
}

impl Spacing {
    /// Returns the distribution of an instrument's spacings as a table with a histogram.
    pub fn table(&self) -> Grid {
        let most = self.classes.iter().map(|class| class.count).max().unwrap_or(0).max(1);
        let row = |class: &SpacingClass| {
            // A class that is not empty has a bar.
            let length = (class.count * BAR).div_ceil(most) as usize;
            GridRow::plain(vec![
                class.name.clone(),
                count(class.count),
                format!("{:.1}%", class.share * 100.0),
                "█".repeat(length),
            ])
        };
        let title = format!("Venue {}: time between two ticks", self.venue);
        let known = |ns: Option<u64>| ns.map_or_else(|| "–".into(), duration);
        let grid =
            Grid::new("spacing", title, 1, ["spacing", "count", "share", ""], self.classes.iter().map(row));
        grid.note(format!(
            "{} in {}: mean {}, p50 {}, p99 {}, longest {}",
            counted(self.ticks, "tick"),
            duration(self.window_ns),
            known(self.mean_ns.map(|ns| ns as u64)),
            known(self.p50_ns),
            known(self.p99_ns),
            known(self.max_ns),
        ))
        .note(format!("most frequent: {}", self.most_frequent.as_deref().unwrap_or("–")))
    }
}

/// Returns the spacings between the rows of a recorded flow as a JSON document.
///
/// # Errors
/// None that occurs: every key is a text.
pub fn to_json(flow: &str, instruments: &[Spacing]) -> serde_json::Result<Vec<u8>> {
    answer_json("bulkhead.spacing/1", &FlowSpacing { flow, instruments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spacings(ticks: &[(u16, u64)]) -> Vec<Spacing> {
        let mut collector = SpacingCollector::default();
        ticks.iter().for_each(|(venue, ns)| collector.add(VenueIndex(*venue), *ns));
        collector.finish()
    }

    fn counts(spacing: &Spacing) -> Vec<u64> {
        spacing.classes.iter().map(|class| class.count).collect()
    }

    #[test]
    fn spacing_belongs_to_class_it_begins() {
        let mut time = 0;
        let mut tick = |spacing: u64| {
            time += spacing;
            (3, time)
        };
        let ticks = [0, 0, 999, 1_000, 9_999, 10_000, 1_000_000, 9_999_999, 10_000_000, 10_000_000_000]
            .map(&mut tick);
        let found = spacings(&ticks);
        assert_eq!(counts(&found[0]), [2, 2, 1, 0, 2, 1, 0, 0, 1]);
        assert_eq!((found[0].venue, found[0].ticks), (VenueIndex(3), 10));
        assert_eq!(found[0].most_frequent.as_deref(), Some("below 1 µs"), "the shortest of several");
    }

    #[test]
    fn instruments_are_spaced_apart_from_each_other() {
        let found = spacings(&[(0, 0), (1, 500), (0, 5_000_000), (1, 5_000_500), (0, 10_000_000)]);
        assert_eq!(counts(&found[0]), [0, 0, 0, 0, 2, 0, 0, 0, 0]);
        assert_eq!(counts(&found[1]), [0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!((found[0].mean_ns, found[0].ticks_per_second), (Some(5e6), Some(200.0)));
        assert_eq!(found[0].most_frequent.as_deref(), Some("1 ms to 10 ms"));
    }

    #[test]
    fn single_tick_has_no_spacing() {
        let found = spacings(&[(0, 7)]);
        assert_eq!((found[0].p50_ns, found[0].most_frequent.as_deref()), (None, None));
        let table = found[0].table().terminal(false);
        assert!(table.contains("1 tick in 0 ns: mean –") && table.contains("most frequent: –"), "{table}");
        assert!(spacings(&[]).is_empty());
    }
}
