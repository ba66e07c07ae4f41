//! Warnings before an experiment's first run: reasons why its result cannot be comparable.

use super::presets::SweepPreset;
use analysis::experiment::{Experiment, ExperimentRuns, Point, SettingTexts, too_few_repeats};
use analysis::stats::{MIN_PAIRS, is_oversubscribed};
use planner::config::Settings;
use protocol::plan::{Plan, Threading};
use record::fitness::shared_cores_note;

/// The settings that decide which orders a run plays, with its seed.
const SCHEDULE: [&str; 8] =
    ["strategies", "venues", "orders", "window", "arrivals", "delay", "schedule", "speed"];

/// Returns the reasons, visible in the plan, why an experiment's results cannot be compared with
/// each other or with the seed benchmark's.
pub fn warnings(record: &Experiment) -> Vec<String> {
    let entry = record.kind.entry();
    if !entry.has_verdicts {
        return Vec::new();
    }
    let runs = ExperimentRuns::new(record);
    let mut found = Vec::new();
    found.extend(seed_on_fewer_cores(&runs));
    found.extend(oversubscribed(&runs));
    if entry.has_sides {
        found.extend(other_schedule(&runs.points));
    }
    // A sweep without a verdict has its tables; a comparison without one has nothing.
    if entry.has_pairs && record.repeats < MIN_PAIRS as u32 {
        found.push(too_few_repeats(record.repeats));
    }
    found
}

/// Returns a warning if strategies at different isolation levels share CPU cores at the same time
/// within a run.
pub fn shared_across_levels(record: &Experiment) -> Option<String> {
    let runs = ExperimentRuns::new(record);
    let is_shared = |plan: Plan| {
        let is_mixed = plan.isolation.distinct().count() > 1 && plan.trading().crossover_ns == 0;
        is_mixed && shared_cores_note(&plan).is_some()
    };
    let is_any = runs.points.iter().any(|point| plan(&runs, point).is_some_and(is_shared));
    is_any.then(|| {
        "levels share cores: both pay for a switch from one strategy to another, so a level adds more by turns (--crossover 50ms) or \
         in runs of its own (--isolation thread,process)"
            .into()
    })
}

/// Returns the plan of a point's runs.
fn plan(record: &ExperimentRuns, point: &Point) -> Option<Plan> {
    let settings = Settings::from_texts(&point.settings).ok()?;
    let resolved = planner::resolve(&settings, &record.machine).ok()?;
    planner::preview(&resolved, &record.machine).ok().map(|(plan, _)| plan)
}

/// Returns a warning if the seed benchmark's roles share cores, which had one each.
fn seed_on_fewer_cores(record: &ExperimentRuns) -> Option<String> {
    record.preset.as_ref().filter(|preset| **preset == SweepPreset::Seed.name())?;
    let plan = plan(record, record.points.first()?)?;
    let (strategies, venues) = (plan.trading().strategies, plan.trading().venues);
    let (needed, cores) = (usize::from(strategies + venues) + 1, record.machine.cores_allowed.len());
    (plan.threading == Threading::Shared).then(|| {
        let remedy = if cores >= needed {
            "--threading dedicated takes one for each".to_owned()
        } else {
            format!("a machine with {needed} cores or more compares (15 without --threading dedicated)")
        };
        format!(
            "too few cores for the seed benchmark, whose {strategies} strategies, {venues} gateways and orchestrator have a core each: \
             of {cores} cores here they share some, so runs are made and marked, and figures are the scheduler's too; {remedy}"
        )
    })
}

fn oversubscribed(record: &ExperimentRuns) -> Option<String> {
    let is_shared = |point: &&Point| plan(record, point).is_some_and(|plan| is_oversubscribed(&plan));
    let shared: Vec<&Point> = record.points.iter().filter(is_shared).collect();
    let first = shared.first()?;
    Some(format!(
        "shared cores: threads wait for each other in {} of {} settings ({}): measured and marked; fewer --strategies or more cores avoid it",
        shared.len(),
        record.points.len(),
        first.name
    ))
}

fn other_schedule(points: &[Point]) -> Option<String> {
    let [a, b] = points else { return None };
    let text = |settings: &SettingTexts, key: &str| settings.get(key).cloned().unwrap_or_default();
    let differs = |key: &&str| text(&a.settings, key) != text(&b.settings, key);
    let key = SCHEDULE.into_iter().find(differs)?;
    Some(format!(
        "not comparable: other schedule: A and B differ in {key}, so no run of A plays the orders of a run of B: \
         launcher sweep --{key} measures both"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::SweepRequest;
    use crate::points::lay_out;
    use crate::record::new_record;
    use analysis::experiment::Kind;
    use planner::config::Common;
    use planner::host::fake;

    fn seed_on(cores: u32) -> Experiment {
        let mut asked = SweepRequest { preset: Some("seed".into()), ..SweepRequest::default() };
        SweepPreset::Seed.fill_request(&mut asked);
        let machine = fake::plain(cores).machine();
        let mut record = new_record(Kind::Sweep, &asked, 5, machine, &Common::default());
        lay_out(&mut record, &asked).unwrap();
        record
    }

    #[test]
    fn seed_warns_on_fewer_cores_and_runs_all_arms() {
        for (cores, warned) in [(2, true), (16, false)] {
            let record = seed_on(cores);
            assert_eq!((record.settings().len(), record.rows.len()), (32, 160), "{:?}", record.notes);
            let found = warnings(&record);
            let is_said = found.iter().any(|warning| warning.starts_with("too few cores for the seed"));
            assert_eq!(is_said, warned, "{cores}: {found:?}");
        }
    }
}
