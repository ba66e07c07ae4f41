//! Draws what levels add along a setting, as one SVG file for a page of a book: `launcher export
//! BILL --svg FILE`.
//!
//! A panel for each technique, setting and further condition; without such a setting one with a
//! place for each level. Values stand at equal distances; each has the margin of equivalence as a
//! box around zero, and a dot with its 95 % interval for each level.

use super::growth::{Growth, panels};
use super::{Bill, BillRow, GrowthPoint};
use crate::chart::axis;
use crate::chart::scale::Scale;
use crate::chart::svg::{self, Frame, WIDTH, coordinate, line, text};
use crate::experiment::Axis;
use crate::grouping::distinct;
use crate::numbers::{counted, duration};
use maud::{Markup, html};
use protocol::plan::Isolation;

const STYLE: &str = include_str!("picture.css");
/// Height of a panel, with its heading and the labels below it.
const PANEL: f64 = 300.0;
/// Distance of two levels at one value.
const DODGE: f64 = 16.0;
/// Classes of isolation levels.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];
const EDGES: (f64, f64) = (96.0, WIDTH - 20.0);

/// Draws what levels add to threads, and returns a whole SVG file. `None` if no level has enough
/// pairs.
pub fn growth_picture(bill: &Bill) -> Option<String> {
    let single = levels_as_values(bill);
    let mut panels = panels(bill);
    if panels.is_empty() {
        panels.extend(single.first().map(|first| (first.technique.to_string(), single.iter().collect())));
    }
    let curves = || panels.iter().flat_map(|(_, curves)| curves);
    curves().flat_map(|curve| &curve.points).find(|point| point.difference.is_some())?;
    let levels = distinct(curves().map(|curve| (curve.level.clone(), class(curve))));
    let endpoint = format!("{} {}", bill.endpoint.measure, bill.endpoint.percentile.name());
    let title = format!("What a level adds to threads, {endpoint}");
    let names: Vec<&str> = panels.iter().map(|(name, _)| name.as_str()).collect();
    let description = format!(
        "{}. Dots with 95 % intervals for {}; boxes are the margin within which a level is equivalent.",
        names.join("; "),
        levels.iter().map(|(level, _)| level.as_str()).collect::<Vec<_>>().join(", ")
    );
    let content = html! {
        (text(EDGES.0, 30.0, "start", "heading", &title))
        @if curves().all(|curve| curve.along != Axis::Isolation) { (legend(&levels)) }
        @for (number, (name, curves)) in panels.iter().enumerate() {
            (panel(name, curves, &levels, 62.0 + PANEL * number as f64))
        }
    };
    let height = 70.0 + PANEL * panels.len() as f64;
    Some(svg::file((WIDTH, height), &title, Some(&description), STYLE, &content))
}

/// Returns a curve of one point for each row, whose value is the row's level.
fn levels_as_values(bill: &Bill) -> Vec<Growth> {
    let percentile = bill.endpoint.percentile;
    let curve = |row: &BillRow| {
        let point = GrowthPoint::of_row(row, percentile, 0.0, row.level())?;
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
    bill.rows.iter().filter_map(curve).collect()
}

/// A level, and its class.
type Level = (String, &'static str);

fn class(curve: &Growth) -> &'static str {
    CLASSES[Isolation::ALL.iter().position(|level| *level == curve.isolation).unwrap_or(0) % CLASSES.len()]
}

fn legend(levels: &[Level]) -> Markup {
    let mut right = EDGES.1;
    let keys = levels.iter().rev().map(|(level, class)| {
        right -= svg::text_width(level) + 30.0;
        (level, *class, right)
    });
    let keys: Vec<(&String, &str, f64)> = keys.collect();
    html! {
        @for (level, class, left) in keys {
            circle class=(class) cx=(coordinate(left)) cy="26" r="5" {}
            (text(left + 10.0, 30.0, "start", "", level))
        }
    }
}

fn panel(name: &str, curves: &[&Growth], levels: &[Level], top: f64) -> Markup {
    let frame = Frame { left: EDGES.0, right: EDGES.1, top: top + 24.0, bottom: top + PANEL - 74.0 };
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let values = distinct(points().map(|point| point.value.clone()));
    let width = (frame.right - frame.left) / values.len().max(1) as f64;
    let middle = |value: usize| frame.left + width * (value as f64 + 0.5);
    let reach = points().flat_map(|point| {
        let by = point.difference.map_or([0.0; 2], |by| [by.low, by.high]);
        let margin = point.margin_ns.unwrap_or(0.0);
        [by[0], by[1], -margin, margin]
    });
    let (low, high) = reach
        .filter(|ns| ns.is_finite())
        .fold((-1.0, 1.0), |(low, high): (f64, f64), ns| (low.min(ns), high.max(ns)));
    let pad = (high - low) * 0.06;
    let y = Scale::linear_exact(low - pad, high + pad, (frame.bottom, frame.top));
    let first = |value: &String| points().find(|point| point.value == *value);
    html! {
        (text(frame.left, top + 10.0, "start", "strong", name))
        g class="axis" {
            @for ns in y.ticks() {
                (line((frame.left, y.at(ns)), (frame.right, y.at(ns)), if ns == 0.0 { "base" } else { "grid" }))
                (text(frame.left - 8.0, y.at(ns) + 4.0, "end", "tick", &axis::duration(ns).replace('-', "−")))
            }
        }
        @for (number, value) in values.iter().enumerate() {
            @if let Some(point) = first(value) {
                (margin_box(point, middle(number), width, &y))
                (text(middle(number), frame.bottom + 18.0, "middle", "", value))
                (text(middle(number), frame.bottom + 35.0, "middle", "dim", &thread_label(point)))
                (text(middle(number), frame.bottom + 51.0, "middle", "dim", &counted(point.pairs as u64, "pair")))
            }
        }
        @for curve in curves {
            @let level = levels.iter().position(|(level, _)| *level == curve.level).unwrap_or(0);
            @let shift = DODGE * (level as f64 - (levels.len() as f64 - 1.0) / 2.0);
            @for point in &curve.points {
                @let place = values.iter().position(|value| *value == point.value).unwrap_or(0);
                @let shift = if curve.along == Axis::Isolation { 0.0 } else { shift };
                (dot(point, middle(place) + shift, &y, class(curve)))
            }
        }
    }
}

fn thread_label(point: &GrowthPoint) -> String {
    let thread = point.thread_ns.map_or_else(|| "–".into(), |ns| duration(ns as u64));
    format!("of {thread}")
}

/// The margin of equivalence around zero.
fn margin_box(point: &GrowthPoint, middle: f64, width: f64, y: &Scale) -> Markup {
    let margin = point.margin_ns.unwrap_or(0.0);
    let (top, bottom) = (y.at(margin), y.at(-margin));
    html! {
        rect class="box" x=(coordinate(middle - width * 0.4)) y=(coordinate(top)) width=(coordinate(width * 0.8))
            height=(coordinate(bottom - top)) {}
    }
}

/// A level's difference with its interval.
fn dot(point: &GrowthPoint, x: f64, y: &Scale, class: &str) -> Markup {
    let Some(by) = point.difference else { return html! {} };
    html! {
        (line((x, y.at(by.low)), (x, y.at(by.high)), &format!("interval {class}")))
        circle class=(class) cx=(coordinate(x)) cy=(coordinate(y.at(by.value))) r="4.5" {
            title { (point.verdict) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::fixture;
    use crate::stats::{Estimate, Percentile, Verdict};
    use protocol::plan::{Isolation, Technique};

    fn bill(differences: &[Option<f64>]) -> Bill {
        let point = |(number, by): (usize, &Option<f64>)| GrowthPoint {
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
            isolation: Isolation::Process,
            level: "process".into(),
            technique: Technique::default(),
            condition: "idle park".into(),
            percentile: Percentile::P50,
            points: differences.iter().enumerate().map(point).collect(),
            slope: None,
            step: "one more".into(),
        };
        Bill { growth: vec![curve], ..fixture("before/bill.json") }
    }

    #[test]
    fn picture_has_a_dot_for_each_known_point() {
        let drawn = growth_picture(&bill(&[Some(3.0), None, Some(40.0)])).unwrap();
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
        assert_eq!(growth_picture(&bill(&[None, None])), None);
        assert_eq!(growth_picture(&Bill { growth: Vec::new(), rows: Vec::new(), ..bill(&[]) }), None);
    }
}
