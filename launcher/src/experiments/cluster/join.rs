//! `--join`: from the results of a plan's runs to the record of a sweep, as if one launcher had made them all.

use super::places;
use analysis::document::Document;
use analysis::experiment::{RunResult, SweepPlan, SweepRecord, SweepState};
use analysis::stats::Outline;
use analysis::stats::placement::hosts;
use analysis::summary::Summary;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What was gathered.
pub(super) struct Joined {
    /// The sweep.
    pub record: SweepRecord,
    /// The runs that there are not, each in words.
    pub missing: Vec<String>,
}

/// Gathers every result there is, each held against the summary of its run.
///
/// # Errors
/// A result that is foreign, stands twice, was changed, or is damaged: named, and nothing is gathered.
pub(super) fn join(plan: &SweepPlan, folder: &Path) -> Result<Joined> {
    let mut joined = gather(plan, folder)?;
    for run in joined.record.runs() {
        let place = folder.join(&run.folder);
        if Outline::of(&Summary::read(&place)?) != run.outline {
            let what = "its figures are not those of its summary.json: one of the two was changed";
            bail!("{}: {what}; {}", place.display(), RunResult::REMEDY);
        }
    }
    let first = joined.record.runs().next().map(|run| folder.join(&run.folder));
    if let Some(place) = first {
        joined.record.machine = Summary::read(&place)?.machine;
    }
    Ok(joined)
}

/// The same by the results alone.
pub(super) fn gather(plan: &SweepPlan, folder: &Path) -> Result<Joined> {
    strangers(plan, folder)?;
    let mut record = plan.sweep.clone();
    let mut missing = Vec::new();
    let mut made: BTreeMap<(String, String), u32> = BTreeMap::new();
    for planned in &plan.runs {
        let place = places::run(folder, planned.index);
        let name = place.display();
        if !place.exists() {
            missing.push(format!("run {} ({}, repeat {})", planned.index, planned.point, planned.repeat));
            continue;
        }
        let result = RunResult::read(&place)?;
        if let Err(why) = belongs(plan, planned.index, &result) {
            bail!("{name}: {why}");
        }
        let wanted = format!("{}/{}", places::RUNS, places::name(planned.index));
        if result.run.folder != wanted {
            bail!("{name}: says that it is {:?}; {}", result.run.folder, RunResult::REMEDY);
        }
        // With its host: two containers may have the same process numbers, and begin in the same millisecond.
        let itself = (result.host.clone(), result.run.outline.run.clone());
        if let Some(other) = made.insert(itself, planned.index) {
            bail!("{name}: is the same run as {}: a copy; {}", places::name(other), RunResult::REMEDY);
        }
        let point = plan.point_of(planned).with_context(|| format!("{name}: no point {}", planned.point))?;
        record.points[point].runs.push(result.run);
    }
    for point in &mut record.points {
        point.runs.sort_by_key(|run| run.repeat);
    }
    record.state = if missing.is_empty() { SweepState::Complete } else { SweepState::Interrupted };
    record.notes.extend(where_made(&record));
    Ok(Joined { record, missing })
}

/// That a result is of that run of that plan.
///
/// # Errors
/// Of what it is instead.
pub(super) fn belongs(plan: &SweepPlan, index: u32, result: &RunResult) -> Result<(), String> {
    let remedy = RunResult::REMEDY;
    if result.plan != plan.id {
        return Err(format!("is of another plan ({}, this one is {}); {remedy}", result.plan, plan.id));
    }
    if result.index != index {
        return Err(format!("is the result of run {}: a copy; {remedy}", result.index));
    }
    let planned = plan.runs.get(index as usize).ok_or_else(|| format!("the plan has no run {index}"))?;
    let is_planned = result.version == plan.version
        && result.run.repeat == planned.repeat
        && result.run.seed == plan.sweep.seed_of(planned.repeat);
    if is_planned { Ok(()) } else { Err(format!("is not what the plan says of run {index}; {remedy}")) }
}

/// That there is nothing beside the runs of the plan.
fn strangers(plan: &SweepPlan, folder: &Path) -> Result<()> {
    let runs = folder.join(places::RUNS);
    for entry in fs::read_dir(&runs).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let index = name.to_str().and_then(places::index);
        if index.is_none_or(|index| index as usize >= plan.runs.len()) {
            bail!("{}: is no run of this plan: take it away", entry.path().display());
        }
    }
    Ok(())
}

/// Which hosts made the runs, where there are several.
fn where_made(record: &SweepRecord) -> Option<String> {
    let all: Vec<&Outline> = record.runs().map(|run| &run.outline).collect();
    let hosts = hosts(&all);
    let of = |host: &&analysis::stats::MachineKey| {
        let runs = all.iter().filter(|run| run.machine == **host).count();
        format!("{} ({runs} runs, {})", host.hostname, host.cpu_model)
    };
    let each = || hosts.iter().map(of).collect::<Vec<_>>().join(", ");
    (hosts.len() > 1).then(|| format!("measured on {} hosts: {}", hosts.len(), each()))
}
