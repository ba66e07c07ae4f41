//! Draws stacked bars of the stages' means, for the orders around the median and around p99.
//! Stacked medians would invite a sum that means nothing; stages of the same orders do add up.
//!
//! The two have axes of their own: at the tail a stage can take a thousand times its median, and on
//! one axis only one of the two bars could be read.

use super::axis;
use super::scale::Scale;
use super::svg::{Frame, WIDTH, coordinate, text, text_width};
use crate::report::units::{count, duration, duration_or_dash};
use crate::summary::{Distribution, Measure, PercentileBreakdown, Summary};
use maud::{Markup, html};
use protocol::flow::{Stage, StageInfo};
use protocol::plan::Stamps;

/// The stages without the venue, each with its CSS class: hand-offs bright, the engine's own work
/// gray.
pub const STAGES: [(Measure, &str); 6] = [
    (Measure::Stage(Stage::Submit), "c3"),
    (Measure::Stage(Stage::OrchPreDispatch), "c7"),
    (Measure::Stage(Stage::Dispatch), "c4"),
    (Measure::Stage(Stage::Completion), "c5"),
    (Measure::Stage(Stage::OrchPostProcess), "c8"),
    (Measure::Stage(Stage::Return), "c6"),
];

/// A percentile of the summary: its key's beginning and how to get it.
type Percentile = (&'static str, fn(&Distribution) -> Option<u64>);

const COLUMNS: [Percentile; 2] = [("p50", |figures| figures.p50_ns), ("p99", |figures| figures.p99_ns)];

/// Draws the stages' mean times around the median and around p99 as bars, and the table of
/// percentiles.
pub fn draw(summary: &Summary) -> Markup {
    if summary.plan.stamps == Stamps::Ends {
        return html! {
            p class="none" { "The stages were not stamped (--stamps ends)." }
            (table(summary))
        };
    }
    html! {
        @for (name, _) in COLUMNS {
            @match summary.percentile_breakdowns.iter().find(|around| around.percentile == name).and_then(bar) {
                Some(drawing) => figure { (drawing) },
                None => p class="none" { "Too few orders came back for those around the " (name) " of rt_venue." },
            }
        }
        p class="note" {
            "Each bar is of the same orders: those around that percentile of rt_venue, and what each stage took of them on average. So the              pieces add up to the rt_venue of these orders. venue_service, the time at the venue, is left out."
        }
        (table(summary))
        p class="note" {
            "The stages' own percentiles. They do not add up: half of the orders are below the median of every stage, but not the same half."
        }
    }
}

fn bar(around: &PercentileBreakdown) -> Option<Markup> {
    let name = around.percentile.as_str();
    let ns = |(stage, class): &(Measure, &'static str)| {
        let found = around.stages.iter().find(|part| part.stage == stage.name())?;
        (found.mean_ns.is_finite() && found.mean_ns >= 0.0).then_some((*stage, *class, found.mean_ns))
    };
    let values: Vec<(Measure, &str, f64)> = STAGES.iter().map(ns).collect::<Option<_>>()?;
    let sum: f64 = values.iter().map(|(.., value)| value).sum();
    let frame = Frame { height: 128.0, left: 76.0, right: WIDTH - 20.0, top: 26.0, bottom: 78.0 };
    let most = sum.max(1.0);
    let unit =
        [(1e9, "s"), (1e6, "ms"), (1e3, "µs")].into_iter().find(|unit| most >= unit.0).unwrap_or((1.0, "ns"));
    let x = Scale::linear(0.0, most / unit.0, frame.x_range());
    let at = |ns: f64| x.at(ns / unit.0);
    let mut from = 0.0;
    let mut pieces = Vec::new();
    for (stage, class, value) in values {
        pieces.push((stage, class, value, at(from), at(from + value)));
        from += value;
    }
    let middle = f64::midpoint(frame.top, frame.bottom);
    let words = |ns: f64| duration(ns.round() as u64);
    let content = html! {
        (axis::bottom(&frame, &x, &format!("mean of each stage of the orders around {name} ({})", unit.1), &axis::number))
        (text(frame.left - 12.0, middle + 5.0, "end", "label strong", name))
        @for (stage, class, value, left, right) in &pieces {
            rect x=(coordinate(*left)) y=(coordinate(frame.top + 6.0)) width=(coordinate((right - left).max(0.0)))
                height=(coordinate(frame.bottom - frame.top - 12.0)) class={ "fill piece " (class) }
                data-stage=(stage.name()) data-percentile=(name) data-ns=(value) {
                title { (stage.name()) ": " (words(*value)) " on average" }
            }
            @let label = format!("{} {}", stage.name(), words(*value));
            @if let Some(label) = [label, stage.name().to_owned()].iter().find(|l| text_width(l) + 8.0 < right - left) {
                (text(f64::midpoint(*left, *right), middle + 4.0, "middle", &format!("inside {class}"), label))
            }
        }
        (text(frame.left, frame.top - 6.0, "start", "label", &format!(
            "{} orders with rt_venue from {} to {}: {} on average",
            count(around.orders), duration(around.from_ns), duration(around.to_ns), words(around.rt_venue_ns)
        )))
    };
    let parts: Vec<String> =
        pieces.iter().map(|(stage, _, value, ..)| format!("{} {}", stage.name(), words(*value))).collect();
    let title = format!("Where the time of the orders around {name} went");
    Some(frame.drawing(&format!("stages-{name}"), &title, &format!("{}.", parts.join(", ")), &content))
}

/// Stage, colour, and its own percentiles.
fn table(summary: &Summary) -> Markup {
    html! {
        table {
            thead { tr {
                th { "stage" } th { "what it is" }
                @for (name, _) in COLUMNS { th class="n" { (name) } }
            } }
            tbody {
                @for (stage, class) in STAGES {
                    tr {
                        th scope="row" { span class={ "swatch " (class) } {} (stage.name()) }
                        td { (meaning(stage)) }
                        @for (_, of) in COLUMNS { td class="n" { (duration_or_dash(of(summary.distribution(stage)))) } }
                    }
                }
            }
        }
    }
}

/// Returns a phrase for what a stage measures, such as the way from engine to gateway.
pub fn meaning(measure: Measure) -> String {
    let words = match measure {
        Measure::Stage(stage) => {
            let StageInfo { from, to, meaning, .. } = stage.info();
            return format!("{meaning}, {} − {}", to.name(), from.name());
        }
        Measure::Exchange(part) => return format!("part of venue_service: {}", part.info().meaning),
        Measure::RoundTrip => "t8 − t1",
        Measure::RtVenue => "round trip less the venue",
        Measure::RtVenueFromDue => "the same, from when it was due",
        Measure::SendLag => "how late the order was sent, t1 − due",
        Measure::GatewayLateness => "how late the gateway was, t5 − release",
        Measure::TickToTrade => "t1 − the write of the touch that triggered the order",
        Measure::TickToExchange => "from that write until the exchange has the order",
        Measure::StallFree => "rt_venue of orders that no stall of the machine touched",
    };
    words.into()
}
