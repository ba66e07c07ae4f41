//! The warm-up: orders due within the first tenth of the window are in no distribution.

use merge::figures::{Distribution, Figures, Measure};
use record::numbers::{counted, duration_or_dash};
use serde::{Deserialize, Serialize};

/// The orders of a run in its warm-up (the first tenth of the window), and the median latency with
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Number of measured orders that were left out.
    pub orders: u64,
    /// Median of `rt_venue_from_due` with the warm-up orders, in nanoseconds.
    pub with_p50_ns: Option<u64>,
}

impl WarmUp {
    pub(super) fn from_figures(figures: &Figures) -> Option<Self> {
        let (all, counted) = (figures.with_warm_up(), figures.distribution(Measure::RtVenueFromDue));
        let orders = all.count - counted.count.min(all.count);
        (orders > 0).then_some(Self { orders, with_p50_ns: all.p50_ns })
    }

    pub(super) fn note(&self, without: &Distribution) -> String {
        let [with, without] = [self.with_p50_ns, without.p50_ns].map(duration_or_dash);
        let orders = counted(self.orders, "order");
        format!("warm-up, left out: {orders}; rt_venue_from_due p50 is {without}, with them {with}")
    }
}
