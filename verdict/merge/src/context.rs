//! The facts about a run on which the checks of its orders depend.

use super::deaths::Deaths;
use super::further_reports::FurtherReports;
use super::row::{OrderRow, bit};
use super::switches::KillSwitches;
use protocol::flow::points_mask;
use protocol::plan::{Pacing, Role};
use protocol::reject::Reject;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use record::run::{RunOutcome, RunRecord};

pub(super) struct CheckContext<'a> {
    pub record: &'a RunRecord,
    pub deaths: &'a Deaths,
    pub switches: &'a KillSwitches,
    pub chains: &'a FurtherReports,
    /// Bit mask of the additional points that a completed order needs under the run's pacing.
    pub pacing_points: u64,
    pub stamped_points: u64,
    /// Whether every order must be complete: the run ended normally.
    pub is_complete: bool,
    /// Whether any stamp may be missing, because the run broke off.
    pub has_failed: bool,
    /// Bit mask of the points that may be missing because the processes of their threads died.
    pub engine_missing: u64,
    /// Whether stamps may be missing, for each strategy that died outside of an incident.
    pub strategy_missing: Vec<bool>,
}

impl<'a> CheckContext<'a> {
    /// Collects the facts on which the checks of a run's orders depend, such as deaths and stamps
    /// that may be missing.
    pub fn new(
        record: &'a RunRecord,
        deaths: &'a Deaths,
        switches: &'a KillSwitches,
        chains: &'a FurtherReports,
    ) -> Self {
        let plan = &record.plan;
        let failed = match &record.outcome {
            RunOutcome::Failed { process, .. } => Some(process),
            _ => None,
        };
        let ended = record.exits.iter().filter(|exit| exit.how != "exit 0");
        let dead_processes = ended.map(|exit| &exit.process).filter(|process| !is_outage(record, process));
        let missing_processes: Vec<&String> = dead_processes.chain(failed).collect();
        let mut strategy_missing = vec![false; usize::from(plan.trading().strategies)];
        let mut engine_missing = 0;
        let dead_processes =
            plan.processes.iter().filter(|process| missing_processes.contains(&&process.name));
        for role in dead_processes.flat_map(|process| plan.roles_of(process)) {
            match role {
                Role::Strategy(index) => {
                    if let Some(missing) = strategy_missing.get_mut(index.as_usize()) {
                        *missing = true;
                    }
                }
                role => engine_missing |= points_mask(role.info().points),
            }
        }
        let is_scheduled = plan.trading().overall_pacing() == Pacing::Scheduled;
        let is_stamped = |point: &&Point| {
            point.is_stamped_with(plan.stamps) && (plan.trading().tells_release || **point != Point::Release)
        };
        let stamped = Point::ALL.iter().filter(is_stamped);
        Self {
            record,
            deaths,
            switches,
            chains,
            pacing_points: if is_scheduled { bit(Point::Due) } else { 0 },
            stamped_points: stamped.fold(0, |points, point| points | bit(*point)),
            is_complete: record.outcome == RunOutcome::Complete,
            has_failed: failed.is_some(),
            engine_missing,
            strategy_missing,
        }
    }
}

/// Returns `true` if the death of a process is an outage of the record. Which stamps may be missing
/// is then decided order by order.
fn is_outage(record: &RunRecord, process: &str) -> bool {
    let last = record.outages.iter().rfind(|outage| outage.process == process);
    last.is_some_and(|outage| outage.restarted_ns.is_none())
}

impl CheckContext<'_> {
    /// Returns a bit mask of the points on one order's path that count as stamped when the order's
    /// outcome is derived. Where the orchestrator stamps no reports, a produced or refused report
    /// counts as processed and returned.
    #[inline]
    pub fn outcome_points(&self, id: OrderId, row: &OrderRow) -> u64 {
        if row.reason() == Some(Reject::VenueUnknown.code()) {
            return self.unknown_outcome_points(id, row);
        }
        let by_report = bit(Point::OrchRecvCompletion) | bit(Point::OrchReturn);
        let is_made = row.has(Point::GatewayDone) || row.has(Point::Rejected);
        row.points() | if is_made { by_report & !self.stamped_points } else { 0 }
    }

    /// Returns those points for an order that the engine closed because its gateway died: it ends
    /// with the engine's report, not with its first one.
    fn unknown_outcome_points(&self, id: OrderId, row: &OrderRow) -> u64 {
        let report_points = bit(Point::OrchReturn) | bit(Point::StrategyRecv);
        let report = self.chains.engine_report(id);
        let has = |point| report.is_some_and(|report| report.at(point).is_some());
        let stamped = |point| if has(point) { bit(point) } else { 0 };
        row.points() & !report_points | stamped(Point::OrchReturn) | stamped(Point::StrategyRecv)
    }
}
