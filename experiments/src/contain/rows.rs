//! Derives a row of the containment table from a run: the outcome of one fault.

use super::matrix::ContainCase;
use analysis::experiment::contain::{MIN_WAIT_NS, WAIT_FACTOR};
use analysis::experiment::{Confidential, Contained, Containment, RoleContainment, VenueContainment};
use merge::OrderLosses;
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, FaultTarget, FaultTime, IsolationLevel, Role};
use record::run::{Outage, RestartSteps, RunOutcome};
use verdict::summary::{CUT_SHORT, Distribution, RoleRestartSummary, Summary};

/// The end of a strategy that exhausted shared resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VictimEnd {
    Got,
    /// The victim got it after it had opened memory by its name.
    Opened,
    /// The victim was refused some of the resource, or killed by the kernel for it.
    Refused,
    /// The victim was ended by something else, such as a deadline on a busy machine, so the outcome
    /// is unknown.
    Undecided,
}

impl VictimEnd {
    /// By the cause that the incident names.
    fn from_cause(cause: &str) -> Self {
        if cause == format!("exit {}", FaultKind::EXIT_GOT) || cause.contains(FaultKind::READ_MAPPED) {
            Self::Got
        } else if cause == format!("exit {}", FaultKind::EXIT_OPENED) {
            Self::Opened
        } else if cause == format!("exit {}", FaultKind::EXIT_REFUSED) || cause.starts_with("signal 9") {
            Self::Refused
        } else {
            Self::Undecided
        }
    }
}

/// Returns whether the memory of others was hidden from a strategy that tried to read it.
const fn confidential(end: VictimEnd) -> Option<Confidential> {
    match end {
        VictimEnd::Got => Some(Confidential::No),
        VictimEnd::Opened => Some(Confidential::AgainstMistakes),
        VictimEnd::Refused => Some(Confidential::Yes),
        VictimEnd::Undecided => None,
    }
}

/// Returns the containment table's row of a case: whether its run contained the fault, according to
/// the run's summary.
pub fn row(case: &ContainCase, summary: &Summary, folder: &str) -> Containment {
    let containment = summary.containment.clone().unwrap_or_default();
    let victim = case.victim();
    let incident = summary.incidents.iter().find(|incident| incident.strategy == StrategyIndex(victim));
    let (before, during) = (&containment.survivors_before, &containment.survivors_during);
    let fault_ns = match case.scenario.fault.when {
        Some(FaultTime::At { ns }) => incident.map(|incident| incident.fault_ns.unwrap_or(ns)),
        _ => None,
    };
    let survived = summary.outcome == RunOutcome::Complete && summary.valid;
    let waited = others_waited(before, during, summary.plan.liveness_ns);
    let kind = case.scenario.fault.kind;
    let end =
        incident.filter(|_| kind.is_resource_fault()).map(|incident| VictimEnd::from_cause(&incident.cause));
    // A resource hog that stays below a bound hurts no other strategy, and nothing stopped it.
    let was_stopped = !matches!(end, Some(VictimEnd::Got | VictimEnd::Opened));
    let came = match end {
        Some(end) => end != VictimEnd::Undecided,
        None => incident.is_some() || can_have_struck(case, victim, summary),
    };
    // A wild write that ended a strategy of another group did not stay where it began. Those of one
    // group always end together.
    let group = |strategy| case.isolation.first_of_group(strategy);
    let mut hits = summary.incidents.iter().filter(|_| kind.is_wild_write());
    let hit = hits.find(|hit| group(hit.strategy) != group(StrategyIndex(victim)));
    let seen = match hit {
        Some(hit) if survived => format!("{}: {}", Role::Strategy(hit.strategy), hit.cause),
        _ => observed_end(summary, incident.map(|incident| incident.cause.as_str()), came),
    };
    let lost_of_others = if survived { containment.lost_of_survivors } else { lost_of_others(summary) };
    Containment {
        isolation: case.isolation.level_of(StrategyIndex(victim)),
        others: levels_of_others(case, victim, summary.plan.trading().strategies),
        technique: case.technique,
        fault: case.scenario.name.clone(),
        contained: match (survived && was_stopped && hit.is_none(), came, waited) {
            (false, ..) => Contained::No,
            (true, false, _) => Contained::Nothing,
            (true, true, true) => Contained::Waited,
            (true, true, false) => Contained::Yes,
        },
        confidential: end.filter(|_| kind == FaultKind::ReadOthers).and_then(confidential),
        seen,
        losses: containment.orders,
        lost_of_others: Some(lost_of_others),
        detect_ns: fault_ns.zip(incident).map(|(fault, incident)| incident.detected_ns.saturating_sub(fault)),
        repair_ns: incident.and_then(|incident| incident.detect_to_repair_ns),
        restart_ns: incident.and_then(|incident| incident.repair_to_restart_ns),
        around: summary.around_fault,
        before_p999_ns: before.p999_ns,
        before_max_ns: before.max_ns,
        during_p999_ns: during.p999_ns,
        during_max_ns: during.max_ns,
        undisturbed: None,
        folder: folder.to_owned(),
    }
}

/// Returns the containment table's row for a run whose fault overwrote the stamp log described in
/// `what`; the outcome of the orders is unknown.
pub fn destroyed_row(case: &ContainCase, strategies: u16, what: &str, folder: &str) -> Containment {
    let victim = case.victim();
    Containment {
        isolation: case.isolation.level_of(StrategyIndex(victim)),
        others: levels_of_others(case, victim, strategies),
        technique: case.technique,
        fault: case.scenario.name.clone(),
        contained: Contained::No,
        confidential: None,
        seen: what.to_owned(),
        losses: OrderLosses::default(),
        lost_of_others: None,
        detect_ns: None,
        repair_ns: None,
        restart_ns: None,
        around: None,
        before_p999_ns: None,
        before_max_ns: None,
        during_p999_ns: None,
        during_max_ns: None,
        undisturbed: None,
        folder: folder.to_owned(),
    }
}

/// Returns the levels of the other strategies; none in a run with one level.
fn levels_of_others(case: &ContainCase, victim: u16, strategies: u16) -> Vec<IsolationLevel> {
    if case.isolation.only().is_some() {
        return Vec::new();
    }
    let is_theirs = |level: &IsolationLevel| {
        (0..strategies)
            .any(|other| other != victim && case.isolation.level_of(StrategyIndex(other)) == *level)
    };
    case.isolation.distinct().filter(is_theirs).collect()
}

/// Returns the containment table's row for a run with a venue fault; `None` if the run's summary
/// has no venue fault.
pub fn venue_row(case: &ContainCase, summary: &Summary, folder: &str) -> Option<VenueContainment> {
    let incident = summary.venue_incidents.first()?.clone();
    let survived = summary.outcome == RunOutcome::Complete && summary.valid;
    let waited = others_waited(&incident.others_before, &incident.others_during, summary.plan.liveness_ns);
    Some(VenueContainment {
        isolation: case.isolation,
        technique: case.technique,
        contained: match (survived, incident.orders, waited) {
            (false, ..) => Contained::No,
            (true, 0, _) => Contained::Nothing,
            (true, _, true) => Contained::Waited,
            (true, _, false) => Contained::Yes,
        },
        incident,
        lost: summary.orders.lost,
        folder: folder.to_owned(),
    })
}

/// The outage of a gateway as the restart of a role: its own orders that were open there are those
/// `in_flight`, and its venue was down until it had recovered.
fn restart_after(outage: &Outage, role: &str) -> RoleRestartSummary {
    let Outage { detected_ns, fault_ns, .. } = *outage;
    let since = |at: Option<u64>, from: u64| at.map(|at| at.saturating_sub(from));
    RoleRestartSummary {
        role: role.to_owned(),
        cause: outage.cause.clone(),
        fault_ns,
        detected_ns,
        detect_to_recovery_ns: since(outage.restarted_ns, detected_ns),
        first_served_ns: since(outage.served_ns, fault_ns.unwrap_or(detected_ns)),
        steps: RestartSteps::default(),
        records: 0,
        replayed: 0,
        in_flight: outage.unknown,
        answered: 0,
        longest_ns: None,
    }
}

/// Returns the row of the containment table for a run with a fault of a gateway, an exchange or the
/// engine. What counts as lost is what others lost.
pub fn role_row(case: &ContainCase, summary: &Summary, folder: &str) -> RoleContainment {
    let (role, gateway) = match case.scenario.fault.target {
        FaultTarget::Gateway(index) => (summary.plan.trading().role_name(Role::Gateway(index)), Some(index)),
        FaultTarget::Exchange(venue) => (Role::Exchange(venue).to_string(), None),
        _ => ("engine".into(), None),
    };
    let restart = match gateway {
        Some(index) => {
            let outage = summary.outages.iter().find(|outage| outage.gateways.contains(&index));
            outage.map(|outage| restart_after(outage, &role))
        }
        None => summary.role_restarts.iter().find(|restart| restart.role == role).cloned(),
    };
    let restart = restart.as_ref();
    let survived = summary.outcome == RunOutcome::Complete && summary.valid;
    // A gateway that stays down takes nothing but its venue with it.
    let is_settled =
        |restart: &RoleRestartSummary| gateway.is_some() || restart.detect_to_recovery_ns.is_some();
    let came = restart.is_some() || gateway.is_none() && can_have_struck(case, case.victim(), summary);
    RoleContainment {
        isolation: case.isolation,
        technique: case.technique,
        fault: case.scenario.fault.kind,
        journal: case.journal,
        contained: match (survived, restart.is_some_and(is_settled)) {
            (false, _) => Contained::No,
            (true, true) => Contained::Yes,
            (true, false) => Contained::Nothing,
        },
        seen: observed_end(summary, restart.map(|restart| restart.cause.as_str()), came),
        lost: if survived { summary.orders.lost } else { lost_of_others(summary) },
        in_flight: restart.map_or(0, |restart| restart.in_flight),
        detect_ns: restart.and_then(|restart| Some(restart.detected_ns.saturating_sub(restart.fault_ns?))),
        recover_ns: restart.and_then(|restart| restart.detect_to_recovery_ns),
        served_ns: restart.and_then(|restart| restart.first_served_ns),
        longest_ns: restart.and_then(|restart| restart.longest_ns),
        folder: folder.to_owned(),
        role,
    }
}

/// Whether others waited for the fault. One who did is known by its worst order: there are too few
/// for a percentile. Whatever the machine did before, who waited for most of the deadline did not
/// wait for the machine.
fn others_waited(before: &Distribution, during: &Distribution, liveness_ns: u64) -> bool {
    during.max_ns.is_some_and(|during| {
        let unlike_before = during > before.max_ns.unwrap_or(0).saturating_mul(WAIT_FACTOR);
        during > MIN_WAIT_NS && (unlike_before || during > liveness_ns / 2)
    })
}

/// Whether the fault can have come in a run that ended in order and in which the victim did not
/// die. The fatal fault has not been injected then: a launcher that got no core in time finds all
/// threads done. As for the rest, the victim sent all its orders, and was there until the last was
/// due.
fn can_have_struck(case: &ContainCase, victim: u16, summary: &Summary) -> bool {
    let is_survived = matches!(
        case.scenario.fault.kind,
        FaultKind::Scribble
            | FaultKind::Flood
            | FaultKind::Lose
            | FaultKind::HoldClaim
            | FaultKind::ForgeHeader
    ) || case.scenario.fault.kind.is_wild_write();
    if summary.outcome == RunOutcome::Complete && !is_survived {
        return false;
    }
    match case.scenario.fault.when {
        Some(FaultTime::Push { order, .. }) => {
            summary.plan.trading().orders.get(usize::from(victim)).is_some_and(|orders| order < *orders)
        }
        Some(FaultTime::At { ns }) => ns < summary.input.window_ns,
        None => true,
    }
}

/// In a run that ended early, no open order is reported; the victim's cannot be distinguished.
fn lost_of_others(summary: &Summary) -> u64 {
    let orders = &summary.orders;
    orders.lost + orders.orphaned + orders.cancelled
}

fn observed_end(summary: &Summary, cause: Option<&str>, came: bool) -> String {
    let first = summary.violations.first();
    match (&summary.outcome, cause) {
        (RunOutcome::Failed { process, what, .. }, _) => format!("{process}: {what}"),
        (RunOutcome::Interrupted, _) => "interrupted".into(),
        (RunOutcome::Complete, _) if first.is_some() => {
            format!("invalid: {}", first.map_or("", |violation| &violation.first))
        }
        (RunOutcome::Complete, Some(cause)) => cause.to_owned(),
        (RunOutcome::Complete, None) if came => "nobody died".into(),
        (RunOutcome::Complete, None) if summary.unfired_faults.iter().any(|why| why.contains(CUT_SHORT)) => {
            "the fault was cut short".into()
        }
        (RunOutcome::Complete, None) => "the fault never came".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategy_killed_as_hung_was_refused_nothing() {
        let causes = [
            "exit 40",
            "exit 42",
            "exit 41",
            "signal 9 (SIGKILL)",
            "hangs: no duty cycle for 200ms",
            "exit 1",
        ]
        .map(VictimEnd::from_cause);
        assert_eq!(
            causes,
            [
                VictimEnd::Got,
                VictimEnd::Opened,
                VictimEnd::Refused,
                VictimEnd::Refused,
                VictimEnd::Undecided,
                VictimEnd::Undecided
            ]
        );
    }

    #[test]
    fn harm_is_judged_by_the_worst_order() {
        let of = |ms: u64| Distribution { max_ns: Some(ms * 1_000_000), ..Distribution::default() };
        let waits = |before, during| others_waited(&of(before), &of(during), 200_000_000);
        assert!(!waits(5, 49), "shorter ones are the machine's");
        assert!(waits(5, 60) && waits(14, 60));
        assert!(!waits(20, 60), "as it was before");
        assert!(waits(90, 101), "that long nobody waits for the machine");
        assert!(!others_waited(&of(5), &Distribution::default(), 200_000_000));
    }
}
