//! The report of a containment table: each fault's outcome by level, and the effect on survivors.

use super::brief;
use super::charts::{self, levels, quoted_bytes};
use super::{
    CONFIDENTIAL_NOTE, Contained, Containment, Containments, LevelConfidentiality, MIN_WAIT_NS,
    RoleContainment, VenueContainment, WAIT_FACTOR,
};
use crate::experiment::runs::ExperimentRuns;
use crate::experiment::sweep::report_frame;
use crate::experiment::{ALL, BriefReport, ExperimentReport, FILES, PAGE, ReportSection, TERMINAL};
use crate::grouping::distinct;
use protocol::plan::Journaling;
use record::numbers::{counted, duration, duration_or_dash as time, short};
use std::path::Path;
use verdict::table::{Grid, GridRow};

/// Returns the report of `launcher contain`: the containment table, and effects on survivors.
/// `folder` has the runs whose timelines are drawn, `record` their verdicts.
pub fn report(all: &Containments, folder: &Path, record: &ExperimentRuns) -> ExperimentReport {
    let answers = format!(
        "Survived, {}. late: they all came back, but some waited. NO: the run ended, or others lost orders. nothing: the fault never came. \
         Undisturbed: as launcher disturb found, by --disturb.{}",
        limits(),
        if all.rows.iter().any(|row| row.isolation.group_size() > 1) { GROUPS } else { "" }
    );
    let mut sections = vec![
        ReportSection::new("contain", "Did the fault stay with its strategy?")
            .text(&answers)
            .charts([charts::matrix(all)])
            .tables(ALL, [totals(all)])
            .tables(ALL, levels(all).into_iter().map(|level| by_level(all, &level))),
        ReportSection::new("around", "What the others felt").charts(charts::incidents(all, folder)),
    ];
    if !all.rows.is_empty() {
        sections.push(
            ReportSection::new("what", "What was seen, lost, and how long it took")
                .tables(TERMINAL | FILES, [recovery_times(all)])
                .tables(FILES | PAGE, [full_table(all)]),
        );
    }
    if !all.venues.is_empty() {
        let venues = ReportSection::new("venues", "Did the fault stay with its venue?");
        sections.push(venues.tables(ALL, [venue_table(all)]));
    }
    if !all.roles.is_empty() {
        let text = "yes: it came back from its journal, and every order with it. NO: the run ended.";
        let roles = ReportSection::new("roles", "Did the engine's roles come back?");
        sections.push(roles.text(text).tables(ALL, [role_table(all)]));
    }
    let tried = all.rows.len() + all.venues.len() + all.roles.len();
    ExperimentReport {
        name: "contain",
        heading: "What isolation buys: containment".into(),
        subject: format!("{} tried, on {}", counted(tried as u64, "fault"), all.machine),
        answer: answer(all),
        brief: BriefReport { answer: brief::sentence(all), table: Some(first_table(all)) },
        conditions: all.conditions.clone(),
        notes: all.notes.clone(),
        sections,
        ..report_frame(record)
    }
}

/// What the table says of levels with groups.
const GROUPS: &str = " Others of a group are those outside of it: its strategies end together.";

/// Returns the table of the first screen: of the strategies' faults, else of the venues' or the
/// roles'.
fn first_table(all: &Containments) -> Grid {
    match (all.rows.as_slice(), all.venues.as_slice()) {
        ([_, ..], _) => totals(all),
        ([], [_, ..]) => venue_table(all),
        ([], []) => role_table(all),
    }
}

/// Names the limits of a survivor's wait.
fn limits() -> String {
    format!(
        "yes: all others' orders came back, and none took above {} and {WAIT_FACTOR} times the longest before, or half the deadline",
        duration(MIN_WAIT_NS)
    )
}

/// The number of outcomes of each kind, in the order of the table of totals.
fn outcome_counts(outcomes: impl Iterator<Item = Contained>) -> [usize; 4] {
    let mut counts = [0; 4];
    outcomes.for_each(|outcome| counts[outcome as usize] += 1);
    counts
}

/// Returns the result of a containment table in one sentence. Faults of roles without a journal are
/// counted alone: such a role ends the run, as it must.
pub(in crate::experiment) fn answer(all: &Containments) -> String {
    let is_gateway = |row: &RoleContainment| row.role.starts_with("gateway");
    let has_journal = |row: &RoleContainment| row.journal != Journaling::None;
    let roles = |is_counted: &dyn Fn(&RoleContainment) -> bool| {
        all.roles.iter().filter(|row| is_counted(row)).map(|row| row.contained).collect()
    };
    let groups: [(&str, Vec<Contained>); 5] = [
        ("of strategies", all.rows.iter().map(|row| row.contained).collect()),
        ("of venues", all.venues.iter().map(|row| row.contained).collect()),
        ("of gateways", roles(&is_gateway)),
        ("of engine and exchanges with a journal", roles(&|row| !is_gateway(row) && has_journal(row))),
        ("without one", roles(&|row| !is_gateway(row) && !has_journal(row))),
    ];
    let counts = groups.iter().filter(|(_, outcomes)| !outcomes.is_empty()).map(|(name, outcomes)| {
        let [contained, late, spread, nothing] = outcome_counts(outcomes.iter().copied());
        let kinds =
            [(late, "made others wait for the deadline"), (spread, "spread"), (nothing, "never came")];
        let exceptions = kinds.iter().filter(|(count, _)| *count > 0);
        let exceptions: Vec<String> = exceptions.map(|(count, what)| format!("{count} {what}")).collect();
        let exceptions =
            if exceptions.is_empty() { String::new() } else { format!(" ({})", exceptions.join(", ")) };
        format!("{name} {contained} of {}{exceptions}", outcomes.len())
    });
    format!("faults that stayed where they began: {}", counts.collect::<Vec<_>>().join("; "))
}

fn totals(all: &Containments) -> Grid {
    let row = |name: String, of: &dyn Fn(&&Containment) -> bool| {
        let counts = outcome_counts(all.rows.iter().filter(of).map(|row| row.contained));
        let tried = counts.iter().sum::<usize>();
        let of_level = all.confidentiality.iter().find(|found| found.isolation.to_string() == name);
        let hidden = of_level.map_or_else(|| "–".into(), LevelConfidentiality::cell);
        let cells = counts.iter().chain([&tried]).map(usize::to_string).chain([hidden]);
        GridRow::plain(std::iter::once(name).chain(cells).collect())
    };
    let levels = levels(all).into_iter();
    let mut rows: Vec<GridRow> =
        levels.map(|level| row(level.clone(), &|one| one.levels() == level)).collect();
    if rows.len() > 1 {
        rows.push(row("total".into(), &|_| true));
    }
    let head = ["isolation", "contained", "late", "spread", "never came", "tried", "confidential"];
    Grid::new("contain_totals", format!("faults of strategies, by level; {}", limits()), 1, head, rows)
        .note(CONFIDENTIAL_NOTE)
}

/// Returns whether the others survived, and were undisturbed if that was measured: `yes,
/// undisturbed within ±9 %`.
fn two_answers(row: &Containment) -> String {
    let undisturbed = row.undisturbed.as_ref().map(|found| format!(", {found}")).unwrap_or_default();
    format!("{}{undisturbed}", row.contained.name())
}

/// What was contained at a level: faults down, techniques across.
fn by_level(all: &Containments, level: &str) -> Grid {
    let rows = || all.rows.iter().filter(|row| row.levels() == level);
    let techniques = distinct(rows().map(|row| row.technique));
    let faults = distinct(rows().map(|row| row.fault.as_str()));
    let line = |fault: &&str| {
        let cells = techniques.iter().map(|technique| {
            let row = rows().find(|row| row.fault == **fault && row.technique == *technique);
            row.map_or_else(|| "–".into(), two_answers)
        });
        GridRow::plain(std::iter::once((*fault).to_owned()).chain(cells).collect())
    };
    let title = format!("isolation {level}: did the others survive it, undisturbed?");
    let head = std::iter::once("fault").chain(techniques.iter().map(|technique| technique.name()));
    Grid::new(
        format!("contain_{}", level.replace(", ", "_").replace(' ', "_")),
        title,
        1,
        head,
        faults.iter().map(line),
    )
}

fn recovery_times(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain_times",
        "what it took, where it was contained",
        3,
        &[
            ("isolation", &Containment::levels),
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

fn full_table(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain",
        "Containment (survived: yes, late: the others waited for the deadline, NO: the run ended or others lost orders, nothing: the \
         fault never came)",
        3,
        &[
            ("isolation", &Containment::levels),
            ("technique", &|row| row.technique.to_string()),
            ("fault", &|row| row.fault.clone()),
            ("survived", &|row| row.contained.name().to_owned()),
            ("seen", &|row| quoted_bytes(&row.seen)),
            ("lost", &|row| short(row.losses.lost)),
            ("cancelled", &|row| short(row.losses.cancelled)),
            ("orphaned", &|row| short(row.losses.orphaned)),
            ("others lost", &|row| row.lost_of_others.map_or_else(|| "–".into(), short)),
            ("detect", &|row| time(row.detect_ns)),
            ("repair", &|row| time(row.repair_ns)),
            ("restart", &|row| time(row.restart_ns)),
            ("others p99 before", &|row| time(row.around.and_then(|around| around.before.p99_ns))),
            ("after", &|row| time(row.around.and_then(|around| around.after.p99_ns))),
            ("p99.9 before", &|row| time(row.around.and_then(|around| around.before.p999_ns))),
            ("after ", &|row| time(row.around.and_then(|around| around.after.p999_ns))),
            ("max before", &|row| time(row.before_max_ns)),
            ("during", &|row| time(row.during_max_ns)),
            ("undisturbed", &|row| row.undisturbed.clone().unwrap_or_else(|| "not measured".into())),
        ],
        &all.rows,
    )
}

fn venue_table(all: &Containments) -> Grid {
    Grid::from_rows(
        "contain_venues",
        "venues with faults, and what they did to the others",
        3,
        &[
            ("isolation", &|row: &VenueContainment| row.isolation.to_string()),
            ("technique", &|row| row.technique.to_string()),
            ("fault", &|row| row.incident.fault.to_string()),
            ("stayed", &|row| row.contained.name().to_owned()),
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

fn role_table(all: &Containments) -> Grid {
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
            ("back", &|row| row.contained.name().to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_hexadecimal_in_quotes() {
        for (cause, shown) in [
            ("signal 9 (SIGKILL)", "signal 9 (SIGKILL)"),
            ("all: \u{1}\u{7f}M", "all: \"01 7f 4d\""),
            ("\u{2}", "\"02\""),
        ] {
            assert_eq!(quoted_bytes(cause), shown);
        }
        assert!(quoted_bytes(&"\u{0}".repeat(40)).ends_with("00 …\""));
    }
}
