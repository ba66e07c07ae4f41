//! Expands axes into the list of settings to measure: every combination that the planner accepts,
//! all with equal load.

use super::benchmark::check_isolation;
use super::flags::{AxisValue, SweepRequest};
use super::usage;
use analysis::experiment::{Axis, AxisRecord, Experiment, Setting};
use anyhow::Result;
use planner::config::{Arrivals, Choice, Settings, UsageError};
use planner::host::{Machine, MemoryFacts, RealTime};
use planner::memory_check;
use planner::realtime;
use planner::{self, Input, Resolved};
use protocol::plan::{Binary, Isolation, Threading};
use record::units::{Count, Nanos};
use std::collections::BTreeMap;
use system::memory;
use system::sandbox;
use system::speculation;

/// More points than this are a mistake.
const MAX_POINTS: usize = 10_000;

/// A combination of settings proposed for an experiment: its name, its own settings and its values
/// of the varied ones.
pub struct Candidate {
    pub name: String,
    pub own: Settings,
    pub values: Vec<AxisValue>,
}

impl Candidate {
    fn settings(&self, base: &Settings, with_rate: bool) -> Settings {
        let mut settings = self.own.clone().over(base.clone());
        let values = self.values.iter().filter(|value| with_rate || value.axis.entry().becomes.is_none());
        values.for_each(|value| value.apply(&mut settings));
        if self.has_no_binary(&settings) {
            settings.binary = None;
        }
        settings
    }

    /// Returns `true` if all points are to have binaries of their own, and this one's strategies
    /// are threads, which have none.
    fn has_no_binary(&self, settings: &Settings) -> bool {
        let is_varied = self.values.iter().any(|value| value.axis == Axis::Binary);
        settings.isolation().has_only_threads() && !is_varied
    }
}

/// Adds all combinations of the varied settings to an experiment's record.
///
/// One that the planner refuses is left out with a note, if its values can be had in others. The
/// load is what the machine carries: the least that the planner chooses for any point, so that all
/// have the same; and if some would get dedicated threads and others not, all share.
pub fn lay_out(record: &mut Experiment, asked: &SweepRequest) -> Result<()> {
    let size = asked.axes.iter().map(Vec::len).try_fold(1usize, usize::checked_mul);
    if size.is_none_or(|size| size > MAX_POINTS) {
        return usage(format!("more than {MAX_POINTS} combinations: sweep over less at a time"));
    }
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for values in combinations(&asked.axes).into_iter().chain(further_combinations(asked)) {
        let candidate = Candidate { name: name(&values), own: Settings::default(), values };
        let settings = candidate.settings(&asked.base, false);
        match check(&settings, &record.machine, record.weaker_sandbox) {
            Ok(resolved) => accepted.push((candidate, resolved)),
            Err(UsageError(why)) => refused.push((candidate, why)),
        }
    }
    let is_hopeless = |(candidate, _): &&(Candidate, String)| {
        candidate.values.iter().any(|value| !accepted.iter().any(|(other, _)| other.values.contains(value)))
    };
    // A preset requests all values, compatible or not; a user names the wanted ones.
    let wrong = refused.iter().find(is_hopeless).filter(|_| asked.preset.is_none() || accepted.is_empty());
    if let Some((Candidate { name, values, .. }, why)) = wrong {
        return usage(if values.is_empty() { why.clone() } else { format!("{name}: {why}") });
    }
    let left_out = |(candidate, why): &(Candidate, String)| {
        format!("{} left out: {}", candidate.name, why.lines().next().unwrap_or(""))
    };
    record.notes.extend(refused.iter().map(left_out));
    let has_threads =
        |(candidate, resolved): &(Candidate, Resolved)| candidate.has_no_binary(&resolved.settings);
    if asked.base.binary == Some(Binary::Own) && accepted.iter().any(has_threads) {
        record
            .notes
            .push("--binary own: strategies that are threads run from the engine's executable".into());
    }
    let further = asked.further.iter().flatten().collect::<Vec<_>>();
    record.axes.extend(asked.axes.iter().map(|values| {
        let axis = values[0].axis;
        let further = further.iter().filter(|value| value.axis == axis).copied();
        let mut texts: Vec<String> = values.iter().map(|value| value.text.clone()).collect();
        for value in further {
            if !texts.contains(&value.text) {
                texts.push(value.text.clone());
            }
        }
        AxisRecord { axis, values: texts }
    }));
    settle(record, asked, accepted)
}

/// Adds the two sides of a comparison to an experiment's record, with equal load unless a side sets
/// its own.
pub fn lay_out_sides(record: &mut Experiment, asked: &SweepRequest, sides: [Candidate; 2]) -> Result<()> {
    let side = |candidate: Candidate| {
        let settings = candidate.settings(&asked.base, false);
        let resolved = check(&settings, &record.machine, record.weaker_sandbox)
            .map_err(|error| UsageError(format!("{}: {error}", candidate.name)))?;
        Ok((candidate, resolved))
    };
    let accepted = sides.into_iter().map(side).collect::<Result<_>>()?;
    settle(record, asked, accepted)
}

/// Adds the points of candidates, with one load and one threading.
fn settle(record: &mut Experiment, asked: &SweepRequest, accepted: Vec<(Candidate, Resolved)>) -> Result<()> {
    let mut base = asked.base.clone();
    settle_load(&mut base, &accepted, asked)?;
    settle_threading(&mut base, &accepted, &mut record.notes);
    // Alone, these may lack a setting that each point adds.
    let alone = Settings { technique: None, isolation: None, crossover: None, ..base.clone() };
    planner::resolve(&alone, &record.machine)?;
    let is_axis = |value: &&AxisValue| asked.axes.iter().any(|values| values[0].axis == value.axis);
    let mut points = Vec::new();
    for (candidate, _) in accepted {
        // A load that a side sets itself wins over this one.
        let settings = candidate.settings(&base, true);
        let resolved = check(&settings, &record.machine, record.weaker_sandbox)?;
        let values = candidate.values.iter().filter(is_axis);
        let values = values.map(|value| (value.axis, value.text.clone())).collect();
        points.push(new_point(candidate.name, values, resolved));
    }
    record.plan_rows(&points);
    Ok(())
}

/// Creates a named combination of settings for an experiment's record, with its values of the
/// varied settings.
pub fn new_point(name: String, values: BTreeMap<Axis, String>, resolved: Resolved) -> Setting {
    let settings = Settings { repeats: None, out: None, seed: None, ..resolved.settings }.to_texts();
    Setting { name, values, is_aa_test: false, settings }
}

/// Checks settings as the planner would, without a schedule. For a sandbox or a priority also as
/// the kernel would.
pub(super) fn check(
    settings: &Settings,
    machine: &Machine,
    weaker_sandbox: bool,
) -> Result<Resolved, UsageError> {
    let resolved = planner::resolve(settings, machine)?;
    if resolved.plan.isolation.has(Isolation::Sandbox) && !weaker_sandbox {
        let missing = sandbox::missing();
        if !missing.is_empty() {
            return Err(UsageError(format!(
                "no full sandbox here: {}. --allow-weaker-sandbox goes on all the same",
                missing.join("; ")
            )));
        }
    }
    for level in [Isolation::Container, Isolation::Keys] {
        if resolved.plan.isolation.has(level)
            && let Err(why) = check_isolation([level].into_iter(), weaker_sandbox)
        {
            return Err(UsageError(why.to_string()));
        }
    }
    let (plan, _) = planner::preview(&resolved, machine)?;
    if let Some(why) = speculation::missing().filter(|_| plan.has_closed_speculation()) {
        return Err(UsageError(why));
    }
    realtime::check(&plan, machine, &RealTime::read(), realtime::Kernel::ASK)?;
    memory_check::check(&plan, machine, &MemoryFacts::read(), memory::raise_lock_limit)?;
    Ok(resolved)
}

/// All combinations: conditions vary slowest, what is compared fastest.
pub(super) fn combinations(axes: &[Vec<AxisValue>]) -> Vec<Vec<AxisValue>> {
    let (compared, conditions): (Vec<_>, Vec<_>) =
        axes.iter().partition(|values| values[0].axis.is_compared());
    let mut found: Vec<Vec<AxisValue>> = vec![Vec::new()];
    for values in conditions.into_iter().chain(compared) {
        found = found
            .iter()
            .flat_map(|so_far| values.iter().map(|value| [&so_far[..], std::slice::from_ref(value)].concat()))
            .collect();
    }
    for values in &mut found {
        values.sort_by_key(|value| value.axis);
    }
    found
}

/// All combinations of the requested further ones with the values of the other axes. What the axes
/// give already is not made twice.
fn further_combinations(asked: &SweepRequest) -> Vec<Vec<AxisValue>> {
    let made = combinations(&asked.axes);
    let of = |own: &Vec<AxisValue>| {
        let is_other = |values: &&Vec<AxisValue>| own.iter().all(|value| value.axis != values[0].axis);
        let others: Vec<Vec<AxisValue>> = asked.axes.iter().filter(is_other).cloned().collect();
        let with_own = |values: Vec<AxisValue>| {
            let mut values = [values, own.clone()].concat();
            values.sort_by_key(|value| value.axis);
            values
        };
        combinations(&others).into_iter().map(with_own).collect::<Vec<_>>()
    };
    asked.further.iter().flat_map(of).filter(|values| !made.contains(values)).collect()
}

fn name(values: &[AxisValue]) -> String {
    let parts: Vec<String> = values.iter().map(|value| format!("{}={}", value.axis, value.text)).collect();
    if parts.is_empty() { "base".into() } else { parts.join(" ") }
}

/// Sets the window and, unless a rate determines them, the orders, once for all points.
fn settle_load(
    base: &mut Settings,
    accepted: &[(Candidate, Resolved)],
    asked: &SweepRequest,
) -> Result<(), UsageError> {
    let has_rate = asked.axes.iter().any(|values| values[0].axis.entry().becomes.is_some());
    let loads = accepted.iter().filter_map(|(_, resolved)| match resolved.input {
        Input::Drawn { orders, window_ns, arrivals } => Some((orders, window_ns, arrivals)),
        Input::Recorded { .. } => None,
    });
    let Some((orders, window_ns, arrivals)) = loads.min_by_key(|(orders, ..)| *orders) else {
        return if has_rate {
            Err(UsageError(
                "--rate with --schedule: the recorded flow has its own rate; sweep --speed by hand".into(),
            ))
        } else {
            Ok(())
        };
    };
    if has_rate && arrivals == Arrivals::Stress {
        return Err(UsageError(
            "--rate with --arrivals stress: under stress nothing is due, so there is no rate".into(),
        ));
    }
    base.window = Some(Nanos(window_ns));
    base.orders = (!has_rate).then_some(Count(orders));
    Ok(())
}

/// Points with different threading cannot be compared: if the planner would mix, all share.
fn settle_threading(base: &mut Settings, accepted: &[(Candidate, Resolved)], notes: &mut Vec<String>) {
    if !matches!(base.threading, None | Some(Choice::Auto)) {
        return;
    }
    let shared = accepted.iter().filter(|(_, resolved)| resolved.plan.threading == Threading::Shared).count();
    if shared > 0 && shared < accepted.len() {
        base.threading = Some(Choice::Fixed(Threading::Shared));
        notes.push("shared threading for all points: not all would have cores for dedicated".into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::read_values;
    use super::super::record::new_record;
    use super::*;
    use analysis::experiment::{ExperimentRuns, Kind};
    use planner::config::Common;
    use planner::host::fake;

    fn asked(axes: &[(Axis, &str)], base: &str) -> SweepRequest {
        let axes = axes.iter().map(|(axis, list)| read_values(*axis, list).unwrap()).collect();
        let mut asked = SweepRequest { axes, ..SweepRequest::default() };
        for word in base.split_whitespace() {
            let (key, text) = word.split_once('=').unwrap();
            asked.base.set(key, text).unwrap().unwrap();
        }
        asked
    }

    /// The record of a request on a machine with `cores` cores, and the settings of its points.
    fn lay_out_on(cores: u32, asked: &SweepRequest) -> Result<(Experiment, Vec<Settings>)> {
        let machine = fake::plain(cores).machine();
        let mut record = new_record(Kind::Sweep, asked, 5, machine, &Common::default());
        lay_out(&mut record, asked)?;
        let points = ExperimentRuns::new(&record).points;
        let settings = points.iter().map(|point| Settings::from_texts(&point.settings).unwrap()).collect();
        Ok((record, settings))
    }

    fn names(record: &Experiment) -> Vec<String> {
        record.settings().into_iter().map(|setting| setting.name).collect()
    }

    #[test]
    fn compared_axes_vary_fastest() {
        let asked = asked(&[(Axis::Isolation, "thread,process"), (Axis::Work, "0ns,1us")], "");
        let (record, settings) = lay_out_on(2, &asked).unwrap();
        let wanted = [
            "isolation=thread work=0ns",
            "isolation=process work=0ns",
            "isolation=thread work=1us",
            "isolation=process work=1us",
        ];
        assert_eq!(names(&record), wanted);
        let orders: Vec<_> = settings.iter().map(|settings| settings.orders).collect();
        assert_eq!(orders, [Some(Count(100_000)); 4], "what a small machine carries");
    }

    #[test]
    fn threads_run_from_the_shared_binary() {
        let levels = (Axis::Isolation, "thread,process");
        let (record, settings) = lay_out_on(2, &asked(&[levels], "binary=own")).unwrap();
        let binaries: Vec<_> = settings.iter().map(Settings::binary).collect();
        assert_eq!(binaries, [Binary::Shared, Binary::Own]);
        assert!(record.notes.iter().any(|note| note.contains("engine's executable")), "{:?}", record.notes);
        let (record, _) = lay_out_on(2, &asked(&[levels, (Axis::Binary, "shared,own")], "")).unwrap();
        assert_eq!(record.settings().len(), 3, "a thread has none of its own");
        assert!(
            record.notes.iter().any(|note| note.contains("left out: --binary own")),
            "{:?}",
            record.notes
        );
    }

    #[test]
    fn all_points_have_the_same_load_and_threading() {
        let (record, settings) = lay_out_on(16, &asked(&[(Axis::Strategies, "1,8,30")], "")).unwrap();
        for settings in settings {
            assert_eq!(settings.orders, Some(Count(100_000)), "the least of them");
            assert_eq!(settings.threading, Some(Choice::Fixed(Threading::Shared)));
        }
        assert!(record.notes[0].contains("shared threading"), "{:?}", record.notes);
    }

    #[test]
    fn rates_become_orders_in_one_window() {
        let (_, settings) = lay_out_on(2, &asked(&[(Axis::Rate, "10k,20k")], "window=2s")).unwrap();
        let orders: Vec<_> = settings.iter().map(|settings| settings.orders.unwrap().0).collect();
        assert_eq!(orders, [20_000, 40_000]);
        for base in ["schedule=f.csv", "arrivals=stress"] {
            let error = lay_out_on(2, &asked(&[(Axis::Rate, "10k")], base)).unwrap_err();
            assert!(error.to_string().contains("--rate with --"), "{error}");
        }
    }

    #[test]
    fn unavailable_values_fail_unless_from_a_preset() {
        let mut asked = asked(&[(Axis::Capacity, "64,100")], "");
        let error = lay_out_on(2, &asked).unwrap_err().to_string();
        assert!(error.contains("capacity=100: --capacity 100: rings have a power of two"), "{error}");
        asked.preset = Some("bill".into());
        let (record, _) = lay_out_on(2, &asked).unwrap();
        assert_eq!((names(&record), record.notes.len()), (vec!["capacity=64".to_owned()], 1));
        assert!(record.notes[0].contains("capacity=100 left out"), "{:?}", record.notes);
    }

    #[test]
    fn without_axes_there_is_one_point() {
        let (record, settings) = lay_out_on(2, &asked(&[], "venues=2")).unwrap();
        assert_eq!((names(&record), settings[0].venues), (vec!["base".to_owned()], Some(Count(2))));
    }
}
