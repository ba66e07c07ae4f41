//! The axes along which experiments vary settings, in one table with an entry for each axis.
//!
//! A *bill* is what `launcher bill` makes: a table with the cost of each isolation level and
//! technique, a row for each.

use crate::stats::RunOutline;
use record::numbers::plain;
use record::units::{Bytes, Count, Nanos};
use serde::{Deserialize, Serialize};
use verdict::chart::axis;
use verdict::chart::plot::Unit;

/// An entry in the table of axes (settings that experiments vary): unit, names in texts and tables,
/// charts, and which experiments vary the axis.
pub struct AxisEntry {
    /// Whether the axis' values are measured alternately and compared; else the axis is a
    /// condition.
    pub is_compared: bool,
    /// The noun for one value of the axis and for several: `1 isolation level`, `2 isolation
    /// levels`.
    pub nouns: [&'static str; 2],
    /// Whether `launcher sweep` varies the axis.
    pub is_swept: bool,
    /// The unit of the axis' values.
    pub unit: AxisUnit,
    /// The role of the axis in a bill of isolation costs.
    pub cost_role: CostRole,
    /// The key of the setting that is computed from the axis' value, if it is another one. `None`:
    /// the setting of its own name.
    pub becomes: Option<&'static str>,
    /// Returns the axis' value of a saved run, if the run's outline has it.
    pub of_run: Option<fn(&RunOutline) -> String>,
    /// The head of the axis' column in tables; `None`: the axis' name.
    pub head: Option<&'static str>,
    /// The charts along the axis; `None` for no chart.
    pub chart: Option<AxisChart>,
}

/// The unit of an axis, a setting that an experiment varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisUnit {
    /// A name from a list, without a unit.
    Name,
    /// A number without a unit.
    Count,
    /// A duration with a unit, such as `500ns`.
    Time,
    /// A rate in orders a second.
    Rate,
    /// A size in bytes.
    Size,
}

/// How the rows of `launcher bill` use a setting: not varied, a row per value, extra rows for
/// non-default values, or equal in compared rows. `launcher bill` measures the cost of isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostRole {
    /// A bill does not vary the axis.
    No,
    /// Each row of the bill has one value of the axis.
    Row,
    /// Values other than this default make rows of their own, compared with the row of the default.
    Variant(&'static str),
    /// The axis is a condition: rows are compared only with rows that have the same value.
    Condition,
}

/// The charts with a varied setting on the horizontal axis: which charts to draw, and the title,
/// tick format and values of that axis.
pub struct AxisChart {
    /// The charts to draw along the axis.
    pub set: ChartSet,
    /// The title of the horizontal axis.
    pub title: &'static str,
    /// The format of the ticks on the horizontal axis.
    pub format: Unit,
    /// Returns the measured value of a run for the horizontal axis; `None`: the value of the
    /// setting.
    pub measured: Option<fn(&RunOutline) -> Option<f64>>,
}

/// The kinds of charts over a varied setting: cost of hand-offs, latency by rate, or latency with
/// CPU time, memory and start-up. They are ordered as on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartSet {
    /// The cost of the hand-offs beyond the work.
    Work,
    /// Latency against the rate.
    Latency,
    /// Latency, CPU time, memory and start-up.
    Costs,
}

impl AxisEntry {
    const NAMES: Self = Self {
        is_compared: true,
        nouns: ["value", "values"],
        is_swept: true,
        unit: AxisUnit::Name,
        cost_role: CostRole::No,
        becomes: None,
        of_run: None,
        head: None,
        chart: None,
    };
    const UNSWEPT: Self = Self { is_swept: false, ..Self::NAMES };
    const CONDITION: Self = Self { is_compared: false, unit: AxisUnit::Count, ..Self::NAMES };
}

/// Makes the enum of axes, with name and entry of each.
macro_rules! axes {
    ($($(#[$doc:meta])* $axis:ident = $name:literal, $entry:expr;)+) => {
        /// A setting or load that an experiment can vary, such as the isolation level or the number
        /// of strategies. First come those that sweeps compare, then the conditions under which
        /// they do, then what other experiments vary.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Axis { $($(#[$doc])* #[serde(rename = $name)] $axis,)+ }

        impl Axis {
            /// All axes (settings that experiments vary), in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$axis,)+];

            /// Returns the name of the axis, which is that of its setting.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$axis => $name,)+ }
            }

            /// Returns the properties of the axis from the table of axes.
            pub const fn entry(self) -> &'static AxisEntry {
                match self { $(Self::$axis => const { &$entry },)+ }
            }
        }
    };
}

axes! {
    /// The technique that carries the submit and completion hand-offs.
    Technique = "technique", AxisEntry {
        nouns: ["technique", "techniques"], cost_role: CostRole::Row, of_run: Some(|run| run.technique.to_string()),
        ..AxisEntry::NAMES
    };
    /// The isolation level between strategies and engine.
    Isolation = "isolation", AxisEntry {
        nouns: ["isolation level", "isolation levels"], cost_role: CostRole::Row,
        of_run: Some(|run| run.isolation.to_string()), ..AxisEntry::NAMES
    };
    /// Which processes the engine's roles are in.
    Process = "process", AxisEntry {
        nouns: ["process", "process"], cost_role: CostRole::Variant("engine"), ..AxisEntry::NAMES
    };
    /// The idle strategy of threads.
    Idle = "idle", AxisEntry {
        nouns: ["idle", "idle"], cost_role: CostRole::Condition, of_run: Some(|run| run.idle.to_string()), ..AxisEntry::NAMES
    };
    /// Slots of every ring.
    Capacity = "capacity", AxisEntry {
        nouns: ["capacity", "capacity"], unit: AxisUnit::Count,
        of_run: Some(|run| run.capacity.to_string()), ..AxisEntry::NAMES
    };
    /// Which points of an order's way are stamped.
    Stamps = "stamps", AxisEntry {
        nouns: ["stamps", "stamps"], cost_role: CostRole::Variant("all"), ..AxisEntry::NAMES
    };
    /// The journal of exchanges and engine.
    Journal = "journal", AxisEntry { nouns: ["journal", "journal"], ..AxisEntry::NAMES };
    /// The executable of strategies' processes.
    Binary = "binary", AxisEntry {
        nouns: ["binary", "binaries"], cost_role: CostRole::Variant("shared"),
        of_run: Some(|run| run.memory.binary.to_string()), ..AxisEntry::NAMES
    };
    /// Whether strategies' processes are closed to the predictions of others.
    Speculation = "speculation", AxisEntry {
        nouns: ["speculation", "speculation"], cost_role: CostRole::Variant("open"), ..AxisEntry::NAMES
    };
    /// Whether threads are pinned to cores.
    Pin = "pin", AxisEntry {
        nouns: ["pin", "pin"], cost_role: CostRole::Variant("on"), of_run: Some(|run| switch(run.is_pinned)),
        ..AxisEntry::NAMES
    };
    /// Whether shared memory is mapped with huge pages.
    HugePages = "huge-pages", AxisEntry {
        nouns: ["huge-pages", "huge-pages"], cost_role: CostRole::Variant("off"),
        of_run: Some(|run| switch(run.memory.huge_pages)), ..AxisEntry::NAMES
    };
    /// Whether roles lock their memory.
    LockMemory = "lock-memory", AxisEntry {
        nouns: ["lock-memory", "lock-memory"], cost_role: CostRole::Variant("off"),
        of_run: Some(|run| switch(run.memory.lock_memory)), ..AxisEntry::NAMES
    };
    /// The orchestrator's extra work.
    Work = "work", AxisEntry {
        nouns: ["amount of work", "amounts of work"], unit: AxisUnit::Time, head: Some("orch_work"),
        of_run: Some(|run| format!("{}ns", run.work_ns)),
        chart: Some(AxisChart {
            set: ChartSet::Work, title: "W, work done for an order", format: axis::DURATION,
            measured: Some(|run| Some(run.work())),
        }),
        ..AxisEntry::CONDITION
    };
    /// The number of strategies.
    Strategies = "strategies", AxisEntry {
        nouns: ["number of strategies", "numbers of strategies"], cost_role: CostRole::Condition,
        of_run: Some(|run| run.strategies.to_string()),
        chart: Some(AxisChart {
            set: ChartSet::Costs, title: "strategies", format: axis::NUMBER, measured: None,
        }),
        ..AxisEntry::CONDITION
    };
    /// The number of venues.
    Venues = "venues", AxisEntry {
        nouns: ["venues", "venues"], of_run: Some(|run| run.venues.to_string()), ..AxisEntry::CONDITION
    };
    /// The number of cores that the strategies share.
    StrategyCores = "strategy-cores", AxisEntry {
        nouns: ["number of strategy cores", "numbers of strategy cores"], cost_role: CostRole::Condition,
        ..AxisEntry::CONDITION
    };
    /// The size of the heap that each strategy walks between its orders.
    WorkingSet = "working-set", AxisEntry {
        nouns: ["working set", "working sets"], unit: AxisUnit::Size, cost_role: CostRole::Condition,
        of_run: Some(|run| Bytes(run.memory.working_set_bytes).to_string()),
        chart: Some(AxisChart {
            set: ChartSet::Costs, title: "working set of a strategy (bytes)", format: axis::NUMBER,
            measured: None,
        }),
        ..AxisEntry::CONDITION
    };
    /// Orders a second of all strategies together, from which the number of orders in the window is
    /// computed.
    Rate = "rate", AxisEntry {
        nouns: ["rate", "rates"], unit: AxisUnit::Rate, becomes: Some("orders"),
        chart: Some(AxisChart {
            set: ChartSet::Latency, title: "offered rate (orders/s)", format: axis::NUMBER,
            measured: Some(|run| run.offered_per_s),
        }),
        ..AxisEntry::CONDITION
    };
    /// The fault that is injected into a run.
    Fault = "fault", AxisEntry::UNSWEPT;
    /// The number of producers of a queue.
    Producers = "producers", AxisEntry { unit: AxisUnit::Count, ..AxisEntry::UNSWEPT };
    /// The number of consumers of a queue.
    Consumers = "consumers", AxisEntry { unit: AxisUnit::Count, ..AxisEntry::UNSWEPT };
    /// Whether a queue's producers are fast or slow.
    Producer = "producer", AxisEntry::UNSWEPT;
    /// Whether a queue's consumers are fast or slow.
    Consumer = "consumer", AxisEntry::UNSWEPT;
    /// How the ends of a queue wait.
    Wait = "wait", AxisEntry::UNSWEPT;
    /// The arrival process of a board's writes.
    Mode = "mode", AxisEntry::UNSWEPT;
    /// Size of a board's values, in bytes.
    SizeBytes = "size-bytes", AxisEntry { unit: AxisUnit::Count, ..AxisEntry::UNSWEPT };
    /// The number of readers of a board.
    Readers = "readers", AxisEntry { unit: AxisUnit::Count, ..AxisEntry::UNSWEPT };
    /// How the readers of a board wait.
    Waiting = "waiting", AxisEntry::UNSWEPT;
    /// Where a board is: in memory, or in a folder of a file system.
    On = "on", AxisEntry::UNSWEPT;
    /// The NUMA nodes of a board's writer and readers.
    Nodes = "nodes", AxisEntry::UNSWEPT;
    /// The part of a survey, or the purpose of a run in a prediction.
    Part = "part", AxisEntry::UNSWEPT;
}

fn switch(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

impl core::fmt::Display for Axis {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl Axis {
    /// Returns the axis with this name, or whose setting has this key.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|axis| axis.name() == name || axis.key() == name)
    }

    /// Iterates over the axes (settings) that `launcher sweep` varies.
    pub fn swept() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|axis| axis.entry().is_swept)
    }

    /// Returns the key of the axis' setting in config files: the name with `_` for `-`.
    pub fn key(self) -> String {
        self.name().replace('-', "_")
    }

    /// Returns the config-file key of the setting that this axis' value sets: the axis' own key
    /// unless its entry names another one.
    pub fn setting(self) -> String {
        self.entry().becomes.map_or_else(|| self.key(), str::to_owned)
    }

    /// Returns `true` if the values of this varied setting are measured alternately and compared.
    pub const fn is_compared(self) -> bool {
        self.entry().is_compared
    }

    /// Returns `true` if `launcher bill` (the experiment on isolation costs) may vary this setting,
    /// such as the isolation level or the points that are stamped.
    pub fn is_of_bill(self) -> bool {
        self.entry().cost_role != CostRole::No
    }

    /// Returns `true` if this value is the axis' default and is omitted from the names of
    /// combinations of settings. Only axes that were added later have one: names of older settings
    /// stay as they were.
    pub fn is_unnamed_default(self, text: &str) -> bool {
        match self {
            Self::WorkingSet => text == "0",
            Self::Binary | Self::Speculation | Self::Pin | Self::HugePages | Self::LockMemory => {
                matches!(self.entry().cost_role, CostRole::Variant(usual) if usual == text)
            }
            _ => false,
        }
    }

    /// Returns a value's text as a number in the axis' unit; `None` if the value is a name.
    pub fn number(self, text: &str) -> Option<f64> {
        match self.entry().unit {
            AxisUnit::Name => None,
            AxisUnit::Time => text.parse::<Nanos>().ok().map(|time| time.0 as f64),
            AxisUnit::Size => text.parse::<Bytes>().ok().map(|size| size.0 as f64),
            AxisUnit::Count | AxisUnit::Rate => text.parse::<Count>().ok().map(|count| count.0 as f64),
        }
    }

    /// Returns the step of a slope along the axis, in units of [`Axis::number`], with its name.
    pub(super) const fn step(self) -> (f64, &'static str) {
        match self.entry().unit {
            AxisUnit::Size => (1048576.0, "MiB"),
            AxisUnit::Time => (1e3, "µs"),
            AxisUnit::Rate => (1e3, "1,000 a second"),
            AxisUnit::Name | AxisUnit::Count => (1.0, "one more"),
        }
    }

    /// Returns `true` if two texts are the same value of the axis: `1us` and `1000ns`.
    pub fn is_same_value(self, a: &str, b: &str) -> bool {
        match self.entry().unit {
            AxisUnit::Name => a == b,
            _ => self.number(a).is_some() && self.number(a) == self.number(b),
        }
    }

    /// Formats a value for a table: durations in nanoseconds, as in the benchmark that this project
    /// started from; rates in full.
    pub(super) fn format_value(self, text: &str) -> String {
        match (self.entry().unit, self.number(text)) {
            (AxisUnit::Time, Some(ns)) => format!("{} ns", ns as u64),
            (AxisUnit::Rate, Some(rate)) => format!("{}/s", plain(rate)),
            _ => text.to_owned(),
        }
    }
}

/// A setting that an experiment varies, with its values in the order of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisRecord {
    /// The setting that varies.
    pub axis: Axis,
    /// The values of the axis.
    pub values: Vec<String>,
}

impl AxisRecord {
    /// Returns how many values of what the axis has: `3 isolation levels`.
    pub(super) fn counted(&self) -> String {
        let [one, several] = self.axis.entry().nouns;
        let count = self.values.len();
        format!("{count} {}", if count == 1 { one } else { several })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_amount_are_the_same() {
        assert!(Axis::Work.is_same_value("1us", "1000ns") && !Axis::Work.is_same_value("1us", "1ns"));
        assert!(Axis::Strategies.is_same_value("1k", "1000") && Axis::Idle.is_same_value("spin", "spin"));
        assert!(!Axis::Work.is_same_value("x", "x"), "no duration");
        assert!(Axis::WorkingSet.is_same_value("1024KiB", "1MiB"));
        assert_eq!(
            (Axis::WorkingSet.key().as_str(), Axis::from_name("working_set")),
            ("working_set", Some(Axis::WorkingSet))
        );
        let shown =
            [Axis::Work.format_value("2us"), Axis::Rate.format_value("5k"), Axis::Idle.format_value("spin")];
        assert_eq!(shown, ["2000 ns", "5,000/s", "spin"]);
    }
}
