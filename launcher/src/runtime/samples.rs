//! Time-weighted samples of open orders, to compare with Little's law.

use analysis::record::OpenOrders;

/// Samples of the number of open orders of a run, weighted by time.
pub struct OpenOrderSamples {
    last_ticks: u64,
    last_open: u64,
    taken: OpenOrders,
}

impl OpenOrderSamples {
    /// Starts sampling at `start` (ticks), without open orders.
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

    /// A queue whose length fluctuates: the error of the estimate is within its stated bound.
    #[test]
    fn the_error_is_what_it_says() {
        let mut random = 1u64;
        let (mut far, runs) = (0, 400);
        for _ in 0..runs {
            let mut samples = OpenOrderSamples::new(0);
            for tick in 1..=200u64 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                samples.record(tick * 50, (random >> 33) % 101);
            }
            let OpenOrders { order_ticks, variance, .. } = samples.totals();
            far += u64::from((order_ticks - 50.0 * 200.0 * 50.0).abs() > 2.0 * variance.sqrt());
        }
        // 4.6 % of a normal distribution lie beyond two standard deviations.
        assert!((4..=40).contains(&far), "{far} of {runs}");
    }
}
