//! The queueing models M/M/1 and M/D/1: the mean wait at a single server by its utilization.
//!
//! The orchestrator serves one queue. With random arrivals (M: Poisson) and one server (1), the
//! mean wait before service follows from the utilization ρ and the mean service time s:
//!
//! ```text
//! M/M/1, exponential service   W = s · ρ / (1 − ρ)
//! M/D/1, constant service      W = s · ρ / (2·(1 − ρ))
//! ```
//!
//! Sources: A. K. Erlang, 1909 (M/D/1); L. Kleinrock, *Queueing Systems* I, 1975, §3.2 (M/M/1) and
//! §5.6 (the Pollaczek–Khinchine formula, of which both are special cases).
//!
//! Every order passes the orchestrator twice, as a submit and as a report. So jobs arrive at 2λ,
//! each takes s = ρ / 2λ, and an order waits 2·W. The models are references, not laws: `--work`
//! applies to the submit only, so the service time has two values, and a thread that also runs the
//! gateways has longer duty cycles than ρ implies.

use serde::{Deserialize, Serialize};

/// A queueing model of a single server with Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueModel {
    /// The model M/M/1, with exponential service times.
    #[serde(rename = "M/M/1")]
    Mm1,
    /// The model M/D/1, with constant service times.
    #[serde(rename = "M/D/1")]
    Md1,
}

impl QueueModel {
    /// All queueing models, the one with the longer waits first.
    pub const ALL: [Self; 2] = [Self::Mm1, Self::Md1];

    /// Returns the queueing model's name, such as `M/D/1`.
    pub const fn name(self) -> &'static str {
        ["M/M/1", "M/D/1"][self as usize]
    }

    /// Returns the mean wait of a job at utilization `rho` (0 to 1), as a multiple of the mean
    /// service time. Returns `None` without a steady state: for ρ of 1 and above, or below 0.
    pub fn wait_in_services(self, rho: f64) -> Option<f64> {
        let wait_factor = [1.0, 0.5][self as usize];
        (0.0..1.0).contains(&rho).then(|| wait_factor * rho / (1.0 - rho))
    }
}

/// Returns the orchestrator's mean time to serve one order or report, in nanoseconds, from its
/// utilization `rho` (0 to 1) and the orders per second. This is ρ / 2λ: each of λ orders a second
/// passes the orchestrator twice. Returns `None` without orders or without utilization.
pub fn service_ns(rho: f64, orders_per_s: f64) -> Option<f64> {
    (rho > 0.0 && orders_per_s > 0.0).then(|| rho / (2.0 * orders_per_s) * 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_rng::SeededRng;

    #[test]
    fn formulas_match_known_values() {
        let waits = |rho| QueueModel::ALL.map(|model| model.wait_in_services(rho));
        assert_eq!(waits(0.0), [Some(0.0), Some(0.0)]);
        assert_eq!(waits(0.5), [Some(1.0), Some(0.5)]);
        let [mm1, md1] = waits(0.9).map(Option::unwrap);
        assert!((mm1 - 9.0).abs() < 1e-9 && (md1 - 4.5).abs() < 1e-9, "{mm1} {md1}");
        assert_eq!([waits(1.0), waits(-0.1), waits(f64::NAN)], [[None, None]; 3]);
        // 400,000 orders are 800,000 jobs a second: half of the time is 625 ns for each.
        assert!((service_ns(0.5, 400_000.0).unwrap() - 625.0).abs() < 1e-9);
        assert_eq!([service_ns(0.5, 0.0), service_ns(0.0, 1.0)], [None, None]);
    }

    #[test]
    fn simulated_queues_match_formulas() {
        const JOBS: usize = 1_000_000;
        for model in QueueModel::ALL {
            for rho in [0.3, 0.6, 0.9] {
                let mut draws = SeededRng::new(7);
                let (mut wait, mut sum) = (0.0f64, 0.0);
                for _ in 0..JOBS {
                    // Lindley's recursion: a job waits for the rest of its predecessor's wait and
                    // service.
                    let service = if model == QueueModel::Mm1 { -draws.next_unit().ln() } else { 1.0 };
                    let pause = -draws.next_unit().ln() / rho;
                    wait = (wait + service - pause).max(0.0);
                    sum += wait;
                }
                let (measured, predicted) = (sum / JOBS as f64, model.wait_in_services(rho).unwrap());
                assert!((measured / predicted - 1.0).abs() < 0.05, "{model:?} {rho}: {measured} {predicted}");
            }
        }
    }
}
