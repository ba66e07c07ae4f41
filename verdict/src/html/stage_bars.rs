//! Draws stacked bars of the stages' means, for the orders around the median and around p99.
//! Stacked medians would invite a sum that means nothing; stages of the same orders do add up.
//!
//! The two have scales of their own: at the tail a stage can take a thousand times its median, and
//! on one scale only one of the two bars could be read.

use crate::report::units::{counted, duration};
use crate::summary::{Measure, PercentileBreakdown, Summary};
use maud::{Markup, html};
use protocol::flow::Stage;
use protocol::plan::Stamps;

/// The stages of an order's path without the venue, and their CSS classes: hand-offs bright, the
/// engine's work gray.
pub const STAGES: [(Measure, &str); 6] = [
    (Measure::Stage(Stage::Submit), "c3"),
    (Measure::Stage(Stage::OrchPreDispatch), "c7"),
    (Measure::Stage(Stage::Dispatch), "c4"),
    (Measure::Stage(Stage::Completion), "c5"),
    (Measure::Stage(Stage::OrchPostProcess), "c8"),
    (Measure::Stage(Stage::Return), "c6"),
];

/// Draws the stages of a run's orders as bars: one for the orders around the median, one for those
/// around p99.
pub fn draw(summary: &Summary) -> Markup {
    if summary.plan.stamps == Stamps::Ends {
        return html! { p class="none" { "The stages were not stamped (--stamps ends)." } };
    }
    html! {
        @for name in ["p50", "p99"] {
            @match summary.percentile_breakdowns.iter().find(|around| around.percentile == name).and_then(bar) {
                Some(drawing) => (drawing),
                None => p class="none" { "Too few orders came back for those around the " (name) " of rt_venue." },
            }
        }
        p class="note" {
            "Each bar is of the same orders: those around that percentile of rt_venue, and what each stage took of them on average. So the pieces add up to the rt_venue of these orders. venue_service, the time at the venue, is left out."
        }
    }
}

/// Returns the mean time, in nanoseconds, of each of [`STAGES`] over a breakdown's orders, which
/// are near a percentile of rt_venue. `None` if one is missing, negative or not finite.
pub fn stage_means(around: &PercentileBreakdown) -> Option<Vec<f64>> {
    let mean = |(stage, _): &(Measure, &str)| {
        let found = around.stages.iter().find(|part| part.stage == stage.name())?;
        (found.mean_ns.is_finite() && found.mean_ns >= 0.0).then_some(found.mean_ns)
    };
    STAGES.iter().map(mean).collect()
}

/// Iterates over [`STAGES`] with their means: each stage's name, CSS class and mean in nanoseconds.
pub fn pieces(means_ns: &[f64]) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    STAGES.iter().zip(means_ns).map(|((measure, class), ns)| (measure.name(), *class, *ns))
}

fn bar(around: &PercentileBreakdown) -> Option<Markup> {
    let name = around.percentile.as_str();
    let means = stage_means(around)?;
    let rounded = |ns: f64| duration(ns.round() as u64);
    let parts: Vec<String> =
        pieces(&means).map(|(stage, _, ns)| format!("{stage} {}", rounded(ns))).collect();
    Some(html! {
        figure class="stages" id={ "stages-" (name) } {
            figcaption {
                b { (name) } " " (counted(around.orders, "order")) " with rt_venue from " (duration(around.from_ns)) " to "
                (duration(around.to_ns)) ": " (rounded(around.rt_venue_ns)) " on average"
            }
            div class="stack" role="img" aria-label={ "Where the time of the orders around " (name) " went: " (parts.join(", ")) "." } {
                @for (stage, class, ns) in pieces(&means) {
                    span class={ "piece " (class) } style={ "flex:" (ns) } title={ (stage) " " (rounded(ns)) }
                        data-stage=(stage) data-percentile=(name) data-ns=(ns) { span { (stage) " " (rounded(ns)) } }
                }
            }
            p class="legend" {
                @for (stage, class, ns) in pieces(&means) {
                    span class={ "key " (class) } { span class="swatch" {} (stage) " " b { (rounded(ns)) } } " "
                }
            }
        }
    })
}
