//! Finds the setting of a sweep with the lowest latency, only by the rule of evidence and within
//! one condition.
//!
//! Settings of one condition play the same orders and are compared in pairs. Conditions, such as
//! rates or numbers of strategies, have loads of their own and are not ranked.

use super::charts::engine_latency;
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::{Axis, AxisRecord};
use crate::grouping::grouped;
use crate::stats::{
    Evidence, Percentile, Ranking, RunOutline, Spread, compare_figure, format_ratio, pair_runs, rank,
};
use record::numbers::duration;
use verdict::summary::Measure;

/// Ranks points of one condition by a percentile; `None` for fewer than two that have it.
pub(super) fn rank_points<'a>(
    points: &[&'a Point],
    measure: Measure,
    percentile: Percentile,
) -> Option<(Vec<&'a Point>, Ranking)> {
    let figure = |run: &RunOutline| Some(percentile.get(&run.measure(measure))? as f64);
    let known = points.iter().filter_map(|point| Some((*point, point.spread(figure)?.median)));
    let (points, medians): (Vec<&Point>, Vec<f64>) = known.unzip();
    let runs: Vec<Vec<RunOutline>> = points.iter().map(|point| point.outlines()).collect();
    let against = |a: usize, b: usize| -> Evidence {
        compare_figure(&pair_runs(&runs[a], &runs[b]), measure, percentile).evidence()
    };
    let ranking = rank(&medians, against)?;
    Some((points, ranking))
}

/// The result of a sweep in one sentence, at the median of `rt_venue`.
pub(super) fn answer(sweep: &ExperimentRuns) -> String {
    let median = |point: &Point| Some(point.spread(|run| engine_latency(run, Percentile::P50))?.median);
    let measured: Vec<&Point> = sweep.points.iter().filter(|point| median(point).is_some()).collect();
    let Some(range) = Spread::from_values(measured.iter().filter_map(|point| median(point))) else {
        return "no setting has a complete run yet".into();
    };
    let [low, high] = [range.low, range.high].map(|ns| duration(ns as u64));
    if let [only] = measured[..] {
        return format!("rt_venue p50 is {low} with {}", only.name_without(&sweep.axes, None));
    }
    let condition = |point: &Point| -> Vec<(Axis, String)> {
        let shared = point.values.iter().filter(|(axis, _)| !axis.is_compared());
        shared.map(|(axis, value)| (*axis, value.clone())).collect()
    };
    let conditions = grouped(measured.iter().map(|point| (condition(point), *point)));
    let rank =
        conditions.iter().filter_map(|(_, points)| rank_points(points, Measure::RtVenue, Percentile::P50));
    let ranked: Vec<(Vec<&Point>, Ranking)> = rank.collect();
    let compared: Vec<AxisRecord> =
        sweep.axes.iter().filter(|axis| axis.axis.is_compared()).cloned().collect();
    let name = |point: &Point| point.name_without(&compared, None);
    let open = |(points, ranking): &(Vec<&Point>, Ranking)| {
        let (rival, lowest) = (name(points[ranking.rival]), name(points[ranking.lowest]));
        format!("{rival} against {lowest}: {}", ranking.evidence.describe())
    };
    match &ranked[..] {
        [] => format!(
            "rt_venue p50 is {low} to {high} over {} conditions, which are not ranked: each has a load of its own",
            conditions.len()
        ),
        [(points, ranking)] if conditions.len() == 1 => {
            let lowest = points[ranking.lowest];
            let ns = duration(median(lowest).unwrap_or_default() as u64);
            match ranking.evidence.difference.filter(|_| ranking.is_shown()) {
                Some(found) => {
                    let (next, ratio) = (name(points[ranking.rival]), format_ratio(&found));
                    format!(
                        "rt_venue p50 is lowest with {}: {ns}; next is {next}, ratio {ratio}",
                        name(lowest)
                    )
                }
                None => format!("no setting has the lowest rt_venue p50: {}", open(&ranked[0])),
            }
        }
        several => {
            let shown = several.iter().filter(|(_, ranking)| ranking.is_shown());
            let winners = grouped(shown.map(|(points, ranking)| (name(points[ranking.lowest]), ())));
            let all = several.len();
            let mut parts: Vec<String> = winners
                .iter()
                .map(|(name, wins)| format!("lowest with {name} in {} of {all} conditions", wins.len()))
                .collect();
            let others: Vec<_> = several.iter().filter(|(_, ranking)| !ranking.is_shown()).collect();
            parts.extend(others.first().map(|first| {
                format!("no setting is lowest in {} of {all} conditions, e.g. {}", others.len(), open(first))
            }));
            format!("rt_venue p50: {}", parts.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, RunEntry};
    use crate::fixture;
    use crate::stats::fixtures;

    /// A point with eight runs around a median; `load` changes the orders that they play.
    fn point(values: &[(Axis, &str)], ns: &[f64], load: usize) -> Point {
        let run = |(repeat, ns): (usize, &f64)| {
            let mut outline = fixtures::run(1_000 * load + repeat, *ns);
            outline.run += &format!("{values:?}");
            RunEntry { repeat: repeat as u32, folder: String::new(), outline }
        };
        Point {
            name: format!("{values:?}"),
            values: values.iter().map(|(axis, value)| (*axis, (*value).to_owned())).collect(),
            is_aa_test: false,
            settings: Default::default(),
            runs: ns.iter().enumerate().map(run).collect(),
        }
    }

    fn sweep(axes: &[(Axis, &[&str])], points: Vec<Point>) -> ExperimentRuns {
        let axis = |(axis, values): &(Axis, &[&str])| AxisRecord {
            axis: *axis,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes = axes.iter().map(axis).collect();
        ExperimentRuns {
            experiment: Experiment { axes, repeats: 8, ..fixture("golden/experiment.json") },
            points,
        }
    }

    const LEVELS: (Axis, &[&str]) = (Axis::Isolation, &["thread", "process"]);
    const STEADY: [f64; 8] = [1_000.0, 1_002.0, 998.0, 1_001.0, 999.0, 1_003.0, 1_000.0, 997.0];
    /// A machine that is busy with something else: the median is three times as high by chance.
    const NOISE: [f64; 8] = [3_110.0, 700.0, 5_200.0, 900.0, 3_300.0, 800.0, 6_100.0, 3_000.0];

    #[test]
    fn setting_is_lowest_only_if_repeats_agree() {
        let levels = |thread: &[f64], process: &[f64]| {
            let points = [("thread", thread), ("process", process)]
                .map(|(level, ns)| point(&[(Axis::Isolation, level)], ns, 0));
            answer(&sweep(&[LEVELS], points.into()))
        };
        assert_eq!(
            levels(&STEADY, &STEADY.map(|ns| 1.3 * ns)),
            "rt_venue p50 is lowest with thread: 1,000 ns; next is process, ratio 1.300 [1.299–1.300]"
        );
        // A regression: "lowest with thread; highest with process, 3.11 ×", from noise.
        let found = levels(&STEADY, &NOISE);
        assert!(
            found.starts_with("no setting has the lowest rt_venue p50: process against thread: cannot tell"),
            "{found}"
        );
        assert!(!found.contains('×'), "{found}");
        let few = levels(&STEADY[..3], &STEADY[..3]);
        assert!(few.contains("cannot tell: too few repeats: 3 of at least 5 pairs; about 2 more"), "{few}");
    }

    #[test]
    fn conditions_with_loads_of_their_own_are_not_ranked() {
        let strategies: (Axis, &[&str]) = (Axis::Strategies, &["1", "4"]);
        let both = |level, count, ns: &[f64]| {
            let load = if count == "1" { 1 } else { 4 };
            point(&[(Axis::Isolation, level), (Axis::Strategies, count)], ns, load)
        };
        let slower = STEADY.map(|ns| 3.11 * ns);
        let points = vec![
            both("thread", "1", &STEADY),
            both("process", "1", &STEADY.map(|ns| 1.1 * ns)),
            both("thread", "4", &slower),
            both("process", "4", &NOISE),
        ];
        let found = answer(&sweep(&[LEVELS, strategies], points));
        let wanted = "rt_venue p50: lowest with thread in 1 of 2 conditions; no setting is lowest in 1 of 2 conditions, e.g. ";
        assert!(found.starts_with(wanted), "{found}");
        let points = ["1", "4"].map(|count| {
            let ns = if count == "1" { &STEADY } else { &slower };
            point(&[(Axis::Strategies, count)], ns, count.len() + ns[0] as usize)
        });
        let found = answer(&sweep(&[strategies], points.into()));
        assert!(
            found.contains("over 2 conditions, which are not ranked") && !found.contains("lowest"),
            "{found}"
        );
    }
}
