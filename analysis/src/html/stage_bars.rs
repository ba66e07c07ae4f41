//! What the engine adds, stage by stage: one stacked bar for the median, one for the 99th percentile.
//!
//! The two have axes of their own: at the tail a stage can take a thousand times its median, and on one axis only
//! one of the two bars could be read.

use super::axis;
use super::scale::Scale;
use super::svg::{Frame, WIDTH, line, num, text, text_width};
use crate::report::units::{duration, duration_or_dash};
use crate::summary::{Distribution, Measure, Summary};
use maud::{Markup, html};
use protocol::flow::{Stage, StageRecord};
use protocol::plan::Stamps;

/// The stages without the venue, each with its colour: the hand-offs bright, the engine's own work grey.
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

const BARS: [Percentile; 2] = [("p50", |figures| figures.p50_ns), ("p99", |figures| figures.p99_ns)];

/// Both bars and their table.
pub fn draw(summary: &Summary) -> Markup {
    if summary.plan.stamps == Stamps::Ends {
        return html! {
            p class="none" { "The stages were not stamped (--stamps ends)." }
            (table(summary))
        };
    }
    html! {
        @for (name, of) in BARS {
            @match bar(summary, name, of) {
                Some(drawing) => figure { (drawing) },
                None => p class="none" { "Too few orders came back for the " (name) " of the stages." },
            }
        }
        (table(summary))
        p class="note" {
            "Percentiles do not add up: half of the orders are below the median of every stage, but not the same half. \
             The mark on each bar is the percentile of rt_venue itself. venue_service, the time at the venue, is left out."
        }
    }
}

fn bar(summary: &Summary, name: &str, of: fn(&Distribution) -> Option<u64>) -> Option<Markup> {
    let values: Vec<u64> =
        STAGES.iter().map(|(stage, _)| of(summary.distribution(*stage))).collect::<Option<_>>()?;
    let sum = values.iter().fold(0, |sum: u64, value| sum.saturating_add(*value));
    let whole = of(&summary.rt_venue);
    let frame = Frame { height: 128.0, left: 76.0, right: WIDTH - 20.0, top: 26.0, bottom: 78.0 };
    let most = (sum.max(whole.unwrap_or(0)).max(1)) as f64;
    let unit =
        [(1e9, "s"), (1e6, "ms"), (1e3, "µs")].into_iter().find(|unit| most >= unit.0).unwrap_or((1.0, "ns"));
    let x = Scale::linear(0.0, most / unit.0, frame.across());
    let at = |ns: u64| x.at(ns as f64 / unit.0);
    let mut from = 0;
    let mut pieces = Vec::new();
    for ((stage, class), value) in STAGES.iter().zip(&values) {
        pieces.push((*stage, *class, *value, at(from), at(from.saturating_add(*value))));
        from = from.saturating_add(*value);
    }
    let middle = f64::midpoint(frame.top, frame.bottom);
    let content = html! {
        (axis::bottom(&frame, &x, &format!("{name} of each stage ({})", unit.1), &axis::number))
        (text(frame.left - 12.0, middle + 5.0, "end", "label strong", name))
        @for (stage, class, value, left, right) in &pieces {
            rect x=(num(*left)) y=(num(frame.top + 6.0)) width=(num((right - left).max(0.0)))
                height=(num(frame.bottom - frame.top - 12.0)) class={ "fill piece " (class) }
                data-stage=(stage.name()) data-percentile=(name) data-ns=(value) {
                title { (stage.name()) " " (name) ": " (duration(*value)) }
            }
            @let label = format!("{} {}", stage.name(), duration(*value));
            @if let Some(label) = [label, stage.name().to_owned()].iter().find(|l| text_width(l) + 8.0 < right - left) {
                (text(f64::midpoint(*left, *right), middle + 4.0, "middle", &format!("inside {class}"), label))
            }
        }
        @if let Some(whole) = whole {
            (line((at(whole), frame.top), (at(whole), frame.bottom), "whole"))
            @let near_end = at(whole) > frame.right - 160.0;
            (text(at(whole), frame.top - 6.0, if near_end { "end" } else { "middle" }, "label",
                &format!("rt_venue {name} {}", duration(whole))))
        }
    };
    let parts: Vec<String> =
        pieces.iter().map(|(stage, _, value, ..)| format!("{} {}", stage.name(), duration(*value))).collect();
    let title = format!("The {name} of each stage, stacked");
    Some(frame.drawing(&format!("stages-{name}"), &title, &format!("{}.", parts.join(", ")), &content))
}

/// Stage, colour, both percentiles, and the share of each.
fn table(summary: &Summary) -> Markup {
    let share = |of: fn(&Distribution) -> Option<u64>, stage: Measure| {
        let sum = STAGES.iter().filter_map(|(stage, _)| of(summary.distribution(*stage))).sum::<u64>();
        let value = of(summary.distribution(stage)).filter(|_| sum > 0)?;
        Some(value as f64 / sum as f64)
    };
    html! {
        table {
            thead { tr {
                th { "stage" } th { "what it is" }
                @for (name, _) in BARS { th class="n" { (name) } th class="n" { "share" } }
            } }
            tbody {
                @for (stage, class) in STAGES {
                    tr {
                        th scope="row" { span class={ "swatch " (class) } {} (stage.name()) }
                        td { (meaning(stage)) }
                        @for (_, of) in BARS {
                            td class="n" { (duration_or_dash(of(summary.distribution(stage)))) }
                            td class="n" { (crate::report::units::percent(share(of, stage))) }
                        }
                    }
                }
            }
        }
    }
}

/// A measure in words.
pub fn meaning(measure: Measure) -> String {
    let words = match measure {
        Measure::Stage(stage) => {
            let StageRecord { from, to, meaning, .. } = stage.record();
            return format!("{meaning}, {} − {}", to.name(), from.name());
        }
        Measure::Exchange(part) => return format!("part of venue_service: {}", part.record().meaning),
        Measure::RoundTrip => "t8 − t1",
        Measure::RtVenue => "round trip less the venue",
        Measure::RtVenueFromDue => "the same, from when it was due",
        Measure::Slip => "how late the order was sent, t1 − due",
        Measure::GatewayLateness => "how late the gateway was, t5 − release",
        Measure::TickToTrade => "t1 − the write of the touch that triggered the order",
        Measure::TickToExchange => "from that write until the exchange has the order",
    };
    words.into()
}
