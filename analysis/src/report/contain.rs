//! The containment table: one for each level on the terminal, one wide one in documents.

use crate::experiment::{Containment, Containments, RoleContainment, VenueContainment};
use crate::report::grid::{Grid, GridRow};
use crate::report::units::{duration_or_dash, short};
use crate::summary::VenueIncident;
use protocol::plan::{Isolation, Technique};

/// For the terminal: by level, what was contained, faults down and techniques across; then what it took.
pub fn narrow(all: &Containments) -> Vec<Grid> {
    let mut grids = Vec::new();
    for &isolation in Isolation::ALL {
        let rows: Vec<&Containment> = all.rows.iter().filter(|row| row.isolation == isolation).collect();
        if !rows.is_empty() {
            grids.push(matrix(isolation, &rows));
        }
    }
    if !all.rows.is_empty() {
        grids.push(times(all));
    }
    if !all.venues.is_empty() {
        grids.push(venues(all));
    }
    if !all.roles.is_empty() {
        grids.push(roles(all));
    }
    grids
}

/// What became of runs whose engine, or a part of it, died.
pub fn roles(all: &Containments) -> Grid {
    let head = [
        "role",
        "fault",
        "journal",
        "isolation",
        "technique",
        "back",
        "lost",
        "there",
        "detect",
        "recover",
        "served",
        "longest",
    ];
    let line = |row: &RoleContainment| {
        let names = [
            row.role.clone(),
            row.fault.to_string(),
            row.journal.to_string(),
            row.isolation.to_string(),
            row.technique.to_string(),
            row.contained.word().to_owned(),
            short(row.lost),
            short(row.in_flight),
        ];
        let times = [row.detect_ns, row.recover_ns, row.served_ns, row.longest_ns].map(duration_or_dash);
        GridRow::plain(names.into_iter().chain(times).collect())
    };
    Grid {
        name: "contain_roles".into(),
        title: "the engine's own roles: did they come back, and what it took".into(),
        head: head.map(String::from).into(),
        keys: 3,
        rows: all.roles.iter().map(line).collect(),
        notes: vec![
            "lost: orders that never came back. there: orders that were at it, or came, while it was away. detect: from the \
             fault. recover: from the detection. served: its first order, from the fault. longest: the round trip of those \
             that were there."
                .into(),
        ],
    }
}

/// What venues with faults did to the orders of the others.
pub fn venues(all: &Containments) -> Grid {
    let head = [
        "isolation",
        "technique",
        "fault",
        "stayed",
        "orders",
        "stuck",
        "recover",
        "p50",
        "during",
        "p99",
        "during ",
    ];
    let line = |row: &VenueContainment| {
        let VenueIncident { orders, stuck, recover_ns, others_before, others_during, .. } = &row.incident;
        let times = [
            recover_ns,
            &others_before.p50_ns,
            &others_during.p50_ns,
            &others_before.p99_ns,
            &others_during.p99_ns,
        ];
        let names = [row.isolation.to_string(), row.technique.to_string(), row.incident.fault.to_string()];
        let counts = [row.contained.word().to_owned(), short(*orders), short(*stuck)];
        let times = times.map(|time| duration_or_dash(*time));
        GridRow::plain(names.into_iter().chain(counts).chain(times).collect())
    };
    Grid {
        name: "contain_venues".into(),
        title: "venues with faults, and what they did to the others".into(),
        head: head.map(String::from).into(),
        keys: 3,
        rows: all.venues.iter().map(line).collect(),
        notes: vec![
            "orders: at the venue then. stuck: those that it kept longer than any before. recover: from the fault's end to \
             the last of them. p50, p99: rt_venue of the other venues' orders, before and during."
                .into(),
        ],
    }
}

fn matrix(isolation: Isolation, rows: &[&Containment]) -> Grid {
    let mut techniques: Vec<Technique> = Vec::new();
    let mut faults: Vec<&str> = Vec::new();
    for row in rows {
        if !techniques.contains(&row.technique) {
            techniques.push(row.technique);
        }
        if !faults.contains(&row.fault.as_str()) {
            faults.push(&row.fault);
        }
    }
    let cell = |fault: &str, technique: Technique| {
        let found = rows.iter().find(|row| row.fault == fault && row.technique == technique);
        found.map_or_else(|| "–".to_owned(), |row| row.contained.word().to_owned())
    };
    let line = |fault: &&str| {
        let cells = techniques.iter().map(|technique| cell(fault, *technique));
        GridRow::plain(std::iter::once((*fault).to_owned()).chain(cells).collect())
    };
    Grid {
        name: format!("contain_{isolation}"),
        title: format!("isolation {isolation}: did the fault stay with its strategy?"),
        head: std::iter::once("fault".to_owned()).chain(techniques.iter().map(ToString::to_string)).collect(),
        keys: 1,
        rows: faults.iter().map(line).collect(),
        notes: Vec::new(),
    }
}

/// How long it took, where something was contained.
fn times(all: &Containments) -> Grid {
    let rows = all.rows.iter().filter(|row| row.repair_ns.is_some()).map(|row| {
        GridRow::plain(vec![
            row.isolation.to_string(),
            row.technique.to_string(),
            row.fault.clone(),
            duration_or_dash(row.detect_ns),
            duration_or_dash(row.repair_ns),
            duration_or_dash(row.before_max_ns),
            duration_or_dash(row.during_max_ns),
        ])
    });
    Grid {
        name: "contain_times".into(),
        title: "what it took, where it was contained".into(),
        head: ["isolation", "technique", "fault", "detect", "repair", "before", "during"]
            .map(String::from)
            .into(),
        keys: 3,
        rows: rows.collect(),
        notes: vec![
            "detect: from the fault. repair: from the detection. before, during: the others' worst order."
                .into(),
        ],
    }
}

/// What a page shows: the matrices, and everything.
pub fn grids(all: &Containments) -> (Vec<Grid>, Grid) {
    let is_matrix =
        |grid: &Grid| !matches!(grid.name.as_str(), "contain_times" | "contain_venues" | "contain_roles");
    (narrow(all).into_iter().filter(is_matrix).collect(), wide(all))
}

/// One table with everything, for documents and programs.
pub fn wide(all: &Containments) -> Grid {
    let head = [
        "isolation",
        "technique",
        "fault",
        "contained",
        "seen",
        "lost",
        "cancelled",
        "orphaned",
        "others lost",
        "detect",
        "repair",
        "restart",
        "others p99.9 before",
        "during",
        "others max before",
        "during ",
    ];
    let line = |row: &Containment| {
        let mut cells = vec![
            row.isolation.to_string(),
            row.technique.to_string(),
            row.fault.clone(),
            row.contained.word().to_owned(),
            row.seen.clone(),
        ];
        cells.extend(
            [row.losses.lost, row.losses.cancelled, row.losses.orphaned, row.lost_of_others].map(short),
        );
        cells.extend(
            [
                row.detect_ns,
                row.repair_ns,
                row.restart_ns,
                row.before_p999_ns,
                row.during_p999_ns,
                row.before_max_ns,
                row.during_max_ns,
            ]
            .map(duration_or_dash),
        );
        GridRow::plain(cells)
    };
    Grid {
        name: "contain".into(),
        title: "Containment (contained: yes, late: the others waited for the deadline, NO: the run ended or others lost orders, \
                nothing: the fault never came)"
            .into(),
        head: head.map(String::from).into(),
        keys: 3,
        rows: all.rows.iter().map(line).collect(),
        notes: Vec::new(),
    }
}
