//! Time-weighted samples of open orders, to compare with Little's law.

use record::run::OpenOrders;

/// The samples of a run's number of open orders, weighted by the time in ticks for which it was
/// unchanged.
pub struct OpenOrderSamples {
    last_ticks: u64,
    last_open: u64,
    taken: OpenOrders,
}

impl OpenOrderSamples {
    /// Starts sampling the run's open orders at `start` (ticks), with none open.
    pub fn new(start: u64) -> Self {
        Self { last_ticks: start, last_open: 0, taken: OpenOrders::default() }
    }

    /// Records the number of open orders at `now`, in ticks. A sample that is not later than the
    /// last one is ignored.
    pub fn record(&mut self, now: u64, open: u64) {
        let Some(ticks) = now.checked_sub(self.last_ticks).filter(|ticks| *ticks > 0) else { return };
        let (ticks, last, open_now) = (ticks as f64, self.last_open as f64, open as f64);
        self.taken.samples += 1;
        self.taken.order_ticks += ticks * (last + open_now) / 2.0;
        self.taken.variance += (ticks * (open_now - last)).powi(2) / 2.0;
        (self.last_ticks, self.last_open) = (now, open);
    }

    /// Returns the number of samples and the sum of open orders times ticks, from which the run's
    /// mean number of open orders is computed. Also an upper bound of that sum's variance.
    pub fn totals(&self) -> OpenOrders {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sample_counts_for_its_time() {
        let mut samples = OpenOrderSamples::new(100);
        samples.record(90, 7);
        samples.record(110, 4);
        samples.record(110, 9);
        samples.record(150, 4);
        samples.record(160, 0);
        let OpenOrders { samples, order_ticks, variance } = samples.totals();
        assert_eq!((samples, order_ticks), (3, 20.0 + 160.0 + 20.0));
        assert_eq!(variance, 2.0 * 40.0f64.powi(2) / 2.0);
    }
}
