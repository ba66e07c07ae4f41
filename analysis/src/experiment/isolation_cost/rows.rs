//! Selects the runs that each row of the bill needs.

mod growth;

use super::level_figures::{LevelFigures, Repeat};
use super::native::{messages_of, native_techniques};
use super::{Growth, IsolationCostRow, LevelCost, Reference};
use crate::experiment::axis::CostRole;
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::{Axis, AxisRecord, Endpoint};
use crate::stats::{Percentile, RunOutline, compare_figure, median, pair_runs, placement, values};
use protocol::plan::{Isolation, IsolationLevel, IsolationLevels, Technique};
use verdict::summary::{Measure, StrategyCosts};

/// Builds a row for each isolation level and technique from the runs of an experiment, and the
/// curves of what levels add along its conditions.
pub(super) fn rows(record: &ExperimentRuns) -> Result<(Vec<IsolationCostRow>, Vec<Growth>), String> {
    if let Some(other) = record.axes.iter().find(|axis| !axis.axis.is_of_bill()) {
        let why = "a bill is of techniques and isolation levels at one load";
        return Err(format!("a sweep over {} is not a bill: {why}", other.axis));
    }
    let entry = record.kind.entry();
    if !entry.has_verdicts || entry.has_sides {
        return Err(format!("a {} is not a bill: measure one with launcher bill", record.kind));
    }
    let of_point = |point| RowRuns::from_point(record, point);
    let mut measured: Vec<RowRuns> = record.points.iter().filter_map(of_point).collect();
    let rank = |measured: &RowRuns| {
        let level = measured.isolation;
        let technique = Technique::all().iter().position(|other| *other == measured.technique);
        let is_aa_test = measured.is_aa_test;
        let places: Vec<Option<usize>> = measured.conditions.iter().map(|value| value.place).collect();
        (level, technique, places, measured.setting.clone(), is_aa_test)
    };
    measured.sort_by_key(rank);
    let floors = assign_placements(&mut measured);
    let endpoint = endpoint(record);
    let rows: Vec<IsolationCostRow> =
        measured.iter().map(|of| row(of, &measured, &floors, &endpoint)).collect();
    let growth = growth::growth(&record.axes, &measured.iter().zip(&rows).collect::<Vec<_>>(), &endpoint);
    Ok((rows, growth))
}

/// Returns the endpoint of an experiment as its runs have it.
pub(super) fn endpoint(record: &ExperimentRuns) -> Endpoint {
    record.endpoint.for_runs(record.runs().map(|run| &run.outline))
}

/// The value of a condition: `strategies 2`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConditionValue {
    axis: Axis,
    text: String,
    /// Its place on the axis.
    place: Option<usize>,
}

impl core::fmt::Display for ConditionValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {}", self.axis, self.text)
    }
}

/// Returns the strategies of each level that takes turns: `4 each`. `None` for other runs.
fn strategies_each(point: &Point) -> Option<String> {
    point.settings.get("crossover")?;
    let levels = point.settings.get("isolation")?.parse::<IsolationLevels>().ok()?;
    let all: usize = point.settings.get("strategies")?.parse().ok()?;
    Some(format!("{} each", all / levels.as_slice().len()))
}

struct RowRuns {
    isolation: IsolationLevel,
    technique: Technique,
    /// The settings that set the row apart: `stamps ends`.
    setting: String,
    is_aa_test: bool,
    /// The values of the conditions that vary.
    conditions: Vec<ConditionValue>,
    runs: Vec<RunOutline>,
    /// The number of each run's repeat.
    repeats: Vec<u32>,
    /// Where the machine had its cores, run by run.
    placements: Vec<usize>,
}

impl RowRuns {
    /// Returns what sets the row apart from others of its level, technique and condition.
    fn variant(&self) -> String {
        let aa_test = if self.is_aa_test { IsolationCostRow::AA_TEST } else { "" };
        let parts: Vec<&str> = [aa_test, &self.setting].into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// Returns the conditions in words: `idle park, strategies 2`.
    fn condition(&self) -> String {
        self.conditions.iter().map(ConditionValue::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Returns the complete and valid runs with their repeats.
    fn usable_repeats(&self) -> Vec<Repeat<'_>> {
        let runs = self.repeats.iter().copied().zip(&self.runs);
        runs.filter(|(_, run)| run.is_usable()).collect()
    }

    fn at_placement(&self, place: usize) -> Vec<RunOutline> {
        let runs = self.runs.iter().zip(&self.placements);
        runs.filter(|(_, at)| **at == place).map(|(run, _)| run.clone()).collect()
    }

    fn from_point(record: &ExperimentRuns, point: &Point) -> Option<Self> {
        let is_condition = |axis: &&AxisRecord| axis.axis.entry().cost_role == CostRole::Condition;
        let value = |record: &AxisRecord| {
            let text = point.value(record.axis)?.to_owned();
            let place = record.values.iter().position(|other| *other == text);
            let each = (record.axis == Axis::Strategies).then(|| strategies_each(point)).flatten();
            Some(ConditionValue { axis: record.axis, text: each.unwrap_or(text), place })
        };
        let variant = |axis: &Axis| match (axis.entry().cost_role, point.value(*axis)) {
            (CostRole::Variant(usual), Some(value)) if value != usual => Some(format!("{axis} {value}")),
            _ => None,
        };
        // The planner made every setting concrete, so each point has both.
        Some(Self {
            isolation: IsolationLevel::from_name(point.value(Axis::Isolation)?)?,
            technique: Technique::from_name(point.value(Axis::Technique)?)?,
            setting: Axis::ALL.iter().filter_map(variant).collect::<Vec<_>>().join(", "),
            is_aa_test: point.is_aa_test,
            conditions: record.axes.iter().filter(is_condition).filter_map(value).collect(),
            runs: point.outlines(),
            repeats: point.runs.iter().map(|run| run.repeat).collect(),
            placements: Vec::new(),
        })
    }
}

/// Returns the row at the conditions of another with this level, technique and setting.
fn same_condition<'a>(
    of: &RowRuns,
    all: impl IntoIterator<Item = &'a RowRuns>,
    wanted: &Reference,
    setting: &str,
) -> Option<&'a RowRuns> {
    all.into_iter().find(|other| {
        !other.is_aa_test
            && other.setting == setting
            && other.conditions == of.conditions
            && (other.isolation, other.technique) == (wanted.isolation, wanted.technique)
    })
}

/// Returns the threads of a technique with which a row is compared: with the same settings, if
/// there are.
fn threads_with<'a>(of: &RowRuns, all: &[&'a RowRuns], technique: Technique) -> Option<&'a RowRuns> {
    let threads = Reference { isolation: Isolation::Thread.into(), technique };
    let with = |setting| same_condition(of, all.iter().copied(), &threads, setting);
    with(&of.setting).or_else(|| with(""))
}

/// Returns the row of threads to which a level adds its cost. `None` for that row itself.
fn thread_baseline<'a>(of: &RowRuns, all: &[&'a RowRuns]) -> Option<&'a RowRuns> {
    threads_with(of, all, level_technique(of, all)?)
}

fn row(of: &RowRuns, all: &[RowRuns], floors: &[f64], endpoint: &Endpoint) -> IsolationCostRow {
    let RowRuns { isolation, technique, runs, .. } = of;
    let (isolation, technique, variant) = (*isolation, *technique, of.variant());
    let usable: Vec<&RunOutline> = runs.iter().filter(|run| run.is_usable()).collect();
    // Of a run with one level: what all its threads and processes used.
    let is_whole = !usable.iter().any(|run| run.is_of_level());
    let middle = |of: &dyn Fn(&RunOutline) -> Option<f64>| {
        let values = usable.iter().filter(|_| is_whole).map(|run| of(run));
        median(&values.collect::<Option<Vec<_>>>()?)
    };
    let of_measure =
        |measure, percentile| values(&usable, measure, percentile).and_then(|values| median(&values));
    let at = |percentile| of_measure(Measure::RtVenue, percentile);
    let with_setting = |wanted: &Reference, setting: &str| same_condition(of, all, wanted, setting);
    let plain = |wanted: &Reference| with_setting(wanted, "");
    let all_rows: Vec<&RowRuns> = all.iter().collect();
    let is_measured = |wanted: &Reference| plain(wanted).is_some();
    let reference = if variant.is_empty() {
        reference(isolation, technique, is_measured)
    } else {
        // What sets it apart is what it is to show: against the same without it.
        Some(Reference { isolation, technique }).filter(is_measured)
    };
    let repeated = reference.as_ref().filter(|_| of.is_aa_test);
    let other = repeated.and_then(|same| with_setting(same, &of.setting));
    let pairing = other
        .or_else(|| reference.as_ref().and_then(plain))
        .map(|other| pair_runs(&other.runs, runs).with_margin(endpoint.margin));
    IsolationCostRow {
        isolation,
        technique,
        variant,
        condition: of.condition(),
        runs: usable.len(),
        from_due_ns: Percentile::ALL.map(|percentile| of_measure(Measure::RtVenueFromDue, percentile)),
        without_steal_ns: Percentile::ALL.map(|percentile| of_measure(Measure::WithoutSteal, percentile)),
        p50_ns: at(Percentile::P50),
        p99_ns: at(Percentile::P99),
        p999_ns: at(Percentile::P999),
        stall_free_p99_ns: of_measure(Measure::StallFree, Percentile::P99),
        stall_free_p999_ns: of_measure(Measure::StallFree, Percentile::P999),
        taken_out: median(&usable.iter().filter_map(|run| run.excluded_share()).collect::<Vec<_>>()),
        reference,
        differences: pairing.as_ref().map_or_else(Vec::new, |pairing| {
            let of = |measure| Percentile::ALL.map(|percentile| compare_figure(pairing, measure, percentile));
            // Of the row's runs, not of its pairs: a row has the same lines where no pair is left.
            let knows = runs.iter().any(|run| run.excluded_share().is_some());
            let free = if knows { of(Measure::StallFree).to_vec() } else { Vec::new() };
            let steal = if knows { of(Measure::WithoutSteal).to_vec() } else { Vec::new() };
            [of(Measure::RtVenueFromDue).to_vec(), steal, of(Measure::RtVenue).to_vec(), free].concat()
        }),
        adds: thread_baseline(of, &all_rows)
            .map_or_else(Vec::new, |threads| level_costs(threads, of, floors, endpoint)),
        adds_to_native: native_techniques()
            .first()
            .filter(|_| messages_of(isolation, technique).is_none() && !of.is_aa_test)
            .and_then(|native| threads_with(of, &all_rows, *native))
            .and_then(|native| level_costs(native, of, &[], endpoint).into_iter().next()),
        caveats: pairing.map_or_else(Vec::new, |pairing| pairing.caveats),
        cpu_s_per_million: middle(&RunOutline::cpu_s_per_million),
        startup_ns: middle(&|run| Some(run.startup_ns as f64)),
        // A short run may end before its memory is sampled.
        pss_bytes: median(
            &usable
                .iter()
                .filter(|_| is_whole)
                .filter_map(|run| Some(run.pss_bytes? as f64))
                .collect::<Vec<_>>(),
        ),
        page_faults: middle(&|run| Some(run.page_faults as f64)),
        context_switches: middle(&|run| Some(run.context_switches as f64)),
        contains: None,
        strategy: strategy_costs(isolation, &usable),
        level_figures: LevelFigures::from_runs(
            &of.usable_repeats(),
            thread_baseline(of, &all_rows).map(RowRuns::usable_repeats).as_deref(),
        ),
    }
}

/// Returns the technique whose threads a row is compared with: its own, and for the arm `native`
/// the default one or the first that was measured. `None` for those threads themselves.
fn level_technique(of: &RowRuns, all: &[&RowRuns]) -> Option<Technique> {
    if messages_of(of.isolation, of.technique).is_some() && !of.is_aa_test {
        let is_native = |row: &RowRuns| messages_of(row.isolation, row.technique).is_some();
        let threads = || all.iter().filter(|row| row.isolation == Isolation::Thread && !is_native(row));
        let mut techniques = threads().map(|row| row.technique);
        let first = techniques.clone().next();
        return techniques.find(|technique| *technique == Technique::default()).or(first);
    }
    (of.isolation != Isolation::Thread || of.is_aa_test).then_some(of.technique)
}

/// Returns the medians of what a strategy of a level cost in each run.
fn strategy_costs(isolation: IsolationLevel, runs: &[&RunOutline]) -> Option<StrategyCosts> {
    let of_level = |run: &&RunOutline| run.costs.iter().find(|costs| costs.isolation == isolation).copied();
    StrategyCosts::combine(&runs.iter().filter_map(of_level).collect::<Vec<_>>(), median)
}

/// What a level adds to threads: over all pairs, and then placement by placement, where there are
/// several.
fn level_costs(threads: &RowRuns, level: &RowRuns, floors: &[f64], endpoint: &Endpoint) -> Vec<LevelCost> {
    let of = |floor_ns: Option<f64>, threads: &[RunOutline], level: &[RunOutline]| {
        let pairing = pair_runs(threads, level).with_margin(endpoint.margin);
        let line = |percentile| compare_figure(&pairing, endpoint.measure(), percentile);
        let further = endpoint.further.iter().map(|percentile| line(*percentile)).collect();
        LevelCost { floor_ns, line: line(endpoint.percentile), further }
    };
    let mut all = vec![of(None, &threads.runs, &level.runs)];
    for (wanted, floor) in floors.iter().enumerate().filter(|_| floors.len() > 1) {
        let (a, b) = (threads.at_placement(wanted), level.at_placement(wanted));
        if !a.is_empty() && !b.is_empty() {
            all.push(of(Some(*floor), &a, &b));
        }
    }
    all
}

/// Assigns each row's runs to core placements, the same for all rows: by the core-to-core round
/// trip.
fn assign_placements(rows: &mut [RowRuns]) -> Vec<f64> {
    let all: Vec<&RunOutline> = rows.iter().flat_map(|row| &row.runs).collect();
    let places = placement::host_placements(&all);
    let highest = places.iter().max().copied().unwrap_or(0);
    let floor = |wanted: usize| {
        let here = all.iter().zip(&places).filter(|(_, place)| **place == wanted);
        median(&here.filter_map(|(run, _)| placement::core_rtt(run)).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let floors: Vec<f64> = (0..=highest).map(floor).collect();
    let mut places = places.into_iter();
    for row in rows {
        row.placements = places.by_ref().take(row.runs.len()).collect();
    }
    floors
}

/// The crate on the heap for its port; else the same technique under threads; none for what is a
/// reference itself.
fn reference(
    isolation: IsolationLevel,
    technique: Technique,
    is_measured: impl Fn(&Reference) -> bool,
) -> Option<Reference> {
    let candidates = [technique.reference(), Some(technique)].into_iter().flatten();
    let mut references =
        candidates.map(|technique| Reference { isolation: Isolation::Thread.into(), technique });
    references.find(is_measured).filter(|found| (found.isolation, found.technique) != (isolation, technique))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixtures;

    pub(super) fn measured(isolation: Isolation, variant: &str, runs: Vec<RunOutline>) -> RowRuns {
        RowRuns {
            isolation: isolation.into(),
            technique: Technique::default(),
            setting: variant.into(),
            is_aa_test: false,
            conditions: Vec::new(),
            repeats: (0..runs.len() as u32).collect(),
            runs,
            placements: Vec::new(),
        }
    }

    #[test]
    fn each_distinguishing_setting_is_compared_with_its_reference() {
        let runs = |ns: f64| (0..8).map(|repeat| fixtures::run(repeat, ns)).collect();
        let all = [("", 300.0), ("stamps ends", 250.0)]
            .map(|(variant, ns)| measured(Isolation::Process, variant, runs(ns)));
        let (plain, end_stamped) =
            (row(&all[0], &all, &[], &Endpoint::default()), row(&all[1], &all, &[], &Endpoint::default()));
        assert_eq!(plain.reference, None, "threads were not measured");
        let own = Reference { isolation: Isolation::Process.into(), technique: Technique::default() };
        assert_eq!((end_stamped.reference, end_stamped.variant.as_str()), (Some(own), "stamps ends"));
        let ratio = end_stamped.differences[0].difference.unwrap().ratio.value;
        assert!((ratio - 250.0 / 300.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn row_keeps_its_lines_when_no_pair_is_left() {
        let runs = |ns: f64, core_rtt_after_ns: f64| {
            let mut run = fixtures::run(0, ns);
            run.core_rtt_after_ns = Some(core_rtt_after_ns);
            run.measures.insert(Measure::StallFree.name().into(), run.measure(Measure::RtVenue));
            vec![run; 5]
        };
        let lines = |core_rtt_after_ns| {
            let of = |isolation, ns| measured(isolation, "", runs(ns, core_rtt_after_ns));
            let all = [of(Isolation::Thread, 300.0), of(Isolation::Process, 310.0)];
            row(&all[1], &all, &[], &Endpoint::default()).differences
        };
        let (paired, moved) = (lines(100.0), lines(500.0));
        assert!(paired[0].difference.is_some() && moved[0].difference.is_none());
        assert_eq!((paired.len(), moved.len()), (12, 12));
    }

    #[test]
    fn row_has_the_medians_of_its_level() {
        let costs = |isolation, private: f64| StrategyCosts {
            isolation,
            strategies: 2,
            cpu_s_per_million: None,
            idle_cpu: None,
            private_bytes: Some(private),
            pss_bytes: None,
            shared_bytes: None,
            page_table_bytes: None,
            huge_bytes: None,
            minor_faults: private,
            voluntary_switches: 0.0,
            involuntary_switches: 0.0,
            dtlb_misses: None,
            last_level_misses: None,
            startup_ns: None,
            restart_ns: None,
        };
        let run = |private: f64| RunOutline {
            costs: vec![costs(Isolation::Thread.into(), 1.0), costs(Isolation::Process.into(), private)],
            ..fixtures::run(0, 300.0)
        };
        let all = [measured(Isolation::Process, "", [3.0, 90.0, 5.0].map(run).into())];
        let found = row(&all[0], &all, &[], &Endpoint::default()).strategy.unwrap();
        assert_eq!(found, costs(Isolation::Process.into(), 5.0));
        let old = [measured(Isolation::Process, "", vec![fixtures::run(0, 300.0)])];
        assert_eq!(
            row(&old[0], &old, &[], &Endpoint::default()).strategy,
            None,
            "older launchers did not save it"
        );
    }

    #[test]
    fn rows_are_compared_within_their_condition() {
        let runs = |ns: f64| (0..8).map(|repeat| fixtures::run(repeat, ns)).collect();
        let of = |isolation, strategies: &str, ns| RowRuns {
            conditions: vec![ConditionValue { axis: Axis::Strategies, text: strategies.into(), place: None }],
            ..measured(isolation, "", runs(ns))
        };
        let all = [
            of(Isolation::Thread, "1", 300.0),
            of(Isolation::Thread, "4", 900.0),
            of(Isolation::Process, "4", 990.0),
        ];
        let found = row(&all[2], &all, &[], &Endpoint::default());
        let added = found.adds[0].line.difference.unwrap();
        assert_eq!((added.difference.value, found.level().as_str()), (90.0, "process (strategies 4)"));
        assert_eq!(row(&all[0], &all, &[], &Endpoint::default()).reference, None);
    }

    #[test]
    fn added_cost_is_compared_within_each_placement() {
        let row = |isolation, ns: f64, far: f64| {
            let near = (0..8).map(|repeat| fixtures::run(repeat, ns));
            let far = (8..16).map(|repeat| RunOutline {
                core_rtt_ns: Some(310.0),
                core_rtt_after_ns: Some(310.0),
                ..fixtures::run(repeat, far)
            });
            measured(isolation, "", near.chain(far).collect())
        };
        let mut all = [row(Isolation::Thread, 300.0, 600.0), row(Isolation::Process, 310.0, 650.0)];
        let floors = assign_placements(&mut all);
        assert_eq!(floors, [100.0, 310.0]);
        let found = level_costs(&all[0], &all[1], &floors, &Endpoint::default());
        let by =
            |added: &LevelCost| (added.floor_ns, added.line.difference.map(|found| found.difference.value));
        assert_eq!(
            found[1..].iter().map(by).collect::<Vec<_>>(),
            [(Some(100.0), Some(10.0)), (Some(310.0), Some(50.0))]
        );
        assert_eq!(found[0].floor_ns, None);
        // Too few runs are reported, not judged.
        all.iter_mut().for_each(|row| row.runs.truncate(4));
        let floors = assign_placements(&mut all);
        assert_eq!(by(&level_costs(&all[0], &all[1], &floors, &Endpoint::default())[0]), (None, None));
    }

    #[test]
    fn reference_is_the_crate_or_the_threaded_technique() {
        let own = Technique::default();
        let all = |_: &Reference| true;
        let found = reference(Isolation::Process.into(), own, all);
        assert_eq!(found.map(|found| found.isolation), Some(Isolation::Thread.into()));
        assert_eq!(reference(Isolation::Process.into(), own, |_| false), None, "threads were not measured");
        let ports: Vec<_> =
            Technique::all().into_iter().filter_map(|port| Some((port, port.reference()?))).collect();
        assert_eq!(ports.len(), 3);
        for (port, heap) in ports {
            assert_eq!(
                reference(Isolation::Thread.into(), port, all).map(|found| found.technique),
                Some(heap)
            );
            assert_eq!(reference(Isolation::Thread.into(), heap, all), None);
            let only_port = |wanted: &Reference| wanted.technique == port;
            assert_eq!(
                reference(Isolation::Process.into(), port, only_port).map(|found| found.technique),
                Some(port)
            );
        }
    }
}
