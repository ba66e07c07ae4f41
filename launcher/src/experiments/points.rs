//! Expands axes into the list of settings to measure: every combination that the planner accepts,
//! all with equal load.

use super::axes::AxisValue;
use super::flags::SweepRequest;
use crate::config::{Arrivals, Choice, Settings, UsageError};
use crate::host::{Machine, RealTime};
use crate::planner::{self, Input, Resolved};
use crate::runtime::container;
use crate::runtime::realtime;
use analysis::experiment::{Axis, AxisRecord, SweepPoint};
use analysis::units::{Count, Nanos};
use protocol::plan::{Isolation, Threading};
use system::sandbox;

/// More points than this are a mistake.
const MAX_POINTS: usize = 10_000;

/// The combinations of settings to measure, with the settings that they vary.
#[derive(Clone, Debug, PartialEq)]
pub struct PointLayout {
    /// The settings that all points share.
    pub base: Settings,
    pub axes: Vec<AxisRecord>,
    /// The combinations, conditions outside, what is compared inside.
    pub points: Vec<SweepPoint>,
    /// Notes on points that were left out, and on settings that were decided for all points.
    pub notes: Vec<String>,
}

/// Side A or side B of a comparison: its name and settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSide {
    pub name: String,
    /// The settings of A or B, over those that both have.
    pub settings: Settings,
    /// The rate of A or B, if it sets one.
    pub rate: Option<AxisValue>,
}

/// A point that may be made: what it sets over what all share.
struct Candidate {
    name: String,
    own: Settings,
    values: Vec<AxisValue>,
}

impl Candidate {
    fn settings(&self, base: &Settings, with_rate: bool) -> Settings {
        let mut settings = self.own.clone().over(base.clone());
        let values = self.values.iter().filter(|value| with_rate || value.axis != Axis::Rate);
        values.for_each(|value| value.apply(&mut settings));
        settings
    }
}

/// Creates the list of all combinations of the varied settings.
///
/// One that the planner refuses is left out with a note, if its values can be had in others. The
/// load is what the machine carries: the least that the planner chooses for any point, so that all
/// have the same; and if some would get dedicated threads and others not, all share.
pub fn lay_out(asked: &SweepRequest, machine: &Machine) -> Result<PointLayout, UsageError> {
    let size = asked.axes.iter().map(Vec::len).try_fold(1usize, usize::checked_mul);
    if size.is_none_or(|size| size > MAX_POINTS) {
        return Err(UsageError(format!("more than {MAX_POINTS} combinations: sweep over less at a time")));
    }
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for values in combinations(&asked.axes) {
        let candidate = Candidate { name: name(&values), own: Settings::default(), values };
        match check(&candidate.settings(&asked.base, false), machine, asked.weaker_sandbox) {
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
        return Err(UsageError(if values.is_empty() { why.clone() } else { format!("{name}: {why}") }));
    }
    let left_out = |(candidate, why): &(Candidate, String)| {
        format!("{} left out: {}", candidate.name, why.lines().next().unwrap_or(""))
    };
    let notes = refused.iter().map(left_out).collect();
    let axes = asked.axes.iter().map(|values| AxisRecord {
        axis: values[0].axis,
        values: values.iter().map(|value| value.text.clone()).collect(),
    });
    Ok(PointLayout { axes: axes.collect(), ..settle(asked, accepted, notes, machine)? })
}

/// Creates the two entries of a comparison, A and B, with equal load unless one sets its own.
pub fn lay_out_sides(
    asked: &SweepRequest,
    sides: &[ComparedSide],
    machine: &Machine,
) -> Result<PointLayout, UsageError> {
    let side = |side: &ComparedSide| {
        let ComparedSide { name, settings, rate } = side.clone();
        let candidate = Candidate { name, own: settings, values: rate.into_iter().collect() };
        let resolved = check(&candidate.settings(&asked.base, false), machine, asked.weaker_sandbox)
            .map_err(|error| UsageError(format!("{}: {error}", candidate.name)))?;
        Ok((candidate, resolved))
    };
    let accepted = sides.iter().map(side).collect::<Result<_, UsageError>>()?;
    settle(asked, accepted, Vec::new(), machine)
}

/// The points of candidates, with one load and one threading.
fn settle(
    asked: &SweepRequest,
    accepted: Vec<(Candidate, Resolved)>,
    mut notes: Vec<String>,
    machine: &Machine,
) -> Result<PointLayout, UsageError> {
    let mut base = asked.base.clone();
    settle_load(&mut base, &accepted, asked)?;
    settle_threading(&mut base, &accepted, &mut notes);
    let is_axis = |value: &&AxisValue| asked.axes.iter().any(|values| values[0].axis == value.axis);
    let point = |(candidate, _): &(Candidate, Resolved)| {
        // A load that a side sets itself wins over this one.
        let resolved = check(&candidate.settings(&base, true), machine, asked.weaker_sandbox)?;
        let values = candidate.values.iter().filter(is_axis);
        Ok(SweepPoint {
            name: candidate.name.clone(),
            values: values.map(|value| (value.axis, value.text.clone())).collect(),
            settings: Settings { repeats: None, out: None, seed: None, ..resolved.settings }.to_texts(),
            runs: Vec::new(),
        })
    };
    let points = accepted.iter().map(point).collect::<Result<_, UsageError>>()?;
    Ok(PointLayout { base, axes: Vec::new(), points, notes })
}

/// Checks settings as the planner would, without a schedule. For a sandbox or a priority also as
/// the kernel would.
pub(super) fn check(
    settings: &Settings,
    machine: &Machine,
    weaker_sandbox: bool,
) -> Result<Resolved, UsageError> {
    let resolved = planner::resolve(settings, machine)?;
    if resolved.plan.isolation == Isolation::Sandbox && !weaker_sandbox {
        let missing = sandbox::missing();
        if !missing.is_empty() {
            return Err(UsageError(format!(
                "no full sandbox here: {}. --allow-weaker-sandbox goes on all the same",
                missing.join("; ")
            )));
        }
    }
    if resolved.plan.isolation == Isolation::Container
        && let Some(why) = container::missing(weaker_sandbox)
    {
        return Err(UsageError(why));
    }
    let (plan, _) = planner::preview(&resolved, machine)?;
    realtime::check(&plan, machine, &RealTime::read(), realtime::Kernel::ASK)?;
    Ok(resolved)
}

/// All combinations: conditions vary slowest, what is compared fastest.
fn combinations(axes: &[Vec<AxisValue>]) -> Vec<Vec<AxisValue>> {
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

fn name(values: &[AxisValue]) -> String {
    let words: Vec<String> = values.iter().map(|value| format!("{}={}", value.axis, value.text)).collect();
    if words.is_empty() { "base".into() } else { words.join(" ") }
}

/// Sets the window and, unless a rate determines them, the orders, once for all points.
fn settle_load(
    base: &mut Settings,
    accepted: &[(Candidate, Resolved)],
    asked: &SweepRequest,
) -> Result<(), UsageError> {
    let has_rate = asked.axes.iter().any(|values| values[0].axis == Axis::Rate);
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
    use super::*;
    use crate::host::fake;

    fn asked(axes: &[(Axis, &str)], base: &str) -> SweepRequest {
        let axes =
            axes.iter().map(|(axis, list)| super::super::axes::read_values(*axis, list).unwrap()).collect();
        let mut asked = SweepRequest { axes, ..SweepRequest::default() };
        for word in base.split_whitespace() {
            let (key, text) = word.split_once('=').unwrap();
            asked.base.set(key, text).unwrap().unwrap();
        }
        asked
    }

    fn read(texts: &analysis::experiment::SettingTexts) -> Settings {
        Settings::from_texts(texts).unwrap()
    }

    fn names(layout: &PointLayout) -> Vec<&str> {
        layout.points.iter().map(|point| point.name.as_str()).collect()
    }

    #[test]
    fn compared_axes_vary_fastest() {
        let asked = asked(&[(Axis::Isolation, "thread,process"), (Axis::Work, "0ns,1us")], "");
        let layout = lay_out(&asked, &fake::plain(2).machine()).unwrap();
        let wanted = [
            "isolation=thread work=0ns",
            "isolation=process work=0ns",
            "isolation=thread work=1us",
            "isolation=process work=1us",
        ];
        assert_eq!(names(&layout), wanted);
        let orders: Vec<_> = layout.points.iter().map(|point| read(&point.settings).orders).collect();
        assert_eq!(orders, [Some(Count(100_000)); 4], "what a small machine carries");
    }

    #[test]
    fn all_points_have_the_same_load_and_threading() {
        let asked = asked(&[(Axis::Strategies, "1,8,30")], "");
        let layout = lay_out(&asked, &fake::plain(16).machine()).unwrap();
        for point in &layout.points {
            assert_eq!(read(&point.settings).orders, Some(Count(100_000)), "the least of them");
            assert_eq!(read(&point.settings).threading, Some(Choice::Fixed(Threading::Shared)));
        }
        assert!(layout.notes[0].contains("shared threading"), "{:?}", layout.notes);
    }

    #[test]
    fn rates_become_orders_in_one_window() {
        let layout =
            lay_out(&asked(&[(Axis::Rate, "10k,20k")], "window=2s"), &fake::plain(2).machine()).unwrap();
        let orders: Vec<_> =
            layout.points.iter().map(|point| read(&point.settings).orders.unwrap().0).collect();
        assert_eq!(orders, [20_000, 40_000]);
        for base in ["schedule=f.csv", "arrivals=stress"] {
            let error = lay_out(&asked(&[(Axis::Rate, "10k")], base), &fake::plain(2).machine()).unwrap_err();
            assert!(error.to_string().contains("--rate with --"), "{error}");
        }
    }

    #[test]
    fn unavailable_values_fail_unless_from_a_preset() {
        let mut asked = asked(&[(Axis::Capacity, "64,100")], "");
        let error = lay_out(&asked, &fake::plain(2).machine()).unwrap_err().to_string();
        assert!(error.contains("capacity=100: --capacity 100: rings have a power of two"), "{error}");
        asked.preset = Some("bill".into());
        let layout = lay_out(&asked, &fake::plain(2).machine()).unwrap();
        assert_eq!((names(&layout), layout.notes.len()), (vec!["capacity=64"], 1));
        assert!(layout.notes[0].contains("capacity=100 left out"), "{:?}", layout.notes);
    }

    #[test]
    fn without_axes_there_is_one_point() {
        let layout = lay_out(&asked(&[], "venues=2"), &fake::plain(2).machine()).unwrap();
        assert_eq!(names(&layout), ["base"]);
        assert_eq!(read(&layout.points[0].settings).venues, Some(Count(2)));
    }
}
