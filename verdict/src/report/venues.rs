//! Report of venue faults: their effects on the venue's own orders and on those of others.

use super::units::{count, duration, duration_or_dash as time};
use crate::summary::{Summary, VenueIncident};
use crate::table::Grid;

pub(super) fn grids(summary: &Summary) -> Vec<Grid> {
    let incidents = &summary.venue_incidents;
    if incidents.is_empty() {
        return Vec::new();
    }
    let lasted = |incident: &VenueIncident| {
        incident.until_ns.map_or_else(|| "–".into(), |until| duration(until.saturating_sub(incident.from_ns)))
    };
    let own = Grid::from_rows(
        "venue_incidents",
        "venues with faults: orders there then, and those kept longer than any before",
        2,
        &[
            ("venue", &|incident: &VenueIncident| format!("venue-{}", incident.venue)),
            ("fault", &|incident| incident.fault.to_string()),
            ("at (s)", &|incident| format!("{:.3}", incident.from_ns as f64 / 1e9)),
            ("lasted", &lasted),
            ("orders", &|incident| count(incident.orders)),
            ("stuck", &|incident| count(incident.stuck)),
            ("longest", &|incident| time(incident.longest_ns)),
            ("recover", &|incident| time(incident.recover_ns)),
            ("refused", &|incident| count(incident.refused)),
            ("errors", &|incident| count(incident.errors)),
        ],
        incidents,
    );
    let others = Grid::from_rows(
        "venue_incidents_others",
        "rt_venue of the orders at venues without a fault, before and during",
        2,
        &[
            ("venue", &|incident: &VenueIncident| format!("venue-{}", incident.venue)),
            ("fault", &|incident| incident.fault.to_string()),
            ("before", &|incident| count(incident.others_before.count)),
            ("during", &|incident| count(incident.others_during.count)),
            ("p50", &|incident| time(incident.others_before.p50_ns)),
            ("during ", &|incident| time(incident.others_during.p50_ns)),
            ("p99", &|incident| time(incident.others_before.p99_ns)),
            ("during  ", &|incident| time(incident.others_during.p99_ns)),
            ("max", &|incident| time(incident.others_before.max_ns)),
            ("during   ", &|incident| time(incident.others_during.max_ns)),
        ],
        incidents,
    );
    vec![own, others]
}
