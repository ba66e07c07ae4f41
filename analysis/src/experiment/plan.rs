//! `plan.json` and `result.json`: a sweep as a list of independent runs, and what one of them came to, wherever it was made.
//!
//! Both carry a digest of what they say. It finds a file that was changed by hand, or belongs to another plan; it is no signature.

use super::sweep::{RunEntry, SweepRecord, Texts};
use crate::document::Document;
use serde::{Deserialize, Serialize};
use shm::memory::header::{FNV_OFFSET, fnv1a};
use std::collections::BTreeSet;

/// A sweep that is planned: every run that it has, in the order in which one host would make them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The digest of all the rest: what results say that they belong to.
    pub id: String,
    /// bulkhead's version: whoever makes a run must be of the same.
    pub version: String,
    /// What is measured, with nothing measured yet.
    pub sweep: SweepRecord,
    /// Every run.
    pub runs: Vec<PlannedRun>,
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Its number, from 0.
    pub index: u32,
    /// Runs of one turn are compared with each other in pairs: they share a schedule, and belong on one host, one after the other.
    pub turn: u32,
    /// The name of its point.
    pub point: String,
    /// Which repeat of the point, from 0.
    pub repeat: u32,
    /// Everything that it runs with, seed included.
    pub settings: Texts,
}

impl Document for SweepPlan {
    const FILE: &'static str = "plan.json";
    const NAME: &'static str = "bulkhead.sweep-plan";
    const VERSION: u32 = 1;
    const ABSENT: &'static str = "not the folder of a planned sweep (launcher sweep --plan FOLDER makes one)";
    const REMEDY: &'static str = "fetch it from a copy, or plan again in a new folder";
    const SYNCED: bool = true;

    fn check(&self) -> Result<(), String> {
        if self.id != self.digest() {
            return Err("it was changed after it was made".into());
        }
        let mut seen = BTreeSet::new();
        for (place, run) in self.runs.iter().enumerate() {
            let name = format!("run {}", run.index);
            let Some(point) = self.point_of(run) else {
                return Err(format!("{name}: no point {}", run.point));
            };
            let seed = self.sweep.seed_of(run.repeat).to_string();
            let settings = &self.sweep.points[point].settings;
            let is_its_point_s = run.settings.get("seed") == Some(&seed)
                && settings.iter().all(|(key, text)| key == "seed" || run.settings.get(key) == Some(text))
                && run.settings.keys().all(|key| key == "seed" || settings.contains_key(key));
            if !is_its_point_s || run.repeat >= self.sweep.repeats {
                return Err(format!("{name}: not the settings of its point and repeat"));
            }
            if run.index as usize != place || !seen.insert((point, run.repeat)) {
                return Err(format!("{name} stands twice, or in another's place"));
            }
        }
        Ok(())
    }
}

impl SweepPlan {
    /// A plan of a sweep with nothing measured yet. `order` is every run as repeat and index of its point; `turns` has the turn of each.
    ///
    /// # Panics
    /// If a point is none of the sweep's.
    pub fn new(sweep: SweepRecord, order: &[(u32, usize)], turns: &[u32]) -> Self {
        let run = |(index, ((repeat, point), turn)): (usize, (&(u32, usize), &u32))| {
            let mut settings = sweep.points[*point].settings.clone();
            settings.insert("seed".into(), sweep.seed_of(*repeat).to_string());
            let point = sweep.points[*point].name.clone();
            PlannedRun { index: index as u32, turn: *turn, point, repeat: *repeat, settings }
        };
        let runs = order.iter().zip(turns).enumerate().map(run).collect();
        let mut plan = Self { id: String::new(), version: sweep.version.clone(), sweep, runs };
        plan.id = plan.digest();
        plan
    }

    /// The place of a run's point in the sweep.
    pub fn point_of(&self, run: &PlannedRun) -> Option<usize> {
        self.sweep.points.iter().position(|point| point.name == run.point)
    }

    /// How many turns there are.
    pub fn turns(&self) -> u32 {
        self.runs.iter().map(|run| run.turn + 1).max().unwrap_or(0)
    }

    fn digest(&self) -> String {
        digest(&(&self.version, &self.sweep, &self.runs))
    }
}

/// What a run of a plan came to: in the run's folder, beside its `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The digest of all the rest.
    pub digest: String,
    /// bulkhead's version.
    pub version: String,
    /// The plan that it is of.
    pub plan: String,
    /// Its number there.
    pub index: u32,
    /// The host that made it.
    pub host: String,
    /// When it was finished, UTC.
    pub finished: String,
    /// Its figures.
    pub run: RunEntry,
}

impl Document for RunResult {
    const FILE: &'static str = "result.json";
    const NAME: &'static str = "bulkhead.sweep-run";
    const VERSION: u32 = 1;
    const ABSENT: &'static str = "not the result of a run of a plan";
    const REMEDY: &'static str =
        "take the run's folder away and make it again: launcher sweep --run K FOLDER";
    const SYNCED: bool = true;

    fn check(&self) -> Result<(), String> {
        match self.digest == self.own_digest() {
            true => Ok(()),
            false => Err("it was changed after it was made".into()),
        }
    }
}

impl RunResult {
    /// The result of a run that was finished now.
    pub fn new(plan: &SweepPlan, index: u32, finished: String, run: RunEntry) -> Self {
        let host = run.outline.machine.hostname.clone();
        let (version, plan) = (plan.version.clone(), plan.id.clone());
        let mut result = Self { digest: String::new(), version, plan, index, host, finished, run };
        result.digest = result.own_digest();
        result
    }

    fn own_digest(&self) -> String {
        digest(&(&self.version, &self.plan, self.index, &self.host, &self.finished, &self.run))
    }
}

/// The digest of a value, as 16 hexadecimal digits.
fn digest(value: &impl Serialize) -> String {
    // None that cannot be JSON.
    let json = serde_json::to_vec(value).unwrap_or_default();
    format!("{:016x}", fnv1a(FNV_OFFSET, &json))
}
