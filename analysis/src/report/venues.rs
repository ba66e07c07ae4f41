//! Venues with faults: what they did to their own orders, and to those of the others.

use super::units::{count, duration, duration_or_dash};
use crate::summary::{Summary, VenueIncident};
use crate::table::{Grid, GridRow};

/// The two tables; nothing for a run in which no venue had a fault.
pub(crate) fn grids(summary: &Summary) -> Vec<Grid> {
    let incidents = &summary.venue_incidents;
    if incidents.is_empty() {
        return Vec::new();
    }
    let names = |incident: &VenueIncident| [format!("venue-{}", incident.venue), incident.fault.to_string()];
    let own = |incident: &VenueIncident| {
        let lasted = incident.until_ns.map(|until| duration(until.saturating_sub(incident.from_ns)));
        let cells = [
            format!("{:.3}", incident.from_ns as f64 / 1e9),
            lasted.unwrap_or_else(|| "–".into()),
            count(incident.orders),
            count(incident.stuck),
            duration_or_dash(incident.longest_ns),
            duration_or_dash(incident.recover_ns),
            count(incident.refused),
            count(incident.errors),
        ];
        GridRow::plain(names(incident).into_iter().chain(cells).collect())
    };
    let others = |incident: &VenueIncident| {
        let (before, during) = (&incident.others_before, &incident.others_during);
        let times =
            [before.p50_ns, during.p50_ns, before.p99_ns, during.p99_ns, before.max_ns, during.max_ns];
        let cells = [count(before.count), count(during.count)].into_iter().chain(times.map(duration_or_dash));
        GridRow::plain(names(incident).into_iter().chain(cells).collect())
    };
    let grid = |name: &str, title: &str, head: &[&str], rows| Grid {
        name: name.into(),
        title: title.into(),
        head: head.iter().map(|head| (*head).to_owned()).collect(),
        keys: 2,
        rows,
        notes: Vec::new(),
    };
    vec![
        grid(
            "venue_incidents",
            "venues with faults: orders there then, and those kept longer than any before",
            &[
                "venue", "fault", "at (s)", "lasted", "orders", "stuck", "longest", "recover", "refused",
                "errors",
            ],
            incidents.iter().map(own).collect(),
        ),
        grid(
            "venue_incidents_others",
            "rt_venue of the orders at venues without a fault, before and during",
            &["venue", "fault", "before", "during", "p50", "during ", "p99", "during  ", "max", "during   "],
            incidents.iter().map(others).collect(),
        ),
    ]
}
