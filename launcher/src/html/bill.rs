//! What an isolation level costs, technique by technique: each level against the first one, repeat by repeat.

use super::axis;
use super::interval_plot::{self, Row};
use super::sweep_data::{Point, Spread, Sweep, rt_venue};
use super::xy_plot::class;
use crate::report::units::{duration_or_dash, plain};
use maud::{Markup, html};

/// The axis whose values are compared.
const COMPARED: &str = "isolation";
/// The percentiles that are.
const PERCENTILES: [&str; 3] = ["p50", "p99", "p99.9"];

/// Two points that differ only in what is compared.
struct Pair<'a> {
    name: String,
    class: &'static str,
    base: &'a Point,
    point: &'a Point,
}

/// A chart for each percentile and the table; nothing if no isolation levels were compared.
pub fn differences(sweep: &Sweep) -> Option<Markup> {
    let axis = sweep.axes.iter().find(|axis| axis.axis == COMPARED && axis.values.len() > 1)?;
    let base = axis.values.first()?;
    let pairs = pairs(sweep, base);
    let chart = |(number, percentile): (usize, &&str)| {
        let row = |pair: &Pair<'_>| {
            let ratio = ratio(pair, percentile);
            let note = ratio.map_or_else(|| "no pair of repeats".into(), |spread| change(spread.median));
            Row { name: pair.name.clone(), note, class: pair.class, interval: ratio }
        };
        let rows: Vec<Row> = pairs.iter().map(row).collect();
        let title = format!("rt_venue {percentile} against {base}, paired by repeat");
        interval_plot::draw(
            &format!("ratio-{number}"),
            &title,
            &format!("ratio to {base} (1 = the same)"),
            &axis::number,
            Some(1.0),
            &rows,
        )
    };
    Some(html! {
        p {
            "A repeat plays the same orders at every level, one right after the other. Dots are medians of the repeats' ratios, bars "
            "go from the least ratio to the greatest. Where a bar holds 1, no difference is seen."
        }
        @for drawing in PERCENTILES.iter().enumerate().filter_map(chart) { (drawing) }
        (table(&pairs, base))
    })
}

fn pairs<'a>(sweep: &'a Sweep, base: &str) -> Vec<Pair<'a>> {
    let levels: Vec<&String> =
        sweep.axes.iter().filter(|axis| axis.axis == COMPARED).flat_map(|axis| &axis.values).collect();
    let mut pairs = Vec::new();
    for point in &sweep.points {
        let Some(level) = point.values.get(COMPARED).filter(|level| *level != base) else { continue };
        let is_base = |other: &&Point| {
            other.values.iter().all(|(axis, value)| {
                if axis == COMPARED { value == base } else { point.values.get(axis) == Some(value) }
            })
        };
        let Some(base) = sweep.points.iter().find(is_base) else { continue };
        let others = point.name_without(&sweep.axes, COMPARED);
        let name = if others == "all" { level.clone() } else { format!("{others}, {level}") };
        let place = levels.iter().position(|other| *other == level).unwrap_or(1);
        let class = class(place - 1).split(' ').next().unwrap_or("c1");
        pairs.push(Pair { name, class, base, point });
    }
    pairs
}

/// The ratios of the repeats that both have.
fn ratio(pair: &Pair<'_>, percentile: &str) -> Option<Spread> {
    let of = |point: &Point, repeat: u32| {
        let run = point.runs.iter().find(|run| run.repeat == repeat && run.outline.is_sound())?;
        rt_venue(&run.outline, percentile).filter(|value| *value > 0.0)
    };
    let ratios = pair
        .point
        .runs
        .iter()
        .filter_map(|run| Some(of(pair.point, run.repeat)? / of(pair.base, run.repeat)?));
    Spread::of(ratios)
}

/// A ratio as people say it: `+3.2%`, or `×4.1` where that is shorter.
fn change(ratio: f64) -> String {
    if ratio >= 2.0 { format!("×{}", plain(ratio)) } else { format!("{:+.1}%", (ratio - 1.0) * 100.0) }
}

fn table(pairs: &[Pair<'_>], base: &str) -> Markup {
    let time = |point: &Point, percentile: &str| {
        duration_or_dash(point.spread(|run| rt_venue(run, percentile)).map(|spread| spread.median as u64))
    };
    html! {
        table {
            thead { tr {
                th { "against " (base) }
                @for percentile in PERCENTILES {
                    th class="n" { (percentile) " " (base) } th class="n" { (percentile) } th class="n" { "ratio" } th class="n" { "from … to" }
                }
            } }
            tbody { @for pair in pairs { tr {
                th scope="row" { (pair.name) }
                @for percentile in PERCENTILES {
                    td class="n" { (time(pair.base, percentile)) }
                    td class="n" { (time(pair.point, percentile)) }
                    @match ratio(pair, percentile) {
                        Some(spread) => {
                            td class="n" { (format!("{:.3}", spread.median)) }
                            td class="n" { (format!("{:.3} … {:.3}", spread.low, spread.high)) }
                        }
                        None => { td class="n" { "–" } td class="n" { "–" } }
                    }
                }
            } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn ratios_are_said_shortly() {
        assert_eq!([1.0, 1.032, 0.97, 4.12, 250.0].map(change), ["+0.0%", "+3.2%", "-3.0%", "×4.12", "×250"]);
    }
}
