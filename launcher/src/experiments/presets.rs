//! The presets of `launcher sweep` by name: they set axes, and leave the load to the machine or to
//! a flag. Preset `seed` repeats the *seed benchmark*, the one that this project started from. The
//! preset of `launcher board` gives flags other defaults.

use super::flags::{AxisValue, SweepRequest};
use crate::config::{Settings, UsageError, nearest};
use analysis::experiment::Axis;
use protocol::plan::{Isolation, Technique};
use system::named_enum;

named_enum! {
    /// A named set of varied settings for `launcher sweep`.
    SweepPreset {
        /// The benchmark that this project started from: its four techniques under threads, at four
        /// amounts of work, five times.
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
    /// Reads the name of a preset of `launcher board`.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let missing = || UsageError(format!("--preset: there is no board {text:?}: there is seed"));
        Self::from_name(text).ok_or_else(missing)
    }
}

/// The defaults of `launcher board --preset seed`, by flag. The three loads are the usual ones.
pub mod seed_board {
    pub const READERS: &str = "12";
    pub const DURATION: &str = "10s";
    /// Two sides of six fields: 48 bytes each.
    pub const SIZE: &str = "96";
    pub const HEALTHY: &str = "seed";
}

/// The four techniques of the benchmark that this project started from, in the order of its tables.
const SEED_TECHNIQUES: [&str; 4] =
    ["std-mpsc", "crossbeam-channel", "crossbeam-array-queue", "array-queue-mux"];
const SEED_WORK: [&str; 4] = ["0ns", "500ns", "1000ns", "1500ns"];

/// Repeats of a preset unless told.
pub const PRESET_REPEATS: u32 = 5;

impl SweepPreset {
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let text = text.trim();
        Self::from_name(text).ok_or_else(|| {
            let near = nearest(text, Self::ALL.iter().map(|preset| preset.name()));
            let hint = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            UsageError(format!("--preset: there is no sweep {text:?}: {hint}There are seed and bill"))
        })
    }

    /// Completes the request of a sweep with the preset's settings; those that a flag names stay.
    pub fn fill_request(self, asked: &mut SweepRequest) {
        let axes = match self {
            Self::Seed => [(Axis::Technique, SEED_TECHNIQUES.to_vec()), (Axis::Work, SEED_WORK.to_vec())],
            Self::Bill => [
                (Axis::Technique, Technique::all().into_iter().map(Technique::name).collect()),
                (Axis::Isolation, Isolation::ALL.iter().map(|level| level.name()).collect()),
            ],
        };
        // That benchmark's queues live on the heap, where only threads reach them.
        if self == Self::Seed && !asked.has_axis(Axis::Isolation) {
            asked.base.isolation = Some(Isolation::Thread.into());
        }
        for (axis, names) in axes {
            if !asked.has_axis(axis) {
                let value = |name: &str| AxisValue { axis, text: name.to_owned() };
                asked.axes.push(names.into_iter().map(value).collect());
            }
        }
        asked.base.repeats = Some(asked.repeats(PRESET_REPEATS.into()));
        asked.axes.sort_by_key(|values| values[0].axis);
    }

    /// Returns a note if the order rate is not the seed benchmark's.
    pub fn load_note(self, base: &Settings) -> Option<String> {
        let seed = crate::config::Preset::Seed.settings();
        let same =
            base.strategies == seed.strategies && base.orders == seed.orders && base.window == seed.window;
        (self == SweepPreset::Seed && !same).then(|| {
            let text = |key| {
                base.texts().into_iter().find(|(name, _)| *name == key).map_or("–".into(), |(_, text)| text)
            };
            format!(
                "load as this machine carries it: {} strategies, {} orders over {}; the seed benchmark had 8, \
                 4000000 and 10s (--strategies 8 --orders 4M --window 10s)",
                text("strategies"),
                text("orders"),
                text("window"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::units::Count;

    #[test]
    fn a_preset_fills_only_what_is_open() {
        let mut asked = SweepRequest::default();
        asked.axes.push(super::super::flags::read_values(Axis::Work, "1us,2us").unwrap());
        asked.base.technique = Some(Technique::default());
        SweepPreset::Seed.fill_request(&mut asked);
        assert_eq!(asked.axes.len(), 1, "{asked:?}");
        assert_eq!(asked.axes[0][0].text, "1us");
        assert_eq!(
            (asked.base.isolation, asked.base.repeats),
            (Some(Isolation::Thread.into()), Some(Count(5)))
        );
        assert_eq!((asked.base.orders, asked.base.strategies), (None, None), "never the seed's load unasked");
    }

    #[test]
    fn the_bill_has_every_technique_and_level() {
        let mut asked = SweepRequest::default();
        SweepPreset::Bill.fill_request(&mut asked);
        let sizes: Vec<_> = asked.axes.iter().map(Vec::len).collect();
        assert_eq!(sizes, [Technique::all().len(), Isolation::ALL.len()]);
    }
}
