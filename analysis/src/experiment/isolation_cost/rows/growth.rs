//! Computes the cost that a level adds along a setting: a point for each value, and the slope over
//! all pairs.

use super::super::growth::point_of_row;
use super::super::{Growth, IsolationCostRow};
use super::{ConditionValue, RowRuns, thread_baseline};
use crate::experiment::{AxisRecord, Endpoint};
use crate::stats::{Percentile, RunOutline, pair_runs, slope};

/// A row of the bill with its runs.
type Measured<'a> = (&'a RowRuns, &'a IsolationCostRow);

/// Returns a curve for each level, technique and percentile of the endpoint, along each setting
/// with several values that are numbers.
pub(super) fn growth(axes: &[AxisRecord], rows: &[Measured<'_>], endpoint: &Endpoint) -> Vec<Growth> {
    let is_numeric = |record: &&AxisRecord| {
        record.values.len() > 1 && record.values.iter().all(|text| record.axis.number(text).is_some())
    };
    let along = |record: &AxisRecord| {
        let mut curves: Vec<Vec<Measured<'_>>> = Vec::new();
        for row in rows.iter().filter(|row| has_point(row, record)) {
            match curves.iter_mut().find(|curve| is_same_curve(curve[0].0, row.0, record)) {
                Some(curve) => curve.push(*row),
                None => curves.push(vec![*row]),
            }
        }
        curves.retain(|curve| curve.len() > 1);
        let each_percentile = |curve: &Vec<Measured<'_>>| {
            let growth_at = |percentile| growth_of_curve(record, curve, rows, endpoint, percentile);
            endpoint.percentiles().map(growth_at).collect::<Vec<_>>()
        };
        curves.iter().flat_map(each_percentile).collect::<Vec<_>>()
    };
    axes.iter().filter(is_numeric).flat_map(along).collect()
}

fn has_point((runs, row): &Measured<'_>, along: &AxisRecord) -> bool {
    !row.adds.is_empty() && runs.conditions.iter().any(|value| value.axis == along.axis)
}

/// Returns the conditions of a row but the one along which a curve goes.
fn others<'a>(row: &'a RowRuns, along: &AxisRecord) -> Vec<&'a ConditionValue> {
    row.conditions.iter().filter(|value| value.axis != along.axis).collect()
}

fn is_same_curve(a: &RowRuns, b: &RowRuns, along: &AxisRecord) -> bool {
    let key = |row: &RowRuns| (row.isolation, row.technique, row.is_aa_test, row.setting.clone());
    key(a) == key(b) && others(a, along) == others(b, along)
}

fn growth_of_curve(
    along: &AxisRecord,
    curve: &[Measured<'_>],
    rows: &[Measured<'_>],
    endpoint: &Endpoint,
    percentile: Percentile,
) -> Growth {
    let (first, row) = curve[0];
    let value = |runs: &RowRuns| {
        let value = runs.conditions.iter().find(|value| value.axis == along.axis)?;
        Some((along.axis.number(&value.text)?, value.text.clone()))
    };
    let point = |(runs, row): &Measured<'_>| {
        let (at, value) = value(runs)?;
        point_of_row(row, percentile, at, value)
    };
    let all: Vec<&RowRuns> = rows.iter().map(|(runs, _)| *runs).collect();
    let differences = |(runs, _): &Measured<'_>| {
        let Some(((at, _), baseline)) = value(runs).zip(thread_baseline(runs, &all)) else {
            return Vec::new();
        };
        let pairing = pair_runs(&baseline.runs, &runs.runs);
        let measure = endpoint.measure();
        let difference = |[a, b]: &[&RunOutline; 2]| {
            let ns = |run: &RunOutline| percentile.get(&run.measure(measure));
            Some((at, ns(b)? as f64 - ns(a)? as f64))
        };
        pairing.deciding_pairs().iter().filter_map(difference).collect()
    };
    // The setting's value and the difference in nanoseconds, of every pair of runs.
    let slope_points: Vec<(f64, f64)> = curve.iter().flat_map(differences).collect();
    let others: Vec<String> = others(first, along).iter().map(|value| value.to_string()).collect();
    let (step, step_name) = along.axis.step();
    Growth {
        along: along.axis,
        isolation: first.isolation,
        level: row.level_at_condition(),
        technique: first.technique,
        condition: others.join(", "),
        percentile,
        points: curve.iter().filter_map(point).collect(),
        slope: slope(&slope_points).map(|found| found.map(|ns| ns * step)),
        step: step_name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;
    use crate::experiment::Axis;
    use crate::experiment::isolation_cost::rows::row;
    use crate::stats::{Verdict, fixtures};
    use protocol::plan::Isolation;

    fn at(isolation: Isolation, strategies: u32, ns: f64) -> RowRuns {
        let runs = (0..12).map(|repeat| fixtures::run(repeat, ns)).collect();
        let value = ConditionValue { axis: Axis::Strategies, text: strategies.to_string(), place: None };
        RowRuns { conditions: vec![value], ..measured(isolation, "", runs) }
    }

    /// Returns the curves of processes that add some nanoseconds for each strategy.
    fn curves(counts: &[u32], adds: f64) -> Vec<Growth> {
        let axes =
            [AxisRecord { axis: Axis::Strategies, values: counts.iter().map(u32::to_string).collect() }];
        let threads = counts.iter().map(|count| at(Isolation::Thread, *count, 300.0));
        let processes =
            counts.iter().map(|count| at(Isolation::Process, *count, 300.0 + adds * f64::from(*count)));
        let all: Vec<RowRuns> = threads.chain(processes).collect();
        let endpoint = Endpoint::legacy();
        let rows: Vec<IsolationCostRow> = all.iter().map(|runs| row(runs, &all, &[], &endpoint)).collect();
        growth(&axes, &all.iter().zip(&rows).collect::<Vec<_>>(), &endpoint)
    }

    #[test]
    fn curve_has_a_point_for_each_value_and_its_slope() {
        let found = curves(&[1, 4, 16], 10.0);
        let [found] = &found[..] else { panic!("one level along one setting: {found:?}") };
        assert_eq!((found.level.as_str(), found.along), ("process", Axis::Strategies));
        let points: Vec<_> =
            found.points.iter().map(|point| (point.at, point.difference.unwrap().value)).collect();
        assert_eq!(points, [(1.0, 10.0), (4.0, 40.0), (16.0, 160.0)]);
        assert_eq!(found.points[0].verdict, Verdict::Equivalent, "within 5 % of 300 ns");
        assert_eq!(found.points[2].verdict, Verdict::Slower);
        let slope = found.slope.unwrap();
        assert!((slope.value - 10.0).abs() < 1e-9 && slope.low <= 10.0 && slope.high >= 10.0, "{slope:?}");
    }

    #[test]
    fn single_value_has_no_curve_and_two_no_slope() {
        assert_eq!(curves(&[4], 10.0), []);
        let two = curves(&[1, 4], 10.0);
        assert_eq!((two.len(), two[0].points.len(), two[0].slope), (1, 2, None));
    }
}
