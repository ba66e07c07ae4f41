//! Draws how an order's time is divided into stages, as one self-contained SVG file: `launcher
//! export RUN --svg FILE`.
//!
//! The stages are those of the orders around the median of rt_venue, so they add up to it.

use super::stage_bars::{STAGES, pieces, stage_means};
use crate::chart::axis;
use crate::chart::scale::Scale;
use crate::chart::svg::{self, Frame, WIDTH, coordinate, text, text_width};
use crate::summary::{PercentileBreakdown, Summary};
use maud::{Markup, html};
use protocol::flow::Stage;
use protocol::plan::{Isolation, IsolationLevel};
use record::fitness::{FIT, UNFIT};
use record::numbers::{count, duration, plain};

/// The longest text that is taken from a run, in characters.
const TEXT_LEN_MAX: usize = 60;
const STYLE: &str = include_str!("order_path.css");

const HEIGHT: f64 = 372.0;
/// Left edges of the boxes: strategy, orchestrator, gateway.
const BOXES: [f64; 3] = [20.0, 408.0, 796.0];
const BOX_WIDTH: f64 = 224.0;
const BOX_TOP: f64 = 56.0;
const BOX_HEIGHT: f64 = 112.0;
/// The lanes of outgoing orders and of returning reports.
const LANES: [f64; 2] = [92.0, 138.0];

struct OrderPath<'a> {
    summary: &'a Summary,
    /// The orders around the median.
    around: &'a PercentileBreakdown,
    /// Mean of each of [`STAGES`] over these orders, in nanoseconds.
    stages_ns: Vec<f64>,
}

/// Draws an order's path as a whole SVG file, with the mean stage times of the orders from p45 to
/// p55 of rt_venue. `None` if the run's stages were not stamped or too few orders came back.
pub fn order_path(summary: &Summary) -> Option<String> {
    let around = summary.percentile_breakdowns.iter().find(|around| around.percentile == "p50")?;
    let stages_ns = stage_means(around)?;
    let is_known = around.rt_venue_ns.is_finite() && around.rt_venue_ns >= 0.0;
    is_known.then(|| OrderPath { summary, around, stages_ns }.svg())
}

impl OrderPath<'_> {
    fn svg(&self) -> String {
        let title = format!("The path of an order: the engine adds {}", rounded(self.around.rt_venue_ns));
        let parts = STAGES.iter().zip(&self.stages_ns);
        let parts: Vec<String> =
            parts.map(|((stage, _), ns)| format!("{} {}", stage.name(), rounded(*ns))).collect();
        let description = format!("{}. {}", parts.join(", "), self.captions().join(" "));
        let content = html! {
            (text(BOXES[0], 32.0, "start", "heading", &title))
            (self.roles())
            (self.hand_offs())
            (self.bar())
            @for (line, caption) in self.captions().iter().enumerate() {
                (text(BOXES[0], 340.0 + 18.0 * line as f64, "start", "dim", caption))
            }
        };
        svg::file((WIDTH, HEIGHT), &title, Some(&description), STYLE, &content)
    }

    fn roles(&self) -> Markup {
        let middle = BOX_WIDTH / 2.0;
        let at = |role: usize, y: f64, class: &str, label: &str| {
            text(BOXES[role] + middle, y, "middle", class, label)
        };
        let strategy = match self.summary.isolation.only().map(IsolationLevel::kind) {
            Some(Isolation::Thread) => "a thread of the engine",
            Some(Isolation::Keys) => "a thread with a protection key",
            Some(Isolation::Container) => "a process in a container",
            Some(Isolation::Sandbox) => "a process in a sandbox",
            Some(Isolation::Process) if self.summary.isolation.has_groups() => "a process of a group",
            Some(Isolation::Process) => "a process of its own",
            None => "a thread or a process",
        };
        html! {
            @for x in BOXES {
                rect class="box" x=(coordinate(x)) y=(coordinate(BOX_TOP)) width=(coordinate(BOX_WIDTH)) height=(coordinate(BOX_HEIGHT)) rx="6" {}
            }
            (at(0, 112.0, "strong", "strategy"))
            (at(0, 130.0, "dim", strategy))
            (self.label(1, BOXES[1] + middle, 82.0))
            (at(1, 118.0, "strong", "orchestrator"))
            (self.label(4, BOXES[1] + middle, 156.0))
            (at(2, 94.0, "strong", "gateway, venue"))
            @if let Some(ns) = self.summary.stages[Stage::VenueService].p50_ns {
                (at(2, 118.0, "", &format!("venue_service {}", duration(ns))))
                (at(2, 136.0, "dim", "the venue's own, not counted"))
            }
        }
    }

    /// The four hand-offs between the boxes: two out, two back.
    fn hand_offs(&self) -> Markup {
        let gap = |left: usize| (BOXES[left] + BOX_WIDTH, BOXES[left + 1]);
        let arrows = [(0, gap(0), 0), (2, gap(1), 0), (3, gap(1), 1), (5, gap(0), 1)];
        html! {
            @for (stage, (left, right), lane) in arrows {
                @let (y, class) = (LANES[lane], STAGES[stage].1);
                @let (from, to) = if lane == 0 { (left, right) } else { (right, left) };
                @let (tip, back) = if lane == 0 { (to - 3.0, to - 14.0) } else { (to + 3.0, to + 14.0) };
                line class={ "way " (class) } x1=(coordinate(from)) y1=(coordinate(y)) x2=(coordinate(back)) y2=(coordinate(y)) {}
                path class=(class) d={ "M" (coordinate(tip)) " " (coordinate(y)) "L" (coordinate(back)) " " (coordinate(y - 6.0)) "L" (coordinate(back)) " " (coordinate(y + 6.0)) "Z" } {}
                (self.label(stage, f64::midpoint(left, right), if lane == 0 { y - 12.0 } else { y + 24.0 }))
            }
        }
    }

    fn label(&self, stage: usize, x: f64, y: f64) -> Markup {
        let (measure, class) = STAGES[stage];
        let ns = self.stages_ns[stage];
        let label = format!("{} {}", measure.name(), rounded(ns));
        html! {
            rect class=(class) x=(coordinate(x - text_width(&label) / 2.0 - 9.0)) y=(coordinate(y - 9.0)) width="9" height="9" {}
            (text(x + 6.0, y, "middle", "", &label))
        }
    }

    /// The same stages one after the other, as long as they take.
    fn bar(&self) -> Markup {
        let frame = Frame { left: BOXES[0], right: WIDTH - 20.0, top: 218.0, bottom: 266.0 };
        let sum = self.stages_ns.iter().sum::<f64>().max(1.0);
        let (size, unit) = axis::time_unit(sum);
        let x = Scale::linear_exact(0.0, sum / size, frame.x_range());
        let mut until = 0.0;
        let piece = |(name, class, ns): (&'static str, &'static str, f64)| {
            let left = x.at(until / size);
            until += ns;
            (name, class, ns, left, x.at(until / size))
        };
        let pieces: Vec<_> = pieces(&self.stages_ns).map(piece).collect();
        html! {
            (axis::bottom(&frame, &x, &format!("mean of each stage, to scale ({unit})")))
            @for (name, class, ns, left, right) in &pieces {
                rect class={ "piece " (class) } x=(coordinate(*left)) y=(coordinate(frame.top + 6.0)) width=(coordinate(right - left))
                    height=(coordinate(frame.bottom - frame.top - 12.0)) data-stage=(name) data-ns=(ns) {}
                @if text_width(name) + 20.0 < right - left {
                    (text(f64::midpoint(*left, *right), f64::midpoint(frame.top, frame.bottom) + 4.0, "middle", "inside", name))
                }
            }
        }
    }

    /// What was measured, where, and whether it may be quoted.
    fn captions(&self) -> [String; 2] {
        let Summary { machine, technique, isolation, started, rate, .. } = self.summary;
        let rate = rate.achieved_per_s.map_or_else(String::new, |rate| format!(", {} orders/s", plain(rate)));
        let kind = if machine.hypervisor.is_some() { " of a virtual machine" } else { "" };
        let fit = if self.summary.valid && self.summary.fit_for_latency { FIT } else { UNFIT };
        [
            format!(
                "The {} orders around the median (rt_venue {} to {}); {technique}, isolation {isolation}{rate}.",
                count(self.around.orders),
                duration(self.around.from_ns),
                duration(self.around.to_ns)
            ),
            format!(
                "{}, {} CPUs{kind}, {}. Verdict of the run: {fit}.",
                printable(&machine.cpu_model),
                machine.cores_allowed.len(),
                printable(started)
            ),
        ]
    }
}

fn rounded(ns: f64) -> String {
    duration(ns.round() as u64)
}

/// A text of a run as XML can hold it: no control characters, and not long.
fn printable(text: &str) -> String {
    let is_plain = |letter: &char| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(is_plain).take(TEXT_LEN_MAX).collect()
}
