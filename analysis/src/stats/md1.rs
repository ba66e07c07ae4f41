//! M/D/1 queue: the mean wait at a single server with constant service time, and its saturation.
//!
//! The orchestrator serves one queue. With random arrivals (M: Poisson), a constant service time
//! (D) and one server (1), the mean wait before service follows from the utilization ρ and the
//! service time s:
//!
//! ```text
//! W = ρ·s / (2·(1 − ρ))
//! ```
//!
//! (A. K. Erlang, 1909; the case without variance of the Pollaczek–Khinchine formula, L. Kleinrock,
//! *Queueing Systems* I, 1975, §5.6.) Every order passes the orchestrator twice, as a submit and as
//! a report, so jobs arrive at 2λ, each takes s = ρ / 2λ, and an order waits 2·W.
//!
//! The measured counterpart: mean `submit` (t2 − t1) + mean `completion` (t6 − t5), the two stages
//! that end when the orchestrator takes the message. They also contain the transport through the
//! ring, which does not depend on the load, so the growth from the lowest load of a sweep is
//! compared.
//!
//! The model is a reference, not a law: `--work` applies to the submit only, so service is not
//! constant (the formula is then too low by up to a factor of 2), and a thread that also runs the
//! gateways has longer duty cycles than ρ implies.

/// Returns the mean wait of a job at utilization `rho` and service time `service_ns`. Returns
/// `None` without a steady state: for ρ of 1 and above, or below 0.
pub fn wait_ns(rho: f64, service_ns: f64) -> Option<f64> {
    ((0.0..1.0).contains(&rho) && service_ns >= 0.0).then(|| rho * service_ns / (2.0 * (1.0 - rho)))
}

/// Returns the wait of an order in both its visits to the orchestrator, at `orders_per_s` and
/// utilization `rho`.
pub fn order_wait_ns(rho: f64, orders_per_s: f64) -> Option<f64> {
    let jobs_per_s = 2.0 * orders_per_s;
    (jobs_per_s > 0.0).then_some(())?;
    wait_ns(rho, rho / jobs_per_s * 1e9).map(|wait| 2.0 * wait)
}

/// Minimum utilization for a prediction: below it the predicted wait is smaller than the noise of
/// the transport.
pub const MIN_RHO: f64 = 0.2;

/// Estimates the offered rate at which the orchestrator's utilization reaches 1, from points (rate,
/// ρ): the least-squares line through the origin, extrapolated. Returns `None` unless two rates
/// differ by at least a tenth and one of them has a utilization of at least [`MIN_RHO`].
///
/// The estimate is low if duty cycles get cheaper with more work: a first value for
/// `--find-max-rate` to check.
pub fn saturation_per_s(points: &[(f64, f64)]) -> Option<f64> {
    let usable =
        points.iter().filter(|(rate, rho)| rate.is_finite() && *rate > 0.0 && (0.0..=1.0).contains(rho));
    let rates = || usable.clone().map(|(rate, _)| *rate);
    let (min, max) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
    let busiest = usable.clone().map(|(_, rho)| *rho).reduce(f64::max)?;
    (max >= min * 1.1 && busiest >= MIN_RHO).then_some(())?;
    let (products, squares) = usable
        .fold((0.0, 0.0), |(products, squares), (rate, rho)| (products + rate * rho, squares + rate * rate));
    (products > 0.0).then(|| squares / products)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRng;

    #[test]
    fn formula_matches_known_values() {
        assert_eq!(wait_ns(0.0, 100.0), Some(0.0));
        assert_eq!(wait_ns(0.5, 100.0), Some(50.0));
        assert!((wait_ns(0.9, 1000.0).unwrap() - 4500.0).abs() < 1e-9);
        assert_eq!([wait_ns(1.0, 1.0), wait_ns(-0.1, 1.0), wait_ns(f64::NAN, 1.0)], [None, None, None]);
        // 500,000 orders are a million jobs a second of 0.5 µs each at ρ = 0.5: 0.25 µs a visit.
        assert!((order_wait_ns(0.5, 500_000.0).unwrap() - 500.0).abs() < 1e-9);
        assert_eq!(order_wait_ns(0.5, 0.0), None);
    }

    #[test]
    fn simulated_queue_matches_md1_formula() {
        for rho in [0.3, 0.6, 0.9] {
            let mut draws = SeededRng::new(7);
            let (mut wait, mut sum) = (0.0f64, 0.0);
            const JOBS: usize = 1_000_000;
            for _ in 0..JOBS {
                // Lindley's recursion: the next job waits for the rest of this job's wait and
                // service.
                let pause = -draws.next_unit().ln() / rho;
                wait = (wait + 1.0 - pause).max(0.0);
                sum += wait;
            }
            let (measured, predicted) = (sum / JOBS as f64, wait_ns(rho, 1.0).unwrap());
            assert!((measured / predicted - 1.0).abs() < 0.05, "{rho}: {measured} for {predicted}");
        }
    }

    #[test]
    fn saturation_is_where_utilization_reaches_one() {
        let near = |points: &[(f64, f64)], wanted: f64| {
            let found = saturation_per_s(points).unwrap();
            assert!((found / wanted - 1.0).abs() < 1e-9, "{found} for {wanted}");
        };
        near(&[(100_000.0, 0.25), (200_000.0, 0.5)], 400_000.0);
        near(&[(100_000.0, 0.25), (200_000.0, 0.5), (0.0, 0.1), (5.0, f64::NAN)], 400_000.0);
        assert_eq!([saturation_per_s(&[]), saturation_per_s(&[(10.0, 0.0)])], [None, None]);
        assert_eq!(saturation_per_s(&[(100_000.0, 0.25), (101_000.0, 0.25)]), None, "one rate is no line");
        assert_eq!(saturation_per_s(&[(10_000.0, 0.03), (20_000.0, 0.06)]), None, "nobody was busy");
    }
}
