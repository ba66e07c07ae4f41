//! rt_venue without the machine's stalls, with the share of excluded orders.

use super::figures::{Distribution, Figures, Measure};
use serde::{Deserialize, Serialize};

/// rt_venue of the orders that no stall affected: see [`crate::tail`] for the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFree {
    /// Share of excluded orders, which a gap or the backlog after one affected, 0 to 1.
    pub taken_out: f64,
    /// rt_venue of the remaining orders.
    pub rt_venue: Distribution,
}

impl StallFree {
    /// Returns `None` if stalls were not analyzed.
    pub(super) fn of(figures: &Figures) -> Option<Self> {
        let (all, rt_venue) =
            (figures.distribution(Measure::RtVenue), figures.distribution(Measure::StallFree));
        let taken_out = 1.0 - rt_venue.count as f64 / all.count.max(1) as f64;
        figures.knows_stalls().then_some(Self { taken_out, rt_venue })
    }
}
