//! The cost that a level adds along a setting, such as the number of strategies: types, table,
//! sentences and chart.

use super::{IsolationCostRow, IsolationCosts};
use crate::chart::xy_plot::{is_log, line_class};
use crate::experiment::axis::Axis;
use crate::experiment::picture::{self, ComparedPoint, PicturePanel, PictureSeries};
use crate::experiment::time_unit::TimeUnit;
use crate::grouping::{distinct, grouped};
use crate::stats::{Estimate, Percentile};
use maud::Markup;
use protocol::plan::{IsolationLevel, Technique};
use serde::{Deserialize, Serialize};
use verdict::chart::axis;
use verdict::chart::plot::{DataSeries, Plot, PlotAxis, ReferenceLine};
use verdict::table::Grid;

/// How an isolation level's extra latency compared with threads grows with a varied setting, at one
/// percentile, with the slope in nanoseconds per step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// The setting that varies.
    pub along: Axis,
    /// The isolation level.
    pub isolation: IsolationLevel,
    /// Name of the level, with what else distinguishes its rows: `thread (A/A)`.
    pub level: String,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// The values of the other conditions: `idle park`; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// The compared percentile of the endpoint.
    pub percentile: Percentile,
    /// The comparison with threads at each value of the setting.
    pub points: Vec<ComparedPoint>,
    /// Slope: nanoseconds that one step of the setting adds to the difference, over all pairs; null
    /// with fewer than three values.
    pub slope: Option<Estimate>,
    /// Name of one step of the setting: `one more`, `MiB`.
    pub step: String,
}

/// Returns the point of a row that was compared with threads.
pub(super) fn point_of_row(
    row: &IsolationCostRow,
    percentile: Percentile,
    at: f64,
    value: String,
) -> Option<ComparedPoint> {
    let line = row.adds.first()?.lines().find(|line| line.percentile == percentile)?;
    Some(ComparedPoint::of_line(line, at, value))
}

impl Growth {
    /// Names a curve's panel: its technique, setting and further conditions.
    pub(super) fn panel(&self) -> String {
        let parts = [self.technique.name(), &self.condition].map(str::to_owned);
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}, by {}", parts.join(", "), self.along)
    }

    /// Describes the verdicts and the slope: `p50 equivalent at 4 and 8, cannot tell at 16`.
    fn describe(&self) -> String {
        let verdicts = grouped(self.points.iter().map(|point| (point.verdict, point.value.as_str())));
        let words =
            verdicts.into_iter().map(|(verdict, values)| format!("{verdict} at {}", values.join(", ")));
        let slope = self.slope.map_or_else(String::new, |slope| {
            let unit = slope_unit(slope);
            let [value, interval] = unit.difference(slope);
            let each =
                if self.step == "one more" { "one more".to_owned() } else { format!("each {}", self.step) };
            format!(", {value} {} {interval} for {each}", unit.symbol())
        });
        format!("{} {}{slope}", self.percentile.name(), words.collect::<Vec<_>>().join(", "))
    }
}

fn slope_unit(slope: Estimate) -> TimeUnit {
    TimeUnit::for_durations([slope.value, slope.low, slope.high])
}

/// Returns a sentence for each level along each setting.
pub(super) fn sentences(isolation_costs: &IsolationCosts, technique: Technique) -> Vec<String> {
    let of_technique = isolation_costs.growth.iter().filter(|curve| curve.technique == technique);
    let key = |curve: &Growth| {
        let condition =
            if curve.condition.is_empty() { String::new() } else { format!(", {}", curve.condition) };
        format!("{}{condition}, {}", curve.level, curve.along)
    };
    let lines = grouped(of_technique.map(|curve| (key(curve), curve.describe())));
    lines.into_iter().map(|(key, lines)| format!("{key}: {}", lines.join("; "))).collect()
}

/// Returns the table of curves: a row for each, with its slope.
pub(super) fn table(isolation_costs: &IsolationCosts) -> Option<Grid> {
    let first_to_last = |curve: &Growth| {
        let points = [curve.points.first(), curve.points.last()].into_iter().flatten();
        points.map(|point| point.value.clone()).collect::<Vec<_>>().join(" to ")
    };
    let slope = |curve: &Growth| {
        curve.slope.map_or_else(
            || "–".into(),
            |slope| {
                let unit = slope_unit(slope);
                format!("{} {}", unit.difference(slope).join(" "), unit.symbol())
            },
        )
    };
    let grid = Grid::from_rows(
        "bill_growth",
        "What a level adds to threads along a setting",
        4,
        &[
            ("level", &|curve: &Growth| curve.level.clone()),
            ("technique", &|curve| curve.technique.to_string()),
            ("along", &|curve| format!("{} {}", curve.along, first_to_last(curve))),
            ("at", &|curve| curve.percentile.name().into()),
            ("with", &|curve| curve.condition.clone()),
            ("a step adds", &slope),
            ("step", &|curve| curve.step.clone()),
        ],
        &isolation_costs.growth,
    );
    let note = "a step adds: the median slope over all pairs [95 % interval] (Theil, Sen)";
    (!isolation_costs.growth.is_empty()).then(|| grid.note(note))
}

/// Returns the curves that are drawn, a group for each chart: those of the endpoint's first
/// percentile.
pub(super) fn panels(isolation_costs: &IsolationCosts) -> Vec<(String, Vec<&Growth>)> {
    let drawn =
        isolation_costs.growth.iter().filter(|curve| curve.percentile == isolation_costs.endpoint.percentile);
    grouped(drawn.map(|curve| (curve.panel(), curve)))
}

/// Draws what levels add to threads, and returns a whole SVG file: a panel for each technique,
/// setting and further condition; without such a setting one with a place for each level. `None` if
/// no level has enough pairs.
pub(super) fn growth_picture(isolation_costs: &IsolationCosts) -> Option<String> {
    let single = levels_as_values(isolation_costs);
    let mut shown = panels(isolation_costs);
    if shown.is_empty() {
        shown.extend(single.first().map(|first| (first.technique.to_string(), single.iter().collect())));
    }
    let panels: Vec<PicturePanel<'_>> = shown
        .iter()
        .map(|(name, curves)| PicturePanel {
            name: name.clone(),
            series: curves
                .iter()
                .map(|curve| PictureSeries {
                    name: curve.level.clone(),
                    level: curve.isolation,
                    points: curve.points.iter().collect(),
                })
                .collect(),
        })
        .collect();
    let endpoint =
        format!("{} {}", isolation_costs.endpoint.measure, isolation_costs.endpoint.percentile.name());
    picture::draw(&format!("What a level adds to threads, {endpoint}"), &panels)
}

/// Returns a curve of one point for each row, whose value is the row's level.
fn levels_as_values(isolation_costs: &IsolationCosts) -> Vec<Growth> {
    let percentile = isolation_costs.endpoint.percentile;
    let curve = |row: &IsolationCostRow| {
        let point = point_of_row(row, percentile, 0.0, row.level())?;
        Some(Growth {
            along: Axis::Isolation,
            isolation: row.isolation,
            level: row.level(),
            technique: row.technique,
            condition: String::new(),
            percentile,
            points: vec![point],
            slope: None,
            step: String::new(),
        })
    };
    isolation_costs.rows.iter().filter_map(curve).collect()
}

/// Draws a chart for each technique, setting and further condition: a line for each level.
pub(super) fn charts(isolation_costs: &IsolationCosts) -> Vec<Markup> {
    let draw = |(number, (panel, curves)): (usize, &(String, Vec<&Growth>))| {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let along = curves[0].along;
        let series = curves.iter().enumerate().map(|(number, curve)| {
            let known: Vec<(f64, Estimate)> =
                curve.points.iter().filter_map(|point| Some((point.at, point.difference?))).collect();
            let of = |figure: fn(&Estimate) -> f64| known.iter().map(|(_, by)| figure(by)).collect();
            DataSeries {
                dots: (0..known.len()).collect(),
                x: known.iter().map(|(at, _)| *at).collect(),
                y: of(|by| by.value),
                low: of(|by| by.low),
                high: of(|by| by.high),
                ..DataSeries::with_class(curve.level.clone(), line_class(number))
            }
        });
        let (measure, name) = (&isolation_costs.endpoint.measure, isolation_costs.endpoint.percentile.name());
        let levels = distinct(curves.iter().map(|curve| curve.level.clone())).join("; ");
        let y = PlotAxis { has_zero: true, ..PlotAxis::new("difference to threads", axis::DURATION) };
        Plot {
            id: format!("growth-{number}"),
            title: format!("What a level adds at {measure} {name}: {panel}"),
            description: format!(
                "Difference to threads against {along}, a line for each of: {levels}. Dots are estimates, bars 95 % intervals."
            ),
            height: 380,
            x: PlotAxis::with_log(along.name(), axis::NUMBER, is_log(points().map(|point| point.at), 8.0)),
            y,
            series: series.collect(),
            lines: vec![ReferenceLine { axis: 'y', at: 0.0 }],
            ..Plot::default()
        }
        .figure()
    };
    panels(isolation_costs).iter().enumerate().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::stats::Verdict;
    use protocol::plan::Isolation;

    fn isolation_costs(differences: &[Option<f64>]) -> IsolationCosts {
        let point = |(number, by): (usize, &Option<f64>)| ComparedPoint {
            at: number as f64,
            value: (1 << number).to_string(),
            thread_ns: Some(300.0),
            difference: by.map(|ns| Estimate { value: ns, low: ns - 5.0, high: ns + 5.0 }),
            margin_ns: Some(15.0),
            pairs: 20,
            verdict: Verdict::Equivalent,
        };
        let curve = Growth {
            along: Axis::Strategies,
            isolation: Isolation::Process.into(),
            level: "process".into(),
            technique: Technique::default(),
            condition: "idle park".into(),
            percentile: Percentile::P50,
            points: differences.iter().enumerate().map(point).collect(),
            slope: None,
            step: "one more".into(),
        };
        IsolationCosts { growth: vec![curve], ..fixture("before/bill.json") }
    }

    #[test]
    fn picture_has_a_dot_for_each_known_point() {
        let drawn = growth_picture(&isolation_costs(&[Some(3.0), None, Some(40.0)])).unwrap();
        // One of the circles is the legend's.
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert_eq!(drawn.matches("class=\"box\"").count(), 3, "each value has its margin");
        assert!(
            drawn.contains("spsc-mux, idle park, by strategies")
                && drawn.contains("of 300 ns")
                && drawn.contains("20 pairs")
        );
    }

    #[test]
    fn bill_without_curves_has_no_picture() {
        assert_eq!(growth_picture(&isolation_costs(&[None, None])), None);
        assert_eq!(
            growth_picture(&IsolationCosts { growth: Vec::new(), rows: Vec::new(), ..isolation_costs(&[]) }),
            None
        );
    }
}
