//! The strategies that died: a table of incidents, what they did to the survivors, and their marks on the time line.

use super::scale::Scale;
use super::svg::{Frame, num};
use crate::report::incidents::{cause, name};
use crate::report::units::{count, duration_or_dash};
use crate::summary::{Containment, IncidentSummary, Summary, worst};
use maud::{Markup, html};

/// So many incidents are listed and marked: those that the survivors felt most.
const SHOWN: usize = 50;
/// What the name of a mark, which stands upright, takes of the width.
const NAME_WIDTH: f64 = 14.0;

/// The section's content; nothing for a run in which nobody died.
pub fn draw(summary: &Summary) -> Option<Markup> {
    let containment = summary.containment.as_ref()?;
    let shown = worst(&summary.incidents, SHOWN);
    let hidden = summary.incidents.len() - shown.len();
    Some(html! {
        (totals(containment))
        (distributions(containment))
        (table(&shown))
        @if hidden > 0 {
            p class="note" { (count(hidden as u64)) " incidents that the survivors felt less are in summary.json." }
        }
        p class="note" {
            "An order is touched by an incident if it was on its way through the engine, out or home, between the fault \
             (or the detection) and 10 ms after the repair. Before: the orders that had come back when the first incident began."
        }
    })
}

fn totals(containment: &Containment) -> Markup {
    let many = |number: u64, one: &str, more: &str| {
        format!("{} {}", count(number), if number == 1 { one } else { more })
    };
    let orders = &containment.orders;
    html! {
        p data-incidents=(containment.incidents) data-lost-of-survivors=(containment.lost_of_survivors) {
            (many(containment.incidents, "death", "deaths")) " of "
            (many(containment.strategies, "strategy", "strategies")) ", "
            (count(containment.quarantined)) " after a quarantine, " (count(containment.restarted)) " followed by a restart. "
            "Orders of the dead: " (count(orders.cancelled)) " cancelled, " (count(orders.orphaned)) " orphaned, "
            (count(orders.lost)) " lost. Orders lost by survivors: " (count(containment.lost_of_survivors)) "."
        }
    }
}

fn distributions(containment: &Containment) -> Markup {
    let meanings = [
        "from detection to repair",
        "rt_venue of orders before the first incident",
        "rt_venue of survivors' orders that an incident touched",
    ];
    html! {
        table {
            thead { tr {
                th { "measure" } th class="wordy" { "what it is" } th class="n" { "samples" } th class="n" { "least" } th class="n" { "p50" }
                th class="n" { "p99" } th class="n" { "p99.9" } th class="n" { "greatest" }
            } }
            tbody { @for ((name, f), meaning) in containment.distributions().into_iter().zip(meanings) {
                tr data-containment=(name) data-samples=(f.count) data-greatest-ns=[f.max_ns] {
                    th scope="row" { (name) }
                    td class="wordy" { (meaning) }
                    td class="n" { (count(f.count)) }
                    @for value in [f.min_ns, f.p50_ns, f.p99_ns, f.p999_ns, f.max_ns] {
                        td class="n" { (duration_or_dash(value)) }
                    }
                }
            } }
        }
    }
}

fn table(incidents: &[&IncidentSummary]) -> Markup {
    html! {
        table {
            thead { tr {
                th { "died" } th class="n" { "at" } th { "cause" } th class="n" { "repaired after" } th class="n" { "restarted after" }
                th class="n" { "cancelled" } th class="n" { "orphaned" } th class="n" { "lost" } th class="n" { "touched" }
                th class="n" { "p50" } th class="n" { "p99.9" } th class="n" { "greatest" }
            } }
            tbody { @for incident in incidents {
                @let IncidentSummary { orders, survivors, .. } = incident;
                tr data-died=(name(incident)) data-detected-ns=(incident.detected_ns)
                    data-touched=(survivors.orders) data-greatest-ns=[survivors.max_ns] {
                    th scope="row" { "strategy " (name(incident)) }
                    td class="n" { (format!("{:.4} s", incident.detected_ns as f64 / 1e9)) }
                    td { (cause(incident)) }
                    td class="n" { (duration_or_dash(incident.detect_to_repair_ns)) }
                    td class="n" { (duration_or_dash(incident.repair_to_restart_ns)) }
                    @for number in [orders.cancelled, orders.orphaned, orders.lost, survivors.orders] {
                        td class="n" { (count(number)) }
                    }
                    @for value in [survivors.p50_ns, survivors.p999_ns, survivors.max_ns] {
                        td class="n" { (duration_or_dash(value)) }
                    }
                }
            } }
        }
    }
}

/// An upright line at each incident, and the name of who died where there is room for it; `size` is the number of nanoseconds
/// in the scale's unit.
pub fn marks(incidents: &[IncidentSummary], frame: &Frame, x: &Scale, size: f64) -> Markup {
    let at = |incident: &IncidentSummary| incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns);
    let mut named_until = frame.left;
    let marks: Vec<_> = (worst(incidents, SHOWN).into_iter())
        .map(|incident| {
            let place = x.at(at(incident) as f64 / size).clamp(frame.left, frame.right);
            let has_room = place >= named_until + NAME_WIDTH;
            if has_room {
                named_until = place;
            }
            (incident, place, has_room)
        })
        .collect();
    // A name stands beside its line and reads upward.
    let foot = num(frame.bottom - 8.0);
    html! {
        g class="incidents" {
            @for (incident, place, has_room) in marks {
                line x1=(num(place)) y1=(num(frame.top)) x2=(num(place)) y2=(num(frame.bottom)) class="incident"
                    data-incident=(name(incident)) data-at-ns=(at(incident)) {}
                @if has_room {
                    text transform={ "translate(" (num(place - 3.0)) " " (foot) ") rotate(-90)" } class="tick died" {
                        "† " (name(incident))
                    }
                }
            }
        }
    }
}
