//! Draws bars of the slowest orders' time by its cause. For the slowest 1 %, 0.1 % and 0.01 % a bar
//! of all their time by cause, and below it a bar for each stage, on the same axis.

use super::axis;
use super::page::table;
use super::scale::Scale;
use super::svg::{Frame, WIDTH, coordinate, legend, text, text_width};
use crate::report::units::{counted, duration, percent};
use crate::tail::{Cause, NanosByCause, Tail, TailShare};
use maud::{Markup, html};

/// Each cause with its colour: the machine's bright, what is usual grey.
const CAUSES: [(Cause, &str); Cause::ALL.len()] = [
    (Cause::Machine, "c2"),
    (Cause::WakeUp, "c6"),
    (Cause::Memory, "c4"),
    (Cause::Backlog, "c5"),
    (Cause::Queueing, "c1"),
    (Cause::Usual, "c8"),
    (Cause::Unexplained, "c3"),
];

const ROW: f64 = 22.0;

/// Draws the slowest orders' time by cause as bars; `None` if no order was explained.
pub fn draw(tail: &Tail) -> Option<Markup> {
    if tail.slowest.is_empty() {
        return None;
    }
    Some(html! {
        (legend(CAUSES.map(|(cause, class)| (class, cause.name().to_owned()))))
        @for share in &tail.slowest { figure { (bars(share)) } }
        p class="note" {
            "Every tick of an order's way has one cause, found from stamps and from the gaps that each thread records in its own duty cycle: "
            (CAUSES.map(|(cause, _)| format!("{}: {}", cause.name(), meaning(cause))).join("; ")) "."
        }
        h3 { "With and without the machine's stalls" }
        (table(&tail.stall_free_grid()))
    })
}

const fn meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Machine => "a thread that had to act was not running",
        Cause::WakeUp => "the thread had given its core away by its own idle strategy, and was not back yet",
        Cause::Memory => "a page fault, or cold lines",
        Cause::Backlog => "behind orders that a gap had touched",
        Cause::Queueing => "behind other orders",
        Cause::Usual => "up to the median of the stage",
        Cause::Unexplained => "the rest",
    }
}

fn bars(share: &TailShare) -> Markup {
    let whole = share.causes_ns.total();
    let all = ("all stages", &share.causes_ns);
    let stages = share.stages.iter().map(|(stage, causes)| (stage.as_str(), causes));
    let rows: Vec<(&str, &NanosByCause)> = std::iter::once(all).chain(stages).collect();
    let height = 30.0 + rows.len() as f64 * ROW + 52.0;
    let frame = Frame { height, left: 150.0, right: WIDTH - 20.0, top: 26.0, bottom: height - 52.0 };
    let x = Scale::linear_exact(0.0, 100.0, frame.x_range());
    let part = |ns: u64| ns as f64 / whole.max(1) as f64 * 100.0;
    let content = html! {
        (axis::bottom(&frame, &x, &format!("share of the time of the slowest {} (%)", share.fraction), &axis::number))
        (text(frame.left, frame.top - 8.0, "start", "label", &format!(
            "the slowest {}: {}, rt_venue {} on average",
            share.fraction, counted(share.orders, "order"), duration(whole / share.orders.max(1))
        )))
        @for (number, (name, causes)) in rows.iter().enumerate() {
            @let y = frame.top + number as f64 * ROW + 4.0;
            (text(frame.left - 10.0, y + 13.0, "end", if number == 0 { "label strong" } else { "label" }, name))
            @for (class, cause, from, ns) in pieces(causes) {
                @let (left, right) = (x.at(part(from)), x.at(part(from.saturating_add(ns))));
                rect x=(coordinate(left)) y=(coordinate(y)) width=(coordinate(right - left)) height=(coordinate(ROW - 5.0)) class={ "fill piece " (class) }
                    data-tail=(share.fraction) data-of=(name) data-cause=(cause.name()) data-ns=(ns) {
                    title { (name) ", " (cause.name()) ": " (percent(Some(part(ns) / 100.0))) }
                }
                @let label = format!("{} {:.0} %", cause.name(), part(ns));
                @if text_width(&label) + 8.0 < right - left {
                    (text(f64::midpoint(left, right), y + 12.5, "middle", &format!("inside {class}"), &label))
                }
            }
        }
    };
    let said: Vec<String> = pieces(&share.causes_ns)
        .iter()
        .map(|(_, cause, _, ns)| format!("{} {}", cause.name(), percent(Some(part(*ns) / 100.0))))
        .collect();
    let id = format!("tail-{}", share.fraction.trim_end_matches(" %").replace('.', "-"));
    let title = format!("Why the slowest {} were slow", share.fraction);
    frame.drawing(&id, &title, &format!("{}.", said.join(", ")), &content)
}

/// The parts of a bar that are not nothing, each from where the one before it ends.
fn pieces(causes: &NanosByCause) -> Vec<(&'static str, Cause, u64, u64)> {
    let mut from = 0_u64;
    let mut pieces = Vec::new();
    for (cause, class) in CAUSES {
        let ns = causes.get(cause);
        if ns > 0 {
            pieces.push((class, cause, from, ns));
        }
        from = from.saturating_add(ns);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_add_up_for_any_file() {
        let share = |causes_ns| TailShare {
            fraction: "0.1 %".into(),
            orders: 0,
            causes_ns,
            stages: vec![("submit".into(), causes_ns)],
        };
        let drawn = bars(&share(NanosByCause([40, 0, 30, 20, 10, 0, 0]))).into_string();
        assert_eq!(drawn.matches("data-cause").count(), 8, "{drawn}");
        assert!(drawn.contains("id=\"tail-0-1\"") && drawn.contains("machine 40 %"), "{drawn}");
        for causes in [[0; 7], [u64::MAX; 7]].map(NanosByCause) {
            let drawn = bars(&share(causes)).into_string();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
        let pieces = pieces(&NanosByCause([1, 0, 2, 0, 0, 0, 5]));
        assert_eq!(pieces.iter().map(|piece| piece.2).collect::<Vec<_>>(), [0, 1, 6], "as they are shown");
    }
}
