//! rt_venue without the machine's stalls, with the share of the orders that is taken out for it.

use super::figures::{Distribution, Figures, Measure};
use serde::{Deserialize, Serialize};

/// What the engine adds where the machine let it: see [`crate::tail`] for the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFree {
    /// The share of the orders that is taken out: a gap or the backlog behind one touched them. 0
    /// to 1.
    pub taken_out: f64,
    /// rt_venue of the others.
    pub rt_venue: Distribution,
}

impl StallFree {
    /// `None`: nobody looked for stalls.
    pub(super) fn of(figures: &Figures) -> Option<Self> {
        let (all, rt_venue) =
            (figures.distribution(Measure::RtVenue), figures.distribution(Measure::StallFree));
        let taken_out = 1.0 - rt_venue.count as f64 / all.count.max(1) as f64;
        figures.knows_stalls().then_some(Self { taken_out, rt_venue })
    }
}
