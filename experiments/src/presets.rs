//! The presets of `launcher sweep` by name: they set axes. That of the *seed benchmark*, the one
//! that this project started from, also sets the load, which a flag overrides; that of the bill is
//! the machine's. The preset of `launcher board` gives flags other defaults.

use super::flags::{AxisValue, SweepRequest};
use analysis::experiment::Axis;
use planner::config::{Preset, Settings, UsageError, nearest};
use protocol::plan::{Isolation, Technique};
use system::named_enum;

named_enum! {
    /// A named set of varied settings for `launcher sweep`.
    SweepPreset {
        /// The benchmark that this project started from: its four techniques and ours at four
        /// amounts of work, five times, with its load.
        Seed = "seed",
        /// Every technique under every isolation level.
        Bill = "bill",
    }
}

named_enum! {
    /// A named set of defaults for `launcher board`.
    BoardPreset {
        /// The seed's study: 12 readers, three loads of 10 s, the size of its best bid and ask, its
        /// thresholds.
        Seed = "seed",
    }
}

impl BoardPreset {
    /// Parses the name of a preset (a named set of default flags) of `launcher board`, the
    /// benchmark of boards.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let missing = || UsageError(format!("--preset: there is no board {text:?}: there is seed"));
        Self::from_name(text).ok_or_else(missing)
    }
}

/// The defaults of `launcher board --preset seed`, by flag: those of the benchmark that this
/// project started from. The three loads are the usual ones.
pub mod seed_board {
    /// Value of `--readers` in `launcher board --preset seed`: the number of readers.
    pub const READERS: &str = "12";
    /// Value of `--duration` in `launcher board --preset seed`: how long each case is measured,
    /// with its unit.
    pub const DURATION: &str = "10s";
    /// Value of `--size` in `launcher board --preset seed`, in bytes: bid and ask, with six fields
    /// of 8 bytes each.
    pub const SIZE: &str = "96";
    /// Value of `--healthy` in `launcher board --preset seed`: the limits of the original
    /// benchmark.
    pub const HEALTHY: &str = "seed";
}

/// The four techniques of the benchmark that this project started from, in the order of its tables.
const SEED_TECHNIQUES: [&str; 4] =
    ["std-mpsc", "crossbeam-channel", "crossbeam-array-queue", "array-queue-mux"];
const SEED_WORK: [&str; 4] = ["0ns", "500ns", "1000ns", "1500ns"];

/// Ours next to them: rings per producer, and one ring for all.
const OWN_TECHNIQUES: [&str; 2] = ["spsc-mux", "array-queue"];

/// Default number of repeats of each combination of settings in a preset of `launcher sweep`, and
/// in `launcher bill` without a time limit.
pub const PRESET_REPEATS: u32 = 5;

impl SweepPreset {
    /// Reads the name of a preset of `launcher sweep`.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let text = text.trim();
        Self::from_name(text).ok_or_else(|| {
            let near = nearest(text, Self::ALL.iter().map(|preset| preset.name()));
            let hint = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            UsageError(format!("--preset: there is no sweep {text:?}: {hint}There are seed and bill"))
        })
    }

    /// Completes the request of a sweep with this preset's settings; settings that a flag gives are
    /// kept.
    pub fn fill_request(self, asked: &mut SweepRequest) {
        let axes = match self {
            Self::Seed => {
                fill_load(asked);
                self.fill_levels(asked);
                [(Axis::Technique, SEED_TECHNIQUES.to_vec()), (Axis::Work, SEED_WORK.to_vec())]
            }
            Self::Bill => [
                (Axis::Technique, Technique::all().into_iter().map(Technique::name).collect()),
                (Axis::Isolation, Isolation::ALL.iter().map(|level| level.name()).collect()),
            ],
        };
        for (axis, names) in axes {
            if !asked.has_axis(axis) {
                asked.axes.push(names.into_iter().map(|name| value(axis, name)).collect());
            }
        }
        asked.base.repeats = Some(asked.repeats(PRESET_REPEATS.into()));
        asked.axes.sort_by_key(|values| values[0].axis);
    }

    /// Adds the levels of the seed's sweep: its queues live on the heap, where only threads reach
    /// them. Next to them our own, as threads and as processes.
    fn fill_levels(self, asked: &mut SweepRequest) {
        if asked.has_axis(Axis::Isolation) {
            return;
        }
        if asked.has_axis(Axis::Technique) {
            asked.base.isolation = Some(Isolation::Thread.into());
            return;
        }
        let thread = Isolation::Thread.name();
        asked.axes.push(vec![value(Axis::Isolation, thread)]);
        let levels = [thread, Isolation::Process.name()];
        let arms = OWN_TECHNIQUES.iter().flat_map(|technique| levels.map(|level| (*technique, level)));
        asked.further = arms
            .map(|(technique, level)| vec![value(Axis::Technique, technique), value(Axis::Isolation, level)])
            .collect();
    }

    /// Returns a note that the load is not that of the seed benchmark; `None` if it is, or for
    /// another preset. The load is the number of strategies, the number of orders and the window.
    pub fn load_note(self, base: &Settings) -> Option<String> {
        let seed = Preset::Seed.settings();
        let same =
            base.strategies == seed.strategies && base.orders == seed.orders && base.window == seed.window;
        (self == SweepPreset::Seed && !same).then(|| {
            let text = |key| {
                base.texts().into_iter().find(|(name, _)| *name == key).map_or("–".into(), |(_, text)| text)
            };
            format!(
                "another load than the seed benchmark's: {} strategies, {} orders over {}; it had 8, 4000000 and 10s",
                text("strategies"),
                text("orders"),
                text("window"),
            )
        })
    }
}

/// Completes a request with the load of the seed benchmark, without what an axis sets.
fn fill_load(asked: &mut SweepRequest) {
    // A sweep varies the work, unless a flag names one amount.
    let load = Settings { work: None, ..Preset::Seed.settings() };
    asked.base = std::mem::take(&mut asked.base).over(load);
    for values in &asked.axes {
        asked.base.clear(&values[0].axis.setting());
    }
}

fn value(axis: Axis, name: &str) -> AxisValue {
    AxisValue { axis, text: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::units::Count;

    #[test]
    fn a_preset_fills_only_what_is_open() {
        let mut asked = SweepRequest::default();
        asked.axes.push(super::super::flags::read_values(Axis::Work, "1us,2us").unwrap());
        asked.base.technique = Some(Technique::default());
        asked.base.orders = Some(Count(400_000));
        SweepPreset::Seed.fill_request(&mut asked);
        assert_eq!(asked.axes.len(), 1, "{asked:?}");
        assert_eq!(asked.axes[0][0].text, "1us");
        assert!(asked.further.is_empty() && asked.base.work.is_none(), "{asked:?}");
        assert_eq!(
            (asked.base.isolation, asked.base.repeats),
            (Some(Isolation::Thread.into()), Some(Count(5)))
        );
        assert_eq!((asked.base.orders, asked.base.strategies), (Some(Count(400_000)), Some(Count(8))));
    }

    #[test]
    fn seed_has_its_load_and_our_techniques_as_processes() {
        let mut asked = SweepRequest::default();
        SweepPreset::Seed.fill_request(&mut asked);
        let axes: Vec<(Axis, usize)> =
            asked.axes.iter().map(|values| (values[0].axis, values.len())).collect();
        assert_eq!(axes, [(Axis::Technique, 4), (Axis::Isolation, 1), (Axis::Work, 4)]);
        let further: Vec<String> =
            asked.further.iter().map(|arm| format!("{} {}", arm[0].text, arm[1].text)).collect();
        assert_eq!(
            further,
            ["spsc-mux thread", "spsc-mux process", "array-queue thread", "array-queue process"]
        );
        let load = Settings { repeats: None, ..asked.base };
        assert_eq!(load, Settings { work: None, ..Preset::Seed.settings() });
    }

    #[test]
    fn rate_of_a_seed_sweep_replaces_its_orders() {
        let mut asked = SweepRequest::default();
        asked.axes.push(super::super::flags::read_values(Axis::Rate, "100k,200k").unwrap());
        SweepPreset::Seed.fill_request(&mut asked);
        assert_eq!((asked.base.orders, asked.base.window), (None, Preset::Seed.settings().window));
    }

    #[test]
    fn the_bill_has_every_technique_and_level() {
        let mut asked = SweepRequest::default();
        SweepPreset::Bill.fill_request(&mut asked);
        let sizes: Vec<_> = asked.axes.iter().map(Vec::len).collect();
        assert_eq!(sizes, [Technique::all().len(), Isolation::ALL.len()]);
    }
}
