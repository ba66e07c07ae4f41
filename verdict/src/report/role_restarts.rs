//! Report of engine roles that died and were restarted from their journals.

use super::units::{count, duration_or_dash as time};
use crate::summary::{RoleRestartSummary, Summary};
use crate::table::Grid;
use record::escape::single_line;

const MAX_CAUSES: usize = 8;

/// What the deaths of engine and exchanges cost in a run, in one sentence.
pub(super) struct RestartHeadline {
    pub text: String,
    /// Whether service came back after each death, and no order is missing.
    pub is_whole: bool,
}

/// Returns the first line of a report on a run in which engine or exchanges died, with `lost`
/// orders; `None` without a death.
pub(super) fn headline(restarts: &[RoleRestartSummary], lost: u64) -> Option<RestartHeadline> {
    if restarts.is_empty() {
        return None;
    }
    let mut roles: Vec<(&str, u64)> = Vec::new();
    for restart in restarts {
        match roles.iter_mut().find(|(role, _)| *role == restart.role) {
            Some((_, deaths)) => *deaths += 1,
            None => roles.push((&restart.role, 1)),
        }
    }
    let died = |(role, deaths): &(&str, u64)| match deaths {
        1 => single_line(role),
        _ => format!("{} ({} times)", single_line(role), count(*deaths)),
    };
    let roles = roles.iter().map(died).collect::<Vec<_>>().join(", ");
    // Without an order after the death, service is the recovery.
    let detected = |restart: &RoleRestartSummary| {
        restart.detected_ns.saturating_sub(restart.fault_ns.unwrap_or(restart.detected_ns))
    };
    let again = |restart: &RoleRestartSummary| {
        restart.first_served_ns.or(restart.detect_to_recovery_ns.map(|ns| detected(restart) + ns))
    };
    let is_back = restarts.iter().all(|restart| again(restart).is_some());
    let longest = restarts.iter().filter_map(again).max();
    let at_most = if restarts.len() > 1 { "at most " } else { "" };
    let service = match is_back {
        true => format!("service again after {at_most}{}", time(longest)),
        false => "no service after the last death".into(),
    };
    let sum = |of: fn(&RoleRestartSummary) -> u64| restarts.iter().map(of).fold(0, u64::saturating_add);
    let (answered, in_flight) = (sum(|restart| restart.answered), sum(|restart| restart.in_flight));
    let orders = format!("{} of {} orders in flight answered", count(answered), count(in_flight));
    Some(RestartHeadline {
        text: format!("{roles} died: {service}, {orders}, {} lost", count(lost)),
        is_whole: is_back && answered == in_flight && lost == 0,
    })
}

/// Returns the tables of engine roles that were restarted; none for a run without any.
pub(super) fn grids(summary: &Summary) -> Vec<Grid> {
    restarts(summary).into_iter().chain(steps(summary)).collect()
}

/// Returns the table of the steps from a death to the first order, if the processes reported them.
fn steps(summary: &Summary) -> Option<Grid> {
    let reported: Vec<&RoleRestartSummary> =
        summary.role_restarts.iter().filter(|restart| restart.steps.running_ns.is_some()).collect();
    let between =
        |from: Option<u64>, to: Option<u64>| time(to.zip(from).map(|(to, from)| to.saturating_sub(from)));
    let served = |restart: &RoleRestartSummary| {
        Some(restart.fault_ns.unwrap_or(restart.detected_ns) + restart.first_served_ns?)
    };
    let grid = Grid::from_rows(
        "restart-steps",
        "from the death to the first order, step by step",
        1,
        &[
            ("died", &|restart: &&RoleRestartSummary| restart.role.clone()),
            ("detected", &|restart| between(restart.fault_ns, Some(restart.detected_ns))),
            ("proven", &|restart| between(Some(restart.detected_ns), restart.steps.restarted_ns)),
            ("woken", &|restart| between(restart.steps.restarted_ns, restart.steps.begun_ns)),
            ("replayed", &|restart| between(restart.steps.begun_ns, restart.steps.replayed_ns)),
            ("running", &|restart| between(restart.steps.replayed_ns, restart.steps.running_ns)),
            ("first order", &|restart| between(restart.steps.running_ns, served(restart))),
        ],
        &reported,
    );
    (!grid.rows.is_empty()).then(|| {
        grid.note(
            "each after the one before. proven: the kernel confirms the death, and the standby is promoted. woken: it begins to recover. \
             replayed: all of the journal is applied, and rings and logs are compared with it. running: its loops are built.",
        )
    })
}

/// Returns the table of the restarts; `None` for a run without any.
fn restarts(summary: &Summary) -> Option<Grid> {
    let at = |restart: &RoleRestartSummary| {
        format!("{:.3}", restart.fault_ns.unwrap_or(restart.detected_ns) as f64 / 1e9)
    };
    let detected = |restart: &RoleRestartSummary| {
        time(restart.fault_ns.map(|fault| restart.detected_ns.saturating_sub(fault)))
    };
    let mut grid = Grid::from_rows(
        "comebacks",
        "engine roles that died and came back from their journals",
        1,
        &[
            ("died", &|restart: &RoleRestartSummary| restart.role.clone()),
            ("at (s)", &at),
            ("detected", &detected),
            ("recovered", &|restart| time(restart.detect_to_recovery_ns)),
            ("served", &|restart| time(restart.first_served_ns)),
            ("records", &|restart| count(restart.records)),
            ("again", &|restart| count(restart.replayed)),
            ("there", &|restart| count(restart.in_flight)),
            ("answered", &|restart| count(restart.answered)),
            ("longest", &|restart| time(restart.longest_ns)),
        ],
        &summary.role_restarts,
    );
    let cause = |restart: &RoleRestartSummary| {
        format!("{} at {} s: {}", restart.role, at(restart), single_line(&restart.cause))
    };
    grid.notes = summary.role_restarts.iter().take(MAX_CAUSES).map(cause).collect();
    (!grid.rows.is_empty()).then(|| {
        grid.note(
            "detected: after the fault. recovered: after the detection. served: its first order, after the death. again: records that were \
             carried out again, the others were in a snapshot. there: orders that were at it, or came, while it was away; longest: the \
             round trip of those.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headline_names_service_answers_and_losses() {
        let death = |role: &str, served| RoleRestartSummary {
            role: role.into(),
            fault_ns: Some(1_000_000),
            detected_ns: 1_200_000,
            detect_to_recovery_ns: Some(800_000),
            first_served_ns: served,
            in_flight: 12,
            answered: 12,
            ..RoleRestartSummary::default()
        };
        let line = |restarts: &[RoleRestartSummary], lost| {
            headline(restarts, lost).map(|found| (found.text, found.is_whole))
        };
        assert_eq!(line(&[], 0), None);
        let [engine, exchange] = [death("engine", Some(1_640_000)), death("exchange-0", None)];
        let text = "engine died: service again after 1,640 µs, 12 of 12 orders in flight answered, 0 lost";
        assert_eq!(line(std::slice::from_ref(&engine), 0), Some((text.into(), true)));
        // No order came after it: the recovery counts.
        let text =
            "exchange-0 died: service again after 1,000 µs, 12 of 12 orders in flight answered, 1 lost";
        assert_eq!(line(std::slice::from_ref(&exchange), 1), Some((text.into(), false)));
        let gone = RoleRestartSummary { detect_to_recovery_ns: None, answered: 11, ..exchange.clone() };
        let (text, is_whole) = line(&[engine.clone(), engine.clone(), exchange], 0).unwrap();
        assert!(
            is_whole && text.starts_with("engine (2 times), exchange-0 died: service again after at most")
        );
        let (text, is_whole) = line(&[engine, gone], 0).unwrap();
        assert!(!is_whole && text.contains("no service after the last death, 23 of 24 orders"), "{text}");
    }
}
