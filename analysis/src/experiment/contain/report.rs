//! The report of a containment table: where each fault stayed, by level, and what survivors
//! noticed.

use super::matrix::{self, tried};
use super::{Contained, Containment, Containments, RoleContainment, VenueContainment, around};
use crate::experiment::{ALL, ExperimentReport, FILES, PAGE, Part, Section, TERMINAL};
use crate::numbers::{duration_or_dash as time, short};
use crate::table::{Grid, GridRow};
use protocol::plan::Isolation;
use std::path::Path;

/// What it shows; `folder` has the runs, for what is drawn of them.
pub fn report(all: &Containments, folder: &Path) -> ExperimentReport {
    let levels = || Isolation::ALL.iter().filter(|level| all.rows.iter().any(|row| row.isolation == **level));
    let matrices = levels().map(|level| Part::Table(by_level(all, *level), ALL));
    let answers = "yes: all others' orders came back and none of them waited for it. late: they all came back, but some waited for the \
                   deadline. NO: the run ended, or others lost orders. nothing: the fault never came.";
    let around = around::draw(all, folder).map(Part::Chart);
    let mut sections = vec![
        Section::new("contain", "Did the fault stay with its strategy?")
            .with([
                Part::Text(answers.into()),
                Part::List(levels().map(|level| contained(all, *level)).collect()),
            ])
            .with([Part::Chart(matrix::draw(all))])
            .with(matrices),
        Section::new("around", "What the others felt").with(around),
    ];
    if !all.rows.is_empty() {
        let parts = [Part::Table(times(all), TERMINAL | FILES), Part::Table(everything(all), FILES | PAGE)];
        sections.push(Section::new("what", "What was seen, lost, and how long it took").with(parts));
    }
    if !all.venues.is_empty() {
        sections.push(
            Section::new("venues", "Did the fault stay with its venue?")
                .with([Part::Table(venues(all), ALL)]),
        );
    }
    if !all.roles.is_empty() {
        let text = "yes: it came back from its journal, and every order with it. NO: the run ended.";
        let parts = [Part::Text(text.into()), Part::Table(roles(all), ALL)];
        sections.push(Section::new("roles", "Did the engine's roles come back?").with(parts));
    }
    let tried = all.rows.len() + all.venues.len() + all.roles.len();
    ExperimentReport {
        name: "contain",
        heading: "What isolation buys: containment".into(),
        title: "What isolation buys".into(),
        subject: format!("{tried} faults tried, on {}", all.machine),
        origin: format!("bulkhead {}", env!("CARGO_PKG_VERSION")),
        notes: all.notes.clone(),
        sections,
        ..ExperimentReport::default()
    }
}

/// `process: 11 of 12 contained, 1 late`.
fn contained(all: &Containments, level: Isolation) -> String {
    let count = |wanted: &[Contained]| {
        all.rows
            .iter()
            .filter(|row| row.isolation == level && (wanted.is_empty() || wanted.contains(&row.contained)))
            .count()
    };
    let (yes, late) = (count(&[Contained::Yes]), count(&[Contained::Waited]));
    format!("{level}: {yes} of {} contained, {late} late", count(&[]))
}

/// What was contained at a level: faults down, techniques across.
fn by_level(all: &Containments, level: Isolation) -> Grid {
    let rows = || all.rows.iter().filter(|row| row.isolation == level);
    let (techniques, faults) = tried(rows());
    let line = |fault: &&str| {
        let cells = techniques.iter().map(|technique| {
            let row = rows().find(|row| row.fault == **fault && row.technique == *technique);
            row.map_or("–", |row| row.contained.word()).to_owned()
        });
        GridRow::plain(std::iter::once((*fault).to_owned()).chain(cells).collect())
    };
    Grid {
        name: format!("contain_{level}"),
        title: format!("isolation {level}: did the fault stay with its strategy?"),
        head: std::iter::once("fault".to_owned()).chain(techniques.iter().map(ToString::to_string)).collect(),
        keys: 1,
        rows: faults.iter().map(line).collect(),
        notes: Vec::new(),
    }
}

/// How long it took, where something was contained.
fn times(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain_times",
        "what it took, where it was contained",
        3,
        &[
            ("isolation", &|row: &Containment| row.isolation.to_string()),
            ("technique", &|row| row.technique.to_string()),
            ("fault", &|row| row.fault.clone()),
            ("detect", &|row| time(row.detect_ns)),
            ("repair", &|row| time(row.repair_ns)),
            ("before", &|row| time(row.before_max_ns)),
            ("during", &|row| time(row.during_max_ns)),
        ],
        all.rows.iter().filter(|row| row.repair_ns.is_some()),
    )
    .note("detect: from the fault. repair: from the detection. before, during: the others' worst order.")
}

/// One table with everything.
fn everything(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain",
        "Containment (contained: yes, late: the others waited for the deadline, NO: the run ended or others lost orders, nothing: the \
         fault never came)",
        3,
        &[
            ("isolation", &|row: &Containment| row.isolation.to_string()),
            ("technique", &|row| row.technique.to_string()),
            ("fault", &|row| row.fault.clone()),
            ("contained", &|row| row.contained.word().to_owned()),
            ("seen", &|row| row.seen.clone()),
            ("lost", &|row| short(row.losses.lost)),
            ("cancelled", &|row| short(row.losses.cancelled)),
            ("orphaned", &|row| short(row.losses.orphaned)),
            ("others lost", &|row| short(row.lost_of_others)),
            ("detect", &|row| time(row.detect_ns)),
            ("repair", &|row| time(row.repair_ns)),
            ("restart", &|row| time(row.restart_ns)),
            ("others p99.9 before", &|row| time(row.before_p999_ns)),
            ("during", &|row| time(row.during_p999_ns)),
            ("others max before", &|row| time(row.before_max_ns)),
            ("during ", &|row| time(row.during_max_ns)),
        ],
        &all.rows,
    )
}

/// What venues with faults did to the orders of the others.
fn venues(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain_venues",
        "venues with faults, and what they did to the others",
        3,
        &[
            ("isolation", &|row: &VenueContainment| row.isolation.to_string()),
            ("technique", &|row| row.technique.to_string()),
            ("fault", &|row| row.incident.fault.to_string()),
            ("stayed", &|row| row.contained.word().to_owned()),
            ("orders", &|row| short(row.incident.orders)),
            ("stuck", &|row| short(row.incident.stuck)),
            ("recover", &|row| time(row.incident.recover_ns)),
            ("p50", &|row| time(row.incident.others_before.p50_ns)),
            ("during", &|row| time(row.incident.others_during.p50_ns)),
            ("p99", &|row| time(row.incident.others_before.p99_ns)),
            ("during ", &|row| time(row.incident.others_during.p99_ns)),
        ],
        &all.venues,
    )
    .note(
        "orders: at the venue then. stuck: those that it kept longer than any before. recover: from the fault's end to the last of them. \
         p50, p99: rt_venue of the other venues' orders, before and during.",
    )
}

/// What became of runs whose engine, or a part of it, died.
fn roles(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain_roles",
        "the engine's own roles: did they come back, and what it took",
        3,
        &[
            ("role", &|row: &RoleContainment| row.role.clone()),
            ("fault", &|row| row.fault.to_string()),
            ("journal", &|row| row.journal.to_string()),
            ("isolation", &|row| row.isolation.to_string()),
            ("technique", &|row| row.technique.to_string()),
            ("back", &|row| row.contained.word().to_owned()),
            ("lost", &|row| short(row.lost)),
            ("there", &|row| short(row.in_flight)),
            ("detect", &|row| time(row.detect_ns)),
            ("recover", &|row| time(row.recover_ns)),
            ("served", &|row| time(row.served_ns)),
            ("longest", &|row| time(row.longest_ns)),
        ],
        &all.roles,
    )
    .note(
        "lost: orders that never came back. there: orders that were at it, or came, while it was away. detect: from the fault. recover: \
         from the detection. served: its first order, from the fault. longest: the round trip of those that were there.",
    )
}
