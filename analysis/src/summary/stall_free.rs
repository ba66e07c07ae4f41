//! rt_venue without the machine's stalls, with the share of excluded orders.

use super::figures::{Distribution, Figures, Measure};
use serde::{Deserialize, Serialize};

/// Round trips without the venue's time (rt_venue) of orders that met no stall. [`crate::tail`] has
/// the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFree {
    /// Share of excluded orders, which a gap or the backlog after one affected, 0 to 1.
    #[serde(rename = "taken_out")]
    pub excluded_share: f64,
    /// rt_venue of the remaining orders.
    pub rt_venue: Distribution,
}

impl StallFree {
    /// Returns the rt_venue of orders that met no stall; `None` if stalls were not analyzed.
    pub(super) fn from_figures(figures: &Figures) -> Option<Self> {
        let (all, rt_venue) =
            (figures.distribution(Measure::RtVenue), figures.distribution(Measure::StallFree));
        let taken_out = 1.0 - rt_venue.count as f64 / all.count.max(1) as f64;
        figures.has_stall_free().then_some(Self { excluded_share: taken_out, rt_venue })
    }
}
