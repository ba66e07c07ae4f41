//! Simulates many runs on all cores, and adds up their totals.

use super::scenario::draw_technique;
use super::{SimulationOptions, Trial, trial, unplanned};
use anyhow::Result;
use protocol::plan::Technique;
use serde::Serialize;
use shm::sync::{AtomicU64, Ordering};
use std::collections::BTreeMap;

/// Counts of orders, deaths and violations, summed over many simulated runs. Sums, so that the
/// order of simulation does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimulationTotals {
    /// Number of simulated runs.
    pub runs: u64,
    /// Orders sent in all runs together.
    pub sent: u64,
    /// Orders returned in all runs together.
    pub returned: u64,
    /// Number of incarnations that died, were killed or quarantined.
    pub incidents: u64,
    /// Number of incarnations that were quarantined.
    pub quarantined: u64,
    /// Number of incarnations that were restarted.
    pub restarted: u64,
    /// Number of recoveries of the engine and of exchanges.
    #[serde(rename = "comebacks")]
    pub recoveries: u64,
    /// Number of recoveries in which a standby had done part of the work.
    #[serde(rename = "from_spares")]
    pub standby_recoveries: u64,
    /// Number of runs in which the simulated machine crashed.
    #[serde(rename = "fell")]
    pub machine_crashes: u64,
    /// Number of turns that threads took.
    pub turns: u64,
    /// The sum of the runs' hashes, equal for equal simulations.
    pub digest: u64,
}

impl SimulationTotals {
    /// Adds the totals of other simulated runs to these.
    pub fn merge(&mut self, other: &SimulationTotals) {
        self.runs += other.runs;
        self.sent += other.sent;
        self.returned += other.returned;
        self.incidents += other.incidents;
        self.quarantined += other.quarantined;
        self.restarted += other.restarted;
        self.recoveries += other.recoveries;
        self.standby_recoveries += other.standby_recoveries;
        self.machine_crashes += other.machine_crashes;
        self.turns += other.turns;
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

/// The result of all simulated runs: totals and failed runs.
#[derive(Debug, Default)]
pub struct SimulationReport {
    /// Totals by technique and kind of scenario.
    pub by: BTreeMap<(&'static str, &'static str), SimulationTotals>,
    /// Failed runs, in the order of their seeds.
    pub failed: Vec<Trial>,
}

/// Simulates the runs of seeds `0..seeds` on all cores; stops soon after the first failure.
///
/// # Errors
/// An error of the simulation itself.
pub fn simulate_all(
    seeds: u64,
    techniques: &[Technique],
    options: &SimulationOptions,
    progress: impl Fn(u64) + Sync,
) -> Result<SimulationReport> {
    let (next, stop) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = || {
        let mut report = SimulationReport::default();
        while stop.load(Ordering::Relaxed) == 0 {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                break;
            }
            progress(seed);
            let technique = draw_technique(seed, techniques);
            let trial =
                trial(seed, technique, options).map_err(|error| unplanned(seed, technique, &error))?;
            report.by.entry((trial.technique.name(), trial.kind.name())).or_default().merge(&trial.totals);
            if !trial.broken.is_empty() {
                stop.store(1, Ordering::Relaxed);
                report.failed.push(trial);
            }
        }
        Ok::<_, anyhow::Error>(report)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut merged = SimulationReport::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            let report = worker.join().map_err(|_| anyhow::anyhow!("a simulating thread panicked"))??;
            for (key, totals) in &report.by {
                merged.by.entry(*key).or_default().merge(totals);
            }
            merged.failed.extend(report.failed);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    merged.failed.sort_by_key(|trial| trial.seed);
    Ok(merged)
}
