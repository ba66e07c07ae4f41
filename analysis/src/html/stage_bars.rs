//! Draws stacked bars of the stages' means, for the orders around the median and around p99.
//! Stacked medians would invite a sum that means nothing; stages of the same orders do add up.
//!
//! The two have axes of their own: at the tail a stage can take a thousand times its median, and on
//! one axis only one of the two bars could be read.

use super::axis;
use super::scale::Scale;
use super::svg::{Frame, WIDTH, coordinate, legend, text, text_width};
use crate::report::units::{counted, duration};
use crate::summary::{Measure, PercentileBreakdown, Summary};
use maud::{Markup, html};
use protocol::flow::Stage;
use protocol::plan::Stamps;

/// The stages without the venue and their classes: hand-offs bright, the engine's work gray.
pub const STAGES: [(Measure, &str); 6] = [
    (Measure::Stage(Stage::Submit), "c3"),
    (Measure::Stage(Stage::OrchPreDispatch), "c7"),
    (Measure::Stage(Stage::Dispatch), "c4"),
    (Measure::Stage(Stage::Completion), "c5"),
    (Measure::Stage(Stage::OrchPostProcess), "c8"),
    (Measure::Stage(Stage::Return), "c6"),
];

/// Draws a bar for the orders around the median and one for those around p99.
pub fn draw(summary: &Summary) -> Markup {
    if summary.plan.stamps == Stamps::Ends {
        return html! { p class="none" { "The stages were not stamped (--stamps ends)." } };
    }
    html! {
        @for name in ["p50", "p99"] {
            @match summary.percentile_breakdowns.iter().find(|around| around.percentile == name).and_then(bar) {
                Some(drawing) => figure { (drawing) },
                None => p class="none" { "Too few orders came back for those around the " (name) " of rt_venue." },
            }
        }
        p class="note" {
            "Each bar is of the same orders: those around that percentile of rt_venue, and what each stage took of them on average. So the              pieces add up to the rt_venue of these orders. venue_service, the time at the venue, is left out."
        }
        (legend(STAGES.map(|(stage, class)| (class, stage.name().to_owned()))))
    }
}

/// Returns the mean of each of [`STAGES`] over the orders around a percentile, in nanoseconds.
pub fn stage_means(around: &PercentileBreakdown) -> Option<Vec<f64>> {
    let mean = |(stage, _): &(Measure, &str)| {
        let found = around.stages.iter().find(|part| part.stage == stage.name())?;
        (found.mean_ns.is_finite() && found.mean_ns >= 0.0).then_some(found.mean_ns)
    };
    STAGES.iter().map(mean).collect()
}

/// A stage in a bar: its name, class and mean, and the ends of its piece.
pub type StagePiece = (&'static str, &'static str, f64, f64, f64);

/// Returns the pieces of a bar, each from where the one before it ends.
pub fn pieces(means_ns: &[f64], at: impl Fn(f64) -> f64) -> Vec<StagePiece> {
    let mut until = 0.0;
    let piece = |((measure, class), ns): (&(Measure, &'static str), &f64)| {
        let left = at(until);
        until += ns;
        (measure.name(), *class, *ns, left, at(until))
    };
    STAGES.iter().zip(means_ns).map(piece).collect()
}

fn bar(around: &PercentileBreakdown) -> Option<Markup> {
    let name = around.percentile.as_str();
    let means = stage_means(around)?;
    let frame = Frame { height: 128.0, left: 76.0, right: WIDTH - 20.0, top: 26.0, bottom: 78.0 };
    let sum = means.iter().sum::<f64>().max(1.0);
    let (size, unit) = axis::time_unit(sum);
    let x = Scale::linear(0.0, sum / size, frame.x_range());
    let pieces = pieces(&means, |ns| x.at(ns / size));
    let middle = f64::midpoint(frame.top, frame.bottom);
    let words = |ns: f64| duration(ns.round() as u64);
    let content = html! {
        (axis::bottom(&frame, &x, &format!("mean of each stage of the orders around {name} ({unit})"), &axis::number))
        (text(frame.left - 12.0, middle + 5.0, "end", "label strong", name))
        @for (stage, class, value, left, right) in &pieces {
            rect x=(coordinate(*left)) y=(coordinate(frame.top + 6.0)) width=(coordinate((right - left).max(0.0)))
                height=(coordinate(frame.bottom - frame.top - 12.0)) class={ "fill piece " (class) }
                data-stage=(stage) data-percentile=(name) data-ns=(value) {
                title { (stage) ": " (words(*value)) " on average" }
            }
            @let label = format!("{stage} {}", words(*value));
            @if let Some(label) = [label, (*stage).to_owned()].iter().find(|l| text_width(l) + 8.0 < right - left) {
                (text(f64::midpoint(*left, *right), middle + 4.0, "middle", &format!("inside {class}"), label))
            }
        }
        (text(frame.left, frame.top - 6.0, "start", "label", &format!(
            "{} with rt_venue from {} to {}: {} on average",
            counted(around.orders, "order"), duration(around.from_ns), duration(around.to_ns), words(around.rt_venue_ns)
        )))
    };
    let parts: Vec<String> =
        pieces.iter().map(|(stage, _, value, ..)| format!("{stage} {}", words(*value))).collect();
    let title = format!("Where the time of the orders around {name} went");
    Some(frame.drawing(&format!("stages-{name}"), &title, &format!("{}.", parts.join(", ")), &content))
}
