//! Draws bars of the slowest orders' time by its cause. For the slowest 1 %, 0.1 % and 0.01 % a bar
//! of all their time by cause, and below it a bar for each stage, on the same scale.

use super::page::table;
use crate::chart::svg::legend;
use crate::report::stall_free_grid;
use crate::report::units::{counted, duration, percent};
use maud::{Markup, html};
use merge::tail::{Cause, NanosByCause, Tail, TailShare};

/// Each cause with the class of its color: the machine's bright, what is usual gray.
const CAUSES: [(Cause, &str); Cause::ALL.len()] = [
    (Cause::Machine, "c2"),
    (Cause::WakeUp, "c6"),
    (Cause::Memory, "c4"),
    (Cause::Backlog, "c5"),
    (Cause::Queueing, "c1"),
    (Cause::Usual, "c8"),
    (Cause::Unexplained, "c3"),
];

/// Draws the slowest orders' time by cause as bars; `None` if no order was explained.
pub fn draw(tail: &Tail) -> Option<Markup> {
    if tail.slowest.is_empty() {
        return None;
    }
    Some(html! {
        (legend(CAUSES.map(|(cause, class)| (class, cause.name().to_owned()))))
        @for share in &tail.slowest { (bars(share)) }
        p class="note" {
            "Every tick of an order's way has one cause, found from stamps and from the gaps that each thread records in its own duty cycle: "
            (CAUSES.map(|(cause, _)| format!("{}: {}", cause.name(), meaning(cause))).join("; ")) "."
        }
        h3 { "With and without the machine's stalls" }
        (table(&stall_free_grid(tail)))
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
    let part = |ns: u64| ns as f64 / whole.max(1) as f64 * 100.0;
    let message: Vec<String> = pieces(&share.causes_ns)
        .map(|(_, cause, ns)| format!("{} {}", cause.name(), percent(Some(part(ns) / 100.0))))
        .collect();
    html! {
        figure class="tail" id={ "tail-" (share.fraction.trim_end_matches(" %").replace('.', "-")) } {
            figcaption {
                "the slowest " (share.fraction) ": " (counted(share.orders, "order")) ", rt_venue "
                (duration(whole / share.orders.max(1))) " on average"
            }
            div class="bars" role="img" aria-label={ "Why the slowest " (share.fraction) " were slow: " (message.join(", ")) "." } {
                @for (name, causes) in &rows {
                    span { (name) }
                    div class="stack" {
                        @for (class, cause, ns) in pieces(causes) {
                            @let label = format!("{} {:.0} %", cause.name(), part(ns));
                            span class={ "piece " (class) } style={ "flex:" (ns) } title={ (name) ", " (label) }
                                data-tail=(share.fraction) data-of=(name) data-cause=(cause.name()) data-ns=(ns) { span { (label) } }
                        }
                        span style={ "flex:" (whole.saturating_sub(causes.total())) } {}
                    }
                }
            }
        }
    }
}

/// Returns the parts of a bar that are not nothing: class, cause and nanoseconds.
fn pieces(causes: &NanosByCause) -> impl Iterator<Item = (&'static str, Cause, u64)> {
    let all = CAUSES.iter().map(|(cause, class)| (*class, *cause, causes.get(*cause)));
    all.filter(|(_, _, ns)| *ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_are_shown_for_any_file() {
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
    }
}
