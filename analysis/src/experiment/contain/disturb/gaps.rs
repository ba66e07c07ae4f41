//! The gaps of the engine's thread in disturbed runs, compared with those in calm runs.

use crate::stats::{Difference, Margin, RunPairing, Sample, Verdict, difference, median};
use merge::cause::{GapClass, GapTotal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The margin of the number of long gaps a second: a quarter, or 25 (in the place of nanoseconds).
const MARGIN: Margin = Margin { ns: 25.0, share: 0.25 };
/// The margin of the time lost a second: half of it, or a millisecond.
const LOST_MARGIN: Margin = Margin { ns: 1e6, share: 0.5 };
const S: f64 = 1e9;

/// The gaps of the engine's thread (times without its CPU core) in one run, by what took the core
/// away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineGaps {
    /// Time from the thread's start to its end, in nanoseconds.
    pub running_ns: u64,
    /// The thread's gaps, by class.
    pub classes: Vec<GapTotal>,
}

impl EngineGaps {
    /// Returns a number of the run as one a second.
    fn per_s(&self, number: u64) -> f64 {
        number as f64 * S / self.running_ns.max(1) as f64
    }

    /// Iterates over the gaps but those by steal, which are the hypervisor's.
    fn own(&self) -> impl Iterator<Item = &GapTotal> {
        self.classes.iter().filter(|total| total.class != GapClass::Steal)
    }

    /// Returns the number of long gaps a second.
    fn long_per_s(&self) -> f64 {
        self.per_s(self.own().map(|total| total.long).sum())
    }

    /// Returns the time lost to gaps of any length, in nanoseconds a second.
    fn lost_per_s(&self) -> f64 {
        self.per_s(self.own().map(|total| total.ns).sum())
    }

    fn ns_per_s(&self, class: GapClass) -> f64 {
        self.per_s(self.classes.iter().filter(|total| total.class == class).map(|total| total.ns).sum())
    }
}

/// The gaps of the engine's thread (times without its CPU core) in calm and in disturbed runs, as
/// medians.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapComparison {
    /// Number of gaps of 15 µs or longer a second in calm runs, without those by steal.
    pub calm_per_s: f64,
    /// Number of gaps of 15 µs or longer a second in disturbed runs, without those by steal.
    pub per_s: f64,
    /// Time lost to gaps of any length in calm runs, without those by steal, in nanoseconds a
    /// second; 0 in documents of older versions.
    #[serde(default)]
    pub calm_lost_per_s: f64,
    /// Time lost by class of gap, in nanoseconds a second, in calm and in disturbed runs. Without
    /// empty classes.
    pub classes: Vec<(GapClass, [f64; 2])>,
    /// The number of gaps in disturbed runs compared with that in calm ones, one added to each.
    /// Null with too few pairs.
    pub difference: Option<Difference>,
    /// The time lost to gaps of any length, without steal, in disturbed runs compared with calm
    /// ones, in nanoseconds a second.
    #[serde(default)]
    pub lost: Option<Difference>,
}

impl GapComparison {
    /// Compares the gaps of the pairs of usable runs. `None` if there are none.
    pub(super) fn of_pairs(pairing: &RunPairing<'_>, gaps: &BTreeMap<&str, &EngineGaps>) -> Option<Self> {
        let of_pair = |[calm, disturbed]: &[&crate::stats::RunOutline; 2]| {
            Some([*gaps.get(calm.run_id())?, *gaps.get(disturbed.run_id())?])
        };
        let pairs: Vec<[&EngineGaps; 2]> = pairing.all.iter().filter_map(of_pair).collect();
        let middle = |side: usize, of: &dyn Fn(&EngineGaps) -> f64| {
            median(&pairs.iter().map(|pair| of(pair[side])).collect::<Vec<_>>())
        };
        let compared = |of: &dyn Fn(&EngineGaps) -> f64, margin| {
            let samples = |side: usize| -> Vec<Sample> {
                let value = |pair: &[&EngineGaps; 2]| Sample { value: of(pair[side]) + 1.0, placement: 0 };
                pairs.iter().map(value).collect()
            };
            difference(&samples(0), &samples(1), 0.0, margin)
        };
        let classes = GapClass::ALL.iter().copied().filter_map(|class| {
            let times = [0, 1].map(|side| middle(side, &|run| run.ns_per_s(class)).unwrap_or(0.0));
            (times[0] + times[1] > 0.0).then_some((class, times))
        });
        Some(Self {
            calm_per_s: middle(0, &EngineGaps::long_per_s)?,
            per_s: middle(1, &EngineGaps::long_per_s)?,
            calm_lost_per_s: middle(0, &EngineGaps::lost_per_s)?,
            classes: classes.collect(),
            difference: compared(&EngineGaps::long_per_s, MARGIN),
            lost: compared(&EngineGaps::lost_per_s, LOST_MARGIN),
        })
    }

    /// Returns the two declared differences between disturbed and calm runs, by name: the engine's
    /// number of gaps, and its time lost.
    pub fn declared(&self) -> [(&'static str, Option<Difference>); 2] {
        [("engine gaps", self.difference), ("engine time lost", self.lost)]
    }

    /// Returns the verdict on the engine thread's number of gaps (times without its core) of at
    /// least 15 µs, in disturbed against calm runs.
    pub fn verdict(&self) -> Verdict {
        verdict(self.difference)
    }

    /// Returns two verdicts on the engine thread's gaps, disturbed against calm runs: on the number
    /// of at least 15 µs, and on time lost.
    pub fn verdicts(&self) -> [Verdict; 2] {
        self.declared().map(|(_, found)| verdict(found))
    }

    /// Returns `true` if, at 95 %, the engine lost no more time than the margin allows.
    pub(super) fn is_lost_within_margin(&self) -> bool {
        self.lost.is_some_and(|found| super::is_at_most(&found, self.calm_lost_per_s, LOST_MARGIN))
    }

    /// Iterates over the declared figures that are known.
    pub(super) fn known_mut(&mut self) -> impl Iterator<Item = &mut Difference> {
        [&mut self.difference, &mut self.lost].into_iter().flatten()
    }
}

fn verdict(found: Option<Difference>) -> Verdict {
    found.map_or(Verdict::CannotTell, |found| found.verdict())
}
